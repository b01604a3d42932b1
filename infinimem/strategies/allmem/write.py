"""Units and the buffer: a unit for each turn, linked to the surface, waits there for consolidation.

A plan covers a run of turns of one session, so that little is lost where it stops. Source: All-Mem, section
3.2, Eq. 4; Eq. 3 and B.7 (no orphan), Eq. 12 (caps), B.1 (temporal links lead back in time)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from infinimem.model import Finding, Located, Plan, Put
from infinimem.store.view import View
from infinimem.strategies.allmem.spec import SPEC, AllmemSettings
from infinimem.strategies.graph.links import Link
from infinimem.strategies.records import edits
from infinimem.strategies.records.codec import ledger_text, rows_of
from infinimem.strategies.records.edits import new_faults
from infinimem.strategies.records.record import UNVERIFIED, Record, Ref, is_record_id
from infinimem.strategies.records.record_store import RecordStore, puts
from infinimem.strategies.records.telling import Described
from infinimem.strategies.vector_index import VectorIndex

HOME = SPEC.writes[0]
UNIT = SPEC.kinds[0]
SURFACE = (UNIT.folder,)
"""Where the units stand that are searched."""

KINDS = SPEC.links
"""Kinds of link, in the order in which a reader follows them (section 3.4)."""
VERSION, SIBLING, TEMPORAL, SEMANTIC = KINDS


# ── the buffer ───────────────────────────────────────────────────────────────────────────────────


BUFFER = f"{HOME}buffer"


@dataclass(frozen=True)
class Buffered:
    """A unit that waits for consolidation, and the units that it was near to."""

    unit: str
    near: tuple[str, ...]


def buffered(view: View) -> tuple[Buffered, ...]:
    """What waits, of the units that are there, in the order in which it came."""
    return view.derived(_buffered)


def _buffered(
    view: View, known: tuple[Buffered, ...] | None, changed: Collection[str] | None
) -> tuple[Buffered, ...]:
    if known is not None and changed is not None and not any(name.startswith(HOME) for name in changed):
        return known
    bank = view.derived(RecordStore.load)
    found: dict[str, Buffered] = {}
    for row in rows_of(view.document(BUFFER)) if BUFFER in view else ():
        unit, near = row.get("unit"), row.get("near")
        if isinstance(unit, str) and unit in bank and isinstance(near, list):
            names = (name for name in near if isinstance(name, str) and is_record_id(name))
            found.setdefault(unit, Buffered(unit, tuple(names)))
    return tuple(found.values())


def buffer_text(waiting: Sequence[Buffered]) -> str:
    """The buffer's file."""
    prose = ("# Units that wait for consolidation", "", f"{len(waiting)} in order of arrival.")
    rows = ({"unit": one.unit, "near": list(one.near)} for one in waiting)
    return ledger_text(BUFFER, {"kind": "buffer"}, prose, rows)


# ── what must hold ───────────────────────────────────────────────────────────────────────────────


def faults(
    bank: RecordStore, only: Collection[str] | None = None, *, settings: AllmemSettings
) -> list[Finding]:
    """What does not hold (records/edits.py); of orphans, all where one of these may have made some."""

    caps = {
        SEMANTIC: settings.degree_semantic,
        SIBLING: settings.degree_sibling,
        TEMPORAL: settings.degree_temporal,
    }

    def held(bank: RecordStore, unit: Record) -> Iterator[str]:
        for older in bank.graph.out(unit.id, TEMPORAL):
            if not bank.records[older].age < unit.age:
                yield f"a temporal link leads to {older}, which is not older"
        for kind, cap in caps.items():
            if (count := len(bank.graph.out(unit.id, kind))) > cap:
                yield f"{count} {kind} links are more than {cap}"

    all_rules = (edits.evidence_stands, edits.links_stand, held, edits.header_fits)
    return [*edits.faults(bank, all_rules, only), *edits.orphans(bank, VERSION, only)]


# ── writing ──────────────────────────────────────────────────────────────────────────────────────


RUN = 64
"""Turns that one plan covers at most."""


def session_of(turn: Located) -> str:
    """The name of the evidence document: turns of a session share one."""
    return turn.doc_id.rsplit("/", 1)[-1]


def written(
    view: View,
    bank: RecordStore,
    space: VectorIndex,
    described: Sequence[Described],
    settings: AllmemSettings,
) -> Plan | None:
    """The plan that makes units of turns, but for those of which the model gave no answer; None where none of
    them lacks one.

    Args:
        view: the library; its buffer grows.
        bank: its units.
        space: where they lie; follows the new ones.
        described: turns of one session, in order.

    Raises:
        ModelUnavailable, ModelNotConfigured: of the embedder.
    """
    after = bank.copy()
    open_ones = [one for one in described if one.turn.seq not in bank.held and bank.stands(one.turn)]
    if not open_ones:
        return None
    unanswered = {one.turn.seq: one.failure for one in open_ones if one.failure}
    rejected = tuple(one.wrong for one in described if one.wrong)
    new = [_unit(after, one) for one in open_ones if not one.failure]
    if not new:
        return Plan(unanswered=unanswered, rejected=rejected)
    for unit in new:
        after.put(unit)
    names = [unit.id for unit in new]
    space.sync(after, names)
    waiting = list(buffered(view))
    last = _last_of(after, new[0].session, set(names))
    for at, unit in enumerate(new):
        waiting.append(_attach(after, space, unit, last, names[at:], settings))
        if last is None or last.age < unit.age:
            last = unit
    if wrong := new_faults(bank, after, partial(faults, settings=settings), names):
        return Plan(notes=tuple(f"not written, for {one.where} would be wrong: {one.what}" for one in wrong))
    notes = (
        f"turn {one.turn.seq}: no descriptor ({one.wrong.reasons[0]}); its first words stand in"
        for one in described
        if one.wrong and not one.failure
    )
    return Plan(
        op="write",
        records=(*puts(bank, after), Put(BUFFER, buffer_text(waiting))),
        notes=tuple(notes),
        rejected=rejected,
        unanswered=unanswered,
    )


def _unit(bank: RecordStore, one: Described) -> Record:
    entry, found = one.turn.entry, one.descriptor
    return Record(
        bank.own_id(UNIT.prefix, entry.seq),
        SPEC,
        found.summary,
        found.keywords,
        entry.time,
        session_of(one.turn),
        (Ref(entry.seq),),
        when=one.when,
        aux=UNVERIFIED if one.unverified else (),
    )


def _attach(
    bank: RecordStore,
    space: VectorIndex,
    unit: Record,
    last: Record | None,
    unborn: Sequence[str],
    settings: AllmemSettings,
) -> Buffered:
    """Link a new unit to its predecessor and to the best anchors, and say what it is near to (lines 4-7)."""
    anchors = space.nearest(space.row(unit.id), settings.online_anchors, SURFACE, without=unborn)
    near = [name for name, _ in anchors]
    if last is not None and last.age < unit.age and settings.degree_temporal:
        bank.graph.add(unit.id, Link(TEMPORAL, last.id))
        near.append(last.id)
    best = [(name, cos) for name, cos in anchors if cos >= settings.attach_min]
    most = min(settings.attach, settings.degree_semantic)
    for name, cos in best[:most]:
        bank.graph.add(unit.id, Link(SEMANTIC, name, round(cos, 3)))
    return Buffered(unit.id, tuple(dict.fromkeys(near)))


def _last_of(bank: RecordStore, session: str | None, without: set[str]) -> Record | None:
    """The newest unit of a session on the surface: the predecessor of what comes next."""
    names = reversed(bank.of_session(session) if session is not None else ())
    return next((bank.records[name] for name in names if name in bank.visible and name not in without), None)
