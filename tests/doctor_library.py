"""A small library with all that the doctor looks at, and its findings as lines."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from infinimem.model import Finding, Move, NewEntry, Plan, Turn
from infinimem.operations.doctor import examine
from infinimem.store.library import Library, init
from infinimem.store.view import Applied

SAID = ("I drink coffee", "I drink tea now", "Tea, please")


def build(root: Path) -> Library:
    """Evidence 1-3; 4 archived, 5 in topics/food, 6 in topics/home; CURRENT is empty; one receipt."""
    library = init(root)
    said = library.record([Turn(text, session="s1") for text in SAID])
    (root / "evidence").joinpath(f"{said[0].doc_id.rsplit('/', 1)[-1]}.md").rename(root / "evidence/s1.md")
    path = root / "evidence/s1.md"
    path.write_text(path.read_text().replace(said[0].doc_id, "evidence/s1"))
    library.apply(Plan(adds=tuple(NewEntry(turn.text, (turn.seq,)) for turn in said)))
    four, five, six = (place.seq for place in library.view().buffer.entries)
    moves = (
        Move(five, "topics/food", "Drinks"),
        Move(four, "topics/food", why="superseded", by=five),
        Move(six, "topics/home", "Habits"),
    )
    assert isinstance(library.apply(Plan("consolidate", moves=moves)), Applied)
    assert (said[0].seq, four, five, six) == (1, 4, 5, 6)
    return library


def findings(library: Library) -> list[str]:
    """What the doctor says of the library as it is on disk now."""
    found = examine(Library(library.root))
    return [f"{item.level} {item.where} {item.what}" for item in found]


def one(found: Iterable[Finding], words: str) -> Finding:
    """The one finding with these words."""
    mine = [item for item in found if words in item.what]
    assert len(mine) == 1, (words, list(found))
    return mine[0]


def root_of(library: Library, seq: int) -> str:
    """The file in which a line stands."""
    place = library.view().entry(seq)
    assert place is not None
    return f"{place.doc_id}.md"
