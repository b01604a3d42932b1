"""What every strategy owes to a library, whichever model helps it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from garbage import GarbageLLM

from infinimem import Turn, open_memory, tokens
from infinimem.errors import ModelUnavailable, UsageError
from infinimem.llm.base import LLM
from infinimem.llm.offline import OfflineClient
from infinimem.memory import Memory
from infinimem.model import Evidence
from infinimem.spec import strategies

Client = Callable[[], LLM]

NOW = datetime(2025, 3, 3, 12, tzinfo=UTC)

TALK = [
    ("s1", "2025-01-04T10:00:00", "Ann", "I moved to Lisbon in March and rent a small flat near the river."),
    ("s1", "2025-01-04T10:00:00", "Rita", "How lovely! I still live in Porto with my two cats."),
    ("s1", "2025-01-04T10:00:00", "Ann", "I am allergic to peanuts, so no satay for me, please."),
    ("s2", "2025-02-01T18:30:00", "Rita", "My sister Clara visits on 14 June, she plays the cello."),
    (
        "s2",
        "2025-02-01T18:30:00",
        "Ann",
        "I started a pottery class on Mondays, its teacher is Bruno.",
    ),
    ("s3", "2025-02-09T09:00:00", "Ann", "I am allergic to peanuts."),
    (
        "s3",
        "2025-02-09T09:00:00",
        "Rita",
        "The cats broke the vase. Work is fine. We shipped release 4.2.",
    ),
    ("s4", "2025-02-20T21:15:00", "Ann", "I moved to Coimbra, the flat in Lisbon is given up."),
    ("s5", "2025-02-21T08:00:00", "Rita", "Then the train to you takes only an hour!"),
]
TURNS = tuple(
    Turn(text, speaker=speaker, time=time, session=session, turn=f"D{number}")
    for number, (session, time, speaker, text) in enumerate(TALK, 1)
)


class Silent(OfflineClient):
    """A model behind an endpoint that stops answering after so many calls."""

    def __init__(self, left: int = 0) -> None:
        super().__init__()
        self._left = left

    def complete(self, *question: Any) -> Any:
        self._left -= 1
        if self._left < 0:
            raise ModelUnavailable("nobody answers at the endpoint")
        return super().complete(*question)


@pytest.fixture(params=strategies())
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


CLIENTS: dict[str, Client] = {
    "offline": OfflineClient,
    "garbage 1": partial(GarbageLLM, 1),
    "garbage 2": partial(GarbageLLM, 2),
}


@pytest.fixture(params=CLIENTS.values(), ids=CLIENTS)
def client(request: pytest.FixtureRequest) -> Client:
    """Gives a model as new: rules, or one that answers nonsense."""
    found: Client = request.param
    return found


EASILY = {"recmem": "[recmem]\ntheta_sim = 0.1\ntheta_count = 2\n"}
"""Settings with which a strategy that mostly makes nothing makes something of so short a talk."""


def opened(root: Path, name: str, llm: Any = "offline") -> Memory:
    if name in EASILY and not (root / "infinimem.toml").exists():
        root.mkdir(parents=True, exist_ok=True)
        (root / "infinimem.toml").write_text(EASILY[name])
    return open_memory(root, model=llm, strategy=name, create=True, clock=lambda: NOW, embedder="lexical")


def files(root: Path) -> dict[str, bytes]:
    """All documents of a library."""
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*.md"))}


def kept(root: Path) -> dict[str, bytes]:
    """All documents but receipts."""
    return {path: data for path, data in files(root).items() if not path.startswith("journal/")}


def told(root: Path, name: str, llm: Any = "offline") -> Memory:
    """A library that has heard everything, in three calls, and was consolidated twice."""
    memory = opened(root, name, llm)
    for part in (TURNS[:3], TURNS[3:7], TURNS[7:]):
        memory.observe(part)
    memory.consolidate()
    memory.consolidate()
    return memory


def lines(memory: Memory) -> set[str]:
    """Every signed line that is no evidence."""
    view = memory.view
    return {place.entry.line for place in (*view.entries(), *view.entries("archive"))}


class TestStrategy:
    @pytest.mark.sample(5)
    def test_nothing_is_lost_and_it_writes_into_its_own_folders_alone(
        self, tmp_path: Path, name: str, client: Client
    ) -> None:
        memory = opened(tmp_path, name, client())
        memory.record(TURNS)
        assert len(memory.view.uncited()) == len(TURNS)
        (tmp_path / "mine.md").write_text("# A note\n\nof a person\n")
        for folder in (
            folder for other in strategies().values() if other.name != name for folder in other.live
        ):
            (tmp_path / folder).mkdir(parents=True, exist_ok=True)
            (tmp_path / folder / "theirs.md").write_text("# Theirs\n")
        before = files(tmp_path)
        memory.observe(())
        assert memory.view.uncited() == ()
        memory.consolidate()
        keeper = memory.strategy.spec
        own = (*keeper.folders, "journal/", *([f"{keeper.buffer}.md"] if keeper.buffer else ()))
        after = files(tmp_path)
        changed = [path for path in before.keys() | after.keys() if before.get(path) != after.get(path)]
        assert all(path.startswith(own) for path in changed)
        errors = [finding for finding in memory.doctor() if finding.level == "error"]
        assert [finding for finding in errors if "theirs" not in finding.where] == []

    @pytest.mark.sample(5)
    def test_the_same_answers_give_the_same_bytes(self, tmp_path: Path, name: str, client: Client) -> None:
        told(tmp_path / "one", name, client())
        told(tmp_path / "two", name, client())
        assert files(tmp_path / "one") == files(tmp_path / "two")

    @pytest.mark.sample(5)
    @pytest.mark.parametrize("calls", [0, 1, 2, 3])
    def test_a_model_that_stops_answering_leaves_nothing_half_done(
        self, tmp_path: Path, name: str, calls: int
    ) -> None:
        root = tmp_path / "stopped"
        memory = opened(root, name, Silent(calls))
        with pytest.raises(ModelUnavailable):
            memory.observe(TURNS)
            memory.consolidate()
        memory = opened(root, name)
        assert calls or len(memory.view.uncited()) == len(TURNS)
        assert [finding for finding in memory.doctor() if finding.level == "error"] == []
        whole = opened(tmp_path / "whole", name)
        for one in (memory, whole):
            one.observe(TURNS)
            one.consolidate()
        assert memory.view.uncited() == () and kept(root) == kept(tmp_path / "whole")

    def test_a_question_finds_the_turn_that_answers_it(self, tmp_path: Path, name: str) -> None:
        memory = told(tmp_path, name)
        turn_of = {place.seq: place.entry.fields["turn"] for place in memory.view.entries("evidence")}
        for question, turn in (("When does Clara visit?", "D4"), ("Who teaches the pottery class?", "D5")):
            found = memory.retrieve(question).items
            assert turn in {turn_of[seq] for item in found[:3] for seq in item.origin}

    def test_ranked_evidence_calls_no_model_and_keeps_its_budget(self, tmp_path: Path, name: str) -> None:
        told(tmp_path, name)
        memory = opened(tmp_path, name, Silent())
        for budget in (0, 12, 40, 400):
            found = memory.retrieve("Where does Ann live?", budget).items
            assert sum(tokens.count(item.text) for item in found) <= budget
            assert len({item.seqs for item in found}) == len(found)
        assert found and memory.llm.usage.calls == 0
        evidence = {place.seq for place in memory.view.entries("evidence")}
        for item in found:
            assert set(item.origin) <= evidence
            shown = memory.view.document(item.doc_id).text(item.start_line, item.end_line)
            assert item.text.split()[-1] in shown

    def test_any_text_can_be_asked(self, tmp_path: Path, name: str) -> None:
        memory = told(tmp_path, name)
        hostile = ("(((", "[[a]] `rm`", "\x00\x1b[31m", "\ud800", "tea\n\n# tea")
        for query in ("?" * 5000, "ﷺ" * 50, *hostile):
            for reader in memory.strategy.readers:
                found = memory.read(query, reader, 50).items
                assert len({item.seqs for item in found}) == len(found)

    def test_each_of_its_readers_answers(self, tmp_path: Path, name: str) -> None:
        memory = told(tmp_path, name)
        for reader in memory.strategy.readers:
            answer = memory.ask("What is Ann allergic to?", reader)
            assert "peanut" in answer.text.lower(), reader
            assert answer.citations and answer.citations[0].seqs, reader
        with pytest.raises(UsageError, match="psychic"):
            memory.ask("What is Ann allergic to?", "psychic")

    def test_its_readers_are_told_what_people_wrote_themselves(self, tmp_path: Path, name: str) -> None:
        memory = told(tmp_path, name)
        (tmp_path / "garden.md").write_text("# Garden\n\n- the hydrangeas want rain water\n")
        found = opened(tmp_path, name).retrieve("What do the hydrangeas want?").items
        assert any(item.doc_id == "garden" for item in found)
        assert memory.view.is_note("garden")

    def test_what_comes_from_other_sources_is_left_out(self, tmp_path: Path, name: str) -> None:
        memory = opened(tmp_path, name)
        memory.observe([*TURNS, Turn("Ann lives in Braga now.", role="assistant", session="s6")])
        memory.consolidate()
        evidence = {place.seq: place.entry for place in memory.view.entries("evidence")}
        for item in memory.retrieve("Where does Ann live?", sources=["user"]).items:
            assert {evidence[seq].source for seq in item.origin} <= {"user"}

    def test_the_last_receipt_can_be_taken_back(self, tmp_path: Path, name: str) -> None:
        memory = opened(tmp_path, name)
        memory.observe(TURNS)
        before = kept(tmp_path)
        done = memory.consolidate()
        after, receipt = kept(tmp_path), done or memory.receipts()[-1]  # all may be done when it is said
        assert receipt.strategy == name
        (undone,) = memory.undo(receipt.id)
        assert kept(tmp_path) != after and (done is None or kept(tmp_path) == before)
        memory.undo(undone.id)
        assert kept(tmp_path) == after

    @pytest.mark.sample(5)
    def test_a_rebuild_loses_nothing(self, tmp_path: Path, name: str, client: Client) -> None:
        memory = told(tmp_path, name, client())
        before = lines(memory)
        memory.rebuild()
        assert memory.view.uncited() == () and lines(memory) == before
        assert [finding for finding in memory.doctor() if finding.level == "error"] == []

    def test_its_counts_can_be_told_as_json(self, tmp_path: Path, name: str) -> None:
        memory = opened(tmp_path, name)
        empty = json.loads(json.dumps(memory.status()))
        assert empty["strategy"] == name and memory.estimate() == 0
        memory.observe(TURNS)
        assert json.loads(json.dumps(memory.status())).keys() == empty.keys()
        assert memory.estimate() > 0 or memory.consolidate() is None

    def test_what_was_said_is_shown_as_it_stood(self, tmp_path: Path, name: str) -> None:
        memory = opened(tmp_path, name)
        memory.observe(TURNS[:3])
        memory.consolidate()
        then = memory.view.max_seq
        memory.observe(TURNS[3:])
        memory.consolidate()
        past = memory.at(str(then))
        found = {seq for item in past.retrieve("Where does Ann live?").items for seq in item.origin}
        evidence = [place.seq for place in memory.view.entries("evidence")]
        assert found and found <= set(evidence[:3])


QUESTION = "What is Ann allergic to?"


class TestTrace:
    """What each reader of each strategy tells of its way to the evidence."""

    @pytest.fixture
    def ways(self, tmp_path: Path, name: str, client: Client) -> dict[str, Evidence]:
        """The evidence of each reader, and of `retrieve`."""
        told(tmp_path, name)
        memory = opened(tmp_path, name, client())
        found = {reader: memory.read(QUESTION, reader, 60) for reader in memory.strategy.readers}
        return found | {"retrieve": memory.retrieve(QUESTION, 60)}

    @pytest.mark.sample(5)
    def test_it_is_one_shape_that_ends_with_what_is_shown(self, ways: dict[str, Evidence]) -> None:
        for way, evidence in ways.items():
            steps, last = evidence.trace, evidence.trace[-1]
            rows = json.loads(json.dumps([asdict(step) for step in steps]))
            keys = ["stage", "asked", "found", "tokens", "stop", "failure", "ms"]
            assert all(list(row) == keys and row["ms"] >= 0 for row in rows), way
            assert all(
                list(one) == ["id", "parts", "score", "via"] for row in rows for one in row["found"]
            ), way
            assert [step.stage for step in steps].index("evidence") == len(steps) - 1, way
            shown = [f"{item.doc_id}:{item.start_line}-{item.end_line}" for item in evidence.items]
            assert [one.id for one in last.found] == shown, way
            assert last.tokens == sum(tokens.count(item.text) for item in evidence.items) <= 60, way
            assert any(step.asked or step.failure or step.stop for step in steps), way
            stages = [step.stage for step in steps]
            assert all(step.stage not in stages[at + 1 :] for at, step in enumerate(steps) if step.stop), way
            for step in steps:
                scores = [one.score for one in step.found if one.parts and one.score]
                assert scores == sorted(scores, reverse=True), way

    @pytest.mark.sample(3)
    def test_the_answer_carries_it(self, tmp_path: Path, name: str) -> None:
        memory = told(tmp_path, name)
        for reader in memory.strategy.readers:
            read, answered = memory.read(QUESTION, reader).trace, memory.ask(QUESTION, reader).trace
            assert [replace(step, ms=0) for step in read] == [replace(step, ms=0) for step in answered]
