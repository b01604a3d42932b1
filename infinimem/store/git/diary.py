"""What a commit says: what its receipts did, by numbers and documents. Pure.

No text of a line is in it, so that what is forgotten later need not be looked for in messages.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence

from infinimem.model import Receipt, Touched
from infinimem.store.keeper import ARCHIVES, BOOKS, RECORDS
from infinimem.store.records import stem

WIDTH = 72
"""Characters of a subject; git's own custom."""
LISTED, PARAGRAPHS = 40, 20
"""Rows of one kind, and receipts, that a message lists."""
LENGTH = 30_000
"""Characters of a message: it is one argument of a command, and names may be long."""

_OF_PEOPLE = ("undo", "forget", "rename")
_ARCHIVED = re.compile(r"(superseded|duplicate) (?:by|of) [0-9]+")
_TAKES_BACK = re.compile(r"takes back receipt ([0-9]+)")
_TAKEN_IN = {
    "stamped": "new line",
    "edited": "edit",
    "moved by hand": "move",
    "deleted": "deletion",
    "renumbered": "copy",
    "cites": "citation",
}
"""What people do, by the beginning of a row's reason."""


def message(receipts: Sequence[Receipt], turns: int, lines: int, names: Collection[str] = ()) -> str:
    """A subject, and a paragraph for each receipt.

    Args:
        receipts: oldest first; none where there is only what was said and written since, more than one where
            some had to wait.
        turns, lines: how many were said, and drawn from that, since the receipts that were committed before.
        names: ids of all receipts, to call an undone one by its name.
    """
    said = _first_that_fits([*_said(turns, lines), "Keep what a person wrote"])
    if not receipts:
        return f"{said}\n"
    *earlier, last = receipts
    more = f", and {_count(len(earlier), 'earlier receipt')}" if earlier else ""
    subject = _first_that_fits([f"{told}{more}" for told in _subjects(last, names)])
    parts = ["\n".join(_paragraph(receipt, names, bool(earlier))) for receipt in receipts[-PARAGRAPHS:]]
    if len(receipts) > PARAGRAPHS:
        parts.insert(0, f"{receipts[0].id} and {len(receipts) - PARAGRAPHS - 1} more")
    return _plain("\n\n".join([subject, *parts, *_said(turns, 0)]))[:LENGTH] + "\n"


def _said(turns: int, lines: int) -> list[str]:
    said = [f"Record {_count(turns, 'turn')}"] if turns else []
    drawn = [f"{'note' if turns else 'Note'} {_count(lines, 'line')}"] if lines else []
    return [", ".join([*said, *drawn])] if said or drawn else []


def _subjects(receipt: Receipt, names: Collection[str]) -> list[str]:
    """Ways to say it, the longest first; the last is short whatever happened."""
    rows = receipt.rows
    if not rows and (told := _records(receipt)):
        return [told]
    lines = _count(len(rows), "line")
    short = f"{receipt.op.capitalize()[:30]}: {lines}"
    match receipt.op:
        case "consolidate" | "append":
            return [*_consolidated(rows), short]
        case "split":
            to = {row.now for row in rows if row.now != row.was}
            of = {row.was for row in rows}
            whole = f"Split {_named(of, 'topic')}, {_count(len(rows), 'line')} into {_named(to, 'topic')}"
            return [
                whole,
                f"Split {_count(len(of), 'topic')}: {lines} into {_count(len(to), 'topic')}",
                short,
            ]
        case "merge":
            of, to = {row.was for row in rows}, {row.now for row in rows if row.why == "merged"}
            whole = f"Merge {_named(of - to, 'topic')} into {_named(to, 'topic')}"
            return [whole, f"Merge {_count(len(of | to), 'topic')} into {_count(len(to), 'topic')}", short]
        case "stamp":
            return [*_taken_in(rows), short]
        case "rename":
            return [f"Take in {_count(len(receipt.files), 'renamed document')}", short]
        case "undo":
            return [*_undone(receipt, names), short]
        case "forget":
            return [f"Forget {lines}"]
        case "memory":
            files = f"Memory tool: {_count(len(receipt.files), 'file')}"
            return [*(f"Memory tool: {note}" for note in receipt.notes[:1]), files]
        case "review":
            return [f"Archive {lines}, as approved", short]
        case _:
            return [short]


def _records(receipt: Receipt) -> str:
    """A plan of records, and how many of them left the surface; "" where it is none of a strategy's."""
    if receipt.op in _OF_PEOPLE or not any(name.startswith(BOOKS) for name, *_ in receipt.files):
        return ""
    files = [(name, after) for name, _, after in receipt.files if name.startswith(RECORDS)]
    there = {stem(name) for name, after in files if after != "-"}
    archived = {stem(name) for name, after in files if name.startswith(ARCHIVES) and after != "-"}
    archived &= {stem(name) for name, after in files if after == "-"}
    more = f", archive {len(archived)}" if archived else ""
    return f"{receipt.op.capitalize()[:30]}: {_count(len(there), 'record')}{more}"


def _consolidated(rows: Sequence[Touched]) -> list[str]:
    archived = [row for row in rows if _ARCHIVED.match(row.why)]
    written = [row for row in rows if row.why == "added"]
    moved = [row for row in rows if row.why in ("moved", "split", "merged")]
    into = _count(len({row.now for row in (*moved, *written)}), "topic")
    if written:
        of = _count(len(rows) - len(written), "line")
        return [f"Write {_count(len(written), 'line')} into {into}, from {of}"]
    if moved:
        more = (
            [f"Consolidate {_count(len(moved), 'line')} into {into}, archive {len(archived)}"]
            if archived
            else []
        )
        return [*more, f"Consolidate {_count(len(moved), 'line')} into {into}"]
    return [f"Archive {_count(len(archived), 'line')}"] if archived else []


def _taken_in(rows: Sequence[Touched]) -> list[str]:
    found = Counter(what for row in rows for why, what in _TAKEN_IN.items() if row.why.startswith(why))
    told = [_count(found[what], what) for what in _TAKEN_IN.values() if found[what]]
    if not told:
        return []
    return [f"Take in {_and(told)}", f"Take in {_count(sum(found.values()), 'change')} of a person"]


def _undone(receipt: Receipt, names: Collection[str]) -> list[str]:
    for note in receipt.notes:
        if match := _TAKES_BACK.match(note):
            number = int(match[1])
            called = sorted(name for name in names if name.startswith(f"journal/{number:04d}-"))
            return [f"Undo {called[0]}" if len(called) == 1 else f"Undo receipt {number}"]
    return []


def _paragraph(receipt: Receipt, names: Collection[str], titled: bool) -> list[str]:
    """The receipt's name, and what moved where."""
    by = f", by {receipt.strategy}" if receipt.strategy and receipt.strategy != "people" else ""
    model = f" with {receipt.model[:60]}" if receipt.model not in ("", "none") else ""
    title = f": {_first_that_fits(_subjects(receipt, names))}" if titled else ""
    ways = Counter(
        (row.was, row.now) for row in receipt.rows if row.was != row.now and not _ARCHIVED.match(row.why)
    )
    lines = [f"{receipt.id}{title}{by}{model}"]
    moves = [f"  {was} -> {now}: {count}" for (was, now), count in sorted(ways.items())]
    lines += [*moves[:LISTED], *([f"  and {len(moves) - LISTED} more ways"] if len(moves) > LISTED else [])]
    for kind in ("superseded", "duplicate"):
        archived = [f"{row.seq}{row.why.removeprefix(kind)}" for row in receipt.rows if _is(kind, row)]
        if archived:
            more = f" and {len(archived) - LISTED} more" if len(archived) > LISTED else ""
            lines.append(f"  {kind}: {', '.join(archived[:LISTED])}{more}")
    return lines


def _is(kind: str, row: Touched) -> bool:
    return bool((match := _ARCHIVED.fullmatch(row.why)) and match[1] == kind)


def _named(ids: Collection[str], kind: str) -> str:
    return next(iter(ids)) if len(ids) == 1 else _count(len(ids), kind)


def _count(number: int, what: str) -> str:
    plural = f"{what[:-1]}ies" if what.endswith("py") else f"{what}s"
    return f"{number} {what if number == 1 else plural}"


def _and(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _first_that_fits(ways: Sequence[str]) -> str:
    return next((way for way in ways if len(way) <= WIDTH), ways[-1][:WIDTH])


def _plain(text: str) -> str:
    """A receipt is a file, and may say anything."""
    return "".join(c if c == "\n" or c.isprintable() else " " for c in text)
