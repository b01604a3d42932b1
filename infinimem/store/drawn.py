"""Which evidence has been drawn from, so that a turn is looked at once and a person's deletion stands.

The list is machine state. Where it is lost (a clone, a copied folder), everything said before the newest
cited turn counts as drawn from: turns are taken in order, and what is still to do is always the end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from infinimem.markdown.signature import format_seqs, parse_seqs
from infinimem.store.files import MAX_OWNED, Files
from infinimem.store.view import View

PATH = ".infinimem/drawn"


def read(files: Files) -> frozenset[int] | None:
    """Seqs of evidence that was drawn from; None where the list is lost."""
    data = files.read(PATH, MAX_OWNED)
    if data is None:
        return None
    return frozenset(seq for line in data.decode("ascii", "replace").split() for seq in parse_seqs(line))


def note(files: Files, view: View, seqs: Iterable[int]) -> None:
    """Add to the list, under the lock. A lost list begins with what `view` takes for drawn from."""
    new = {seq for seq in seqs if (place := view.entry(seq)) and place.doc_id.startswith("evidence/")}
    if view.drawn is None:
        new |= {place.entry.seq for place in view.entries("evidence")} - pending(view)
    if new:
        files.append(PATH, f"{format_seqs(sorted(new))}\n".encode())


def pending(view: View) -> set[int]:
    """Seqs of evidence that is still to be drawn from."""
    return {place.entry.seq for place in view.uncited()}


def is_news(origin: Collection[int], waiting: Collection[int], view: View) -> bool:
    """Whether a new entry is not one that another process has drawn from the same turns meanwhile."""
    told = [seq for seq in origin if (place := view.entry(seq)) and place.doc_id.startswith("evidence/")]
    return not told or any(seq in waiting for seq in told)
