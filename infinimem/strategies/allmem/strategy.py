"""All-Mem: a surface of units that is searched, an archive behind it that links lead to.

    observe   evidence -> describe -> units, linked and buffered (3.2, Eq. 4)
    tick      buffer -> diagnose -> route -> execute: split, merge, update (3.3, consolidate.py)
    read      anchors on the surface -> what their links lead to -> the nearest of that (3.4, Appendix D)

A plan covers a run of turns of one session, so that little is lost where it stops. Reading asks no model.
Source: arXiv 2603.19595.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import islice
from typing import Any, NamedTuple

from infinimem import tokens
from infinimem.grounding.sentences import day_of, fits
from infinimem.index.vectors import DIGITS
from infinimem.llm.base import Reply, in_order
from infinimem.llm.tasks import MAYBE, TEXT, TEXTS, list_of, task
from infinimem.llm.tasks import turn as shown_turn
from infinimem.model import Candidate, Evidence, Finding, Located, Plan, Put, RejectedReply, Stage
from infinimem.store.records import stem
from infinimem.store.view import Outcome, View
from infinimem.strategies.allmem.consolidate import BUFFER, Consolidator, buffer_text, buffered, faults
from infinimem.strategies.allmem.spec import SEMANTIC, SPEC, TEMPORAL, UNIT, VERSION, AllmemSettings
from infinimem.strategies.base import Event, Plans
from infinimem.strategies.readers.pipeline import ranked
from infinimem.strategies.records import asking, strategy
from infinimem.strategies.records.asking import IN_VAIN, Descriptor, descriptor, unreadable, unverified
from infinimem.strategies.records.record import Link, Quote, Record, Ref, moment, number_of, record_id
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.records.strategy import EvidenceBuilder, Records, RecordSearch, RecordStrategy

DESCRIBE = task(
    "describe",
    "context turns",
    4096,
    "tell:describe",
    cards=list_of(id=TEXT, summary=TEXT, keywords=TEXTS, when=MAYBE),
)
"""Turns' descriptors: one or two dense sentences and a few keywords, which are searched; both empty for a
turn that says nothing. `context`: turns before `turns`, which explain them; `when`: when it happened."""

CONTEXT_LENGTH = 400
"""Characters of an earlier turn that is shown for its context."""
RUN = 64
"""Turns that one plan covers at most."""


class AllMem(RecordStrategy):
    """The strategy (strategies/base.py)."""

    spec = SPEC
    own: AllmemSettings

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
            size = -(-len(run) // -(-len(run) // max(1, self.own.describe_turns)))  # about as many in all
            portions = [
                portion
                for at in range(0, len(run), size)
                for portion in tokens.packed(run[at : at + size], asking.LONGEST, lambda turn: len(turn.text))
            ]
            replies = in_order(partial(self._describe, view), portions, self.own.workers)
            described = [one for reply in replies for one in reply]
            after = yield from strategy.settled(view, partial(self._written, described))
            if after is None:
                return
            view, in_vain = after, in_vain + 1 if all(one.failure for one in described) else 0

    def tick(self, view: View, event: Event) -> Plans:
        """Consolidate because someone asked, or where the buffer is full; `observe` looks at sessions."""
        limit = self.own.buffer_max
        if event == "consolidate" or 0 < limit <= len(view.derived(buffered)):
            yield from self._consolidate(view)

    # ── describe: several turns in a call (3.2) ───────────────────────────────────────────────────

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
        before = asking.said_before(view, turns[0], most)
        context = [shown_turn(turn.entry, turn.text[:CONTEXT_LENGTH]) for turn in before]
        shown = [shown_turn(turn.entry, turn.text[: asking.LONGEST]) for turn in turns]
        reply = self.llm.complete(DESCRIBE, {"context": context, "turns": shown})
        cards = {asking.bare(row["id"]): row for row in (reply.data or {}).get("cards", ())}
        around = [*before, *turns]
        return {
            turn.seq: _read(around[: at + 1], cards.get(str(turn.seq)), reply)
            for at, turn in enumerate(turns, len(before))
        }

    # ── attach: units with their links, and the buffer (Eq. 4) ────────────────────────────────────

    def _written(self, described: Sequence[Described], view: View) -> Plan | None:
        """The plan that makes linked units of turns of one session (Eq. 4), but for those of which the model
        gave no answer; None where none of them lacks a unit."""
        own, unit_of = self.own, UNIT.prefix
        with self._writing.at(view) as (bank, space):
            lacking = [one for one in described if one.turn.seq not in view.cited and bank.stands(one.turn)]
            if not lacking:
                return None
            after, answered = bank.copy(), [one for one in lacking if not one.failure]
            new = [replace(one.unit, id=after.own_id(unit_of, one.turn.seq)) for one in answered]
            for unit in new:
                after.put(unit)
            space.sync(after)
            names, waiting = [unit.id for unit in new], dict(view.derived(buffered))
            near = space.neighbours(names, own.online_anchors + len(names) - 1)
            session = after.of_session(stem(described[0].turn.doc_id))
            before = [name for name in session if name in after.visible and name not in names]
            last = after.records[before[-1]] if before else None
            for at, unit in enumerate(new):
                older = (one for one in near[unit.id] if one[0] not in names[at:])
                anchors = [*islice(older, own.online_anchors)]
                waiting[unit.id] = [name for name, _ in anchors]
                if last is not None and last.age < unit.age:
                    after.link(unit.id, Link(TEMPORAL, last.id))
                    waiting[unit.id] = list(dict.fromkeys([*waiting[unit.id], last.id]))
                best = [(name, cos) for name, cos in anchors if cos >= own.attach_min]
                for name, cos in best[: min(own.attach, own.degree_semantic)]:
                    after.link(unit.id, Link(SEMANTIC, name, round(cos, 3)))
                last = unit if last is None or last.age < unit.age else last
            unanswered = {one.turn.seq: one.failure for one in lacking if one.failure}
            rejected = tuple(one.wrong for one in described if one.wrong)
            plan = strategy.edited("write", bank, after, self.faults, rejected, unanswered)
        if plan is None or not plan.records:
            return plan
        return replace(plan, records=(*plan.records, Put(BUFFER, buffer_text(waiting))))

    # ── due: after so many sessions, a time, a full buffer (C.6, F.4) ─────────────────────────────

    def _is_due(self, view: View, turn: Located) -> bool:
        own, bank, waiting = self.own, view.derived(RecordStore.load), view.derived(buffered)
        units, now = [bank.records[name] for name in waiting], moment(turn.entry.time)
        oldest = min((moment(unit.time) for unit in units if unit.time), default=now)
        if turn.entry.time and 0 < own.every_hours <= (now - oldest).total_seconds() / 3600:
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

    def estimate(self, view: View) -> int:
        """What a diagnosis of each unit that waits is shown: its evidence and its neighbours' descriptors."""
        with self._writing.at(view) as (bank, space):
            looked_at = Consolidator(bank, space, self.own, self.llm).contexts(view.derived(buffered))
            shown = [bank.text(name) for name in looked_at]
            shown += [bank.records[one].text for name, near in looked_at.items() for one in (name, *near)]
            return sum(map(tokens.count, shown))

    def search(self, view: View, held: Records, query: str, budget: int) -> UnitSearch:
        return UnitSearch(view, held, query, budget, self.own, self.llm)

    def status(self, view: View) -> Mapping[str, Any]:
        bank = view.derived(RecordStore.load)
        waiting = view.derived(buffered)
        return {
            "units": len(bank),
            "visible": len(bank.visible),
            "archived": len(bank) - len(bank.visible),
            "visible_ratio": round(len(bank.visible) / len(bank), 4) if len(bank) else 1.0,
            "links": strategy.links(bank),
            "buffer": {
                "units": len(waiting),
                "sessions": len({bank.records[name].session for name in waiting}),
                "threshold": self.own.every_sessions,
            },
        }

    def faults(self, store: RecordStore, only: Collection[str] | None = None) -> list[Finding]:
        return faults(store, only, settings=self.own)


class Described(NamedTuple):
    """A turn as a unit: by the model's descriptor, an empty one if it says nothing, or by its first words;
    what was wrong with the reply, and why nothing could be read, "" if something could."""

    turn: Located
    unit: Record
    wrong: RejectedReply | None = None
    failure: str = ""


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
    unit = replace(_unit(turn, words), when=when if is_meant else None, aux=unverified(words, quotes))
    return Described(turn, unit)


def _unit(turn: Located, words: Descriptor) -> Record:
    """A unit, whose id is found once it is put."""
    session, refs = stem(turn.doc_id), (Ref(turn.seq),)
    return Record("", SPEC, words.summary, words.keywords, turn.entry.time, session, refs)


# ── reading (3.4) ─────────────────────────────────────────────────────────────────────────────────


class UnitSearch(RecordSearch[AllmemSettings]):
    """What is found for one question; beside units the turns that wait, and people's notes."""

    def open_turns(self) -> Iterable[int]:
        return sorted(self.view.unfiled)

    def by_rank(self) -> Evidence:
        """Turns by rank: by the best score of a unit that shows them, then by its rank (Eq. 37 to 40)."""
        material = EvidenceBuilder(self.store, self.budget)
        for unit in self._units():
            for said in self.store.quotes(unit.id):
                material.add(unit.score, (said,), self.store.records[unit.id].when)
        return self.evidence(material.by_rank())

    def for_answer(self) -> Evidence:
        """The evidence of the best units as one block (Appendix D.5, F.2): whole ones until one does not fit,
        but for one larger than the block; where there is room, with what was said around the best."""
        store, own, units = self.store, self.own, self._units()
        material, kept = EvidenceBuilder(store, self.budget), list[Candidate]()
        shown = (
            one for one in units if one.score >= own.floor * units[0].score and store.records[one.id].group
        )
        for unit in islice(shown, own.final):
            quotes, when = store.quotes(unit.id), store.records[unit.id].when
            if own.successors_first and unit.id not in store.visible and material.shows(quotes):
                continue  # its parts, or what stands for it, came before
            if material.add(unit.score, quotes, when):
                kept.append(unit)
            elif EvidenceBuilder(store, self.budget).add(unit.score, quotes):
                break
        for unit in kept[: own.beside]:
            for name in (*store.out(unit.id, TEMPORAL), *sorted(store.into(unit.id, TEMPORAL))):
                if store.records[name].group:
                    material.add(0.0, store.quotes(name), store.records[name].when)
        self.trace.add(Stage("units", found=tuple(kept), tokens=material.tokens))
        return self.evidence(material.by_time() if own.by_time else material.by_rank())

    # ── anchor, expand, rank (D.1 to D.4) ─────────────────────────────────────────────────────────

    def _units(self) -> list[Candidate]:
        """The units that a question leads to: nearest first, equal ones by id (Eq. 35 and 36)."""
        own, store = self.own, self.store
        # Stage 1: the units of the surface nearest to the question; ties by creation (Eq. 30). Archived ones
        # that no unit stands for count as such: of a view of some sources, or of a folder that a person took
        # files from, the unit that represents them may be missing.
        folders = (UNIT.folder,) if own.visibility else self.view.spec.record_folders
        names = [name for name, _ in self.index.nearest(self.row, own.anchors, folders)]
        names += [name for name in self._words if store.records[name].group in folders]
        if own.visibility and self.row.any():
            names += self.view.derived(_stranded)
        near = self._parts([*dict.fromkeys(names)])
        candidates = (Candidate(name, parts) for name, parts in near.items())
        best = ranked(candidates, self._score, lambda unit: number_of(unit.id))[: own.anchors]
        anchors = self.note("anchors", [one for one in best if one.score >= own.floor * best[0].score])
        # stage 2: what outgoing links lead to, older units first (D.3)
        reached = strategy.expand(
            [anchor.id for anchor in anchors],
            store.links,
            own.hops,
            own.candidates,
            store.spec.links if own.recovery_links else (TEMPORAL, SEMANTIC),
            lambda name: store.records[name].age,
            priority=own.type_priority,
        )
        self.note("links", [one for one in reached if one.via])
        # stage 3: these by score; in ours no archived one before what stands for it
        near = self._parts([one.id for one in reached])
        ours = own.successors_first and own.visibility
        behind = {one.id for one in reached if ours} - store.visible

        def parts(one: Candidate) -> dict[str, float]:
            by = strategy.replacements(store, one.id, VERSION) if one.id in behind else ()
            best = [self._score(near[other]) for other in by if other in near]
            return {**near[one.id], **one.parts, **({"successor": max(best)} if best else {})}

        def ties(unit: Candidate) -> tuple[object, ...]:
            return unit.id in behind, -unit.parts["cosine"], number_of(unit.id)

        found = (Candidate(one.id, parts(one)) for one in reached)
        return self.note("ranking", ranked(found, self._score, ties))

    def _parts(self, names: Sequence[str]) -> dict[str, dict[str, float]]:
        near = zip(names, self.index.cosines(self.row, names), strict=True)
        parts = {name: {"cosine": cosine} for name, cosine in near}
        for name in parts.keys() & self._words.keys():
            parts[name]["words"] = self._words[name]
        return parts

    def _score(self, parts: Mapping[str, float]) -> float:
        """The cosine and so much of what search says; at most what a `successor` has, if one is in force."""
        own = round(parts["cosine"] + self.own.words * parts.get("words", 0.0), DIGITS)
        return min(own, parts.get("successor", own))

    @cached_property
    def _words(self) -> Mapping[str, float]:
        """Units by what search makes of their turns, or of those they stand for, as a share of the best."""
        store, scores = self.store, self.turn_scores if self.own.words else {}
        best = next(iter(scores.values()), 0.0)
        shares: dict[str, float] = {}
        for seq, score in scores.items() if best > 0 else ():
            name = record_id(store.spec.kinds[0].prefix, seq)
            if name in store:
                for other in {name, *strategy.replacements(store, name, VERSION)}:
                    shares.setdefault(other, round(score / best, DIGITS))
        return shares


def _stranded(view: View, *_: object) -> tuple[str, ...]:
    """Archived units to which no version link leads (`View.derived`)."""
    bank = view.derived(RecordStore.load)
    return tuple(name for name in bank.records.keys() - bank.visible if not bank.into(name, VERSION))
