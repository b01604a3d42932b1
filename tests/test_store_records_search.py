"""Records as readers find them: what is searched, what a piece of one says of where it comes from."""

from __future__ import annotations

from pathlib import Path

import pytest
from allmem_records import LISBON, NUTS, PORTO, REX, consolidated, doc

from infinimem.memory import Memory, open_memory
from infinimem.model import Retrieved, Turn
from infinimem.retrieval.searcher import searcher
from infinimem.strategies.records.record import record_id


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return consolidated(tmp_path / "m")


def found(memory: Memory, query: str, **rest: object) -> list[Retrieved]:
    return searcher(memory.view).blocks(query, **rest)  # type: ignore[arg-type]


def test_a_unit_that_a_person_broke_is_still_found(memory: Memory) -> None:
    path = memory.library.root / f"{doc(NUTS)}.md"
    path.write_text(path.read_text().replace("evidence:", "evidence: [", 1))
    assert [one.origin for one in found(memory, "pistachios")] == [()]


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


@pytest.mark.sample(2)
@pytest.mark.parametrize("reader", ["bm25", "hybrid", "agent"])
def test_readers_that_use_tools_lead_to_turns(reader: str, memory: Memory) -> None:
    """Also where infini's buffer lies beside: it is not for All-Mem's readers."""
    other = open_memory(memory.library.root, model="offline", strategy="infini")
    other.observe([Turn("Almonds are fine.", session="s3")])
    evidence = memory.strategy.read(memory.view, "Who is allergic to pistachios?", reader, 500)
    assert (evidence.items[0].doc_id, evidence.items[0].origin) == (doc(NUTS), (NUTS,))
    assert {one.doc_id.split("/")[0] for one in evidence.items} <= {"allmem", "evidence"}


# ── a sibling's folder is not there for the other ───────────────────────────────────────────────
