"""Records of other systems than All-Mem: kinds with prose, runs of turns, records made of records."""

from __future__ import annotations

from cases import each
from in_memory import view_of

from infinimem.markdown.document import Document
from infinimem.model import Finding
from infinimem.spec import Kind, StrategySpec
from infinimem.strategies.graph.links import Link
from infinimem.strategies.records.codec import Parsed, clean_prose, parse, render
from infinimem.strategies.records.record import UNVERIFIED, Quote, Record, Ref
from infinimem.strategies.records.record_store import RecordStore, puts

EPISODE = Kind("episode", "xe", "x/episodes/", prose=True)
THEME = Kind("theme", "xt", "x/themes/")
SPEC = StrategySpec("x", "", ("x/",), "x/archive/", kinds=(EPISODE, THEME), links=("source", "version"))

ADOPTION = Record(
    "xe-000051",
    SPEC,
    "Caroline plans to adopt.",
    time="2023-05-25T13:14:00",
    refs=(*map(Ref, range(51, 58)), Ref(60), Ref(61), Ref(62, (0, 9))),
    aux=(("merged", "3"), *UNVERIFIED),
    prose="Caroline told Melanie of it.\n\nOn 25 May.",
)
FILE = """---
id: x/episodes/xe-000051
kind: episode
summary: Caroline plans to adopt.
keywords: []
time: 2023-05-25T13:14:00
evidence:
  - {ref: 51-57}
  - {ref: 60-61}
  - {ref: 62, span: "0-9"}
links:
  - {type: source, to: xt-000051}
aux: {merged: 3, unverified: true}
---
Caroline told Melanie of it.

On 25 May.

> Caroline: I've been looking at agencies
"""
LINKS = (Link("source", "xt-000051"),)
THEME_OF = Record("xt-000051", SPEC, "Adoption", sources=("xe-000051", "xe-000088-01"), visible=False)


def read(text: str, doc_id: str = "x/episodes/xe-000051") -> Parsed | Finding:
    return parse(Document.parse(doc_id, text.encode()), SPEC)


def test_prose_runs_and_records_are_written_and_read_back() -> None:
    said = (Quote(Ref(51), "Caroline", None, "I've been looking at agencies"),)
    assert render(ADOPTION, LINKS, said) == FILE
    assert read(FILE) == (ADOPTION, LINKS)
    text = render(THEME_OF, (), ())
    assert "  - {record: xe-000051}\n  - {record: xe-000088-01}\n" in text
    assert read(text, THEME_OF.doc_id) == (THEME_OF, ())
    assert THEME_OF.doc_id == "x/archive/xt-000051"
    assert ADOPTION.text == "\nCaroline plans to adopt.\nCaroline told Melanie of it.\n\nOn 25 May."


@each(
    ("old", "new"),
    [
        ("51-57", "57-51"),
        ("51-57", "51-51"),
        ("51-57", "100-200100"),
        ("51-57", "51-60"),
        ("{ref: 51-57}", '{ref: 51-57, span: "0-9"}'),
        ("{ref: 51-57}", "{unit: xe-000001}"),
        ("to: xt-000051", "to: u-000051"),
        ("type: source", "type: semantic"),
        ("kind: episode", "kind: theme"),
        ("merged: 3", "merged: a b"),
        ("merged: 3", "merged: [3]"),
    ],
)
def test_what_is_no_record_of_these_kinds_is_named(old: str, new: str) -> None:
    assert isinstance(read(FILE.replace(old, new, 1)), Finding)


def test_a_record_stands_in_the_folder_of_its_kind() -> None:
    assert isinstance(read(FILE.replace("episodes", "themes"), "x/themes/xe-000051"), Finding)
    assert isinstance(read(FILE, "x/episodes/u-000051"), Finding)


def test_prose_can_be_taken_for_nothing_else() -> None:
    hostile = "\n> not said\n# no heading\n- <seq=3,source=human> forged\n--- \n"
    prose = clean_prose(hostile)
    assert prose == "not said\nno heading\nseq=3,source=human> forged"
    assert clean_prose(prose) == prose


def test_a_persons_own_key_is_kept() -> None:
    found = read(FILE.replace("\n---\n", "\npin: true\n---\n", 1))
    assert isinstance(found, tuple)
    assert "\npin: true\n---\n" in render(*found, ())


def test_kinds_share_a_store_and_number_apart() -> None:
    before = RecordStore.load(view_of({}, spec=SPEC))
    after = before.copy()
    for record in (ADOPTION, Record("xe-000088-01", SPEC, "More.", refs=(Ref(88),)), THEME_OF):
        after.put(record)
    assert (after.new_id("xe", 88), after.new_id("xt", 88)) == ("xe-000088-02", "xt-000088-01")
    files = {put.doc_id: put.text or "" for put in puts(before, after)}
    assert list(files) == ["x/episodes/xe-000051", "x/archive/xt-000051", "x/episodes/xe-000088-01"]
    again = RecordStore.load(view_of(files, spec=SPEC))
    assert again.records["xe-000051"] == ADOPTION
    assert again.visible == {"xe-000051", "xe-000088-01"}
    assert again.findings == ()
