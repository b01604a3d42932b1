"""Lines of a snapshot: taken over from the one before, they are what counting everything anew gives."""

from __future__ import annotations

from cases import each

from infinimem.markdown.document import Document
from infinimem.store.lines import Lines, Seqs, common_time
from infinimem.strategies.infini.spec import SPEC as INFINI

IDS = ("CURRENT", "topics/a", "archive/a", "evidence/s", "evidence/s-part2", "evidence/t", "note")


def line(seq: int, origin: int, was: int, key: str) -> str:
    signed = f"seq={seq},source=user"
    signed += f",origin={origin}" if origin else ""
    signed += f",was={was}" if was else ""
    signed += f",key={key},turn={key}" if key else ""
    return f"- <{signed}> fact {seq}"


def is_note(doc_id: str) -> bool:
    return doc_id == "note"


def document(doc_id: str, session: str, lines: list[str]) -> Document:
    head = ["---", f"session: {session}", "---"] if session else []
    return Document.parse(doc_id, "".join(f"{text}\n" for text in (*head, *lines)).encode())


def test_a_turn_waits_again_when_what_cited_it_is_gone() -> None:
    said, topic = (
        document("evidence/s", "", [line(1, 0, 0, "")]),
        document("topics/a", "", [line(2, 1, 0, "")]),
    )
    drawn = Seqs()
    lines = Lines(INFINI).after({"evidence/s": said, "topics/a": topic}, drawn, is_note)
    assert [*lines.waiting] == []
    assert [*lines.after({"topics/a": None}, drawn, is_note).waiting] == [1]


def test_turns_of_a_session_that_got_another_name_are_known_by_it() -> None:
    said = [line(1, 0, 0, "x")]
    lines = Lines(INFINI).after({"evidence/s": document("evidence/s", "s", said)}, Seqs(), is_note)
    lines = lines.after({"evidence/s": document("evidence/s", "t", said)}, Seqs(), is_note)
    assert ("turn", "t", "x") in lines.marks
    assert ("turn", "s", "x") not in lines.marks


def test_a_session_whose_first_file_is_gone_goes_on_in_the_next() -> None:
    parts = {doc_id: document(doc_id, "s", [line(at, 0, 0, "")]) for at, doc_id in enumerate(IDS[3:5], 1)}
    lines = Lines(INFINI).after(parts, None, is_note)
    assert lines.sessions["s"] == "evidence/s"
    assert lines.after({"evidence/s": None}, None, is_note).sessions["s"] == "evidence/s-part2"


@each(
    ("times", "common"),
    [
        (("2025-03-01T09:00:00", "2025-03-01T09:00:00"), "2025-03-01T09:00:00"),
        (("2025-03-01T09:00:00", "2025-03-01T09:01:00"), "2025-03-01"),
        (("2025-03-01", "2025-03-02"), None),
        (("2025-03-01", None), None),
        ((), None),
    ],
)
def test_turns_have_the_time_that_all_share(times: tuple[str | None, ...], common: str | None) -> None:
    assert common_time(times) == common
