"""What is open: the evidence that no record names. It is listed nowhere, so undo and `forget` reopen turns.

What is due hangs on the evidence as well, and not on how many turns a call brings.
Source: xMemory, section 3.2 (blocks within a session).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Self

from infinimem.model import Located
from infinimem.store.records import held_by, stem
from infinimem.store.spec import EVIDENCE
from infinimem.store.view import View
from infinimem.strategies.links import SharedDict
from infinimem.strategies.records.record import prefix_of


class Named:
    """The turns that records name, even unreadable ones; with a prefix those of its kind alone."""

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._by: SharedDict[str, tuple[int, ...]] = SharedDict()
        self._count: SharedDict[int, int] = SharedDict()

    def __contains__(self, seq: object) -> bool:
        return seq in self._count

    def updated(self, view: View, changed: Iterable[str]) -> tuple[Self, set[int]]:
        """As a view shows them, and the turns of which that may be news."""
        new, seqs = copy(self), set[int]()
        new._by, new._count = self._by.copy(), self._count.copy()
        for doc_id in changed:
            if self._prefix in ("", prefix_of(stem(doc_id))) and doc_id.startswith(view.spec.record_folders):
                before = new._by.pop(doc_id, ())
                now = held_by(view.document(doc_id)) if doc_id in view else ()
                if now:
                    new._by[doc_id] = now
                for seq, by in (*((seq, -1) for seq in before), *((seq, 1) for seq in now)):
                    new._count[seq] = new._count.get(seq, 0) + by
                seqs.update(before, now)
        for seq in seqs:
            if not new._count[seq]:
                del new._count[seq]
        return new, seqs


@dataclass(frozen=True)
class _Open:
    turns: SharedDict[str, tuple[Located, ...]]
    """Open ones by evidence document."""
    named: Named


def open_turns(view: View) -> Mapping[str, Sequence[Located]]:
    """The turns that no record names, by evidence document (a session has one), each in order."""
    return view.derived(_open).turns


def _open(view: View, known: _Open | None, changed: Collection[str] | None) -> _Open:
    """`View.derived`: looks again at the sessions that changed, or of which another record names turns."""
    if known is None or changed is None:
        known, changed = _Open(SharedDict(), Named()), view.ids("all")
    turns = known.turns.copy()
    named, news = known.named.updated(view, changed)
    places = {place.doc_id for place in map(view.entry, news) if place}
    for doc_id in (one for one in {*changed, *places} if one.startswith(EVIDENCE)):
        entries = view.document(doc_id).entries if doc_id in view else ()
        turns.pop(doc_id, None)
        if left := tuple(one for one in entries if one.seq not in view.cited and not view.repeats(one)):
            turns[doc_id] = left
    return _Open(turns, named)


def open_until(view: View, turn: Located) -> Sequence[Located]:
    """The open turns of a turn's session up to it."""
    return _until(open_turns(view).get(turn.doc_id, ()), turn)


def ended_by(view: View, turn: Located) -> list[Sequence[Located]]:
    """The open turns of the sessions that a turn ends: of all others, where it is the first of its own."""
    if view.document(turn.doc_id).entries[0].seq != turn.seq:
        return []
    found = (_until(said, turn) for doc_id, said in open_turns(view).items() if doc_id != turn.doc_id)
    return sorted(filter(None, found), key=lambda said: said[0].seq)


def _until(turns: Sequence[Located], last: Located) -> Sequence[Located]:
    return turns[: bisect_right(turns, last.seq, key=lambda turn: turn.seq)]
