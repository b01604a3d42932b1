"""Which library a command means."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_runner import Shell


def meant(shell: Shell, *args: str) -> Path:
    return Path(shell("--json", *args, "config").json["library"])


def test_an_option_the_environment_a_folder_above_the_default(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    default = shell.home / ".local/share/infinimem/default"
    assert meant(shell) == default
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert meant(shell) == default
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert meant(shell) == Path("/data/infinimem/default")
    (shell.library / "a/b").mkdir(parents=True)
    monkeypatch.chdir(shell.library / "a/b")
    for folder in (shell.library, shell.library / "a"):  # the nearest one counts
        (folder / "infinimem.toml").touch()
        assert meant(shell) == folder
    monkeypatch.setenv("INFINIMEM_LIBRARY", "/from/env")
    assert meant(shell) == Path("/from/env")
    assert meant(shell, "--library", "near") == shell.library / "a/b/near"
    assert meant(shell, "--library", "/named") == Path("/named")


def test_without_a_home_a_library_must_be_named(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "")
    shell("ls").failed(2, "--library")


# ── where there is no library ───────────────────────────────────────────────────────────────────


@pytest.fixture
def notes(shell: Shell) -> Path:
    (shell.library / "til").mkdir()
    (shell.library / "til/tea.md").write_text("# Tea\n\nSteep it for three minutes.\n")
    return shell.library


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["search", "steep tea"], "til/tea"),
        (["grep", "steep"], "til/tea"),
        (["ls"], "til/tea"),
        (["read", "til/tea"], "three minutes"),
        (["read", "./til/tea.md"], "three minutes"),
        (["ask", "How long do I steep tea?"], "three minutes"),
        (["retrieve", "steep tea"], "three minutes"),
        (["status"], "documents\t1"),
    ],
)
def test_what_only_looks_uses_the_folder_of_notes_and_says_so(
    shell: Shell, notes: Path, command: list[str], told: str
) -> None:
    before = shell.tree()
    ran = shell(*command)
    assert (ran.code, ran.err.count(f"there is no library here: reading the notes in {notes}\n")) == (0, 1)
    assert told in ran.out
    assert shell.tree() == before
    assert list(shell.home.iterdir()) == []


@pytest.mark.sample(2)
@pytest.mark.parametrize("command", [["log"], ["lint"], ["history", "1"], ["undo"]])
def test_what_looks_back_needs_a_library(shell: Shell, notes: Path, command: list[str]) -> None:
    shell(*command).failed(1, "there is no library")


def test_it_is_not_said_of_what_was_named_or_where_it_shall_be_quiet(shell: Shell, notes: Path) -> None:
    assert "reading" not in shell("ls", "--library", ".").err
    assert "reading" not in shell("ls", "-q").err
    assert shell("ls", "--library", ".").out == shell("ls", "-q").out != ""


READS = (["search", "tea"], ["retrieve", "tea"], ["ls"], ["status"], ["recall", "tea"])


@pytest.mark.parametrize("mark", ["", ".obsidian", "logseq"])
def test_a_folder_of_notes_goes_before_the_default_library(shell: Shell, notes: Path, mark: str) -> None:
    shell("add", "I have a cat.")
    if mark:  # a vault may hold more of other files
        (notes / mark).mkdir()
        for number in range(9):
            (notes / f"{number}.txt").touch()
    before = shell.tree()
    for command in READS:
        assert f"not your default library: reading the notes in {notes}\n" in shell(*command).err
    assert "til/tea" in shell("ls").out
    assert shell("add", "I have a dog.").code == 0
    assert shell.tree() == before


def test_a_repository_with_a_readme_is_none_and_that_is_said_once(shell: Shell, notes: Path) -> None:
    shell("add", "I have a cat.")
    for number in range(2):
        (notes / f"{number}.py").touch()
    first = shell("search", "cat")
    assert ("I have a cat" in first.out, first.err.count("--library .")) == (True, 1)
    assert "--library ." not in shell("search", "cat").err


@pytest.mark.parametrize(
    "command", [["search"], ["grep"], ["retrieve"], ["ask"], ["recall"], ["--library", ".", "recall"]]
)
def test_what_finds_nothing_says_where_it_looked(shell: Shell, notes: Path, command: list[str]) -> None:
    assert f"nothing is found in {notes}, which has 1 document\n" in shell(*command, "zebras").err


def test_recall_reads_what_is_named_and_says_what_hooks_do_not(shell: Shell, tmp_path: Path) -> None:
    shell("init", str(tmp_path / "mine"))
    shell("--library", str(tmp_path / "mine"), "add", "I am allergic to hazelnuts.")
    assert "hazelnuts" in shell("--library", str(tmp_path / "mine"), "recall", "lunch").out
    shell("trust", str(tmp_path / "mine"), "--remove")
    ran = shell("--library", str(tmp_path / "mine"), "recall", "lunch")
    assert "hazelnuts" in ran.out
    assert f"hooks do not read {tmp_path / 'mine'}" in ran.err


def test_nobodys_home_is_searched_for_want_of_a_library(
    shell: Shell, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for home in (notes, notes / "til", notes / "til/deeper"):
        monkeypatch.setenv("HOME", str(home))
        shell("ls").failed(1, "there is no library")


def test_without_notes_there_is_nothing_to_read(shell: Shell) -> None:
    (shell.library / "code.py").touch()
    (shell.library / ".hidden.md").touch()
    (shell.library / ".git").mkdir()
    (shell.library / ".git/note.md").touch()
    shell("ls").failed(1, "there is no library")


def test_a_folder_of_very_many_files_must_be_named(
    shell: Shell, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("infinimem.cli.locate.MOST", 2)
    (notes / "til/one.txt").touch()
    assert shell("ls").code == 0
    (notes / "two.png").touch()  # what lies beside notes is read, too
    shell("ls").failed(2, "--library .")
    assert shell("ls", "--library", ".").code == 0
    shell("add", "I have a cat.")
    assert "for the notes in" in shell("search", "cat").err
    assert "the notes in" not in shell("add", "I have a dog.").err
    (notes / ".obsidian").mkdir()
    assert "til/tea" in shell("ls").out
