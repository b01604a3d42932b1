"""What the program writes of its own accord: whose words and of what time a new line is, which document keeps
the name of one that is gone, how long an update log grows; and that a person's word goes before a plan's."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from infinimem.model import Entry, Move, NewEntry, Plan, Turn
from infinimem.store.create import init
from infinimem.store.library import Library
from infinimem.store.outcome import Applied
from infinimem.store.view import View


@pytest.fixture
def library(tmp_path: Path) -> Library:
    made = init(tmp_path / "memory")
    made.clock = lambda: datetime(2025, 3, 3, 12, tzinfo=UTC)
    return made


def done(library: Library, plan: Plan, base: View | None = None) -> Applied:
    outcome = library.apply(plan, base=base)
    assert isinstance(outcome, Applied), outcome
    return outcome


def drawn(library: Library, *turns: Turn) -> Entry:
    """One new line from all of these turns."""
    told = library.record(turns)
    (place,) = done(library, Plan(adds=(NewEntry("Both run", tuple(p.seq for p in told), by="model"),))).added
    return place.entry


def filed(library: Library, *docs: str) -> list[int]:
    """A line in each of these documents, all by one receipt; returns their seqs."""
    told = library.record([Turn(f"fact {number} of {doc}") for number, doc in enumerate(docs)])
    added = done(library, Plan(adds=tuple(NewEntry(place.text, (place.seq,)) for place in told))).added
    moves = (Move(place.seq, doc, "Facts") for place, doc in zip(added, docs, strict=True))
    done(library, Plan("consolidate", moves=tuple(moves)))
    return [place.seq for place in added]


def carry(library: Library, seq: int, to: str) -> None:
    """A person cuts a line out of its document and pastes it into another."""
    place = library.view().entry(seq)
    assert place is not None
    source, target = (library.root / f"{doc_id}.md" for doc_id in (place.doc_id, to))
    source.write_text(source.read_text().replace(f"{place.entry.line}\n", ""))
    target.write_text((target.read_text() if target.exists() else "") + f"{place.entry.line}\n")


# ── whose words a new line is, and of what time ─────────────────────────────────────────────────


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("speakers", "credited"),
    [
        (("Ann", "Ann"), "Ann"),
        (("Ann", "Bo"), None),
        (("Ann", None), None),
        ((None, None), None),
    ],
)
def test_a_line_is_credited_to_who_said_all_of_it(
    library: Library, speakers: tuple[str | None, ...], credited: str | None
) -> None:
    line = drawn(library, *(Turn(f"I run, {at}", speaker=name) for at, name in enumerate(speakers)))
    assert line.fields.get("speaker") == credited
    assert ("speaker=" in (library.root / "CURRENT.md").read_text()) == (credited is not None)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("times", "told"),
    [
        (("2025-03-01T09:00:00", "2025-03-01T09:00:00"), "2025-03-01T09:00:00"),
        (("2025-03-01T09:01:00", "2025-03-01T09:00:00"), "2025-03-01T09:01:00"),
        (("2025-03-01", "2025-03-02"), "2025-03-02"),
        (("2025-03-01", None), "2025-03-01"),
        ((None, None), None),
    ],
)
def test_a_line_has_the_time_when_the_latest_of_its_origins_was_said(
    library: Library, times: tuple[str | None, ...], told: str | None
) -> None:
    line = drawn(library, *(Turn(f"I run, {at}", time=time) for at, time in enumerate(times)))
    assert line.time == told


# ── who keeps a name ────────────────────────────────────────────────────────────────────────────


# ── the update log ──────────────────────────────────────────────────────────────────────────────


def test_an_update_log_holds_the_last_twenty_receipts(library: Library) -> None:
    """docs/FORMAT.md: `update_log` keeps the last 20."""
    filed(library, "topics/x")
    path = library.root / "topics/x.md"
    rows = "".join(f"\n  - {{time: 2024-01-01, op: update, receipt: {n}}}" for n in range(101, 121))
    path.write_text(path.read_text().replace("update_log:", f"update_log:{rows}"))
    filed(library, "topics/x")
    log = library.view().document("topics/x").header.values["update_log"]
    assert isinstance(log, list)
    assert [row["receipt"] for row in log if isinstance(row, dict)] == [*map(str, range(103, 121)), "1", "2"]


# ── a person's word before a plan's ─────────────────────────────────────────────────────────────


def test_a_plan_leaves_what_a_person_carried_or_took_away_meanwhile(library: Library) -> None:
    mine, gone, other = filed(library, "topics/one", "topics/one", "topics/one")
    base = library.view()
    carry(library, mine, "topics/mine")
    carry(library, gone, "topics/gone")
    (library.root / "topics/gone.md").unlink()
    moves = tuple(Move(seq, "topics/far", "Far", "split") for seq in (mine, gone, other))
    outcome = done(library, Plan("split", moves=moves), base)
    places = {seq: place.doc_id for seq in (mine, gone, other) if (place := outcome.view.entry(seq))}
    assert places == {mine: "topics/mine", other: "topics/far"}
    assert outcome.receipt is not None
    assert outcome.receipt.notes == (f"left out, moved or deleted meanwhile: {mine}-{gone}",)


def test_an_edit_made_while_a_line_moves_is_told_too(library: Library) -> None:
    (seq,) = filed(library, "topics/one")
    library.adopt_edits()
    path = library.root / "topics/one.md"
    path.write_text(path.read_text().replace("fact 0 of", "no fact of"))
    done(library, Plan("consolidate", moves=(Move(seq, "topics/two"),)))
    receipt = library.adopt_edits()
    assert receipt is not None
    assert [(row.seq, row.was, row.now, row.why) for row in receipt.rows] == [
        (seq, "topics/two", "topics/two", "edited")
    ]
    assert "source=human," in (library.root / "topics/two.md").read_text()


def test_entries_wait_in_the_buffer_under_the_topics_that_were_named_for_them(library: Library) -> None:
    told = [place.seq for place in library.record([Turn(text) for text in "abcd"])]
    done(library, Plan(adds=(NewEntry("first", (told[0],)),)))
    headings = ("Food", "Boats", "Food")
    adds = tuple(
        NewEntry(f"x {seq}", (seq,), heading=title) for seq, title in zip(told[1:], headings, strict=True)
    )
    view = done(library, Plan(adds=adds)).view
    assert [(place.headings, place.entry.text) for place in view.buffer.entries] == [
        ((), "first"),
        (("Food",), f"x {told[1]}"),
        (("Food",), f"x {told[3]}"),
        (("Boats",), f"x {told[2]}"),
    ]
    moves = tuple(Move(place.seq, "topics/x", "X") for place in view.buffer.entries)
    left = done(library, Plan("consolidate", moves=moves)).view
    assert (left.buffer.entries, "# " in left.buffer.body) == ((), False)
