"""With `git = true`, git itself shows a consolidation as moves: lines by --color-moved, units as renames."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
from git_repository import Repository
from trusting import write_trusted
from unit_updates import updates as updates

from infinimem import Turn, open_memory

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

MOVED = {"\x1b[1;35m": "-", "\x1b[1;34m": "-", "\x1b[1;36m": "+", "\x1b[1;33m": "+"}
"""Git's colours of moved lines: magenta and blue where they were, cyan and yellow where they are."""
CHANGED = {"\x1b[31m": "-", "\x1b[32m": "+"}
"""Red and green: taken out, put in."""
_CODE = re.compile(r"\x1b\[[0-9;]*m")
_SIGNED = re.compile(r"[-+]- <seq=(\d+)[,>]")


@dataclass(frozen=True)
class Row:
    """A line of a diff: "-" or "+", whether git paints it as moved, and its text."""

    sign: str
    moved: bool
    text: str

    @property
    def seq(self) -> int | None:
        found = _SIGNED.match(self.text)
        return int(found[1]) if found else None


def painted(diff: str) -> Iterator[Row]:
    """The lines that a coloured diff takes out and puts in."""
    for line in diff.splitlines():
        code = _CODE.match(line)
        colour = code[0] if code else ""
        plain = _CODE.sub("", line)
        if plain.startswith(("---", "+++")) and not _SIGNED.match(plain):
            continue
        if colour in MOVED or colour in CHANGED:
            yield Row({**MOVED, **CHANGED}[colour], colour in MOVED, plain)


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody configured this machine's git."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))


def commits(root: Path, git: Callable[..., str]) -> list[str]:
    """Of consolidations, oldest first."""
    told = git(root, "log", "--reverse", "--format=%H %s").splitlines()
    return [row.split()[0] for row in told if row.split()[1].startswith("consolidate")]


def test_a_years_consolidations_are_moves(load: Callable[[str], ModuleType], tmp_path: Path) -> None:
    builder = load("git_diary")
    root = tmp_path / "repo"
    root.mkdir()
    builder.begin(root)
    builder.keep(root)
    memory = open_memory(root / "memory", model="offline")
    receipts = {receipt.number: receipt for receipt in memory.receipts()}
    asked = ("--color=always", "--color-moved=zebra", "--unified=0")
    checked = 0
    for commit in commits(root, builder.git):
        files = builder.git(root, "show", "--format=", "--name-only", commit)
        (number,) = map(int, re.findall(r"journal/(\d+)-", files))
        moved = {row.seq for row in receipts[number].rows}
        rows = [*painted(builder.git(root, "diff", *asked, f"{commit}~1", commit, "--", ":!memory/journal"))]
        signed = [row for row in rows if row.seq is not None]
        stayed = moved - {row.seq for row in signed}  # another heading stands above them now
        assert all(row.was == row.now for row in receipts[number].rows if row.seq in stayed), commit
        assert {row.seq for row in signed} == moved - stayed, commit
        assert [row.text for row in signed if not row.moved] == [], commit
        for seq in moved - stayed:  # once taken from where it was, once put where it is
            assert sorted(row.sign for row in signed if row.seq == seq) == ["+", "-"], (commit, seq)
        assert not [row for row in rows if row.moved and row.seq is None and "<seq=" in row.text]
        checked += len(moved - stayed)
    assert checked > 80


def test_a_line_that_was_edited_is_no_move(tmp_path: Path) -> None:
    """The colours tell: without this, a diff that paints everything would pass."""
    place = Repository.begun(tmp_path / "repo")
    long = "- <seq=41,source=user,origin=40> Drinks oat-milk latte in the morning"
    for name, text in (("a.md", f"{long}\n"), ("b.md", "nothing\n")):
        (place.root / name).write_text(text)
    place.save("Before")
    (place.root / "a.md").write_text("")
    (place.root / "b.md").write_text(f"nothing\n{long} and at noon\n")
    rows = [*painted(place.git("diff", "--color=always", "--color-moved=zebra"))]
    assert [(row.sign, row.moved, row.seq) for row in rows] == [("-", False, 41), ("+", False, 41)]
    (place.root / "b.md").write_text(f"nothing\n{long}\n")
    rows = [*painted(place.git("diff", "--color=always", "--color-moved=zebra"))]
    assert [(row.sign, row.moved, row.seq) for row in rows] == [("-", True, 41), ("+", True, 41)]


@pytest.mark.usefixtures("updates")
def test_an_archived_unit_is_a_rename(tmp_path: Path) -> None:
    place = Repository.begun(tmp_path / "repo")
    place.memory.mkdir()
    write_trusted(place.memory, 'format = 1\nstrategy = "allmem"\ngit = true\n')
    memory = open_memory(place.memory, model="offline", create=True)
    said = (
        ("s1", "I moved to Porto.", "I have a cat called Olive.", "My favourite tea is Darjeeling."),
        ("s2", "I moved to Lisbon.", "My favourite tea is Assam."),
    )
    for day, (session, *texts) in enumerate(said, 1):
        memory.observe([Turn(text, speaker="Ana", session=session, time=f"2025-03-0{day}") for text in texts])
    receipt = memory.consolidate()
    assert receipt is not None
    archived = [
        name for name, before, _ in receipt.files if name.startswith("allmem/archive/") and before == "-"
    ]
    told = place.git("diff", "-M", "--name-status", "HEAD~1", "HEAD").splitlines()
    renames = {
        old.removeprefix("memory/").removesuffix(".md"): new.removeprefix("memory/").removesuffix(".md")
        for kind, old, new in (row.split("\t") for row in told if row.startswith("R"))
        if int(kind[1:]) >= 50
    }
    assert renames == {name.replace("archive", "units"): name for name in archived}
    assert len(archived) == 2
    stat = place.git("log", "-1", "--stat", "-M", "--format=")
    assert stat.count("allmem/{units => archive}/u-") == 2
    assert place.git("log", "--follow", "-M", "--format=%s", f"memory/{archived[0]}.md").count("\n") >= 2
