"""A receipt taken back restores the bytes before it; what others did since stays, and what cannot be taken
back is refused whole. The library as of a moment is what stood then."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cases import each
from fault_library import lines, problems, tree
from history_library import sorted_into, told

from infinimem.errors import LibraryError, UsageError
from infinimem.memory import Memory
from infinimem.model import CURRENT, Move, NewEntry, Plan, Receipt, Turn
from infinimem.operations.as_of import as_of, moment
from infinimem.operations.undo import undo
from infinimem.store.library import Library, init
from infinimem.store.view import Applied, View


class Clock:
    """A minute passes at each look."""

    def __init__(self) -> None:
        self.now = datetime(2025, 3, 3, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


A, B, C, D = range(5, 9)
"""Seqs of the entries; their turns have 1 to 4."""


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    """Four lines in the buffer; C and D in topics/old by receipt 1."""
    made = told(tmp_path / "m", [Turn(text) for text in ("fact a", "fact b", "fact c", "fact d")])
    made.library.clock = Clock()
    sorted_into(made, (C, "topics/old"), (D, "topics/old"))
    return made


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
    first = sorted_into(memory, (A, "topics/new"))
    second = sorted_into(memory, (A, "topics/old"))
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
    first = sorted_into(memory, (A, "topics/x"))
    second = sorted_into(memory, (A, "topics/y"), (B, "topics/y"))
    third = sorted_into(memory, (B, "topics/z"))
    refused(memory, first.id, f"{third.id}, {second.id} changed the same later")
    memory.undo(first.id, together=True)
    assert notes(memory) == before


# ── documents that went on ──────────────────────────────────────────────────────────────────────


def test_a_document_that_it_made_stays_for_what_others_put_there(memory: Memory) -> None:
    first = sorted_into(memory, (A, "topics/new"))
    sorted_into(memory, (B, "topics/new"))
    memory.undo(first.id)
    assert where(memory, A, B) == [CURRENT, "topics/new"]
    assert "fact a" not in (memory.library.root / "topics/new.md").read_text()


def test_a_line_that_a_person_typed_into_a_document_that_it_made_stays(memory: Memory) -> None:
    first = sorted_into(memory, (A, "topics/new"))
    path = memory.library.root / "topics/new.md"
    path.write_text(path.read_text() + "- typed\n")
    memory.undo(first.id)
    assert path.read_text().endswith("- typed\n")
    assert where(memory, A) == [CURRENT]


def test_of_a_document_that_others_wrote_into_only_the_lines_go_back(memory: Memory) -> None:
    first = sorted_into(memory, (A, "topics/old"))
    sorted_into(memory, (B, "topics/old"))
    memory.undo(first.id)
    assert where(memory, A, B, C, D) == [CURRENT, "topics/old", "topics/old", "topics/old"]
    texts = [path.read_text() for path in memory.library.root.rglob("*.md") if "journal" not in path.parts]
    assert sum(text.count(f"seq={A}") for text in texts) == 1
    assert problems(memory.library.root, {}) == []


@pytest.mark.parametrize("beside", [C, A], ids=["before it", "behind it"])
def test_a_line_that_a_person_doubled_is_not_torn_out(memory: Memory, beside: int) -> None:
    first = sorted_into(memory, (A, "topics/old"))
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
    assert "> fact c\n" in (memory.library.root / "topics/old.md").read_text()
    memory.undo()
    assert notes(memory) == edited


# ── what it refuses, and what people did ────────────────────────────────────────────────────────


def test_a_header_that_a_person_made_longer_stays_whole(memory: Memory) -> None:
    path = memory.library.root / "topics/x.md"
    path.write_text("---\nid: topics/x\n---\nA person's prose.\n")
    sorted_into(memory, (A, "topics/x"))
    (back,) = memory.undo()
    path.write_text(path.read_text().replace("---\n", "---\nmine: 1\nand: 2\n", 1))
    refused(memory, back.id, "topics/x was changed where it wrote")


def test_a_line_that_a_person_took_away_is_not_brought_back(memory: Memory) -> None:
    edit(memory, "topics/old", line(memory, C), "")
    refused(memory, "1", f"lines {C} are no longer where it put them")


@each("name", ["7", "7-3f9ac1", "journal/0001-consolidate-3f9ac1", "journal/0007-merge", "x"])
def test_what_is_no_receipt_is_said(memory: Memory, name: str) -> None:
    with pytest.raises(UsageError, match="there is no receipt"):
        memory.undo(name)


# ── the library as of a moment ──────────────────────────────────────────────────────────────────


def fill(library: Library, *texts: str) -> list[int]:
    told = library.record([Turn(text, session="s") for text in texts])
    outcome = library.apply(Plan(adds=tuple(NewEntry(place.text, (place.seq,)) for place in told)))
    assert isinstance(outcome, Applied)
    return [place.seq for place in outcome.added]


def sort(library: Library, op: str, *moves: Move) -> Receipt:
    outcome = library.apply(Plan(op, moves=moves))
    assert isinstance(outcome, Applied)
    assert outcome.receipt is not None
    return outcome.receipt


def standing(view: View) -> dict[int, tuple[str, str]]:
    """Document and line of every seq."""
    places = [*view.entries(), *view.entries("archive"), *view.entries("evidence")]
    return {place.seq: (place.doc_id, place.entry.line) for place in places}


@pytest.fixture
def library(tmp_path: Path) -> Library:
    made = init(tmp_path / "memory")
    made.clock = Clock()
    return made


def test_as_of_a_seq_a_time_or_a_receipt(library: Library) -> None:
    (a,) = fill(library, "one")
    first = sort(library, "consolidate", Move(a, "topics/x", "X"))
    then = standing(library.view())
    (b,) = fill(library, "two")
    between = standing(library.view())
    second = sort(library, "merge", Move(a, "topics/y", "Y", "merged"), Move(b, "topics/y", "Y"))
    now = standing(library.view())
    view = library.view()
    assert standing(as_of(view, moment(view, first.id))) == then
    assert standing(as_of(view, moment(view, first.time))) == then
    assert standing(as_of(view, moment(view, str(a)))) == then
    assert standing(as_of(view, moment(view, str(b)))) == now
    assert standing(as_of(view, moment(view, second.time))) == now
    assert standing(as_of(view, moment(view, "2024-01-01"))) == {}
    assert standing(as_of(view, moment(view, "2025-03-03"))) == now, "the end of that day"
    assert standing(as_of(view, moment(view, "2025-03-02"))) == {}
    later = (datetime.fromisoformat(second.time) - timedelta(seconds=1)).isoformat()
    assert standing(as_of(view, moment(view, later))) == between
    with pytest.raises(UsageError, match="is not a moment"):
        moment(view, "yesterday")


def wander(
    library: Library, chance: random.Random, steps: int, undoing: bool
) -> dict[str, dict[int, tuple[str, str]]]:
    """Random turns, sortings, edits by hand and undos; what stood after each receipt."""
    stood: dict[str, dict[int, tuple[str, str]]] = {}
    for step in range(steps):
        fill(library, *(f"fact {step}.{n}" for n in range(chance.randint(1, 3))))
        view = library.view()
        live = [place for place in view.entries() if not view.is_note(place.doc_id)]
        picked = chance.sample(live, min(len(live), chance.randint(1, 4)))
        doc = chance.choice(live)
        path = library.root / f"{doc.doc_id}.md"
        kind = chance.random()
        if kind < 0.2:
            path.write_text(path.read_text().replace(doc.text, f"{doc.text} (edited {step})"))
        elif kind < 0.3:
            path.write_text("".join(x for x in path.read_text().splitlines(True) if doc.entry.line not in x))
        elif kind < 0.4:
            path.write_text(path.read_text() + f"- typed {step}\n")
        if stamped := library.adopt_edits():
            stood[stamped.id] = standing(library.view())
        if undoing and kind > 0.7 and library.receipts():
            try:
                receipts = undo(library, chance.choice(library.receipts()).id, together=chance.random() < 0.5)
            except LibraryError:
                receipts = ()
            stood.update({receipt.id: standing(library.view()) for receipt in receipts[-1:]})
            continue
        there = {place.seq for place in library.view().entries()}
        moves = tuple(
            Move(place.seq, f"topics/{chance.choice('abc')}", chance.choice(["", "One", "Two"]), "merged")
            for place in picked
            if place.seq in there
        )
        if moves:
            receipt = sort(library, "consolidate", *moves)
            stood[receipt.id] = standing(library.view())
    return stood


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.soak) for n in range(1, 10))])
def test_as_of_each_receipt_is_what_stood_then(library: Library, seed: int) -> None:
    stood = wander(library, random.Random(seed), 20, undoing=False)
    view = library.view()
    assert len(stood) >= 20
    for name, then in stood.items():
        assert standing(as_of(view, moment(view, name))) == then, name


@pytest.mark.parametrize(
    "seeds", [range(4), pytest.param(range(4, 210), marks=pytest.mark.soak)], ids=["short", "long"]
)
def test_random_sequences_with_undos_keep_the_law(tmp_path: Path, seeds: range) -> None:
    for seed in seeds:
        library = init(tmp_path / str(seed))
        library.clock = Clock()
        stood = wander(library, random.Random(seed), 12, undoing=True)
        view = library.view()
        assert problems(library.root, {}) == [], seed
        assert len(lines(view)) == len({seq for seq, _ in lines(view)}), seed
        for name, then in stood.items():
            assert standing(as_of(view, moment(view, name))) == then, (seed, name)
