"""Undo where something happened since: what others did stays, what cannot be taken back is refused whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from fault_library import problems, tree

from infinimem.errors import LibraryError
from infinimem.memory import Memory, open_memory
from infinimem.model import CURRENT, Move, NewEntry, Plan, Receipt, Turn
from infinimem.store.outcome import Applied

A, B, C, D = range(5, 9)
"""Seqs of the entries; their turns have 1 to 4."""


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    """Four lines in the buffer; C and D in topics/old by receipt 1."""
    made = open_memory(tmp_path / "m", model="offline", create=True)
    told = made.library.record([Turn(text) for text in ("fact a", "fact b", "fact c", "fact d")])
    made.library.apply(Plan(adds=tuple(NewEntry(place.text, (place.seq,)) for place in told)))
    moved(made, (C, "topics/old"), (D, "topics/old"))
    return made


def moved(memory: Memory, *ways: tuple[int, str]) -> Receipt:
    outcome = memory.library.apply(
        Plan("consolidate", moves=tuple(Move(seq, to, "Facts") for seq, to in ways))
    )
    assert isinstance(outcome, Applied), outcome
    assert outcome.receipt
    return outcome.receipt


def notes(memory: Memory) -> dict[str, bytes]:
    """Everything but the journal, which only grows."""
    return {name: data for name, data in tree(memory.library.root).items() if not name.startswith("journal/")}


def where(memory: Memory, *seqs: int) -> list[str | None]:
    return [place.doc_id if (place := memory.view.entry(seq)) else None for seq in seqs]


def edit(memory: Memory, doc_id: str, old: str, new: str) -> None:
    path = memory.library.root / f"{doc_id}.md"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def line(memory: Memory, seq: int) -> str:
    place = memory.view.entry(seq)
    assert place is not None
    return f"{place.entry.line}\n"


def refused(memory: Memory, receipt: str, words: str) -> None:
    """The receipt cannot be undone, for that reason, and no byte has changed."""
    before = tree(memory.library.root)
    with pytest.raises(LibraryError, match=words):
        memory.undo(receipt)
    assert tree(memory.library.root) == before


# ── undone, done again, undone again ────────────────────────────────────────────────────────────


def test_a_later_receipt_that_is_taken_back_is_in_nobodys_way(memory: Memory) -> None:
    before = notes(memory)
    first = moved(memory, (A, "topics/new"))
    second = moved(memory, (A, "topics/old"))
    (back,) = memory.undo(second.id)
    memory.undo(first.id)
    assert notes(memory) == before
    memory.undo()
    memory.undo(back.id)
    assert where(memory, A) == ["topics/old"]
    with pytest.raises(LibraryError, match=second.id):
        memory.undo(first.id)


def test_what_leans_on_what_leans_on_it_goes_too(memory: Memory) -> None:
    before = notes(memory)
    first = moved(memory, (A, "topics/x"))
    second = moved(memory, (A, "topics/y"), (B, "topics/y"))
    third = moved(memory, (B, "topics/z"))
    refused(memory, first.id, f"{third.id}, {second.id} moved the same lines later")
    memory.undo(first.id, together=True)
    assert notes(memory) == before


# ── documents that went on ──────────────────────────────────────────────────────────────────────


def test_a_document_that_it_made_stays_for_what_others_put_there(memory: Memory) -> None:
    first = moved(memory, (A, "topics/new"))
    moved(memory, (B, "topics/new"))
    memory.undo(first.id)
    assert where(memory, A, B) == [CURRENT, "topics/new"]
    assert "fact a" not in (memory.library.root / "topics/new.md").read_text()


def test_a_line_that_a_person_typed_into_a_document_that_it_made_stays(memory: Memory) -> None:
    first = moved(memory, (A, "topics/new"))
    path = memory.library.root / "topics/new.md"
    path.write_text(path.read_text() + "- typed\n")
    memory.undo(first.id)
    assert path.read_text().endswith("- typed\n")
    assert where(memory, A) == [CURRENT]
    assert memory.library.unsigned() == 1


def test_of_a_document_that_others_wrote_into_only_the_lines_go_back(memory: Memory) -> None:
    first = moved(memory, (A, "topics/old"))
    moved(memory, (B, "topics/old"))
    memory.undo(first.id)
    assert where(memory, A, B, C, D) == [CURRENT, "topics/old", "topics/old", "topics/old"]
    texts = [path.read_text() for path in memory.library.root.rglob("*.md") if "journal" not in path.parts]
    assert sum(text.count(f"seq={A}") for text in texts) == 1
    assert problems(memory.library.root, {}) == []


@pytest.mark.parametrize("beside", [C, A], ids=["before it", "behind it"])
def test_a_line_that_a_person_doubled_is_not_torn_out(memory: Memory, beside: int) -> None:
    first = moved(memory, (A, "topics/old"))
    edit(memory, "topics/old", line(memory, beside), line(memory, beside) + line(memory, A))
    refused(memory, first.id, f"line {A} was added or removed by hand since")


# ── what people did before it, and since ────────────────────────────────────────────────────────


def test_a_signature_is_not_taken_back_from_a_line_that_is_gone(memory: Memory) -> None:
    path = memory.library.root / "topics/old.md"
    path.write_text(path.read_text() + "- typed\n")
    receipt = memory.library.adopt_edits()
    assert receipt is not None
    (seq,) = (row.seq for row in receipt.rows)
    edit(memory, "topics/old", line(memory, seq), "")
    refused(memory, receipt.id, "topics/old was changed where it wrote")


def test_an_edit_that_nobody_noted_yet_is_in_the_receipt_that_takes_the_line_back(memory: Memory) -> None:
    """So that undoing the undo brings it back."""
    edit(memory, "topics/old", "fact c", "fact c, edited")
    receipt = memory.library.adopt_edits()
    assert receipt is not None
    edit(memory, "topics/old", "fact c, edited", "fact c, edited twice")
    edited = notes(memory)
    memory.undo(receipt.id)
    assert "> fact c, edited\n" in (memory.library.root / "topics/old.md").read_text()
    memory.undo()
    assert notes(memory) == edited
