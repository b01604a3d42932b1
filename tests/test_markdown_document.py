"""Documents: any bytes come back, and lines are what FORMAT.md says; edits are in test_markdown_edits."""

from __future__ import annotations

from collections import Counter

from cases import each
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_lines import DOCUMENTS, IDS, NEW

from infinimem.markdown.document import Document, ListItem


@given(IDS, st.binary() | DOCUMENTS)
@example("topics/t", b"")
@example("topics/t", b"\n")
@example("topics/t", b"\xef\xbb\xbf")
@example("topics/t", b"\xef\xbb\xbf\xef\xbb\xbf\r\n\r")
@example("topics/t", b"\xed\xa0\x80\xed\xb2\x80\xf4\x90\x80\x80\xc0\x80")
def test_any_bytes_come_back_and_can_be_read(doc_id: str, data: bytes) -> None:
    document = Document.parse(doc_id, data)
    assert document.to_bytes() == data
    assert len(document.lines) == data.count(b"\n") + (
        not data.endswith(b"\n") and data not in (b"", b"\xef\xbb\xbf")
    )
    assert document.header.end <= len(document.lines)
    shown = [document.body, document.summary, *(item.text for item in document.unsigned)]
    shown += [place.entry.text for place in document.entries] + [
        heading.title for heading in document.headings
    ]
    shown += [document.text_line(number + 1) for number in range(len(document.lines))]
    "".join(shown).encode("utf-8")


@given(IDS, DOCUMENTS)
def test_every_line_of_the_body_is_one_thing(doc_id: str, data: bytes) -> None:
    document = Document.parse(doc_id, data)
    owned = Counter(number for p in document.entries for number in range(p.start_line, p.end_line + 1))
    owned.update(document.malformed)
    owned.update(item.line for item in document.unsigned)
    owned.update(heading.line for heading in document.headings)
    assert all(count == 1 for count in owned.values())
    assert all(document.header.end < number <= len(document.lines) for number in owned)
    rest = [
        document.text_line(n)
        for n in range(document.header.end + 1, len(document.lines) + 1)
        if n not in owned
    ]
    prose = [line for line in rest if line.strip() and line.strip(" \t") not in ("-", "*", "+")]
    assert document.has_prose == bool(prose or document.malformed or document.header.problem)


def test_what_a_person_types_is_told_apart() -> None:
    text = "\n".join(
        [
            "- one",
            "*  two ",
            "+\tthree",
            "- <b>bold</b> and <seq=1>",
            "- <https://example.org/?a=b> link",
            "- [ ] task",
            "- ",
            "-",
            "- <seq=5> signed",
            "- <seq=6 broken",
            "* <seq=7> wrong bullet",
            "-  <seq=8> wrong blank",
            "- <time=2023> no seq",
            "  - nested",
            "1. counted",
            "-no item",
            "* * *",
            "- - -",
            " - <seq=9> indented",
            "> - <seq=10> quoted",
        ]
    )
    document = Document.parse("topics/t", text.encode())
    assert document.unsigned == (
        ListItem(1, "one"),
        ListItem(2, "two "),
        ListItem(3, "three"),
        ListItem(4, "<b>bold</b> and <seq=1>"),
        ListItem(5, "<https://example.org/?a=b> link"),
    )
    assert [place.entry.seq for place in document.entries] == [5]
    assert document.malformed == (10, 11, 12, 13)
    assert document.has_prose
    assert Document.parse("topics/t", b"- [x] done\n").has_prose
    assert Document.parse("topics/t", b"- <seq=6 broken\n").has_prose
    assert not Document.parse("topics/t", b"- one\n\n# h\n- <seq=1> x\n- \n").has_prose


def test_headings_are_read_as_in_commonmark() -> None:
    text = "# a\n##\n   ### b ##  \n####### no\n#no\n# c#\n    # code\n## \td \\#\n# e ## f\n# #\n#\tg"
    titles = [(h.level, h.title) for h in Document.parse("n", text.encode()).headings]
    assert titles == [
        *((1, "a"), (2, ""), (3, "b"), (1, "c#"), (2, "d \\#"), (1, "e ## f"), (1, ""), (1, "g")),
    ]


@each(
    ("text", "seqs"),
    [
        ("```\n- <seq=1> a\n```\n- <seq=2> b", [2]),
        ("```\n- <seq=1> a\n- <seq=2> b", [1, 2]),
        ("~~~\n- <seq=1> a\n```\n- <seq=2> b", [1, 2]),
        ("````\n- <seq=1> a\n```\n- <seq=2> b", [1, 2]),
        ("````\n```\n- <seq=1> a\n````\n- <seq=2> b", [2]),
        ("```py\n- <seq=1> a\n```py\n- <seq=2> b\n```", []),
        ("``` a`b\n- <seq=1> a\n```", [1]),
        ("   ~~~ x\n- <seq=1> a\n  ~~~~  \n- <seq=2> b", [2]),
        ("    ```\n- <seq=1> a\n    ```", [1]),
        ("````\n- <seq=1> a\n~~~\n- <seq=2> b\n~~~\n- <seq=3> c", [1, 3]),
    ],
)
def test_only_a_closed_fence_hides_entries(text: str, seqs: list[int]) -> None:
    document = Document.parse("topics/t", text.encode())
    assert [place.entry.seq for place in document.entries] == seqs


def test_continuations_belong_to_evidence_alone() -> None:
    data = b"- <seq=1> a\n  b\n\n   c\n \n- <seq=2> d\n\n\nprose\n  e\n"
    evidence = Document.parse("evidence/s", data)
    assert [(p.entry.text, p.start_line, p.end_line) for p in evidence.entries] == [
        ("a\nb\n\n c", 1, 4),
        ("d", 6, 6),
    ]
    topic = Document.parse("topics/t", data)
    assert [(p.entry.text, p.end_line) for p in topic.entries] == [("a", 1), ("d", 6)]
    assert topic.has_prose


def test_crlf_and_bom_are_no_part_of_a_line() -> None:
    data = b"\xef\xbb\xbf---\r\nid: x\r\n---\r\n# H\r\n- <seq=1> a\r\n- b\r\n"
    document = Document.parse("topics/t", data)
    assert (document.header.values, document.header.end) == ({"id": "x"}, 3)
    assert (document.entries[0].entry.line, document.entries[0].headings) == ("- <seq=1> a", ("H",))
    assert document.unsigned == (ListItem(6, "b"),)
    assert document.text_line(5) == "- <seq=1> a"
    assert document.newline == "\r\n"
    evidence = Document.parse("evidence/s", b"\xef\xbb\xbf- <seq=1> a\r\n  b\r\n")
    assert evidence.entries[0].entry.line == "- <seq=1> a\n  b"


def test_lines_end_at_newlines_only() -> None:
    text = "- <seq=1> a\u2028- <seq=2> b\x85- <seq=3> c\v\f\x1c\r- <seq=4> d\n"
    document = Document.parse("topics/t", text.encode())
    assert [place.entry.seq for place in document.entries] == [1]
    assert document.entries[0].entry.text == text[12 - 2 : -1]


PART = 1 << 17


@each(
    "data",
    [
        b"- <seq=1> " + b"x" * 16 * PART,
        b"- <seq=1,k=" + b"x" * PART,
        b'- <seq=1,k="' + b"\\\\" * PART,
        b"- <seq=1" + b",k=v" * (PART // 4) + b" x",
        b"#" * PART,
        b"# x" + b" #" * PART,
        b"- " * PART,
        b"-" + b" " * PART + b"\0",
        b"`" * PART,
        b"```x\n" * (PART // 5),
        b"````\n~~~\n```\n" * (PART // 13),
        b"\n".join(b"`" * size for size in range(1000, 3, -1)),
        b"- <seq=1> a\n" + b"\n" * PART,
        b"- <seq=x> a\n\n" * (PART // 13),
        b"---\n" + b"a: b\n" * (PART // 5),
        b"---\n" + b"a: b\n" * (PART // 5) + b"---\n",
        b"# a\n## b\n- <seq=1> x\n" * (PART // 22),
    ],
    ids=lambda data: repr(data[:12]),
)
@each("doc_id", ["topics/t", "evidence/e"])
def test_a_hostile_body_takes_a_linear_pass(doc_id: str, data: bytes) -> None:
    document = Document.parse(doc_id, data)
    assert document.to_bytes() == data
    assert len(document.entries) + len(document.malformed) + document.has_prose + len(document.lines) > 0
    assert document.without({1}).insert([NEW], "b").entries[-1].entry.seq == 77


def test_an_entry_is_found_by_any_of_its_lines() -> None:
    said = "- <seq=1> a\n  more\n  and more\n- <seq=2> b\n"
    document = Document.parse("evidence/a", said.encode())
    lines = [(1, 1), (3, 3), (2, 4), (4, 4), (5, 9)]
    found = [[place.seq for place in document.entries_in(*span)] for span in lines]
    assert found == [[1], [1], [1, 2], [2], []]
