"""Units and the buffer: a unit for each turn, linked to the surface, waits there for consolidation.

A plan covers a run of turns of one session, so that little is lost where it stops. Source: All-Mem, section
3.2, Eq. 4; Eq. 3 and B.7 (no orphan), Eq. 12 (caps), B.1 (temporal links lead back in time).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from infinimem.grounding.when import day_of, fits
from infinimem.llm.base import LLM, Reply
from infinimem.llm.parallel import in_order
from infinimem.llm.tasks import turn as shown_turn
from infinimem.model import Finding, Located, Plan, Put, RejectedReply
from infinimem.store.records import stem
from infinimem.store.view import View
from infinimem.strategies.allmem.spec import SPEC, AllmemSettings
from infinimem.strategies.allmem.tasks import DESCRIBE
from infinimem.strategies.links import Link
from infinimem.strategies.records import edits
from infinimem.strategies.records.asking import unreadable
from infinimem.strategies.records.edits import new_faults
from infinimem.strategies.records.record import (
    UNVERIFIED,
    Quote,
    Record,
    Ref,
    is_record_id,
    ledger_text,
    rows_of,
)
from infinimem.strategies.records.record_store import RecordStore, puts
from infinimem.strategies.records.telling import (
    EMPTY,
    LONGEST,
    UNDESCRIBED,
    Descriptor,
    descriptor,
    unverified,
)
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
        for older in bank.out(unit.id, TEMPORAL):
            if not bank.records[older].age < unit.age:
                yield f"a temporal link leads to {older}, which is not older"
        for kind, cap in caps.items():
            if (count := len(bank.out(unit.id, kind))) > cap:
                yield f"{count} {kind} links are more than {cap}"

    return [*edits.faults(bank, only, held), *edits.orphans(bank, VERSION, only)]


# ── describing: several turns in a call ─────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Described:
    """A turn with its descriptor: the model's, empty for one that says nothing; else the turn's first words.

    Args:
        when: when what it tells of happened, if the model said so and the words can mean it.
        wrong: what was wrong with the reply, if anything.
        unverified: whether it claims what neither the turn nor those before it say.
        failure: why nothing could be read, "" if something could.
    """

    turn: Located
    descriptor: Descriptor
    when: str | None = None
    wrong: RejectedReply | None = None
    unverified: bool = False
    failure: str = ""


def describe(llm: LLM, view: View, turns: Sequence[Located], own: AllmemSettings) -> list[Described]:
    """Return a descriptor for each of these turns of a session, in order; a call is about several."""
    found = in_order(partial(_described, llm, view, own.context_turns), _portions(turns, own), own.workers)
    return [one for portion in found for one in portion]


def _portions(turns: Sequence[Located], own: AllmemSettings) -> list[Sequence[Located]]:
    """Turns for a call each: about as many in all, and no more text than a model is shown."""
    most = max(1, own.describe_turns)
    size = -(-len(turns) // -(-len(turns) // most)) if turns else 1
    portions: list[list[Located]] = [[]]
    room = LONGEST
    for turn in turns:
        length = len(turn.entry.text)
        if portions[-1] and (len(portions[-1]) == size or length > room):
            portions.append([])
            room = LONGEST
        portions[-1].append(turn)
        room -= length
    return [portion for portion in portions if portion]


def _described(llm: LLM, view: View, most: int, turns: Sequence[Located]) -> list[Described]:
    """Of one call; what its reply lacks is asked for once more, each turn by itself."""
    told = [turn for turn in turns if turn.entry.text.strip()]
    found = _cards(llm, view, most, told) if told else {}
    for turn in told if len(told) > 1 else ():
        if found[turn.seq].wrong:
            found |= _cards(llm, view, 0 if found[turn.seq].failure else most, [turn])
    return [found.get(turn.seq) or Described(turn, EMPTY) for turn in turns]


def _cards(llm: LLM, view: View, most: int, turns: Sequence[Located]) -> dict[int, Described]:
    """By seq; so many turns before them are shown too, but for those that a model does not take."""
    first = turns[0]
    said = view.document(first.doc_id).entries if first.doc_id in view else ()
    at = bisect_left(said, first.start_line, key=lambda place: place.start_line)
    before = [turn for turn in said[max(at - most, 0) : at] if turn.seq not in view.tried]
    context = [shown_turn(turn.entry, turn.entry.text[:CONTEXT_LENGTH]) for turn in before]
    shown = [shown_turn(turn.entry, turn.entry.text[:LONGEST]) for turn in turns]
    reply = llm.complete(DESCRIBE, {"context": context, "turns": shown})
    cards = {row["id"].strip(" #[]"): row for row in (reply.data or {}).get("cards", ())}
    around = [*before, *turns]
    return {
        turn.seq: _read(around[: at + 1], cards.get(str(turn.seq)), reply)
        for at, turn in enumerate(turns, len(before))
    }


def _read(said: Sequence[Located], card: Mapping[str, Any] | None, reply: Reply) -> Described:
    """The last of some turns by its card; without one by its first words."""
    turn = said[-1]
    if card is None:
        why = str(unreadable(reply)) if reply.data is None else "MISSING: no card of it"
        first = descriptor(turn.text[: 2 * UNDESCRIBED], ()).summary[:UNDESCRIBED].rstrip()
        wrong = RejectedReply(DESCRIBE.name, reply.text, (why,))
        return Described(turn, Descriptor(first, ()), wrong=wrong, failure=reply.failure or "")
    found = descriptor(card["summary"], card["keywords"]).cut()
    if not found.summary:
        return Described(turn, EMPTY)
    when = (card["when"] or "").strip()
    told = when and fits(when, [(turn.text, day_of(turn.entry.time))])
    quotes = (Quote(Ref(one.seq), one.entry.fields.get("speaker"), one.entry.time, one.text) for one in said)
    return Described(turn, found, when if told else None, unverified=unverified(found, quotes))


# ── writing ──────────────────────────────────────────────────────────────────────────────────────


CONTEXT_LENGTH = 400
"""Characters of an earlier turn that is shown for its context."""
RUN = 64
"""Turns that one plan covers at most."""


def written(
    view: View,
    bank: RecordStore,
    space: VectorIndex,
    described: Sequence[Described],
    settings: AllmemSettings,
) -> Plan | None:
    """The plan that makes units of turns of one session, but for those of which the model gave no answer.

    None where none of them lacks a unit. The bank is not edited; the space follows the new ones.
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
    before = reversed(after.of_session(new[0].session or ""))
    last = next((after.records[one] for one in before if one in after.visible and one not in names), None)
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
        stem(one.turn.doc_id),
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
        bank.link(unit.id, Link(TEMPORAL, last.id))
        near.append(last.id)
    best = [(name, cos) for name, cos in anchors if cos >= settings.attach_min]
    most = min(settings.attach, settings.degree_semantic)
    for name, cos in best[:most]:
        bank.link(unit.id, Link(SEMANTIC, name, round(cos, 3)))
    return Buffered(unit.id, tuple(dict.fromkeys(near)))
