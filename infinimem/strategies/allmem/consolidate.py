"""Consolidation: units that wait are diagnosed, what is proposed is routed, and executed one by one.

Nothing is ever deleted. A proposal that is not applied has a code:
    LOW_CONF, OFF, MISSING_ID, VISIBILITY_FAIL, ARITY_FAIL, COH_FAIL (a merge of units not near enough),
    ORDER_FAIL (an update by what is older), DUPLICATE, OVERLAP (another proposal stands for it)
    APPLICABLE_FAIL       TOUCHED_CONFLICT: overtaken within this run
    JSON_PARSE_FAIL, SCHEMA_FAIL, EMPTY, …    the reply could not be read; a plan is not asked for again
    PLAN_VALIDATION_FAIL  NOT_WHOLE (no split, and yet not one segment that is the whole text);
                          TOO_FEW, TOO_MANY, NOT_SUBSTRING, OVERLAP, COVERAGE of segments;
                          EMPTY, TOO_LONG of a summary or of keywords; INVARIANT, which an edit would break
    declined              the model thought it over and leaves a unit whole

One file, for it is one run, in the order of Algorithm 1; the operators share its bank and what it touched.
Source: All-Mem, Algorithm 1, section 3.3, Appendices B and C.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from math import log
from typing import Any, Literal, NamedTuple

from infinimem import tokens
from infinimem.grounding.sentences import day_of, fits
from infinimem.index.vectors import DIGITS
from infinimem.llm.base import LLM, Task, in_order
from infinimem.llm.tasks import IDS, TEXT, TEXTS, Schema, list_of, task
from infinimem.markdown.header import quote
from infinimem.model import Finding, Plan, Put
from infinimem.store.view import View
from infinimem.strategies.allmem.spec import SEMANTIC, SIBLING, SPEC, TEMPORAL, UNIT, VERSION, AllmemSettings
from infinimem.strategies.records import asking, strategy
from infinimem.strategies.records.asking import Descriptor, descriptor, unverified
from infinimem.strategies.records.record import Link, Record, Ref, number_of
from infinimem.strategies.records.record_store import RecordStore, VectorIndex, differing, puts
from infinimem.terms import query_terms

_CONFIDENCE: Schema = {"type": "number", "minimum": 0, "maximum": 1}

DIAGNOSE = task(
    "diagnose",
    "target anchors confidence",
    1024,
    "tell:diagnose",
    split_tasks=list_of(node_id=TEXT, confidence=_CONFIDENCE, reason=TEXT),
    merge_tasks=list_of(node_ids=IDS, confidence=_CONFIDENCE, reason=TEXT),
    update_tasks=list_of(current_id=TEXT, superseded_id=TEXT, confidence=_CONFIDENCE, reason=TEXT),
)
"""What a unit and its neighbours need. `target`: a unit whose id is the word `TARGET` (models mistype ids);
`number`: its id; `anchors`: [anchor, …]; `confidence`: what a proposal needs. How many ids a merge names is
for the router to check."""

SPLIT_UNIT = task(
    "split_unit",
    "unit reason",
    4096,
    "tell:split_unit",
    do_split={"type": "boolean"},
    segments=list_of(segment_text=TEXT, segment_summary=TEXT, segment_keywords=TEXTS, topic_label=TEXT),
    split_rationale=TEXT,
)
"""A unit's text cut at its topics. Segments are pieces of the text, byte for byte; without a split there is
one, the text itself."""

MERGE_UNITS = task(
    "merge_units", "units", 1024, "tell:merge_units", summary=TEXT, keywords=TEXTS, salient_points=TEXTS
)
"""One descriptor for units that say the same. `units`: [unit, …], oldest first."""

UPDATE_UNIT = task(
    "update_unit",
    "current superseded anchors",
    1024,
    "tell:update_unit",
    updated_summary=TEXT,
    updated_keywords=TEXTS,
    deprecations=TEXTS,
    alignment_note=TEXT,
)
"""The descriptor of a unit that makes an older one untrue. `current`, `superseded`: units; `deprecations`:
what of the older one no longer holds."""

Op = Literal["split", "merge", "update"]
OPS: tuple[Op, ...] = ("split", "merge", "update")
"""The operators in the order in which they are executed."""
TARGET = "TARGET"
"""What the unit under diagnosis is called, for models mistype ids."""
LONG = 256
"""Tokens of a text that may be cut, though nothing is like it."""
MOST = 20
"""Tasks of a kind that one reply may propose; a unit has half as many neighbours."""
SEGMENTS = 8
"""Segments of one split at most."""
QUOTED = 500
"""Characters of what a note quotes of a model."""
DECLINED, FAULTY = "declined", "PLAN_VALIDATION_FAIL"


# ── the buffer, and what must hold ───────────────────────────────────────────────────────────────


(BUFFER,) = SPEC.ledgers
Waiting = Mapping[str, Sequence[str]]
"""Units that wait for consolidation, in the order in which they came, each with those that it was near to."""


def buffered(view: View, *_: object) -> Waiting:
    """What waits, of the units that are there (`View.derived`)."""
    bank, waiting = view.derived(RecordStore.load), dict[str, Sequence[str]]()
    for line in view.document(BUFFER).body.split("\n") if BUFFER in view else ():
        with suppress(ValueError, TypeError, KeyError, RecursionError):  # as a person may have left it
            row = json.loads(line)
            if row["unit"] in bank:
                waiting.setdefault(row["unit"], [name for name in row["near"] if name in bank])
    return waiting


def buffer_text(waiting: Waiting) -> str:
    """The buffer's file."""
    head = ("---", f"id: {quote(BUFFER)}", "kind: buffer", "---", "# Units that wait for consolidation", "")
    rows = (json.dumps({"unit": unit, "near": list(near)}) for unit, near in waiting.items())
    return "\n".join([*head, f"{len(waiting)} in order of arrival.", "", "```json", *rows, "```", ""])


def faults(
    bank: RecordStore, only: Collection[str] | None = None, *, settings: AllmemSettings
) -> list[Finding]:
    """What does not hold (records/strategy.py). Version links may be more than their cap (B.7)."""

    def held(bank: RecordStore, unit: Record) -> Iterator[str]:
        for older in bank.out(unit.id, TEMPORAL):
            if not bank.records[older].age < unit.age:
                yield f"a temporal link leads to {older}, which is not older"
        if (count := len(bank.out(unit.id, SEMANTIC))) > settings.degree_semantic:
            yield f"{count} semantic links are more than {settings.degree_semantic}"

    return [*strategy.faults(bank, only, held), *strategy.orphans(bank, VERSION, only)]


# ── one consolidation (Algorithm 1) ──────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Proposal:
    """An edit that a model proposes, of units among those that it was `shown`.

    Ids are as it gave them, but for the word TARGET; once it is routed they are known, each once,
    ascending but for an update's: first the current, then the superseded one.
    """

    op: Op
    ids: tuple[str, ...]
    confidence: float
    reason: str
    shown: frozenset[str]

    @property
    def order(self) -> tuple[tuple[int, int], ...]:
        return tuple(map(number_of, self.ids))


class Unapplied(Exception):
    """Why a proposal is dropped, or its plan not executed: a code, and more of it."""


class Part(NamedTuple):
    """A sibling to be: the piece of evidence that it holds, and its descriptor."""

    refs: tuple[Ref, ...]
    descriptor: Descriptor


class Consolidator:
    """Edits one bank in place, by what a model proposes and plans; the space follows."""

    def __init__(self, bank: RecordStore, space: VectorIndex, own: AllmemSettings, llm: LLM) -> None:
        self.bank, self.space, self.own, self.llm = bank, space, own, llm
        self.touched: set[str] = set()
        """Units that were created or archived, or of which a descriptor or a link changed."""

    def run(self, waiting: Waiting) -> Plan:
        """The plan that empties the buffer: all that is executed, and in its notes what is not."""
        before, self.bank = self.bank, self.bank.copy()
        looked_at = [*self.contexts(waiting).items()]
        diagnosed = in_order(self._diagnosed, looked_at, self.own.workers)
        proposals = [proposal for one in diagnosed if not isinstance(one, str) for proposal in one]
        codes = Counter(one for one in diagnosed if isinstance(one, str))
        applied, notes = Counter[str](), list[str]()
        for item in self.route(proposals, codes):
            try:
                self.execute(item)
                applied[item.op] += 1
            except Unapplied as refused:
                code, *detail = refused.args
                codes[code] += 1
                ids, why = ", ".join(item.ids)[:QUOTED], " ".join((code, *detail))[:QUOTED]
                notes += [f"{item.op} of {ids} was not applied: {why}"] if code != DECLINED else []
        proposed = Counter(proposal.op for proposal in proposals)
        counts = ", ".join(f"{op} {applied[op]} of {proposed[op]}" for op in OPS)
        left = ", ".join(f"{code} {count}" for code, count in sorted(codes.items()))
        first = f"diagnosed {len(diagnosed)}; applied {counts}" + (f"; not applied: {left}" if left else "")
        records = (*puts(before, self.bank), Put(BUFFER, None))
        return Plan("consolidate", records=records, notes=(first, *notes))

    # ── diagnosis (Eq. 5, Appendix C.1) ─────────────────────────────────────────────────────────

    def contexts(self, waiting: Waiting) -> dict[str, Sequence[str]]:
        """Return the units that wait and are worth a look, with the neighbours that a model is shown.

        These are the older ones most like it, by words and vectors, of all that wait or were near to one
        that waits. Where none is, only a long text is looked at.
        """
        bank, own, most = self.bank, self.own, self.own.online_anchors
        if not own.likeness:
            return {unit: near[:most] for unit, near in waiting.items()}
        held = {name for unit, near in waiting.items() for name in (unit, *near)} & bank.visible
        names = sorted((name for name in held if bank.records[name].group), key=number_of)
        names.sort(key=lambda name: bank.records[name].age)
        shared = wording({name: bank.records[name].text for name in names})
        looked_at: dict[str, Sequence[str]] = {}
        for at, unit in enumerate(names):
            if unit not in waiting:
                continue
            cosines = zip(names[:at], self.space.cosines(self.space.row(unit), names[:at]), strict=True)
            alike = {name: round((cos + shared(unit, name)) / 2, DIGITS) for name, cos in cosines}
            best = sorted(alike, key=lambda name: (-alike[name], number_of(name)))[:most]
            anchors = [name for name in best if alike[name] >= own.likeness]
            if anchors or tokens.exceeds(bank.text(unit), LONG):
                looked_at[unit] = anchors
        return looked_at

    def _diagnosed(self, looked_at: tuple[str, Sequence[str]]) -> list[Proposal] | str:
        """What is proposed for a unit beside its anchors, or the code of a reply that is of no use."""
        target, anchors = looked_at
        variables = {
            "target": asking.shown_record(self.bank, target, TARGET),
            "anchors": [asking.shown_descriptor(self.bank, name) for name in anchors],
            "confidence": str(min(map(self.own.least, OPS))),
        }
        reply = self.llm.complete(DIAGNOSE, variables)
        if reply.data is None:
            return reply.failure or "EMPTY"
        if any(len(reply.data[f"{op}_tasks"]) > MOST for op in OPS):
            return "SCHEMA_FAIL"
        proposals, shown = list[Proposal](), frozenset((target, *anchors))
        keys = {"split": ("node_id",), "update": ("current_id", "superseded_id")}
        for op in OPS:
            for row in reply.data[f"{op}_tasks"]:
                ids = row["node_ids"] if op == "merge" else [row[key] for key in keys[op]]
                resolved = tuple(target if name == TARGET else name for name in map(asking.bare, ids))
                proposals.append(Proposal(op, resolved, row["confidence"], row["reason"], shown))
        return proposals

    # ── routing (Eq. 6, 28 and 29, Appendix C.2) ────────────────────────────────────────────────

    def route(self, proposals: Iterable[Proposal], codes: Counter[str]) -> list[Proposal]:
        """Gate, normalise and order proposals, given in the order of their records; count why others go.

        Of proposals with the same target the surest stays, or the first of these; of merges with a unit in
        common the one of the larger set, then the surer, then the first by ids.
        """
        gated, merged = list[Proposal](), set[str]()
        for proposal in proposals:
            try:
                gated.append(self.gate(proposal))
            except Unapplied as dropped:
                codes[dropped.args[0]] += 1
        kept = dict[tuple[Op, tuple[str, ...]], Proposal]()
        for one in sorted(gated, key=lambda one: (-len(one.ids), -one.confidence, one.order)):
            if (one.op, one.ids) in kept:
                codes["DUPLICATE"] += 1
            elif one.op == "merge" and not merged.isdisjoint(one.ids):
                codes["OVERLAP"] += 1
            else:
                kept[one.op, one.ids] = one
                merged.update(one.ids if one.op == "merge" else ())
        return sorted(kept.values(), key=lambda one: (OPS.index(one.op), one.order))

    def gate(self, proposal: Proposal) -> Proposal:
        """Return a proposal in normal form; Unapplied if it is dropped."""
        op, bank, own = proposal.op, self.bank, self.own
        if not getattr(own, op):
            raise Unapplied("OFF")
        if not own.least(op) <= proposal.confidence <= 1:  # nor what is no number
            raise Unapplied("LOW_CONF")
        known = [name for name in proposal.ids if name in bank and name in proposal.shown]
        ids = tuple(known) if op == "update" else tuple(sorted(set(known), key=number_of))
        missing = "MISSING_ID" if len(known) < len(proposal.ids) else ""
        if not ids or (missing and op == "update"):
            raise Unapplied(missing or "ARITY_FAIL")
        if any(name not in bank.visible for name in (ids[:1] if op == "update" else ids)):
            raise Unapplied("VISIBILITY_FAIL")
        least, most = {"split": (1, 1), "merge": (2, own.merge_max), "update": (2, 2)}[op]
        if not least <= len(set(ids)) <= most:
            raise Unapplied(missing or "ARITY_FAIL")
        # the recency rule: later time, then higher number; of one turn's pieces the later
        if op == "update" and self._oldest_first(ids[0]) <= self._oldest_first(ids[1]):
            raise Unapplied("ORDER_FAIL")
        if op == "merge" and self.space.coherence(ids) < own.coherence:
            raise Unapplied("COH_FAIL")
        return replace(proposal, ids=ids)

    # ── execution: splits, then merges, then updates, each whole or not at all (C.2.1, C.3) ─────

    def execute(self, item: Proposal) -> None:
        """Ask for the plan of a proposal, once, and do it; Unapplied if it fails, and nothing is changed."""
        if not self.touched.isdisjoint(item.ids):
            raise Unapplied("APPLICABLE_FAIL", "TOUCHED_CONFLICT")
        before, self.bank = self.bank, self.bank.copy()
        shown, order = partial(asking.shown_record, self.bank), self._oldest_first
        try:
            if item.op == "split":
                (name,) = item.ids
                data = self._ask(SPLIT_UNIT, unit=shown(name, whole=True), reason=item.reason)
                self.split(name, split_parts(self.bank, name, data, self.own.coverage))
            elif item.op == "merge":
                data = self._ask(MERGE_UNITS, units=[*map(shown, sorted(item.ids, key=order))])
                self.merge(item.ids, checked(data["summary"], data["keywords"]))
            else:
                current, superseded = item.ids
                near = sorted((item.shown - {*item.ids}) & self.bank.visible)
                anchors = [asking.shown_descriptor(self.bank, name) for name in near]
                units = {"current": shown(current), "superseded": shown(superseded)}
                data = self._ask(UPDATE_UNIT, **units, anchors=anchors)
                words = checked(data["updated_summary"], data["updated_keywords"])
                self.update(current, superseded, words)
            touched = differing(before.records, self.bank.records)
            if wrong := strategy.new_faults(before, self.bank, partial(faults, settings=self.own), touched):
                raise Unapplied(FAULTY, f"INVARIANT: {wrong[0].what}")
        except Unapplied:
            self.bank = before
            self.space.sync(before)
            raise
        self.touched.update(touched)

    def _ask(self, task: Task, **variables: object) -> Mapping[str, Any]:
        reply = self.llm.complete(task, variables)
        if reply.data is None:
            raise Unapplied(reply.failure or "EMPTY", reply.detail)
        return reply.data

    def _oldest_first(self, name: str) -> tuple[Any, ...]:
        return self.bank.records[name].age, number_of(name)

    def split(self, name: str, parts: Sequence[Part]) -> list[str]:
        """Put siblings in a unit's place, one for each piece of its evidence (B.2.1); their names."""
        old = self.bank.records[name]
        siblings = []
        for part in parts:
            said = [(one.text, day_of(one.time)) for one in map(self.bank.quote, part.refs)]
            when = old.when if old.when and fits(old.when, said) else None  # it is these words that tell
            siblings.append(self._create(old, part.descriptor, refs=part.refs, sources=(), when=when))
        for one in siblings:
            self.bank.relink(one, SIBLING, (Link(SIBLING, other) for other in siblings if other != one))
        self._rewire(siblings, siblings, [name])
        return siblings

    def merge(self, names: Sequence[str], words: Descriptor) -> list[str]:
        """Put one representative in the place of units that say the same (B.2.2); its name."""
        units = [self.bank.records[name] for name in names]
        newest = self.bank.records[max(names, key=self._oldest_first)]
        session = newest.session if len({unit.session for unit in units}) == 1 else None
        new = self._create(newest, words, refs=(), sources=tuple(names), session=session)
        self._rewire([new], [new], names)
        return [new]

    def update(self, current: str, superseded: str, words: Descriptor) -> None:
        """Renew the descriptor of what holds now, and archive what does not (B.2.3)."""
        old = self.bank.records[current]
        if (old.summary, old.keywords) != (words.summary, words.keywords):
            said = (*self.bank.quotes(current), *self.bank.quotes(superseded))
            aux = unverified(words, said)
            self.bank.put(replace(old, summary=words.summary, keywords=words.keywords, aux=aux))
        self._rewire([current], [], [superseded])

    def _create(self, like: Record, words: Descriptor, **values: Any) -> str:
        """Put a new unit that is as another but for its descriptor and some values."""
        name = self.bank.new_id(UNIT.prefix, number_of(like.id)[0])
        unit = Record(name, SPEC, words.summary, words.keywords, like.time, like.session, when=like.when)
        self.bank.put(unit := replace(unit, **values))
        self.bank.put(replace(unit, aux=unverified(words, self.bank.quotes(name))))
        return name

    def _rewire(self, reps: Sequence[str], created: Sequence[str], gone: Sequence[str]) -> None:
        """Archive units, link to them from those that stand for them, redirect what led to them (Eq. 20), and
        link the new ones (Eq. 21)."""
        bank, own = self.bank, self.own
        for name in bank.visible.intersection(gone):
            bank.archive(name)
        self.space.sync(bank)
        for rep in reps:
            bank.relink(rep, VERSION, {*bank.links(rep, VERSION), *(Link(VERSION, name) for name in gone)})
        for rep in reps if own.degree_version else ():
            # those by which alone a unit is reached stay, and within the cap the best of the others (B.7)
            held = bank.out(rep, VERSION)
            alone = [name for name in held if bank.visible.isdisjoint({*bank.into(name, VERSION)} - {rep})]
            if len(alone) <= own.degree_version:
                best = self._best(rep, {*held} - {*alone}, own.degree_version - len(alone))
                bank.relink(rep, VERSION, (Link(VERSION, name) for name in (*alone, *best)))
        for name in gone:
            # links of a unit that is gone, and of archived ones, stay (Eq. 17 and 18)
            for source in bank.visible.intersection(bank.into(name, SEMANTIC)):
                links = {link.to: link for link in bank.links(source, SEMANTIC) if link.to != name}
                for rep in self._best(source, reps, 1):
                    links.setdefault(rep, self._semantic(source, rep))
                kept = self._best(source, links, own.degree_semantic)
                bank.relink(source, SEMANTIC, (links[to] for to in kept))
        sources = {to for name in gone for to in bank.out(name, SEMANTIC)} & bank.visible
        for name in created:
            row = self.space.row(name)
            near = self.space.nearest(row, own.online_anchors, (UNIT.folder,), without=(name,))
            best = self._best(name, {one for one, _ in near} | sources, own.degree_semantic)
            bank.relink(name, SEMANTIC, (self._semantic(name, to) for to in best))

    def _best(self, source: str, candidates: Iterable[str], cap: int) -> list[str]:
        """The nearest of others, then the newer (Eq. 13), then by id; so many at most."""
        others = sorted({*candidates} - {source})
        others.sort(key=lambda to: (self.space.cos(source, to), *self.bank.records[to].age), reverse=True)
        return others[:cap]

    def _semantic(self, source: str, to: str) -> Link:
        return Link(SEMANTIC, to, round(self.space.cos(source, to), 3))


def wording(texts: Mapping[str, str]) -> Callable[[str, str], float]:
    """Return what tells how much two texts have in common, 0 to 1: of the words of the one that says less,
    each counted by how few texts hold it, for a name that most hold tells nothing."""
    terms = {name: frozenset(query_terms(text)) for name, text in texts.items()}
    held = Counter(term for some in terms.values() for term in some)

    def weight(some: Iterable[str]) -> float:
        return sum(log(len(texts) / held[term]) for term in sorted(some))

    def shared(one: str, other: str) -> float:
        least = min(weight(terms[one]), weight(terms[other]))
        return weight(terms[one] & terms[other]) / least if least else 0.0

    return shared


# ── plans (Appendix B.5) ─────────────────────────────────────────────────────────────────────────


def checked(summary: str, keywords: Iterable[str]) -> Descriptor:
    """A descriptor of a plan; Unapplied if it is empty, or too long."""
    words = descriptor(summary, keywords)
    if not words.summary or not words.keywords:
        raise Unapplied(FAULTY, "EMPTY")
    if words != words.cut():
        raise Unapplied(FAULTY, "TOO_LONG")
    return words


def split_parts(bank: RecordStore, name: str, data: Mapping[str, Any], coverage: float) -> list[Part]:
    """The parts of a split in the order of the text, which hold at least this share of it; Unapplied if the
    plan is wrong, or the model leaves the unit whole."""
    text, rows = bank.text(name), data["segments"]
    segments, spans = [row["segment_text"] for row in rows], list[tuple[int, int]]()
    if not data["do_split"]:
        raise Unapplied(DECLINED) if segments == [text] else Unapplied(FAULTY, "NOT_WHOLE")
    if not 2 <= len(rows) <= SEGMENTS:
        raise Unapplied(FAULTY, "TOO_FEW" if len(rows) < 2 else "TOO_MANY")
    for segment in segments:
        if not segment.strip():
            raise Unapplied(FAULTY, "EMPTY")
        places = (text.find(segment, spans[-1][1] if spans else 0), text.find(segment))
        start = next((at for at in places if at >= 0), -1)  # behind the one before, or else anywhere
        if start < 0:
            raise Unapplied(FAULTY, "NOT_SUBSTRING")
        end = start + len(segment)
        if any(start < last and first < end for first, last in spans):
            raise Unapplied(FAULTY, "OVERLAP")
        spans.append((start, end))
    if sum(_size(text[start:end]) for start, end in spans) < coverage * _size(text):
        raise Unapplied(FAULTY, "COVERAGE")
    return [
        Part(bank.cut(name, start, end), checked(row["segment_summary"], row["segment_keywords"]))
        for (start, end), row in sorted(zip(spans, rows, strict=True), key=lambda one: one[0])
    ]


def _size(text: str) -> int:
    """Characters, white space apart."""
    return sum(map(len, text.split()))
