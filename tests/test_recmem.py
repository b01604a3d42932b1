"""RecMem's acceptance: what is asked when, what becomes of it, and that no exchange is lost."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from recmem_library import (
    exchange,
    fact,
    held,
    library,
    longer,
    model,
    one_episode,
    records,
    say,
)

from infinimem import Turn
from infinimem.errors import ModelUnavailable
from infinimem.llm.scripted import ScriptedLLM
from infinimem.memory import Memory
from infinimem.strategies.base import Linked


def asked(llm: ScriptedLLM) -> list[str]:
    return [call.task for call in llm.calls]


def shown(llm: ScriptedLLM, at: int) -> list[str]:
    """Ids of the turns that a call showed."""
    return [turn["id"] for turn in llm.calls[at].variables["turns"]]


def test_no_exchange_below_the_threshold_is_shown_to_a_model(tmp_path: Path) -> None:
    llm = model()
    chance = random.Random(5)
    lonely = [f"@{angle} lonely" for angle in range(0, 180, 20)]
    texts = lonely + [f"@{angle} often" for angle in (200, 203, 207, 200)]
    chance.shuffle(texts)
    say(library(tmp_path, llm), *texts)
    assert "often" in json.dumps(llm.calls) and "lonely" not in json.dumps(llm.calls)


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


def test_an_exchange_joins_an_episode_before_it_is_counted(tmp_path: Path) -> None:
    llm = model(merge_episodes=longer)
    memory = library(tmp_path, llm)
    say(memory, "@20 a", "@20 b", "@20 c", "@25 d")
    assert asked(llm) == ["episodes", "refine", "merge_episodes"]
    (episode,) = records(memory).values()
    assert [ref.seq for ref in episode.refs] == list(range(1, 9)) and dict(episode.aux)["merged"] == "1"
    assert episode.prose == "They spoke of @20. Later: at 25 d I see.."
    assert memory.status()["merged"] == 1 and memory.status()["consolidated"] == 3


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


def every_unit(memory: Memory) -> None:
    """Raw, merged and consolidated exchanges are all of them, and each is found."""
    status = memory.status()
    assert status["raw"] + status["merged"] + status["consolidated"] == status["exchanges"]
    named = [seq for seqs in held(memory).values() for seq in seqs]
    assert len(named) == len(set(named))
    assert not [finding for finding in memory.doctor() if finding.level == "error"]
    for place in memory.view.entries("evidence"):
        if place.text.startswith("@"):
            found = memory.retrieve(place.text, 100_000).items
            assert place.seq in {seq for item in found for seq in item.origin}


@pytest.mark.parametrize("reply", ["no JSON", {"facts": [{"text": "half"}]}])
def test_without_its_facts_no_episode_is_written(tmp_path: Path, reply: Any) -> None:
    llm = model(refine=lambda _: reply)
    memory = library(tmp_path, llm)
    say(memory, *["@20 a"] * 3)
    assert asked(llm) == ["episodes", "refine", "refine"] and not records(memory)
    assert {one.kind for one in memory.unanswered().values()} in ({"JSON_PARSE_FAIL"}, {"SCHEMA_FAIL"})


@pytest.mark.sample(2)
@pytest.mark.parametrize("task", ["episodes", "refine", "merge_episodes"])
def test_a_model_that_stops_answering_leaves_nothing_half_done(tmp_path: Path, task: str) -> None:
    def silent(_: object) -> ModelUnavailable:
        return ModelUnavailable("nobody answers")

    usual = model(merge_episodes=longer)
    memory = library(tmp_path, model(**{"merge_episodes": longer, task: silent}))
    with pytest.raises(ModelUnavailable):
        say(memory, *["@20 a"] * 4)
    assert len(records(memory)) == (task == "merge_episodes")
    again = library(tmp_path, usual)
    again.observe(())
    whole = library(tmp_path / "whole", model(merge_episodes=longer))
    say(whole, *["@20 a"] * 4)
    assert held(again) == held(whole) and not again.view.uncited()


def test_an_episode_that_cannot_be_read_leaves_its_exchanges_raw(tmp_path: Path) -> None:
    llm = model(episodes=lambda _: "no JSON")
    memory = library(tmp_path, llm)
    say(memory, *["@20 a"] * 3)
    assert asked(llm) == ["episodes", "episodes"] and not records(memory)
    assert not memory.view.uncited()
    again = library(tmp_path, model())
    assert again.consolidate() is not None and held(again) == {"re-000005-01": [1, 2, 3, 4, 5, 6]}


def test_an_exchange_that_does_not_recur_writes_evidence_and_the_list_alone(tmp_path: Path) -> None:
    memory = library(tmp_path, model())
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    say(memory, "@20 a", "@60 b")
    now = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    changed = {path.relative_to(tmp_path).parts[0] for path in now if now[path] != before.get(path)}
    assert changed == {"evidence", ".infinimem"} and memory.receipts() == ()
    assert (tmp_path / ".infinimem" / "drawn-recmem").read_text() == "1-6;\n"


def test_forget_leaves_the_others_raw_and_consolidate_makes_the_episode_anew(tmp_path: Path) -> None:
    memory = library(tmp_path, model(refine=lambda _: {"facts": [fact("A fact.", "1")]}))
    say(memory, *["@20 a"] * 3, "@20 secret", "@60 b")
    llm = model(episodes=one_episode)
    memory = library(tmp_path, llm)
    memory.forget([1, 2])
    assert not records(memory) and not memory.view.uncited()
    assert memory.consolidate() is not None
    assert held(memory) == {"re-000007-01": [3, 4, 5, 6, 7, 8]} and asked(llm) == ["episodes", "refine"]
    assert memory.consolidate() is None and len(llm.calls) == 2
    every_unit(memory)


def test_a_replaced_fact_is_one_version_link_away(tmp_path: Path) -> None:
    replies = [
        {"facts": [fact("Ann lives in Porto.", "1")]},
        {"facts": [fact("Ann lives in Braga, no longer in Porto.", "7", replaces="f1")]},
    ]

    def grown(root: Path, **settings: object) -> Memory:
        llm = model(merge_episodes=longer, refine=list(replies))
        memory = library(root, llm, refine_merged=True, **settings)
        say(memory, *["@20 a"] * 4)
        return memory

    memory = grown(tmp_path / "ours")
    assert isinstance(memory.strategy, Linked)
    drawn = memory.strategy.graph(memory.view, "rf-000007-01", 1)
    links = {(name, link.kind, link.to) for name, link in drawn.links if name == "rf-000007-01"}
    assert links == {
        ("rf-000007-01", "source", "re-000005-01"),
        ("rf-000007-01", "version", "rf-000005-01"),
    }
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


def talk(seed: int) -> list[Turn]:
    """Exchanges of two sessions, which come mixed."""
    chance = random.Random(seed)
    turns = []
    for _ in range(30):
        turns += exchange(f"@{chance.randrange(90)} {chance.random():.3f}", chance.choice(("s1", "s1", "s2")))
    return turns


def made(root: Path) -> dict[str, bytes]:
    """All records, as they stand."""
    return {path.name: path.read_bytes() for path in (root / "recmem").rglob("*.md")}


def test_a_rebuild_a_lost_list_and_a_lost_cache_give_the_same_records(tmp_path: Path) -> None:
    llm = model(merge_episodes=longer)
    memory = library(tmp_path, llm, theta_sim=0.97)
    memory.observe(talk(9))
    memory.consolidate()

    before = made(tmp_path)
    (tmp_path / ".infinimem" / "drawn-recmem").unlink()
    memory.observe(())
    assert made(tmp_path) == before
    memory.rebuild()
    assert made(tmp_path) == before and not memory.view.uncited()


def test_undo_lets_its_exchanges_be_raw_again(tmp_path: Path) -> None:
    memory = library(tmp_path, model())
    say(memory, *["@20 a"] * 3)
    status = memory.status()
    memory.undo()
    assert memory.status()["raw"] == status["exchanges"] and not memory.view.uncited()
    every_unit(memory)
    assert memory.consolidate() is not None and memory.status() | {"last_receipt": 0} | {"receipts": 0} == (
        status | {"last_receipt": 0} | {"receipts": 0}
    )


def test_the_past_shows_exchanges_that_were_raw_then(tmp_path: Path) -> None:
    memory = library(tmp_path, model())
    say(memory, "@20 a", "@20 b")
    then = str(memory.view.max_seq)
    say(memory, "@20 c")
    past = memory.at(then)
    found = {seq for item in past.retrieve("@20").items for seq in item.origin}
    assert {1, 2, 3, 4} <= found and max(found) <= int(then)
