"""SAFE_PLAN_UPDATE: which document each topic goes to; existing ones are named, new ones are titled.

The planner sees the documents that are lexically nearest, never all. A reply that cannot be read is asked
for again, then its content is cut in two; what no reply places goes to the nearest document or the inbox.

Source: Infini Memory, algorithm 2 and prompt C.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property

from infinimem.model import Entry, Reason
from infinimem.retrieval.searcher import searcher
from infinimem.store.spec import STANDING, TOPICS
from infinimem.store.view import CatalogRow, View
from infinimem.strategies.infini.asking import Asker, Data, once, seqs_of, unreadable
from infinimem.strategies.infini.spec import InfiniSettings
from infinimem.strategies.infini.tasks import PLAN
from infinimem.strategies.infini.topics import (
    INBOX,
    Slugs,
    Topic,
    clean_title,
    entries_of,
    halves,
    joined,
    listed,
    packed,
    parted,
    same,
    shown,
    size,
    slugify,
    title_of,
)
from infinimem.terms import query_terms
from infinimem.terms import tokens as terms

MAX_DEPTH = 10
GIVE_UP = 12
"""After so many unreadable replies in a row the model is not asked again in this plan."""


@dataclass(frozen=True)
class Route:
    """Topics on their way to a document, which may not exist yet."""

    doc_id: str
    title: str
    topics: tuple[Topic, ...]


@dataclass(frozen=True)
class _Assigned:
    """One item of a plan: an existing document's id, or else a title."""

    doc_id: str | None
    title: str
    seqs: Sequence[int]


@dataclass
class Planner:
    """One plan in the making.

    Args:
        offer: whether existing documents may receive lines (a split makes new ones only).
    """

    view: View
    asker: Asker
    offer: bool = True
    notes: list[str] = field(default_factory=list)
    _titles: dict[str, None] = field(default_factory=dict)
    _failures: int = 0

    @cached_property
    def _open(self) -> Mapping[str, CatalogRow]:
        return open_documents(self.view) if self.offer else {}

    def route(self, topics: Sequence[Topic]) -> tuple[Route, ...]:
        """Every line of the topics to exactly one document.

        Raises:
            ModelUnavailable: nothing is planned.
        """
        entries = {entry.seq: entry for entry in entries_of(topics)}
        assigned = self._safe(topics, 0)
        placed, wrong = once(([str(seq) for seq in item.seqs] for item in assigned), entries)
        settled = [replace(item, seqs=seqs) for item, seqs in zip(assigned, placed, strict=True)]
        if wrong:
            settled = self._repaired(topics, settled, wrong)
        (left,) = parted(topics, [entries.keys() - {seq for item in settled for seq in item.seqs}])
        strays: tuple[Route, ...] = ()
        if left:
            self.notes.append(f"plan: {Reason('MISSING', tuple(entry.seq for entry in entries_of(left)))}")
            if self.offer:
                strays = nearest(self.view, left)
            else:
                settled += [_Assigned(None, topic.title, [e.seq for e in topic.entries]) for topic in left]
        return _united([*self._routes(topics, settled), *strays])

    def _safe(self, topics: Sequence[Topic], depth: int) -> list[_Assigned]:
        """Plan in chunks that fit a call: whole topics, or halves of one that is too large."""
        settings = self.view.settings.of(InfiniSettings)
        lines = entries_of(topics)
        if size(lines) <= settings.plan_split_threshold:
            return self._chunk(topics, depth)
        chunks = packed(topics, settings.markdown_length)
        if len(chunks) == 1:
            if len(lines) < 2 or depth >= MAX_DEPTH:
                return self._chunk(topics, depth)
            chunks, depth = list(halves(topics)), depth + 1
        return [item for chunk in chunks for item in self._safe(chunk, depth)]

    def _chunk(self, topics: Sequence[Topic], depth: int) -> list[_Assigned]:
        """Ask for one chunk; if no reply can be read, for each half of it."""
        known = [entry.seq for entry in entries_of(topics)]
        for _ in range(max(1, self.view.settings.of(InfiniSettings).plan_retries)):
            if self._failures >= GIVE_UP:
                return []
            assigned, failure = self._ask(topics, known, ())
            if assigned is not None:
                return assigned
            if failure == "TRUNCATED":  # the same question would be cut off again
                break
        if depth >= MAX_DEPTH or len(known) < 2:
            return []
        return [item for half in halves(topics) for item in self._safe(half, depth + 1)]

    def _ask(
        self, topics: Sequence[Topic], known: Sequence[int], problems: Sequence[Reason]
    ) -> tuple[list[_Assigned] | None, str | None]:
        docs = near(self.view, entries_of(topics), self._open)
        reply = self.asker.complete(
            PLAN,
            {
                "topics": [shown(topic) for topic in topics],
                "docs": [listed(row, self.view) for row in docs],
                "planned_titles": list(self._titles),
                "markdown_length": str(self.view.settings.of(InfiniSettings).markdown_length),
                "problems": [str(reason) for reason in problems],
            },
        )
        if reply.data is None:
            self._failures += 1
            self.notes.append(f"plan: {unreadable(reply)}")
            return None, reply.failure
        self._failures = 0
        self.asker.reject(PLAN, reply, once((item["fact_ids"] for item in reply.data["assign"]), known)[1])
        return self._read(reply.data, {row.id for row in docs}, known), None

    def _read(self, data: Data, offered: set[str], known: Sequence[int]) -> list[_Assigned]:
        """Assignments with a target; an id that was not offered becomes the title of a new document."""
        assigned = []
        for item in data["assign"]:
            named, seqs = item["doc_id"], seqs_of(item["fact_ids"], known)
            if named in offered:
                assigned.append(_Assigned(named, title_of(named, self.view), seqs))
                continue
            title = clean_title(item["new_title"] or title_of(named or "", self.view))
            if title and seqs:
                assigned.append(_Assigned(None, title, seqs))
                self._titles[title] = None
        return assigned

    def _repaired(
        self, topics: Sequence[Topic], settled: list[_Assigned], wrong: Sequence[Reason]
    ) -> list[_Assigned]:
        """Ask once more for the lines that are missing or were named twice; what it says of them holds."""
        unsettled = {seq for reason in wrong for seq in reason.seqs}
        (part,) = parted(topics, [unsettled])
        too_large = size(entries_of(part)) > self.view.settings.of(InfiniSettings).plan_split_threshold
        if not part or too_large or self._failures >= GIVE_UP:
            return settled
        again, _ = self._ask(part, sorted(unsettled), wrong)
        placed, _ = once(([str(seq) for seq in item.seqs] for item in again or ()), unsettled)
        mended = {seq for seqs in placed for seq in seqs}
        return [
            *(_Assigned(i.doc_id, i.title, [seq for seq in i.seqs if seq not in mended]) for i in settled),
            *(_Assigned(i.doc_id, i.title, seqs) for i, seqs in zip(again or (), placed, strict=True)),
        ]

    def _routes(self, topics: Sequence[Topic], assigned: Sequence[_Assigned]) -> list[Route]:
        """Assignments with ids: equal titles are one document, and one of that name that exists is taken."""
        slugs = Slugs(self.view)
        ids = {same(title_of(doc_id, self.view)): doc_id for doc_id in self._open}
        routes = []
        assigned = [item for item in assigned if item.seqs]
        for item, part in zip(assigned, parted(topics, (item.seqs for item in assigned)), strict=True):
            doc_id = item.doc_id or ids.get(same(item.title))
            if doc_id is None:
                by_name = f"{TOPICS}{slugify(item.title)}"
                doc_id = ids[same(item.title)] = by_name if by_name in self._open else slugs.new(item.title)
            routes.append(Route(doc_id, item.title, tuple(part)))
        return routes


def near(view: View, entries: Iterable[Entry], rows: Mapping[str, CatalogRow]) -> list[CatalogRow]:
    """Those of the documents that are nearest to some lines, best first."""
    if not rows:
        return []
    limit = view.settings.of(InfiniSettings).planner_docs
    text = "\n".join(entry.text for entry in entries)
    return [rows[doc_id] for doc_id in searcher(view).documents(text, limit=limit, ids=list(rows))]


def nearest(view: View, topics: Sequence[Topic]) -> tuple[Route, ...]:
    """Each line to the document that shares the most words with it, or to the inbox. Asks no model."""
    open_ids = list(open_documents(view))

    @cache
    def words(doc_id: str) -> frozenset[str]:
        return frozenset(terms(view.document(doc_id).body))

    routes = []
    for topic in topics:
        for entry in topic.entries:
            found = searcher(view).documents(entry.text, limit=1, ids=open_ids)
            shares = found and not words(found[0]).isdisjoint(query_terms(entry.text))
            doc_id = found[0] if shares else INBOX
            routes.append(Route(doc_id, title_of(doc_id, view), (Topic(topic.title, (entry,)),)))
    return _united(routes)


def open_documents(view: View) -> Mapping[str, CatalogRow]:
    """Topic documents that may receive lines, by id: not too long, their header readable, not the inbox
    or what the user asked for once and for all."""
    limit = view.settings.of(InfiniSettings).markdown_length
    return {
        row.id: row
        for row in view.catalog(folder=TOPICS)
        if row.id not in (INBOX, STANDING)
        and row.tokens <= limit
        and view.document(row.id).header.problem is None
    }


def _united(routes: Sequence[Route]) -> tuple[Route, ...]:
    """One route a document, in order of first appearance."""
    by_id: dict[str, list[Route]] = {}
    for route in routes:
        by_id.setdefault(route.doc_id, []).append(route)
    return tuple(
        replace(those[0], topics=joined(topic for route in those for topic in route.topics))
        for those in by_id.values()
    )
