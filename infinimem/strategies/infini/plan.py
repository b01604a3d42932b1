"""SAFE_PLAN_UPDATE: which document each topic goes to; existing ones are named, new ones are titled.

The planner sees the documents that are lexically nearest, never all. A reply that cannot be read is asked
for again, then its content is cut in two; what no reply places goes to the nearest document or the inbox.

Source: Infini Memory, algorithm 2 and prompt C.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property

from infinimem.llm.base import CUT
from infinimem.llm.shown import shown as line_of
from infinimem.model import Entry, Reason
from infinimem.retrieval.searcher import searcher
from infinimem.store.spec import STANDING, TOPICS
from infinimem.store.view import CatalogRow, View
from infinimem.strategies.infini.spec import InfiniSettings
from infinimem.strategies.infini.tasks import PLAN
from infinimem.strategies.infini.topics import (
    INBOX,
    Slugs,
    Topic,
    brief,
    clean_title,
    entries_of,
    halves,
    joined,
    listed,
    once,
    packed,
    parted,
    same,
    seq_of,
    seqs_of,
    shown,
    size,
    slugify,
    title_of,
)
from infinimem.strategies.records.asking import Asker, Data, unreadable
from infinimem.terms import query_terms
from infinimem.terms import tokens as terms

MAX_DEPTH = 10
FIRST = 2
"""Facts by which a topic is told."""
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
    """One plan in the making; a split does not `offer` documents that exist, it makes new ones only."""

    view: View
    asker: Asker
    offer: bool = True
    notes: list[str] = field(default_factory=list)
    _titles: dict[str, None] = field(default_factory=dict)
    _failures: int = 0
    _given: frozenset[str] = frozenset()

    @cached_property
    def _open(self) -> Mapping[str, str]:
        return open_documents(self.view) if self.offer else {}

    def route(self, topics: Sequence[Topic], titled: Collection[str] = ()) -> tuple[Route, ...]:
        """Bring every line to one document; no one is asked of `titled` topics that name one."""
        self._given = frozenset(titled)
        ids = {title: doc_id for doc_id, title in self._open.items()} if titled else {}
        homes = {topic.title: ids.get(same(topic.title)) for topic in topics if topic.title in titled}
        settled = [Route(name, topic.title, (topic,)) for topic in topics if (name := homes.get(topic.title))]
        topics = [topic for topic in topics if not homes.get(topic.title)]
        return _united([*settled, *(self._planned(topics) if topics else ())])

    def _planned(self, topics: Sequence[Topic]) -> list[Route]:
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
        return [*self._routes(topics, settled), *strays]

    def _safe(self, topics: Sequence[Topic], depth: int) -> list[_Assigned]:
        """Plan in chunks that fit a call: whole topics, or halves of one that is too large."""
        settings = self.view.settings.of(InfiniSettings)
        lines = entries_of(topics)
        if self._told(topics) <= settings.plan_split_threshold:
            return self._chunk(topics, depth)
        chunks = packed(topics, settings.markdown_length)
        if len(chunks) == 1:
            if len(lines) < 2 or depth >= MAX_DEPTH:
                return self._chunk(topics, depth)
            chunks, depth = list(halves(topics)), depth + 1
        return [item for chunk in chunks for item in self._safe(chunk, depth)]

    def _told(self, topics: Sequence[Topic]) -> int:
        """Tokens of what a model is shown of some topics, at most."""
        return sum(size(topic.entries[:FIRST] if self.offer else topic.entries) for topic in topics)

    def _chunk(self, topics: Sequence[Topic], depth: int) -> list[_Assigned]:
        """Ask for one chunk; if no reply can be read, for each half of it."""
        known = [entry.seq for entry in entries_of(topics)]
        for _ in range(max(1, self.view.settings.of(InfiniSettings).plan_retries)):
            if self._failures >= GIVE_UP:
                return []
            assigned, failure = self._ask(topics, known, ())
            if assigned is not None:
                return assigned
            if failure in CUT:  # the same question would be cut off again
                break
        if depth >= MAX_DEPTH or len(known) < 2:
            return []
        return [item for half in halves(topics) for item in self._safe(half, depth + 1)]

    def _ask(
        self, topics: Sequence[Topic], known: Sequence[int], problems: Sequence[Reason]
    ) -> tuple[list[_Assigned] | None, str | None]:
        view = self.view
        docs = near(view, entries_of(topics), self._open)
        named = {f"T{at}": topic for at, topic in enumerate(topics, 1)}
        reply = self.asker.complete(
            PLAN,
            {
                "topics": [self._shown(name, topic) for name, topic in named.items()],
                "docs": [
                    {**listed(row, view), "told": [f"{row.id}: {title_of(row.id, view)}, {row.tokens}"]}
                    for row in docs
                ],
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
        items = [*reply.data["assign"], *self._left(reply.data, named)]
        groups = _facts([item["fact_ids"] for item in items], named)
        self.asker.reject(PLAN, reply, once(groups, known)[1])
        return self._read(items, groups, {row.id for row in docs}, known), None

    def _left(self, data: Data, named: Mapping[str, Topic]) -> list[Data]:
        """What a reply need not say: topics that it leaves out are new documents of the titles they have."""
        told = {name for item in data["assign"] for name in item["fact_ids"]}
        return [
            {"doc_id": None, "new_title": topic.title, "fact_ids": [name]}
            for name, topic in named.items()
            if topic.title in self._given
            and told.isdisjoint([name, *(str(entry.seq) for entry in topic.entries)])
        ]

    def _shown(self, name: str, topic: Topic) -> dict[str, object]:
        """A topic as data, and told by its first facts; of a document that is to be parted by all."""
        facts = topic.entries[:FIRST] if self.offer else topic.entries
        lines = (line_of({**brief(entry), "time": None}) for entry in facts)
        return {**shown(topic), "told": [f"[{name}] {topic.title}, {len(topic.entries)}", *lines]}

    def _read(
        self,
        items: Sequence[Data],
        groups: Sequence[Sequence[str]],
        offered: set[str],
        known: Sequence[int],
    ) -> list[_Assigned]:
        """Assignments with a target; an id that was not offered becomes the title of a new document."""
        assigned = []
        for item, names in zip(items, groups, strict=True):
            named, seqs = item["doc_id"], seqs_of(names, known)
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
        too_large = self._told(part) > self.view.settings.of(InfiniSettings).plan_split_threshold
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
        ids = {title: doc_id for doc_id, title in self._open.items()}
        routes = []
        assigned = [item for item in assigned if item.seqs]
        for item, part in zip(assigned, parted(topics, (item.seqs for item in assigned)), strict=True):
            doc_id = item.doc_id or ids.get(same(item.title))
            if doc_id is None:
                by_name = f"{TOPICS}{slugify(item.title)}"
                doc_id = ids[same(item.title)] = by_name if by_name in self._open else slugs.new(item.title)
            routes.append(Route(doc_id, item.title, tuple(part)))
        return routes


def _facts(groups: Sequence[Sequence[str]], named: Mapping[str, Topic]) -> list[list[str]]:
    """The ids of facts that a reply names; a topic stands for those of its facts that are named nowhere."""
    alone = {seq_of(name) for group in groups for name in group}
    facts = {
        name: [str(entry.seq) for entry in topic.entries if entry.seq not in alone]
        for name, topic in named.items()
    }
    return [[fact for name in group for fact in facts.get(name, [name])] for group in groups]


def near(view: View, entries: Iterable[Entry], ids: Collection[str]) -> list[CatalogRow]:
    """Those of the documents that are nearest to some lines, best first."""
    if not ids:
        return []
    limit = view.settings.of(InfiniSettings).planner_docs
    text = "\n".join(entry.text for entry in entries)
    return [view.row(doc_id) for doc_id in searcher(view).documents(text, limit=limit, ids=list(ids))]


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


def open_documents(view: View) -> Mapping[str, str]:
    """Topic documents that may receive lines, with what their titles are compared by."""
    return view.derived(_open_documents)


def _open_documents(
    view: View, known: Mapping[str, str] | None, changed: Collection[str] | None
) -> Mapping[str, str]:
    limit = view.settings.of(InfiniSettings).markdown_length
    if known is None or changed is None:
        known, changed = {}, view.below(TOPICS)
    found = {doc_id: title for doc_id, title in known.items() if doc_id not in changed}
    for doc_id in changed:
        there = doc_id.startswith(TOPICS) and doc_id not in (INBOX, STANDING) and doc_id in view
        if there and view.row(doc_id).tokens <= limit and view.document(doc_id).header.problem is None:
            found[doc_id] = same(title_of(doc_id, view))
    return dict(sorted(found.items()))


def _united(routes: Sequence[Route]) -> tuple[Route, ...]:
    """One route a document, in order of first appearance."""
    by_id: dict[str, list[Route]] = {}
    for route in routes:
        by_id.setdefault(route.doc_id, []).append(route)
    return tuple(
        replace(those[0], topics=joined(topic for route in those for topic in route.topics))
        for those in by_id.values()
    )
