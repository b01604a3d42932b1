"""The library as it stood, where people had a hand in it: carried lines, prose, notes, headers."""

from __future__ import annotations

from pathlib import Path

import pytest

from infinimem.memory import Memory, open_memory
from infinimem.model import CURRENT, Move, NewEntry, Plan, Receipt, Turn
from infinimem.operations.as_of import Moment, as_of, moment
from infinimem.store.outcome import Applied
from infinimem.store.view import View

A, B = 3, 4
"""Seqs of the entries; their turns have 1 and 2."""
BEGINNING = Moment(0, B)
"""Before any receipt."""


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    """Two lines in the buffer."""
    made = open_memory(tmp_path / "m", model="offline", create=True)
    told = made.library.record([Turn("fact a"), Turn("fact b")])
    made.library.apply(Plan(adds=tuple(NewEntry(place.text, (place.seq,)) for place in told)))
    return made


def moved(memory: Memory, *ways: tuple[int, str]) -> Receipt:
    outcome = memory.library.apply(
        Plan("consolidate", moves=tuple(Move(seq, to, "Facts") for seq, to in ways))
    )
    assert isinstance(outcome, Applied), outcome
    assert outcome.receipt
    return outcome.receipt


def then(memory: Memory, name: str) -> View:
    return as_of(memory.view, moment(memory.view, name))


def stands(view: View, seq: int) -> list[str]:
    """Every document that holds the line, once for each time that it does."""
    return [
        place.doc_id
        for doc_id in view.ids("all")
        if not view.is_note(doc_id)
        for place in view.document(doc_id).entries
        if place.seq == seq
    ]


def carry(memory: Memory, seq: int, to: str) -> None:
    """A person cuts a line out of its document and pastes it into another."""
    place = memory.view.entry(seq)
    assert place is not None
    source, target = (memory.library.root / f"{doc_id}.md" for doc_id in (place.doc_id, to))
    source.write_text(source.read_text().replace(f"{place.entry.line}\n", ""))
    target.write_text((target.read_text() if target.exists() else "") + f"{place.entry.line}\n")


@pytest.mark.parametrize("to", ["topics/mine", CURRENT])
def test_a_line_that_a_person_carried_stood_where_they_took_it_from(memory: Memory, to: str) -> None:
    first = moved(memory, (A, "topics/x"), (B, "topics/x"))
    carry(memory, A, to)
    told = memory.library.adopt_edits()
    assert told is not None and [row.why for row in told.rows] == ["moved by hand"]
    assert stands(then(memory, told.id), A) == [to]
    assert stands(then(memory, first.id), A) == ["topics/x"]
    assert stands(as_of(memory.view, BEGINNING), A) == [CURRENT]


def test_a_line_that_a_person_put_back_stands_there_once(memory: Memory) -> None:
    """Though they changed the header too, so that nothing tells how the document was."""
    moved(memory, (A, "topics/x"), (B, "topics/x"))
    carry(memory, A, CURRENT)
    path = memory.library.root / "CURRENT.md"
    path.write_text(path.read_text().replace("current_epoch: 1", "current_epoch: 7"))
    view = as_of(memory.view, BEGINNING)
    assert (stands(view, A), stands(view, B)) == ([CURRENT], [CURRENT])


def test_what_a_person_wrote_stays_where_later_lines_are_taken_out(memory: Memory) -> None:
    path = memory.library.root / "CURRENT.md"
    path.write_text(path.read_text().replace("- <seq=3", "My own words.\n\n- <seq=3"))
    view = then(memory, "2")
    assert stands(view, A) == stands(view, B) == []
    assert "My own words." in view.document(CURRENT).body


def test_a_note_is_as_it_is_whatever_stands_in_it(memory: Memory) -> None:
    note = "- <seq=99,source=user> an example of a line\n"
    (memory.library.root / "note.md").write_text(note)
    assert then(memory, "1").document("note").to_bytes().decode() == note
