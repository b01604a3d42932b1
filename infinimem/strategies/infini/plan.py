"""REWRITE_CURRENT and SAFE_PLAN_UPDATE: the buffer's lines by topic, and which document each topic goes to.

Lines under a heading have their topic from extraction; a model groups the others, with `grouping = "rewrite"`
all, and where it forgets, doubles or invents lines, the lines win. The planner sees the documents that are
lexically nearest, never all. Of a reply that cannot be read the content is cut in two; what no reply places
goes to the nearest document or the inbox.

Source: Infini Memory, section 3.3, prompts B and C, algorithm 2.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial

from infinimem import tokens
from infinimem.llm.shown import shown as line_of
from infinimem.markdown.characters import normalised
from infinimem.model import Entry, Located, Reason
from infinimem.retrieval.searcher import searcher
from infinimem.store.spec import STANDING, TOPICS
from infinimem.store.view import CatalogRow, View
from infinimem.strategies.infini import topics as of
from infinimem.strategies.infini.spec import InfiniSettings
from infinimem.strategies.infini.tasks import PLAN, REWRITE
from infinimem.strategies.infini.topics import INBOX, Account, Topic, entries_of, size, title_of
from infinimem.strategies.records.asking import Data
from infinimem.terms import query_terms
from infinimem.terms import tokens as terms

MAX_DEPTH = 10
FIRST = 2
"""Facts by which a topic is told."""
GIVE_UP = 4
"""After so many unreadable replies in a row the model is not asked again in this plan."""

# ── rewrite ──────────────────────────────────────────────────────────────────────────────────────


def rewrite(view: View, asker: Account, count: int) -> tuple[Topic, ...]:
    """Group the buffer's first lines; what is too large for one call goes in parts."""
    settings = view.settings.of(InfiniSettings)
    every, untitled = settings.grouping == "rewrite", ("", of.unsorted(view))
    titled: list[Located] = []
    others: list[Located] = []
    for place in of.movable(view.buffer, view)[:count]:
        (others if every or of.heading_of(place) in untitled else titled).append(place)
    topics = [replace(topic, given=True) for topic in of.sections(titled)]
    open_ids = open_documents(view) if others else {}
    sizes, limit = [size([place.entry]) for place in others], settings.plan_split_threshold
    calls = max(1, -(-sum(sizes) // max(limit, 1)))
    share = min(limit, -(-sum(sizes) // calls) + max(sizes, default=0))  # a few lines alone are grouped badly
    for part in tokens.packed(others, share, lambda place: size([place.entry])):
        rows = near(view, (place.entry for place in part), open_ids)
        docs = [{"title": title_of(row.id, view), "tokens": row.tokens} for row in rows]
        topics += _grouped(part, docs, asker, view)
    return of.joined(topics)


def _grouped(
    places: Sequence[Located], docs: Sequence[Mapping[str, object]], asker: Account, view: View
) -> list[Topic]:
    known, untitled = {place.seq: place for place in places}, of.unsorted(view)
    facts = [of.fact(place.entry) for place in places]
    groups, wrong = of.ask_groups(asker, REWRITE, {"facts": facts, "docs": docs}, known)
    asker.note(*(f"rewrite: {reason}" for reason in wrong))
    topics = [
        Topic(of.clean_title(group.item["title"]) or untitled, tuple(known[seq].entry for seq in group.seqs))
        for group in groups or ()
    ]
    settled = {entry.seq for entry in entries_of(topics)}
    missing = (place for place in places if place.seq not in settled)
    return [*topics, *of.sections(missing, untitled)]


# ── plan ─────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Route:
    """Topics on their way to a document; one without an id yet goes to that of its title, or a new one."""

    doc_id: str
    title: str
    topics: tuple[Topic, ...]


@dataclass
class Planner:
    """One plan in the making; a split does not `offer` documents that exist, it makes new ones only."""

    view: View
    asker: Account
    offer: bool = True
    _titles: dict[str, None] = field(default_factory=dict)
    _failures: int = 0

    @cached_property
    def _open(self) -> Mapping[str, str]:
        return open_documents(self.view) if self.offer else {}

    @cached_property
    def _settings(self) -> InfiniSettings:
        return self.view.settings.of(InfiniSettings)

    def route(self, topics: Sequence[Topic]) -> tuple[Route, ...]:
        """Bring every line to one document; no one is asked of topics that were given one's title."""
        ids = {title: doc_id for doc_id, title in self._open.items()}
        homes = {topic.title: ids.get(normalised(topic.title)) for topic in topics if topic.given}
        settled = [Route(name, topic.title, (topic,)) for topic in topics if (name := homes.get(topic.title))]
        topics = [topic for topic in topics if not homes.get(topic.title)]
        routes = self._planned(topics, 0) if topics else []
        placed = {entry.seq for route in routes for entry in entries_of(route.topics)}
        (left,) = of.parted(topics, [{entry.seq for entry in entries_of(topics)} - placed])
        strays: tuple[Route, ...] = ()
        if left:
            self.asker.note(f"plan: {Reason('MISSING', tuple(entry.seq for entry in entries_of(left)))}")
            if self.offer:
                strays = nearest(self.view, left)
            else:
                routes += [Route("", topic.title, (topic,)) for topic in left]
        return _united([*settled, *self._with_ids(routes), *strays])

    def _planned(self, topics: Sequence[Topic], depth: int) -> list[Route]:
        """Plan in chunks that fit a call: whole topics, or halves of one that is too large; and halves where
        no reply can be read."""
        can_halve = depth < MAX_DEPTH and len(entries_of(topics)) > 1
        told = (topic.entries[:FIRST] if self.offer else topic.entries for topic in topics)
        is_large = sum(map(size, told)) > self._settings.plan_split_threshold
        chunks = of.packed(topics, self._settings.markdown_length) if is_large else []
        if len(chunks) > 1:
            return [route for chunk in chunks for route in self._planned(chunk, depth)]
        if not (is_large and can_halve):
            routes = self._ask(topics)
            if routes is not None or not can_halve:
                return routes or []
        return [route for half in of.halves(topics) for route in self._planned(half, depth + 1)]

    def _ask(self, topics: Sequence[Topic]) -> list[Route] | None:
        """Ask for one chunk, and once more for what is wrong; None if no reply can be read."""
        if self._failures >= GIVE_UP:
            return []
        view, known = self.view, {entry.seq for entry in entries_of(topics)}
        rows = near(view, entries_of(topics), self._open)
        named = {f"T{at}": topic for at, topic in enumerate(topics, 1)}
        variables = {
            "topics": [self._shown(name, topic) for name, topic in named.items()],
            "docs": [self._listed(row) for row in rows],
            "planned_titles": list(self._titles),
            "markdown_length": str(self._settings.markdown_length),
        }

        groups, wrong = of.ask_groups(self.asker, PLAN, variables, known, partial(self._items, named))
        if groups is None:
            self._failures += 1
            self.asker.note(*(f"plan: {reason}" for reason in wrong))
            return None
        self._failures = 0
        parts = of.parted(topics, (group.seqs for group in groups))
        offered = {row.id for row in rows}
        pairs = zip(groups, parts, strict=True)
        routes = [self._read(group.item, part, offered) for group, part in pairs if part]
        return [route for route in routes if route.title]

    def _items(self, named: Mapping[str, Topic], data: Data) -> list[Data]:
        """The items of a reply, with facts in place of topics. A topic stands for those of its facts that are
        named nowhere; one that has a title and is left out is a new document."""
        told = {name for item in data["assign"] for name in item["fact_ids"]}
        alone = set(map(of.seq_of, told))
        facts = {
            name: [str(e.seq) for e in topic.entries if e.seq not in alone] for name, topic in named.items()
        }
        left = [
            {"doc_id": None, "new_title": topic.title, "fact_ids": [name]}
            for name, topic in named.items()
            if topic.given and name not in told and len(facts[name]) == len(topic.entries)
        ]
        return [
            {**item, "fact_ids": [fact for name in item["fact_ids"] for fact in facts.get(name, [name])]}
            for item in (*data["assign"], *left)
        ]

    def _shown(self, name: str, topic: Topic) -> dict[str, object]:
        """A topic as data, and told by its first facts; of a document that is to be parted by all."""
        facts = topic.entries[:FIRST] if self.offer else topic.entries
        lines = (line_of({**of.brief(entry), "time": None}) for entry in facts)
        told = [f"[{name}] {topic.title}, {len(topic.entries)}", *lines]
        return {"title": topic.title, "facts": [of.fact(entry) for entry in topic.entries], "told": told}

    def _listed(self, row: CatalogRow) -> dict[str, object]:
        """A document as data, told by its name; where topics are the model's only now, by its summary too."""
        told = [f"{row.id}: {title_of(row.id, self.view)}, {row.tokens}"]
        told += [row.summary] if self._settings.grouping == "rewrite" else []
        return {**of.listed(row, self.view), "told": told}

    def _read(self, item: Data, topics: Sequence[Topic], offered: Collection[str]) -> Route:
        """An item with its lines; an id that was not offered becomes the title of a new document."""
        named = item["doc_id"]
        if named in offered:
            return Route(named, title_of(named, self.view), tuple(topics))
        title = of.clean_title(item["new_title"] or title_of(named or "", self.view))
        self._titles |= {title: None} if title else {}
        return Route("", title, tuple(topics))

    def _with_ids(self, routes: Sequence[Route]) -> list[Route]:
        """Routes with ids: equal titles are one document, and one of that name that exists is taken."""
        slugs, ids = of.Slugs(self.view), {title: doc_id for doc_id, title in self._open.items()}
        settled = []
        for route in routes:
            doc_id = route.doc_id or ids.get(normalised(route.title))
            if doc_id is None:
                by_name = f"{TOPICS}{of.slugify(route.title)}"
                doc_id = by_name if by_name in self._open else slugs.new(route.title)
                ids[normalised(route.title)] = doc_id
            settled.append(replace(route, doc_id=doc_id))
        return settled


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
            best = searcher(view).documents(entry.text, limit=1, ids=open_ids)
            shares = best and not words(best[0]).isdisjoint(query_terms(entry.text))
            doc_id = best[0] if shares else INBOX
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
    titles = {doc_id: title for doc_id, title in known.items() if doc_id not in changed}
    for doc_id in changed:
        is_there = doc_id.startswith(TOPICS) and doc_id not in (INBOX, STANDING) and doc_id in view
        if is_there and view.row(doc_id).tokens <= limit and view.document(doc_id).header.problem is None:
            titles[doc_id] = normalised(title_of(doc_id, view))
    return dict(sorted(titles.items()))


def _united(routes: Sequence[Route]) -> tuple[Route, ...]:
    """One route a document, in order of first appearance."""
    by_id: dict[str, list[Route]] = {}
    for route in routes:
        by_id.setdefault(route.doc_id, []).append(route)
    return tuple(
        replace(those[0], topics=of.joined(topic for route in those for topic in route.topics))
        for those in by_id.values()
    )
