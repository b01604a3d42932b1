"""What people do to the files by hand is taken in: the folder's bytes and the receipts say so."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from infinimem.model import Move, NewEntry, Plan, Receipt, Turn
from infinimem.store.create import init
from infinimem.store.library import Library
from infinimem.store.outcome import Applied


@pytest.fixture
def library(tmp_path: Path) -> Library:
    """Two lines in a topic, one in the buffer; evidence 1-3, entries 4-6."""
    made = init(tmp_path / "memory")
    made.clock = lambda: datetime(2025, 3, 3, 12, tzinfo=UTC)
    turns = [
        Turn("I drink oat latte", session="s"),
        Turn("I live in Lisbon"),
        Turn("Ann is back", time="2025-03-02"),
    ]
    told = made.record(turns)
    texts = ["Drinks oat latte", "Lives in Lisbon", "Ann is back"]
    adds = [NewEntry(text, (place.seq,), by="model") for text, place in zip(texts, told, strict=True)]
    made.apply(Plan(adds=tuple(adds)))
    made.apply(Plan("consolidate", moves=(Move(4, "topics/life", "Drinks"), Move(5, "topics/life", "Home"))))
    made.adopt_edits()
    return made


def edit(library: Library, doc_id: str, old: str, new: str) -> None:
    path = library.root / f"{doc_id}.md"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def rows(receipt: Receipt | None) -> list[tuple[int, str, str, str]]:
    assert receipt is not None
    return [(row.seq, row.was, row.now, row.why) for row in receipt.rows]


def test_an_edit_made_while_a_line_moves_is_told_too(library: Library) -> None:
    edit(library, "CURRENT", "Ann is back", "Ann is in Porto")
    library.apply(Plan("consolidate", moves=(Move(6, "topics/people", "Ann"),)))
    receipt = library.adopt_edits()
    assert rows(receipt) == [(6, "topics/people", "topics/people", "edited")]
    assert "source=human,origin=3> Ann is in Porto" in (library.root / "topics/people.md").read_text()


def test_a_plan_does_not_bring_back_or_move_what_a_person_took_away(library: Library) -> None:
    told = library.record([Turn("more")])
    library.apply(Plan(adds=(NewEntry("More", (told[0].seq,)),)))
    base = library.view()
    edit(library, "CURRENT", next(p.entry.line for p in base.buffer.entries if p.seq == 6) + "\n", "")
    moves = tuple(Move(place.seq, "topics/rest", "Rest") for place in base.buffer.entries)
    outcome = library.apply(Plan("consolidate", moves=moves), base=base)
    assert isinstance(outcome, Applied)
    assert outcome.receipt is not None
    assert outcome.receipt.notes == ("left out, moved or deleted meanwhile: 6",)
    assert [place.text for place in outcome.view.document("topics/rest").entries] == ["More"]


def test_a_renamed_document_keeps_its_lines_and_its_old_name(library: Library) -> None:
    (library.root / "topics/life.md").rename(library.root / "topics/daily-life.md")
    assert [row[1:] for row in rows(library.adopt_edits())] == [
        ("topics/life", "topics/daily-life", "moved by hand")
    ] * 2
    library.apply(Plan("consolidate", moves=(Move(6, "topics/people", "Ann"),)))
    view = library.view()
    assert view.resolve("life") == "topics/daily-life"
    assert view.document("topics/daily-life").header.values["id"] == "topics/daily-life"
