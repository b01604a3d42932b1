"""Archivings that wait for a person's word: a line of theirs, a pinned one, or too many at once.

.infinimem/withheld/0007.json   what receipt 7 did not do; the lines stay live meanwhile
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from infinimem.model import Move, Withheld
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


def keep(files: Files, receipt: int, withheld: Sequence[Withheld]) -> None:
    """Write down what a person may approve later."""
    rows = [
        {"move": asdict(item.move), "code": item.reason.code}
        for item in withheld
        if item.reason.code in ASKED
    ]
    if rows:
        path = f"{FOLDER}/{receipt:04d}.json"
        files.stage(path, json.dumps(rows, indent=1).encode())
        files.sync_folder_of(path)


def proposals(files: Files) -> tuple[Proposal, ...]:
    """What waits, oldest first; a file that cannot be read is passed over."""
    found: list[Proposal] = []
    for name in files.names(FOLDER):
        try:
            rows = json.loads(files.read(f"{FOLDER}/{name}", MAX_OWNED) or b"")
            number = int(name.removesuffix(".json"))
            found += [Proposal(number, Move(**row["move"]), row["code"]) for row in rows]
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
    return tuple(found)
