"""Machine state that came with a foreign folder: what it names that is no document of it is left alone."""

from __future__ import annotations

import hashlib
import json
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from fault_disk import Crash
from fault_library import problems

from infinimem.errors import LibraryError
from infinimem.model import Turn
from infinimem.store import disk
from infinimem.store.library import Library, init

SECRET, PLANTED = b"a private line\n", b"planted\n"
OUTSIDE = "../outside"


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def step(path: str, slot: str, old: str = "-", new: str = "-") -> dict[str, Any]:
    moves = {"gone": [], "come": [[7, "- <seq=7> planted", 0, ""]] if new != "-" else []}
    return {"path": path, "old": old, "new": new, "slot": slot, **moves}


def transaction(root: Path, name: str, **steps: str) -> None:
    folder = root / ".infinimem/tx" / name
    folder.mkdir(parents=True)
    (folder / "1.bin").write_bytes(PLANTED)
    (folder / "manifest").write_text(json.dumps({"steps": [step(**steps)], "notice": {}}))


def creates(root: Path) -> None:
    transaction(root, "0001", path=f"{OUTSIDE}/new.md", slot=".infinimem/tx/0001/1.bin", new=sha(PLANTED))


def replaces(root: Path) -> None:
    slot = ".infinimem/tx/0001/1.bin"
    transaction(root, "0001", path=f"{OUTSIDE}/secret.md", slot=slot, old=sha(SECRET), new=sha(PLANTED))


def deletes(root: Path) -> None:
    transaction(root, "0001", path=f"{OUTSIDE}/secret.md", slot=".infinimem/tx/0001/1.bin", old=sha(SECRET))


def fetches(root: Path) -> None:
    transaction(root, "0001", path="topics/mine.md", slot=f"{OUTSIDE}/secret.md", new=sha(SECRET))


def fetches_by_an_absolute_path(root: Path) -> None:
    slot = str(root.parent / "outside/secret.md")
    transaction(root, "0001", path="topics/mine.md", slot=slot, new=sha(SECRET))


def writes_what_git_runs(root: Path) -> None:
    (root / ".git/hooks").mkdir(parents=True)
    slot = ".infinimem/tx/0001/1.bin"
    transaction(root, "0001", path=".git/hooks/post-commit", slot=slot, new=sha(PLANTED))


def replaces_settings(root: Path) -> None:
    old = sha((root / "infinimem.toml").read_bytes())
    transaction(
        root, "0001", path="infinimem.toml", slot=".infinimem/tx/0001/1.bin", old=old, new=sha(PLANTED)
    )


def names_no_path(root: Path) -> None:
    transaction(root, "0001", path="topics/\0.md", slot=".infinimem/tx/0001/1.bin", new=sha(PLANTED))


def fetches_what_was_displaced(root: Path) -> None:
    folder = root / ".infinimem/displaced/0001"
    folder.mkdir(parents=True)
    slot = ".infinimem/tx/0001/1.bin"
    kept = {
        "slot": f"../../../{OUTSIDE}/secret.md",
        "was": "x",
        "now": "-",
        "step": step("topics/mine.md", slot),
    }
    (folder / "done").write_text(json.dumps([kept]))


def brings_back_what_was_displaced(root: Path) -> None:
    folder = root / ".infinimem/displaced/0001"
    folder.mkdir(parents=True)
    (folder / "1.bin").write_bytes(PLANTED)
    kept = step(f"{OUTSIDE}/new.md", ".infinimem/tx/0001/1.bin", new=sha(b"x"))
    (folder / "done").write_text(json.dumps([{"slot": "1.bin", "was": "x", "now": "-", "step": kept}]))


def cuts(root: Path) -> None:
    data = SECRET[3:] + b"more"
    head = f"{disk.boot()}\n{OUTSIDE}/secret.md\n3 {len(data)}\n".encode()
    (root / ".infinimem/append").write_bytes(head + data)


PLANTS: tuple[Callable[[Path], None], ...] = (
    creates,
    replaces,
    deletes,
    fetches,
    fetches_by_an_absolute_path,
    writes_what_git_runs,
    replaces_settings,
    names_no_path,
    fetches_what_was_displaced,
    brings_back_what_was_displaced,
    cuts,
)


@pytest.mark.sample(3)
@pytest.mark.parametrize("plant", PLANTS)
def test_it_leads_nowhere(tmp_path: Path, plant: Callable[[Path], None]) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_bytes(SECRET)
    library = init(tmp_path / "memory")
    plant(library.root)
    (line,) = Library(library.root).record([Turn("hello")])
    assert {path.name: path.read_bytes() for path in outside.iterdir()} == {"secret.md": SECRET}
    for path in library.root.rglob("*"):
        assert not path.is_file() or SECRET.strip() not in path.read_bytes(), path
        assert not path.is_file() or ".infinimem" in path.parts or PLANTED not in path.read_bytes(), path
    assert problems(library.root, {line.seq: "hello"}) == []


@pytest.mark.parametrize("name", ["lock", "append", "seq.given", ".infinimem.new"])
def test_nobody_waits_for_the_other_end_of_a_pipe(tmp_path: Path, name: str) -> None:
    library = init(tmp_path)
    library.record([Turn("hello")])
    (tmp_path / ".infinimem" / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / ".infinimem" / name)

    def ended(*_: object) -> None:
        raise Crash("it waits")

    before = signal.signal(signal.SIGALRM, ended)
    signal.alarm(20)
    try:
        with suppress(LibraryError):
            Library(tmp_path).record([Turn("hello again")])
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
