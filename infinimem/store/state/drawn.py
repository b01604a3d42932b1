"""Which evidence has been drawn from, so that a turn is looked at once and a person's deletion stands.

The list is machine state. Where it is lost (a clone, a copied folder), everything said before the newest
cited turn counts as drawn from: turns are taken in order, and what is still to do is always the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from infinimem.markdown.signature import format_seqs, parse_seqs
from infinimem.model import NewEntry, Plan
from infinimem.spec import StrategySpec
from infinimem.store.files import MAX_OWNED, Files
from infinimem.store.lines import Seqs
from infinimem.store.spec import EVIDENCE
from infinimem.store.state import append_log
from infinimem.store.view import View

PATH = ".infinimem/drawn"
"""Of signed lines; a strategy of records that lists what it looked at has a list of its own (`path_of`)."""
REFUSED = ".infinimem/refused"
"""Of these turns nothing was accepted that a model drew from them: readers see the turns themselves."""

_END = b";"
"""Closes a line of the list, so that a torn one is told from a whole one."""
_SPAN = 10_000
"""Seqs that a line of the list names at most; far below what a reader of such lists takes."""


def path_of(spec: StrategySpec) -> str:
    """Where the list of a strategy stands."""
    return f"{PATH}-{spec.name}" if spec.sparse else PATH


def lists(files: Files, spec: StrategySpec) -> tuple[Seqs | None, Seqs]:
    """Seqs of evidence that was drawn from, None where that list is lost or no line of it can be read; and of
    what was refused."""
    drawn, refused = (append_log.value(files, path, Seqs, _added) for path in (path_of(spec), REFUSED))
    return drawn or None, refused


def _added(before: Seqs, rows: list[bytes]) -> Seqs:
    """With what the rows name that can be read; one that was cut short would name other seqs."""
    found: set[int] = set()
    for row in rows:
        if row.endswith(_END):
            with suppress(ValueError):
                found.update(parse_seqs(row.removesuffix(_END).decode("ascii", "replace")))
    return Seqs(found, before)


def note(files: Files, view: View, seqs: Iterable[int], renumbered: Iterable[int] = ()) -> None:
    """Add to the list, under the lock. A lost list begins with what `view` takes for drawn from.

    Args:
        seqs: of evidence in `view`.
        renumbered: seqs that turns are about to get which were drawn from.
    """
    new = {*renumbered} | {seq for seq in seqs if _is_turn(seq, view)}
    path = path_of(view.spec)
    written = files.read(path, MAX_OWNED) or b""
    sound = view.drawn is not None and written.endswith(b"\n")
    if not sound:
        new |= view.processed
    if new:
        (files.append if sound else files.replace)(path, _rows(new))


def applied(files: Files, view: View, plan: Plan) -> None:
    """Keep the list after a plan, under the lock; after a rebuild of a strategy with a list of its own all is
    looked at again.

    Args:
        files: of the library.
        view: as it was before the plan.
        plan: which was carried out.
    """
    if plan.op == "append" and view.spec.has_entries:
        cited = (seq for add in plan.adds for seq in add.origin)
        refuse(files, plan.refused)
        note(files, view, [*plan.empty, *plan.refused, *cited])
    elif view.spec.sparse and plan.op == "rebuild":
        if files.exists(path_of(view.spec)):
            files.remove(path_of(view.spec))
    elif view.spec.sparse:
        note(files, view, plan.empty)


def refuse(files: Files, seqs: Iterable[int]) -> None:
    """Add to the list of turns that stand for themselves, under the lock."""
    if rows := _rows(seqs):
        files.append(REFUSED, rows)


def _rows(seqs: Iterable[int]) -> bytes:
    chosen = sorted(seqs)
    spans = (chosen[at : at + _SPAN] for at in range(0, len(chosen), _SPAN))
    return "".join(f"{format_seqs(span)};\n" for span in spans).encode()


def not_yet_drawn(adds: Sequence[NewEntry], view: View) -> tuple[NewEntry, ...]:
    """New entries without those that another process has drawn from the same turns meanwhile."""
    pending = {place.seq for place in view.uncited({seq for add in adds for seq in add.origin})}

    def is_new(add: NewEntry) -> bool:
        turns = [seq for seq in add.origin if _is_turn(seq, view)]
        return not turns or not pending.isdisjoint(turns)

    return tuple(filter(is_new, adds))


def _is_turn(seq: int, view: View) -> bool:
    place = view.entry(seq)
    return place is not None and place.doc_id.startswith(EVIDENCE)
