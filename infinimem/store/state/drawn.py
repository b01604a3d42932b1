"""Which evidence has been drawn from, so that a turn is looked at once and a person's deletion stands.

The list is machine state. Where it is lost (a clone, a copied folder), everything said before the newest
cited turn counts as drawn from: turns are taken in order, and what is still to do is always the end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress

from infinimem.markdown.signature import format_seqs, parse_seqs
from infinimem.store.files import MAX_OWNED, Files
from infinimem.store.state import append_log
from infinimem.store.view import View

PATH = ".infinimem/drawn"

_END = b";"
"""Closes a line of the list, so that a torn one is told from a whole one."""
_SPAN = 10_000
"""Seqs that a line of the list names at most; far below what a reader of such lists takes."""


def read(files: Files) -> frozenset[int] | None:
    """Seqs of evidence that was drawn from; None where the list is lost, or no line of it can be read."""
    return append_log.value(files, PATH, frozenset[int], _added) or None


def _added(before: frozenset[int], rows: list[bytes]) -> frozenset[int]:
    """With what the rows name that can be read; one that was cut short would name other seqs."""
    found: set[int] = set()
    for row in rows:
        if row.endswith(_END):
            with suppress(ValueError):
                found.update(parse_seqs(row.removesuffix(_END).decode("ascii", "replace")))
    return before | found


def note(files: Files, view: View, seqs: Iterable[int], renumbered: Iterable[int] = ()) -> None:
    """Add to the list, under the lock. A lost list begins with what `view` takes for drawn from.

    Args:
        seqs: of evidence in `view`.
        renumbered: seqs that turns are about to get which were drawn from.
    """
    new = {*renumbered} | {
        seq for seq in seqs if (place := view.entry(seq)) and place.doc_id.startswith("evidence/")
    }
    written = files.read(PATH, MAX_OWNED) or b""
    sound = view.drawn is not None and written.endswith(b"\n")
    if not sound:
        new |= view.processed
    if not new:
        return
    chosen = sorted(new)
    spans = (chosen[at : at + _SPAN] for at in range(0, len(chosen), _SPAN))
    data = "".join(f"{format_seqs(span)};\n" for span in spans).encode()
    if sound:
        files.append(PATH, data)
    else:
        files.replace(PATH, data)


def pending(view: View, among: Iterable[int]) -> set[int]:
    """Those of these seqs that are evidence which is still to be drawn from."""
    return {place.entry.seq for place in view.uncited(among)}


def is_news(origin: Collection[int], waiting: Collection[int], view: View) -> bool:
    """Whether a new entry is not one that another process has drawn from the same turns meanwhile."""
    told = [seq for seq in origin if (place := view.entry(seq)) and place.doc_id.startswith("evidence/")]
    return not told or any(seq in waiting for seq in told)
