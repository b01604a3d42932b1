"""Records as readers find them: what is searched, what a piece of one says of where it comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from allmem_records import AUDIT, LISBON, NUTS, PORTO, REX, applied, consolidated, doc, put, quoted, unit
from disk_library import QUESTIONS, answers, assert_same, large_library

from infinimem.memory import Memory, open_memory
from infinimem.model import Put, Retrieved, Turn
from infinimem.retrieval.rows import KINDS
from infinimem.retrieval.searcher import ranking, searcher
from infinimem.store.view import Scope
from infinimem.strategies.allmem.spec import SPEC as ALLMEM
from infinimem.strategies.records.codec import render
from infinimem.strategies.records.record import Quote, Record, Ref, record_id


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return consolidated(tmp_path / "m")


def found(memory: Memory, query: str, **rest: object) -> list[Retrieved]:
    return searcher(memory.view).blocks(query, **rest)  # type: ignore[arg-type]


def test_a_piece_of_a_unit_leads_to_its_turns(memory: Memory) -> None:
    rep = unit(
        REX, 1, sources=(record_id("u", LISBON), record_id("u", REX)), summary="a household of two cities"
    )
    applied(memory, put(rep, quotes=quoted(LISBON, REX)))
    nuts = found(memory, "pistachios")[0]
    assert (nuts.doc_id, nuts.origin, nuts.source, nuts.speaker) == (doc(NUTS), (NUTS,), "user", "Nora")
    assert (nuts.time, nuts.seqs) == ("2025-03-03T10:01:00", ())
    assert nuts.text == "> Nora: I am allergic to pistachios."
    both = next(one for one in found(memory, "household") if one.doc_id == doc(REX, 1))
    assert (both.origin, both.source, both.speaker, both.time) == ((LISBON, REX), None, None, None)
    search = searcher(memory.view)
    assert search.lines_at(doc(NUTS), 1, 99).origin == (NUTS,)
    assert [one.origin for one in search.entries("pistachios")] == [(NUTS,)]
    archived = found(memory, "Lisbon", scope="archive")
    assert [(one.doc_id, one.origin) for one in archived] == [(doc(LISBON, archived=True), (LISBON,))]


def test_a_unit_that_a_person_broke_is_still_found(memory: Memory) -> None:
    path = memory.library.root / f"{doc(NUTS)}.md"
    path.write_text(path.read_text().replace("evidence:", "evidence: [", 1))
    assert [one.origin for one in found(memory, "pistachios")] == [()]


def test_headers_are_not_searched_as_if_they_were_said(memory: Memory) -> None:
    assert [one.doc_id for one in found(memory, "temporal keywords semantic")] == []
    assert all("keywords" not in one.text for one in found(memory, "Porto"))
    assert found(memory, "dangerous")[0].doc_id == doc(NUTS), "a summary leads to its unit, as everywhere"


def test_tools_show_units(memory: Memory) -> None:
    rows = memory.tools.list_docs()["docs"]
    assert [(row["id"], row["summary"]) for row in rows] == [
        (doc(NUTS), "pistachios are dangerous"),
        (doc(PORTO), "home is Porto"),
        (doc(REX), "a dog"),
    ]
    assert [row["id"] for row in memory.tools.list_docs(scope="archive")["docs"]] == [
        doc(LISBON, archived=True)
    ]
    assert {hit["doc_id"] for hit in memory.tools.search(query="Lisbon home")["hits"]} == {doc(PORTO)}
    assert {row["doc_id"] for row in memory.tools.grep(pattern="Lisbon")["matches"]} == set()
    lines = memory.tools.read_lines(doc_id=record_id("u", REX))
    assert "> He is three." in str(lines)


@pytest.mark.parametrize("reader", ["bm25", "hybrid", "agent"])
def test_readers_that_use_tools_lead_to_turns(reader: str, memory: Memory) -> None:
    """Also where infini's buffer lies beside: it is not for All-Mem's readers."""
    other = open_memory(memory.library.root, model="offline", strategy="infini")
    other.observe([Turn("Almonds are fine.", session="s3")])
    evidence = memory.strategy.read(memory.view, "Who is allergic to pistachios?", reader, 500)
    assert (evidence.items[0].doc_id, evidence.items[0].origin) == (doc(NUTS), (NUTS,))
    assert {one.doc_id.split("/")[0] for one in evidence.items} <= {"allmem", "evidence"}


def test_what_no_unit_holds_is_found_in_the_evidence(memory: Memory) -> None:
    assert {one.doc_id for one in searcher(memory.view).entries("Porto")} == {doc(PORTO)}
    memory.library.record([Turn("Porto has bridges.", session="s3")])
    found = searcher(memory.view).entries("Porto")
    assert {(one.doc_id.split("/")[0], one.seqs) for one in found} == {("allmem", ()), ("evidence", (5,))}


# ── a sibling's folder is not there for the other ───────────────────────────────────────────────


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    yield from large_library(tmp_path, monkeypatch)


def units(memory: Memory) -> Memory:
    """Units beside what infini keeps, of words that its lines have too; in "all" alone they are seen."""
    kept = open_memory(memory.library.root, model="offline", strategy="allmem")
    turns = list(kept.view.entries("evidence"))[:30]
    records = []
    for turn in turns:
        name, ref = record_id("u", turn.seq), Ref(turn.seq)
        text = render(
            Record(name, ALLMEM, "tea and oat milk", refs=(ref,)), (), [Quote(ref, None, None, turn.text)]
        )
        records.append(Put(f"allmem/units/{name}", text, (turn.seq,)))
    applied(kept, *records, Put("allmem/buffer", "tea tea tea\n"), Put(AUDIT, "tea replication lag\n"))
    return kept


def test_infini_finds_the_same_with_a_sibling_and_without(large: Memory) -> None:
    before = answers(ranking(large.view))
    grep = [large.tools.grep(pattern=word, limit=30) for word in ("tea", "lag", "I")]
    kept = units(large)
    assert answers(ranking(large.view)) != answers(ranking(kept.view))
    journal = len([one for one in large.view.ids("all") if one.startswith("journal/")])
    (large.library.root / f"journal/{journal:04d}-consolidate.md").unlink()  # a receipt is seen in "all"
    assert answers(ranking(large.view)) == before
    assert [large.tools.grep(pattern=word, limit=30) for word in ("tea", "lag", "I")] == grep


def test_both_indexes_lie_on_disk_side_by_side(large: Memory) -> None:
    kept = units(large)
    for _ in range(2):
        for one in (large, kept):
            if one is kept:
                assert_same(one.view)
            records = {
                place.doc_id
                for kind in KINDS
                for question in QUESTIONS[:3]
                for place, _ in ranking(one.view).best(
                    kind, question, question.lower().split(), "default", 50
                )
                if place.doc_id.startswith("allmem/")
            }
            assert bool(records) == (one is kept)
            assert not any(name.startswith(("allmem/buffer", "allmem/audit")) for name in records)
        turns = [Turn("Replication lag, once more.", session="s9")]
        kept.library.record(turns)


SEEN: Mapping[str, Scope] = {
    "default": "default",
    "archive": "archive",
    "evidence": "evidence",
    "journal": "journal",
    "all": "kept",
}
"""What a view calls the scopes of the tools."""


def test_grep_over_packed_text_asks_who_looks(large: Memory) -> None:
    kept = units(large)
    for _ in range(2):
        for one in (large, kept):
            for scope, seen in SEEN.items():
                hits = one.tools.grep(pattern="tea|milk", scope=scope, limit=30)
                ids = one.view.ids(seen)
                bodies = (one.view.document(doc_id).body.lower().splitlines() for doc_id in ids)
                total = sum("tea" in line or "milk" in line for body in bodies for line in body)
                assert hits["total_matches"] >= total, (one is kept, scope)
                assert len(hits["matches"]) == min(total, 30)
