"""Partitions: heading blocks that together are the body, cut only where a paragraph or an entry begins."""

from __future__ import annotations

from unittest.mock import patch

from cases import each
from hypothesis import given
from hypothesis import strategies as st

from infinimem.markdown import sections
from infinimem.markdown.document import Document
from infinimem.markdown.sections import Partition


def partitions(document: Document, limit: int) -> tuple[Partition, ...]:
    """The partitions, were their limit so many words."""
    with patch.multiple(sections, PARTITION_TOKENS=limit, estimate=lambda text: len(text.split())):
        return sections.partitions(document)


def cut(text: str, limit: int = 400, doc_id: str = "topics/n") -> list[tuple[str, str]]:
    """(headings, text) of each partition, for reading."""
    found = partitions(Document.parse(doc_id, text.encode()), limit)
    return [(" / ".join(partition.headings), partition.text) for partition in found]


@each(
    ("text", "blocks"),
    [
        ("", []),
        ("\n \n", []),
        ("just text\n\nmore", [("", "just text\n\nmore")]),
        ("\nintro\n\n# A\na\n\n# B\n\nb\n\n", [("", "intro"), ("A", "# A\na"), ("B", "# B\n\nb")]),
        ("# A\na\n## B\nb\n# C\nc", [("A", "# A\na\n## B\nb"), ("C", "# C\nc")]),
        (
            "# T\nt\n## B\nb\n### C\nc\n## D\nd",
            [("T", "# T\nt"), ("T / B", "## B\nb\n### C\nc"), ("T / D", "## D\nd")],
        ),
        ("# T\n\n## B\nb\n## D\nd", [("T / B", "# T\n\n## B\nb"), ("T / D", "## D\nd")]),
        ("# A\n# B\nb", [("A", "# A"), ("B", "# B\nb")]),
        ("# A", [("A", "# A")]),
        ("intro\n# T", [("", "intro"), ("T", "# T")]),
        ("## A\na\n### B\nb\n## C\nc", [("A", "## A\na\n### B\nb"), ("C", "## C\nc")]),
        ("### A\na\n## B\nb\n# T\nt", [("A", "### A\na"), ("B", "## B\nb"), ("T", "# T\nt")]),
        ("```\n# no\n```\n# A\na", [("", "```\n# no\n```"), ("A", "# A\na")]),
        ("---\nid: x\n---\n# A\na", [("A", "# A\na")]),
        ("---\nid: [x\n---\n# A\na", [("", "---\nid: [x\n---"), ("A", "# A\na")]),
    ],
)
def test_heading_blocks(text: str, blocks: list[tuple[str, str]]) -> None:
    assert cut(text) == blocks


def test_lines_count_from_the_top_of_the_file() -> None:
    document = Document.parse("topics/t", b"---\r\nid: x\r\n---\r\n\r\n# A\r\na \xff\r\n\r\n# B\r\nb\r\n")
    assert partitions(document, 400) == (
        Partition(("A",), 5, 6, "# A\na \ufffd"),
        Partition(("B",), 8, 9, "# B\nb"),
    )


@each(
    ("text", "pieces"),
    [
        (
            "# A\none two\nthree\n\nfour five\n\nsix\n\n7 8\n",
            ["# A\none two\nthree\n\nfour five", "six\n\n7 8"],
        ),
        (
            "one two three four five six seven eight nine\n\nten",
            ["one two three four five six seven eight nine", "ten"],
        ),
        ("# A\n\n## B\none two three\n\n## C\nfour", ["# A\n\n## B\none two three", "## C\nfour"]),
        (
            "# A\n- one two three\n- four five six\n- seven",
            ["# A\n- one two three", "- four five six\n- seven"],
        ),
        (
            "# A\n- <seq=1> one two three\n- <seq=2> four\n- <seq=3> five six\nprose seven\n",
            ["# A\n- <seq=1> one two three", "- <seq=2> four\n- <seq=3> five six", "prose seven"],
        ),
    ],
)
def test_a_long_block_is_cut_at_paragraphs_and_entries(text: str, pieces: list[str]) -> None:
    # The break after a paragraph counts as a token.
    assert [text for _, text in cut(text, 9)] == pieces


LINES = st.sampled_from(
    [
        "# A",
        "# B",
        "## C",
        "### D",
        "",
        "",
        " ",
        "one two three",
        "- item",
        "- <seq=1> a b",
        "  more",
        "```",
        "---",
    ]
)


@given(st.lists(LINES, max_size=30), st.integers(1, 40), st.sampled_from(["notes/n", "evidence/e"]))
def test_partitions_are_the_body_in_order(lines: list[str], limit: int, doc_id: str) -> None:
    document = Document.parse(doc_id, "\n".join(lines).encode())
    found = partitions(document, limit)
    held = [number for partition in found for number in range(partition.start_line, partition.end_line + 1)]
    assert held == sorted(set(held))
    start = 0 if document.header.problem else document.header.end
    filled = [n for n in range(start + 1, len(document.lines) + 1) if document.text_line(n).strip()]
    assert set(filled) <= set(held)
    for partition in found:
        span = range(partition.start_line, partition.end_line + 1)
        assert partition.text == "\n".join(map(document.text_line, span))
        assert document.text_line(partition.start_line).strip()
        assert document.text_line(partition.end_line).strip() or document.entries
    for place in document.entries:
        around = [p for p in found if p.start_line <= place.end_line and p.end_line >= place.start_line]
        assert [p.start_line <= place.start_line and place.end_line <= p.end_line for p in around] == [True]
