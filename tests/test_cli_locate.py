"""Which library a command means."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_runner import Shell

from infinimem.cli.locate import Location, locate, or_notes
from infinimem.errors import UsageError


@pytest.fixture(autouse=True)
def empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable says where anything is."""
    for name in ("INFINIMEM_LIBRARY", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/u")


def test_the_option_comes_first_then_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INFINIMEM_LIBRARY", "/from/env")
    (tmp_path / "infinimem.toml").touch()
    assert locate("/named", tmp_path) == Location(Path("/named"))
    assert locate("near", tmp_path) == Location(tmp_path / "near")
    assert locate(None, tmp_path) == Location(Path("/from/env"))
    monkeypatch.setenv("INFINIMEM_LIBRARY", "")
    assert locate(None, tmp_path) == Location(tmp_path)


def test_the_nearest_library_above_comes_next(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "infinimem.toml").touch()
    assert locate(None, inner) == Location(tmp_path)
    (tmp_path / "a" / "infinimem.toml").touch()
    assert locate(None, inner) == Location(tmp_path / "a")


def test_the_default_library_comes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    default = Location(Path("/home/u/.local/share/infinimem/default"), is_default=True)
    assert locate(None, tmp_path) == default
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert locate(None, tmp_path) == default
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert locate(None, tmp_path).path == Path("/data/infinimem/default")
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", "")
    with pytest.raises(UsageError, match="--library"):
        locate(None, tmp_path)


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
@pytest.mark.parametrize("command", [["retrieve", "tea"], ["status"], ["log"], ["lint"]])
def test_any_other_command_needs_a_library(shell: Shell, notes: Path, command: list[str]) -> None:
    shell(*command).failed(1, "there is no library")


def test_it_is_not_said_of_what_was_named_or_where_it_shall_be_quiet(shell: Shell, notes: Path) -> None:
    assert "no library" not in shell("ls", "--library", ".").err
    assert "no library" not in shell("ls", "-q").err
    assert shell("ls", "--library", ".").out == shell("ls", "-q").out != ""


def test_a_default_library_that_is_there_goes_first(shell: Shell, notes: Path) -> None:
    shell("add", "I have a cat.")
    ran = shell("ls")
    assert ("til/tea" in ran.out, "no library" in ran.err) == (False, False)


def test_nobodys_home_is_searched_for_want_of_a_library(
    shell: Shell, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for home in (notes, notes / "til", notes / "til/deeper"):
        monkeypatch.setenv("HOME", str(home))
        shell("ls").failed(1, "there is no library")
    place = Location(Path("/nowhere"), is_default=True)
    monkeypatch.delenv("HOME")
    assert or_notes(place, Path("/")) == place
    monkeypatch.setenv("HOME", "/home/u")
    assert or_notes(place, Path("/")) == place
    assert or_notes(place, notes) == Location(notes)


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
    (notes / "two.txt").touch()
    shell("ls").failed(2, "--library .")
    assert shell("ls", "--library", ".").code == 0
