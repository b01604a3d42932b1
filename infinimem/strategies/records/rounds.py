"""Plans that every strategy of records proposes in the same way."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from infinimem.model import Plan, Put, RejectedReply
from infinimem.store.view import Outcome, Rejected, View
from infinimem.strategies.records.record_store import RecordStore, changed, puts
from infinimem.strategies.records.rules import Check, new_faults

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


def edited(
    op: str,
    before: RecordStore,
    after: RecordStore,
    check: Check,
    rejected: Sequence[RejectedReply] = (),
    unanswered: Mapping[int, str] = MappingProxyType({}),
) -> Plan | None:
    """The plan of an edit that was tried on a copy; where it would break a rule, one that writes nothing and
    says why. None where there is nothing to write or to say.

    Args:
        op: what it is called.
        before, after: the records, and the copy.
        check: the rules.
        rejected: replies of the model that could not be read.
        unanswered: turns about which none could, and so nothing is written.
    """
    notes = [f"{one.task}: a reply that could not be read ({one.reasons[0]})" for one in rejected]
    touched = changed(before, after)
    wrong = new_faults(before, after, check, touched)
    notes += (f"not written, for {one.where} would be wrong: {one.what}" for one in wrong)
    plan = Plan(op, records=puts(before, after)) if touched and not wrong else Plan()
    if not (plan.records or notes or unanswered):
        return None
    return replace(plan, notes=tuple(notes), rejected=tuple(rejected), unanswered=unanswered)


def emptied(view: View, folder: str) -> Iterator[Plan]:
    """Take away all that stands below a folder; the evidence, of which none is held then, gives it anew."""
    records = [Put(doc_id, None) for doc_id in view.below(folder)]
    for at in range(0, len(records), AT_ONCE):
        yield Plan(op="rebuild", records=tuple(records[at : at + AT_ONCE]))
