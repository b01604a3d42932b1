"""Memories made of units: what a run tells of their shape and cost, by hand and of libraries."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from evaluation_data import Small, case, request, results
from test_evaluation_report import result, write

from infinimem.errors import ModelUnavailable
from infinimem.evaluation.model import Case, Ingested, Transaction
from infinimem.evaluation.record import ingested_of, to_json
from infinimem.evaluation.report import write_report
from infinimem.evaluation.runner import Ended, Run
from infinimem.evaluation.spending import Metered, Spending
from infinimem.evaluation.structure import structure_of, transactions_of
from infinimem.evaluation.tally import Tally, read
from infinimem.evaluation.units import stages, structure, themes, writing
from infinimem.llm import tasks
from infinimem.llm.base import Reply, total
from infinimem.llm.offline import OfflineClient
from infinimem.llm.parallel import in_order
from infinimem.memory import open_memory
from infinimem.model import Turn, Usage
from infinimem.testing import ScriptedLLM


def bank(visible: int, within: Sequence[int], **more: Any) -> dict[str, Any]:
    none = {"split": 0, "merge": 0, "update": 0}
    shape = {
        "visible": visible,
        "archived": within[-1] if within else 0,
        "unreachable": 0,
        "within": list(within),
        "near": list(within),
        "links": {"temporal": 3, "semantic": 2, "version": 1, "sibling": 0},
        **dict.fromkeys(("proposed", "accepted", "applied"), none),
        "dropped": {},
        "declined": 0,
        "runs": 1,
    }
    return {**shape, **more}


INGESTED = [
    Ingested(
        "allmem",
        "one",
        transactions=(
            Transaction("write", 10, 1.0, Usage(10, 400, 100)),
            Transaction("write", 20, 1.0, Usage(20, 900, 100)),
            Transaction("consolidate", 0, 0.5, Usage(31, 2900, 100)),
        ),
        structure=bank(
            6,
            [0, 3, 4],
            proposed={"split": 2, "merge": 5, "update": 1},
            accepted={"split": 2, "merge": 3, "update": 0},
            applied={"split": 1, "merge": 2, "update": 0},
            dropped={"LOW_CONF": 2},
            declined=1,
        ),
    ),
    Ingested(
        "allmem",
        "two",
        transactions=(
            Transaction("write", 10, 4.0, Usage(10, 400, 100)),
            Transaction("consolidate", 0, 1.5, Usage(11, 900, 100)),
            Transaction("undo", 3, 9.0),
        ),
        structure=bank(2, [0, 8], dropped={"LOW_CONF": 1, "COH_FAIL": 4}),
    ),
]
"""40 turns, written in 6 s and consolidated twice in 2 s; 8 units on the surface and 12 in the archive."""


def by_hand(tmp_path: Path) -> Path:
    def told(number: int, **milliseconds: float) -> tuple[dict[str, Any], ...]:
        return (*({"stage": name, "ms": value} for name, value in milliseconds.items()), {"stop": number})

    found = [
        result("allmem", f"q{at}", "temporal", {"R@5": 1.0}, steps=told(at, anchors=at, ranking=10.0))
        for at in range(1, 21)
    ]
    found.append(result("bm25", "q1", "temporal", {"R@5": 0.5}))
    return write(tmp_path / "run", found, [*INGESTED, Ingested("bm25", "one")], retrieval_only=True)


def test_the_shape_of_several_banks_by_hand() -> None:
    found = structure(Tally("allmem", ingested=INGESTED))
    assert (found["visible"], found["archived"], found["visible_ratio"]) == (8, 12, 0.4)
    assert found["within"] == [0, 11, 12], "a bank whose archive is nearer is whole at the second link too"
    assert found["coverage_within"] == [0.0, 0.916667, 1.0] and found["h95_within"] == 2
    assert found["links"] == {"semantic": 4, "sibling": 0, "temporal": 6, "version": 2}
    assert found["dropped"] == {"COH_FAIL": 4, "LOW_CONF": 3} and found["runs"] == 2
    assert structure(Tally("bm25", ingested=[Ingested("bm25", "one")])) == {}


@pytest.mark.usefixtures("no_plots")
def test_the_themes_of_several_libraries_by_hand(tmp_path: Path) -> None:
    shapes = (
        {"facts": 5, "reassigned": 2, "sizes": {"1": 2, "3": 1}},
        {"facts": 5, "reassigned": 1, "sizes": {"5": 1}},
    )
    told = [Ingested("xmemory", name, structure=one) for name, one in zip(("a", "b"), shapes, strict=True)]
    expected = {"themes": 4, "facts": 10, "facts_a_theme": 2.5, "largest": 5, "reassigned": 0.3}
    assert themes(Tally("xmemory", ingested=told)) == {**expected, "sizes": {"1": 2, "3": 1, "5": 1}}
    assert themes(Tally("allmem", ingested=INGESTED)) == {} == structure(Tally("xmemory", ingested=told))
    found = [result("xmemory", "q1", "temporal", {"R@5": 1.0})]
    report = write_report(write(tmp_path / "run", found, told, retrieval_only=True))
    assert "| xmemory | 4 | 10 | 2.50 | 5 | 30.0 |" in (tmp_path / "run" / "report.md").read_text()
    assert report["methods"]["xmemory"]["themes"]["largest"] == 5


def test_an_archive_without_a_way_to_it_is_never_covered() -> None:
    lost = replace(INGESTED[1], structure=bank(2, [], archived=5, unreachable=5))
    found = structure(Tally("allmem", ingested=[lost]))
    assert (found["within"], found["h95_within"], found["unreachable"]) == ([], None, 5)
    found = structure(Tally("allmem", ingested=[lost, INGESTED[1]]))
    assert found["coverage_within"] == [0.0, 0.615385] and found["h95_within"] is None


def test_writing_by_hand() -> None:
    found = writing(Tally("allmem", ingested=INGESTED))
    assert found == {
        "turns": 40,
        "events": 2,
        "online_seconds_a_turn": 0.15,
        "online_seconds_a_turn_median": 0.1,
        "online_tokens_a_turn": 50.0,
        "offline_seconds_an_event": 1.0,
        "offline_seconds_an_event_median": 1.0,
        "offline_tokens_an_event": 2000.0,
        "turns_an_event": 20.0,
        "amortised_seconds_a_turn": 0.05,
        "amortised_tokens_a_turn": 100.0,
    }
    assert writing(Tally("infini", ingested=[Ingested("infini", "one", transactions=())])) == {}
    never = replace(INGESTED[0], transactions=INGESTED[0].transactions[:1])
    assert writing(Tally("allmem", ingested=[never]))["offline_seconds_an_event"] is None


@pytest.mark.usefixtures("no_plots")
def test_tables_of_units_stand_in_the_report(tmp_path: Path) -> None:
    report = write_report(by_hand(tmp_path))
    text = (tmp_path / "run" / "report.md").read_text()
    assert "| allmem | 20 | 0.400 | 91.7 | 100.0 | 2 | 100.0 | 0 | 2 | 0 | 6 | 4 |" in text
    assert "| allmem | 2 | 2/2/1 | 5/3/2 | 1/0/0 | 1 | COH_FAIL 4, LOW_CONF 3 |" in text
    assert (
        "| allmem | 40 | 150.0 | 100.0 | 50.0 | 2 | 1.00 | 1.00 | 2,000.0 | 20.0 | 50.0 | 100.0 | 33.3 |"
        in text
    )
    assert "| allmem | 10.00 | 19.00 | 10.00 | 10.00 | 20.00 | 29.00 |" in text
    ours, theirs = report["methods"]["allmem"], report["methods"]["bm25"]
    assert ours["stages"]["anchors"] == {"p50": 10.0, "p95": 19.0} and ours["writing"]["turns"] == 40
    assert not {"structure", "writing", "stages"} & theirs.keys()


@pytest.mark.usefixtures("no_plots")
def test_tables_of_units_are_left_out_where_there_are_none(tmp_path: Path) -> None:
    write_report(write(tmp_path / "run", [result("bm25", "q1", "temporal", {"R@5": 1.0})]))
    text = (tmp_path / "run" / "report.md").read_text()
    for title in ("Structure", "Proposals", "Writing, online and offline", "Stages of a question"):
        assert f"## {title}" not in text


@pytest.fixture
def no_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """matplotlib is not installed."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)


def test_records_of_units_come_back() -> None:
    assert [ingested_of(to_json(item)) for item in INGESTED] == INGESTED
    old = {"method": "infini", "case": "one", "usage": {}, "seconds": 1.0, "sizes": []}
    assert ingested_of(json.dumps(old)).transactions == (), "of a run before there were any"


# ── of a library ────────────────────────────────────────────────────────────────────────────────

SAID = (
    "My favourite colour is green and I paint with it.",
    "I live in Lisbon with my cat Olive.",
    "The train to Porto leaves at nine.",
)


def test_a_library_tells_its_shape_and_its_cost(tmp_path: Path) -> None:
    memory = open_memory(tmp_path / "m", model="offline", strategy="allmem", create=True, embedder="lexical")
    for session in ("s1", "s2", "s3", "s4"):
        memory.observe(Turn(text, speaker="Ann", time="2024-05-01", session=session) for text in SAID)
    memory.consolidate()
    found, status = structure_of(memory), memory.status()
    assert (found["visible"], found["archived"]) == (status["visible"], status["archived"])
    assert found["visible"] + found["archived"] >= 12 and found["unreachable"] == 0
    assert found["runs"] == 2 and found["links"]["temporal"] == 8
    spent = transactions_of(memory)
    assert [(item.op, item.turns) for item in spent if item.op == "write"] == [("write", 3)] * 4
    assert [item.turns for item in spent if item.op == "consolidate"] == [0, 0]
    assert [item.usage.calls for item in spent if item.op == "write"] == [1] * 4
    assert sum((item.usage for item in spent), Usage()) == total(memory.llm.usage), "nothing is told twice"
    other = open_memory(tmp_path / "n", model="offline", create=True)
    assert structure_of(other) == {} and transactions_of(other) == ()


def test_turns_that_are_written_are_told_from_units_that_change() -> None:
    files = [
        ("allmem/units/u-000001", "-", "a"),
        ("allmem/units/u-000002", "b", "c"),
        ("allmem/units/u-000003-01", "-", "d"),
        ("allmem/archive/u-000004", "-", "e"),
        ("allmem/buffer", "-", "f"),
    ]
    receipt = SimpleNamespace(op="write", files=files, seconds=0.5, usage=Usage(2, 3, 4))
    memory: Any = SimpleNamespace(receipts=lambda: (receipt,))
    assert transactions_of(memory) == (Transaction("write", 1, 0.5, Usage(2, 3, 4)),)


def test_what_a_full_buffer_costs_is_not_told_of_the_next_turns(tmp_path: Path) -> None:
    """Bug guarded: the receipt of writing took in what consolidating had spent just before it."""
    folder = tmp_path / "m"
    folder.mkdir()
    (folder / "infinimem.toml").write_text('strategy = "allmem"\n[allmem]\nbuffer_max = 2\n')
    memory = open_memory(folder, model="offline", create=True, embedder="lexical")
    memory.observe(Turn(text, speaker="Ann", time="2024-05-01", session="s1") for text in SAID * 2)
    spent = transactions_of(memory)
    assert [item.op for item in spent].count("consolidate") == 3
    assert [(item.turns, item.usage.calls) for item in spent if item.op == "write"] == [(2, 1)] * 3
    assert sum((item.usage for item in spent), Usage()) == total(memory.llm.usage)


def test_what_threads_of_a_call_spend_is_booked_to_it() -> None:
    """Bug guarded: turns that were described side by side cost nothing in the report."""
    spending = Spending()
    llm = Metered(ScriptedLLM({"answer": lambda _: Reply({"answer": "x"}, usage=Usage(1, 7, 0))}), spending)

    def call(_: int) -> Reply:
        return llm.complete(tasks.ANSWER, {"question": "?", "evidence": [], "now": ""})

    with spending.account() as outer:
        with spending.account() as inner:
            in_order(call, range(40), 8)
            assert llm.usage == {"answer": Usage(40, 280, 0)}
        in_order(call, range(3), 1)
    assert inner == {"answer": Usage(40, 280, 0)} and outer == {"answer": Usage(43, 301, 0)}
    assert spending.total == Usage(43, 301, 0)


# ── a run ───────────────────────────────────────────────────────────────────────────────────────

METHODS = ("allmem", "allmem:expand=false", "allmem:merge=false", "bm25")


def start(wanted: Any, *cases: Case) -> Ended:
    return Run(wanted, Small(cases or None)).start(lambda *_: None, 0)


def test_a_run_of_units_with_answers(tmp_path: Path) -> None:
    wanted = request(tmp_path, *METHODS, embedder="lexical", keep=True)
    assert start(wanted) == Ended(32, 0)
    found = results(tmp_path / "out")
    assert {item.method for item in found} == set(METHODS) and all(item.answer for item in found)
    assert sorted(path.name for path in (tmp_path / "out/work").iterdir()) == [
        "allmem",
        "allmem_allmem.merge=False",
    ]
    full, alone, merge, bm25 = read(tmp_path / "out").methods
    assert full.mean("R@5") == 1.0
    assert writing(full)["turns"] == 12 == structure(full)["visible"] + structure(full)["archived"]
    assert structure(alone) == structure(full) and writing(alone) == writing(full), "they share libraries"
    assert set(stages(full)) >= {"anchors", "ranking", "all"} and not stages(bm25) and not writing(bm25)
    assert merge.construction["describe"].calls == 4
    report = write_report(tmp_path / "out")
    assert {"structure", "writing", "stages"} <= report["methods"]["allmem"].keys()


def test_a_library_of_units_that_was_begun_is_gone_on_with(tmp_path: Path) -> None:
    """The model goes in the midst of writing: what was described stays, and its cost is told."""

    class Dies(OfflineClient):
        left = 2

        def complete(self, task: Any, variables: Any) -> Reply:
            self.left -= 1
            if self.left < 0:
                raise ModelUnavailable("gone")
            return super().complete(task, variables)

    wanted = request(tmp_path, "allmem", retrieval_only=True, embedder="lexical")
    with pytest.raises(ModelUnavailable, match="the same command goes on"):
        start(replace(wanted, keeper=Dies()))
    assert start(wanted) == Ended(8, 0)
    (tally,) = read(tmp_path / "out").methods
    assert writing(tally)["turns"] == 12
    assert tally.construction["describe"].calls >= 4
    whole = tmp_path / "whole"
    whole.mkdir()
    start(request(whole, "allmem", retrieval_only=True, embedder="lexical"))
    scores = [[item.scores for item in results(folder / "out")] for folder in (tmp_path, whole)]
    assert scores[0] == scores[1]


def test_an_estimate_of_units_counts_each_library_once(tmp_path: Path) -> None:
    named = ScriptedLLM({}, name="small")
    wanted = request(tmp_path, *METHODS, keeper=named, retrieval_only=True, embedder="lexical")
    size = Run(wanted, Small([case("one")])).estimate()
    making = {row.method: row.usage for row in size.rows if row.phase == "making"}
    assert set(making) == {"allmem", "allmem:merge=false"}
    assert making["allmem"].calls == 5, "six turns: described together, three looked at, and one planned for"
    assert {row.phase for row in size.rows} <= {"making", "reading"}
    assert not any(row.usage.calls for row in size.rows if row.phase == "reading")
