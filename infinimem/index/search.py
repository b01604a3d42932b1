"""The one ranking, and the searcher of a snapshot: entries, sections, nearest documents. Asks no model.

In: a view and a query. Out: `Retrieved` pieces, read from the documents as they are in that view. `_best` is
the ranking: BM25 over what a row says, what stands around it, its whole and its document's names; nearness in
meaning; priors of the question.

A turn like "I drew it yesterday" is found by its neighbours and by the session that is about the drawing.
What a document is called counts for what it begins with: who asks for a name wants the document.

Source: BM25 as in STRATEGIES 1.7 (k1, b, idf with + 1); docs/SEARCH.md has the weights and their figures.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from infinimem.errors import ModelUnavailable
from infinimem.index.pieces import BLOCK, GROUPS, PASSAGE, WHOLE, Pieces, Row, cut, name_key, plain
from infinimem.index.questions import POINTING, factors, related
from infinimem.index.tables import SAID_PART, Reading, Tables
from infinimem.index.words import AROUND, DIGITS, DOCUMENTS, ENTRIES, OWN, Lookup, compared, rarity
from infinimem.log import log
from infinimem.markdown.characters import text_key
from infinimem.markdown.sections import Partition, partitions
from infinimem.model import Retrieved
from infinimem.store.spec import EVIDENCE
from infinimem.store.view import Scope, View
from infinimem.terms import analyzer

if TYPE_CHECKING:
    from infinimem.index.vectors import Meaning

Kind = Literal["entries", "blocks"]

WEIGHTS: Mapping[str, float] = {OWN: 1.0, AROUND: 0.5}
WHOLE_WEIGHT = 0.5
NAMES_WEIGHT = 2.0
MEANING_WEIGHT = 0.8
KEPT = 100
"""Rows whose wholes and priors are looked at, at least: so many that the best ten are among them."""
ENOUGH = 100
"""Rows that hold a compound as it is written; the best ten are among so many."""
WHOLES, NAMED = 300, 50
"""Documents whose rows profit from what the whole says, and from their names: the best ones."""
GATHERED = 2000
"""Documents that the index gives as the nearest to a text."""
FURTHER = 0.25
"""What the second best line of a section adds to the score of the best one, of its own; of others less."""

PARTS_OF: Mapping[Scope, frozenset[int]] = {
    "default": frozenset({0}),
    "archive": frozenset({1}),
    "kept": frozenset({0, 1}),
    "evidence": frozenset({SAID_PART}),
    "journal": frozenset({GROUPS.index("journal")}),
    "all": frozenset(range(len(GROUPS))),
}


class Ranked(NamedTuple):
    """A row that answers, and its score."""

    name: str
    row: Row
    score: float


class Searcher:
    """Ranks what a snapshot holds. Rows are made on first use, of what changed."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._words = analyzer(view.settings.search.language)
        self._pieces = Pieces(  # `lines` are those of now: what others move later is looked up where it was
            view, view.lines.place, lambda name: view.document(name) if name in view else None
        )

    def entries(self, query: str, limit: int = 50, scope: Scope = "default") -> list[Retrieved]:
        """Return the entries that answer a query best, in the default scope evidence too that none cites."""
        hits = self._hits("entries", query, limit, scope)
        items = ((self._pieces.shown(hit.name, hit.row), hit.score) for hit in hits)
        return [replace(item, score=score) for item, score in items if item]

    def blocks(self, query: str, limit: int = 10, scope: Scope = "default") -> list[Retrieved]:
        """Return the heading blocks that answer a query best, and in the default scope the turns that stand
        for themselves (`View.unfiled`); ties by document and line."""
        found: dict[tuple[str, int], list[tuple[Ranked, Partition | None]]] = {}
        blocks, document = self._view.derived(_blocks), self._view.document
        for hit in self._hits("blocks", query, max(KEPT // 2, 5 * limit), scope) if limit > 0 else ():
            name, row, block = hit.name, hit.row, None
            is_turn = scope == "default" and name.startswith(EVIDENCE)
            if row.line >= PASSAGE and not is_turn:
                if name not in blocks:
                    blocks[name] = partitions(document(name))
                block = next(
                    (one for one in blocks[name] if one.start_line <= row.start <= one.end_line), None
                )
            key = name, block.start_line if block else row.start
            found.setdefault(key, []).append((hit, block))
        scored = []
        for (name, start), lines in found.items():
            score = sum(hit.score * FURTHER**at for at, (hit, _) in enumerate(lines))
            scored.append((-round(score, DIGITS), name, start, *lines[0]))
        items = list[Retrieved]()
        for score, name, _, hit, block in sorted(scored, key=lambda one: one[:3]):
            item = self._pieces.block(document(name), block) if block else self._pieces.shown(name, hit.row)
            if item and scope == "default" and name.startswith(EVIDENCE):
                item = replace(self.lines_at(name, item.start_line, item.end_line), text=item.text)
            if item:
                items.append(replace(item, score=-score))
            if len(items) == limit:
                break
        return items

    def scores(self, query: str, limit: int = 50, scope: Scope = "default") -> list[tuple[str, int, float]]:
        """Return as `entries`, but of each only document, seq (0 for none) and score: nothing is read."""
        return [(hit.name, hit.row.seq, hit.score) for hit in self._hits("entries", query, limit, scope)]

    def documents(self, text: str, limit: int = 50, ids: Sequence[str] | None = None) -> list[str]:
        """Return ids of the documents lexically nearest to a text, those without a common word last.

        Those of the default scope; or these ids alone, compared with each other.
        """
        chosen = set(self._view.ids() if ids is None else ids)
        terms = self._words.query_terms(text)
        if ids is not None:  # without rows: to bring those up to date takes longer
            known, pieces = self._view.derived(_texts), Pieces(self._view)  # follows no origins
            for name in chosen - known.keys():
                parts = pieces.parts(self._view.document(name)) if name in self._view else ()
                known[name] = Counter(term for _, joined in parts for term in joined.split())
            ordered = sorted(chosen)
            alike = zip(ordered, compared([known[name] for name in ordered], terms), strict=True)
            scores = {name: score for name, score in alike if score}
        else:
            with self._view.derived(_tables).reading(self._view) as reading:
                weights = {term: _rarity(reading, DOCUMENTS, term) for term in terms}
                found = _wholes(reading, weights, GATHERED)
                query = "select id, name from document where id in (select value from json_each(?))"
                names = reading.db.execute(query, (json.dumps([*found]),)).fetchall()
            scores = {name: round(found[at], DIGITS) for at, name in names if name in chosen}
        near = sorted(scores, key=lambda name: (-scores[name], name))
        rest = () if len(near) >= limit else sorted(chosen.difference(near))
        return [*near, *rest][:limit]

    def frequencies(self, terms: Iterable[str]) -> tuple[dict[str, int], int]:
        """Return how many entries hold each term, and how many there are."""
        with self._view.derived(_tables).reading(self._view) as reading:
            return {term: reading.frequency(ENTRIES, term) for term in terms}, reading.count(ENTRIES)

    # ── what stands somewhere ───────────────────────────────────────────────────────────────────

    def blocks_at(self, doc_id: str, start: int, end: int) -> list[Retrieved]:
        """Return the heading blocks of a document that hold any of these lines, in order, with score 0."""
        document = self._view.document(doc_id)
        return [
            self._pieces.block(document, block)
            for block in partitions(document)
            if block.start_line <= end and block.end_line >= start and block.text.strip()
        ]

    def lines_at(self, doc_id: str, start: int, end: int) -> Retrieved:
        """Return these lines of a document's body as one piece, with score 0; cut to what there is."""
        document = self._view.document(doc_id)
        start = min(max(start, document.header.end + 1), max(len(document.lines), 1))
        end = min(max(end, start), len(document.lines))
        return self._pieces.lines(document, start, end, document.path_at(start))

    def entries_at(self, doc_id: str, start: int, end: int) -> list[Retrieved]:
        """Return the entries that begin in these lines, in order, with score 0."""
        places = self._view.document(doc_id).entries_in(start, end)
        return [self._pieces.entry(place) for place in places if place.start_line >= start]

    def order(self, query: str, items: Sequence[Retrieved]) -> list[Retrieved]:
        """Return these pieces, best first when compared with each other; ties keep their order."""
        terms_at, document = self._pieces.terms_at, self._view.document
        spans = ((document(item.doc_id), item.start_line, item.end_line) for item in items)
        texts = [Counter(terms_at(*span).split()) for span in spans]
        scores = compared(texts, self._words.query_terms(query))
        scored = [replace(item, score=score) for item, score in zip(items, scores, strict=True)]
        return sorted(scored, key=lambda item: -item.score)

    # ── the ranking ─────────────────────────────────────────────────────────────────────────────

    def _hits(self, kind: Kind, query: str, limit: int, scope: Scope) -> list[Ranked]:
        terms = self._words.query_terms(query)
        if limit <= 0:
            return []
        with self._view.derived(_tables).reading(self._view) as reading:
            hits = self._best(reading, kind, query, terms, scope, limit)
            if not hits and self._view.settings.search.language == "english":
                hits = self._best(reading, kind, query, related(terms), scope, limit)
        return hits

    def _best(
        self, reading: Reading, kind: Kind, query: str, terms: Sequence[str], scope: Scope, limit: int
    ) -> list[Ranked]:
        settings, parts = self._view.settings.search, PARTS_OF[scope]
        turns = self._view.unfiled if scope == "default" else frozenset[int]()
        asked = [*terms, *(self._words.joined(query) if terms else ())]
        weights = {term: _rarity(reading, ENTRIES, term) for term in asked}
        meaning = self._meaning(reading, query, parts, turns)
        names = self._names(reading, kind, query, weights, sum(weights[term] for term in terms), parts)
        near = {*names, *(meaning.nearest if meaning else ())}
        lookup = Lookup(WEIGHTS, weights, self._pairs(reading, query) if terms else {})
        words = reading.scores(ENTRIES, lookup, max(KEPT, 2 * limit), parts, turns, near)
        wholes = _wholes(reading, weights, WHOLES)
        found = _joined(reading, self._view, words)
        alone = lookup._replace(fields={OWN: 1.0})
        if found and not (meaning or reading.scores(ENTRIES, alone, 1, parts, turns)):
            found = [one for one in found if one[1].id in names or self._is_about(*one, asked)]
        rows = [row for _, row in found]
        said = [
            own + (names.get(row.id, 0.0) + (wholes.get(row.whole, 0.0) if own else 0.0))
            for row in rows
            for own in (words[row.id],)
        ]
        most = MEANING_WEIGHT * (max(said, default=0.0) or 1.0)
        shares = meaning.shares(rows, most) if meaning else [0.0] * len(rows)
        parted = zip(found, said, shares, factors(query, rows, settings), strict=True)
        hits = [Ranked(*at, round((score + share) * prior, DIGITS)) for at, score, share, prior in parted]

        def order(hit: Ranked) -> tuple[Any, ...]:
            row, newest = hit.row, settings.newest
            return -hit.score, -row.day * newest, -row.seq * newest, hit.name, row.start, row.piece

        once: dict[tuple[str, int], Ranked] = {}
        for hit in sorted(hits, key=order):  # of the pieces of a long text the best
            once.setdefault((hit.name, hit.row.start), hit)
        return list(once.values())[:limit]

    def _is_about(self, name: str, row: Row, asked: Sequence[str]) -> bool:
        """Whether it points to what is beside it ("I gave it away"), or its headings or turns have a word."""
        item = self._pieces.shown(name, row) if row.seq else None
        if item is None or not POINTING.isdisjoint(re.findall(r"\w+", item.text.casefold())):
            return True
        texts = [*item.headings, *(turn.text for turn in self._pieces.turns(item.origin))]
        return not set(asked).isdisjoint(self._words.kept(" ".join(texts)).split())

    def _pairs(self, reading: Reading, query: str) -> dict[tuple[str, str], float]:
        """Return how much each word tells that may be written as two: as much as the rarer of them."""
        words, found = self._words, dict[tuple[str, str], float]()
        for term, cuts in words.cut(query).items():
            if reading.frequency(ENTRIES, term) < ENOUGH:
                pairs = [(words.term(first), words.term(second)) for first, second in cuts]
                known = [(min(reading.frequency(ENTRIES, one) for one in pair), pair) for pair in pairs]
                often, pair = max(known, default=(0, ("", "")))
                if often:
                    found[pair] = max(_rarity(reading, ENTRIES, one) for one in pair)
        return found

    def _names(
        self,
        reading: Reading,
        kind: Kind,
        query: str,
        weights: Mapping[str, float],
        full: float,
        parts: Collection[int],
    ) -> dict[int, float]:
        """Return what names add to the first rows of their documents, by id; of entries, to notes alone."""
        called = "select r.id from called c join row r on r.doc = c.doc where c.key = ? and r.line = ?"
        key = name_key(self._words, query)
        exactly = {row[0] for row in reading.db.execute(called, (key, WHOLE))}
        found = reading.scores(DOCUMENTS, Lookup({AROUND: 1.0}, weights), NAMED, parts, ids=exactly)
        found = {number: score for number, score in found.items() if score > full / 2 or number in exactly}
        named: dict[int, float] = {}
        first = (  # SQLite gives the columns of the row with the least
            "select w.id, r.id, r.line, r.part, min(r.start * 10000 + r.piece) from row w "
            f"join row r on r.doc = w.doc where r.line != {WHOLE} "
            "and w.id in (select value from json_each(?)) group by w.id"
        )
        best = max(found.values(), default=0.0) * NAMES_WEIGHT + NAMES_WEIGHT * full
        for number, row, line, group, _ in reading.db.execute(first, (json.dumps([*found]),)):
            if group in parts and (kind == "blocks" or line == BLOCK):
                score = found[number]
                share = NAMES_WEIGHT * score * min(score / full, 1) if score and full else 0.0
                named[row] = share + best * (number in exactly)
        return named

    def _meaning(self, reading: Reading, query: str, parts: Set[int], turns: Set[int]) -> Meaning | None:
        view = self._view
        if not view.settings.search.vectors or not view.embedder.semantic or not query.strip():
            return None
        from infinimem.index.vectors import Meaning  # numpy

        try:
            return Meaning(view, view.derived(_tables), reading, query, parts, turns)
        except ModelUnavailable as error:
            log.warning("ranked by words alone: %s", error)
            return None


def searcher(view: View) -> Searcher:
    return Searcher(view)


def _tables(view: View, known: Tables | None, _: Collection[str] | None) -> Tables:
    tables = known if known and known.index is view.index else Tables(view.index)
    tables.fill(view)
    return tables


def _texts(
    _: View, known: dict[str, Counter[str]] | None, changed: Collection[str] | None
) -> dict[str, Counter[str]]:
    return {name: known[name] for name in known.keys() - (changed or ())} if known else {}


def _blocks(
    _: View, known: dict[str, Sequence[Partition]] | None, changed: Collection[str] | None
) -> dict[str, Sequence[Partition]]:
    return {name: known[name] for name in known.keys() - (changed or ())} if known else {}


def _rarity(reading: Reading, table: str, term: str) -> float:
    return rarity(reading.count(table), reading.frequency(table, term))


def _wholes(reading: Reading, weights: Mapping[str, float], most: int) -> dict[int, float]:
    lookup = Lookup({OWN: WHOLE_WEIGHT}, weights)
    return reading.scores(DOCUMENTS, lookup, most, PARTS_OF["all"], by="doc")


def _joined(reading: Reading, view: View, ids: Collection[int]) -> list[tuple[str, Row]]:
    query = (
        "select d.name, d.mtime, d.size, d.inode, r.* from row r join document d on d.id = r.doc "
        "where r.id in (select value from json_each(?))"
    )
    rows = reading.db.execute(query, (json.dumps([*ids]),))
    placed = (_placed(view, row[0], row[1:4], Row._make(row[4:])) for row in rows)
    return [one for one in placed if one]


def _placed(view: View, name: str, stamp: Sequence[int], row: Row) -> tuple[str, Row] | None:
    """Return where a row stands in a view, which may be older than the index; None for nowhere."""
    if name in view:
        if view.stored is None or view.stored.stamps[name] == tuple(stamp):
            return name, row
        document = view.document(name)
        text = plain(document, row.start, row.end) if row.end <= len(document.lines) else ""
        if text_key(text[slice(*cut(text, row.piece))]) == row.key:
            return name, row
    place = view.entry(row.seq) if row.seq else None
    if place is None or text_key(place.text) != row.key:
        return None
    return place.doc_id, row._replace(start=place.start_line, end=place.end_line)  # it has moved since
