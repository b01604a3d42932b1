"""`infinimem bench`: what people type, what they see, and the project's own ablations from one command."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli_runner import Shell
from evaluation_data import locomo_file
from fake_server import Say, chat, refuse, serve

from infinimem.evaluation.datasets import NAMES


@pytest.fixture
def data(tmp_path: Path) -> str:
    return str(locomo_file(tmp_path / "locomo.json"))


def test_a_ranking_in_a_pipe(shell: Shell, data: str) -> None:
    words = f"bench locomo --data {data} --retrieval-only --methods bm25,grep --out o".split()
    ran = shell(*words)
    assert ran.code == 0, ran.err
    assert "20 questions to ask, no tokens: no model is asked" in ran.err
    rows = [line.split("\t") for line in ran.out.splitlines()]
    assert [row[0] for row in rows] == ["method", "bm25", "grep"]
    assert {path.name for path in (shell.library / "o").glob("report.*")} >= {"report.md", "report.json"}
    again = shell("--json", *words)
    assert again.code == 0 and len(again.json["rows"]) == 2


def test_an_estimate_starts_nothing(shell: Shell, data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    words = f"bench locomo --data {data} --methods infini,infini-h,none --answerer small --estimate --json"
    ran = shell(*words.split())
    assert ran.code == 0, ran.err
    rows = {(row["method"], row["phase"]): row for row in ran.json["rows"]}
    assert set(rows) == {
        *((name, what) for name in ("infini", "infini-h", "none") for what in ("answering", "judging")),
        *((name, "reading") for name in ("infini", "infini-h")),
    }
    assert rows["infini", "answering"]["calls"] == 10 and rows["none", "judging"]["calls"] == 20
    assert ran.json["questions"] == 30 and not list(shell.library.iterdir())
    whole = shell(*f"bench locomo --data {data} --methods infini --model small --estimate".split())
    assert {line.split("\t")[1] for line in whole.out.splitlines()} == {
        "making",
        "reading",
        "answering",
        "judging",
    }


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ("bench locomo --data {data} --methods bm52", 2, "no method is called 'bm52'; there are infini"),
        ("bench locomo --data {data} --methods infini:x=1", 2, "known here: embedder, feed"),
        ("bench locomo --data gone.json", 2, "gone.json"),
        ("bench poems --data {data}", 2, "poems"),
        ("bench locomo --data {data} --embedder gpt", 2, "no embedder is called 'gpt'"),
        ("bench factconsolidation --data {data}", 2, ""),
        ("bench longmemeval --data {data} --corrections {data}", 2, "corrections are known for locomo only"),
        ("bench locomo --data {data} --answerer small", 1, "needs a key"),
        ("bench locomo --data {data} --model agent", 2, "models that answer at once"),
        ("bench locomo --data {data} --judge-url http://127.0.0.1:9/v1", 2, "name it, too, with --judge"),
    ],
)
def test_what_cannot_work_is_told_in_one_line(
    shell: Shell, data: str, words: str, code: int, told: str
) -> None:
    ran = shell(*words.format(data=data).split())
    ran.failed(code, told)
    assert not list(shell.library.iterdir()), "nothing was started"


def test_a_model_that_is_gone_is_one_line_and_leaves_a_run(
    shell: Shell, data: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve(refuse(402, "no credit is left")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        ran = shell(*f"-q bench locomo --data {data} --methods none --answerer small --out o --yes".split())
    ran.failed(1, "0 questions are done and kept in o, the same command goes on from there")
    assert (shell.library / "o/run.db").exists()


def test_a_judge_has_a_server_of_its_own(shell: Shell, data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told = chat('{"answer": "To Porto.", "cites": []}')
    graded = chat('{"reason": "", "correct": false}')
    with serve(told) as mind, serve(graded) as judge:
        monkeypatch.setenv("OPENAI_BASE_URL", mind.url)
        words = f"bench locomo --data {data} --methods none --answerer a --judge a --judge-url {judge.url}"
        ran = shell(*f"-q {words} --limit 1 --out o --yes".split())
    assert ran.code == 0, ran.err
    said = [[str(one["messages"]) for one in server.requests] for server in (mind, judge)]
    assert all("You grade an answer" in one for one in said[1])
    assert len(said[0]) == 2 and not any("You grade an answer" in one or "Lisbon" in one for one in said[0])


def test_a_person_is_asked_before_tokens_are_spent(
    shell: Shell, data: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal:
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setattr("infinimem.cli.bench.sys", type("", (), {"stdin": Terminal()}))
    ran = shell(*f"bench locomo --data {data} --methods none --answerer small".split(), input="n\n")
    assert ran.code == 1 and "about 30 calls" in ran.err and "Start?" in ran.err
    assert not list(shell.library.iterdir())


def test_a_run_that_goes_on_or_is_repeated_asks_nothing_twice(
    shell: Shell, data: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What models said lies in the run's own folder; other runs of the same ask anew."""
    words = f"-q bench locomo --data {data} --methods bm25,none --answerer small --jobs 1 --yes --out o"
    command = words.split()
    with serve(chat('{"answer": "To Porto.", "cites": [], "reason": "", "correct": false}')) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert shell(*command).code == 0
        asked, kept = len(server.requests), list((shell.library / "o/replies").iterdir())
        assert asked == len(kept) > 20
        assert {path.stat().st_mode & 0o777 for path in kept} == {0o600}
        found = json.loads((shell.library / "o/report.json").read_text())["methods"]
        (shell.library / "o/run.db").unlink()
        assert shell(*command).code == 0 and len(server.requests) == asked
        again = json.loads((shell.library / "o/report.json").read_text())["methods"]
        for name, one in found.items():
            assert (again[name]["mean"], again[name]["querying"]) == (one["mean"], one["querying"])
        twice = shell(*(word for word in command[:-1] if word != "-q"), "two", "--runs", "2")
        assert twice.code == 0 and "over 2 runs" in twice.err and " ± 0.0" in twice.out
        assert len(server.requests) == 3 * asked
        assert {path.name for path in (shell.library / "two").iterdir()} == {"run-1", "run-2"}
        shutil.copytree(shell.library / "o/replies", shell.library / "copied/replies")
        assert shell(*command[:-1], "copied").code == 0 and len(server.requests) == 3 * asked


def _table(folder: Path) -> dict[str, Any]:
    found = json.loads((folder / "report.json").read_text())["methods"]
    return {
        name: {key: one[key] for key in ("mean", "categories", "querying")} for name, one in found.items()
    }


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.soak)])
def test_a_run_that_is_killed_gives_the_same_table(
    kills: int, tmp_path: Path, data: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No call is made twice but those that were under way at a kill, one for each thread."""
    draw = random.Random(kills)

    def answer(request: Mapping[str, Any]) -> Say:
        mark = sum(map(ord, json.dumps(request["messages"])))
        told = {"answer": f"To Lisbon {mark % 3}.", "cites": [], "reason": "", "correct": mark % 2 == 0}
        return replace(chat(json.dumps(told)), wait=0.03)

    words = f"-q bench locomo --data {data} --methods bm25,grep,none --answerer small --jobs 1 --yes --out"
    command = [sys.executable, "-m", "infinimem", *words.split()]
    with serve(answer) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        subprocess.run([*command, tmp_path / "whole"], check=True, capture_output=True)
        once = [json.dumps(request) for request in server.requests]
        assert len(once) == len(set(once)) > 20
        server.requests.clear()
        killed = 0
        while killed < kills:
            with subprocess.Popen([*command, tmp_path / "killed"], stdout=subprocess.DEVNULL) as run:
                first = len(server.requests)
                while run.poll() is None and len(server.requests) == first and draw.random() < 0.99:
                    time.sleep(0.02)  # also before the first call
                time.sleep(draw.uniform(0, 0.3 * 20 / kills / 4))
                killed += run.poll() is None
                run.kill()
            if run.returncode == 0:
                break
        subprocess.run([*command, tmp_path / "killed"], check=True, capture_output=True)
    asked = [json.dumps(request) for request in server.requests]
    assert set(asked) == set(once) and len(asked) - len(once) <= killed
    assert killed == kills and _table(tmp_path / "killed") == _table(tmp_path / "whole")


def test_the_list_tells_of_every_data_set(shell: Shell) -> None:
    rows = [line.split("\t") for line in shell("bench", "--list").out.splitlines()]
    assert rows[0] == ["name", "measures", "file", "size", "licence"]
    assert [row[0] for row in rows[1:]] == list(NAMES) and all(all(row) for row in rows)
    shell("bench", "locomo").failed(2, "name a data set and, with --data, its official file; --list tells")
