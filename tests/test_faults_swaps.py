"""Somebody swaps a folder of the library for a link to another place while it is written to.

What lies behind the link is another's, with the very names that the library has: it stays as it is, and
nothing comes to it.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from fault_disk import Call, Hook, hooked, nothing
from fault_library import problems
from fault_work import copy, expected, prepared, work

from infinimem.adapters.file_tree import FileTree
from infinimem.errors import InfinimemError
from infinimem.memory import open_memory
from infinimem.model import Located

__all__ = ["expected", "prepared"]

FOLDERS = ("topics", "evidence", "journal", "memories", "memories/deep", ".infinimem", ".infinimem/tx")
BY_DESCRIPTOR = ("write", "truncate", "sync", "sync_folder")
"""Calls that name nothing; no link can lead them elsewhere."""
COMMANDS: Sequence[dict[str, Any]] = (
    {"command": "create", "path": "/memories/new.md", "file_text": "tea\n"},
    {"command": "create", "path": "/memories/deep/er/new.md", "file_text": "tea\n"},
    {"command": "str_replace", "path": "/memories/kept.md", "old_str": "one", "new_str": "two"},
    {"command": "insert", "path": "/memories/deep/kept.md", "insert_line": 1, "insert_text": "three"},
    {"command": "rename", "old_path": "/memories/new.md", "new_path": "/memories/deep/moved.md"},
    {"command": "view", "path": "/memories"},
    {"command": "delete", "path": "/memories/deep"},
)


class Swap:
    """A folder that can be swapped for a link, and back.

    Args:
        root: the library.
        folder: which of its folders.
        outside: where the link leads.
    """

    def __init__(self, root: Path, folder: str, outside: Path) -> None:
        self._folder, self._aside = root / folder, outside.with_name("aside")
        self._outside = outside / folder

    def __enter__(self) -> None:
        with suppress(FileNotFoundError):
            self._folder.rename(self._aside)
            self._folder.symlink_to(self._outside)

    def __exit__(self, *_: object) -> None:
        if self._folder.is_symlink():
            self._folder.unlink()
        if self._aside.exists():
            with suppress(OSError):  # it was made again meanwhile, and holds something
                self._folder.rmdir()
            if self._folder.exists():
                shutil.copytree(self._aside, self._folder, dirs_exist_ok=True)
                shutil.rmtree(self._aside)
            else:
                self._aside.rename(self._folder)


def standing(outside: Path) -> dict[str, tuple[bytes, int, int] | None]:
    """All that lies there: bytes, permissions, and which file it is."""
    found: dict[str, tuple[bytes, int, int] | None] = {}
    for path in sorted(outside.rglob("*")):
        info = path.lstat()
        found[str(path.relative_to(outside))] = (
            (path.read_bytes(), info.st_mode, info.st_ino) if path.is_file() else None
        )
    return found


@pytest.fixture(scope="module")
def furnished(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of fault_work.py with files of a model, and folders for whatever is swapped."""
    root = copy(prepared, tmp_path_factory.mktemp("furnished") / "library")
    files = FileTree(open_memory(root, model="offline"))
    for path in ("/memories/kept.md", "/memories/deep/kept.md"):
        files.run({"command": "create", "path": path, "file_text": "one\n"})
    for folder in FOLDERS:
        (root / folder).mkdir(exist_ok=True)
    return root


def busy(root: Path, told: dict[int, str]) -> None:
    """All that is ever written: turns, entries, a consolidation, a model's files. Errors end one step."""

    def acknowledge(lines: Sequence[Located]) -> None:
        told.update((line.seq, line.text) for line in lines)

    with suppress(InfinimemError, AssertionError):
        work(root, acknowledge)
    for command in COMMANDS:
        with suppress(InfinimemError):
            FileTree(open_memory(root, model="offline")).run(command)


def places(furnished: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A fresh library, and another place with the same names."""
    return copy(furnished, tmp_path / "library"), copy(furnished, tmp_path / "outside")


def swapped_at(number: int, folder: str, root: Path, outside: Path) -> Hook:
    """The link stands while one call is made, and no longer: whatever was looked at before it is outdated.

    Args:
        number: which call.
        folder: what is swapped; "" for the folder that the call is about, if it is about one.
        root: the library.
        outside: where the link leads.
    """

    def hook(call: Call) -> Any:
        about = getattr(call.args[0], "path", "").rpartition("/")[0]
        if call.number != number or not (folder or about):
            return call()
        with Swap(root, folder or about, outside):
            return call()

    return hook


@pytest.mark.parametrize(
    ("folder", "step"), [("", 23), *(pytest.param(name, 1, marks=pytest.mark.soak) for name in FOLDERS)]
)
def test_a_folder_swapped_at_any_call_leads_nowhere(
    furnished: Path, tmp_path: Path, folder: str, step: int
) -> None:
    root, outside = places(furnished, tmp_path)
    with hooked(nothing) as calls:
        busy(root, {})
    before = standing(outside)
    by_name = [number for number, call in enumerate(calls, 1) if call not in BY_DESCRIPTOR]
    for number in by_name[::step]:
        copy(furnished, root)
        told: dict[int, str] = {}
        with hooked(swapped_at(number, folder, root, outside)):
            busy(root, told)
        assert standing(outside) == before, f"call {number}, {calls[number - 1]}"
        assert problems(root, told) == [], f"call {number}, {calls[number - 1]}"
