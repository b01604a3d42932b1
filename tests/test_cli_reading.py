"""ask, retrieve, search, grep, ls, read, status, doctor: JSON keys, ranges, exit codes."""

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


def test_ask_answers_with_citations(library: Shell) -> None:
    found = library("ask", "What is Ana allergic to?", "--json").json
    assert set(found) == {"answer", "citations", "trace", "usage"}
    assert "peanut" in found["answer"]
    assert {"doc_id", "start_line", "end_line", "seqs"} <= set(found["citations"][0])
    assert set(found["usage"]) == {"calls", "tokens_in", "tokens_out"}
    for reader in ("hybrid", "bm25"):
        assert "peanut" in library("ask", "What is Ana allergic to?", "--reader", reader).out


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


def test_retrieve_ranks_entries(library: Shell) -> None:
    found = library("retrieve", "Where is the router?", "--json").json
    assert set(found) == {"items", "trace"}
    items = found["items"]
    keys = {"doc_id", "start_line", "end_line", "seqs", "origin", "text", "score"}
    assert all(keys <= set(item) for item in items)
    assert "192.168.8.1" in items[0]["text"]
    assert "192.168.8.1" in library("retrieve", "Where is the router?", "--budget", "40").out
    user = library("retrieve", "peanut sauce", "--source", "user", "--json").json["items"]
    assert not any("sauce" in item["text"] for item in user)


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


def test_search_grep_ls_and_read_have_the_tools_keys(library: Shell) -> None:
    hits = library("search", "peanuts", "-k", "3", "--json").json["hits"]
    keys = {"doc_id", "title", "heading", "start_line", "end_line", "seqs", "score", "snippet"}
    assert hits and all(keys <= set(hit) for hit in hits)
    assert "peanuts" in library("search", "peanuts").out

    matches = library("grep", "peanut", "--json").json["matches"]
    assert {"doc_id", "line", "text"} <= set(matches[0])
    doc_id, line = matches[0]["doc_id"], matches[0]["line"]
    alone, around = (library("grep", "sister", "--doc", doc_id, "-C", number).out for number in "02")
    assert len(around.splitlines()) > len(alone.splitlines())
    assert len(library("grep", "sister", "-C", "2").out.splitlines()) > len(alone.splitlines())

    docs = library("ls", "--json").json
    assert {"docs", "total"} <= set(docs)
    assert {"id", "summary", "tokens", "archived"} <= set(docs["docs"][0])
    assert docs["total"] == len(docs["docs"])
    assert len(library("ls", "--offset", "1", "--limit", "1", "--json").json["docs"]) == 1

    lines = library("read", doc_id, f"{line}:{line}", "--json").json["lines"]
    assert [row["line"] for row in lines] == [line]
    assert "peanut" in lines[0]["text"].lower()
    assert library("read", doc_id.split("/")[-1], str(line), "--json").json["lines"] == lines
    assert library("read", doc_id, ":2", "--json").json["lines"][-1]["line"] == 2


def test_ls_goes_on_beyond_a_page(shell: Shell) -> None:
    for number in range(45):
        (shell.library / f"note-{number:02}.md").write_text(f"# {number}\n")
    docs = shell("--library", ".", "ls", "--limit", "43", "--offset", "1", "--json").json
    assert [doc["id"] for doc in docs["docs"]] == [f"note-{number:02}" for number in range(1, 44)]
    assert docs["total"] == 45


def test_a_document_that_is_not_there(library: Shell) -> None:
    library("read", "nowhere").failed(1, "no document")
    library("grep", "x", "--doc", "../../etc/passwd").failed(1, "no document")


def test_a_folder_of_notes_is_read_and_left_alone(shell: Shell) -> None:
    (shell.library / "food.md").write_text("# Food\nOat milk, please.\n- likes figs\n")
    (shell.library / "bad.md").write_bytes(b"\xff\xfe oat \x1b[31m\n")
    before = shell.tree()
    for args in (("ls",), ("search", "figs"), ("grep", "oat"), ("read", "bad"), ("status",), ("doctor",)):
        for option in ((), ("--json",)):
            ran = shell("--library", ".", *args, *option)
            assert ran.code == 0, ran
    assert shell("--library", ".", "retrieve", "figs", "--json").json["items"]
    assert "figs" in shell("--library", ".", "ask", "What fruit do I like, figs?").out
    assert shell.tree() == before


def test_status_counts(library: Shell) -> None:
    counts = library("status", "--json").json
    assert counts["evidence"] == 4
    assert counts["pending"] == 0
    assert counts["model"] == "offline"
    assert counts["last_receipt"]["id"] == "journal/0001-consolidate"
    shown = library("status").out
    assert "buffer tokens\t0" in shown
    assert "plans awaiting review\t0" in shown
    assert "not usable" in library("status", "--model", "gpt-x").out


def test_doctor_exits_with_1_on_errors_only(library: Shell) -> None:
    assert library("doctor", "--json").json == {"findings": []}
    with (library.library / "CURRENT.md").open("a") as buffer:
        buffer.write("- <seq=7,time=2025> broken\n- <seq= > broken\n")
    ran = library("doctor", "--json")
    assert ran.code == 1
    assert all({"level", "what", "where", "fix"} == set(finding) for finding in ran.json["findings"])
