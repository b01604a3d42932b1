"""`infinimem bench`: what people type, what they see, and the project's own ablations from one command."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_runner import Shell
from evaluation_data import locomo_file, results
from fake_server import chat, refuse, serve

from infinimem.cli.bench import DATA_SETS
from infinimem.cli.output import Output
from infinimem.evaluation.datasets import NAMES

ABLATIONS = (
    "infini-h:markdown_length=1000",
    "infini-h:plan_split_threshold=1000",
    "infini:maintenance=false",
    "infini:feed=turn",
    "infini-summary",
    "infini-bm25",
    "infini-retrieve:people=false",
)


def test_the_command_knows_every_data_set() -> None:
    """They are named twice: to import the registry would make every command slow to start."""
    assert DATA_SETS == NAMES


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
    again = shell(
        "--json",
        "bench",
        "locomo",
        "--data",
        data,
        "--retrieval-only",
        "--methods",
        "bm25,grep",
        "--out",
        "o",
    )
    assert again.code == 0 and len(again.json["rows"]) == 2


def test_each_run_of_a_day_has_a_folder(shell: Shell, data: str) -> None:
    words = f"bench locomo --data {data} --retrieval-only --methods"
    for methods in ("bm25", "grep", "bm25"):
        assert shell(*words.split(), methods).code == 0
    assert sorted(path.name[-2:] == "-2" for path in shell.library.iterdir()) == [False, True]


def test_what_a_terminal_has_no_room_for_is_left_out_whole(
    shell: Shell, data: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = f"bench locomo --data {data} --retrieval-only --methods bm25 --out o".split()
    columns = shell(*words, "--json").json["columns"]
    monkeypatch.setattr(Output, "for_people", True)
    for width in (30, 40, 500):
        monkeypatch.setenv("COLUMNS", str(width))
        told = shell(*words)
        lines = told.out.splitlines()
        assert max(map(len, lines)) <= width
        names = " ".join(lines[0].split())
        (shown,) = (n for n in range(len(columns) + 1) if " ".join(columns[:n]) == names)
        assert len(lines[1].split()) == shown
        left = ", ".join(columns[shown:])
        assert (f"not shown: {left}\n" in told.err) == (width < 500) == bool(left)


def test_every_ablation_runs_from_the_command(shell: Shell, data: str) -> None:
    ran = shell("bench", "locomo", "--data", data, "--methods", ",".join(ABLATIONS), "--out", "o", "--keep")
    assert ran.code == 0, ran.err
    found = results(shell.library / "o")
    assert {result.method for result in found} == set(ABLATIONS)
    assert len(found) == 10 * len(ABLATIONS) and not (shell.library / "o/errors.jsonl").exists()
    assert all(result.answer for result in found)
    made = {path.name for path in (shell.library / "o/work").iterdir()}
    assert made == {
        "infini",
        "infini_infini.markdown_length=1000",
        "infini_infini.plan_split_threshold=1000",
        "infini_infini.maintenance=False",
        "infini_infini.feed=turn",
    }
    assert (
        "people = false"
        in (shell.library.joinpath("o", "work", "infini", "conv-1", "infinimem.toml")).read_text()
    )


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
    assert (shell.library / "o/config.json").exists()


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
