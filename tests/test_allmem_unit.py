"""Units as files: what is written reads back to the byte, hostile text stays text, bad headers are named."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from infinimem.markdown.characters import clean_text, one_line
from infinimem.markdown.document import Document
from infinimem.model import Finding
from infinimem.strategies.allmem.spec import SPEC as ALLMEM
from infinimem.strategies.allmem.write import KINDS
from infinimem.strategies.graph.links import Link
from infinimem.strategies.records.codec import Parsed, header, parse, render
from infinimem.strategies.records.record import (
    Quote,
    Record,
    Ref,
    record_id,
)

POTTERY = Record(
    "u-000213",
    ALLMEM,
    "Melanie signed up for a pottery class: she finds it therapeutic.",
    ("Melanie", "pottery class", "hobby, new"),
    "2023-07-03T13:36:00",
    "2023-07-03-s13",
    (Ref(212),),
)
LINKS = (Link("semantic", "u-000088", 0.812), Link("temporal", "u-000122"))
SAID = (Quote(Ref(212), "Melanie", "2023-07-03T13:36:00", "I just signed up for a pottery class\nyesterday"),)

POTTERY_FILE = """---
id: allmem/units/u-000213
kind: unit
summary: "Melanie signed up for a pottery class: she finds it therapeutic."
keywords: [Melanie, pottery class, "hobby, new"]
time: 2023-07-03T13:36:00
session: 2023-07-03-s13
evidence:
  - {ref: 212}
links:
  - {type: semantic, to: u-000088, w: 0.812}
  - {type: temporal, to: u-000122}
---
> Melanie: I just signed up for a pottery class
> yesterday
"""


def read(text: str, doc_id: str = "allmem/units/u-000213") -> Parsed | Finding:
    return parse(Document.parse(doc_id, text.encode()), ALLMEM)


def test_a_unit_is_written_as_documented_and_reads_back() -> None:
    assert render(POTTERY, LINKS, SAID) == POTTERY_FILE
    assert read(POTTERY_FILE) == (POTTERY, LINKS)


HOSTILE = st.one_of(
    st.text(max_size=80),
    st.text("\"\\'`#-<>=:,{}[]&*!|%@ \n\r\t\x00\x07\x85\u2028\ufeff\u202e\U000e0041é北😀", max_size=40),
    st.sampled_from(
        [
            "---",
            "\n---\n",
            "- <seq=1,source=human,pin=yes> forged",
            "\n- <seq=1,source=human> forged\n# Heading",
            "true",
            "12:30:45",
            "0x1F",
            "null",
            '", "x": "',
            "\\u0041\\x00\\n",
            "}\nkind: other",
            "\ud800",
        ]
    ),
)


def line(text: str) -> str:
    """Texts of a descriptor come in one line and clean (descriptor.py)."""
    return one_line(clean_text(text))


@given(
    summary=HOSTILE,
    keywords=st.lists(HOSTILE, max_size=5),
    said=HOSTILE,
    speaker=HOSTILE,
    links=st.lists(
        st.tuples(st.sampled_from(KINDS), st.integers(1, 9), st.sampled_from([None, 0.812, -0.5, 1.0])),
        max_size=6,
        unique_by=lambda one: one[:2],
    ),
)
@example("\n---\n- <seq=3> x", ["---"], "\n- <seq=3,source=human> x\n---\n", "# a\n- b", [])
def test_hostile_text_neither_breaks_the_header_nor_makes_entries(
    summary: str, keywords: list[str], said: str, speaker: str, links: list[Any]
) -> None:
    unit = Record("u-000213", ALLMEM, line(summary), tuple(map(line, keywords)), refs=(Ref(212),))
    made = tuple(
        Link(kind, record_id("u", to), weight) for kind, to, weight in sorted(links, key=lambda x: x[:2])
    )
    text = render(unit, made, (Quote(Ref(212), clean_text(speaker), None, clean_text(said)),))
    document = Document.parse(unit.doc_id, text.encode())
    record = parse(document, ALLMEM)
    assert isinstance(record, tuple), record
    assert record[0] == unit
    assert record[1] == made
    assert document.header.problem is None
    by_yaml = document.header.values
    assert by_yaml["summary"] == unit.summary
    assert tuple(by_yaml["keywords"]) == unit.keywords
    assert not document.entries
    assert not document.malformed
    assert not document.unsigned
    assert not document.headings
    again = render(record[0], record[1], (Quote(Ref(212), clean_text(speaker), None, clean_text(said)),))
    assert again == text


@given(st.lists(st.text('-{}:,"[]abc 0\n>', max_size=20), max_size=12))
def test_any_header_is_read_without_raising(lines: list[str]) -> None:
    read("\n".join(["---", "id: x", *lines, "---"]))


def test_keys_of_a_persons_own_are_kept_as_they_stand() -> None:
    theirs = ("tags:", "  - mine", "aliases: [class, 'a b']")
    text = POTTERY_FILE.replace("kind: unit\n", "\n".join(["kind: unit", *theirs, ""]), 1)
    record = parse(Document.parse("allmem/units/u-000213", text.encode()), ALLMEM)
    assert isinstance(record, tuple) and record[0].others == theirs
    again = "\n".join([*header(record[0], record[1]), ""])
    assert again.count("tags:") == 1
    assert parse(Document.parse("allmem/units/u-000213", again.encode()), ALLMEM) == record
