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
from recmem_library import observe_in_parts

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


def test_until_something_is_due_nothing_is_written_and_no_model_asked(tmp_path: Path) -> None:
    llm = model()
    memory = library(tmp_path, llm)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for text in ("@20 a", "% @60 b", "@60 c"):
        say(memory, text)
    now = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    changed = {path.relative_to(tmp_path).parts[0] for path in now if now[path] != before.get(path)}
    assert changed == {"evidence", ".infinimem"} and memory.receipts() == () and llm.calls == []
    assert (tmp_path / ".infinimem" / "drawn-gam").read_text() == "1;\n2;\n3;\n"
    everything(memory)


def test_a_session_ends_with_the_first_turn_of_another(tmp_path: Path) -> None:
    llm = model()
    memory = library(tmp_path, llm)
    say(memory, "@20 a", "@20 b", "% @60 c")
    end(memory)
    assert held(memory) == {"gt-000001": [1, 2], "gt-000003": [3]}
    assert asked(llm) == ["segment", "topic", "topic", "relate"]
    assert len(memory.receipts()) == 1 and memory.status()["active"]["turns"] == 1
    everything(memory)


def test_a_late_turn_is_active_until_the_next_session_begins(tmp_path: Path) -> None:
    memory = library(tmp_path, model())
    say(memory, "@20 a")
    say(memory, "@60 b", session="s2")
    say(memory, "@20 late")
    assert held(memory) == {"gt-000001": [1]}
    end(memory)
    assert held(memory) == {"gt-000001": [1], "gt-000002": [2], "gt-000003": [3]}
    assert len(memory.receipts()) == 2


@pytest.mark.parametrize(("minutes", "topics_then"), [(29, 0), (30, 1)])
def test_a_pause_ends_all_but_the_last_part(tmp_path: Path, minutes: int, topics_then: int) -> None:
    memory = library(tmp_path, model())
    memory.observe([turn("@20 a"), turn("% @60 b", minute=1), turn("@60 c", minute=1 + minutes)])
    assert len(held(memory)) == topics_then and memory.status()["active"]["turns"] == 3 - topics_then
    everything(memory)


def test_after_a_pause_in_one_subject_the_talk_goes_on(tmp_path: Path) -> None:
    llm = model()
    memory = library(tmp_path, llm)
    memory.observe([turn("@20 a"), turn("@20 b", minute=1), turn("@20 c", minute=90)])
    assert asked(llm) == ["segment"] and not memory.receipts() and not memory.view.uncited()
    memory.consolidate()
    assert held(memory) == {"gt-000001": [1, 2, 3]}


LONG = "word " * 30
"""Some thirty tokens."""


def test_too_many_turns_of_two_subjects_leave_the_second_active(tmp_path: Path) -> None:
    memory = library(tmp_path, model(), active_tokens=100)
    say(memory, LONG, LONG, f"% {LONG}", LONG)
    assert held(memory) == {"gt-000001": [1, 2]} and len(memory.receipts()) == 1
    assert FORCED not in topics(memory)["gt-000001"].aux
    everything(memory)


def test_too_many_turns_of_one_subject_are_cut_off_and_linked_to_what_follows(tmp_path: Path) -> None:
    memory = library(tmp_path, model(relate=alike), active_tokens=100, candidates=0)
    say(memory, *[LONG] * 6)
    assert held(memory) == {"gt-000001": [1, 2, 3, 4]} and FORCED in topics(memory)["gt-000001"].aux
    memory.consolidate()
    assert FORCED not in topics(memory)["gt-000005"].aux
    assert [link.to for link in links(memory)["gt-000005"]] == ["gt-000001"]
    assert list(links(memory)) == ["gt-000005"]
    everything(memory)


def test_a_tail_that_is_too_large_by_itself_does_not_stay(tmp_path: Path) -> None:
    memory = library(tmp_path, model(), active_tokens=100)
    say(memory, LONG, f"% {LONG * 4}")
    assert held(memory) == {"gt-000001": [1], "gt-000002": [2]}
    assert [FORCED in topic.aux for topic in topics(memory).values()] == [False, True]


@pytest.mark.parametrize(("times", "first_part"), [((0, 50, 52, 52), [1]), ((0, 0, 0, 0), [1, 2])])
def test_too_many_turns_are_cut_in_two_where_no_reply_can_be_read(
    tmp_path: Path, times: tuple[int, ...], first_part: list[int]
) -> None:
    """At the longest silence, or in the middle."""
    memory = library(tmp_path, model(segment=lambda _: "no JSON"), active_tokens=100, gap_minutes=0)
    memory.observe([turn(LONG, minute=minute) for minute in times])
    assert list(held(memory).values()) == [first_part] and FORCED in topics(memory)["gt-000001"].aux
    assert any("segment" in note for note in memory.receipts()[0].notes)


def test_a_session_whose_boundaries_cannot_be_read_is_one_topic(tmp_path: Path) -> None:
    memory = library(tmp_path, model(segment=lambda _: "no JSON"))
    say(memory, "@20 a", "% @60 b")
    end(memory)
    assert held(memory) == {"gt-000001": [1, 2]}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"partition": "session"}, [[1, 2, 3, 4, 5]]),
        ({"partition": "turn"}, [[1], [2], [3], [4], [5]]),
        ({"partition": "turns"}, [[1, 2, 3], [4, 5]]),
        ({"partition": "turns", "window": 2}, [[1, 2], [3, 4], [5]]),
        ({"partition": "window", "window": 60}, [[1, 2], [3, 4], [5]]),
    ],
)
def test_a_session_may_be_cut_by_rules(
    tmp_path: Path, settings: dict[str, Any], expected: list[list[int]]
) -> None:
    llm = model()
    memory = library(tmp_path, llm, **settings)
    say(memory, *[LONG] * 5)
    end(memory)
    assert list(held(memory).values()) == expected and "segment" not in asked(llm)


# ── what a topic is ─────────────────────────────────────────────────────────────────────────────


def test_a_topic_quotes_its_turns_and_tells_its_session(tmp_path: Path) -> None:
    memory = library(tmp_path, model())
    say(memory, "@20 a", "@20 b")
    end(memory)
    text = (tmp_path / "gam" / "topics" / "gt-000001.md").read_text()
    assert "  - {ref: 1-2}\n" in text and "> Ann: @20 a\n\n> Ann: @20 b\n" in text
    assert "session: 2025-01-04-s1\n" in text and "time: 2025-01-04T10:00:00\n" in text


def test_what_was_not_said_is_not_verified(tmp_path: Path) -> None:
    llm = model(topic=lambda _: {"keywords": ["flat"], "summary": "Ann pays 700 euros."})
    memory = library(tmp_path, llm)
    say(memory, "The flat is 600 euros.")
    end(memory)
    assert ("unverified", "true") in topics(memory)["gt-000001"].aux and memory.status()["verified"] == 0


def test_where_no_reply_can_be_read_the_turns_stay_active(tmp_path: Path) -> None:
    memory = library(tmp_path, model(topic=lambda _: "no JSON"))
    say(memory, "@20 a", "@20 b")
    end(memory)
    assert not topics(memory) and list(memory.unanswered()) == [1, 2]
    assert memory.status()["active"]["turns"] == 3


# ── relations ───────────────────────────────────────────────────────────────────────────────────


def related(root: Path, *rows: dict[str, Any], **settings: Any) -> Memory:
    """A library of two topics, the second with these relations to the first, which is called "1"."""
    memory = library(root, model(relate=lambda _: {"relations": list(rows)}), **settings)
    say(memory, "@20 a", "% @60 b")
    end(memory)
    return memory


def row(relation: str = "causal", confidence: float = 0.9, other: str = "1") -> dict[str, Any]:
    return {"id": other, "relation": relation, "confidence": confidence}


@pytest.mark.parametrize(("confidence", "edges"), [(0.5, 0), (0.51, 1)])
def test_confidence_must_exceed_tau(tmp_path: Path, confidence: float, edges: int) -> None:
    found = links(related(tmp_path, row(confidence=confidence)))
    assert len(found) == edges and all(one[0].weight == confidence for one in found.values())


@pytest.mark.parametrize("relation", ["support", "contradict", "causal", "coreference", "semantic"])
def test_a_relation_is_stored_once_with_the_newer_topic(tmp_path: Path, relation: str) -> None:
    memory = related(tmp_path, row(relation))
    assert {name: [(one.kind, one.to) for one in found] for name, found in links(memory).items()} == {
        "gt-000002": [(relation, "gt-000001")]
    }
    assert isinstance(memory.strategy, Linked)
    drawn = memory.strategy.graph(memory.view, "gt-000001", 1)
    assert [node.id for node in drawn.nodes] == ["gt-000001", "gt-000002"]


@pytest.mark.parametrize(
    "rows", [[row("unrelated")], [row("loves")], [row(other="7")], [row("unrelated"), row("causal")]]
)
def test_what_is_no_relation_or_no_candidate_is_none(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    memory = related(tmp_path, *rows)
    assert not links(memory) and len(held(memory)) == 2
    everything(memory)


@pytest.mark.parametrize(("relations", "calls"), [("one", 1), ("pairs", 5)])
def test_at_most_five_relations_in_one_call_or_five(tmp_path: Path, relations: str, calls: int) -> None:
    llm = model(relate=alike)
    memory = library(tmp_path, llm, relations=relations)
    say(memory, *[f"% @{10 * at}" for at in range(8)])
    end(memory)
    found = links(memory)
    assert [one.to for one in found["gt-000008"]] == [f"gt-{at:06d}" for at in (3, 4, 5, 6, 7)]
    assert max(map(len, found.values())) == 5
    everything(memory)
    llm.calls.clear()
    say(memory, "@80", session="s3")
    end(memory)
    assert asked(llm).count("relate") == calls


# ── reading ─────────────────────────────────────────────────────────────────────────────────────


def events(memory: Memory, query: str, budget: int = 400) -> dict[str, Any]:
    """The turns of a question's trace by id."""
    trace = {step.stage: step.found for step in memory.retrieve(query, budget).trace}
    return {one.id: one for one in trace["turns"]}


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


@pytest.mark.parametrize(
    ("settings", "turns"),
    [({"neighbours": 0}, {"1", "4"}), ({"network": False}, {"1", "2", "3", "4"}), ({}, {"1", "3", "4"})],
)
def test_parts_of_the_network_may_be_left_out(
    tmp_path: Path, settings: dict[str, Any], turns: set[str]
) -> None:
    llm = model(relate=lambda _: {"relations": [row(other="2")]})
    memory = library(tmp_path, llm, anchors=1, **settings)
    say(memory, "@0 a", "% @80 b", "% @50 c")
    end(memory)
    assert set(events(memory, "@0")) == turns


def test_of_several_edges_to_a_neighbour_the_heaviest_counts(tmp_path: Path) -> None:
    replies = iter([[row(confidence=0.6)], [row(confidence=0.9, other="2")]])
    memory = library(tmp_path, model(relate=lambda _: {"relations": next(replies)}), anchors=2)
    say(memory, "@60 a", "% @20 b", "% @10 c")
    end(memory)
    assert {name: [(one.to, one.weight) for one in found] for name, found in links(memory).items()} == {
        "gt-000002": [("gt-000001", 0.6)],
        "gt-000003": [("gt-000001", 0.9)],
    }
    (step,) = (step for step in memory.retrieve("@20").trace if step.stage == "neighbours")
    assert [(one.id, one.via, one.score) for one in step.found] == [("gt-000001", "gt-000003", 0.9)]


def test_a_speakers_name_says_nothing_of_what_that_one_said(tmp_path: Path) -> None:
    """Of a question the first direction counts, and the speaker is called like one."""
    memory = library(tmp_path, model())
    memory.observe([turn("@70 a", speaker="Bob")])
    assert events(memory, "What did @70 say of @20?")["1"].parts["cosine"] == 1.0
    memory.observe([turn("@20 b", speaker="70")])
    assert events(memory, "What did @70 say of @20?")["2"].parts["cosine"] == 1.0


def test_the_turn_of_a_moment_ago_is_found(tmp_path: Path) -> None:
    memory = library(tmp_path, model())
    say(memory, "@60 a")
    end(memory)
    say(memory, "@20 just now")
    assert memory.retrieve("@20").items[0].text == "@20 just now"
    assert memory.read("@20", "drill", 400).items[-1].text == "@20 just now"


def spoken(root: Path, **settings: Any) -> Memory:
    memory = library(root, model(), **settings)
    memory.observe(
        [
            turn("@20 I came on 3 May 2023", speaker="Ann"),
            turn("@20 I came by train", speaker="Rob"),
            turn("% @24 It was fun", speaker="Rob"),
        ]
    )
    end(memory)
    return memory


def test_the_trace_tells_each_factor_of_each_turn(tmp_path: Path) -> None:
    found = events(spoken(tmp_path), "@22 when did Rob come?")
    told = {name: (one.parts["time"], one.parts["role"], one.parts["conf"]) for name, one in found.items()}
    assert told == {"1": (1, 0, 1), "2": (0, 1, 1), "3": (0, 1, 1), "4": (0, 0, 1)}
    for one in found.values():
        worth = 1.4 ** (one.parts["time"] + one.parts["role"]) * 1.2 ** one.parts["conf"]
        assert one.score == pytest.approx(one.parts["p"] * worth, abs=2e-6)


@pytest.mark.parametrize("settings", [{"factors": False}, {"beta_time": 1, "beta_role": 1, "beta_conf": 1}])
def test_without_factors_the_probability_alone_counts(tmp_path: Path, settings: dict[str, Any]) -> None:
    found = [*events(spoken(tmp_path, **settings), "@22 when did Rob come?").values()]
    assert all(one.score == one.parts["p"] for one in found)
    assert [one.id for one in found] == ["1", "2", "3", "4"]


def test_no_factor_lifts_what_has_nothing_to_do_with_the_question(tmp_path: Path) -> None:
    memory = library(tmp_path, model())
    memory.observe([turn("@20 about it", speaker="Ann"), turn("@90 on 3 May 2023", speaker="Rob")])
    assert [item.seqs for item in memory.retrieve("@20 when did Rob come?").items] == [(1,), (2,)]


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


def test_without_turns_the_summaries_of_topics_are_shown(tmp_path: Path) -> None:
    memory = library(tmp_path, model(), drill=False)
    say(memory, "@20 a", "@22 b", "% @60 c")
    end(memory)
    for items in (memory.retrieve("@20").items, memory.read("@20", "drill", 400).items):
        assert [item.text for item in items] == ["It was @20.", "It was @60."]


def test_topics_and_turns_may_be_ranked_by_the_librarys_search(tmp_path: Path) -> None:
    memory = library(tmp_path, model(), rerank="library", anchors=1)
    say(memory, "@20 a zither", "% @60 an oboe", "@20 a zither again")
    end(memory)
    trace = {step.stage: [one.id for one in step.found] for step in memory.retrieve("a zither").trace}
    assert trace["anchors"] == ["gt-000001"] and trace["turns"] == ["1"]
    assert memory.retrieve("zither").items[0].seqs == (1,)


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


@pytest.mark.parametrize("seed", range(4))
def test_one_call_or_many_give_the_same_topics(tmp_path: Path, seed: int) -> None:
    whole = library(tmp_path / "whole", model(relate=alike), active_tokens=400)
    whole.observe(talk(seed))
    parts = library(tmp_path / "parts", model(relate=alike), active_tokens=400)
    observe_in_parts(parts, talk(seed), seed)
    one, two = (made(tmp_path / name) for name in ("whole", "parts"))
    assert one == two and len(one) > 4
    everything(parts)


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
