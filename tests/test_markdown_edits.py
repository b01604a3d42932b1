"""Edits of documents: each touches its own lines, and every other byte stays."""

from __future__ import annotations

from collections import Counter

import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st
from markdown_lines import DOCUMENTS, IDS, NEW, OWN, PIECES, is_subsequence, numbered

from infinimem.markdown.document import Document
from infinimem.markdown.signature import format_entry


def doc(text: str, doc_id: str = "topics/t") -> Document:
    return Document.parse(doc_id, text.encode())


@each(
    ("before", "seqs", "after"),
    [
        ("# A\n- <seq=1> a\n- <seq=2> b\n", {1}, "# A\n- <seq=2> b\n"),
        ("# A\n- <seq=1> a\n\n# B\n- <seq=2> b\n", {2}, "# A\n- <seq=1> a\n"),
        ("# A\n- <seq=1> a\n\n# B\n- <seq=2> b\n", {1}, "# B\n- <seq=2> b\n"),
        ("# A\n- <seq=1> a\n\n# B\n- <seq=2> b\n", {1, 2}, ""),
        ("x\n\n# A\n\n- <seq=1> a\n\n\n# B\n- <seq=2> b\n\n", {1, 2}, "x\n"),
        ("# A\n\n## B\n- <seq=1> a\n\n## C\n- <seq=2> b\n", {1}, "# A\n\n## C\n- <seq=2> b\n"),
        ("# A\n\n## B\n- <seq=1> a\n\n# C\n- <seq=2> b\n", {1}, "# C\n- <seq=2> b\n"),
        ("# A\nprose\n\n## B\n- <seq=1> a\n", {1}, "# A\nprose\n"),
        ("# A\n- <seq=1> a\n- item\n", {1}, "# A\n- item\n"),
        ("# Empty\n\n# A\n- <seq=1> a\n", {1}, "# Empty\n"),
        ("# A\n- <seq=1> a\n## B\n", {1}, "# A\n## B\n"),
        ("- <seq=1> a\n\n- <seq=2> b", {1}, "\n- <seq=2> b"),
        ("- <seq=1> a\n- <seq=2> b", {2}, "- <seq=1> a\n"),
        ("- <seq=1> a", {1}, ""),
        ("---\nid: t\n---\n- <seq=1> a\n", {1}, "---\nid: t\n---\n"),
        ("---\nid: t\n---\n\n# A\n- <seq=1> a\n", {1}, "---\nid: t\n---\n"),
        ("- <seq=1> a\n- <seq=1> twice\n", {1}, ""),
        ("- <seq=1> a\r\n- <seq=2> b\r\n", {1}, "- <seq=2> b\r\n"),
        ("\ufeff- <seq=1> a\n- <seq=2> b\n", {1}, "\ufeff- <seq=2> b\n"),
    ],
)
def test_without(before: str, seqs: set[int], after: str) -> None:
    assert doc(before).without(seqs).to_bytes().decode() == after


@given(OWN, DOCUMENTS, st.sets(st.integers(1, 4)))
def test_without_takes_its_own_lines_alone(doc_id: str, data: bytes, seqs: set[int]) -> None:
    before = Document.parse(doc_id, data)
    after = before.without(seqs)
    assert numbered(after) == [(seq, line) for seq, line in numbered(before) if seq not in seqs]
    assert is_subsequence(list(after.lines), list(before.lines))
    assert (after.unsigned == before.unsigned) or [i.text for i in after.unsigned] == [
        i.text for i in before.unsigned
    ]
    gone = Counter(before.lines) - Counter(after.lines)
    headings = {before.lines[heading.line - 1] for heading in before.headings}
    taken = {
        line
        for place in before.entries
        if place.entry.seq in seqs
        for line in before.lines[place.start_line - 1 : place.end_line]
    }
    assert all(line in headings | taken or not line.strip() for line in gone)
    if not any(seq in seqs for seq, _ in numbered(before)):
        assert after.to_bytes() == data


@each(
    ("before", "heading", "after"),
    [
        ("", "", "NEW\n"),
        ("x", "", "x\nNEW\n"),
        ("x\n\n", "", "x\n\nNEW\n"),
        ("\ufeffx\r\n", "", "\ufeffx\r\nNEW\r\n"),
        ("", "A", "# A\nNEW\n"),
        ("---\nid: t\n---\n", "A", "---\nid: t\n---\n# A\nNEW\n"),
        ("x", "A", "x\n\n# A\nNEW\n"),
        ("# A\n- <seq=1> a\n", "A", "# A\n- <seq=1> a\nNEW\n"),
        ("# A\n- <seq=1> a", "A", "# A\n- <seq=1> a\nNEW\n"),
        ("# A\n- <seq=1> a\n\n\n# B\n- <seq=2> b\n", "a", "# A\n- <seq=1> a\nNEW\n\n\n# B\n- <seq=2> b\n"),
        ("# A\n## B\n- <seq=1> a\n", "A", "# A\nNEW\n## B\n- <seq=1> a\n"),
        ("# A\n## B ##\n- <seq=1> a\n", "B", "# A\n## B ##\n- <seq=1> a\nNEW\n"),
        ("# A\n\n# B\n", "A", "# A\nNEW\n\n# B\n"),
        ("# A\nprose\n\n# B\n", "A", "# A\nprose\n\nNEW\n\n# B\n"),
        ("# A\n- <seq=1> a\n# A\n", "A", "# A\n- <seq=1> a\nNEW\n# A\n"),
        ("```\n# A\n```\n", "A", "```\n# A\n```\n\n# A\nNEW\n"),
        ("x\n", "A\n- <seq=9> forged", "x\n\n# A - <seq=9> forged\nNEW\n"),
        ("x\n", " \n ", "x\nNEW\n"),
        ("# A\r\n- <seq=1> a\r\n\r\n# B\r\n", "A", "# A\r\n- <seq=1> a\r\nNEW\r\n\r\n# B\r\n"),
        ("# A\r\n- <seq=1> a", "A", "# A\r\n- <seq=1> a\nNEW\n"),
        ("# A\r\nx\r\n- <seq=1> a", "A", "# A\r\nx\r\n- <seq=1> a\r\nNEW\r\n"),
        ("# A\nx\r\n- <seq=1> a\n", "A", "# A\nx\r\n- <seq=1> a\nNEW\n"),
    ],
)
def test_insert(before: str, heading: str, after: str) -> None:
    assert doc(before).insert([NEW], heading).to_bytes().decode() == after.replace("NEW", NEW)


HEADINGS = st.sampled_from(["", "One", "Two", "three", "New", "C #", "a # #", "## x", "#"]) | st.text(
    max_size=5
)


@given(OWN, DOCUMENTS, HEADINGS)
def test_insert_adds_its_own_lines_alone(doc_id: str, data: bytes, heading: str) -> None:
    before = Document.parse(doc_id, data)
    after = before.insert([NEW, "- <seq=78> more"], heading)
    new = [(77, NEW), (78, "- <seq=78> more")]
    assert Counter(numbered(after)) == Counter([*numbered(before), *new])
    assert is_subsequence(
        [line.rstrip("\r") for line in before.lines], [line.rstrip("\r") for line in after.lines]
    )
    assert after.bom == before.bom
    if heading == "":
        assert after.to_bytes().startswith(data)
    # A second line goes beside the first: the heading that was created is found again.
    again = after.insert(["- <seq=79> last"], heading)
    seqs = [seq for seq, _ in numbered(again)]
    assert seqs.index(79) == seqs.index(78) + 1
    assert len(again.headings) == len(after.headings)


def test_an_entry_of_several_lines_is_inserted_whole() -> None:
    line = format_entry(5, "a\n\nb")
    document = Document.parse("evidence/s", b"- <seq=1> x\r\n").insert([line])
    assert document.to_bytes() == b"- <seq=1> x\r\n- <seq=5,source=user> a\r\n\r\n  b\r\n"
    assert document.entries[1].entry.line == line


@each(
    ("before", "number", "after"),
    [
        ("x\n- typed  \n", 2, "x\n- <seq=9,source=human> typed  \n"),
        ("*   typed\r\nx\r\n", 1, "- <seq=9,source=human> typed\r\nx\r\n"),
        ("\ufeff+ \tbyte \udcff\0 and \u202e", 1, "\ufeff- <seq=9,source=human> byte \udcff\0 and \u202e"),
        ('- <seq=5,source=user,k="> "> old > text', 1, "- <seq=9,source=human> old > text"),
        ("- <seq=5>", 1, "- <seq=9,source=human>"),
        ("- <seq=5> ", 1, "- <seq=9,source=human> "),
    ],
)
def test_signing_leaves_the_text(before: str, number: int, after: str) -> None:
    document = Document.parse("topics/t", before.encode("utf-8", "surrogateescape"))
    entry_line = format_entry(9, "whatever", source="human")
    assert document.sign({number: "- <seq=9,source=human>"}) == document.sign({number: entry_line})
    assert document.sign({number: entry_line}).to_bytes() == after.encode("utf-8", "surrogateescape")


def test_only_an_item_can_be_signed_and_only_by_an_entry() -> None:
    document = doc("prose\n- item\n* * *\n")
    for number, line in ((1, NEW), (3, NEW), (2, "- no entry")):
        with pytest.raises(ValueError, match="cannot be signed"):
            document.sign({number: line})


@given(
    before=DOCUMENTS,
    after=st.lists(
        st.sampled_from([*PIECES, NEW, NEW, "- <seq=78> x\n  more\n\n  ```\n  end"]), min_size=1, max_size=4
    ),
    doc_id=IDS,
)
def test_a_document_that_grew_reads_as_the_whole_does(before: bytes, after: list[str], doc_id: str) -> None:
    before += b"\n" * bool(before and not before.endswith(b"\n"))
    data = "".join(f"{line}\n" for line in after).encode("utf-8", "surrogateescape")
    old, whole = Document.parse(doc_id, before), Document.parse(doc_id, before + data)
    assert old.entries is not None  # what was read of it is taken over
    grown = old.grown(Document.parse(doc_id, data))
    assert (grown.entries, grown.unsigned, grown.malformed) == (
        whole.entries,
        whole.unsigned,
        whole.malformed,
    )
    assert (grown.headings, grown.has_prose, grown.header) == (whole.headings, whole.has_prose, whole.header)
    assert grown.to_bytes() == whole.to_bytes()


@each(
    ("before", "after"),
    [
        ("", "# Home\n- a\n\n## Garden\n- b\n\n## Cellar\n- c\n"),
        ("# Home\n- x\n", "# Home\n- x\n- a\n\n## Garden\n- b\n\n## Cellar\n- c\n"),
        ("# Cellar\n\n# Home\n", "# Cellar\n- c\n\n# Home\n- a\n\n# Garden\n- b\n"),
        ("# Drinks\n- x\n", "# Drinks\n- x\n\n# Home\n- a\n\n# Garden\n- b\n\n# Cellar\n- c\n"),
        ("---\ntitle: Drinks\n---\n# Drinks\n- x\n\n## Home\n", None),
    ],
)
def test_a_document_whose_one_h1_is_its_title_keeps_one(before: str, after: str | None) -> None:
    document = Document.parse("topics/home", before.encode())
    done = document.insert(["- a"], "Home").insert(["- b"], "Garden").insert(["- c"], "Cellar")
    expected = f"{before}- a\n\n## Garden\n- b\n\n## Cellar\n- c\n" if after is None else after
    assert done.to_bytes().decode() == expected
