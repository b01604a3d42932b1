"""What must hold of records, over all of them or over those that an edit touched, and the plans of edits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from infinimem.model import AGAIN, Finding, Plan, RejectedReply
from infinimem.store.view import Outcome, Rejected, View
from infinimem.strategies.base import Plans
from infinimem.strategies.links import distances
from infinimem.strategies.records.asking import IN_VAIN
from infinimem.strategies.records.record import ANEW, Record, fits
from infinimem.strategies.records.record_store import RecordStore, changed, puts

Rule = Callable[[RecordStore, Record], Iterator[str]]
"""Says what is wrong with a record, and what helps."""

Check = Callable[[RecordStore, Collection[str] | None], list[Finding]]
"""What does not hold of these records, or of all (None)."""


def _common(store: RecordStore, record: Record) -> Iterator[str]:
    """What it is made of and links to is there, and its header can be read."""
    for ref in record.refs:
        place = store.turn(ref.seq)
        if place is None:
            yield f"turn {ref.seq} is not in the evidence; bring it back, or {ANEW}"
        elif ref.span and ref.span[1] > len(place.entry.text):
            yield f"turn {ref.seq} is shorter than the span {ref.span[0]}-{ref.span[1]}; {ANEW}"
    for source in record.sources:
        if source not in store:
            yield f"its source {source} is not here; bring it back, or {ANEW}"
    for link in store.lost(record.id):
        what = f"a {link.kind} link leads to {link.to}, which is not here"
        yield f"{what}; bring it back, or take the line out"
    if not fits(record):
        yield "its header is longer than what is read"


def faults(store: RecordStore, only: Collection[str] | None, *rules: Rule) -> list[Finding]:
    """What does not hold of some records, or of all (None) and of files that hold none: by the rules of all
    strategies, then by these."""
    found = list(store.findings) if only is None else []
    for name in sorted(store.records if only is None else (name for name in only if name in store)):
        record = store.records[name]
        told = (what for rule in (_common, *rules) for what in rule(store, record))
        found += [Finding("error", what, record.doc_id) for what in told]
    return found


def new_faults(
    before: RecordStore, after: RecordStore, check: Check, changed: Collection[str]
) -> list[Finding]:
    """What held before an edit of these records and does not after it."""
    found = check(after, changed)
    old = {(one.what, one.where.rsplit("/", 1)[-1]) for one in (check(before, None) if found else ())}
    return [one for one in found if (one.what, one.where.rsplit("/", 1)[-1]) not in old]


def held_twice(store: RecordStore) -> Iterator[Finding]:
    """Turns that two records hold of a kind that is to hold each alone."""
    held: dict[tuple[str, int], str] = {}
    for name, record in sorted(store.records.items()):
        for ref in record.refs if record.kind.alone else ():
            if (other := held.setdefault((record.kind.name, ref.seq), name)) != name:
                what = f"turn {ref.seq} is in {other} too; take the line out of one"
                yield Finding("error", what, record.doc_id)


def orphans(store: RecordStore, version: str, only: Collection[str] | None = None) -> Iterator[Finding]:
    """Archived records to which no `version` links lead, if one of `only` may have made some."""
    names = store.records if only is None else (name for name in only if name in store)
    if any(name not in store.visible or store.out(name, version) for name in names):
        near = distances(sorted(store.visible), store, (version,))
        for name in sorted(store.records.keys() - near.keys()):
            record = store.records[name]
            what = f"no {record.kind.name} of the surface leads here by {version} links"
            yield Finding("error", f"{what}; move it to {record.kind.folder}", record.doc_id)


def misquoted(view: View, store: RecordStore) -> list[Finding]:
    """Records whose file does not quote the evidence as it stands."""
    what = f"what it quotes is not its evidence as it stands; {ANEW}"
    return [
        Finding("note", what, record.doc_id)
        for name, record in sorted(store.records.items())
        if view.document(record.doc_id).body.rstrip("\n")
        != store.render(name).split("\n---\n", 1)[1].rstrip("\n")
    ]


# ── plans that every strategy of records makes ───────────────────────────────────────────────────


TRIES = 3
"""How often a plan to write is made where the library changes under it."""


Step = Callable[[View, bool], Plan | None]
"""What is planned for the library as it is then; it is told whether a model may be asked."""


def run(view: View, steps: Iterable[Step | int]) -> Plans:
    """Propose a plan a step, each with the turns (ints) that were looked at since the last that was taken.

    After `IN_VAIN` in a row about which a model gave no answer it is not asked any more.
    """
    seen: list[int] = []
    in_vain = 0
    for step in steps:
        if isinstance(step, int):
            seen.append(step)
        elif plan := step(view, in_vain < IN_VAIN):
            outcome = yield replace(plan, empty=tuple(seen))
            view = outcome.view
            in_vain = in_vain + 1 if {*plan.unanswered.values()} - {AGAIN} else 0
            seen = seen if isinstance(outcome, Rejected) else []
    if seen:
        yield Plan(empty=tuple(seen))


def settled(view: View, make: Callable[[View], Plan | None]) -> Generator[Plan, Outcome, View | None]:
    """The library after the plan of `make` was taken, if there is one; None if it would not take it."""
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
    """The plan of an edit that was tried on a copy; where it would break a rule, one that only says why.

    Args:
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
