"""Execution: accepted proposals one by one, splits, then merges, then updates; each whole or not at all.

A model plans each, its plan is checked and reduced to what an operator needs; nothing is ever deleted.
    APPLICABLE_FAIL       MISSING_ID, TOUCHED_CONFLICT, VISIBILITY, COHERENCE: overtaken within this run
    JSON_PARSE_FAIL, SCHEMA_FAIL    the plan could not be read; it is not asked for again
    PLAN_VALIDATION_FAIL  NOT_WHOLE (no split, and yet not one segment that is the whole text);
                          TOO_FEW, TOO_MANY, NOT_SUBSTRING, OVERLAP, COVERAGE of segments;
                          EMPTY, TOO_LONG of a summary or of keywords;
                          HEADER_FULL, or INVARIANT where an edit would break one

Source: All-Mem, Algorithm 1, Appendix B.2, B.3, B.5, B.6, C.2.1 and C.3 (one plan, no retry).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import product
from typing import Any

from infinimem.grounding.when import day_of, fits
from infinimem.llm.base import LLM, Reply
from infinimem.strategies.allmem import tasks
from infinimem.strategies.allmem.diagnose import Done, Proposal, coherent, unreadable, visible
from infinimem.strategies.allmem.spec import SPEC, AllmemSettings
from infinimem.strategies.allmem.write import SEMANTIC, SIBLING, SURFACE, UNIT, VERSION, faults
from infinimem.strategies.links import Link, redirect, settle
from infinimem.strategies.records.edits import new_faults
from infinimem.strategies.records.record import UNVERIFIED, Record, Ref
from infinimem.strategies.records.record import fits as file_fits
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.records.telling import (
    Descriptor,
    descriptor,
    shown_descriptor,
    shown_record,
    unverified,
)
from infinimem.strategies.vector_index import VectorIndex

_PLACES = 100
"""Where in a text a segment is looked for; nobody repeats himself oftener."""
SEGMENTS = 8
"""Segments of one split at most."""


@dataclass(frozen=True)
class Part:
    """A sibling to be: the piece of evidence that it holds, and its descriptor."""

    refs: tuple[Ref, ...]
    descriptor: Descriptor


Compiled = Sequence[Part] | Descriptor
"""What an operator is told to make."""


def split_plan(
    bank: RecordStore, name: str, data: Mapping[str, Any], coverage: float
) -> Sequence[Part] | str | None:
    """Return the parts of a split in the order of the text, which hold at least this share of it.

    A code says what is wrong; None that the model thought it over and leaves the unit whole.
    """
    text = bank.text(name)
    rows = data["segments"]
    texts = [row["segment_text"] for row in rows]
    if not data["do_split"]:
        return None if texts == [text] else "NOT_WHOLE"
    if not 2 <= len(rows) <= SEGMENTS:
        return "TOO_FEW" if len(rows) < 2 else "TOO_MANY"
    spans = _spans(text, texts)
    if isinstance(spans, str):
        return spans
    if sum(_size(text[start:end]) for start, end in spans) < coverage * _size(text):
        return "COVERAGE"
    parts = []
    for (start, end), row in sorted(zip(spans, rows, strict=True), key=lambda one: one[0]):
        found = descriptor(row["segment_summary"], row["segment_keywords"])
        if found.fault:
            return found.fault
        parts.append(Part(bank.cut(name, start, end), found))
    return parts


def _spans(text: str, segments: Sequence[str]) -> list[tuple[int, int]] | str:
    """Where segments of a text stand, none over another, each after the one before if it can; or a code."""
    spans: list[tuple[int, int]] = []
    for segment in segments:
        if not segment.strip():
            return "EMPTY"
        length = len(segment)
        for start in _places(text, segment, spans[-1][1] if spans else 0):
            if not any(start < last and first < start + length for first, last in spans):
                spans.append((start, start + length))
                break
        else:
            return "OVERLAP" if segment in text else "NOT_SUBSTRING"
    return spans


def _places(text: str, segment: str, after: int) -> Iterator[int]:
    """Where a segment stands in a text: first behind a place, then anywhere."""
    for begin in (after, 0) if after else (0,):
        start = text.find(segment, begin)
        for _ in range(_PLACES):
            if start < 0:
                break
            yield start
            start = text.find(segment, start + 1)


def _size(text: str) -> int:
    """Characters, white space apart."""
    return sum(map(len, text.split()))


# ── the three operators ──────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Edits:
    """The units that an operator created, and those of which a semantic link leads elsewhere now."""

    created: tuple[str, ...]
    redirected: frozenset[str]


class Editor:
    """Edits one bank in place, and lets the space follow."""

    def __init__(self, bank: RecordStore, space: VectorIndex, settings: AllmemSettings) -> None:
        self.bank = bank
        self.space = space
        self.settings = settings

    def split(self, name: str, parts: Sequence[Part]) -> Edits:
        """Put siblings in a unit's place, one for each piece of its evidence (B.2.1)."""
        old = self.bank.records[name]
        siblings = []
        for part in parts:
            told = [(said.text, day_of(said.time)) for said in map(self.bank.quote, part.refs)]
            new = Record(
                self.bank.new_id(UNIT.prefix, old.order[0]),
                SPEC,
                part.descriptor.summary,
                part.descriptor.keywords,
                old.time,
                old.session,
                part.refs,
                when=old.when if old.when and fits(old.when, told) else None,  # it is these words that tell
            )
            siblings.append(self._create(new, part.descriptor))
        self.bank.archive(name)
        self.space.sync(self.bank, (*siblings, name))
        for one in siblings:
            cap = self.settings.degree_sibling
            settle(self.bank, SIBLING, one, siblings, cap, self.space.cos, lambda *_: None)
        return self._rewired(siblings, siblings, (name,))

    def merge(self, names: Sequence[str], found: Descriptor) -> Edits:
        """Put one representative in the place of units that say the same (B.2.2)."""
        newest = max((self.bank.records[name] for name in names), key=lambda unit: (unit.age, unit.order))
        sessions = {self.bank.records[name].session for name in names}
        new = Record(
            self.bank.new_id(UNIT.prefix, newest.order[0]),
            SPEC,
            found.summary,
            found.keywords,
            newest.time,
            sessions.pop() if len(sessions) == 1 else None,
            sources=tuple(names),
            when=newest.when,
        )
        self._create(new, found)
        for name in names:
            self.bank.archive(name)
        self.space.sync(self.bank, (new.id, *names))
        return self._rewired([new.id], [new.id], names)

    def update(self, current: str, superseded: str, found: Descriptor) -> Edits:
        """Renew the descriptor of what holds now, and archive what does not (B.2.3)."""
        old = self.bank.records[current]
        if (old.summary, old.keywords) != (found.summary, found.keywords):
            said = (*self.bank.quotes(current), *self.bank.quotes(superseded))
            self.bank.put(
                replace(
                    old,
                    summary=found.summary,
                    keywords=found.keywords,
                    aux=UNVERIFIED if unverified(found, said) else (),
                )
            )
        if superseded in self.bank.visible:
            self.bank.archive(superseded)
        self.space.sync(self.bank, (current, superseded))
        return self._rewired([current], (), (superseded,))

    # ── parts of all three ──────────────────────────────────────────────────────────────────────

    def _create(self, unit: Record, found: Descriptor) -> str:
        self.bank.put(unit)
        if unverified(found, self.bank.quotes(unit.id)):
            self.bank.put(replace(unit, aux=UNVERIFIED))
        return unit.id

    def _rewired(self, reps: Sequence[str], created: Sequence[str], gone: Sequence[str]) -> Edits:
        """Link to units that are gone, redirect what led to them, and link the new ones (B.3)."""
        graph, visible = self.bank, self.bank.visible
        for rep, name in product(reps, gone):
            graph.link(rep, Link(VERSION, name))
        redirected: set[str] = set()
        for name in gone:
            redirected |= redirect(
                graph, SEMANTIC, name, reps, visible, self.settings.degree_semantic, self._near, self._weight
            )
        sources = {to for name in gone for to in graph.out(name, SEMANTIC)}
        for name in created:
            nearest = self.space.nearest(
                self.space.row(name), self.settings.online_anchors, SURFACE, without=(name,)
            )
            found = {near for near, _ in nearest} | (sources & visible)
            settle(graph, SEMANTIC, name, found, self.settings.degree_semantic, self._near, self._weight)
        return Edits(tuple(created), frozenset(redirected))

    def _near(self, source: str, to: str) -> tuple[float, datetime, int]:
        """Key of a semantic link: nearer first, then newer (Eq. 13)."""
        return (self.space.cos(source, to), *self.bank.records[to].age)

    def _weight(self, source: str, to: str) -> float:
        return round(self.space.cos(source, to), 3)


# ── execution ────────────────────────────────────────────────────────────────────────────────────


class Executor:
    """Executes the queues of one run on a copy of the bank; the space follows what is applied."""

    def __init__(self, bank: RecordStore, space: VectorIndex, settings: AllmemSettings, llm: LLM) -> None:
        self.bank = bank.copy()
        """As it is after what was applied so far."""
        self._space = space
        self._settings = settings
        self._llm = llm
        self._touched: set[str] = set()

    def run(self, proposals: Sequence[Proposal]) -> list[Done]:
        """Execute all, in order; where the model does not answer, the bank that was given is as it was."""
        return [self._execute(item) for item in proposals]

    def _execute(self, item: Proposal) -> Done:
        if sub := self._stale(item):
            return Done(item, "APPLICABLE_FAIL", sub)
        reply = self._ask(item)
        if reply.data is None:
            return Done(item, *unreadable(reply))
        plan = self._compiled(item, reply.data)
        if isinstance(plan, str):
            return Done(item, "PLAN_VALIDATION_FAIL", plan)
        if plan is None:
            return Done(item)
        trial = self.bank.copy()
        edits = self._edit(trial, item, plan)
        changed = edits.redirected.union(edits.created, item.ids)
        if sub := _refused(self.bank, trial, changed, self._settings):
            self._space.sync(self.bank, changed)
            return Done(item, "PLAN_VALIDATION_FAIL", sub)
        self.bank = trial
        self._touched.update(item.ids, edits.created)
        return Done(item, applied=True)

    def _stale(self, item: Proposal) -> str:
        """Why a proposal does not apply any more; "" where it does."""
        if any(name not in self.bank for name in item.ids):
            return "MISSING_ID"
        if not self._touched.isdisjoint(item.ids):
            return "TOUCHED_CONFLICT"
        if not visible(self.bank, item):
            return "VISIBILITY"
        return "" if coherent(self._space, item, self._settings) else "COHERENCE"

    def _ask(self, item: Proposal) -> Reply:
        """One plan, asked for once (Appendix C.3)."""
        bank = self.bank
        if item.op == "split":
            unit = shown_record(bank, item.ids[0], whole=True)
            return self._llm.complete(tasks.SPLIT_UNIT, {"unit": unit, "reason": item.reason})
        if item.op == "merge":
            names = sorted(item.ids, key=lambda name: (bank.records[name].age, bank.records[name].order))
            return self._llm.complete(
                tasks.MERGE_UNITS, {"units": [shown_record(bank, name) for name in names]}
            )
        current, superseded = item.ids
        near = item.shown - set(item.ids)
        anchors = [shown_descriptor(bank, name) for name in sorted(near) if name in bank.visible]
        told = {
            "current": shown_record(bank, current),
            "superseded": shown_record(bank, superseded),
            "anchors": anchors,
        }
        return self._llm.complete(tasks.UPDATE_UNIT, told)

    def _compiled(self, item: Proposal, data: Mapping[str, Any]) -> Compiled | str | None:
        """What to make; else a code, or None as of `split_plan`."""
        if item.op == "split":
            return split_plan(self.bank, item.ids[0], data, self._settings.coverage)
        renewed = "updated_" if item.op == "update" else ""
        found = descriptor(data[f"{renewed}summary"], data[f"{renewed}keywords"])
        return found.fault or found

    def _edit(self, bank: RecordStore, item: Proposal, plan: Compiled) -> Edits:
        editor, ids = Editor(bank, self._space, self._settings), item.ids
        if not isinstance(plan, Descriptor):
            return editor.split(ids[0], plan)
        return editor.merge(ids, plan) if item.op == "merge" else editor.update(ids[0], ids[1], plan)


def _refused(
    before: RecordStore, after: RecordStore, changed: frozenset[str], settings: AllmemSettings
) -> str:
    """Why an edit may not stand; "" where it may."""
    here = [name for name in changed if name in after]
    if not all(file_fits(after.records[name]) for name in here):
        return "HEADER_FULL"
    check = partial(faults, settings=settings)
    return "INVARIANT" if new_faults(before, after, check, changed) else ""
