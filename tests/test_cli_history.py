"""history, blame, log, undo and --as-of on the command line."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runner import Shell
from history_library import DOG, HOME, LISBON, PORTO, TALK, filled, rewrite

ROOT = Path(__file__).parents[1]


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    shell = Shell(tmp_path, monkeypatch)
    filled(shell.library)
    return shell


def on_a_terminal(library: Path, *args: str) -> str:
    """What a person sees, in 160 columns."""
    reader, writer = pty.openpty()
    env = {**os.environ, "COLUMNS": "160", "TERM": "dumb", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "infinimem", "--library", str(library), *args]
    with subprocess.Popen(command, stdout=writer, stderr=subprocess.DEVNULL, env=env, cwd=ROOT) as process:
        os.close(writer)
        seen = b""
        while True:
            try:
                part = os.read(reader, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            seen += part
        process.wait(60)
    os.close(reader)
    return seen.decode().replace("\r\n", "\n")


def test_history_has_a_row_an_event(shell: Shell) -> None:
    rows = shell("history", str(LISBON), "--json").json["rows"]
    assert [row["event"] for row in rows] == ["said", "drawn", "receipt", "receipt", "now", "heir"]
    said, drawn, moved, archived, now, heir = rows
    assert (said["seq"], said["session"], said["turn"], said["speaker"]) == (1, "s1", "D1:1", "Nora")
    assert said["where"].startswith("evidence/")
    assert drawn["origin"] == [1]
    assert (moved["receipt"], moved["was"], moved["now"]) == ("journal/0001-consolidate", "CURRENT", HOME)
    assert archived["why"] == now["why"] == f"superseded by {PORTO}"
    assert (heir["seq"], heir["text"]) == (PORTO, TALK[2].text)
    assert "" not in [value for row in rows for value in row.values()]


def test_history_in_a_pipe_is_a_line_an_event(shell: Shell) -> None:
    lines = shell("history", str(PORTO)).out.splitlines()
    assert len(lines) == 4
    assert lines[0].split("\t") == [
        "said", "3", "2025-06-01",
        "Nora said, in evidence/2025-06-01-s2:8, session s2, turn D2:1", "I moved to Porto.",
    ]  # fmt: skip
    assert "journal/0001-consolidate: moved, CURRENT → topics/home" in lines[2]


def test_history_on_a_terminal_is_a_small_story(shell: Shell) -> None:
    told = on_a_terminal(shell.library, "history", str(LISBON))
    story = told.splitlines()
    assert re.match(r"\[1\]     2025-03-03, \d+ (?:months|years) ago: Nora said, in ", story[0])
    words = " ".join(told.split())  # how long ago it is decides where a line is broken
    assert "Nora said, in evidence/2025-03-03-s1:8, session s1, turn D1:1 I live in Lisbon." in words
    assert "drawn from 1 into CURRENT" in words
    assert sum("I live in Lisbon." in line for line in story) == 1, "the same words once"
    assert any(f"superseded by {PORTO}" in line and "is in archive/home:" in line for line in story)
    assert story[-1].strip() == "I moved to Porto."


def test_history_of_an_edit_tells_the_words_before(shell: Shell) -> None:
    rewrite_in(shell, DOG, "Rex.", "Max.")
    told = on_a_terminal(shell.library, "history", "8")
    assert "edited, in topics/dog, before:\n" in told
    assert told.count("My dog is called Rex.") == 2  # what was said and drawn, and what the edit replaced
    assert "My dog is called Max." in told


def rewrite_in(shell: Shell, doc_id: str, old: str, new: str) -> None:
    from infinimem.memory import open_memory

    memory = open_memory(shell.library, model="offline")
    rewrite(memory, doc_id, old, new)
    memory.library.adopt_edits()


def test_blame_reads_like_git_blame(shell: Shell) -> None:
    rows = shell("blame", "home", "--json").json["rows"]
    lines = (shell.library / f"{HOME}.md").read_text().splitlines()
    assert [row["line"] for row in rows] == list(range(1, len(lines) + 1))
    (porto,) = (row for row in rows if row.get("seq") == PORTO)
    assert (porto["kind"], porto["receipt"], porto["why"]) == ("entry", "journal/0001-consolidate", "moved")
    assert [(turn["seq"], turn["turn"], turn["session"]) for turn in porto["turns"]] == [(3, "D2:1", "s2")]
    assert shell("blame", f"{HOME}:{porto['line']}", "--json").json["rows"] == [porto]
    (line,) = shell("blame", f"{HOME}:{porto['line']}").out.splitlines()
    assert line.split("\t")[:4] == [
        str(porto["line"]), str(PORTO), f"0001-consolidate {porto['time'][:10]}",
        "evidence/2025-06-01-s2:8 Nora 2025-06-01 D2:1",
    ]  # fmt: skip
    shown = on_a_terminal(shell.library, "blame", f"home:{porto['line']}").splitlines()
    assert shown[0] == f"{porto['line']:<8}[{PORTO}] I moved to Porto."
    assert re.fullmatch(
        rf" {{8}}Nora, 2025-06-01, \d+ \w+ ago, D2:1; 0001-consolidate {porto['time'][:10]}", shown[1]
    )


def test_log_is_newest_first(shell: Shell) -> None:
    rows = shell("log", "--json").json["rows"]
    assert [row["id"] for row in rows] == ["journal/0002-consolidate", "journal/0001-consolidate"]
    assert rows[0]["reasons"] == {"superseded": 1}
    assert rows[1]["reasons"] == {"moved": 4}
    assert set(rows[0]["files"]) == {HOME, "archive/home"}
    assert [row["id"] for row in shell("log", "-n", "1", "--json").json["rows"]] == [rows[0]["id"]]
    assert shell("log", "-n", "1").out.split("\t")[0] == "journal/0002-consolidate"
    assert "0001-consolidate" in on_a_terminal(shell.library, "log")


def test_log_of_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shell = Shell(tmp_path, monkeypatch)
    (shell.library / "note.md").write_text("# Mine\n")
    ran = shell("--library", ".", "log")
    assert (ran.code, ran.out) == (0, "")
    assert "no receipts" in ran.err
    assert shell("--library", ".", "log", "--json").json == {"rows": []}


def test_undo_names_what_depends_on_it(shell: Shell) -> None:
    ran = shell("undo", "1")
    ran.failed(1, "journal/0002-consolidate")
    assert "--together" in ran.err
    done = shell("undo", "1", "--together", "--json").json["receipts"]
    assert [receipt["op"] for receipt in done] == ["undo", "undo"]
    assert "I live in Lisbon" in (shell.library / "CURRENT.md").read_text()


def test_reading_the_past_writes_nothing(shell: Shell) -> None:
    before = shell.tree()
    for args in (("history", "5"), ("blame", HOME), ("log",), ("read", HOME, "--as-of", "6")):
        assert shell(*args).code in (0, 1)
    assert shell.tree() == before
