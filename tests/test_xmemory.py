"""xMemory over a library: blocks, episodes, facts and themes, and what a question is shown of them.

Facts lie where "@40" in a text says, a direction (recmem_library.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recmem_library import Angles, opened

from infinimem import Turn, open_memory
from infinimem.errors import LibraryError, ModelNotConfigured
from infinimem.llm.base import LLM, Reply, Task
from infinimem.memory import Memory
from infinimem.model import Evidence, Stage, Usage
from infinimem.strategies.records.record import Record
from infinimem.strategies.records.record_store import Loaded, RecordStore
from infinimem.strategies.xmemory.spec import XmemorySettings
from infinimem.testing import Script, ScriptedLLM

TIME = "2025-01-04T10:00:00"
ANSWERED = {"answer": "boats", "cites": []}


def cuts(variables: Mapping[str, Any]) -> dict[str, Any]:
    """A block begins where a turn says so."""
    news = (turn["id"] for turn in variables["turns"][1:] if turn["text"].startswith("New"))
    return {"cuts": [{"before": name, "reason": f"news in {name}"} for name in news]}


def episode(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Told in the words of its first turn, where that lies."""
    first = variables["turns"][0]
    return {"title": f"Talk of {first['text']}", "content": f"They said {first['text']}.", "when": None}


def facts(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Each turn that lies somewhere is a fact."""
    rows = (turn for turn in variables["turns"] if re.search(r"@\d", turn["text"]))
    return {"facts": [{"text": f"Ann said {turn['text']}", "from": [turn["id"]]} for turn in rows]}


def theme(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Lies where its first fact does."""
    rows = variables["facts"]
    return {"summary": f"{len(rows)} facts at {re.findall(r'@[0-9]+', rows[0]['text'])[0]}"}


def model(**scripts: Script | Callable[..., Any]) -> ScriptedLLM:
    """A model that does as above, unless told."""
    usual: dict[str, Any] = {"segment": cuts, "episode": episode, "facts": facts, "theme": theme}
    return ScriptedLLM({**usual, **scripts})


def library(root: Path, llm: LLM | str, **settings: object) -> Memory:
    """One whose themes are of facts within ten degrees."""
    near = {"attach": 0.985, "attach_room": 0.985, "merge_min": 0.99, "tiny_min": 0.99, "edge": 0.99}
    return opened(root, "xmemory", llm, {**near, "purity": 0.9, **settings})


def turns(*texts: str, session: str = "s1") -> list[Turn]:
    return [
        Turn(text, session=session, speaker=("Ann", "Rob")[at % 2], time=TIME)
        for at, text in enumerate(texts)
    ]


def records(memory: Memory, kind: str) -> dict[str, Record]:
    """The records of a kind, by id; those that are archived as well."""
    store = memory.view.derived(RecordStore.load).records
    return {name: record for name, record in sorted(store.items()) if record.kind.name == kind}


def blocks(memory: Memory) -> dict[str, list[int]]:
    """The turns of each episode."""
    return {name: [ref.seq for ref in record.refs] for name, record in records(memory, "episode").items()}


def themes(memory: Memory) -> dict[str, list[str]]:
    """The facts of each theme that is not archived."""
    return {name: list(one.sources) for name, one in records(memory, "theme").items() if one.visible}


def calls(llm: ScriptedLLM, task: str) -> int:
    return sum(call.task == task for call in llm.calls)


def step(evidence: Evidence, stage: str) -> Stage:
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


class TestRecords:
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


def angles(memory: Memory) -> list[list[str]]:
    """Where the facts of each theme lie."""
    named = records(memory, "fact")
    return [[named[fact].summary.rpartition("@")[2] for fact in facts] for facts in themes(memory).values()]


class TestThemes:
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
        assert f"split: f {aux['from']} to {aux['f']}" in picture.data["nodes"][0]["label"]
        assert {link["type"] for link in picture.data["links"]} >= {"holds", "source"}

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


class TestPeople:
    def test_doctor_names_a_fact_that_two_themes_hold(self, tmp_path: Path) -> None:
        memory = library(tmp_path, model())
        memory.observe(turns("a @90", "b @90", "New c"))
        theme = tmp_path / "xmemory/themes/xt-000001.md"
        theme.with_stem("xt-000009").write_text(theme.read_text().replace("xt-000001", "xt-000009"))
        errors = [(one.what.split(" too")[0], one.where) for one in memory.doctor() if one.level == "error"]
        assert errors[0] == ("xf-000001-01 is in xt-000001", "xmemory/themes/xt-000009")

    def test_a_pinned_theme_takes_facts_while_there_is_room_and_is_neither_split_nor_merged(
        self, tmp_path: Path
    ) -> None:
        memory = library(tmp_path, model(), theme_max=3)
        memory.observe(turns("a @0", "New b"))
        path = tmp_path / "xmemory/themes/xt-000001.md"
        path.write_text(path.read_text().replace("keywords:", "pin: true\nkeywords:"))
        memory.observe(turns("New c @0", "d @1", "e @2", "f @3", "New g"))
        assert [len(facts) for facts in themes(memory).values()] == [3, 2]


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

    def test_an_episode_is_shown_for_what_it_gains_or_in_spite_of_what_it_costs(self, tmp_path: Path) -> None:
        losses = {"boats": 0.5, "rain": 1.1, "tea": 1.3}

        def guess(variables: Mapping[str, Any]) -> Reply:
            told = "".join(row["text"] for row in variables["episodes"])
            loss = next((loss for word, loss in losses.items() if word in told), 1.0)
            return Reply({"answer": "a"}, text="a", logprobs=(("a", -loss),))

        for gain_min, shown in ((0.3, ["xe-000005"]), (-0.2, ["xe-000005", "xe-000003"])):
            llm = model(guess=guess)
            memory = self.told(tmp_path / str(gain_min), llm, gate="loss", gain_min=gain_min)
            found = step(memory.read("boats @80", "hierarchy"), "gate").found
            assert [one.id for one in found] == shown
            context = next(call.variables for call in llm.calls if call.task == "guess")
            assert context["themes"][0]["text"] == "2 facts at @80"

    def test_another_model_of_the_server_may_say_how_sure_an_answer_is(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        root = tmp_path / "library"
        self.told(root)
        asked: list[tuple[str, str]] = []

        class Server(ScriptedLLM):
            base_url = "http://localhost/v1"

            def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
                asked.append((task.name, task.model))
                logprobs = (("boats", -0.5),) if task.model == "teller" else ()
                reply = super().complete(task, variables)
                return replace(reply, usage=Usage(1, 9, 1), logprobs=logprobs)

        def asking(gate_model: str) -> Memory:
            llm = Server({"guess": lambda _: {"answer": "boats"}, "answer": lambda _: ANSWERED})
            settings = f'[xmemory]\nrank = "cosine"\ngate = "loss"\ngate_model = "{gate_model}"\n'
            (root / "infinimem.toml").write_text(settings)
            return open_memory(root, model=llm, strategy="xmemory", trust=True, embedder=Angles())

        for spent in (50, 0):  # the second time all replies are kept
            memory = asking("teller")
            assert memory.ask("boats @80", "hierarchy").text == "boats"
            assert asked == [*[("guess", "teller")] * 4, ("answer", "")]
            assert memory.llm.spent.tokens == spent
        with pytest.raises(ModelNotConfigured, match=r"silent, the gate_model of .* no log probabilities"):
            asking("silent").ask("boats @80", "hierarchy")

    def test_facts_are_picked_until_a_share_is_covered_by_them_and_their_neighbours(
        self, tmp_path: Path
    ) -> None:
        def facts(**own: object) -> int:
            memory = self.told(tmp_path / str(own), gate="none", **{"neighbours": 10, **own})
            return len(step(memory.read("boats @80", "hierarchy"), "facts").found)

        assert facts(share=7) == 6, "one of six is less than a seventh: each covers itself"
        assert facts(share=7, coverage=0.6) == 3, "of two themes of three three facts of four"
        assert facts(share=1) < facts() == 3

    def test_open_turns_are_found_too(self, tmp_path: Path) -> None:
        memory = self.told(tmp_path, gate="none")
        memory.observe(turns("The pelican stole a sandwich."))
        for found in (memory.retrieve("pelican"), memory.read("pelican", "hierarchy")):
            assert "The pelican stole a sandwich." in [item.text for item in found.items]


def test_undo_brings_no_episode_back_whose_turns_another_tells(tmp_path: Path) -> None:
    memory = library(tmp_path, model())
    memory.observe(turns("a @1", "b @2", "New c @90", "d @91"))
    memory.consolidate()
    for receipt in reversed(memory.receipts()):
        memory.undo(receipt.id)
    memory = library(tmp_path, model(segment=lambda _: {"cuts": []}))
    memory.consolidate()
    with pytest.raises(LibraryError, match="holds its turns now"):
        memory.undo("3")
    assert blocks(memory) == {"xe-000001": [1, 2, 3, 4]}


def test_an_episode_that_a_person_archived_is_shown_no_more(tmp_path: Path) -> None:
    memory = library(tmp_path, "offline")
    memory.observe(turns("I play the piano.", "My piano is old.", "The piano stands in Berlin."))
    memory.consolidate()
    (tmp_path / "xmemory/episodes/xe-000001.md").rename(tmp_path / "xmemory/archive/xe-000001.md")
    cited = memory.ask("Where is the piano?").citations
    assert cited and all(one.doc_id.startswith("xmemory/facts/") for one in cited)


def test_the_papers_form_has_a_name(tmp_path: Path) -> None:
    (tmp_path / "infinimem.toml").write_text(
        'strategy = "xmemory"\npreset = "paper"\n[xmemory]\ngain_min = -0.1\n'
    )
    own = open_memory(tmp_path, model="offline").library.settings.of(XmemorySettings)
    assert (own.rank, own.gate, own.share, own.normaliser) == ("cosine", "loss", 1, "total")
    assert own.gain_min == -0.1, "what is set beside it goes before"


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
