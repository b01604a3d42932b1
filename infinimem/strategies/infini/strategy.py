"""Infini Memory: facts are buffered in CURRENT, and consolidation moves them into topic documents.

In: evidence lines, or a full buffer. Out: plans of new entries and of moves. Promise: a model names lines by
id and its words replace none; a reply that the law refuses falls back to filing the lines as they are.

    observe   extract (section 3.3, prompt A): evidence -> entries in CURRENT           below
    tick      if CURRENT is large or stale (equation 1), algorithm 1:
              rewrite (prompt B)        its lines by topic                              plan.py
              plan (C, algorithm 2)     topics -> documents                             plan.py
              compare (section 3.3)     what repeats or is outdated -> the archive      plan.py
              write (prompt D)          each document laid out and summed up            documents.py
              maintain (M1, M2)         long documents split, small ones merged         documents.py
    read      H, A (section 3.4, algorithm 3, prompt E)                                 strategies/readers/

It proposes; the store disposes. Source: arXiv 2606.10677.

Every turn ends up cited by an entry, or marked as empty or as refused: what a model says without support goes
back to it once, then the turn stands for itself. A model that cannot be reached leaves the turns pending, and
so does one that gives no answer of use: its turns are asked about in halves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from infinimem import tokens
from infinimem.errors import ModelError
from infinimem.grounding.sentences import asks, day_of, fits, sentences
from infinimem.index.search import searcher
from infinimem.llm.base import CUT, LLM, Failure, in_order
from infinimem.llm.tasks import IDS, MAYBE, TEXT, list_of, shown, task
from infinimem.llm.tasks import turn as shown_turn
from infinimem.markdown.characters import clean_text, normalised, one_line
from infinimem.model import CURRENT, Evidence, Finding, Located, NewEntry, Plan, Reason
from infinimem.settings import Settings
from infinimem.store.spec import INSTRUCTIONS, PREFERENCES, STANDING, TOPICS
from infinimem.store.view import View
from infinimem.strategies.base import Event, Plans, Rejected
from infinimem.strategies.infini import documents
from infinimem.strategies.infini import topics as of
from infinimem.strategies.infini.plan import Planner, Route, compare, near, open_documents, rewrite
from infinimem.strategies.infini.spec import SPEC, InfiniSettings
from infinimem.strategies.infini.topics import heading_of, movable
from infinimem.strategies.readers.pipeline import READERS, Trace, arc, best_that_fit, collect, with_beside
from infinimem.strategies.records.asking import IN_VAIN, Asker, Data, named, said_before, unreadable
from infinimem.terms import query_terms

PORTION = 4
"""So many times the usual amount is what one step takes on; what is beyond that waits for the next."""
CONTEXT_TURNS = 2
REFERS_LENGTH = 200
CLAUSE_WORDS = 3
HALVINGS = 8
"""Askings in a row without an answer of use, after which a unit is left; it takes fewer to find a turn."""
TELLING = 8
"""Words of a turn that no entry holds, from which it is asked about once more."""

VAGUE = "IMPLAUSIBLE_WHEN"

_LABEL = re.compile(r"\blabel\s*[=:]\s*[\"']?([\w.-]{1,80})", re.IGNORECASE)
_QUOTED = re.compile(r'"[^"]*"|“[^”]*”')
_SECTIONS = {"instruction": INSTRUCTIONS, "preference": PREFERENCES}

Row = Mapping[str, str | None]
"""A turn as a model is shown it."""

EXTRACT = task(
    "extract",
    "turns context topics problems",
    4096,
    "keep:extract",
    draws=True,
    entries=list_of(
        ("when", "refers", "label", "topic", "standing"),
        text=TEXT,
        **{"from": IDS},
        **dict.fromkeys(("when", "refers", "label", "topic", "standing"), MAYBE),
    ),
)
"""Turns into standing facts. `context`: the turns just before, for pronouns only. `topics`: titles that there
are. An entry without "topic" has that of the entry before it. `problems`: what was wrong with the last reply
([] at first). `standing`: "instruction" or "preference" of the user's, if it is one that holds from now on.
`label`: what a turn says its label is. Turns that no entry names held nothing to keep."""

EXTRACT_ALONE = replace(EXTRACT, variables=EXTRACT.variables - {"topics"})
"""The same without topics, which are named later."""


def _reporting(method: Callable[..., Plans]) -> Callable[..., Plans]:
    """Let plans say what is to be said of the way to each; replies that are left come alone."""

    def reporting(self: Infini, *args: Any, **others: Any) -> Plans:
        plans = method(self, *args, **others)
        try:
            plan = next(plans)
            while True:
                plan = plans.send((yield self._asker.close(plan)))
        except (StopIteration, ModelError) as end:
            if left := self._asker.close(Plan()).rejected:
                yield Plan(rejected=left)
            if isinstance(end, ModelError):
                raise

    return reporting


class Infini:
    """The strategy (strategies/base.py)."""

    spec = SPEC
    readers: tuple[str, ...] = READERS

    def __init__(self, llm: LLM, settings: Settings) -> None:
        self.llm = llm
        self.own = settings.of(InfiniSettings)

    @cached_property
    def _asker(self) -> of.Account:
        return of.Account(self.llm)

    @_reporting
    def observe(self, view: View, new: Sequence[Located]) -> Plans:
        """Draw entries from evidence lines, a plan for each unit (settings.infini.feed)."""
        yield from extract(view, new, self._asker)

    @_reporting
    def tick(self, view: View, event: Event) -> Plans:
        """Consolidate if the buffer is large or stale, or because someone asked; then split and merge.

        A plan that is refused is followed once by one that asks no model.
        """
        # staleness is looked at before new entries come in; the released code fires above the threshold of
        # equation 1, not at it
        is_stale = event == "append" and view.buffer_age >= self.own.stale_seconds
        is_large = tokens.exceeds(view.buffer.body, self.own.current_threshold)
        if not (is_stale or is_large or event == "consolidate"):
            return
        if places := movable(view.buffer, view):
            count = len(places)
            if event != "consolidate":  # what a turn costs is bounded
                room = PORTION * max(self.own.current_threshold, self.own.chunk_tokens)
                count = len(tokens.packed(places, room, lambda place: of.size([place.entry]))[0])
            plan = self.consolidation(view, count)
            if waiting := len(places) - count:
                self._asker.note(f"{waiting} lines wait in CURRENT: too many for one go")
            outcome = yield plan
            if isinstance(outcome, Rejected):
                # then to the nearest documents; what one replaced goes if it may
                why, view = outcome.reasons, outcome.view
                seqs = {place.seq for place in places[:count]}
                left = [place for place in movable(view.buffer, view) if place.seq in seqs]
                grouped, there = of.sections(left, of.unsorted(view)), {place.seq for place in left}
                routes = Planner(view, self._asker, asks=False).route(grouped)
                self._asker.note(*(f"refused: {one}; lines went to the nearest documents" for one in why))
                gone = [move for move in plan.moves if move.archives and {move.by, move.seq} <= there]
                outcome = yield documents.write("consolidate", routes, gone, view, self._asker, asks=False)
                if isinstance(outcome, Rejected):
                    return
            view = outcome.view
        if self.own.maintenance and (places or event == "consolidate"):  # also what was cut short
            view = yield from documents.split(view, self._asker)
            view = yield from documents.merge(view, self._asker)
        if self.own.rewrite == "free":
            most = None if event == "consolidate" else PORTION * documents.TOGETHER
            yield from documents.retell(view, self._asker, most)

    def consolidation(self, view: View, count: int) -> Plan:
        """Plan where so many first lines of the buffer go (algorithm 1, lines 14-22). Without maintenance
        old and new stand beside each other, each flush in a document (section 4.3.1)."""
        grouped = rewrite(view, self._asker, count)
        fresh = of.entries_of(grouped)
        if self.own.maintenance:
            routes = Planner(view, self._asker).route(grouped)
            rows = near(view, fresh) if self.own.compare_docs else []
            into = [route.doc_id for route in routes if route.doc_id in view]
            looked_at = [*into, *(row.id for row in rows[: self.own.compare_docs])]
        else:
            title, looked_at = f"Notes {view.epoch + 1}", []
            routes = (Route(of.new_id(title, view, set()), title, grouped),)
        pool = [place for doc_id in looked_at for place in movable(view.document(doc_id), view)]
        claims = compare(fresh, {place.seq: place.entry for place in pool}, view, self._asker)
        return documents.write("consolidate", routes, claims, view, self._asker)

    @_reporting
    def rebuild(self, view: View) -> Plans:
        """Lay every document out again and describe it anew; no line leaves its document."""
        for row in view.catalog(folder=TOPICS):
            if documents.may_change(row.id, view):
                route = Route(row.id, of.title_of(row.id, view), ())
                view = (yield documents.write("rebuild", [route], (), view, self._asker)).view
        if self.own.rewrite == "free":
            yield from documents.retell(view, self._asker)

    def estimate(self, view: View) -> int:
        """Each line of the buffer is read about once more, beside the names of the documents on offer."""
        size = tokens.count(view.buffer.body)
        if not size:
            return 0
        rows = view.catalog(folder=TOPICS)[: self.own.planner_docs]
        return size + sum(2 * tokens.count(row.id) for row in rows)

    def status(self, view: View) -> Mapping[str, Any]:
        return {
            "buffer": {
                "entries": len(view.buffer.entries),
                "tokens": tokens.count(view.buffer.body),
                "threshold": self.own.current_threshold,
            }
        }

    def retrieve(self, view: View, query: str, budget: int) -> Evidence:
        """Entries by rank within `budget` tokens. Calls no model."""
        if asks("all", query):
            return arc(view, query, budget)
        trace = Trace()
        lines = best_that_fit(partial(searcher(view).entries, query), budget)
        return trace.evidence(with_beside(view, query, lines, budget), query)

    def read(self, view: View, question: str, reader: str, budget: int) -> Evidence:
        """Evidence for an answer, by one of the shared readers (strategies/readers/pipeline.py)."""
        return collect(self.llm, view, question, reader, budget)

    def check(self, view: View) -> list[Finding]:
        """Documents that should have been split and could not be."""
        limit = self.own.markdown_length
        return [
            Finding("note", f"{row.tokens} tokens are too many and it is not the program's to split", row.id)
            for row in view.catalog(folder=TOPICS)
            if row.tokens > limit and not documents.may_change(row.id, view)
        ]


# ── extraction (section 3.3, prompt A) ──────────────────────────────────────────────────────────


def extract(view: View, new: Sequence[Located], asker: Asker) -> Plans:
    """Yield a plan a unit, in order; a few are asked about side by side, and are durable before the next.
    A unit whose plan is refused stands for itself."""
    settings = view.settings.of(InfiniSettings)
    size, few = lambda turn: tokens.count(turn.text), max(1, settings.workers)
    groups = [[turn] for turn in new] if settings.feed == "turn" else [new]
    portions = [unit for group in groups for unit in tokens.packed(group, settings.chunk_tokens, size)]
    in_vain = 0
    while portions and in_vain < IN_VAIN:
        titles: list[str] | None = None
        if settings.grouping == "extract":  # documents', of very many the nearest, and CURRENT's
            ids = [*view.derived(open_documents)]
            if len(ids) > settings.planner_docs:
                ids = [row.id for row in near(view, (place.entry for place in portions[0]))]
            there = (of.title_of(name, view) for name in sorted(ids))
            titles = [*dict.fromkeys(filter(None, [*there, *map(heading_of, view.buffer.entries)]))]
        begun = titles != [] or view.buffer.entries  # else each would make up titles of its own
        side_by_side = [
            _Unit(view, unit, titles, Asker(asker.llm)) for unit in portions[: few if begun else 1]
        ]
        portions = portions[len(side_by_side) :]
        for unit, plan in zip(side_by_side, in_order(_Unit.plan, side_by_side, few), strict=True):
            asker.take(unit.asker)
            if isinstance(plan, ModelError):
                raise plan
            in_vain = 0 if len(plan.unanswered) < len(unit.turns) else in_vain + 1
            outcome = yield plan
            if isinstance(outcome, Rejected):
                left = (turn.seq for turn in unit.turns if turn.seq not in plan.unanswered)
                notes = tuple(f"extract: {reason}" for reason in outcome.reasons)
                outcome = yield replace(plan, adds=(), empty=(), refused=tuple(left), notes=notes)
                if isinstance(outcome, Rejected):
                    return
            view = outcome.view


@dataclass(frozen=True)
class _Drawn:
    """What a reply comes to: entries, what is wrong with them, or why it could not be read."""

    entries: Sequence[NewEntry] = ()
    wrong: Sequence[Reason] = ()
    failure: Failure | None = None

    @property
    def mendable(self) -> list[Reason]:
        return [reason for reason in self.wrong if reason.code != VAGUE]


@dataclass(frozen=True)
class _Unit:
    """Turns that are asked about together; without `titles` no topic is named."""

    view: View
    turns: Sequence[Located]
    titles: Sequence[str] | None
    asker: Asker

    def plan(self) -> Plan | ModelError:
        """Ask about the unit, or about each part of a turn that is larger than a call."""
        limit = self.view.settings.of(InfiniSettings).chunk_tokens
        told = [place for place in self.turns if place.text.strip()]
        calls = [told] if told else []
        if len(told) == 1 and tokens.exceeds(told[0].text, limit):
            parts = (replace(told[0].entry, text=part) for part in of.cut(told[0].text, limit))
            calls = [[replace(told[0], entry=part)] for part in parts]
        entries: list[NewEntry] = []
        wrong: list[Reason] = []
        unanswered: dict[int, str] = {}
        before = said_before(self.view, self.turns[0], CONTEXT_TURNS)
        context: Sequence[Row] = [shown_turn(place.entry, place.text) for place in before]
        in_a_row = 0
        while calls:
            turns = calls.pop(0)
            try:
                drawn = self._ask(turns, context)
            except ModelError as error:
                return error
            in_a_row = in_a_row + 1 if drawn.failure else 0
            if in_a_row == HALVINGS:
                calls, turns = [], [turn for some in (turns, *calls) for turn in some]
            elif drawn.failure and len(turns) > 1:
                calls[:0] = [turns[: len(turns) // 2], turns[len(turns) // 2 :]]
                continue
            entries += drawn.entries
            wrong += drawn.wrong
            unanswered |= {turn.seq: drawn.failure for turn in turns if drawn.failure}
            context = [] if drawn.failure else [self._row(turns[-1])]
        entries = [one for one in entries if unanswered.keys().isdisjoint(one.origin)]  # parts of a turn
        if _topics(entries) or any(map(heading_of, self.view.buffer.entries)):
            untitled = of.unsorted(self.view)
            entries = [replace(entry, heading=entry.heading or untitled) for entry in entries]
        cited = {seq for entry in entries for seq in entry.origin}.union(unanswered)
        left = [turn.seq for turn in self.turns if turn.seq not in cited]
        refused = {seq for one in wrong if one.code in ("UNSUPPORTED", "NO_ORIGIN") for seq in one.seqs}
        return Plan(
            adds=tuple(entries),
            empty=tuple(seq for seq in left if seq not in refused),
            refused=tuple(seq for seq in left if seq in refused),
            unanswered=unanswered,
            notes=tuple(one_line(clean_text(f"extract: {reason}")) for reason in wrong),
        )

    def _row(self, turn: Located) -> dict[str, str | None]:
        session = self.view.whole.document(turn.doc_id).header.values.get("session")
        return shown_turn(turn.entry, turn.text) | {"session": session, "cwd": turn.entry.fields.get("cwd")}

    def _ask(self, turns: Sequence[Located], context: Sequence[Row]) -> _Drawn:
        """What turns come to in a call, and in another one for what is wrong, or left out, in that."""
        around = (*context, *map(self._row, turns))
        people = list(dict.fromkeys(name for row in around if (name := row["speaker"])))
        first = self._reply(turns, context, people, ())
        if first.failure in CUT and len(turns) > 1:
            return first
        problems, again = first.mendable + ([] if first.failure else _left_out(turns, first)), _Drawn()
        if problems:
            titles = None if self.titles is None else [*self.titles, *_topics(first.entries)]
            known = replace(self, titles=titles and [*dict.fromkeys(titles)])
            told, bad = ({seq for r in some for seq in r.seqs} for some in (problems, first.mendable))
            concerned = [  # with the turns that explain those of which something was wrong
                turn
                for at, turn in enumerate(turns)
                if turn.seq in told or any(one.seq in bad for one in turns[at : at + CONTEXT_TURNS + 1])
            ]
            before = context if turns[0] in (concerned or turns) else ()
            again = known._reply(concerned or turns, before, people, problems)
        if again.failure and first.failure:
            return again
        return _settled(_Drawn() if first.failure else first, _Drawn() if again.failure else again)

    def _reply(
        self, turns: Sequence[Located], context: Sequence[Row], people: Sequence[str], mend: Iterable[Reason]
    ) -> _Drawn:
        told, day = [], ""
        for row in map(self._row, turns):  # the day only where it changes
            before, day = day, (row["time"] or "")[:10]
            line = shown({**row, "time": None if day == before else day})
            told.append({**row, "told": [part.strip() for part in line.split("\n")]})
        asked = {"turns": told, "context": context, "problems": [*map(str, mend)]}
        topics = {} if self.titles is None else {"topics": self.titles}
        reply = self.asker.complete(EXTRACT if topics else EXTRACT_ALONE, {**asked, **topics})
        if reply.data is None:
            return _Drawn(wrong=[unreadable(reply)], failure=reply.failure or "EMPTY")
        known = {normalised(title): title for title in self.titles or ()}
        by_seq, heading = {turn.seq: turn for turn in turns}, ""
        entries, wrong, unknown = list[NewEntry](), list[Reason](), list[str]()
        for item in reply.data["entries"]:
            unknown += [name[:20] for name in item["from"] if not named([name], by_seq)]
            if self.titles is not None and (topic := item.get("topic")):
                title = of.clean_title(topic)
                heading = known.setdefault(normalised(title), title) if title else ""
            entry = _read(item, by_seq, people, heading)
            if isinstance(entry, Reason):
                wrong.append(entry)
            else:
                entries.append(entry)
                if entry.when is None and (when := (item.get("when") or "").strip()):
                    wrong.append(Reason(VAGUE, entry.origin, when[:40]))
        wrong += (Reason("TWO_FACTS", one.origin, one.text[:80]) for one in entries if _joins_facts(one))
        if unknown:
            wrong.insert(0, Reason("UNKNOWN", (), ", ".join(unknown[:10])))
        drawn = _Drawn(entries, wrong)
        self.asker.reject(EXTRACT, reply, drawn.mendable)
        return drawn


def _topics(entries: Iterable[NewEntry]) -> list[str]:
    return [entry.heading for entry in entries if entry.heading and entry.to == CURRENT]


def _left_out(turns: Sequence[Located], drawn: _Drawn) -> list[Reason]:
    """Return the turns that no entry cites and that tell much of which no entry has a word; to ask about them
    alone, unless they are most of what was read, took a quarter more tokens and gave nothing."""
    done = {seq for one in drawn.entries for seq in one.origin}
    done |= {seq for reason in drawn.mendable for seq in reason.seqs}
    known = {term for entry in drawn.entries for term in query_terms(entry.text)}
    rest = (turn for turn in turns if turn.seq not in done)
    left = tuple(turn.seq for turn in rest if len(set(query_terms(turn.text)) - known) >= TELLING)
    return [Reason("LEFT_OUT", left)] if left and (drawn.mendable or 2 * len(left) > len(turns)) else []


def _settled(first: _Drawn, again: _Drawn) -> _Drawn:
    """Return two replies as one: what the second mends is gone from the first."""
    mended = {seq for entry in again.entries for seq in entry.origin}
    texts = {entry.text for entry in again.entries}
    old = (one for one in first.entries if one.text not in texts)
    stands = (one for one in old if not (_joins_facts(one) and mended.intersection(one.origin)))
    entries = sorted([*stands, *again.entries], key=lambda entry: max(entry.origin))
    heading = ""
    for at, entry in enumerate(entries):
        if again.entries and not entry.heading:
            entries[at] = replace(entry, heading=heading)
        elif entry.to == CURRENT:
            heading = entry.heading
    left = (one for one in first.wrong if one.code == VAGUE or mended.isdisjoint(one.seqs))
    wrong = sorted([*again.wrong, *left], key=lambda reason: reason.code == VAGUE)
    return _Drawn(entries, list(dict.fromkeys(wrong)))


def _read(item: Data, turns: Mapping[int, Located], people: Sequence[str], heading: str) -> NewEntry | Reason:
    text = one_line(clean_text(item["text"])).strip()
    origin = [turns[seq] for seq in named(item["from"], turns)]
    seqs = tuple(turn.seq for turn in origin)
    if not text or not origin:
        return Reason("NO_ORIGIN" if text else "EMPTY_TEXT", seqs, text[:80])
    copied = any(of.verbatim(text, turn.text) for turn in origin)
    speakers = (turn.entry.fields.get("speaker") for turn in origin)  # an entry may draw on the name too
    said = [
        f"{name}: {turn.text}" if name else turn.text for name, turn in zip(speakers, origin, strict=True)
    ]
    if not copied and (missing := of.unsupported(text, said, people)):
        return Reason("UNSUPPORTED", seqs, f"{', '.join(missing)} in: {text[:80]}")
    refers = one_line(clean_text(item.get("refers") or "")).strip()[:REFERS_LENGTH]
    when = (item.get("when") or "").strip()
    texts = [(turn.text, day_of(turn.entry.time)) for turn in origin]
    label = (item.get("label") or "").strip()  # if the entry, or a turn of it, says that it has that
    labels = {one for turn in origin for one in _LABEL.findall(turn.text)}
    # Only the user's own words direct how the user is answered: no tool's output, nor what an AI said.
    is_users = all(turn.entry.source in ("user", "human") for turn in origin)
    standing = _SECTIONS.get(item.get("standing") or "") if is_users else None
    return NewEntry(
        text,
        seqs,
        STANDING if standing else CURRENT,
        standing or heading,
        when=when if when and fits(when, texts) else None,  # if the words of its turns can mean that
        by=None if copied else "model",
        refers=refers or None,
        label=next(iter(_LABEL.findall(text)), label if label in labels else None),
    )


def _joins_facts(entry: NewEntry) -> bool:
    """Whether what a model phrased has two sentences or parts around a semicolon, quoted words apart."""
    said = _QUOTED.sub("", entry.text)
    parts = (part for sentence in sentences(said) for part in sentence.split("; "))
    return entry.by == "model" and sum(len(part.split()) >= CLAUSE_WORDS for part in parts) > 1
