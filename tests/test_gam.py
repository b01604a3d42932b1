"""GAM's acceptance: what ends a topic, what it is related to, what a question finds by it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from gam_library import (
    alike,
    asked,
    at_marks,
    end,
    held,
    library,
    links,
    made,
    model,
    say,
    store,
    told,
    topics,
    turn,
)

from infinimem import Turn
from infinimem.errors import ModelUnavailable
from infinimem.memory import Memory
from infinimem.strategies.base import Linked

FORCED = ("forced", "true")


def everything(memory: Memory) -> None:
    """Every turn is active or in exactly one topic, and nothing is wrong."""
    said = {place.seq for place in memory.view.entries("evidence")}
    named = [seq for seqs in held(memory).values() for seq in seqs]
    assert len(named) == len(set(named)) and said.issuperset(named)
    assert memory.status()["active"]["turns"] == len(said) - len(named)
    assert [finding for finding in memory.doctor() if finding.level == "error"] == []


# ── what ends a topic ───────────────────────────────────────────────────────────────────────────


def test_a_session_ends_with_the_first_turn_of_another(tmp_path: Path) -> None:
    llm = model()
    memory = library(tmp_path, llm)
    say(memory, "@20 a", "@20 b", "% @60 c")
    end(memory)
    assert held(memory) == {"gt-000001": [1, 2], "gt-000003": [3]}
    assert asked(llm) == ["segment", "topic", "topic", "relate"]
    assert len(memory.receipts()) == 1 and memory.status()["active"]["turns"] == 1
    everything(memory)


LONG = "word " * 30
"""Some thirty tokens."""


@pytest.mark.parametrize(("times", "first_part"), [((0, 50, 52, 52), [1]), ((0, 0, 0, 0), [1, 2])])
def test_too_many_turns_are_cut_in_two_where_no_reply_can_be_read(
    tmp_path: Path, times: tuple[int, ...], first_part: list[int]
) -> None:
    """At the longest silence, or in the middle."""
    memory = library(tmp_path, model(segment=lambda _: "no JSON"), active_tokens=100, gap_minutes=0)
    memory.observe([turn(LONG, minute=minute) for minute in times])
    assert list(held(memory).values()) == [first_part] and FORCED in topics(memory)["gt-000001"].aux
    assert any("segment" in note for note in memory.receipts()[0].notes)


# ── what a topic is ─────────────────────────────────────────────────────────────────────────────


def test_a_topic_quotes_its_turns_and_tells_its_session(tmp_path: Path) -> None:
    memory = library(tmp_path, model())
    say(memory, "@20 a", "@20 b")
    end(memory)
    text = (tmp_path / "gam" / "topics" / "gt-000001.md").read_text()
    assert "  - {ref: 1-2}\n" in text and "> Ann: @20 a\n\n> Ann: @20 b\n" in text
    assert "session: 2025-01-04-s1\n" in text and "time: 2025-01-04T10:00:00\n" in text


# ── relations ───────────────────────────────────────────────────────────────────────────────────


def related(root: Path, *rows: dict[str, Any], **settings: Any) -> Memory:
    """A library of two topics, the second with these relations to the first, which is called "1"."""
    memory = library(root, model(relate=lambda _: {"relations": list(rows)}), **settings)
    say(memory, "@20 a", "% @60 b")
    end(memory)
    return memory


def row(relation: str = "causal", confidence: float = 0.9, other: str = "1") -> dict[str, Any]:
    return {"id": other, "relation": relation, "confidence": confidence}


@pytest.mark.sample(2)
@pytest.mark.parametrize("relation", ["support", "contradict", "causal", "coreference", "semantic"])
def test_a_relation_is_stored_once_with_the_newer_topic(tmp_path: Path, relation: str) -> None:
    memory = related(tmp_path, row(relation))
    assert {name: [(one.kind, one.to) for one in found] for name, found in links(memory).items()} == {
        "gt-000002": [(relation, "gt-000001")]
    }
    assert isinstance(memory.strategy, Linked)
    drawn = memory.strategy.graph(memory.view, "gt-000001", 1)
    assert [node.id for node in drawn.nodes] == ["gt-000001", "gt-000002"]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "rows", [[row("unrelated")], [row("loves")], [row(other="7")], [row("unrelated"), row("causal")]]
)
def test_what_is_no_relation_or_no_candidate_is_none(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    memory = related(tmp_path, *rows)
    assert not links(memory) and len(held(memory)) == 2
    everything(memory)


# ── reading ─────────────────────────────────────────────────────────────────────────────────────


def test_a_question_goes_to_topics_those_related_and_their_turns(tmp_path: Path) -> None:
    memory = library(tmp_path, model(relate=lambda _: {"relations": [row(other="2")]}), anchors=1)
    say(memory, "@0 a", "% @80 b", "% @50 c")
    end(memory)
    assert {one.to for one in links(memory)["gt-000003"]} == {"gt-000001"}
    trace = {step.stage: [one.id for one in step.found] for step in memory.retrieve("@0").trace}
    assert trace["anchors"] == ["gt-000001"] and trace["neighbours"] == ["gt-000003"]
    assert trace["turns"] == ["1", "3", "4"]
    assert [step.found[0].via for step in memory.retrieve("@0").trace if step.stage == "neighbours"] == [
        "gt-000001"
    ]


def test_answers_are_read_from_turns_by_time_under_their_topics(tmp_path: Path) -> None:
    memory = library(tmp_path, model())
    say(memory, "@20 a", "@22 b", "% @60 c")
    end(memory)
    say(memory, "@21 d")
    items = memory.read("@21", "drill", 400).items
    assert [item.text for item in items][:4] == ["It was @20.", "@20 a", "@22 b", "It was @60."]
    assert items[0].doc_id == "gam/topics/gt-000001" and items[0].origin == (1, 2)
    assert items[-1].text == "@21 d"
    assert len(memory.read("@21", "drill", 400).items) > len(memory.read("@21", "drill", 12).items) > 0


# ── people, time ────────────────────────────────────────────────────────────────────────────────


def test_what_a_person_writes_is_searched_and_stays(tmp_path: Path) -> None:
    memory = library(tmp_path, model(relate=alike), anchors=1)
    say(memory, "@20 a", "% @60 b")
    end(memory)
    path = tmp_path / "gam" / "topics" / "gt-000001.md"
    path.write_text(path.read_text().replace("It was @20", "It was @90"))
    before = path.read_bytes()
    say(memory, "@20 c", session="s3")
    end(memory)
    assert path.read_bytes() == before
    trace = {step.stage: [one.id for one in step.found] for step in memory.retrieve("@90").trace}
    assert trace["anchors"] == ["gt-000001"]


def test_a_topic_that_a_person_archives_is_no_anchor_and_links_still_reach_it(tmp_path: Path) -> None:
    memory = library(tmp_path, model(relate=alike))
    say(memory, "@20 a", "% @60 b")
    end(memory)
    (tmp_path / "gam" / "archive").mkdir(exist_ok=True)
    (tmp_path / "gam" / "topics" / "gt-000001.md").rename(tmp_path / "gam" / "archive" / "gt-000001.md")
    path = tmp_path / "gam" / "archive" / "gt-000001.md"
    path.write_text(path.read_text().replace("id: gam/topics", "id: gam/archive"))
    trace = {step.stage: [one.id for one in step.found] for step in memory.retrieve("@20").trace}
    assert trace["anchors"] == ["gt-000002"] and trace["neighbours"] == ["gt-000001"]
    everything(memory)


def test_forget_reaches_the_topic_and_leaves_its_other_turns_active(tmp_path: Path) -> None:
    memory = library(tmp_path, model(relate=alike))
    say(memory, "@20 a", "@20 secret", "% @60 b")
    end(memory)
    memory.forget([2])
    assert held(memory) == {"gt-000003": [3]} and not links(memory)
    assert "secret" not in "".join(path.read_text() for path in tmp_path.rglob("*.md"))
    assert memory.status()["active"]["turns"] == 2 and not memory.view.uncited()
    memory.consolidate()
    assert held(memory) == {"gt-000001": [1], "gt-000003": [3], "gt-000004": [4]}
    everything(memory)


def talk(seed: int) -> list[Turn]:
    """Turns of two sessions, which come mixed, with pauses and changes of subject; then of a third."""
    chance = random.Random(seed)
    turns, minute = [], 0
    for _ in range(60):
        minute += chance.choice((0, 0, 1, 2, 31))
        text = f"{'% ' if chance.random() < 0.2 else ''}@{chance.randrange(90)} {chance.random():.3f} {LONG}"
        turns.append(turn(text, chance.choice(("s1", "s1", "s2")), minute=minute % 720))
    return [*turns, turn("@1 So.", "s3")]


def test_a_rebuild_a_lost_list_and_a_lost_cache_give_the_same_topics(tmp_path: Path) -> None:
    memory = library(tmp_path, model(relate=alike), active_tokens=400)
    memory.observe(talk(9))
    memory.consolidate()
    before = made(tmp_path)
    (tmp_path / ".infinimem" / "drawn-gam").unlink()
    memory.observe(())
    assert made(tmp_path) == before
    memory.rebuild()
    assert made(tmp_path) == before and not memory.view.uncited()


def test_undo_lets_turns_be_active_again(tmp_path: Path) -> None:
    memory = library(tmp_path, model())
    say(memory, "@20 a", "% @60 b")
    end(memory)
    before = made(tmp_path)
    memory.undo()
    assert not held(memory) and memory.status()["active"]["turns"] == 3 and not memory.view.uncited()
    everything(memory)
    say(memory, "@30 c", session="s4")
    assert {name: data for name, data in made(tmp_path).items() if name in before} == before


def test_the_past_shows_turns_that_were_active_then(tmp_path: Path) -> None:
    memory = library(tmp_path, model())
    say(memory, "@20 a", "@20 b")
    then = str(memory.view.max_seq)
    end(memory)
    past = memory.at(then)
    assert {one.via for one in past.retrieve("@20").trace[-2].found} == {""}
    assert {seq for item in past.retrieve("@20").items for seq in item.origin} == {1, 2}


@pytest.mark.sample(2)
@pytest.mark.parametrize("task", ["segment", "topic", "relate"])
@pytest.mark.parametrize("nth", [0, 1, 2])
def test_a_model_that_stops_answering_leaves_nothing_half_done(tmp_path: Path, task: str, nth: int) -> None:
    usual: dict[str, Any] = {
        "segment": at_marks,
        "topic": told,
        "relate": alike,
    }
    calls = 0

    def stops(variables: Any) -> Any:
        nonlocal calls
        calls += 1
        return ModelUnavailable("nobody answers") if calls > nth else usual[task](variables)

    memory = library(tmp_path, model(**{**usual, task: stops}), workers=1)
    turns = [
        turn(text, session)
        for session in ("s1", "s2", "s3", "s4")
        for text in ("@20 a", "% @60 b", "% @70 c")
    ]
    with pytest.raises(ModelUnavailable):
        memory.observe(turns)
    receipts = len(memory.receipts())
    assert len(held(memory)) == 3 * receipts
    everything(memory)
    again = library(tmp_path, model(relate=alike))
    again.observe(())
    whole = library(tmp_path / "whole", model(relate=alike))
    whole.observe(turns)
    assert made(tmp_path / "whole") == made(tmp_path)
    assert store(again).graph == store(whole).graph
