"""Infini Memory: facts are buffered in CURRENT, and consolidation moves them into topic documents.

In: evidence lines, or a full buffer. Out: plans of new entries and of moves. Promise: a model names lines by
id and its words replace none; a reply that the law refuses falls back to filing the lines as they are.

    observe   extract (section 3.3, prompt A): evidence -> entries in CURRENT           extract.py
    tick      if CURRENT is large or stale (equation 1), algorithm 1:
              rewrite (prompt B)        its lines by topic                              plan.py
              plan (C, algorithm 2)     topics -> documents                             plan.py
              compare (section 3.3)     what repeats or is outdated -> the archive      plan.py
              write (prompt D)          each document laid out and summed up            documents.py
              maintain (M1, M2)         long documents split, small ones merged         documents.py
    read      H, A (section 3.4, algorithm 3, prompt E)                                 strategies/readers/

It proposes; the store disposes. Source: arXiv 2606.10677.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from infinimem import tokens
from infinimem.errors import ModelError
from infinimem.grounding.sentences import asks
from infinimem.index.search import searcher
from infinimem.llm.base import LLM
from infinimem.model import Evidence, Finding, Located, Move, Plan, Reason
from infinimem.settings import Settings
from infinimem.store.spec import TOPICS
from infinimem.store.view import View
from infinimem.strategies.base import Event, Plans, Rejected
from infinimem.strategies.infini import documents, topics
from infinimem.strategies.infini.extract import extract
from infinimem.strategies.infini.plan import Planner, Route, compare, near, rewrite
from infinimem.strategies.infini.spec import SPEC, InfiniSettings
from infinimem.strategies.infini.topics import movable
from infinimem.strategies.readers.collect import READERS, collect
from infinimem.strategies.readers.pipeline import Trace, best_that_fit, pack, spread, with_beside

PORTION = 4
"""So many times the usual amount is what one step takes on; what is beyond that waits for the next."""


class Infini:
    """The strategy (strategies/base.py)."""

    spec = SPEC
    readers: tuple[str, ...] = READERS

    def __init__(self, llm: LLM, settings: Settings) -> None:
        self.llm = llm
        self.settings = settings
        self.own = settings.of(InfiniSettings)

    @cached_property
    def _asker(self) -> topics.Account:
        return topics.Account(self.llm)

    def observe(self, view: View, new: Sequence[Located]) -> Plans:
        """Draw entries from evidence lines, a plan for each unit (settings.infini.feed)."""
        yield from self._reporting(extract(view, new, self._asker))

    def tick(self, view: View, event: Event) -> Plans:
        """Consolidate if the buffer is large or stale, or because someone asked; then split and merge.

        A plan that is refused is followed once by one that asks no model.
        """
        yield from self._reporting(self._tick(view, event))

    def _reporting(self, plans: Plans) -> Plans:
        """The plans, each with what is to be said of the way to it; replies that are left come alone."""
        try:
            plan = next(plans)
            while True:
                plan = plans.send((yield self._asker.close(plan)))
        except (StopIteration, ModelError) as end:
            if left := self._asker.close(Plan()).rejected:
                yield Plan(rejected=left)
            if isinstance(end, ModelError):
                raise

    def _tick(self, view: View, event: Event) -> Plans:
        if not self.is_due(view, event):
            return
        if places := movable(view.buffer, view):
            count = len(places)
            if event != "consolidate":  # what a turn costs is bounded
                room = PORTION * max(self.own.current_threshold, self.own.chunk_tokens)
                count = len(tokens.packed(places, room, lambda place: topics.size([place.entry]))[0])
            plan = self.consolidation(view, count)
            if waiting := len(places) - count:
                self._asker.note(f"{waiting} lines wait in CURRENT: too many for one go")
            outcome = yield plan
            if isinstance(outcome, Rejected):
                seqs = {place.seq for place in places[:count]}
                outcome = yield self.fallback(outcome.view, seqs, plan.moves, outcome.reasons)
                if isinstance(outcome, Rejected):
                    return
            view = outcome.view
        if self.own.maintenance and (places or event == "consolidate"):  # also what was cut short
            view = yield from documents.split(view, self._asker)
            view = yield from documents.merge(view, self._asker)
        if self.own.rewrite == "free":
            most = None if event == "consolidate" else PORTION * documents.TOGETHER
            yield from documents.retell(view, self._asker, most)

    def is_due(self, view: View, event: Event) -> bool:
        """Tell whether the buffer is to be emptied; staleness is looked at before new entries come in. The
        released code fires above the threshold of equation 1, not at it."""
        if event == "consolidate":
            return True
        stale = event == "append" and view.buffer_age >= self.own.stale_seconds
        return stale or tokens.exceeds(view.buffer.body, self.own.current_threshold)

    def consolidation(self, view: View, count: int) -> Plan:
        """Plan where so many first lines of the buffer go (algorithm 1, lines 14-22). Without maintenance
        old and new stand beside each other, each flush in a document (section 4.3.1)."""
        grouped = rewrite(view, self._asker, count)
        fresh = topics.entries_of(grouped)
        if self.own.maintenance:
            routes = Planner(view, self._asker).route(grouped)
            rows = near(view, fresh) if self.own.compare_docs else []
            into = [route.doc_id for route in routes if route.doc_id in view]
            looked_at = [*into, *(row.id for row in rows[: self.own.compare_docs])]
        else:
            title, looked_at = f"Notes {view.epoch + 1}", []
            routes = (Route(topics.Slugs(view).new(title), title, grouped),)
        pool = [place for doc_id in looked_at for place in movable(view.document(doc_id), view)]
        claims = compare(fresh, {place.seq: place.entry for place in pool}, view, self._asker)
        return documents.write("consolidate", routes, claims, view, self._asker)

    def fallback(
        self, view: View, seqs: Collection[int], moves: Sequence[Move], reasons: Sequence[Reason]
    ) -> Plan:
        """Plan to bring these lines to the nearest documents; what one replaced goes if the law lets it."""
        places = [place for place in movable(view.buffer, view) if place.seq in seqs]
        there = {place.seq for place in places}
        grouped = topics.sections(places, topics.unsorted(view))
        routes = Planner(view, self._asker, asks=False).route(grouped)
        self._asker.note(*(f"refused: {reason}; lines went to the nearest documents" for reason in reasons))
        gone = [move for move in moves if move.archives and {move.by, move.seq} <= there]
        return documents.write("consolidate", routes, gone, view, self._asker, asks=False)

    def rebuild(self, view: View) -> Plans:
        """Lay every document out again and describe it anew; no line leaves its document."""
        yield from self._reporting(self._rebuild(view))

    def _rebuild(self, view: View) -> Plans:
        for row in view.catalog(folder=TOPICS):
            if documents.may_change(row.id, view):
                route = Route(row.id, topics.title_of(row.id, view), ())
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
        """How full the buffer is."""
        return {
            "buffer": {
                "entries": len(view.buffer.entries),
                "tokens": tokens.count(view.buffer.body),
                "threshold": self.own.current_threshold,
            }
        }

    def retrieve(self, view: View, query: str, budget: int) -> Evidence:
        """Entries by rank within `budget` tokens. Calls no model."""
        trace = Trace()
        if asks("all", query):
            lines = pack(spread(view, query), budget)
        else:
            lines = best_that_fit(partial(searcher(view).entries, query), budget)
        return trace.evidence(with_beside(view, query, lines, budget), query)

    def read(self, view: View, question: str, reader: str, budget: int) -> Evidence:
        """Evidence for an answer, by one of the shared readers (strategies/readers/collect.py)."""
        return collect(self.llm, view, question, reader, budget)

    def check(self, view: View) -> list[Finding]:
        """Documents that should have been split and could not be."""
        limit = self.own.markdown_length
        return [
            Finding("note", f"{row.tokens} tokens are too many and it is not the program's to split", row.id)
            for row in view.catalog(folder=TOPICS)
            if row.tokens > limit and not documents.may_change(row.id, view)
        ]
