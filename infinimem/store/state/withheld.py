"""Archivings that wait for a person's word: a line of theirs, a pinned one, or too many at once.

.infinimem/withheld/0007.json   what receipt 7 did not do; the lines stay live meanwhile

Of the lines a checksum is kept, which tells whether they were edited since, and no word.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from infinimem.model import Located, Move, Withheld
from infinimem.store.files import MAX_OWNED, Files

FOLDER = ".infinimem/withheld"
ASKED = frozenset({"PROTECTED", "TOO_MANY"})
"""Reasons that a person may overrule; the others say that a proposal is wrong."""


@dataclass(frozen=True)
class Proposal:
    """An archiving that may be approved: the receipt that withheld it, the move, and why it waits."""

    receipt: int
    move: Move
    code: str
    marks: Mapping[int, str]
    """Of the line and of the one that would survive it, what `mark` gave; nothing where it is not known."""


def mark(text: str) -> str:
    """A checksum of a line's text; white space at its end does not count."""
    return hashlib.sha256(text.rstrip().encode("utf-8", "surrogateescape")).hexdigest()


def marks(seqs: Collection[int | None], lookup: Callable[[int], Located | None]) -> dict[int, str]:
    """The checksums of lines, by seq."""
    return {seq: mark(place.text) for seq in seqs if seq is not None and (place := lookup(seq))}


def keep(
    files: Files, receipt: int, withheld: Sequence[Withheld], lookup: Callable[[int], Located | None]
) -> None:
    """Write down what a person may approve later.

    Args:
        files: of the library.
        receipt: the one that withheld it.
        withheld: what was withheld, for whatever reason.
        lookup: finds a line by its seq.
    """
    rows = [
        {
            "move": asdict(item.move),
            "code": item.reason.code,
            "marks": marks((item.move.seq, item.move.by), lookup),
        }
        for item in withheld
        if item.reason.code in ASKED
    ]
    if rows:
        _write(files, receipt, rows)


def proposals(files: Files) -> tuple[Proposal, ...]:
    """What waits, oldest first; a file that cannot be read is passed over."""
    found: list[Proposal] = []
    for name in files.names(FOLDER):
        try:
            number = int(name.removesuffix(".json"))
            found += [
                Proposal(
                    number,
                    Move(**row["move"]),
                    row["code"],
                    {int(seq): text for seq, text in row.get("marks", {}).items()},
                )
                for row in json.loads(files.read(f"{FOLDER}/{name}", MAX_OWNED) or b"")
            ]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
    return tuple(found)


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
