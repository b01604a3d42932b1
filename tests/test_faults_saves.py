"""A person saves a file between any check and any rename of a transaction: no version of theirs is lost.

Saves land before every call that changes the disk, by rename as most editors do, or in place; on the file's
newest bytes, or on those that an editor read before. Source: docs/RELIABILITY.md.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from commit_library import consolidation, prepared
from fault_library import problems

from infinimem.markdown.signature import parse_entry
from infinimem.model import CURRENT
from infinimem.store import disk
from infinimem.store.commit import ATTEMPTS
from infinimem.store.library import Library
from infinimem.store.view import Applied

CALLS = ("write", "sync", "sync_folder", "rename", "put", "exchange", "unlink")
FILES = ("CURRENT", "topics/tea", "topics/home", "archive/tea", "topics/new")


class Person:
    """Saves one file before some call, with a line of prose that nobody else writes."""

    def __init__(self, root: Path, chance: random.Random, calls: int) -> None:
        self.at = chance.randrange(calls)
        self.times = chance.choice([1, 1, 1, 2, 5])
        self.path = root / f"{chance.choice(FILES)}.md"
        self.in_place = chance.random() < 0.5
        self.stale = chance.random() < 0.25
        self.read = self.path.read_bytes() if self.path.exists() else b""
        self.saved: list[bytes] = []
        self.calls = 0

    def before_call(self) -> None:
        self.calls += 1
        if not self.at < self.calls <= self.at + self.times or not self.path.parent.exists():
            return
        newest = self.path.read_bytes() if self.path.exists() else b""
        data = self.read if self.stale else newest
        words = f"words of a person {len(self.saved)}\n".encode()
        self.saved.append(words)
        self.read = data + (b"" if data.endswith(b"\n") or not data else b"\n") + words
        if self.in_place and self.path.exists():
            self.path.write_bytes(self.read)
        else:
            other = self.path.with_name("editor.tmp")
            other.write_bytes(self.read)
            other.replace(self.path)


@contextmanager
def before_each_call(act: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def hooked(real: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object) -> object:
            act()
            return real(*args)

        return call

    with monkeypatch.context() as patch:
        for name in CALLS:
            patch.setattr(disk, name, hooked(getattr(disk, name)))
        yield


def calls_of(root: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many calls the consolidation makes when nobody saves."""
    library, seqs = prepared(root)
    counted: list[None] = []
    with before_each_call(lambda: counted.append(None), monkeypatch):
        library.apply(consolidation(seqs), base=library.view())
    return len(counted)


def wrong_after(root: Path, seed: int, calls: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is wrong after a consolidation into which a person saved."""
    library, seqs = prepared(root)
    view = library.view()
    told = {place.seq: place.text for place in (*view.entries("evidence"), *view.entries())}
    person = Person(root, random.Random(seed), calls)
    with before_each_call(person.before_call, monkeypatch):
        library.apply(consolidation(seqs), base=view)
    Library(root).adopt_edits()
    # An editor that overwrites what has come with what it read before deletes lines, as a person may: the
    # receipt says so and holds them.
    quoted = {entry.seq for line in Library(root).receipts()[-1].quoted if (entry := parse_entry(line))}
    if person.stale:
        told = {seq: said for seq, said in told.items() if seq not in quoted}
    wrong = problems(root, told)
    # Only of saves in quick succession one may have to wait aside.
    aside = person.times > 1
    text = b"".join(
        p.read_bytes() for p in root.rglob("*.md") if _in_tree(p) or (aside and "conflicts" in p.parts)
    )
    wrong += [f"{words!r} is in no file" for words in person.saved if words not in text]
    now = Library(root).view()
    live = [place.seq for place in (*now.entries(), *now.entries("archive"))]
    # An editor that saves what it read before brings lines back that moved on, and one that never stops
    # saving keeps them: those are copies then. Nobody else makes any.
    if len(live) != len(seqs) + 1 and not person.stale and person.times < ATTEMPTS:
        wrong.append(f"{len(live)} lines of {len(seqs) + 1}: {live}")
    return [f"seed {seed}, {person.path.name}, call {person.at}: {what}" for what in wrong]


def _in_tree(path: Path) -> bool:
    return ".infinimem" not in path.parts


@pytest.mark.parametrize("count", [12, pytest.param(10_000, marks=pytest.mark.soak)])
def test_a_save_at_any_moment_is_kept_and_costs_no_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    calls = calls_of(tmp_path / "plain", monkeypatch)
    found: list[str] = []
    for seed in range(count):
        found += wrong_after(tmp_path / "case", seed, calls, monkeypatch)
        shutil.rmtree(tmp_path / "case")
    assert found == []


def test_a_line_deleted_or_edited_before_recovery_stays_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, seqs = prepared(tmp_path / "memory")

    class Cut(BaseException):
        pass

    def cut(*args: object) -> None:
        raise Cut

    monkeypatch.setattr(disk, "exchange", cut)
    monkeypatch.setattr(disk, "put", cut)
    with pytest.raises(Cut):
        library.apply(consolidation(seqs))
    monkeypatch.undo()
    buffer = library.root / "CURRENT.md"
    kept = [line for line in buffer.read_text().splitlines() if "chess" not in line]
    buffer.write_text("\n".join(kept).replace("a balcony", "a roof garden") + "\n")
    view = Library(library.root).view()
    assert "chess" not in " ".join(place.text for place in view.entries())
    assert [(place.doc_id, place.text) for place in view.entries() if place.seq == seqs[2]] == [
        (CURRENT, "Has a roof garden")
    ]
    assert view.document("topics/tea").entries[-1].text == "Likes oolong"


def test_a_folder_in_the_way_leaves_the_lines_where_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, seqs = prepared(tmp_path / "memory")
    made = False

    def make() -> None:
        nonlocal made
        if not made and any((library.root / ".infinimem/tx").glob("*/manifest")):
            made = True
            (library.root / "topics/new.md").mkdir()

    with before_each_call(make, monkeypatch):
        outcome = library.apply(consolidation(seqs))
    assert isinstance(outcome, Applied)
    assert [place.seq for place in outcome.view.buffer.entries] == [seqs[3]]
    receipt = library.receipts()[-1]
    assert seqs[3] not in [row.seq for row in receipt.rows]
    assert any("topics/new.md could not be written" in note for note in receipt.notes)
    assert Library(library.root).adopt_edits() is None
    (aside,) = (library.root / ".infinimem/conflicts").iterdir()
    assert "Plays chess" in aside.read_text()
    assert problems(library.root, {}) == []
