"""The one ranking: BM25 over what a row says, what stands around it, its whole and its document's names; and
nearness in meaning.

A turn like "I drew it yesterday" is found by its neighbours and by the session that is about the drawing.
What a document is called counts for the block that it begins with: who asks for a name wants the document.
How rare a term is counts alike in all three, by the rows that say it; priors (priors.py) then decide between
rows of like wording. tantivy ranks what is indexed; the few documents that differ are scored beside, by the
same formula.

Where vectors count, the row that is nearest in meaning gets `MEANING_WEIGHT` of what the row with the best
words gets, each other one its share of that: neither scale has to be known. Without them nothing changes.

Source: BM25 as in STRATEGIES 1.7 (k1, b, idf with + 1). The weights of the fields were chosen on the LoCoMo
development conversations, where recall is flat around them, and checked on LongMemEval's. MEANING_WEIGHT and
dense.BESIDE_WEIGHT were chosen on both together (docs/SEARCH.md gives the figures), on six conversations and
235 questions, with static vectors on both and MiniLM's on the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from infinimem.errors import ModelUnavailable
from infinimem.log import log
from infinimem.retrieval.origins import KnownLines, Origins
from infinimem.retrieval.pieces import Pieces
from infinimem.retrieval.priors import factors
from infinimem.retrieval.rows import GROUPS_OF, LINES, SAID, Kind, Read, Row, doc_hash, name_key
from infinimem.retrieval.tables import AROUND, NAMES, OWN, PADDING, WHOLE, Tables
from infinimem.retrieval.tantivy_index import Hit, Table, rarity, saturated
from infinimem.store.view import Scope, View
from infinimem.terms import analyzer

if TYPE_CHECKING:
    from tantivy import Query

    from infinimem.retrieval.dense import Dense, Near

WEIGHTS: Mapping[str, float] = {OWN: 1.0, AROUND: 0.5}
WHOLE_WEIGHT = 0.5
NAMES_WEIGHT = 2.0
MEANING_WEIGHT = 0.8
KEPT, FETCHED = 100, 4
"""Rows whose wholes and priors are looked at, at least, and how many times as many are asked for at first: so
many that the best ten are among them."""
ENOUGH = 100
"""Rows that hold a compound as it is written; the best ten are among so many."""
WHOLES, NAMED = 300, 50
"""Documents whose rows profit from what the whole says, and from their names: the best ones."""
DIGITS = 4
"""Of a score, so that an order does not hang on the last bits of a float."""


@dataclass(frozen=True)
class _Bag:
    """A row that is in no table, and how often it holds each term."""

    row: Row
    counts: Mapping[str, Mapping[str, int]]
    own: Sequence[str]
    lengths: Mapping[str, int]


def _bag(row: Row, texts: Mapping[str, str]) -> _Bag:
    terms = {name: text.split() for name, text in texts.items()}
    counts = {name: Counter(held) for name, held in terms.items()}
    return _Bag(row, counts, terms.get(OWN, ()), {name: len(held) for name, held in terms.items()})


@dataclass(frozen=True, eq=False)
class Ranking:
    """What can be found in a snapshot.

    Args:
        view: the snapshot.
        tables: of a commit, or of the snapshot itself.
        lines: where each numbered line stands.
        gone: documents that the tables hold otherwise than the snapshot.
        over: those of them that the snapshot has, as they are now.
    """

    view: View
    tables: Tables
    lines: KnownLines
    gone: frozenset[str] = frozenset()
    over: Mapping[str, Read] = field(default_factory=dict)
    _dense: dict[Kind, Dense] = field(default_factory=dict, init=False)

    @cached_property
    def pieces(self) -> Pieces:
        """Reads documents."""
        return Pieces(self.view, Origins(self.view, self.lines))

    def best(
        self,
        kind: Kind,
        query: str,
        terms: Sequence[str],
        scope: Scope,
        limit: int,
        parts: dict[Row, Mapping[str, float]] | None = None,
    ) -> list[tuple[Row, float]]:
        """The best rows and their scores, higher first; of equal ones the newer, then by place.

        Args:
            kind: "entries" or "blocks".
            query: as it was asked, for what it tells beside its words.
            terms: that are looked for.
            scope: which documents; with entries the default one holds evidence that is not drawn from yet.
            limit: at most so many.
            parts: is told what the score of each of them is made of: words, around, whole (with names) and
                meaning are added up, prior multiplies.

        Raises:
            ModelNotConfigured: the embedder lacks a package, a model's files or a key.
        """
        settings = self.view.settings.search
        among = _Among(GROUPS_OF[scope], self.waiting if (kind, scope) == ("entries", "default") else ())
        weights = self._weights(kind, [*terms, *(analyzer(settings.language).joined(query) if terms else ())])
        pairs = self._pairs(kind, query) if terms else {}
        near = self._near(kind, query, among)
        kept = max(KEPT, 2 * limit)
        names = self._names(kind, query, weights, sum(weights[term] for term in terms), among)
        scores = self._words(kind, weights, pairs, among, kept, (*names, *(near.numbers if near else ())))
        wholes, beyond = self._wholes(weights), dict[Row, float]()
        rows = list(scores)
        for row, score in scores.items():
            beyond[row] = names.get(row.number, 0.0) + (wholes.get(row.whole, 0.0) if score else 0.0)
        found = [score + beyond[row] for row, score in scores.items()]
        if near and rows:
            shares = _shared(near.similarity([row.number for row in rows]), max(found))
            found = [score + share for score, share in zip(found, shares, strict=True)]
        priors = factors(query, rows, settings)
        found = [round(score * factor, DIGITS) for score, factor in zip(found, priors, strict=True)]
        order = _once(
            rows, sorted(range(len(rows)), key=lambda at: (-found[at], *_tie(rows[at], settings.newest)))
        )
        if parts is not None:
            own = self._words(kind, weights, pairs, among, kept, (), {OWN: WEIGHTS[OWN]})
            for at in order[:limit]:
                row, said = rows[at], scores[rows[at]]
                words, whole, prior = own.get(row, 0.0), beyond[row], priors[at]
                meaning = found[at] / prior - said - whole if prior else 0.0
                told = {"words": words, "around": said - words, "whole": whole, "meaning": meaning}
                parts[row] = {name: abs(round(part, 2)) for name, part in told.items()} | {"prior": prior}
        return [(rows[at], found[at]) for at in order[:limit]]

    def documents(self, terms: Sequence[str], ids: Collection[str], limit: int) -> list[str]:
        """The documents with most of these terms, best first; ties by id."""
        table, asked = self.tables.documents, {doc_hash(doc_id): doc_id for doc_id in ids}
        over = [bag.counts[WHOLE] for bag in self._bags["documents"]]
        weights = {
            term: rarity(
                len(table) + len(over), table.frequency(WHOLE, term) + sum(term in one for one in over)
            )
            for term in terms
        }
        found = self._wholes(weights, limit + len(self.gone))
        best = sorted((-round(score, DIGITS), asked[key]) for key, score in found.items() if key in asked)
        return [doc_id for _, doc_id in best[:limit]]

    # ── words ───────────────────────────────────────────────────────────────────────────────────

    def _weights(self, kind: Kind, terms: Sequence[str]) -> dict[str, float]:
        """How much each term tells."""
        count = len(self.tables.table(kind)) + len(self._bags[kind])
        return {term: rarity(count, self._frequency(kind, term)) for term in terms}

    def _pairs(self, kind: Kind, query: str) -> dict[tuple[str, str], float]:
        """How much each word tells that may be written as two, as much as the rarer of them.

        A word that `ENOUGH` rows hold as it is written needs no other spelling; of the ways to cut one that
        counts whose parts are most frequent.
        """
        words, found = analyzer(self.view.settings.search.language), dict[tuple[str, str], float]()
        for term, cuts in words.cut(query).items():
            if self._frequency(kind, term) < ENOUGH:
                pairs = [(words.term(first), words.term(second)) for first, second in cuts]
                known = [(min(self._frequency(kind, part) for part in pair), pair) for pair in pairs]
                often, pair = max(known, default=(0, ("", "")))
                if often:
                    found[pair] = max(self._weights(kind, pair).values())
        return found

    def frequencies(self, terms: Iterable[str]) -> tuple[dict[str, int], int]:
        """How many entries say each term, and how many entries there are."""
        count = len(self.tables.table("entries")) + len(self._bags["entries"])
        return {term: self._frequency("entries", term) for term in terms}, count

    def _frequency(self, kind: Kind, term: str) -> int:
        """How many rows say a term."""
        beside = sum(term in bag.counts[OWN] for bag in self._bags[kind])
        return self.tables.table(kind).frequency(OWN, term) + beside

    def _words(
        self,
        kind: Kind,
        weights: Mapping[str, float],
        pairs: Mapping[tuple[str, str], float],
        among: _Among,
        kept: int,
        near: Collection[int],
        fields: Mapping[str, float] = WEIGHTS,
    ) -> dict[Row, float]:
        """The rows that hold a term in their own text or around it with their scores, and those near."""
        table = self.tables.table(kind)
        query = table.words(fields, weights, pairs)
        found: dict[Row, float] = {}
        if query:
            hits = table.find(query, FETCHED * kept)
            chosen = self._here(table, hits, among)
            if len(chosen) < kept and len(hits) == FETCHED * kept:
                chosen = table.find(table.among(query, self._there(table, among)), kept)
            found = self._rows(table, chosen[:kept])
        known = {row.number for row in found}
        if others := [number for number in near if number not in known]:
            there = table.any_of("row", others)
            found |= dict.fromkeys(self._rows(table, table.find(there)), 0.0)
            if query:
                found |= self._rows(table, table.find(table.among(query, there)))
        wanted = set(near)
        for bag in self._bags[kind]:
            if among.holds(bag.row.group, bag.row.seq):
                score = self._beside(kind, bag, weights, pairs, fields)
                if score or bag.row.number in wanted:
                    found[bag.row] = score
        return found

    def _rows(self, table: Table, hits: Sequence[Hit]) -> dict[Row, float]:
        rows = self.tables.rows(table, [address for _, address in hits])
        return {row: score for row, (score, _) in zip(rows, hits, strict=True)}

    def _here(self, table: Table, hits: Sequence[Hit], among: _Among) -> list[Hit]:
        """Those of some rows that are searched."""
        addresses, dead = [address for _, address in hits], self._dead
        groups = table.values("group", addresses)
        numbers = table.values("row", addresses) if dead else [0] * len(hits)
        seqs = table.values("seq", addresses) if among.waiting else [0] * len(hits)
        return [
            hit
            for hit, number, group, seq in zip(hits, numbers, groups, seqs, strict=True)
            if number >> LINES not in dead and among.holds(group, seq)
        ]

    def _there(self, table: Table, among: _Among) -> Query:
        from tantivy import Occur, Query

        held = [(Occur.Should, table.any_of("group", among.groups))]
        if among.waiting:
            waiting = table.any_of("seq", among.waiting)
            held.append((Occur.Should, table.among(table.any_of("group", [SAID]), waiting)))
        there = [(Occur.Must, Query.boolean_query(held))]
        if self._dead:
            there.append((Occur.MustNot, table.any_of("doc", self._dead)))
        return Query.boolean_query(there)

    def _beside(
        self,
        name: str,
        bag: _Bag,
        weights: Mapping[str, float],
        pairs: Mapping[tuple[str, str], float],
        fields: Mapping[str, float],
    ) -> float:
        """The score of a row that is in no table."""
        parts: list[tuple[str, float, int]] = []
        for field_, factor in fields.items():
            held = bag.counts[field_]
            parts += [
                (field_, factor * weight, held[term]) for term, weight in weights.items() if term in held
            ]
        if pairs:
            side_by_side = Counter(pairwise(bag.own))
            parts += [(OWN, weight, side_by_side[pair]) for pair, weight in pairs.items()]
        padding, means, lengths = self.tables.padding, self._means[name], bag.lengths
        return sum(
            weight * saturated(often, lengths[field_] + padding(name, field_), means[field_])
            for field_, weight, often in parts
        )

    def _wholes(self, weights: Mapping[str, float], most: int = WHOLES) -> dict[int, float]:
        """What the best documents add to the rows that belong to them, by `doc_hash`."""
        table, fields, found = self.tables.documents, {WHOLE: WHOLE_WEIGHT}, dict[int, float]()
        if query := table.words(fields, weights):
            hits = table.find(query, most)
            keys = table.values("whole", [address for _, address in hits])
            found = {key: score for key, (score, _) in zip(keys, hits, strict=True)}
        for doc_id in self.gone:
            found.pop(doc_hash(doc_id), None)
        for bag in self._bags["documents"]:
            if score := self._beside("documents", bag, weights, {}, fields):
                found[bag.row.whole] = score
        return found

    def _names(
        self, kind: Kind, query: str, weights: Mapping[str, float], full: float, among: _Among
    ) -> dict[int, float]:
        """What names add to the first rows of their documents, by number; of entries, notes alone have such.

        One that holds half of what is asked for or more gets that part of NAMES_WEIGHT, one that is just that
        far more.
        """
        table, ids, fields = self.tables.documents, self.tables.ids, {NAMES: 1.0}
        asked, here = name_key(self.pieces.words, query), table.any_of("group", among.groups)

        def firsts(wanted: Query | None) -> dict[int, float]:
            hits = table.find(table.among(wanted, here), NAMED) if wanted else []
            numbers = table.values("first", [address for _, address in hits])
            found = {number: score for number, (score, _) in zip(numbers, hits, strict=True)}
            return {at: score for at, score in found.items() if ids[at >> LINES] not in self.gone}

        exactly = set(firsts(table.any_of("called", [asked])))
        found = dict.fromkeys(exactly, 0.0) | firsts(table.words(fields, weights))
        docs = {number: ids[number >> LINES] for number in found}
        for bag in self._bags["documents"]:
            number, docs[bag.row.number] = bag.row.number, bag.row.doc_id
            if bag.row.group in among.groups:
                found[number] = self._beside("documents", bag, weights, {}, fields)
                exactly.update([number] * (asked in self.over[bag.row.doc_id].called))
        found = {
            number: NAMES_WEIGHT * score * min(score / full, 1) if score else 0.0
            for number, score in found.items()
            if score > full / 2 or number in exactly
            if kind == "blocks" or self.view.is_note(docs[number])
        }
        best = max(found.values(), default=0.0) + NAMES_WEIGHT * full
        return {number: score + best * (number in exactly) for number, score in found.items()}

    @cached_property
    def _bags(self) -> Mapping[str, Sequence[_Bag]]:
        """What is in no table, by the name of the table that it is missing in."""
        reads = self.over.values()
        return {
            "entries": [
                _bag(one.row, {OWN: one.own, AROUND: one.around}) for read in reads for one in read.entries
            ],
            "blocks": [
                _bag(one.row, {OWN: one.own, AROUND: one.around}) for read in reads for one in read.blocks
            ],
            "documents": [
                _bag(read.blocks[0].row, {WHOLE: read.whole, NAMES: read.names})
                for read in reads
                if read.blocks
            ],
        }

    @cached_property
    def _means(self) -> Mapping[str, Mapping[str, float]]:
        """Of all fields, what is in no table included: a table may be empty."""
        return {
            name: {
                field_: self.tables.mean(name, field_, [bag.lengths[field_] for bag in bags])
                for field_ in PADDING[name]
            }
            for name, bags in self._bags.items()
        }

    @cached_property
    def _dead(self) -> frozenset[int]:
        """The uids of documents that the tables hold otherwise than the snapshot."""
        uids = self.tables.uids
        return frozenset(uids[doc_id] for doc_id in self.gone if doc_id in uids)

    @cached_property
    def waiting(self) -> frozenset[int]:
        """The seqs of the evidence that readers see itself (`View.unfiled`)."""
        view = self.view
        if not view.initialised:
            return frozenset()
        if view.drawn is None or not view.spec.has_entries:
            return frozenset(view.unfiled())
        over = [found for read in self.over.values() for found in read.entries]
        said = self.tables.said
        shown = (said.keys() - view.drawn) | (said.keys() & view.refused)
        waiting = {seq for seq in shown if not self._dead.issuperset(said[seq])}
        beside = (found.row.seq for found in over if found.row.group == SAID and found.row.seq)
        waiting.update(seq for seq in beside if seq not in view.drawn or seq in view.refused)
        for found in over:
            if found.cites and found.row.group != SAID and not view.is_note(found.row.doc_id):
                waiting.difference_update(found.cites)
        return frozenset(waiting - self.tables.cited(waiting, view, self._dead))

    # ── meaning ─────────────────────────────────────────────────────────────────────────────────

    def _near(self, kind: Kind, query: str, among: _Among) -> Near | None:
        """What the query means; None where vectors do not count, or cannot be had just now."""
        if not self.view.settings.search.vectors or not self.view.embedder.semantic or not query.strip():
            return None
        try:
            if kind not in self._dense:
                from infinimem.retrieval.dense import Dense

                over = [found for read in self.over.values() for found in getattr(read, kind)]
                self._dense[kind] = Dense(self.view, self.tables, kind, self._dead, over)
            return self._dense[kind].near(query, among.groups, among.waiting)
        except ModelUnavailable as error:
            log.warning("ranked by words alone: %s", error)
            return None


@dataclass(frozen=True)
class _Among:
    """Which rows are searched."""

    groups: frozenset[int]
    waiting: Collection[int]
    """The seqs of turns that are searched too."""

    def holds(self, group: int, seq: int) -> bool:
        return group in self.groups or (group == SAID and seq in self.waiting)


def _once(rows: Sequence[Row], order: Iterable[int]) -> list[int]:
    """The places of rows in an order, of the pieces of a long text the first."""
    found: dict[tuple[str, int], int] = {}
    for at in order:
        found.setdefault((rows[at].doc_id, rows[at].start), at)
    return [*found.values()]


def _tie(row: Row, newest: bool) -> tuple[int, int, str, int]:
    """What decides between rows of equal scores."""
    return -row.day * newest, -row.seq * newest, row.doc_id, row.start


def _shared(similarity: Sequence[float], best: float) -> list[float]:
    """What rows get for their nearness, in units of a score of words.

    Args:
        similarity: 0 or more.
        best: score of the row with the best words; 0 where no row holds any.
    """
    nearest = max(similarity)
    return [MEANING_WEIGHT * (best or 1.0) * one / nearest if nearest > 0 else one for one in similarity]
