"""`infinimem forget`: shows first, asks, and reports without a word of what went."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from cli_runner import Shell
from forget_library import held

from infinimem.cli.output import Output

SECRET = "I am allergic to peanuts, so no satay for me."
OTHER = "My sister Rita visits me on 14 June."


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = Shell(tmp_path, monkeypatch)
    made("init")
    made("-q", "add", SECRET, "--session", "s")
    made("-q", "add", OTHER, "--session", "s")
    made("-q", "consolidate")
    return made


def test_without_yes_it_shows_every_line_and_writes_nothing(shell: Shell) -> None:
    before = shell.tree()
    rows = shell("--json", "forget", "--match", "peanuts", "--dry-run").json["rows"]
    assert [(row["seq"], row["text"]) for row in rows] == [(1, SECRET), (2, SECRET)]
    ran = shell("forget", "--match", "peanuts")
    assert ran.out.count(SECRET) == 2
    assert ran.err == "nothing was forgotten; add --yes to forget them\n"
    assert shell.tree() == before


def test_it_says_that_nothing_is_left_or_what_is(shell: Shell) -> None:
    (shell.library / "mine.md").write_text(f"{OTHER}\n")
    assert "nothing of it is left in the library or its cache\n" in shell("forget", "--seq", "1", "--yes").out
    out = shell("forget", "--match", "Rita", "--yes").out
    assert "nothing is left" not in out
    assert "mine.md still holds some of it (a person's note: edit it)" in out


class Keyboard(io.BytesIO):
    """Standard input that a person types at a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("answer", ["y\n", "n\n"])
def test_a_person_at_a_terminal_is_asked(shell: Shell, monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    monkeypatch.setattr(Output, "for_people", True)
    before = shell.tree()
    ran = shell("forget", "--seq", "1", input=Keyboard(answer.encode()))
    assert SECRET in ran.out
    assert "Forget 2 lines for good? [y/N]" in ran.err
    assert ("2 lines forgotten" in ran.out) == (answer == "y\n")
    assert (shell.tree() == before) == (answer == "n\n")
    assert ("nothing was forgotten" in ran.err) == (answer == "n\n")


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["forget"], "in one way"),
        (["forget", "--seq", "1", "--match", "x"], "in one way"),
        (["forget", "--seq", "1", "--session", "s"], "in one way"),
        (["forget", "--seq", "one"], "write numbers with commas between"),
        (["forget", "--seq", "1,99"], "no line has seq 99"),
        (["forget", "--source", "robot"], "--source"),
    ],
)
def test_wrong_calls(shell: Shell, arguments: list[str], words: str) -> None:
    before = shell.tree()
    shell(*arguments).failed(2, words)
    assert shell.tree() == before


def test_what_was_forgotten_is_told_and_not_undone(shell: Shell) -> None:
    shell("forget", "--seq", "1", "--yes")
    shell("forget", "--seq", "1").failed(2, "forgotten already: 1 (receipt 2)")
    shell("undo", "2").failed(1, "cannot be undone")
    assert "forgotten" in shell("history", "1").out


def test_what_is_no_pattern_is_taken_literally(shell: Shell) -> None:
    shell("-q", "add", "Costs 3 (three euros", "--session", "s")
    ran = shell("forget", "--match", "3 (three", "--yes")
    assert "searched for literally" in ran.err
    assert held(["Costs 3 (three euros"], shell.library) == {}
