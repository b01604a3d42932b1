"""Plans that every strategy of records proposes in the same way."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

from infinimem.model import Plan, Put
from infinimem.store.outcome import Outcome, Rejected
from infinimem.store.view import View

TRIES = 3
"""How often a plan to write is made where the library changes under it."""

AT_ONCE = 256
"""Records that one plan of a rebuild takes away; a transaction of thousands is slow."""


def settled(view: View, make: Callable[[View], Plan | None]) -> Generator[Plan, Outcome, View | None]:
    """The library after a plan was taken; None where it would not take it.

    Args:
        view: the library.
        make: gives the plan for a library as it is; None where there is nothing to do.
    """
    for _ in range(TRIES):
        plan = make(view)
        if plan is None:
            return view
        outcome = yield plan
        view = outcome.view
        if not isinstance(outcome, Rejected):
            return view
    return None


def emptied(view: View, folder: str) -> Iterator[Plan]:
    """Take away all that stands below a folder; the evidence, of which none is held then, gives it anew."""
    records = [Put(doc_id, None) for doc_id in view.below(folder)]
    for at in range(0, len(records), AT_ONCE):
        yield Plan(op="rebuild", records=tuple(records[at : at + AT_ONCE]))
