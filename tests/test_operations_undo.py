"""A receipt that is taken back where things went on since; the library as of a moment is what stood then."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fault_library import lines, problems, tree

from infinimem.errors import LibraryError, UsageError
from infinimem.model import Move, NewEntry, Plan, Receipt, Turn
from infinimem.operations.as_of import as_of, moment
from infinimem.operations.undo import undo
from infinimem.store.create import init
from infinimem.store.library import Library
from infinimem.store.outcome import Applied
from infinimem.store.view import View


class Clock:
    """A minute passes at each look."""

    def __init__(self) -> None:
        self.now = datetime(2025, 3, 3, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


@pytest.fixture
def library(tmp_path: Path) -> Library:
    made = init(tmp_path / "memory")
    made.clock = Clock()
    return made


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


def files(library: Library) -> dict[str, bytes]:
    return {name: data for name, data in tree(library.root).items() if not name.startswith("journal/")}


def standing(view: View) -> dict[int, tuple[str, str]]:
    """Document and line of every seq."""
    places = [*view.entries(), *view.entries("archive"), *view.entries("evidence")]
    return {place.seq: (place.doc_id, place.entry.line) for place in places}


def test_what_came_since_stays(library: Library) -> None:
    a, b = fill(library, "one", "two")
    sort(library, "consolidate", Move(a, "topics/x", "X"), Move(b, "topics/x", "X"))
    (c,) = fill(library, "three")
    with (library.root / "topics/x.md").open("a") as file:
        file.write("\nA person's prose.\n")
    undo(library)
    view = library.view()
    assert [place.seq for place in view.buffer.entries] == [a, b, c]
    assert view.document("topics/x").entries == ()
    assert "A person's prose." in view.document("topics/x").body


def test_a_header_that_a_person_made_longer_stays_whole(library: Library) -> None:
    (a,) = fill(library, "one")
    path = library.root / "topics/x.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text("---\nid: topics/x\n---\nA person's prose.\n")
    sort(library, "consolidate", Move(a, "topics/x"))
    undo(library)
    path.write_text(path.read_text().replace("---\n", "---\nmine: 1\nand: 2\n", 1))
    before = files(library)
    with pytest.raises(LibraryError, match="topics/x was changed where it wrote"):
        undo(library)
    assert files(library) == before


def test_a_later_receipt_that_leans_on_it_goes_first_or_with_it(library: Library) -> None:
    a, b = fill(library, "one", "two")
    before = files(library)
    first = sort(library, "consolidate", Move(a, "topics/x", "X"), Move(b, "topics/y", "Y"))
    second = sort(library, "merge", Move(a, "topics/y", "Y", "merged"))
    with pytest.raises(LibraryError, match=f"{second.id} moved the same lines later; .*--together"):
        undo(library, first.id)
    assert [receipt.notes[0] for receipt in undo(library, str(first.number), together=True)] == [
        "takes back receipt 2",
        "takes back receipt 1",
    ]
    assert files(library) == before


def test_a_line_that_a_person_took_away_is_not_brought_back(library: Library) -> None:
    a, b = fill(library, "one", "two")
    sort(library, "consolidate", Move(a, "topics/x", "X"), Move(b, "topics/x", "X"))
    path = library.root / "topics/x.md"
    path.write_text("".join(line for line in path.read_text().splitlines(True) if f"seq={a}," not in line))
    before = tree(library.root)
    with pytest.raises(LibraryError, match=f"lines {a} are no longer where it put them"):
        undo(library)
    assert tree(library.root) == before


@pytest.mark.parametrize("name", ["7", "journal/0007-merge", "x"])
def test_what_is_no_receipt_is_said(library: Library, name: str) -> None:
    with pytest.raises(UsageError, match="nothing to undo"):
        undo(library)
    sort(library, "consolidate", Move(fill(library, "one")[0], "topics/x"))
    with pytest.raises(UsageError, match="there is no receipt"):
        undo(library, name)


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
