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


def test_a_dry_run_shows_every_line_and_writes_nothing(shell: Shell) -> None:
    before = shell.tree()
    rows = shell("--json", "forget", "--match", "peanuts", "--dry-run").json["rows"]
    assert [(row["seq"], row["text"]) for row in rows] == [(1, SECRET), (2, SECRET)]
    assert all(row["doc_id"] and row["line"] for row in rows)
    ran = shell("forget", "--seq", "2", "--dry-run")
    assert (ran.code, ran.out.count(SECRET), ran.err) == (0, 2, "")
    assert shell.tree() == before


def test_in_a_pipe_it_only_shows_and_says_so(shell: Shell) -> None:
    before = shell.tree()
    ran = shell("forget", "--match", "peanuts")
    assert ran.out.count(SECRET) == 2
    assert ran.err == "nothing was forgotten; add --yes to forget them\n"
    assert shell.tree() == before


def test_done_the_report_has_no_word_of_it(shell: Shell) -> None:
    ran = shell("--json", "forget", "--match", "PEANUT.*satay", "--yes")
    found = ran.json
    assert [row["seq"] for row in found["rows"]] == [1, 2]
    assert (found["receipt"], found["left"], found["repeated"]) == ("journal/0002-forget", [], [])
    assert not any(word in ran.out + ran.err for word in ("peanuts", "satay", "llergic"))
    assert held([SECRET], shell.library) == {}
    assert shell("doctor").code == 0
    assert OTHER in shell("grep", "Rita").out


def test_it_says_that_nothing_is_left_or_what_is(shell: Shell) -> None:
    (shell.library / "mine.md").write_text(f"{OTHER}\n")
    assert "nothing of it is left in the library or its cache\n" in shell("forget", "--seq", "1", "--yes").out
    out = shell("forget", "--match", "Rita", "--yes").out
    assert "nothing is left" not in out
    assert "mine.md still holds some of it (a person's note: edit it)" in out


def test_what_git_keeps_is_said_even_where_talk_is_not_wanted(shell: Shell) -> None:
    (shell.library / ".git").mkdir()
    assert "git filter-repo" in shell("--json", "forget", "--seq", "1").json["history"]
    assert "git keeps what earlier commits held" in shell("-q", "forget", "--seq", "1", "--yes").out


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


def test_a_session_goes_by_its_name(shell: Shell) -> None:
    shell("-q", "add", "I keep a fish.", "--session", "On the zebrafish")
    found = shell("--json", "forget", "--session", "On the zebrafish", "--yes").json
    assert [row["seq"] for row in found["rows"]] == [5, 6]
    (left,) = found["left"]
    assert left["path"].endswith("-on-the-zebrafish.md") and "infinimem rename evidence/" in left["why"]
