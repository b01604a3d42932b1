"""Methods: their names and settings, what each shows an answerer, and what they cost."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from evaluation_data import case

from infinimem import tokens
from infinimem.embedders.lexical import Lexical
from infinimem.errors import ModelUnavailable, UsageError
from infinimem.evaluation.methods import embedding
from infinimem.evaluation.methods.answering import Means
from infinimem.evaluation.methods.embedding import Embedders
from infinimem.evaluation.methods.library import Making
from infinimem.evaluation.methods.registry import method
from infinimem.evaluation.methods.spec import NAMES, OWN, parse, parse_all
from infinimem.evaluation.model import Method, Question
from infinimem.evaluation.spending import Metered, Spending
from infinimem.llm import tasks
from infinimem.llm.base import LLM, total
from infinimem.llm.offline import OfflineClient
from infinimem.memory import open_memory
from infinimem.model import Usage
from infinimem.spec import strategies
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


@pytest.mark.parametrize("text", SETTINGS)
def test_settings_are_named_as_in_the_file(text: str) -> None:
    assert parse(text).settings == SETTINGS[text]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("infinity", "there are infini, infini-h.*, allmem-ablations, allmem-sweep"),
        ("allmem:people=false", "known here: embedder, describe_turns"),
        ("infini:anchors=5", "no setting 'anchors'"),
        ("allmem-sweep:colour=red", "no setting 'colour'"),
        ("allmem-sweep,allmem:final=8", "is named twice"),
        ("infini:colour=red", "known here: embedder, feed, chunk_tokens"),
        ("infini:name=agent", "no setting 'name'"),
        ("infini:evidence_budget=9", "no setting"),
        ("bm25:people=false", "known here: language"),
        ("none:language=german", "it takes none"),
        ("infini:markdown_length=many", "a int is wanted"),
        ("infini:feed=wild", "choose one of chunk, exchange, turn"),
        ("infini:maintenance", "key=value"),
        ("infini:people=false:people=true", "twice"),
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
    def maker(text: str, keeper: LLM | None = None, answerer: LLM | None = None) -> Method:
        models = (Metered(llm or OfflineClient(), spending) for llm in (keeper, answerer, None))
        means = Means(tmp_path / "work", *models, Embedders("lexical"), spending)
        return method(text, means, Making(means))

    return maker


@pytest.mark.parametrize(
    "name", [name for name in NAMES if name not in ("none", "infini-summary", "infini-search")]
)
def test_every_method_finds_the_turn(name: str, make: Any) -> None:
    history = case("one")
    asked = make(name)
    ingested = asked.ingest(history)
    assert (ingested.method, ingested.case) == (name, "one")
    question = history.questions[2]
    found = asked.retrieve(question, None).found
    assert question.turns <= {turn for item in found for turn in item.turns}
    few = asked.retrieve(question, 400).found
    assert 0 < sum(item.tokens for item in few) <= 400
    told = asked.answer(question, 200)
    assert told.answer and told.found and told.steps[-1]["cited"]
    assert "peanuts" in told.answer or name == "recent"


@pytest.mark.parametrize("name", ["fts5", "bm25"])
def test_words_are_stemmed(name: str, make: Any) -> None:
    asked = make(name)
    asked.ingest(case("one"))
    found = asked.retrieve(Question("q", "Who was visiting?", "single-hop", ()), None).found
    assert [item.turns for item in found] == [("D:1",)]


SHOWN = {
    "none": [],
    "full": [1, 2, 3, 4, 5, 6],
    "recent": [5, 6],
    "grep": [1, 3, 5],
    "bm25": [1, 3, 5],
    "fts5": [1, 3, 5],
}


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


def test_methods_that_read_alike_made_libraries_make_one(
    make: Any, tmp_path: Path, spending: Spending
) -> None:
    """Bug guarded: a model paid once for each reader, or a reader that shows another's settings."""
    history, rules = case("one"), OfflineClient()
    costs = [
        make(text, keeper=rules).ingest(history)
        for text in ("infini-h", "infini-retrieve:people=false", "infini:maintenance=false")
    ]
    made = sorted(path.name for path in (tmp_path / "work").iterdir())
    assert made == ["infini", "infini_infini.maintenance=False"]
    assert costs[0].usage == costs[1].usage and costs[0].usage["extract"].calls == 1
    assert costs[0].sizes == costs[1].sizes and sum(costs[0].sizes) > 50
    assert total(rules.usage).calls == sum(total(costs[made].usage).calls for made in (0, 2))
    assert spending.total == Usage(), "rules take nothing of a ceiling"
    assert costs[0].turns == len(history.turns) and costs[0].disk == costs[1].disk > sum(
        len(turn.text) for turn in history.turns
    )


def test_rules_are_booked_with_the_prompt_that_a_model_would_be_sent() -> None:
    """So that what writing takes can be told of a strategy without paying for it."""
    spending = Spending()
    evidence = [{"doc_id": "d", "span": "1", "lines": [{"id": "1", "text": "I moved to Lisbon in March."}]}]
    variables = {"question": "Where do I live?", "evidence": evidence, "now": "2025-03-04"}
    with spending.account() as spent:
        reply = Metered(OfflineClient(), spending).complete(tasks.ANSWER, variables)
    prompt = tasks.render(tasks.ANSWER, variables)
    assert spent == {"answer": reply.usage} and reply.usage.calls == 1
    assert reply.usage.tokens_in == tokens.count(prompt.system) + tokens.count(prompt.user)
    assert reply.usage.tokens_out == tokens.count(json.dumps(reply.data)) > 5


def test_a_library_that_was_begun_is_gone_on_with(make: Any, tmp_path: Path) -> None:
    """Its cost is that of both parts; one whose cost is not known is made anew."""
    history = case("one")
    with pytest.raises(ModelUnavailable):
        make("infini-retrieve", keeper=ScriptedLLM({"extract": [ModelUnavailable("gone")]})).ingest(history)
    ingested = make("infini-retrieve").ingest(history)
    turns = list((tmp_path / "work/infini/one/evidence").glob("*.md"))
    assert len(turns) == 2 and ingested.usage["extract"].calls == 1
    (tmp_path / "work/infini/one.json").unlink()
    (tmp_path / "work/infini/one/stray.md").write_text("left by a run that was killed")
    make("infini-retrieve").ingest(history)
    assert not (tmp_path / "work/infini/one/stray.md").exists()


PAPERS = ("visibility", "split", "merge", "update", "expand", "recovery_links", "type_priority")
"""Table 10 of All-Mem."""
LEFT_OUT = (*PAPERS, "successors_first")


def test_groups_stand_for_their_methods() -> None:
    found = parse_all(["bm25", "allmem-ablations"])
    assert [spec.text for spec in found] == [
        *("bm25", "allmem"),
        *(f"allmem:{name}=false" for name in LEFT_OUT),
    ]
    assert [spec.settings for spec in found[2:]] == [{"allmem": {name: False}} for name in LEFT_OUT]
    both = [spec.text for spec in parse_all(["allmem", "allmem-ablations", "allmem-sweep:embedder=static"])]
    assert len(both) == len(set(both)) == 9 + 7
    sweep = parse_all(["allmem-sweep:embedder=static"])
    assert {spec.embedder for spec in sweep} == {"static"}
    budgets = [dict(spec.settings.get("allmem", {})) for spec in sweep]
    assert [spec.text.split(":")[0] for spec in sweep] == ["allmem"] * 7 and budgets[0] == {}
    for name, default in (("anchors", 10), ("candidates", 40), ("final", 16)):
        assert [budget[name] for budget in budgets if name in budget] == [default // 2, 2 * default]


def test_what_a_member_of_a_group_sets_itself_stands() -> None:
    by_cosine = parse_all(["gam-ablations:rerank=cosine"])
    assert {spec.settings["gam"]["rerank"] for spec in by_cosine} == {"cosine"}
    assert len(by_cosine) == 12, "the two that rank by vectors anyway are not there twice"
    ten = [spec.text for spec in parse_all(["recmem-ablations:k_sub=10"])]
    assert "recmem:k_sub=0" in ten and "recmem:k_epi=0:k_sub=10" in ten


@pytest.mark.parametrize("page", ["FIVE", "BENCHMARKS"])
def test_commands_of_the_documentation_name_methods_that_there_are(page: str) -> None:
    text = Path(__file__).parents[2].joinpath("docs", f"{page}.md").read_text().replace("\\\n", "")
    named = re.findall(r"--methods +([\w:=.,/-]+)", text)
    assert named and all(parse_all(methods.split(",")) for methods in named)


@pytest.mark.parametrize("group", ["five", "five-answers"])
def test_all_systems_stand_side_by_side(group: str) -> None:
    """Each as it comes; where only rankings are compared, beside that of its paper or the library's own."""
    specs = parse_all([group])
    assert {spec.way.strategy for spec in specs if spec.way} == {*strategies()}
    assert [spec.text for spec in specs[-2:]] == ["dense", "bm25"] and not OWN["infini-turns"].draws
    assert "infini-turns" in [spec.text for spec in specs]
    for name in set(strategies()) - {"infini"}:
        settings = [spec.settings for spec in specs if spec.name == name]
        assert {} in settings and (group != "five" or len(settings) == 2)
        assert len({spec.library for spec in specs if spec.name == name}) == 1, "made once"


def test_only_what_changes_the_writing_changes_the_library() -> None:
    """Bug guarded: ablations of reading that each made the same units, or an ablation of writing that read
    another's; and links that were made with the vectors of another embedder."""
    names = {
        "allmem": ("visibility", "expand", "recovery_links", "type_priority"),
        "allmem_allmem.split=False": ("split",),
    }
    for library, switches in names.items():
        assert {parse(f"allmem:{name}=false").library for name in switches} == {library}
    for budget in ("anchors", "candidates", "final", "hops", "block_tokens"):
        assert parse(f"allmem:{budget}=7").library == "allmem"
    assert parse("allmem:embedder=lexical:expand=false").library == "allmem_embedder=lexical"
    assert parse("infini-retrieve:embedder=static").library == "infini", "it is read with vectors, not made"
    written = {"strategy": "allmem", "allmem": {"merge_max": 3}}
    spec = parse("allmem:merge_max=3:hops=1")
    assert tomllib.loads(spec.toml(building=True)) == written
    assert tomllib.loads(spec.toml()) == {**written, "allmem": {"merge_max": 3, "hops": 1}}


def test_units_are_linked_by_the_embedder_that_a_method_names(make: Any, tmp_path: Path) -> None:
    history = case("one")
    for text in ("allmem", "allmem:hops=1", "allmem:embedder=lexical", "allmem:merge=false"):
        make(text).ingest(history)
    made = sorted(path.name for path in (tmp_path / "work").iterdir())
    assert made == ["allmem", "allmem_allmem.merge=False", "allmem_embedder=lexical"]


def test_units_are_made_with_the_embedder_that_links_them(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[str] = []

    class Named(Lexical):
        semantic = True

        def __init__(self, name: str, *_: object) -> None:
            self.name = name

        def embed(self, texts: Sequence[str]) -> Any:
            used.append(self.name)
            return super().embed(texts)

    history = case("one")
    monkeypatch.setattr(embedding, "connect", Named)
    for text in ("allmem", "allmem:embedder=static:hops=1", "infini-retrieve:embedder=static"):
        asked = make(text)
        asked.ingest(history)
        used.clear()
        asked.retrieve(history.questions[0], None)
        assert set(used) == {"static" if "static" in text else "lexical"}
    for folder, name in (("allmem", "lexical"), ("allmem_embedder=static", "static")):
        audit = (tmp_path / "work" / folder / "one/allmem/audit/run-0001.md").read_text()
        assert f"embedder: {name}\n" in audit


def test_units_are_ranked_for_retrieval_and_blocked_for_answers(make: Any) -> None:
    history = case("one")
    asked = make("allmem:block_tokens=30")
    asked.ingest(history)
    question = history.questions[2]
    ranking, answer = asked.retrieve(question, None), asked.answer(question, 4096)
    assert len(ranking.found) == 5 and ranking.found[0].turns == ("D:2",), "one has nothing in common with it"
    assert sum(item.tokens for item in answer.found) <= 30, "the block is bounded, a ranking is not"
    stages = [step["stage"] for step in ranking.steps]
    assert {"anchors", "links", "ranking"} <= set(stages) and all(step["ms"] >= 0 for step in ranking.steps)


def test_what_was_only_said_has_a_library_of_its_own(make: Any, tmp_path: Path) -> None:
    for name in ("infini-retrieve", "infini-turns"):
        make(name).ingest(case("one"))
    drawn, said = (open_memory(tmp_path / "work" / name / "one").view for name in ("infini", "infini-turns"))
    assert list(drawn.entries()) and not list(said.entries())
    assert len(list(said.entries("evidence"))) == len(case("one").turns)
