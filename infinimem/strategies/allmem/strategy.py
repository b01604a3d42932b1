"""All-Mem: a surface of units that is searched, an archive behind it that links lead to.

    observe   evidence -> describe -> units, linked and buffered
    tick      buffer -> diagnose -> route -> execute: split, merge, update (consolidate.py)

A plan covers a run of turns of one session, so that little is lost where it stops. Source: arXiv 2603.19595,
section 3.2, Eq. 4; B.1 (temporal links lead back in time).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from infinimem import tokens
from infinimem.grounding.when import day_of, fits
from infinimem.llm.base import Reply, in_order
from infinimem.llm.tasks import turn as shown_turn
from infinimem.model import Finding, Located, Plan, Put, RejectedReply
from infinimem.store.records import stem
from infinimem.store.view import Outcome, View
from infinimem.strategies.allmem.consolidate import (
    BUFFER,
    SEMANTIC,
    TEMPORAL,
    UNIT,
    Consolidator,
    buffer_text,
    buffered,
    faults,
)
from infinimem.strategies.allmem.read import UnitSearch
from infinimem.strategies.allmem.spec import SPEC, AllmemSettings
from infinimem.strategies.allmem.tasks import DESCRIBE
from infinimem.strategies.base import Event, Plans
from infinimem.strategies.records import asking
from infinimem.strategies.records.asking import IN_VAIN, Descriptor, descriptor, unreadable
from infinimem.strategies.records.evidence import Records
from infinimem.strategies.records.record import UNVERIFIED, Link, Quote, Record, Ref, moment, record_id
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.records.strategy import RecordStrategy, edited, links, settled
from infinimem.strategies.vector_index import Scored

CONTEXT_LENGTH = 400
"""Characters of an earlier turn that is shown for its context."""
RUN = 64
"""Turns that one plan covers at most."""


class AllMem(RecordStrategy):
    """The strategy (strategies/base.py)."""

    spec = SPEC
    own: AllmemSettings

    # ── writing ─────────────────────────────────────────────────────────────────────────────────

    def observe(self, view: View, new: Sequence[Located]) -> Plans:
        """A unit for each turn, a plan for each run of turns of a session; consolidates where that is due."""
        most = self.own.buffer_max
        left, in_vain = deque(new), 0
        while left and in_vain < IN_VAIN:
            if self._is_due(view, left[0]):
                view = yield from self._consolidate(view)
            room = most - len(view.derived(buffered)) if most else RUN
            run = [left.popleft()]
            while left and left[0].doc_id == run[0].doc_id and len(run) < min(RUN, room):
                run.append(left.popleft())
            portions = _portions(run, max(1, self.own.describe_turns))
            replies = in_order(partial(self._describe, view), portions, self.own.workers)
            described = [one for reply in replies for one in reply]
            after = yield from settled(view, partial(self._written, described))
            if after is None:
                return
            view, in_vain = after, in_vain + 1 if all(one.failure for one in described) else 0

    def tick(self, view: View, event: Event) -> Plans:
        """Consolidate because someone asked, or where the buffer is full; `observe` looks at sessions."""
        limit = self.own.buffer_max
        if event == "consolidate" or 0 < limit <= len(view.derived(buffered)):
            yield from self._consolidate(view)

    def _is_due(self, view: View, turn: Located) -> bool:
        """Whether the buffer is to be consolidated before a turn is written: it is full, its time is up, or
        the turn begins a session after so many (C.6, F.4)."""
        own, bank, waiting = self.own, view.derived(RecordStore.load), view.derived(buffered)
        units = [bank.records[name] for name in waiting]
        times = [moment(unit.time) for unit in units if unit.time]
        if own.every_hours and times and turn.entry.time:
            waited = (moment(turn.entry.time) - min(times)).total_seconds() / 3600
            if waited >= own.every_hours:
                return True
        begins = not bank.of_session(stem(turn.doc_id))  # of several side by side none begins anew
        ended = begins and 0 < own.every_sessions <= len({unit.session for unit in units})
        return ended or 0 < own.buffer_max <= len(waiting)

    def _consolidate(self, view: View) -> Generator[Plan, Outcome, View]:
        """One consolidation as one plan; where the model does not answer, the buffer stays."""
        if not (waiting := view.derived(buffered)):
            return view
        with self._writing.at(view) as (bank, space):
            plan = Consolidator(bank, space, self.own, self.llm).run(waiting)
        outcome = yield plan  # refused, the buffer stays: the next run sees the library as it is then
        return outcome.view

    def _written(self, described: Sequence[Described], view: View) -> Plan | None:
        """The plan that makes units of turns of one session, but for those of which the model gave no answer.

        None where none of them lacks a unit.
        """
        with self._writing.at(view) as (bank, space):
            lacking = [one for one in described if one.turn.seq not in bank.held and bank.stands(one.turn)]
            if not lacking:
                return None
            after = bank.copy()
            new = [
                replace(one.unit, id=after.own_id(UNIT.prefix, one.turn.seq))
                for one in lacking
                if not one.failure
            ]
            for unit in new:
                after.put(unit)
            names = [unit.id for unit in new]
            space.sync(after)
            waiting, last = dict(view.derived(buffered)), _newest(after, names)
            near = space.neighbours(names, self.own.online_anchors + len(names) - 1)
            for at, unit in enumerate(new):
                anchors = [one for one in near[unit.id] if one[0] not in names[at:]]
                waiting[unit.id] = _attach(after, unit, last, anchors[: self.own.online_anchors], self.own)
                last = unit if last is None or last.age < unit.age else last
            unanswered = {one.turn.seq: one.failure for one in lacking if one.failure}
            rejected = tuple(one.wrong for one in described if one.wrong)
            plan = edited("write", bank, after, self.faults, rejected, unanswered)
        if plan is None or not plan.records:
            return plan
        return replace(plan, records=(*plan.records, Put(BUFFER, buffer_text(waiting))))

    # ── describing: several turns in a call ─────────────────────────────────────────────────────

    def _describe(self, view: View, turns: Sequence[Located]) -> list[Described]:
        """Ask about turns in a call; what its reply lacks is asked for once more, each turn by itself."""
        most, asked = self.own.context_turns, [turn for turn in turns if turn.text.strip()]
        cards = self._cards(view, most, asked) if asked else {}
        for turn in asked if len(asked) > 1 else ():
            if cards[turn.seq].wrong:
                cards |= self._cards(view, 0 if cards[turn.seq].failure else most, [turn])
        return [cards.get(turn.seq) or Described(turn, _unit(turn, asking.EMPTY)) for turn in turns]

    def _cards(self, view: View, most: int, turns: Sequence[Located]) -> dict[int, Described]:
        """By seq; so many turns before them are shown too, but for those that a model does not take."""
        first = turns[0]
        said = view.document(first.doc_id).entries if first.doc_id in view else ()
        at = bisect_left(said, first.start_line, key=lambda place: place.start_line)
        before = [turn for turn in said[max(at - most, 0) : at] if turn.seq not in view.tried]
        context = [shown_turn(turn.entry, turn.text[:CONTEXT_LENGTH]) for turn in before]
        shown = [shown_turn(turn.entry, turn.text[: asking.LONGEST]) for turn in turns]
        reply = self.llm.complete(DESCRIBE, {"context": context, "turns": shown})
        cards = {row["id"].strip(" #[]"): row for row in (reply.data or {}).get("cards", ())}
        around = [*before, *turns]
        return {
            turn.seq: _read(around[: at + 1], cards.get(str(turn.seq)), reply)
            for at, turn in enumerate(turns, len(before))
        }

    # ── reading ─────────────────────────────────────────────────────────────────────────────────

    def estimate(self, view: View) -> int:
        """What a diagnosis of each unit that waits is shown: its evidence and its neighbours' descriptors."""
        with self._writing.at(view) as (bank, space):
            looked_at = Consolidator(bank, space, self.own, self.llm).contexts(view.derived(buffered))
            shown = [bank.text(name) for name in looked_at]
            shown += [bank.records[one].text for name, near in looked_at.items() for one in (name, *near)]
            return sum(map(tokens.count, shown))

    def search(self, view: View, held: Records, query: str, budget: int) -> UnitSearch:
        """Turns by rank, or a block of units' evidence. Calls no model."""
        return UnitSearch(view, held, query, budget, self.own)

    def status(self, view: View) -> Mapping[str, Any]:
        """How large surface, archive and buffer are."""
        bank = view.derived(RecordStore.load)
        waiting = view.derived(buffered)
        return {
            "units": len(bank),
            "visible": len(bank.visible),
            "archived": len(bank) - len(bank.visible),
            "visible_ratio": round(len(bank.visible) / len(bank), 4) if len(bank) else 1.0,
            "links": links(bank),
            "buffer": {
                "units": len(waiting),
                "sessions": len({bank.records[name].session for name in waiting}),
                "threshold": self.own.every_sessions,
            },
        }

    def faults(self, store: RecordStore, only: Collection[str] | None = None) -> list[Finding]:
        """What does not hold (consolidate.py)."""
        return faults(store, only, settings=self.own)


# ── a unit and its links (Eq. 4) ─────────────────────────────────────────────────────────────────


def _newest(bank: RecordStore, new: Sequence[str]) -> Record | None:
    """The newest unit on the surface of the session of some new ones, these apart."""
    session = bank.records[new[0]].session if new else None
    before = reversed(bank.of_session(session or ""))
    return next((bank.records[one] for one in before if one in bank.visible and one not in new), None)


def _attach(
    bank: RecordStore, unit: Record, last: Record | None, anchors: Scored, own: AllmemSettings
) -> Sequence[str]:
    """Link a new unit to its predecessor and to the best anchors, and say what it is near to."""
    near = [name for name, _ in anchors]
    if last is not None and last.age < unit.age and own.degree_temporal:
        bank.link(unit.id, Link(TEMPORAL, last.id))
        near.append(last.id)
    best = [(name, cos) for name, cos in anchors if cos >= own.attach_min]
    for name, cos in best[: min(own.attach, own.degree_semantic)]:
        bank.link(unit.id, Link(SEMANTIC, name, round(cos, 3)))
    return [*dict.fromkeys(near)]


# ── a turn as a unit ─────────────────────────────────────────────────────────────────────────────


class Described(NamedTuple):
    """A turn as a unit: by the model's descriptor, an empty one if it says nothing, or by its first words;
    what was wrong with the reply, and why nothing could be read, "" if something could."""

    turn: Located
    unit: Record
    wrong: RejectedReply | None = None
    failure: str = ""


def _portions(turns: Sequence[Located], most: int) -> list[list[Located]]:
    """Turns for a call each: about as many in all, and no more text than a model is shown."""
    size = -(-len(turns) // -(-len(turns) // most))
    portions: list[list[Located]] = [[]]
    for turn in turns:
        if len(portions[-1]) == size or sum(len(one.text) for one in (*portions[-1], turn)) > asking.LONGEST:
            portions.append([])
        portions[-1].append(turn)
    return [portion for portion in portions if portion]


def _read(said: Sequence[Located], card: Mapping[str, Any] | None, reply: Reply) -> Described:
    """The last of some turns by its card; without one by its first words."""
    turn = said[-1]
    if card is None:
        missing = f"MISSING: no card of turn {turn.seq}, whose first words stand in"
        why = missing if reply.data is not None else str(unreadable(reply))
        wrong = RejectedReply(DESCRIBE.name, reply.text, (why,))
        first = descriptor(turn.text[: 2 * asking.UNDESCRIBED], ()).summary[: asking.UNDESCRIBED].rstrip()
        return Described(turn, _unit(turn, Descriptor(first, ())), wrong, reply.failure or "")
    words = descriptor(card["summary"], card["keywords"]).cut()
    if not words.summary:
        return Described(turn, _unit(turn, asking.EMPTY))
    when = (card["when"] or "").strip()
    is_meant = when and fits(when, [(turn.text, day_of(turn.entry.time))])
    quotes = (Quote(Ref(one.seq), one.entry.fields.get("speaker"), one.entry.time, one.text) for one in said)
    aux = UNVERIFIED if asking.unverified(words, quotes) else ()
    return Described(turn, replace(_unit(turn, words), when=when if is_meant else None, aux=aux))


def _unit(turn: Located, words: Descriptor) -> Record:
    name, session = record_id(UNIT.prefix, turn.seq), stem(turn.doc_id)
    refs = (Ref(turn.seq),)
    return Record(name, SPEC, words.summary, words.keywords, turn.entry.time, session, refs)
