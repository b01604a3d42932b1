"""The reader of units over libraries on disk: its two faces, waiting evidence, other strategies, sources."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from allmem_measured import texts

from infinimem import Turn, open_memory
from infinimem.memory import Memory
from infinimem.model import Plan
from infinimem.store.view import Applied
from infinimem.strategies.graph.links import Link
from infinimem.strategies.records.record_store import RecordStore, puts


def told(root: Path, strategy: str = "allmem") -> Memory:
    memory = open_memory(root, model="offline", strategy=strategy, create=True, embedder="lexical")
    talk = (
        ("I moved to Lisbon.", "user"),
        ("Peanuts make you ill.", "assistant"),
        ("I play chess.", "user"),
    )
    memory.observe(
        Turn(text, role=role, session="s1", time=f"2025-01-0{day}")
        for day, (text, role) in enumerate(talk, 1)
    )
    return memory


def test_the_default_reader_gives_the_block_and_the_ranking_its_own_order(tmp_path: Path) -> None:
    memory = told(tmp_path)
    assert texts(memory.retrieve("Who plays chess?"))[0] == "I play chess."
    found = memory.read("Who plays chess?")
    assert texts(found)[0] == "I play chess."
    assert found.items == memory.read("Who plays chess?", "topology").items
    answer = memory.ask("Who plays chess?")
    assert "chess" in answer.text and answer.citations[0].doc_id.startswith("evidence/")


def test_a_turn_whose_unit_a_person_made_unreadable_is_found(tmp_path: Path) -> None:
    memory = told(tmp_path)
    path = tmp_path / "allmem/units/u-000003.md"
    path.write_text(path.read_text().replace("kind: unit", "kind: mine"))
    assert memory.status()["units"] == 2
    for found in (memory.retrieve("Who plays chess?"), memory.read("Who plays chess?")):
        assert [item.origin for item in found.items if "I play chess." in item.text] == [(3,)]


def test_what_stands_for_units_of_other_sources_hides_none_of_those_that_are_asked_for(
    tmp_path: Path,
) -> None:
    memory = told(tmp_path)
    view = memory.view
    bank = RecordStore.load(view)
    one, two = sorted(bank.records)[1:]
    merged = replace(bank.records[two], id=bank.new_id("u", 3), refs=(), sources=(one, two))
    after = bank.copy()
    after.put(merged)
    for name in (one, two):
        after.archive(name)
        after.graph.add(merged.id, Link("version", name))
    plan = Plan(op="consolidate", records=puts(bank, after))
    assert isinstance(memory.library.apply(plan, base=view, strategy="allmem", model="m"), Applied)
    assert {item.seqs for item in memory.retrieve("chess peanuts").items} == {(1,), (2,), (3,)}
    assert texts(memory.retrieve("chess", sources=["user"])) == ["I play chess.", "I moved to Lisbon."]
    assert texts(memory.read("chess", sources=["AI"])) == ["Peanuts make you ill."]
