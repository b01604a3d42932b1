"""RecMem's acceptance: what is asked when, and what becomes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from language_tasks import TIERS
from recmem_library import (
    fact,
    held,
    library,
    longer,
    model,
    records,
    say,
)

from infinimem import open_memory, tokens
from infinimem.llm.tasks import ANSWER, render
from infinimem.memory import Memory
from infinimem.settings import defaults, parse_settings
from infinimem.strategies.base import Linked
from infinimem.strategies.recmem import strategy as recmem
from infinimem.strategies.recmem.spec import RecmemSettings
from infinimem.strategies.recmem.strategy import ROLES
from infinimem.strategies.records.record import record_id
from infinimem.testing import ScriptedLLM


def asked(llm: ScriptedLLM) -> list[str]:
    return [call.task for call in llm.calls]


def shown(llm: ScriptedLLM, at: int) -> list[str]:
    """Ids of the turns that a call showed."""
    return [turn["id"] for turn in llm.calls[at].variables["turns"]]


def test_the_running_example_of_the_paper(tmp_path: Path) -> None:
    """Appendix B: a cake, jeans, the cake again; two exchanges make a cluster."""
    facts = [
        fact("Ann has a sister, Mia.", "1"),
        fact("Mia must not eat peanuts.", "5"),
        fact("Ann orders at SweetLeaf.", "5"),
    ]
    llm = model(refine=[{"facts": facts}])
    memory = library(tmp_path, llm, theta_count=2)
    say(memory, "@0 A birthday cake for my sister Mia?", "@90 How do I wash dark jeans?")
    assert llm.calls == [] and not records(memory)
    memory = library(tmp_path / "again", llm, theta_count=2)
    texts = ("@0 A birthday cake for my sister Mia?", "@90 How do I wash dark jeans?")
    say(memory, *texts, "@5 Mia must not eat peanuts; SweetLeaf?")
    assert asked(llm) == ["episodes", "refine"] and shown(llm, 0) == ["1", "2", "5", "6"]
    assert held(memory) == {"re-000005-01": [1, 2, 5, 6]}
    told = {one.summary: [ref.seq for ref in one.refs] for one in records(memory).values() if not one.prose}
    assert told == {
        "Ann has a sister, Mia.": [1],
        "Mia must not eat peanuts.": [5],
        "Ann orders at SweetLeaf.": [5],
    }


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("merged", "taken"),
    [
        ("On 12 June 2025 they met @20. Later they went home.", True),
        ("On 12 June they met @20. Later they went home.", False),
        ("On 12 May 2025 they met @20.", False),
        ("", False),
    ],
)
def test_a_merge_that_drops_a_date_is_refused(tmp_path: Path, merged: str, taken: bool) -> None:
    episode = {"episodes": [{"text": "On 12 June 2025 they met @20.", "from": ["1", "3", "5"]}]}
    llm = model(episodes=[episode], merge_episodes=[{"should_merge": True, "merged": merged}])
    memory = library(tmp_path, llm)
    say(memory, *["@20 a"] * 4)
    (one,) = (one for one in records(memory).values() if one.visible)
    assert (one.prose == merged) is taken and len(one.refs) == (8 if taken else 6)


def test_an_exchange_that_does_not_recur_writes_evidence_and_the_list_alone(tmp_path: Path) -> None:
    memory = library(tmp_path, model())
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    say(memory, "@20 a", "@60 b")
    now = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    changed = {path.relative_to(tmp_path).parts[0] for path in now if now[path] != before.get(path)}
    assert changed == {"evidence", ".infinimem"} and memory.receipts() == ()
    assert memory.view.drawn == {*range(1, 7)}


def test_undo_brings_back_no_turn_that_its_record_holds_anyway(tmp_path: Path) -> None:
    """A merge is undone though another episode, of a merged clone, holds the same turns."""
    memory = library(tmp_path, model(merge_episodes=[{"should_merge": True, "merged": "They met @20."}]))
    say(memory, *["@20 a"] * 4)
    ((name, turns),) = held(memory).items()
    page = tmp_path / f"recmem/episodes/{name}.md"
    page.with_stem(f"{name[:-1]}9").write_text(page.read_text().replace(name, f"{name[:-1]}9"))
    memory.undo()
    assert held(memory)[name] == turns[:6]


def test_a_plan_looks_again_at_its_own_exchanges_and_not_at_all_of_a_long_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []

    def counted(*args: Any) -> str:
        made.append(1)
        return record_id(*args)

    monkeypatch.setattr(recmem, "record_id", counted)
    say(library(tmp_path, model()), *["@20 a"] * 40)
    assert 40 <= len(made) < 10 * 40


def test_a_replaced_fact_is_one_version_link_away(tmp_path: Path) -> None:
    replies = [
        {"facts": [fact("Ann lives in Porto.", "1")]},
        {"facts": [fact("Ann lives in Braga, no longer in Porto.", "7", replaces="[f1]")]},
    ]

    def grown(root: Path, **settings: object) -> Memory:
        llm = model(merge_episodes=longer, refine=list(replies))
        memory = library(root, llm, refine_merged=True, **settings)
        say(memory, *["@20 a"] * 4)
        return memory

    memory = grown(tmp_path / "ours")
    assert isinstance(memory.strategy, Linked)
    drawn = memory.strategy.graph(memory.view, "rf-000007-01", 1)
    links = {(row["type"], row["to"]) for row in drawn.data["links"] if row["from"] == "rf-000007-01"}
    assert links == {("source", "re-000005-01"), ("version", "rf-000005-01")}
    assert not records(memory)["rf-000005-01"].visible
    assert all(one.visible for one in records(grown(tmp_path / "paper", supersede=False)).values())


def test_what_a_person_pins_is_left_alone(tmp_path: Path) -> None:
    llm = model(merge_episodes=longer)
    memory = library(tmp_path, llm)
    say(memory, *["@20 a"] * 3)
    (path,) = (tmp_path / "recmem" / "episodes").iterdir()
    path.write_text(
        path.read_text().replace("\n---\n", "\npin: true\n---\n", 1).replace("They spoke", "We spoke")
    )
    before = path.read_bytes()
    say(memory, "@20 b")
    assert path.read_bytes() == before and "merge_episodes" not in asked(llm)


def test_talk_of_tasks_recurs_at_six_sevenths_of_the_cosine(tmp_path: Path) -> None:
    """The paper's 0.6 and 0.7 (section 4.1): 50 degrees are near enough for the one alone."""
    for talk, found in (("casual", {}), ("tasks", {"re-000003-01": [1, 2, 3, 4]})):
        memory = library(tmp_path / talk, model(), theta_sim=0, theta_count=2, talk=talk)
        say(memory, "@0 a", "@50 b")
        assert held(memory) == found


@pytest.mark.parametrize(("settings", "count"), [({}, 2), ({"k_sem": 3}, 3), ({"k_sem": 0}, 0)])
def test_a_question_is_shown_twice_as_many_facts_as_episodes_unless_told(
    tmp_path: Path, settings: dict[str, int], count: int
) -> None:
    facts = [fact(f"@{at} Fact {at}.", "1") for at in (20, 21, 22)]
    memory = library(tmp_path, model(refine=[{"facts": facts}]), k_epi=1, **settings)
    say(memory, *["@20 a"] * 3)
    (found,) = (step.found for step in memory.retrieve("@20").trace if step.stage == "facts")
    assert len(found) == count


@pytest.mark.parametrize("rank", ["cosine", "library"])
def test_an_answerer_is_shown_the_three_memories_apart(tmp_path: Path, rank: str) -> None:
    """Figures 15 and 16, within the budget of the evidence; not before something recurs."""
    llm = model(
        refine=[{"facts": [fact("@21 Ann sails.", "1")]}], answer=lambda _: {"answer": "", "cites": []}
    )
    memory = library(tmp_path, llm, rank=rank)
    say(memory, "@20 a boat")
    memory.ask("@20 boat")
    say(memory, *["@20 a boat"] * 3)
    memory.ask("@20 boat")
    alone, apart = (call.variables for call in llm.calls if call.task == "answer")
    assert not {"episodes", "facts"} & alone.keys()
    ids = {
        kind: {doc["doc_id"].split("/")[-2] for doc in apart[kind]}
        for kind in ("episodes", "facts", "evidence")
    }
    assert ids == {kind: {kind} for kind in ids}
    assert memory.read("@20 boat", "tiers", 8 * ROLES - 1).apart == ()
    more = [tokens.count(render(task, dict.fromkeys(task.variables, "")).user) for task in (ANSWER, TIERS)]
    assert 0 < more[1] - more[0] <= ROLES


def test_the_papers_form_has_a_name(tmp_path: Path) -> None:
    (tmp_path / "infinimem.toml").write_text('strategy = "recmem"\npreset = "paper"\n[recmem]\nk_epi = 3\n')
    memory = open_memory(tmp_path, model="offline")
    own = memory.library.settings.of(RecmemSettings)
    assert (own.rank, own.k_sub, own.supersede, own.k_epi) == ("cosine", 10, False, 3)


def test_its_settings_may_be_given_as_config_shows_them_and_a_cluster_may_be_of_none(
    tmp_path: Path,
) -> None:
    rows = [(name, value) for name, value in defaults().items() if name.startswith("recmem.")]
    shown = "\n".join(f"{name} = {json.dumps('' if value is None else value)}" for name, value in rows)
    assert parse_settings(shown.encode()).of(RecmemSettings) == RecmemSettings()
    library(tmp_path, model(), theta_count=0).consolidate()


def test_a_session_whose_file_a_person_renames_keeps_its_exchanges(tmp_path: Path) -> None:
    memory = library(tmp_path, model())
    say(memory, "@20 a", "@60 b")
    (page,) = (tmp_path / "evidence").glob("*s1.md")
    page.rename(page.with_name("0.md"))
    say(memory, "@20 c", "@20 d")
    assert memory.status()["exchanges"] == library(tmp_path, model()).status()["exchanges"]
    page.with_name("0.md").rename(page)
    memory.consolidate()
    assert memory.status()["exchanges"] == library(tmp_path, model()).status()["exchanges"]
