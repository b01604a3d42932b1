"""An editor that holds a file open writes into it after the program replaced it (docs/RELIABILITY.md)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from scripted import keeping

from infinimem import Memory, Turn, open_memory
from infinimem.testing import ScriptedLLM

TOPIC = "topics/boiler"


def opened(root: Path, later: float = 0.0, topic: str = TOPIC) -> Memory:
    """A process that opens the library, so many seconds later; its model files all in one topic."""
    moment = timedelta(seconds=later)
    return open_memory(root, model=ScriptedLLM(keeping(topic)), clock=lambda: datetime.now(UTC) + moment)


def change(memory: Memory, word: str) -> None:
    """A transaction that brings one line into a topic."""
    memory.observe([Turn(f"The boiler is {word}.", session=word)])
    assert memory.consolidate()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A library with a topic that was replaced once."""
    root = tmp_path / "m"
    (root / "topics").mkdir(parents=True)
    (root / f"{TOPIC}.md").write_text("# Boiler\n")
    open_memory(root, model="offline", create=True).close()
    change(opened(root), "blue")
    return root


@pytest.mark.parametrize("later", [0, 50 * 3600])
@pytest.mark.parametrize("way", ["opening", "change", "saved since", "deleted since"])
def test_a_late_save_is_brought_back(root: Path, way: str, later: float) -> None:
    """It is back at the next opening, whenever that is, or change; aside where the file changed since."""
    path = root / f"{TOPIC}.md"
    with path.open("a") as editor:
        change(opened(root), "warm")
        opened(root, 30)  # looks in vain, and not for the last time
        running = opened(root, topic="topics/other")
        for number in range(7 if way == "change" else 1):
            change(running, f"seen {number} times")
        editor.write("typed late\n")
    if way == "saved since":
        path.write_text(f"{path.read_text()}typed soon\n")
    elif way == "deleted since":
        path.unlink()
    elif way == "change":
        change(running, "old")
    memory = opened(root, later)
    aside = sorted((root / ".infinimem/conflicts").glob("*"))
    if way.endswith("since"):
        assert path.exists() == (way == "saved since")
        assert not path.exists() or path.read_text().endswith("typed soon\n")
        assert [one.name.partition("-")[2] for one in aside] == ["late-topics-boiler.md"]
        assert aside[0].read_text().endswith("typed late\n")
        assert any(aside[0].name in f"{finding}" for finding in memory.doctor())
    else:
        text = path.read_text()
        assert [text.count(word) for word in ("typed late\n", "> The boiler is blue", "is warm\n")] == [1] * 3
        assert aside == []
        assert [finding for finding in memory.doctor() if finding.level == "error"] == []
        path.write_text(text.replace("typed late\n", ""))
        opened(root)
        assert "typed late" not in path.read_text()  # it is brought back once


def test_what_is_written_late_again_and_again_is_there(root: Path) -> None:
    """An editor that goes on writing is followed; once the file changed too, that is set aside."""
    path = root / f"{TOPIC}.md"
    with path.open("a") as editor:
        change(opened(root), "warm")
        for word in ("one", "two"):
            editor.write(f"late {word}\n")
            editor.flush()
            opened(root)
            opened(root)
            assert path.read_text().count(f"late {word}\n") == 1
        path.write_text(f"{path.read_text()}mine\n")
        editor.write("late three\n")
    opened(root)
    assert "late three" not in path.read_text()
    (aside,) = (root / ".infinimem/conflicts").iterdir()
    assert "late three" in aside.read_text()
    aside.unlink()
    opened(root)
    assert not aside.exists()


def test_a_replaced_file_is_kept_for_a_day(root: Path) -> None:
    """It is there for an editor for 24 hours; then an opening, or a process that goes on, drops it."""
    folder = root / ".infinimem/displaced"
    (listed,) = folder.glob("*/done")
    for torn in (b"", b"[{", b"[1]", b"{}", b"[" * 100_000):  # by a loss of power
        listed.write_bytes(torn)
        opened(root)
    for hours in (23, 23, 25):
        opened(root, hours * 3600)
        assert bool([*folder.iterdir()]) == (hours < 24)
    running, hours = opened(root), 0
    running.library.clock = lambda: datetime.now(UTC) + timedelta(hours=hours)
    for number in range(12):
        change(running, f"seen {number} times")
    kept = sorted(folder.iterdir())
    hours = 25
    change(running, "old")
    assert (len(kept), kept[0].exists()) == (12, False)


def test_a_document_of_any_size_is_looked_after(root: Path) -> None:
    """Of a topic over 8 MiB, more than of a note, no save is lost and each change can be undone."""
    path = root / f"{TOPIC}.md"
    path.write_text(f"{path.read_text()}\n{'word ' * (7 << 18)}\n")
    opened(root).consolidate()
    before = path.read_bytes()
    with path.open("a") as editor:
        memory = opened(root)
        change(memory, "warm")
        after = path.read_bytes()
        assert len(after) > len(before)
        memory.undo()
        assert path.read_bytes() == before
        memory.undo(memory.receipts()[-1].id)
        assert path.read_bytes() == after
        editor.write("typed late\n")
    opened(root)
    text = path.read_text()
    assert [text.count(word) for word in ("typed late\n", "> The boiler is blue", "is warm\n")] == [1, 1, 1]
    assert [finding for finding in opened(root).doctor() if finding.level == "error"] == []
