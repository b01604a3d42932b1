"""ask, retrieve, search, grep, ls, read, status: ranges, sources, wrong calls."""

from __future__ import annotations

import pytest
from cli_runner import Shell

FACTS = (
    ("user", "2025-03-03", "I moved to Lisbon in March."),
    ("user", "2025-03-04", "My sister Ana is allergic to peanuts."),
    ("assistant", "2025-03-05", "Ana should avoid the peanut sauce at Sol."),
    ("user", "2025-03-06", "The router stands at 192.168.8.1 in the hall."),
)


@pytest.fixture
def library(shell: Shell) -> Shell:
    shell("init")
    for role, time, text in FACTS:
        assert shell("add", text, "--role", role, "--time", time, "--session", "s1").code == 0
    assert shell("consolidate").code == 0
    return shell


def test_how_evidence_was_found_is_told_in_one_shape(library: Shell) -> None:
    keys = ["stage", "asked", "found", "tokens", "stop", "failure", "ms"]
    question = "What is Ana allergic to?"
    for command in (["retrieve"], ["ask"], ["ask", "--reader", "hybrid"], ["ask", "--strategy", "allmem"]):
        trace = library(*command, question, "--json").json["trace"]
        assert [list(step) for step in trace] == [keys] * len(trace)
        told = [line.partition(":")[0] for line in library(*command, question, "-v").err.splitlines()]
        stages = [step["stage"] for step in trace]
        assert [line for line in told if line in stages] == stages


def test_ask_can_be_held_to_a_source(library: Shell) -> None:
    question = ("ask", "What is Ana allergic to?", "--json")
    assert any("allergic" in citation["text"] for citation in library(*question).json["citations"])
    found = library(*question, "--source", "AI").json
    assert not any("allergic" in citation["text"] for citation in found["citations"])


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "args",
    [
        ("ask", " "),
        ("retrieve", ""),
        ("retrieve", "x", "--budget", "0"),
        ("ask", "x", "--reader", "psychic"),
        ("ask", "x", "--source", "rumour"),
        ("search", "x", "-k", "0"),
        ("ls", "--offset", "-1"),
        ("read", "CURRENT", "a:b"),
        ("read", "CURRENT", "9:3"),
        ("read", "CURRENT", "0"),
        ("read", "CURRENT", ":"),
        ("grep",),
        ("fly",),
        ("ls", "--wings"),
    ],
)
def test_wrong_calls_exit_with_2(library: Shell, args: tuple[str, ...]) -> None:
    library("-q", *args).failed(2, "")


@pytest.mark.parametrize("tool", ["search", "grep"])
def test_an_empty_question_is_an_error(library: Shell, tool: str) -> None:
    library(tool, " ").failed(1, "is empty")


def test_context_pages_and_ranges(library: Shell) -> None:
    match = library("grep", "peanut", "--json").json["matches"][0]
    doc_id, line = match["doc_id"], match["line"]
    alone, around = (library("grep", "sister", "--doc", doc_id, "-C", number).out for number in "02")
    assert len(around.splitlines()) > len(alone.splitlines())
    assert library("ls", "--json").json["total"] > 1
    assert len(library("ls", "--offset", "1", "--limit", "1", "--json").json["docs"]) == 1
    lines = library("read", doc_id, f"{line}:{line}", "--json").json["lines"]
    assert [row["line"] for row in lines] == [line]
    assert library("read", doc_id.split("/")[-1], str(line), "--json").json["lines"] == lines
    assert library("read", doc_id, ":2", "--json").json["lines"][-1]["line"] == 2


def test_ls_goes_on_beyond_a_page(shell: Shell) -> None:
    for number in range(45):
        (shell.library / f"note-{number:02}.md").write_text(f"# {number}\n")
    docs = shell("--library", ".", "ls", "--limit", "43", "--offset", "1", "--json").json
    assert [doc["id"] for doc in docs["docs"]] == [f"note-{number:02}" for number in range(1, 44)]
    assert docs["total"] == 45


def test_status_counts(library: Shell) -> None:
    counts = library("status", "--json").json
    assert counts["evidence"] == 4
    assert counts["pending"] == 0
    assert counts["model"] == "offline"
    assert counts["last_receipt"]["id"].startswith("journal/0001-consolidate-")
    shown = library("status").out
    assert "buffer tokens\t0" in shown
    assert "not usable" in library("status", "--model", "gpt-x").out
