"""Lines of a snapshot: taken over from the one before, they are what counting everything anew gives."""

from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infinimem.markdown.document import Document
from infinimem.store.lines import Lines, Seqs, common_time
from infinimem.strategies.allmem.spec import SPEC as ALLMEM
from infinimem.strategies.infini.spec import SPEC as INFINI

IDS = ("CURRENT", "topics/a", "archive/a", "evidence/s", "evidence/s-part2", "evidence/t", "note")


def line(seq: int, origin: int, was: int, key: str) -> str:
    signed = f"seq={seq},source=user"
    signed += f",origin={origin}" if origin else ""
    signed += f",was={was}" if was else ""
    signed += f",key={key},turn={key}" if key else ""
    return f"- <{signed}> fact {seq}"


LINES = st.lists(
    st.builds(
        line,
        st.integers(1, 8),
        st.integers(0, 8),
        st.sampled_from((0, 0, 3)),
        st.sampled_from(("", "x", "y")),
    ),
    max_size=5,
)


@st.composite
def changes(draw: st.DrawFn) -> dict[str, tuple[str, list[str]] | None]:
    """Some documents anew: a session and lines; "+" where one grew, None where it is gone."""
    return {
        doc_id: draw(st.none() | st.tuples(st.sampled_from(("", "s", "t", "+")), LINES))
        for doc_id in draw(st.sets(st.sampled_from(IDS), min_size=1))
    }


def is_note(doc_id: str) -> bool:
    return doc_id == "note"


def document(doc_id: str, session: str, lines: list[str]) -> Document:
    head = ["---", f"session: {session}", "---"] if session else []
    return Document.parse(doc_id, "".join(f"{text}\n" for text in (*head, *lines)).encode())


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(changes(), st.sets(st.integers(1, 8)), st.booleans()), max_size=6), st.booleans())
def test_what_is_taken_over_is_what_is_counted_anew(
    steps: list[tuple[dict[str, tuple[str, list[str]] | None], set[int], bool]], whole: bool
) -> None:
    spec = ALLMEM if whole else INFINI
    documents: dict[str, Document] = {}
    lines, drawn = Lines(spec), Seqs()
    for changed, done, lost in steps:
        found: dict[str, Document | None] = {}
        for doc_id, new in changed.items():
            old = documents.pop(doc_id, None)
            found[doc_id] = None
            if new is not None:
                grown = old is not None and new[0] == "+"
                now = old.grown(document(doc_id, "", new[1])) if old and grown else None
                documents[doc_id] = now or document(doc_id, new[0].strip("+"), new[1])
                found[doc_id] = documents[doc_id]
        drawn = Seqs(done) if lost else Seqs(done, drawn)
        lines = lines.after(found, drawn, is_note)
        anew = Lines(spec).after(documents, drawn, is_note)
        for field in fields(Lines):
            assert getattr(lines, field.name) == getattr(anew, field.name), field.name


@given(st.lists(st.tuples(st.sets(st.integers(1, 99)), st.integers(0, 9)), max_size=8))
def test_a_set_of_seqs_says_what_was_added_or_that_it_does_not_know(
    steps: list[tuple[set[int], int]],
) -> None:
    made: list[tuple[Seqs, set[int]]] = [(Seqs(), set())]
    for step, at in steps:
        before, held = made[at % len(made)]
        made.append((Seqs(step, before), held | step))
    for seqs, held in made:
        assert seqs == held and len(seqs) == len(held)
        for before, less in made:
            news = seqs.since(before)
            assert news is None or (less <= held and {*news} == held - less)


def test_the_set_that_grew_last_knows_what_was_added() -> None:
    one = Seqs([1, 2])
    assert [*(Seqs([2, 3], one).since(one) or ())] == [3]
    assert Seqs([2, 3], Seqs([1, 2])).since(one) is None


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


@pytest.mark.parametrize(
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
