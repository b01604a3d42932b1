"""What a process sees of what others did to a library's files (docs/RELIABILITY.md, What a call sees)."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from cli_runner import Shell

from infinimem import Memory, open_memory

MANY = 320
"""Documents of a library in which a call does not look at every file."""
NOTE = "# Kettle\n\nThe kettle is copper.\n"


def _save_by_renaming(root: Path) -> None:
    (root / ".swap").write_text("# Pot\n")
    (root / ".swap").rename(root / "notes/kettle.md")


def _put_a_link_in_its_place(root: Path) -> None:
    (root / "notes").rename(root.parent / "elsewhere")
    (root / "notes").symlink_to(root.parent / "elsewhere")


def _put_a_folder_in_its_place(root: Path) -> None:
    (root / "notes").rename(root / "old")
    (root / "notes").mkdir()
    (root / "notes/kettle.md").write_text("# Pot\n")


STEPS: Mapping[str, tuple[Callable[[Path], object], str]] = {
    "created": (lambda root: (root / "made.md").write_text(NOTE), "made notes/kettle"),
    "deleted": (lambda root: (root / "notes/kettle.md").unlink(), ""),
    "renamed": (lambda root: (root / "notes/kettle.md").rename(root / "notes/pan.md"), "notes/pan"),
    "moved": (lambda root: (root / "notes/kettle.md").rename(root / "pan.md"), "pan"),
    "saved by renaming": (_save_by_renaming, ""),
    "a folder renamed": (lambda root: (root / "notes").rename(root / "more"), "more/kettle"),
    "a folder removed": (lambda root: shutil.rmtree(root / "notes"), ""),
    "a link in a folder's place": (_put_a_link_in_its_place, ""),
    "a folder in its place": (_put_a_folder_in_its_place, "old/kettle"),
}


def found(memory: Memory) -> str:
    """The notes about copper, as grep and search of the same process find them."""
    grep = {row["doc_id"] for row in memory.tools.grep("copper")["matches"]}
    assert {hit["doc_id"] for hit in memory.tools.search("copper")["hits"]} == grep
    return " ".join(sorted(grep))


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    """A large library that this process has seen, and whose folders have been at rest for some time."""
    root = tmp_path / "m"
    (root / "notes").mkdir(parents=True)
    for number in range(MANY):
        (root / f"{number}.md").write_text(f"# Note {number}\n")
    (root / "notes/kettle.md").write_text(NOTE)
    memory = open_memory(root, model="offline", create=True)
    time.sleep(0.1)
    assert found(memory) == "notes/kettle"
    return memory


@pytest.mark.sample(3)
@pytest.mark.parametrize("step", STEPS)
def test_what_comes_or_goes_is_seen_by_the_next_call(memory: Memory, step: str) -> None:
    """Whatever is created, deleted, renamed or saved by renaming, the next call of a running process sees."""
    change, expected = STEPS[step]
    change(memory.library.root)
    assert found(memory) == expected
    time.sleep(0.1)
    assert found(memory) == expected


def test_an_edit_in_place_is_seen_in_time(memory: Memory, shell: Shell) -> None:
    """A process that runs on sees it in a call that begins 2 s later, a new one at once."""
    root = memory.library.root
    for metal in ("copper", "iron"):  # before the system is asked to report edits, and after
        (root / "7.md").write_text(f"# Seven\n\nA ladle of {metal}.\n")
        assert f"A ladle of {metal}" in shell("--library", str(root), "search", metal).out
        time.sleep(2.0)
        assert found(memory) == ("7 notes/kettle" if metal == "copper" else "notes/kettle")
    memory.close()


def test_what_other_processes_write_is_seen_by_the_next_call(memory: Memory, shell: Shell) -> None:
    """However infinimem writes, each of its other processes sees it at once."""
    root = str(memory.library.root)
    with open_memory(root, model="offline", trust=True):
        for step in (
            ("add", "The copper pan leaks.", "--session", "s"),
            ("consolidate",),
            ("forget", "--match", "copper pan", "--yes"),
            ("add", "The copper lid fits.", "--session", "s"),
        ):
            assert shell("--library", root, *step).code == 0, step
            with open_memory(root, model="offline") as fresh:
                assert found(memory) == found(fresh), step
