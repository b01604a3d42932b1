"""Methods: their names and settings, what each shows an answerer, and what they cost."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cases import each
from evaluation_data import case

from infinimem.errors import UsageError
from infinimem.evaluation.methods import Embedders, Making, Method, method
from infinimem.evaluation.model import NAMES, parse, parse_all
from infinimem.evaluation.spending import Metered, Spending
from infinimem.llm import tasks
from infinimem.llm.base import LLM, Reply, Task
from infinimem.llm.offline import OfflineClient
from infinimem.model import Usage
from infinimem.strategies.xmemory.spec import PAPER as XMEMORY
from infinimem.testing import ScriptedLLM

SETTINGS = {
    "infini-h:markdown_length=1000:feed=turn": {"infini": {"markdown_length": 1000, "feed": "turn"}},
    "infini:maintenance=false": {"infini": {"maintenance": False}},
    "infini-retrieve:people=false": {"search": {"people": False}},
    "infini-retrieve:search.people=false": {"search": {"people": False}},
    "bm25:language=german": {"search": {"language": "german"}},
    "infini-bm25:stale_seconds=1.5": {"infini": {"stale_seconds": 1.5}},
    "allmem:split=false:anchors=5": {"allmem": {"split": False, "anchors": 5}},
}


@each("text", SETTINGS)
def test_settings_are_named_as_in_the_file(text: str) -> None:
    assert parse(text).settings == SETTINGS[text]


@each(
    ("text", "words"),
    [
        ("infinity", "there are infini, infini-h.*, allmem-ablations, allmem-own"),
        ("allmem:people=false", "known here: embedder, describe_turns"),
        ("infini:anchors=5", "no setting 'anchors'"),
        ("allmem-sweep:colour=red", "no setting 'colour'"),
        ("allmem-sweep,allmem-paper:final=8", "is named twice"),
        ("infini:colour=red", "known here: embedder, feed, chunk_tokens"),
        ("infini:name=agent", "no setting 'name'"),
        ("infini:evidence_budget=9", "no setting"),
        ("bm25:people=false", "known here: language"),
        ("none:language=german", "it takes none"),
        ("infini:markdown_length=many", "a int is wanted"),
        ("infini:feed=wild", "choose one of chunk, turn"),
        ("infini:maintenance", "key=value"),
        ("infini:people=false:people=true", "twice"),
        ("infini:answer_words=none", "a number of 1 or more"),
        ("", "no method is named"),
        ("bm25,bm25", "is named twice"),
    ],
)
def test_what_is_no_method_is_told_with_what_there_is(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as told:
        parse_all(text.split(","))
    assert "\n" not in str(told.value)


@pytest.fixture
def spending() -> Spending:
    return Spending()


@pytest.fixture
def make(tmp_path: Path, spending: Spending) -> Any:
    making: dict[tuple[int, int], Making] = {}  # of two models one

    def maker(text: str, keeper: LLM | None = None, answerer: LLM | None = None) -> Method:
        first, second = (Metered(llm or OfflineClient(), spending) for llm in (keeper, answerer))
        made = Making(tmp_path / "work", first, second, Embedders("lexical"), spending)
        return method(parse(text), making.setdefault((id(keeper), id(answerer)), made))

    return maker


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "name", [name for name in NAMES if name not in ("none", "infini-summary", "infini-search")]
)
def test_every_method_finds_the_turn(name: str, make: Any) -> None:
    history = case("one")
    asked = make(name)
    ingested = asked.ingest(history)
    assert (ingested.method, ingested.case) == (name, "one")
    question = history.questions[2]
    found = asked.retrieve(question).found
    assert question.turns <= {turn for item in found for turn in item.turns}
    told = asked.answer(question, 200)
    assert told.answer and told.found and told.steps[-1]["cited"]
    assert "peanuts" in told.answer or name == "recent"


SHOWN = {
    "none": [],
    "full": [1, 2, 3, 4, 5, 6],
    "recent": [5, 6],
    "grep": [1, 3, 5],
    "bm25": [1, 3, 5],
    "fts5": [1, 3, 5],
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", SHOWN)
def test_what_a_baseline_shows_the_answerer(name: str, make: Any) -> None:
    history = case("one")
    answerer = ScriptedLLM({"answer": lambda _: {"answer": "  Peanuts. ", "cites": []}})
    asked = make(name, answerer=answerer)
    asked.ingest(history)
    assert asked.answer(history.questions[2], 22 if name == "recent" else 40).answer == "Peanuts."
    shown = answerer.calls[0].variables
    lines = [line for doc in shown["evidence"] for line in doc["lines"]]
    assert [int(line["id"]) for line in lines] == SHOWN[name]
    assert shown["now"] == "2024-05-02", "the day of the last turn, where the question has none"
    if lines:
        assert {"2024-05-01", "2024-05-02"} >= {line["time"] for line in lines}
        assert lines[0]["speaker"] in ("Ann", "Ben")


class Counting(OfflineClient):
    """The rules, which count what they are asked."""

    calls = 0

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        self.calls += 1
        return super().complete(task, variables)


def test_methods_that_read_alike_made_libraries_make_one(
    make: Any, tmp_path: Path, spending: Spending
) -> None:
    """Bug guarded: a model paid once for each reader, or a reader that shows another's settings."""
    history, rules = case("one"), Counting()
    costs = [
        make(text, keeper=rules).ingest(history)
        for text in ("infini-h", "infini-retrieve:people=false", "infini:maintenance=false")
    ]
    made = sorted(path.name for path in (tmp_path / "work").iterdir())
    assert made == ["infini", "infini_infini.maintenance=False"]
    assert costs[0].usage == costs[1].usage and costs[0].usage["extract"].calls == 1
    assert costs[0].sizes == costs[1].sizes and sum(costs[0].sizes) > 50
    assert rules.calls == sum(one.calls for made in (0, 2) for one in costs[made].usage.values())
    assert spending.total == Usage(), "rules take nothing of a ceiling"
    assert costs[0].turns == len(history.turns) and costs[0].disk == costs[1].disk > sum(
        len(turn.text) for turn in history.turns
    )


@each(
    ("keys", "turns"),
    [
        ("chunk=30:top=1", [["D:2", "D:3"]]),  # 28, 27 and 21 tokens
        ("chunk=30", [["D:2", "D:3"], ["D:0", "D:1"], ["D:4", "D:5"]]),
        ("chunk=1000", [["D:0", "D:1", "D:2", "D:3", "D:4", "D:5"]]),
        ("top=1", [["D:2"]]),
        ("chunk=1:top=1", [["D:2"]]),
        ("chunk=30:top=1:prune=1", [["D:2"]]),
    ],
)
def test_dense_ranks_chunks_of_whole_turns(keys: str, turns: list[list[str]], make: Any) -> None:
    """Naive RAG of the papers: a chunk takes turns until the next one does not fit."""
    asked = make(f"dense:{keys}")
    asked.ingest(case("one"))
    found = [turn for item in asked.retrieve(case("one").questions[2]).found for turn in item.turns]
    chunks = [found[sum(map(len, turns[:at])) :][: len(chunk)] for at, chunk in enumerate(turns)]
    assert chunks[0] == turns[0] and sorted(chunks) == sorted(turns)


def test_a_preset_is_its_values_and_shares_what_is_written_alike() -> None:
    own, paper = parse("xmemory"), parse("xmemory-paper:gate=none")
    assert paper.settings["xmemory"] == {**XMEMORY, "gate": "none"} and parse("xmemory-paper").settings
    assert paper.library == own.library, "the paper's form of it differs in reading alone"
    assert parse("gam-paper").library != parse("gam").library


@pytest.mark.parametrize("name", ["none", "bm25", "infini-h", "infini"])
@each(
    ("key", "words"),
    [("answer_words=6", "6 words"), ("answer_sentences=1", "sentences, 1 at most"), ("", "")],
)
def test_an_answer_is_held_to_a_length_where_a_method_names_one(
    name: str, key: str, words: str, make: Any
) -> None:
    """Papers ask for answers of a length of their own, and F1 counts words."""
    prompts: list[str] = []

    class Asked(OfflineClient):
        def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
            prompts.extend([tasks.render(task, variables).system] if task.name == "answer" else [])
            return super().complete(task, variables)

    asked = make(f"{name}:{key}".strip(":"), answerer=Asked())
    asked.ingest(case("one"))
    asked.answer(case("one").questions[2], 200)
    assert len(prompts) == 1 and (words in prompts[0]) and ("6 words" in prompts[0]) == (words == "6 words")
    assert "{{" not in prompts[0]


@each("page", ["FIVE", "BENCHMARKS"])
def test_commands_of_the_documentation_name_methods_that_there_are(page: str) -> None:
    text = Path(__file__).parents[2].joinpath("docs", f"{page}.md").read_text().replace("\\\n", "")
    named = re.findall(r"--methods +([\w:=.,/-]+)", text)
    assert named and all(parse_all(methods.split(",")) for methods in named)
