"""xMemory over a library: blocks, episodes, facts and themes, and what a question is shown of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xmemory_library import blocks, library, model, records, themes, turns

from infinimem.errors import ModelUnavailable
from infinimem.llm.base import Reply
from infinimem.llm.scripted import ScriptedLLM
from infinimem.memory import Memory
from infinimem.model import Evidence, Step
from infinimem.strategies.vector_index import Loaded
from infinimem.strategies.xmemory.themes import Themes


def calls(llm: ScriptedLLM, task: str) -> int:
    return sum(call.task == task for call in llm.calls)


def step(evidence: Evidence, stage: str) -> Step:
    (found,) = (one for one in evidence.trace if one.stage == stage)
    return found


class TestBlocks:
    def test_a_block_ends_where_another_topic_begins_and_stands_nowhere_until_then(
        self, tmp_path: Path
    ) -> None:
        llm = model()
        memory = library(tmp_path, llm)
        memory.observe(turns("a @1", "b @2", "New c @50"))
        assert blocks(memory) == {"xe-000001": [1, 2]} and memory.status()["open"] == 1
        assert memory.view.uncited() == ()
        told = [call.variables for call in llm.calls if call.task == "episode"]
        assert [one["reason"] for one in told] == ["news in 3"]

    def test_a_first_message_ends_nothing_and_asks_nobody(self, tmp_path: Path) -> None:
        llm = model()
        memory = library(tmp_path, llm)
        memory.observe(turns("New a @1"))
        assert not llm.calls and not blocks(memory)

    def test_messages_that_nothing_cuts_are_a_block_at_twenty(self, tmp_path: Path) -> None:
        memory = library(tmp_path, model())
        memory.observe(turns(*(f"word {n}" for n in range(20))))
        assert not blocks(memory)
        memory.observe(turns("one more"))
        assert blocks(memory) == {"xe-000001": [*range(1, 21)]}

    def test_another_session_ends_what_is_open_and_consolidating_ends_all(self, tmp_path: Path) -> None:
        memory = library(tmp_path, model())
        memory.observe(turns("a @1", "b @2"))
        memory.observe(turns("c @3", session="s2"))
        assert blocks(memory) == {"xe-000001": [1, 2]}
        memory.observe(turns("d @4"))  # the first session goes on, and ends nothing
        assert blocks(memory) == {"xe-000001": [1, 2]}
        memory.consolidate()
        assert blocks(memory) == {"xe-000001": [1, 2], "xe-000003": [3], "xe-000004": [4]}
        assert memory.consolidate() is None

    @pytest.mark.parametrize("segmenter", ["each", "batch"])
    def test_one_call_or_many_make_the_same_records(self, tmp_path: Path, segmenter: str) -> None:
        said = [
            *turns(*(f"{'New ' * (n % 7 == 3)}{n} @{n * 13 % 90}" for n in range(31))),
            *turns("x @1", "New y @2", session="s2"),
            *turns("z @3"),
        ]
        made = []
        for name, size in (("one", 99), ("many", 1), ("some", 5)):
            memory = library(tmp_path / name, model(), segmenter=segmenter)
            for start in range(0, len(said), size):
                memory.observe(said[start : start + size])
            memory.consolidate()
            root = tmp_path / name / "xmemory"
            made.append({str(one.relative_to(root)): one.read_text() for one in sorted(root.rglob("*.md"))})
        assert made[0] == made[1] == made[2] and len(made[0]) > 30

    def test_in_batches_a_model_is_asked_once_a_block_is_full(self, tmp_path: Path) -> None:
        llm = model()
        memory = library(tmp_path, llm, segmenter="batch", block_max=6)
        memory.observe(turns("a", "b", "New c", "New d", "e"))
        assert not llm.calls
        memory.observe(turns("f"))
        assert calls(llm, "segment") == 1 and blocks(memory) == {"xe-000001": [1, 2], "xe-000003": [3]}
        memory.observe(turns("g", "h"))
        memory.observe(turns("i"))
        assert calls(llm, "segment") == 2 and blocks(memory)["xe-000004"] == [4, 5, 6, 7, 8, 9]

    def test_a_reply_about_segments_that_cannot_be_read_cuts_nothing(self, tmp_path: Path) -> None:
        memory = library(tmp_path, model(segment=lambda _: "no"))
        memory.observe(turns("a @1", "New b @2"))
        memory.consolidate()
        assert blocks(memory) == {"xe-000001": [1, 2]}

    @pytest.mark.parametrize("task", ["segment", "episode", "facts", "theme"])
    def test_a_model_that_falls_silent_leaves_nothing_half_written(self, tmp_path: Path, task: str) -> None:
        def silent(_: object) -> Any:
            raise ModelUnavailable("nobody answers")

        memory = library(tmp_path, model(**{task: silent}))
        with pytest.raises(ModelUnavailable):
            memory.observe(turns("a @1", "b @2", "New c @50"))
        assert not blocks(memory) and len(memory.view.uncited()) == 3
        assert library(tmp_path, model()).observe(()) and blocks(memory) == {"xe-000001": [1, 2]}


class TestRecords:
    def test_what_a_model_tells_is_kept_with_its_turns(self, tmp_path: Path) -> None:
        memory = library(tmp_path, model())
        memory.observe(turns("a @1", "b", "New c @50"))
        told = (tmp_path / "xmemory/episodes/xe-000001.md").read_text()
        assert 'summary: "Talk of a @1"\n' in told and "\n  - {ref: 1-2}\n" in told
        assert "---\nThey said a @1.\n\n> Ann: a @1\n\n> Rob: b\n" in told
        fact = (tmp_path / "xmemory/facts/xf-000001-01.md").read_text()
        assert 'summary: "Ann said a @1"\n' in fact and "  - {type: source, to: xe-000001}\n" in fact
        group = (tmp_path / "xmemory/themes/xt-000001.md").read_text()
        assert 'summary: "Ann said a @1"\n' in group and "  - {record: xf-000001-01}\n" in group

    @pytest.mark.parametrize("reply", ["no", {"title": "T", "content": " \n", "when": None}])
    def test_a_block_without_an_episode_stays_open(self, tmp_path: Path, reply: Any) -> None:
        memory = library(tmp_path, model(episode=lambda _: reply))
        memory.observe(turns("a @1", "b @2", "New c @50"))
        assert not records(memory, "episode") and list(memory.unanswered()) == [1, 2]
        assert memory.retrieve("@1").items

    def test_facts_without_a_source_or_said_twice_are_none(self, tmp_path: Path) -> None:
        rows = [("Cat @1 is Ann's.", ["1"]), ("Cat @1 is Ann's", ["2"]), ("@2", ["9"]), (" ", ["1"])]
        reply = {"facts": [{"text": text, "from": ids} for text, ids in rows]}
        memory = library(tmp_path, model(facts=lambda _: reply))
        memory.observe(turns("I have a cat @1.", "b", "New c"))
        assert [one.summary for one in records(memory, "fact").values()] == ["Cat @1 is Ann's."]

    def test_what_claims_too_much_is_marked_and_a_guessed_time_is_refused(self, tmp_path: Path) -> None:
        told = {"title": "Ann in Rome", "content": "Ann was in Rome 17 times.", "when": "2019-04"}
        fact = {"facts": [{"text": "Ann owns 9 boats @1.", "from": ["1"]}]}
        memory = library(tmp_path, model(episode=lambda _: told, facts=lambda _: fact))
        memory.observe(turns("I was away yesterday.", "b", "New c"))
        (found,) = records(memory, "episode").values()
        assert dict(found.aux) == {"unverified": "true"} and found.when is None
        assert dict(records(memory, "fact")["xf-000001-01"].aux) == {"unverified": "true"}
        memory = library(tmp_path / "2", model(episode=lambda _: told | {"when": "2025-01-03"}))
        memory.observe(turns("I was away yesterday.", "b", "New c"))
        assert records(memory, "episode")["xe-000001"].when == "2025-01-03"

    def test_a_theme_that_a_model_cannot_name_has_its_newest_fact(self, tmp_path: Path) -> None:
        memory = library(tmp_path, model(theme=lambda _: {"summary": " "}))
        memory.observe(turns("a @1", "b @2", "New c @50"))
        (found,) = records(memory, "theme").values()
        assert found.summary == "Ann said b @2"


def angles(memory: Memory) -> list[list[str]]:
    """Where the facts of each theme lie."""
    named = records(memory, "fact")
    return [[named[fact].summary.rpartition("@")[2] for fact in facts] for facts in themes(memory).values()]


class TestThemes:
    def test_the_model_names_the_themes_that_changed_and_no_others(self, tmp_path: Path) -> None:
        llm = model()
        memory = library(tmp_path, llm)
        memory.observe(turns("a @0", "b @45", "c @90", "New d @1", "e @2", "New f"))
        assert angles(memory) == [["0", "1", "2"], ["45"], ["90"]]
        assert calls(llm, "theme") == 1  # three themes of a fact each have its name
        assert records(memory, "theme")["xt-000001"].summary == "3 facts at @0"

    def test_a_theme_over_the_cap_is_split_and_the_facts_that_left_say_from_where(
        self, tmp_path: Path
    ) -> None:
        memory = library(tmp_path, model(), theme_max=4, attach=0.8)
        memory.observe(turns("a @0", "b @1", "c @2", "d @30", "e @31", "New f"))
        assert angles(memory) == [["0", "1", "2"], ["30", "31"]]
        kept, made = records(memory, "theme").values()
        assert (kept.id, made.id) == ("xt-000001", "xt-000001-01") and not kept.moved
        assert made.moved == tuple((fact, "xt-000001") for fact in made.sources)
        told = (tmp_path / "xmemory/themes/xt-000001-01.md").read_text()
        assert "  - {record: xf-000001-04, was: xt-000001}\n" in told
        aux = dict(made.aux)
        assert aux["made"] == "split" and float(aux["f"]) > 1 and aux["from"]
        assert memory.status()["reassigned"] == 2 and memory.status()["sizes"] == {"2": 1, "3": 1}
        picture = memory.strategy.graph(memory.view, "xt-000001-01", 2)
        assert f"split: f {aux['from']} to {aux['f']}" in picture.nodes[0].label
        assert {link.kind for _, link in picture.links} >= {"holds", "source"}

    def test_a_theme_that_was_merged_away_is_archived_behind_the_one_that_took_its_facts(
        self, tmp_path: Path
    ) -> None:
        near = {"attach": 0.997, "attach_room": 0.997, "merge_min": 0.994, "tiny_min": 0.994}
        memory = library(tmp_path, model(), **near)
        memory.observe(turns("a @90", "b @90", "c @0", "d @8", "New e @4", "New f"))
        assert angles(memory) == [["90", "90"], ["0", "8", "4"]]
        kept, gone = themes(memory), [one for one in records(memory, "theme").values() if not one.visible]
        assert [one.id for one in gone] == ["xt-000001-02"] and [*kept] == ["xt-000001", "xt-000001-01"]
        told = (tmp_path / "xmemory/themes/xt-000001-01.md").read_text()
        assert "  - {record: xf-000001-04, was: xt-000001-02}\n" in told
        assert "  - {type: version, to: xt-000001-02}\n" in told and "made: merge" in told
        assert (tmp_path / "xmemory/archive/xt-000001-02.md").exists() and memory.status()["archived"] == 1
        assert [one for one in memory.doctor() if one.level == "error"] == []

    def test_without_splits_and_merges_no_fact_moves(self, tmp_path: Path) -> None:
        texts = [f"{'New ' * (n % 4 == 0)}{n} @{n * 37 % 90}" for n in range(40)]
        for number, (split, merge) in enumerate(((False, False), (True, True))):
            memory = library(
                tmp_path / str(number),
                model(),
                split=split,
                merge=merge,
                theme_max=3,
                attach=0.8,
                attach_room=0.8,
                merge_min=0.9,
                tiny_min=0.9,
            )
            memory.observe(turns(*texts))
            memory.consolidate()
            assert (memory.status()["reassigned"] > 0) == split and memory.status()["facts"] == 40

    def test_a_fact_that_lost_its_theme_is_put_into_one_again(self, tmp_path: Path) -> None:
        memory = library(tmp_path, model())
        memory.observe(turns("a @0", "b @1", "c @60", "New d"))
        (tmp_path / "xmemory/themes/xt-000001.md").unlink()
        memory.consolidate()
        assert sorted(angles(memory)) == [["0", "1"], ["60"]]
        assert [one for one in memory.doctor() if one.level == "error"] == []

    def test_which_theme_a_fact_is_in_follows_what_people_change(self, tmp_path: Path) -> None:
        memory = library(tmp_path, model())
        memory.observe(turns("a @0", "b @1", "New c @60", "d @61", "New e"))

        def held() -> tuple[dict[str, tuple[str, ...]], set[str]]:
            known, anew = memory.view.derived(Themes.load), Themes.load(memory.view, None, None)
            assert (known.facts, known.of, known.loose) == (anew.facts, anew.of, anew.loose)
            return known.facts, known.loose

        a, b, c, d = records(memory, "fact")
        assert held() == ({"xt-000001": (a, b), "xt-000003": (c, d)}, set())
        path = tmp_path / "xmemory/themes/xt-000003.md"
        path.write_text(path.read_text().replace("evidence:\n", f"evidence:\n  - {{record: {a}}}\n"))
        assert held() == ({"xt-000001": (a, b), "xt-000003": (c, d)}, set())
        (tmp_path / "xmemory/themes/xt-000001.md").unlink()
        assert held() == ({"xt-000003": (a, c, d)}, {b})
        for name in (c, b):
            (tmp_path / f"xmemory/facts/{name}.md").unlink()
        assert held() == ({"xt-000003": (a, d)}, set())

    def test_of_two_themes_that_hold_a_fact_the_older_counts_and_doctor_says_so(self, tmp_path: Path) -> None:
        memory = library(tmp_path, model())
        memory.observe(turns("a @0", "New b @60", "New c"))
        path = tmp_path / "xmemory/themes/xt-000002.md"
        path.write_text(path.read_text().replace("evidence:\n", "evidence:\n  - {record: xf-000001-01}\n"))
        wrong = [one for one in memory.doctor() if one.level == "error"]
        assert [one.where for one in wrong] == ["xmemory/themes/xt-000002"] and "xt-000001 too" in wrong[
            0
        ].what
        assert memory.status()["sizes"] == {"1": 2}


class TestPeople:
    def test_an_edited_fact_lies_where_its_words_do_and_so_does_its_theme(self, tmp_path: Path) -> None:
        memory = library(tmp_path, model())
        memory.observe(turns("a @0", "b @1", "New c @40", "New d"))
        assert angles(memory) == [["0", "1"], ["40"]]
        path = tmp_path / "xmemory/facts/xf-000001-01.md"
        path.write_text(path.read_text().replace('summary: "Ann said a @0"', 'summary: "Ann said a @5"'))
        memory.observe(turns("New e @12", "New f"))
        assert angles(memory) == [["5", "1", "12"], ["40"]]

    def test_what_a_person_wrote_of_a_theme_goes_when_it_changes_unless_it_is_pinned(
        self, tmp_path: Path
    ) -> None:
        for pin, expected in (("", "2 facts at @0"), ("pin: true\n", "Mine @5")):
            root = tmp_path / (pin.strip(": \n") or "free")
            memory = library(root, model())
            memory.observe(turns("a @0", "New b"))
            path = root / "xmemory/themes/xt-000001.md"
            path.write_text(path.read_text().replace('summary: "Ann said a @0"', f'{pin}summary: "Mine @5"'))
            memory.observe(turns("New c @1", "New d"))
            assert records(memory, "theme")["xt-000001"].summary == expected
            assert angles(memory) == [["0", "1"]]

    def test_a_pinned_theme_takes_facts_while_there_is_room_and_is_neither_split_nor_merged(
        self, tmp_path: Path
    ) -> None:
        memory = library(tmp_path, model(), theme_max=3)
        memory.observe(turns("a @0", "New b"))
        path = tmp_path / "xmemory/themes/xt-000001.md"
        path.write_text(path.read_text().replace("keywords:", "pin: true\nkeywords:"))
        memory.observe(turns("New c @0", "d @1", "e @2", "f @3", "New g"))
        assert [len(facts) for facts in themes(memory).values()] == [3, 2]

    def test_a_forgotten_turn_takes_its_block_along_and_the_rest_is_told_anew(self, tmp_path: Path) -> None:
        memory = library(tmp_path, model())
        memory.observe(turns("a @0", "secret @1", "c @2", "New d @3", "e @60", "New f"))
        assert angles(memory) == [["0", "1", "2", "3"], ["60"]]
        memory.forget([2])
        left = {path.name for path in (tmp_path / "xmemory").rglob("*.md")}
        assert "xe-000001.md" not in left and "xe-000004.md" in left
        assert not any("secret" in path.read_text() for path in tmp_path.rglob("*.md"))
        memory.consolidate()
        assert blocks(memory) == {"xe-000001": [1, 3], "xe-000004": [4, 5], "xe-000006": [6]}
        assert sorted(map(sorted, angles(memory))) == [["0", "2", "3"], ["60"]]
        assert [one for one in memory.doctor() if one.level == "error"] == []

    def test_an_undone_block_is_open_again(self, tmp_path: Path) -> None:
        memory = library(tmp_path, model())
        memory.observe(turns("a @0", "b @1", "New c @2"))
        memory.undo()
        assert not blocks(memory) and memory.status()["open"] == 3
        memory.consolidate()
        assert [*blocks(memory).values()] == [[1, 2, 3]]


class TestReading:
    """What a question is shown; @ in it is where it lies."""

    def told(self, root: Path, llm: ScriptedLLM | None = None, **settings: object) -> Memory:
        memory = library(root, llm or model(), **{"neighbours": 0, "rank": "cosine", **settings})
        memory.observe(
            turns("tea @0", "milk @1", "New rain @40", "wind @41", "New boats @80", "nets @81", "New end")
        )
        return memory

    def test_a_question_goes_from_themes_to_facts_to_episodes(self, tmp_path: Path) -> None:
        memory = self.told(tmp_path, gate="coverage")
        found = memory.read("boats @80", "hierarchy")
        assert [one.id for one in step(found, "themes").found] == ["xt-000005", "xt-000003", "xt-000001"]
        assert [one.id for one in step(found, "facts").found][:2] == ["xf-000005-01", "xf-000005-02"]
        assert step(found, "episodes").found[0].id == "xe-000005"
        assert found.items[0].text == "Ann said New boats @80" and found.items[0].origin == (5,)
        assert [one.stage for one in found.trace][-1] == "evidence"

    def test_of_two_twins_the_second_comes_after_other_themes(self, tmp_path: Path) -> None:
        memory = library(tmp_path, model(), neighbours=1, gate="none", rank="cosine")
        texts = (f"{name} @{at}" for name, at in zip("abcdefgh", (0, 0, *range(40, 280, 40)), strict=True))
        memory.observe(turns(*texts, "New end"))
        taken = [one.id for one in step(memory.read("@0", "hierarchy"), "facts").found]
        assert taken[0] == "xf-000001-01" and "xf-000001-02" not in taken and len(taken) > 2

    def test_in_a_small_library_no_theme_stands_for_all(self, tmp_path: Path) -> None:
        memory = self.told(tmp_path, neighbours=10, gate="none")
        for where in ("@0", "@40", "@80"):
            found = memory.read(where, "hierarchy")
            assert len(step(found, "themes").found) == 3 and where in found.items[0].text

    def test_by_coverage_episodes_are_shown_while_they_add_a_word_of_the_question(
        self, tmp_path: Path
    ) -> None:
        def told(variables: Mapping[str, Any]) -> dict[str, Any]:
            text = variables["turns"][0]["text"]
            extra = {"tea": "A kettle stood there.", "rain": "An umbrella broke."}.get(text.split()[0], "")
            return {"title": f"Of {text}", "content": f"They spoke {text}. {extra}", "when": None}

        memory = self.told(tmp_path, model(episode=told), gate="coverage")
        gate = step(memory.read("Was there a kettle? @1", "hierarchy"), "gate")
        assert [one.id for one in gate.found] == ["xe-000001"] and gate.found[0].parts == {"gain": 1}
        assert gate.stop == "probe 2 adds too little" and not gate.found[0].via
        gate = step(memory.read("Was there milk in the kettle? @1", "hierarchy"), "gate")
        assert gate.found[0].parts == {"gain": 1}  # a fact has the milk

    def test_one_call_says_which_episodes_and_of_which_the_messages(self, tmp_path: Path) -> None:
        reply = {"sufficient": False, "episodes": ["e2", "e9", "xe-000001", "e1"], "messages": ["e1", "e7"]}
        llm = model(gate=[reply])
        memory = self.told(tmp_path, llm)
        found = memory.read("@80", "hierarchy")
        gate = step(found, "gate")
        probed = [one.id for one in step(found, "episodes").found]
        assert [(one.id, one.via) for one in gate.found] == [(probed[1], ""), (probed[0], "messages")]
        asked = llm.calls[-1].variables
        assert [row["id"] for row in asked["episodes"]] == [f"e{n}" for n in range(1, len(probed) + 1)]
        texts = [item.text for item in found.items]
        assert sum("rain" in text for text in texts) == 2  # a fact, an episode
        assert sum("boats" in text for text in texts) == 3  # and a message

    def test_facts_that_are_enough_are_shown_alone(self, tmp_path: Path) -> None:
        memory = self.told(tmp_path, model(gate=[{"sufficient": True, "episodes": [], "messages": []}]))
        found = memory.read("@80", "hierarchy")
        assert step(found, "gate").stop == "done"
        assert all("said" in item.text for item in found.items if item.doc_id.startswith("xmemory/"))

    def test_a_choice_that_cannot_be_read_shows_the_first_three(self, tmp_path: Path) -> None:
        memory = self.told(tmp_path, model(gate=["no"]))
        gate = step(memory.read("@80", "hierarchy"), "gate")
        assert len(gate.found) == 3 and gate.failure == "JSON_PARSE_FAIL"

    def test_an_episode_that_makes_a_model_less_sure_ends_it(self, tmp_path: Path) -> None:
        def sure(loss: float) -> Reply:
            return Reply({"answer": "x"}, logprobs=(("x", -loss),))

        llm = model(guess=[sure(1.0), sure(2.0)])
        gate = step(self.told(tmp_path, llm, gate="loss").read("@80", "hierarchy"), "gate")
        assert calls(llm, "guess") == 2 and gate.asked == ("H0 1.0", "-1.0")
        assert len(gate.found) == 1 and gate.found[0].parts == {"gain": -1.0} and not gate.found[0].via
        assert gate.stop == "probe 1 adds too little"
        llm = model(guess=[sure(1.0), sure(0.5), sure(0.9), sure(1.2)])
        gate = step(self.told(tmp_path / "2", llm, gate="loss").read("@80", "hierarchy"), "gate")
        assert [(one.parts["gain"], one.via) for one in gate.found] == [
            (0.5, "messages"),
            (0.1, ""),
            (-0.2, ""),
        ]

    def test_a_model_without_log_probabilities_leaves_it_to_words(self, tmp_path: Path) -> None:
        memory = self.told(tmp_path, model(guess=lambda _: {"answer": "x"}), gate="loss")
        gate = step(memory.read("@80", "hierarchy"), "gate")
        assert gate.failure == "the model tells no log probabilities" and len(gate.found) == 1

    def test_open_turns_are_found_too(self, tmp_path: Path) -> None:
        memory = self.told(tmp_path, gate="none")
        memory.observe(turns("The pelican stole a sandwich."))
        for found in (memory.retrieve("pelican"), memory.read("pelican", "hierarchy")):
            assert "The pelican stole a sandwich." in [item.text for item in found.items]

    def test_turns_are_ranked_by_what_shows_them(self, tmp_path: Path) -> None:
        found = self.told(tmp_path).retrieve("boats @80")
        assert found.items[0].text == "New boats @80" and found.items[0].doc_id.startswith("evidence/")

    def test_without_records_turns_alone_are_shown(self, tmp_path: Path) -> None:
        found = self.told(tmp_path, records=False).retrieve("boats")
        assert found.items[0].text == "New boats @80"
        assert not [one for one in found.trace if one.stage in ("themes", "facts", "episodes")]


def test_neighbours_are_those_of_brute_force_after_many_inserts_and_a_deletion(tmp_path: Path) -> None:
    memory = library(tmp_path, model(), block_max=25)
    texts = [f"{n} @{n * 7919 % 360}" for n in range(500)]
    loaded = Loaded()
    memory.observe(turns(*texts[:250]))
    with loaded.at(memory.view):
        pass
    memory.observe(turns(*texts[250:]))
    memory.consolidate()
    (tmp_path / "xmemory/facts/xf-000101-03.md").unlink()
    with loaded.at(memory.view) as (store, index):
        names = sorted(name for name in store.visible if name.startswith("xf-"))
        assert len(names) == 499
        rows = np.stack([index.row(name) for name in names]).astype(np.float64)
        cosines = np.round(rows @ rows.T, 6)
        some = names[::50]
        for name, found in index.neighbours(some, 10).items():
            row = cosines[names.index(name)]
            others = sorted(
                (at for at in range(499) if names[at] != name), key=lambda at: (-row[at], names[at])
            )
            assert [one for one, _ in found] == [names[at] for at in others[:10]]


def test_the_counts_of_a_library_can_be_told_as_json(tmp_path: Path) -> None:
    memory = library(tmp_path, model())
    memory.observe(turns("a @0", "b @60", "New c"))
    status = json.loads(json.dumps(memory.status()))
    assert (status["open"], status["episodes"], status["facts"], status["themes"]) == (1, 1, 2, 2)
    assert memory.estimate() > 0
