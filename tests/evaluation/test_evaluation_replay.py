"""Kept requests and replies: asked once, answered from the folder ever after, and the same bytes again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from evaluation_data import Small, request, results

from infinimem.errors import ModelUnavailable
from infinimem.evaluation.replay import Unasked, requests_of
from infinimem.evaluation.report import write_report
from infinimem.evaluation.runner import Run
from infinimem.llm.base import LLM, Reply, Task
from infinimem.llm.offline import OfflineClient
from infinimem.model import Usage

METHODS = ("infini", "infini-h", "allmem", "bm25")


class Rules:
    """The offline rules as a model that takes tokens, and counts what it is asked."""

    name = "rules"

    def __init__(self) -> None:
        self._rules = OfflineClient()
        self.usage: dict[str, Usage] = {}
        self.calls: list[str] = []

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        data = self._rules.complete(task, variables).data
        self.calls.append(task.name)
        return Reply(data, text=json.dumps(data), usage=Usage(1, 10, 2))


def start(folder: Path, kept: Path, model: LLM, *methods: str, **more: Any) -> Path:
    folder.mkdir()
    models = dict.fromkeys(("keeper", "answerer", "judge"), model)
    wanted = request(folder, *methods, embedder="lexical", replay=kept, **{**models, **more})
    Run(wanted, Small()).start(lambda *_: None, 0)
    return folder / "out"


def told(out: Path) -> list[tuple[Any, ...]]:
    return [(one.method, one.question, one.answer, one.scores, one.found, one.usage) for one in results(out)]


def test_a_run_is_repeated_byte_for_byte_without_its_model(tmp_path: Path) -> None:
    """No wall clock and no order of threads is in anything that a model is shown."""
    kept, model = tmp_path / "kept", Rules()
    first = start(tmp_path / "1", kept, model, *METHODS)
    assert {"extract", "select", "describe", "answer", "judge_strict"} <= set(model.calls)
    again = start(tmp_path / "2", kept, Unasked("rules", "there is no key"), *METHODS, jobs=4)
    assert told(first) == told(again)
    for task, found in requests_of(again).items():
        before = requests_of(first)[task]
        assert (found["asked"], found["replayed"]) == (0, before["asked"] + before["replayed"])
        assert found["replayed_tokens"] == 12 * found["replayed"]


def test_only_what_changed_is_asked(tmp_path: Path) -> None:
    kept, model = tmp_path / "kept", Rules()
    start(tmp_path / "1", kept, Rules(), "bm25")
    out = start(tmp_path / "2", kept, model, "bm25", "none", "recent", budget=40)
    asked = {task: found["asked"] for task, found in requests_of(out).items()}
    assert asked == {task: model.calls.count(task) for task in asked}
    assert asked["answer"] > 0 and requests_of(out)["answer"]["replayed"]
    report = write_report(out)
    assert report["requests"]["answer"]["asked"] == asked["answer"]
    assert "## Requests answered from kept replies" in (out / "report.md").read_text()
    lines = [json.loads(line) for line in (out / "requests.jsonl").read_text().splitlines()]
    news = {line["request"] for line in lines if not line["replayed"]}
    assert news <= {path.stem for path in kept.iterdir()}, "each is told by name"


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "damage", ["", "{", "[]", "null", '{"text": "Lisbon"}', '"', "fits no more", "usage"], ids=str
)
def test_a_damaged_reply_is_asked_again(tmp_path: Path, damage: str) -> None:
    kept, model = tmp_path / "kept", Rules()
    start(tmp_path / "1", kept, Rules(), "bm25")
    for path in kept.iterdir():
        values = json.loads(path.read_text())
        spoilt = {"fits no more": {**values, "text": '{"answers": []}'}, "usage": {**values, "usage": [1]}}
        path.write_text(json.dumps(spoilt[damage]) if damage in spoilt else damage)
    start(tmp_path / "2", kept, model, "bm25")
    assert model.calls.count("answer") == 8
    start(tmp_path / "3", kept, Unasked("rules", ""), "bm25")
    assert not [path for path in kept.iterdir() if path.suffix != ".json"], "nothing half written is left"


def test_an_unknown_request_without_a_model_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(
        ModelUnavailable, match="no reply is kept for a request of the task answer, and "
    ) as no:
        start(tmp_path / "1", tmp_path / "kept", Unasked("small", "small needs a key"), "recent")
    assert "small needs a key" in str(no.value) and "\n" not in str(no.value)
    assert not (tmp_path / "kept").exists()
