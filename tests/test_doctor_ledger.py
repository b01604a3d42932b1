"""Lines that receipts name and that stand nowhere: a person's doing is a note, the program's an error."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from pathlib import Path

import pytest
from doctor_library import build, findings

from infinimem.markdown.document import Document
from infinimem.model import Move, NewEntry, Plan, Turn
from infinimem.store.commit import transaction
from infinimem.store.commit.install import FileStep, Installation, Installed
from infinimem.store.files import Files
from infinimem.store.library import Library
from infinimem.store.view import Applied

FOOD, RECEIPT = "topics/food.md", "journal/0001-consolidate.md"


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return build(tmp_path / "memory")


def cut(path: Path, word: str) -> None:
    """A person deletes the lines with this word."""
    lines = path.read_text().splitlines(True)
    path.write_text("".join(line for line in lines if word not in line))


def more(library: Library, text: str, topic: str) -> Applied:
    """Another consolidation."""
    (turn,) = library.record([Turn(text, session="s1")])
    added = library.apply(Plan(adds=(NewEntry(text, (turn.seq,)),)))
    assert isinstance(added, Applied)
    moved = library.apply(Plan("consolidate", moves=(Move(added.added[0].seq, topic, "More"),)))
    assert isinstance(moved, Applied)
    return moved


def test_a_deleted_line_is_a_note_until_a_receipt_records_it(library: Library) -> None:
    cut(library.root / FOOD, "seq=5,")
    (found,) = [line for line in findings(library) if "line 5" in line]
    assert found.startswith("note topics/food line 5, put here by journal/0001-consolidate, went when")
    again = Library(library.root)
    again.adopt_edits()
    assert not [line for line in findings(library) if "line 5" in line]


@pytest.mark.parametrize("other", ["topics/eat.md", "archive/food.md"])
def test_a_line_that_a_person_carried_elsewhere_is_not_missing(library: Library, other: str) -> None:
    text = (library.root / FOOD).read_text()
    line = next(line for line in text.splitlines() if "seq=5," in line)
    cut(library.root / FOOD, "seq=5,")
    with (library.root / other).open("a") as file:
        file.write(f"{line}\n")
    assert not [found for found in findings(library) if "put here" in found]


def test_a_checkout_of_an_old_version_is_a_note(library: Library) -> None:
    old = (library.root / FOOD).read_bytes()
    seq = more(library, "I eat figs", "topics/food").view.max_seq
    (library.root / FOOD).write_bytes(old)
    assert [line.split()[0] for line in findings(library) if f"line {seq}" in line] == ["note"]


def test_a_deletion_between_two_consolidations_is_a_note_even_if_none_saw_it(library: Library) -> None:
    cut(library.root / FOOD, "seq=5,")
    more(library, "I eat figs", "topics/food")
    assert [line.split()[0] for line in findings(library) if "line 5" in line] == ["note"]


def test_a_clone_without_machine_state_has_the_same_findings(library: Library) -> None:
    more(library, "I eat figs", "topics/food")
    assert findings(library) == []
    shutil.rmtree(library.root / ".infinimem")
    for path in sorted(library.root.rglob("*.md"), reverse=True):
        path.touch()
    assert findings(library) == []


# ── faults of the program ───────────────────────────────────────────────────────────────────────


def test_a_file_without_the_line_that_its_receipt_names_is_an_error(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that drops a line as it writes the file, and hashes what it wrote."""
    real = Document.insert_all

    def insert_all(self: Document, arrivals: list[tuple[str, list[str]]]) -> Document:
        return real(self, [(h, [line for line in lines if "figs" not in line]) for h, lines in arrivals])

    monkeypatch.setattr(Document, "insert_all", insert_all)
    monkeypatch.setattr("infinimem.store.plans.violations", lambda view, done: [])
    seq = more(library, "I eat figs", "topics/food").receipt.rows[0].seq  # type: ignore[union-attr]
    monkeypatch.undo()
    (found,) = [line for line in findings(library) if f"line {seq}" in line]
    assert found.startswith("error topics/food journal/0002-consolidate put line")


def test_a_file_that_was_never_put_in_place_is_an_error(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that skips one installation of a transaction and goes on."""

    class Skipping(Installation):
        def __init__(self, files: Files, step: FileStep, held: Collection[int] = ()) -> None:
            super().__init__(files, step, held)
            self.skipped = step.path == FOOD

        def run(self) -> Installed:
            return Installed() if self.skipped else super().run()

    monkeypatch.setattr(transaction, "Installation", Skipping)
    seq = more(library, "I eat figs", "topics/food").receipt.rows[0].seq  # type: ignore[union-attr]
    monkeypatch.undo()
    (found,) = [line for line in findings(library) if f"line {seq}" in line]
    assert found.startswith("error topics/food journal/0002-consolidate put line")
    os.utime(library.root / FOOD)  # someone touched it since, so it may have been them
    (found,) = [line for line in findings(library) if f"line {seq}" in line]
    assert found.startswith("note")
