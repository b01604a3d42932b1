"""Machine state that came with a foreign folder: what it names that is no document of it is left alone."""

from __future__ import annotations

import hashlib
import json
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial
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


SLOT = ".infinimem/tx/0001/1.bin"
NEW, OLD = sha(PLANTED), sha(SECRET)
STEPS = {
    "creates": step(f"{OUTSIDE}/new.md", SLOT, new=NEW),
    "replaces": step(f"{OUTSIDE}/secret.md", SLOT, OLD, NEW),
    "deletes": step(f"{OUTSIDE}/secret.md", SLOT, OLD),
    "fetches": step("topics/mine.md", f"{OUTSIDE}/secret.md", new=OLD),
    "fetches by an absolute path": step("topics/mine.md", "/ROOT/outside/secret.md", new=OLD),
    "writes what git runs": step(".git/hooks/post-commit", SLOT, new=NEW),
    "replaces settings": step("infinimem.toml", SLOT, "SETTINGS", NEW),
    "names no path": step("topics/\0.md", SLOT, new=NEW),
}


def transaction(root: Path, planted: dict[str, Any]) -> None:
    text = json.dumps({"steps": [planted], "notice": {}}).replace("/ROOT", str(root.parent))
    (root / ".git/hooks").mkdir(parents=True)
    (root / SLOT).parent.mkdir(parents=True)
    (root / SLOT).write_bytes(PLANTED)
    settings = sha((root / "infinimem.toml").read_bytes())
    (root / SLOT).with_name("manifest").write_text(text.replace("SETTINGS", settings))


def displaced(root: Path, slot: str, kept: dict[str, Any]) -> None:
    folder = root / ".infinimem/displaced/0001"
    folder.mkdir(parents=True)
    (folder / "1.bin").write_bytes(PLANTED)
    (folder / "done").write_text(json.dumps([{"slot": slot, "was": "x", "now": "-", "step": kept}]))


def cuts(root: Path) -> None:
    data = SECRET[3:] + b"more"
    head = f"{disk.boot()}\n{OUTSIDE}/secret.md\n3 {len(data)}\n".encode()
    (root / ".infinimem/append").write_bytes(head + data)


PLANTS: dict[str, Callable[[Path], None]] = {
    **{name: partial(transaction, planted=planted) for name, planted in STEPS.items()},
    "fetches what was displaced": partial(
        displaced, slot=f"../../../{OUTSIDE}/secret.md", kept=step("topics/mine.md", SLOT)
    ),
    "brings back what was displaced": partial(
        displaced, slot="1.bin", kept=step(f"{OUTSIDE}/new.md", SLOT, new=sha(b"x"))
    ),
    "cuts": cuts,
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("plant", PLANTS)
def test_it_leads_nowhere(tmp_path: Path, plant: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_bytes(SECRET)
    library = init(tmp_path / "memory")
    PLANTS[plant](library.root)
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
