"""What must hold of records, over all of them or over those that an edit touched, and the plans of edits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from infinimem.model import Finding, Plan, Put, RejectedReply
from infinimem.spec import Kind
from infinimem.store.outcome import Outcome, Rejected
from infinimem.store.view import View
from infinimem.strategies.graph.walk import distances
from infinimem.strategies.records.codec import fits
from infinimem.strategies.records.record import ANEW, Record
from infinimem.strategies.records.record_store import RecordStore, changed, puts

Rule = Callable[[RecordStore, Record], Iterator[str]]
"""Says what is wrong with a record, and what helps."""

Check = Callable[[RecordStore, Collection[str] | None], list[Finding]]
"""What does not hold of these records, or of all (None)."""


def evidence_stands(store: RecordStore, record: Record) -> Iterator[str]:
    """What it is made of is there."""
    for ref in record.refs:
        place = store.turn(ref.seq)
        if place is None:
            yield f"turn {ref.seq} is not in the evidence; bring it back, or {ANEW}"
        elif ref.span and ref.span[1] > len(place.entry.text):
            yield f"turn {ref.seq} is shorter than the span {ref.span[0]}-{ref.span[1]}; {ANEW}"
    for source in record.sources:
        if source not in store:
            yield f"its source {source} is not here; bring it back, or {ANEW}"


def links_stand(store: RecordStore, record: Record) -> Iterator[str]:
    """What it links to is there."""
    for link in store.lost.get(record.id, ()):
        yield (
            f"a {link.kind} link leads to {link.to}, which is not here; bring it back, or take the line out"
        )


def header_fits(store: RecordStore, record: Record) -> Iterator[str]:
    """Its header can be read."""
    if not fits(record, store.links(record.id)):
        yield "its header is longer than what is read"


COMMON = (evidence_stands, links_stand, header_fits)
"""The rules of all strategies."""


def faults(store: RecordStore, rules: Sequence[Rule], only: Collection[str] | None = None) -> list[Finding]:
    """What does not hold.

    Args:
        store: all records.
        rules: of the strategy.
        only: records to look at, of which those that are not here are passed over; None for all, and for
            files that hold no record.
    """
    found = list(store.findings) if only is None else []
    for name in sorted(store.records if only is None else (name for name in only if name in store)):
        record = store.records[name]
        found += [Finding("error", what, record.doc_id) for rule in rules for what in rule(store, record)]
    return found


def new_faults(
    before: RecordStore, after: RecordStore, check: Check, changed: Collection[str]
) -> list[Finding]:
    """What held before an edit of these records and does not after it."""
    found = check(after, changed)
    old = {(one.what, one.where.rsplit("/", 1)[-1]) for one in (check(before, None) if found else ())}
    return [one for one in found if (one.what, one.where.rsplit("/", 1)[-1]) not in old]


def held_twice(store: RecordStore, kind: Kind) -> Iterator[Finding]:
    """Turns that two records of a kind hold, be they archived."""
    held: dict[int, str] = {}
    for name, record in sorted(store.records.items()):
        for ref in record.refs if record.kind is kind else ():
            if (other := held.setdefault(ref.seq, name)) != name:
                what = f"turn {ref.seq} is in {other} too; take the line out of one"
                yield Finding("error", what, record.doc_id)


def orphans(store: RecordStore, version: str, only: Collection[str] | None = None) -> Iterator[Finding]:
    """Archived records to which no links of a kind lead from the surface; all of them where one of `only` may
    have made some.

    Args:
        store, only: as for `faults`.
        version: the kind of link that leads to what a record stands for.
    """
    names = store.records if only is None else (name for name in only if name in store)
    if any(name not in store.visible or store.graph.out(name, version) for name in names):
        near = distances(sorted(store.visible), store.graph, (version,))
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
