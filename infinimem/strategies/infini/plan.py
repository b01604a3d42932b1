"""What becomes of the buffer's lines, in the order of algorithm 1: REWRITE, SAFE_PLAN_UPDATE, COMPARE.

Lines under a heading have their topic from extraction; a model groups the others, with `grouping = "rewrite"`
all, and where it forgets, doubles or invents lines, the lines win. Of a reply that cannot be read the content
is cut in two; what no reply places goes to the nearest document or the inbox. Which lines newer ones make
untrue a model is asked once for a whole consolidation; a claim that the law would not pass goes back once.

Source: Infini Memory, section 3.3, prompts B and C, algorithm 2; the paper compares while it rewrites.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cmp_to_key, partial
from heapq import nlargest
from typing import Any

from infinimem import law, tokens
from infinimem.grounding.sentences import find_duplicates, is_repetition
from infinimem.index.search import searcher
from infinimem.llm.tasks import IDS, MAYBE, TEXT, list_of, task
from infinimem.llm.tasks import shown as line_of
from infinimem.markdown.characters import normalised
from infinimem.model import Entry, Located, Move, Plan, Reason, Why, Withheld
from infinimem.store.spec import STANDING, TOPICS
from infinimem.store.view import CatalogRow, View
from infinimem.store.withheld import ASKED
from infinimem.strategies.infini import topics as of
from infinimem.strategies.infini.spec import InfiniSettings
from infinimem.strategies.infini.topics import Account, Topic, entries_of, size, title_of
from infinimem.strategies.records.asking import Asker, Data, seq_of
from infinimem.terms import query_terms
from infinimem.terms import tokens as terms

MAX_DEPTH = 10
FIRST, FEW = 2, 3
"""Facts by which a topic is told; so few topics of a document that is parted are told by all."""
GIVE_UP = 4
"""After so many unreadable replies in a row the model is not asked again in this plan."""
NEAR, NEAREST = 0.15, 2
"""Cosine from which lines are near, and how many of the nearest count: two are joined if each is so to the
other. All 12 changed facts of sample_library are."""
FEWEST = 100
"""Lines of which there are taken to be, where there are less: of a few, most hold any word that two share."""

REWRITE = task(
    "rewrite", "facts docs problems", 4096, "where:rewrite", topics=list_of(title=TEXT, fact_ids=IDS)
)
"""The buffer's facts that came without a topic, grouped (prompt B). `docs`: [{"title", "tokens"}]."""

PLAN = task(
    "plan",
    "topics docs planned_titles markdown_length problems",
    4096,
    "where:plan",
    assign=list_of(doc_id=MAYBE, new_title=MAYBE, fact_ids=IDS),
)
"""Topics to documents (prompt C), by their own ids or by those of facts. `planned_titles`: titles that the
first half of a bisected plan created."""
PART = replace(PLAN, variables=PLAN.variables | {"parting"})
"""The topics of one document to new ones; the variable is the limit that it passed."""

COMPARE = task("compare", "groups problems", 2048, "tell:compare", superseded=list_of(old=TEXT, new=TEXT))
"""Which facts newer ones outdate. `groups`: [{"facts"}], facts that are near to each other."""


def rewrite(view: View, asker: Account, count: int) -> tuple[Topic, ...]:
    """Group the buffer's first lines; what is too large for one call goes in parts."""
    settings = view.settings.of(InfiniSettings)
    every, untitled = settings.grouping == "rewrite", ("", of.unsorted(view))
    titled, others = list[Located](), list[Located]()
    for place in of.movable(view.buffer, view)[:count]:
        (others if every or of.heading_of(place) in untitled else titled).append(place)
    topics = [replace(topic, given=True) for topic in of.sections(titled)]
    sizes, limit = [size([place.entry]) for place in others], settings.plan_split_threshold
    calls = max(1, -(-sum(sizes) // max(limit, 1)))
    share = min(limit, -(-sum(sizes) // calls) + max(sizes, default=0))  # a few lines alone are grouped badly
    for part in tokens.packed(others, share, lambda place: size([place.entry])):
        known = {place.seq: place for place in part}
        entries = [place.entry for place in part]
        docs = [{"title": title_of(row.id, view), "tokens": row.tokens} for row in near(view, entries)]
        groups, wrong = asker.ask_groups(REWRITE, {"facts": [*map(of.fact, entries)], "docs": docs}, known)
        asker.note(*(f"rewrite: {reason}" for reason in wrong))
        for group in groups or ():
            title = of.clean_title(group["title"]) or of.unsorted(view)
            topics.append(Topic(title, tuple(known.pop(seq).entry for seq in group["seqs"])))
        topics += of.sections(known.values(), of.unsorted(view))
    return of.joined(topics)


# ── plan (prompt C, algorithm 2) ────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Route:
    """Topics on their way to a document; one without an id yet goes to that of its title, or a new one."""

    doc_id: str
    title: str
    topics: tuple[Topic, ...]


class Planner:
    """One plan in the making. A split makes new documents only, and does not `offer` those that exist;
    unless it `asks`, each line goes to the document that is nearest."""

    def __init__(self, view: View, asker: Account, *, offer: bool = True, asks: bool = True) -> None:
        self.asker = asker
        self._view, self._offer, self._asks = view, offer, asks
        self._settings = view.settings.of(InfiniSettings)
        self._open = view.derived(open_documents) if offer else {}
        self._titles: dict[str, None] = {}
        self._failures = 0

    def route(self, topics: Sequence[Topic]) -> tuple[Route, ...]:
        """Bring every line to one document; no one is asked of topics that were given one's title."""
        self._first = FIRST if self._offer or len(topics) > FEW else len(entries_of(topics))
        ids = {title: doc_id for doc_id, title in self._open.items()}
        homes = {topic.title: ids.get(normalised(topic.title)) for topic in topics if topic.given}
        routes = [Route(name, topic.title, (topic,)) for topic in topics if (name := homes.get(topic.title))]
        topics = [topic for topic in topics if not homes.get(topic.title)]
        routes += self._planned(topics, 0) if topics and self._asks else []
        placed = {entry.seq for route in routes for entry in entries_of(route.topics)}
        (left,) = of.parted(topics, [{entry.seq for entry in entries_of(topics)} - placed])
        if left and self._asks:
            self.asker.note(f"plan: {Reason('MISSING', tuple(entry.seq for entry in entries_of(left)))}")
        strays = self._nearest(left) if self._offer else [Route("", one.title, (one,)) for one in left]
        given, by_id = set[str](), dict[str, Route]()
        for route in (*routes, *strays):  # one a document; equal titles are one, also of one that exists
            doc_id = route.doc_id or ids.get(normalised(route.title))
            if doc_id is None:
                by_name = f"{TOPICS}{of.slugify(route.title)}"
                doc_id = by_name if by_name in self._open else of.new_id(route.title, self._view, given)
                ids[normalised(route.title)] = doc_id
            first = by_id.setdefault(doc_id, replace(route, doc_id=doc_id, topics=()))
            by_id[doc_id] = replace(first, topics=(*first.topics, *route.topics))
        return tuple(replace(route, topics=of.joined(route.topics)) for route in by_id.values())

    def _planned(self, topics: Sequence[Topic], depth: int) -> list[Route]:
        """Plan in chunks that fit a call; halves where one is too large, or no reply can be read."""
        can_halve = depth < MAX_DEPTH and len(entries_of(topics)) > 1
        limit = self._settings.plan_split_threshold
        is_large = size(entry for topic in topics for entry in topic.entries[: self._first]) > limit
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
        view, own, entries = self._view, self._settings, entries_of(topics)
        named = {f"T{at}": topic for at, topic in enumerate(topics, 1)}
        shown = []
        for name, topic in named.items():
            facts = ({**of.brief(entry), "time": None} for entry in topic.entries[: self._first])
            told = [f"[{name}] {topic.title}, {len(topic.entries)}", *map(line_of, facts)]
            shown.append({"title": topic.title, "facts": [*map(of.fact, topic.entries)], "told": told})
        docs = {row.id: listed(row, view) for row in (near(view, entries) if self._offer else ())}
        ids = {f"D{at}": doc_id for at, doc_id in enumerate(docs, 1)}
        # told by titles; where topics are the model's only now, by summaries too
        for name, doc in zip(ids, docs.values(), strict=True):
            doc["told"] = [f"{name}: {doc['title']}, {doc['tokens']}"]
            doc["told"] += [doc["summary"]] if own.grouping == "rewrite" else []
        asked = {
            "topics": shown,
            "docs": [*docs.values()],
            "planned_titles": [*self._titles],
            "markdown_length": str(own.markdown_length),
        }
        known = {entry.seq for entry in entries}
        items = partial(_items, named, own.grouping == "rewrite")
        kind, asked = (PLAN, asked) if self._offer else (PART, asked | {"parting": asked["markdown_length"]})
        groups, wrong = self.asker.ask_groups(kind, asked, known, items)
        if groups is None:
            self._failures += 1
            self.asker.note(*(f"plan: {reason}" for reason in wrong))
            return None
        self._failures = 0
        routes = []
        parts = of.parted(topics, (group["seqs"] for group in groups))
        for group, part in zip(groups, parts, strict=True):
            doc_id = ids.get(group["doc_id"], group["doc_id"] or "")
            if doc_id in docs:
                routes += [Route(doc_id, title_of(doc_id, view), tuple(part))] if part else []
            elif part and (title := of.clean_title(group["new_title"] or title_of(doc_id, view))):
                self._titles[title] = None  # also of an id that was not offered
                routes.append(Route("", title, tuple(part)))
        return routes

    def _nearest(self, topics: Iterable[Topic]) -> list[Route]:
        """Each line to the document that shares the most words with it, or to the inbox. Asks no model."""
        view, open_ids, routes = self._view, [*self._open], []
        words = cache(lambda doc_id: frozenset(terms(view.document(doc_id).body)))
        for topic in topics:
            for entry in topic.entries:
                best = searcher(view).documents(entry.text, limit=1, ids=open_ids)
                shares = best and not words(best[0]).isdisjoint(query_terms(entry.text))
                doc_id = best[0] if shares else of.INBOX
                routes.append(Route(doc_id, title_of(doc_id, view), (replace(topic, entries=(entry,)),)))
        return routes


def _items(named: Mapping[str, Topic], titled: bool, data: Data) -> list[Data]:
    """Return the items of a reply, with those facts in place of topics that it names nowhere; a topic that
    was given a title, as all are where `titled`, and is left out is a new document."""
    told = {name for item in data["assign"] for name in item["fact_ids"]}
    alone = set(map(seq_of, told))
    facts = {name: [str(e.seq) for e in topic.entries if e.seq not in alone] for name, topic in named.items()}
    left = [
        {"doc_id": None, "new_title": topic.title, "fact_ids": [name]}
        for name, topic in named.items()
        if (titled or topic.given) and name not in told and len(facts[name]) == len(topic.entries)
    ]
    return [
        {**item, "fact_ids": [fact for name in item["fact_ids"] for fact in facts.get(name, [name])]}
        for item in (*data["assign"], *left)
    ]


def listed(row: CatalogRow, view: View) -> dict[str, Any]:
    """A document as data (llm/tasks.py, shape `doc`)."""
    return {"id": row.id, "summary": row.summary, "title": title_of(row.id, view), "tokens": row.tokens}


def near(view: View, entries: Iterable[Entry]) -> list[CatalogRow]:
    """Those of the open documents that are nearest to some lines, best first."""
    ids, limit = [*view.derived(open_documents)], view.settings.of(InfiniSettings).planner_docs
    text = "\n".join(entry.text for entry in entries)
    return [view.row(doc_id) for doc_id in (searcher(view).documents(text, limit, ids) if ids else ())]


def open_documents(
    view: View, known: Mapping[str, str] | None = None, changed: Collection[str] | None = None
) -> Mapping[str, str]:
    """Topic documents that may receive lines, with what their titles are compared by (`View.derived`)."""
    limit = view.settings.of(InfiniSettings).markdown_length
    if known is None or changed is None:
        known, changed = {}, view.below(TOPICS)
    titles = {doc_id: title for doc_id, title in known.items() if doc_id not in changed}
    for doc_id in changed:
        is_there = doc_id.startswith(TOPICS) and doc_id not in (of.INBOX, STANDING) and doc_id in view
        if is_there and view.row(doc_id).tokens <= limit and view.document(doc_id).header.problem is None:
            titles[doc_id] = normalised(title_of(doc_id, view))
    return dict(sorted(titles.items()))


def claim(seq: int, by: int, why: Why) -> Move:
    """Return that a line may go to the archive of the document that the plan will tell, for another."""
    return Move(seq, f"{TOPICS}x", why=why, by=by)


def compare(
    fresh: Iterable[Entry], pool: Mapping[int, Entry], view: View, asker: Account
) -> tuple[Move, ...]:
    """Compare what comes in with what stands near to it (`pool`), and with each other; return what holds."""
    incoming = {entry.seq: entry for entry in fresh}
    pool = {**pool, **incoming}
    said_again = find_duplicates(entry for _, entry in sorted(pool.items()))
    claims = {seq: claim(seq, by, "duplicate") for seq, by in said_again if {seq, by} & incoming.keys()}
    entries = [entry for seq, entry in sorted(pool.items()) if seq not in claims]

    def may_outdate(at: int, other: int) -> bool:
        """Whether the law would let one of two go for the other, and they were not said in one breath."""
        new, old = entries[at], entries[other]
        if set(new.origin).intersection(old.origin):
            return False
        if not law.is_newer(new, old, view.entry):
            new, old = old, new
        move = claim(old.seq, new.seq, "superseded")
        reason = law.archive_refusal(move, old, view.entry(new.seq), view.entry, same=is_repetition)
        return reason is None or reason.code in ASKED

    groups = near_groups(
        [sorted(query_terms(entry.text)) for entry in entries],
        {at for at, entry in enumerate(entries) if entry.seq in incoming},
        may_outdate,
    )
    unmended, limit = list[Reason](), view.settings.of(InfiniSettings).plan_split_threshold
    age: Callable[[Entry], Any] = cmp_to_key(lambda a, b: 1 if law.is_newer(a, b, view.entry) else -1)
    facts = [[*map(of.brief, sorted(map(entries.__getitem__, group), key=age))] for group in groups]
    for part in tokens.packed(facts, limit, lambda group: tokens.count(line_of(group))):
        answers, wrong = _outdated(part, incoming, view, asker)
        claims |= {move.seq: move for move in answers}
        unmended += wrong
    held, withheld = allowed(claims.values(), incoming, view)
    why = [item.reason for item in withheld]
    asker.note(*(f"compare: {reason}" for reason in unmended if reason not in why))
    asker.withheld += withheld
    asker.note(*withheld)
    return held


def near_groups(
    terms: Sequence[Sequence[str]],
    among: Collection[int],
    may: Callable[[int, int], bool] = lambda one, other: True,
) -> list[list[int]]:
    """Return groups, as ascending positions, of texts, given their sorted terms: two that `may` be are joined
    if each is near to the other (NEAR) and one at least is `among` those."""
    import numpy as np

    holding: defaultdict[str, list[int]] = defaultdict(list)
    for at, own in enumerate(terms):
        for term in own:
            holding[term].append(at)
    weight = {
        term: math.log(1 + max(len(terms), FEWEST) / len(those)) ** 2 for term, those in holding.items()
    }
    length = np.array([math.sqrt(sum(weight[term] for term in own)) for own in terms])
    places = {term: np.array(those) for term, those in holding.items()}
    near: defaultdict[int, dict[int, float]] = defaultdict(dict)
    for at in sorted(among):
        shared = np.zeros(len(terms))
        for term in terms[at]:
            shared[places[term]] += weight[term]
        shared[at] = 0.0
        (close,) = np.nonzero((shared > 0.0) & (shared >= NEAR * length[at] * length))
        for other in (other for other in close.tolist() if may(at, other)):
            near[at][other] = near[other][at] = float(shared[other] / length[at] / length[other])
    chosen = {
        (at, other)
        for at, those in near.items()
        for other in nlargest(NEAREST, sorted(those), key=those.__getitem__)
    }
    group = np.arange(len(terms))
    for at, other in chosen & {(other, at) for at, other in chosen}:
        group[group == max(group[at], group[other])] = min(group[at], group[other])
    groups = (np.flatnonzero(group == first).tolist() for first in np.unique(group))
    return [those for those in groups if len(those) > 1]


def _outdated(
    groups: Sequence[Sequence[Data]], incoming: Collection[int], view: View, asker: Asker
) -> tuple[list[Move], Sequence[Reason]]:
    shown = {seq_of(fact["id"]) for facts in groups for fact in facts}

    def read(data: Data, wrong: list[Reason]) -> list[Move]:
        claims: list[Move] = []
        for item in data["superseded"]:
            old, new = seq_of(item["old"]), seq_of(item["new"])
            if old is None or old not in shown:
                wrong.append(Reason("UNKNOWN", (), item["old"][:20]))
            elif new is None or new not in shown or new == old:
                wrong.append(Reason("UNKNOWN_SURVIVOR", (old,), item["new"][:20]))
            else:
                claims.append(claim(old, new, "superseded"))
        return claims

    def check(data: Data) -> list[Reason]:
        wrong: list[Reason] = []
        _, withheld = allowed(read(data, wrong), incoming, view)
        return wrong + [item.reason for item in withheld if item.reason.code not in ASKED]

    asked = [{"facts": facts, "told": [*map(line_of, facts)]} for facts in groups]
    data, wrong = asker.ask_checked(COMPARE, {"groups": asked}, check)
    return (read(data, []) if data is not None else []), wrong


def allowed(
    claims: Iterable[Move], run: Iterable[int], view: View
) -> tuple[tuple[Move, ...], list[Withheld]]:
    """Return the claims that the law lets pass, one for each seq, pointing at lines that stay; and why
    others do not. `run` are the seqs that the plan will touch, of which the law archives a share."""
    left = {move.seq: move for move in claims}
    lines = sorted({*run, *left})
    withheld: list[Withheld] = []

    def followed(move: Move) -> Move:
        """Return a claim with the survivor at the end of its chain; in a circle one that goes as well."""
        seen = {move.seq}
        while move.by is not None and move.by in left and move.by not in seen:
            seen.add(move.by)
            step = left[move.by]
            move = replace(move, by=step.by, why=step.why if move.why == "duplicate" else move.why)
        return move

    while True:
        final = {seq: followed(move) for seq, move in left.items()}
        moves = tuple(final.get(seq) or Move(seq, f"{TOPICS}x") for seq in lines)
        verdict = law.verify(Plan(moves=moves), view.entry, (TOPICS,), same=is_repetition)
        if not verdict.withheld:
            return tuple(final[seq] for seq in sorted(final)), withheld
        # one that leans on a refused claim is looked at again, unless all do: a circle
        refused = {item.move.seq for item in verdict.withheld}
        alone = [item for item in verdict.withheld if left[item.move.seq].by not in refused]
        for item in alone or verdict.withheld:
            withheld.append(item)
            del left[item.move.seq]
