"""history, blame and log as people and pipes see them; tests/contract/test_look_back.py has the rest."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cli_runner import Shell, at_a_terminal
from history_library import HOME, LISBON, PORTO, filled


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    shell = Shell(tmp_path, monkeypatch)
    filled(shell.library)
    return shell


def seen(shell: Shell, *args: str) -> str:
    """What a person sees, in 160 columns."""
    return at_a_terminal("--library", str(shell.library), *args, COLUMNS="160", TERM="dumb", NO_COLOR="1")


def test_history_in_a_pipe_is_a_line_an_event(shell: Shell) -> None:
    lines = shell("history", str(PORTO)).out.splitlines()
    assert len(lines) == 4
    assert lines[0].split("\t") == [
        "said", "3", "2025-06-01",
        "Nora said, in evidence/2025-06-01-s2:8, session s2, turn D2:1", "I moved to Porto.",
    ]  # fmt: skip
    assert re.search("journal/0001-consolidate-[0-9a-f]{6}: moved, CURRENT → topics/home", lines[2])


def test_history_on_a_terminal_is_a_small_story(shell: Shell) -> None:
    story = seen(shell, "history", str(LISBON)).splitlines()
    assert re.match(r"\[1\]     2025-03-03, \d+ (?:months|years) ago: Nora said, in ", story[0])
    words = " ".join(" ".join(story).split())  # how long ago it is decides where a line is broken
    assert "Nora said, in evidence/2025-03-03-s1:8, session s1, turn D1:1 I live in Lisbon." in words
    assert "drawn from 1 into CURRENT" in words
    assert sum("I live in Lisbon." in line for line in story) == 1, "the same words once"
    assert any(f"superseded by {PORTO}" in line and "is in archive/home:" in line for line in story)
    assert story[-1].strip() == "I moved to Porto."


def test_blame_reads_like_git_blame(shell: Shell) -> None:
    rows = shell("blame", "home", "--json").json["rows"]
    (porto,) = (row for row in rows if row.get("seq") == PORTO)
    day = porto["time"][:10]
    assert shell("blame", f"{HOME}:{porto['line']}", "--json").json["rows"] == [porto]
    (line,) = shell("blame", f"{HOME}:{porto['line']}").out.splitlines()
    where = "evidence/2025-06-01-s2:8 Nora 2025-06-01 D2:1"
    assert line.split("\t")[:4] == [str(porto["line"]), str(PORTO), f"{porto['receipt'][8:]} {day}", where]
    words, who = seen(shell, "blame", f"home:{porto['line']}").splitlines()
    assert words == f"{porto['line']:<8}[{PORTO}] I moved to Porto."
    receipt = f"receipt 1{porto['receipt'][-7:]} {day}"
    assert re.fullmatch(rf" {{8}}Nora, 2025-06-01, \d+ \w+ ago, D2:1; {receipt}", who)


def test_log_is_newest_first(shell: Shell) -> None:
    rows = shell("log", "--json").json["rows"]
    assert [row["id"][:-7] for row in rows] == ["journal/0002-consolidate", "journal/0001-consolidate"]
    assert [row["reasons"] for row in rows] == [{"superseded": 1}, {"moved": 4}]
    assert set(rows[0]["files"]) == {HOME, "archive/home"}
    assert [row["id"] for row in shell("log", "-n", "1", "--json").json["rows"]] == [rows[0]["id"]]
    assert shell("log", "-n", "1").out.split("\t")[0] == rows[0]["id"]
    assert "0001-consolidate" in seen(shell, "log")


def test_log_of_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shell = Shell(tmp_path, monkeypatch)
    (shell.library / "note.md").write_text("# Mine\n")
    ran = shell("--library", ".", "log")
    assert (ran.code, ran.out) == (0, "")
    assert "no receipts" in ran.err
    assert shell("--library", ".", "log", "--json").json == {"rows": []}


def test_reading_the_past_writes_nothing(shell: Shell) -> None:
    before = shell.tree()
    for args in (("history", "5"), ("blame", HOME), ("log",), ("read", HOME, "--as-of", "6")):
        assert shell(*args).code in (0, 1)
    assert shell.tree() == before
