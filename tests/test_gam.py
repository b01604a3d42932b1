"""GAM's acceptance: what a topic is, what a question finds by it, and what people may do to one."""

from __future__ import annotations

from pathlib import Path

from gam_library import (
    alike,
    asked,
    end,
    held,
    library,
    links,
    model,
    say,
    topics,
    turn,
)

from infinimem import open_memory
from infinimem.strategies.gam.spec import GamSettings

# ── what ends a topic ───────────────────────────────────────────────────────────────────────────


LONG = "word " * 30
"""Some thirty tokens."""


def test_too_many_turns_are_one_topic_where_no_reply_can_be_read(tmp_path: Path) -> None:
    memory = library(tmp_path, model(segment=lambda _: "no JSON"), active_tokens=100, gap_minutes=0)
    memory.observe([turn(LONG) for _ in range(5)])
    assert list(held(memory).values()) == [[1, 2, 3, 4]]
    assert ("forced", "true") in topics(memory)["gt-000001"].aux
    assert any("segment" in note for note in memory.receipts()[0].notes)


# ── what a topic is ─────────────────────────────────────────────────────────────────────────────


def test_a_topic_quotes_its_turns_and_tells_its_session(tmp_path: Path) -> None:
    memory = library(tmp_path, model())
    say(memory, "@20 a", "@20 b")
    end(memory)
    text = (tmp_path / "gam" / "topics" / "gt-000001.md").read_text()
    assert "  - {ref: 1-2}\n" in text and "> Ann: @20 a\n\n> Ann: @20 b\n" in text
    assert "session: 2025-01-04-s1\n" in text and "time: 2025-01-04T10:00:00\n" in text


# ── reading ─────────────────────────────────────────────────────────────────────────────────────


def test_a_question_goes_to_topics_those_related_and_their_turns(tmp_path: Path) -> None:
    near = {"id": "[2]", "relation": "causal", "confidence": 0.9}
    memory = library(tmp_path, model(relate=lambda _: {"relations": [near]}), anchors=1)
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


def test_a_model_doubts_a_topic_and_tells_which_turns_name_the_time(tmp_path: Path) -> None:
    """Section 4.1, by light prompts; `retrieve` asks no model."""
    doubt, told = {"unsupported": ["It was"]}, {"turns": ["2", "99"]}
    llm = model(verify_topic=lambda _: doubt, time_cues=lambda _: told)
    memory = library(tmp_path, llm, cues="model")
    say(memory, "@20 a, yesterday", "@22 b")
    end(memory)
    assert ("unverified", "true") in topics(memory)["gt-000001"].aux and asked(llm)[-1] == "verify_topic"
    calls = len(llm.calls)
    by_rule, by_model = memory.retrieve("When was @21?"), memory.read("When was @21?", "drill", 400)
    for evidence, timed in ((by_rule, ["1"]), (by_model, ["2"])):
        (turns,) = (step.found for step in evidence.trace if step.stage == "turns")
        assert [one.id for one in turns if one.parts["time"]] == timed
        assert not any(one.parts["conf"] for one in turns if one.via)
    assert asked(llm)[calls:] == ["time_cues"]


def test_the_papers_form_has_a_name(tmp_path: Path) -> None:
    (tmp_path / "infinimem.toml").write_text('strategy = "gam"\npreset = "paper"\n')
    own = open_memory(tmp_path, model="offline").library.settings.of(GamSettings)
    assert (own.relations, own.rerank, own.cues) == ("pairs", "cosine", "model")
