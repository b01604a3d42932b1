"""What waits for people: archivings that need approval, and replies of a model that were refused.

    .infinimem/withheld/0007.json             what receipt 7 did not do; the lines stay live meanwhile
    .infinimem/rejected/000123-extract.txt    a reply; the newest hundred stay, and no tool reads them

Of the lines a checksum is kept, which tells whether they were edited since, and no word.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass

from infinimem.errors import LibraryError
from infinimem.markdown.characters import one_line
from infinimem.model import Located, Move, RejectedReply, Withheld
from infinimem.store.files import MAX_OWNED, Files
from infinimem.store.view import whole

WITHHELD, REJECTED = ".infinimem/withheld", ".infinimem/rejected"
ASKED = frozenset({"PROTECTED", "TOO_MANY"})
"""Reasons that a person may overrule; the others say that a proposal is wrong."""
KEPT = 100
MAX_BYTES = 64 * 1024
"""Of one reply; of a longer one the beginning is kept."""


@dataclass(frozen=True)
class Proposal:
    """An archiving that may be approved: the receipt that withheld it, the move, and why it waits."""

    receipt: int
    move: Move
    code: str
    marks: Mapping[int, str]
    """Of the line and of the one that would survive it, what `mark` gave; nothing where it is not known."""


def mark(text: str) -> str:
    """Return a checksum of a line's text; white space at its end does not count."""
    return hashlib.sha256(text.rstrip().encode("utf-8", "surrogateescape")).hexdigest()


def keep_withheld(
    files: Files, receipt: int, withheld: Sequence[Withheld], lookup: Callable[[int], Located | None]
) -> None:
    """Write down what a receipt withheld and a person may approve later."""
    waiting = []
    for item in withheld:
        if item.reason.code in ASKED:
            places = (lookup(seq) for seq in (item.move.seq, item.move.by) if seq is not None)
            marks = {place.seq: mark(place.text) for place in places if place}
            waiting.append(Proposal(receipt, item.move, item.reason.code, marks))
    if waiting:
        _write(files, receipt, waiting)


def proposals(files: Files) -> tuple[Proposal, ...]:
    """Return what waits, oldest first; pass over a file that cannot be read."""
    waiting: list[Proposal] = []
    for name in files.names(WITHHELD):
        with suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
            number = int(name.removesuffix(".json"))
            rows = json.loads(files.read(f"{WITHHELD}/{name}", MAX_OWNED) or b"")
            waiting += [
                Proposal(
                    number,
                    Move(**row["move"]),
                    row["code"],
                    {int(seq): text for seq, text in row.get("marks", {}).items()},
                )
                for row in rows
            ]
    return tuple(waiting)


def drop_withheld(files: Files, settled: Collection[tuple[int, int]]) -> None:
    """Forget proposals: (receipt, seq) each. The caller holds the lock."""
    waiting = proposals(files)
    left = [one for one in waiting if (one.receipt, one.move.seq) not in settled]
    for receipt in sorted({one.receipt for one in waiting if one not in left}):
        _write(files, receipt, [one for one in left if one.receipt == receipt])


def _write(files: Files, receipt: int, waiting: Sequence[Proposal]) -> None:
    path = f"{WITHHELD}/{receipt:04d}.json"
    rows = [{"move": asdict(one.move), "code": one.code, "marks": one.marks} for one in waiting]
    if rows:
        files.replace(path, json.dumps(rows, indent=1).encode())
    else:
        files.remove(path)


def keep_replies(files: Files, replies: Iterable[RejectedReply], when: str) -> None:
    """Write each refused reply into a file of its own, and drop the oldest beyond a hundred, under the lock.

    Nothing is synced, and a disk that refuses stops nothing. The files name the time, `when`.
    """
    kept = [*replies]
    with suppress(LibraryError):
        numbers = ((whole(name.partition("-")[0]), name) for name in files.names(REJECTED)) if kept else ()
        there = sorted((at, name) for at, name in numbers if at is not None)
        for number, reply in enumerate(kept, there[-1][0] + 1 if there else 1):
            task = re.sub("[^a-zA-Z0-9_]", "", reply.task)[:40] or "reply"
            there.append((number, f"{number:06d}-{task}.txt"))
            reasons = "".join(f"reason: {one_line(reason)[:500]}\n" for reason in reply.reasons[:100])
            text = f"time: {when}\ntask: {one_line(reply.task)}\n{reasons}\n{reply.text[:MAX_BYTES]}\n"
            data = text.encode("utf-8", "backslashreplace")[:MAX_BYTES]
            files.stage(f"{REJECTED}/{there[-1][1]}", data, durable=False)
        for _, name in there[:-KEPT]:
            files.remove(f"{REJECTED}/{name}", durable=False)
