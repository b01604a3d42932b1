"""The library as it stood, where people had a hand in it: carried lines, prose, notes, headers."""

from __future__ import annotations

from pathlib import Path

import pytest
from history_library import sorted_into, told

from infinimem.memory import Memory
from infinimem.model import CURRENT, Turn
from infinimem.operations.as_of import Moment, as_of, moment
from infinimem.store.view import View

A, B = 3, 4
"""Seqs of the entries; their turns have 1 and 2."""
BEGINNING = Moment(0, B)
"""Before any receipt."""


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    """Two lines in the buffer."""
    return told(tmp_path / "m", [Turn("fact a"), Turn("fact b")])


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
    first = sorted_into(memory, (A, "topics/x"), (B, "topics/x"))
    carry(memory, A, to)
    by_hand = memory.library.adopt_edits()
    assert by_hand is not None and [row.why for row in by_hand.rows] == ["moved by hand"]
    assert stands(then(memory, by_hand.id), A) == [to]
    assert stands(then(memory, first.id), A) == ["topics/x"]
    assert stands(as_of(memory.view, BEGINNING), A) == [CURRENT]


def test_a_line_that_a_person_put_back_stands_there_once(memory: Memory) -> None:
    """Though they changed the header too, so that nothing tells how the document was."""
    sorted_into(memory, (A, "topics/x"), (B, "topics/x"))
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
