"""RecMem's acceptance: what is asked when, what becomes of it, and that no exchange is lost."""

from __future__ import annotations

import json
import random
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from recmem_library import (
    COS_10,
    exchange,
    fact,
    held,
    library,
    longer,
    model,
    observe_in_parts,
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


@pytest.mark.parametrize(("before", "asks"), [(1, 0), (2, 1)])
def test_so_many_raw_neighbours_make_a_cluster_and_one_fewer_does_not(
    tmp_path: Path, before: int, asks: int
) -> None:
    llm = model()
    say(library(tmp_path, llm), *["@20 a"] * before, "@30 b")
    assert asked(llm).count("episodes") == asks


@pytest.mark.parametrize(("theta", "asks"), [(COS_10, 1), (COS_10 + 1e-6, 0)])
def test_the_least_cosine_counts(tmp_path: Path, theta: float, asks: int) -> None:
    llm = model()
    say(library(tmp_path, llm, theta_sim=theta), "@20 a", "@40 b", "@30 c")
    assert asked(llm).count("episodes") == asks


def test_what_an_episode_holds_is_raw_no_more(tmp_path: Path) -> None:
    llm = model()
    say(library(tmp_path, llm, theta_merge=1.0), *["@20 a"] * 2, "@21 b", "@25 c", "@25 d")
    assert asked(llm).count("episodes") == 1


def test_an_exchange_joins_an_episode_before_it_is_counted(tmp_path: Path) -> None:
    llm = model(merge_episodes=longer)
    memory = library(tmp_path, llm)
    say(memory, "@20 a", "@20 b", "@20 c", "@25 d")
    assert asked(llm) == ["episodes", "refine", "merge_episodes"]
    (episode,) = records(memory).values()
    assert [ref.seq for ref in episode.refs] == list(range(1, 9)) and dict(episode.aux)["merged"] == "1"
    assert episode.prose == "They spoke of @20. Later: at 25 d I see.."
    assert memory.status()["merged"] == 1 and memory.status()["consolidated"] == 3


def test_one_that_an_episode_does_not_want_is_counted(tmp_path: Path) -> None:
    llm = model()
    memory = library(tmp_path, llm)
    say(memory, "@20 a", "@20 b", "@20 c", "@25 d", "@25 e", "@25 f")
    tasks = [task for task in asked(llm) if task != "refine"]
    assert tasks == ["episodes", "merge_episodes", "merge_episodes", "merge_episodes", "episodes"]
    assert sorted(held(memory).values()) == [list(range(1, 7)), list(range(7, 13))]


def test_a_merge_that_is_refined_gives_facts_of_the_exchange(tmp_path: Path) -> None:
    llm = model(merge_episodes=longer, refine=lambda found: {"facts": [fact("It is so.", "7", "1")]})
    memory = library(tmp_path, llm, refine_merged=True)
    say(memory, "@20 a", "@20 b", "@20 c", "@25 d")
    assert asked(llm) == ["episodes", "refine", "merge_episodes", "refine"]
    assert shown(llm, 3) == ["7", "8"]


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


def test_every_exchange_is_raw_merged_or_consolidated_and_found(tmp_path: Path) -> None:
    chance = random.Random(3)

    def sometimes(variables: Any) -> Any:
        return longer(variables) if chance.random() < 0.5 else {"should_merge": False, "merged": ""}

    memory = library(tmp_path, model(merge_episodes=sometimes), k_sub=100)
    for _ in range(6):
        say(memory, *(f"@{chance.randrange(60)} a" for _ in range(6)))
        every_unit(memory)
    assert memory.status()["merged"] and memory.status()["consolidated"]


def test_of_what_no_episode_tells_nothing_is_lost_and_it_recurs_no_more(tmp_path: Path) -> None:
    llm = model(episodes=[{"episodes": []}])
    memory = library(tmp_path, llm)
    say(memory, *["@20 a"] * 3, "@21 b", "@22 c")
    assert asked(llm) == ["episodes"]
    (empty,) = records(memory).values()
    assert not empty.visible and not empty.prose and [ref.seq for ref in empty.refs] == list(range(1, 7))
    every_unit(memory)


@pytest.mark.parametrize("reply", ["no JSON", {"facts": [{"text": "half"}]}])
def test_without_its_facts_no_episode_is_written(tmp_path: Path, reply: Any) -> None:
    llm = model(refine=lambda _: reply)
    memory = library(tmp_path, llm)
    say(memory, *["@20 a"] * 3)
    assert asked(llm) == ["episodes", "refine", "refine"] and not records(memory)
    assert {one.kind for one in memory.unanswered().values()} in ({"JSON_PARSE_FAIL"}, {"SCHEMA_FAIL"})


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


def test_facts_say_nothing_twice_and_name_turns_that_were_shown(tmp_path: Path) -> None:
    facts = [
        fact("One.", "1"),
        fact("One.", "3"),
        fact("Two.", "99"),
        fact(" ", "1"),
        fact("Three.", "3", "99"),
    ]
    memory = library(
        tmp_path, model(refine=[{"facts": facts + [fact(f"More {n}.", "1") for n in range(20)]}])
    )
    say(memory, *["@20 a"] * 3)
    told = [one.summary for one in records(memory).values() if not one.prose]
    assert {"One.", "Three."} <= set(told) and "Two." not in told
    assert len(told) == len(set(told)) == 9


def test_what_the_evidence_does_not_hold_is_marked(tmp_path: Path) -> None:
    facts = [fact("Ann said a.", "1"), fact("Ann met Zoe.", "1")]
    memory = library(tmp_path, model(refine=[{"facts": facts}]))
    say(memory, *["@20 a"] * 3)
    marked = {one.summary: "unverified" in dict(one.aux) for one in records(memory).values()}
    assert marked["Ann met Zoe."] and not marked["Ann said a."]


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


def test_what_a_person_wrote_is_embedded_anew_and_goes_on(tmp_path: Path) -> None:
    llm = model(merge_episodes=longer)
    memory = library(tmp_path, llm)
    say(memory, *["@20 a"] * 3)
    (path,) = (tmp_path / "recmem" / "episodes").iterdir()
    path.write_text(path.read_text().replace("They spoke of @20", "We spoke of @60"))
    say(memory, "@60 b")
    assert asked(llm)[-1] == "merge_episodes"
    assert next(one.prose for one in records(memory).values()).startswith("We spoke of @60. Later")


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


@pytest.mark.parametrize("seed", range(4))
def test_one_call_or_many_give_the_same_records(tmp_path: Path, seed: int) -> None:
    whole = library(tmp_path / "whole", model(merge_episodes=longer), theta_sim=0.97)
    whole.observe(talk(seed))
    parts = library(tmp_path / "parts", model(merge_episodes=longer), theta_sim=0.97)
    observe_in_parts(parts, talk(seed), seed)
    one, two = (made(tmp_path / name) for name in ("whole", "parts"))
    assert one == two and one


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


def test_a_rebuild_asks_anew_of_what_joined_an_episode(tmp_path: Path) -> None:
    far = {"episodes": [{"text": "They spoke of @60.", "from": ["1", "3", "5"]}]}
    memory = library(tmp_path, model(episodes=lambda _: far, merge_episodes=longer))
    say(memory, *["@20 a"] * 3, "@62 b")
    before = made(tmp_path)
    assert list(held(memory).values()) == [list(range(1, 9))]
    memory.rebuild()
    assert made(tmp_path) == before


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


def test_the_reader_shows_episodes_then_exchanges_then_facts(tmp_path: Path) -> None:
    memory = library(tmp_path, model(refine=[{"facts": [fact("Ann said @20.", "1")]}]))
    say(memory, *["@20 a"] * 3, "@60 b")
    items = memory.read("@20", "tiers", 4000).items
    folders = [item.doc_id.rpartition("/")[0] for item in items]
    assert folders[0] == "recmem/episodes" and folders[-1] == "recmem/facts"
    assert set(folders[1:-1]) == {"evidence"} and items[0].text == "They spoke of @20."
    assert items[-1].text == "Ann said @20." and items[-1].origin == (1,)


def test_by_the_librarys_search_the_best_turns_come_first(tmp_path: Path) -> None:
    facts = [fact("Ann plays the zither.", "1")]
    memory = library(tmp_path, model(refine=[{"facts": facts}]), rank="library")
    say(
        memory,
        *(f"@{angle} My zither, my viola, my oboe, and {angle} more." for angle in (20, 20, 20, 50, 70, 90)),
        "@120 Rain.",
    )
    question = "The zither, the viola and the oboe: who has which?"
    items = memory.read(question, "tiers", 4000).items
    folders = [item.doc_id.rpartition("/")[0] for item in items]
    assert [folder for folder, _ in groupby(folders)] == [
        "evidence",
        "recmem/episodes",
        "recmem/facts",
        "evidence",
    ]
    assert folders[:6] == ["evidence"] * 5 + ["recmem/episodes"]
    floor = 0.3 * items[0].score
    assert all(item.score >= floor for item in items if item.seqs)
    assert any(item.score < floor for item in memory.retrieve(question).items)


@pytest.mark.parametrize(
    ("settings", "stages"),
    [
        ({"k_sub": 0}, {"exchanges"}),
        ({"k_epi": 0, "k_sem": 0}, {"episodes", "facts"}),
        ({"k_epi": 0}, {"episodes"}),
    ],
)
def test_a_tier_may_be_left_out(tmp_path: Path, settings: dict[str, Any], stages: set[str]) -> None:
    memory = library(tmp_path, model(refine=[{"facts": [fact("Ann said @20.", "1")]}]), **settings)
    say(memory, *["@20 a"] * 3, "@21 b")
    trace = {step.stage: step.found for step in memory.retrieve("@20").trace}
    assert {stage for stage in ("exchanges", "episodes", "facts") if not trace[stage]} == stages


def test_of_raw_exchanges_alone(tmp_path: Path) -> None:
    memory = library(tmp_path, model(), units="raw", k_epi=0)
    say(memory, *["@20 a"] * 3, "@25 b")
    assert {item.seqs for item in memory.retrieve("@20").items} >= {(7,), (8,)}
    assert (1,) not in {item.seqs for item in memory.retrieve("@20").items}


def test_tiers_may_be_ranked_by_the_librarys_search(tmp_path: Path) -> None:
    memory = library(tmp_path, model(refine=[{"facts": [fact("Ann spoke.", "5")]}]), rank="library", k_sub=1)
    say(memory, "@20 a", "@20 the zither", "@20 c", "@70 the oboe")
    trace = {step.stage: [one.id for one in step.found] for step in memory.retrieve("a zither").trace}
    assert trace["exchanges"] == ["rx-000003"] and trace["episodes"] == ["re-000005-01"]
    assert [item.seqs for item in memory.retrieve("an oboe").items][:1] == [(7,)]


def test_a_record_that_cannot_be_read_is_shown_as_it_stands(tmp_path: Path) -> None:
    memory = library(tmp_path, model(), rank="library")
    say(memory, *["@20 a zither"] * 3)
    (path,) = (tmp_path / "recmem" / "episodes").iterdir()
    path.write_text(path.read_text().replace("evidence:", "evidence: what?", 1))
    items = memory.read("They spoke of the zither", "tiers", 4000).items
    assert items[-1].doc_id == f"recmem/episodes/{path.stem}" and items[-1].text.startswith("---")
