"""Trace a line: its source turns, what was drawn from it, what each receipt did, where it is now.

Pure, over a snapshot and its receipts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Literal

from infinimem.errors import LibraryError
from infinimem.model import CURRENT
from infinimem.operations.provenance import REPLACED, Records, Step, TurnRef, at, recorded
from infinimem.spec import archive_folders
from infinimem.store.lines import drawn_from
from infinimem.store.spec import ARCHIVE
from infinimem.store.view import View

EventKind = Literal["said", "drawn", "typed", "receipt", "held", "heir", "now"]
_HEIRS = {"superseded by": "supersedes", "duplicate of": "says the same as", "rewritten as": "rewrites"}


@dataclass(frozen=True)
class Event:
    """One thing that happened to a line, or to one that it came from, or that came after it.

    said      a turn was recorded: `where`, `session`, `turn`, `speaker`
    drawn     an entry was drawn from `origin` into the buffer
    typed     a person wrote it into a file
    receipt   `receipt` took it from `was` to `now`, and says `why`; `text`: as it was before, if it changed
    held      a record comes from it: `where`; `why` "archived" where it left the surface
    heir      another line came after it, or from it: `seq`, and `why`
    now       where it is; `why` where it is not live
    """

    event: EventKind
    seq: int
    time: str = ""
    where: str = ""
    text: str = ""
    source: str = ""
    speaker: str = ""
    session: str = ""
    turn: str = ""
    origin: tuple[int, ...] = ()
    receipt: str = ""
    op: str = ""
    was: str = ""
    now: str = ""
    why: str = ""


def history(view: View, seq: int) -> tuple[Event, ...]:
    """As `Memory.history`, of a snapshot."""
    records = recorded(view)
    if records.entry(seq) is None and not records.steps(seq):
        highest = records.highest
        raise LibraryError(
            f"no line has seq {seq}, and no receipt names it; the highest is {highest}"
            if highest
            else "no line of this library has a seq yet; add or import something first"
        )
    return tuple(_story(records, seq))


def _story(records: Records, seq: int) -> Iterator[Event]:
    entry, own = records.entry(seq), records.steps(seq)
    ancestors = records.ancestors(entry) if entry else []
    turns = [turn for one in ancestors if (turn := records.said(one))]
    yield from map(_said, turns)
    for one in sorted(set(ancestors) - {turn.seq for turn in turns}):
        yield from _beginning(records, one)
        for step in records.steps(one):
            if not own or step.order <= own[0].order:  # once its heir had come, its story is another
                yield _receipt(step)
    if turn := records.said(seq):
        yield _said(turn)
    else:
        yield from _beginning(records, seq)
    yield from map(_receipt, own)
    for doc_id in records.holding(seq):
        yield Event("held", seq, where=doc_id, why="archived" * doc_id.startswith(archive_folders()))
    yield _now(records, seq)
    yield from _after(records, seq)


def _said(turn: TurnRef) -> Event:
    return Event("said", **asdict(turn))


def _beginning(records: Records, seq: int) -> Iterator[Event]:
    """How an entry came to be, where that is no receipt's to tell."""
    entry, steps = records.entry(seq), records.steps(seq)
    if entry is None or (steps and steps[0].brings):
        return
    first = records.first_quoted(seq) or entry
    place = records.view.entry(seq)
    where = steps[0].row.was if steps else CURRENT if place and place.doc_id == CURRENT else ""
    origin = drawn_from(first)
    yield Event(
        "drawn" if origin else "typed",
        seq,
        first.time or "",
        where,
        first.text,
        first.source,
        first.fields.get("speaker", ""),
        origin=origin,
        why="phrased by a model" if "by" in first.fields else "",
    )


def _receipt(step: Step) -> Event:
    receipt, row, old = step.receipt, step.row, step.old.text if step.old else ""
    named = replace(Event("receipt", row.seq, receipt.time, text=old), receipt=receipt.id, op=receipt.op)
    return replace(named, was=row.was, now=row.now, why=row.why)


def _now(records: Records, seq: int) -> Event:
    place = records.view.entry(seq)
    if place is not None:
        why = ""
        if place.doc_id.startswith(ARCHIVE):
            heir = records.replaced(place)
            words = place.headings[-1].partition(" (")[0] if place.headings else ""
            why = f"{heir[0]} {heir[1]}" if heir else words[:1].lower() + words[1:]
        heading = " / ".join(place.headings)
        return Event("now", seq, "", at(place), place.text, place.entry.source, now=heading, why=why)
    last = records.steps(seq)[-1]
    gone = last.row.now in ("", "-")
    why = last.row.why if gone else f"no longer in the library; {last.receipt.id} put it into {last.row.now}"
    return Event("now", seq, why=why, text=known.text if gone and (known := records.entry(seq)) else "")


def _after(records: Records, seq: int) -> Iterator[Event]:
    """What came after it; of what replaced it also what replaced that."""
    known = {seq}
    pending = [seq]
    while pending:
        old = pending.pop(0)
        for heir, why in sorted(records.heirs(old).items()):
            if heir in known or (old != seq and why.startswith(("drawn", "renumbered"))):
                continue
            known.add(heir)
            place, entry = records.view.entry(heir), records.entry(heir)
            text, time, source = (entry.text, entry.time or "", entry.source) if entry else ("", "", "")
            words = f"{_HEIRS[why]} {old}" if why in REPLACED else why
            yield Event("heir", heir, time, at(place) if place else "", text, source, why=words)
            pending += [heir] * (why in REPLACED)
