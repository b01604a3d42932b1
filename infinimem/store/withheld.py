"""What waits for people: archivings that need approval.

    .infinimem/withheld/0007.json    what receipt 7 did not do; the lines stay live meanwhile

Of the lines a checksum is kept, which tells whether they were edited since, and no word.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from infinimem.model import Located, Move, Withheld
from infinimem.store.files import MAX_OWNED, Files

FOLDER = ".infinimem/withheld"
ASKED = frozenset({"PROTECTED", "TOO_MANY"})
"""Reasons that a person may overrule; the others say that a proposal is wrong."""

Lookup = Callable[[int], Located | None]


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


def marks(seqs: Collection[int | None], lookup: Lookup) -> dict[int, str]:
    return {seq: mark(place.text) for seq in seqs if seq is not None and (place := lookup(seq))}


def keep(files: Files, receipt: int, withheld: Sequence[Withheld], lookup: Lookup) -> None:
    """Write down what a receipt withheld and a person may approve later."""
    rows = []
    for item in withheld:
        if (code := item.reason.code) in ASKED:
            seqs = (item.move.seq, item.move.by)
            rows.append({"move": asdict(item.move), "code": code, "marks": marks(seqs, lookup)})
    if rows:
        _write(files, receipt, rows)


def proposals(files: Files) -> tuple[Proposal, ...]:
    """Return what waits, oldest first; pass over a file that cannot be read."""
    waiting: list[Proposal] = []
    for name in files.names(FOLDER):
        with suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
            number = int(name.removesuffix(".json"))
            rows = json.loads(files.read(f"{FOLDER}/{name}", MAX_OWNED) or b"")
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


def drop(files: Files, settled: Collection[tuple[int, int]]) -> None:
    """Forget proposals: (receipt, seq) each. The caller holds the lock."""
    for receipt in sorted({receipt for receipt, _ in settled}):
        try:
            rows = json.loads(files.read(_path(receipt), MAX_OWNED) or b"")
            left = [row for row in rows if (receipt, row["move"]["seq"]) not in settled]
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
        if left:
            _write(files, receipt, left)
        else:
            files.remove(_path(receipt))


def _path(receipt: int) -> str:
    return f"{FOLDER}/{receipt:04d}.json"


def _write(files: Files, receipt: int, rows: Sequence[Mapping[str, Any]]) -> None:
    files.replace(_path(receipt), json.dumps(rows, indent=1).encode())
