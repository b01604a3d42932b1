"""What readers are made of: plain functions that gather, score, expand, order and pack, one after the other.

A stage says what it found as candidates, whose score is made of named parts by the strategy's one formula
(`ranked`); `Trace` notes the stages of all readers. No stage here asks a model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import chain, zip_longest
from time import perf_counter
from typing import Any

from infinimem import tokens
from infinimem.grounding.sentences import asks
from infinimem.index.pieces import Pieces
from infinimem.index.search import searcher
from infinimem.markdown.document import Document
from infinimem.model import Candidate, Evidence, Located, Retrieved, Stage
from infinimem.operations.provenance import replaced_by
from infinimem.store.spec import INSTRUCTIONS, STANDING, TOPICS
from infinimem.store.view import View, archive_of
from infinimem.terms import analyzer

RANKED, MOST = 50, 200
"""Pieces that are ranked for a budget: at first, and where they leave room."""
ROOM = 16
"""Tokens; what is shorter is hardly worth a place."""
CANDIDATES = 2000
"""Lines that are looked at: of a long message dozens are near to a question."""
STANDING_TOKENS = 200
"""Of instructions, and as much of preferences, at most; of a small budget a quarter and an eighth."""
SUPERSEDED_TOKENS = 200
FIRST = 5
"""Pieces that stay before the user's wishes: who takes few of a ranking takes what was asked for."""
FLOOR = 0.3
"""Of the best entry's score; what has less is not shown. It costs 0.1 % of LoCoMo's gold turns in 1,024
tokens and saves 8 % of the tokens; 0.4 costs 0.6 %."""
MANY = 300
"""Documents and uncited turns up to which each partition is looked at; of more the index ranks."""
K1, B = 1.5, 0.75

_SEQS = re.compile(r" \{([0-9]{1,18}(?:, [0-9]{1,18})*)\}(?=\n|\Z)")


# ── packing a budget ────────────────────────────────────────────────────────────────────────────


def best_that_fit(ranked: Callable[[int], Sequence[Retrieved]], budget: int) -> list[Retrieved]:
    """The best pieces that fit, as many being ranked as it takes to spend the budget."""
    items = ranked(RANKED)
    packed = pack(items, budget)
    more = len(items) == RANKED and budget - size(packed) >= ROOM
    return pack(ranked(MOST), budget) if more else packed


def pack(
    items: Iterable[Retrieved], budget: int, count: Callable[[str], int] = tokens.count
) -> list[Retrieved]:
    """Return the best items that fit, in their order, without lines that an earlier piece already shows."""
    packed: list[Retrieved] = []
    left = budget
    for item in items:
        if any(
            taken.doc_id == item.doc_id
            and taken.start_line <= item.start_line
            and item.end_line <= taken.end_line
            for taken in packed
        ):
            continue
        size = count(item.text)
        if size <= left:
            packed.append(item)
            left -= size
    return packed


def size(items: Iterable[Retrieved | Located]) -> int:
    """Tokens of all texts together."""
    return sum(tokens.count(item.text) for item in items)


def near(found: Sequence[Retrieved]) -> list[Retrieved]:
    """These, best first, without those that are nothing beside the first."""
    return [piece for piece in found if piece.score >= FLOOR * found[0].score]


def ranked(
    found: Iterable[Candidate],
    formula: Callable[[Mapping[str, float]], float],
    ties: Callable[[Candidate], Any],
) -> list[Candidate]:
    """Return candidates with their scores by a formula of their parts, best first; `ties` ends in an id."""
    scored = (replace(one, score=formula(one.parts)) for one in found)
    return sorted(scored, key=lambda one: (-one.score, ties(one)))


# ── lines, and what belongs beside them ─────────────────────────────────────────────────────────


def spread(view: View, question: str) -> list[Retrieved]:
    """Return lines for the order of things, or a summary: the first are from as many sessions and turns as
    can be; of a question about what the user said the user's own, if there are any."""
    found = searcher(view).entries(question, CANDIDATES)
    if asks("my words", question):
        found = [item for item in found if item.source in ("user", "human")] or found
    by_turn = _by_turns(found, lambda item: item.origin[:1] or (item.doc_id, item.start_line))
    return _by_turns(by_turn, lambda item: (view.entry(next(iter(item.origin), 0)) or item).doc_id)


def _by_turns(items: Iterable[Retrieved], of: Callable[[Retrieved], Hashable]) -> list[Retrieved]:
    """The first of each group, then the second of each; groups and what is in them keep their order."""
    groups: dict[Hashable, list[Retrieved]] = {}
    for item in items:
        groups.setdefault(of(item), []).append(item)
    return [item for row in zip_longest(*groups.values()) for item in row if item is not None]


def with_beside(view: View, question: str, items: Sequence[Retrieved], budget: int) -> list[Retrieved]:
    """The pieces, best first, with what the user asked for once and for all, and with what they replaced if
    the question is about the past, within a budget of tokens."""
    share = budget // 8
    past = superseded(view, items, min(SUPERSEDED_TOKENS, share)) if asks("past", question) else {}
    found = [
        piece for item in items for piece in (item, *(old for seq in item.seqs for old in past.get(seq, ())))
    ]
    wishes = standing(view, question, budget)
    return pack([*found[:FIRST], *wishes, *found[FIRST:]], budget) if wishes or past else list(items)


def standing(view: View, question: str, budget: int) -> list[Retrieved]:
    """Return the newest instructions, and the preferences that share a word with the question, within a
    share."""
    if STANDING not in view or view.group(STANDING) != "live":  # another strategy's
        return []
    search, document = searcher(view), view.document(STANDING)
    lines = search.order(question, search.entries_at(STANDING, 1, len(document.lines)))
    always = [line for line in lines if line.headings[-1:] == (INSTRUCTIONS,)]
    others = (line for line in lines if line not in always and line.score)
    newest = sorted(always, key=lambda line: (line.time or "", line.seqs), reverse=True)
    return [
        *pack(newest, min(STANDING_TOKENS, budget // 4)),
        *pack(others, min(STANDING_TOKENS, budget // 8)),
    ]


def superseded(view: View, items: Iterable[Retrieved], room: int) -> dict[int, list[Retrieved]]:
    """The archived lines that lines of these pieces replaced, by the seq of the one that replaced them."""
    shown = {seq: item.doc_id for item in items for seq in item.seqs if item.doc_id.startswith(TOPICS)}
    archives = (archive_of(doc_id) for doc_id in dict.fromkeys(shown.values()))
    places = (place for doc_id in archives if doc_id in view for place in view.document(doc_id).entries)
    gone = (place for place in places if replaced_by(place.headings) in shown)
    lines = (searcher(view).entries_at(old.doc_id, old.start_line, old.end_line)[0] for old in gone)
    found: dict[int, list[Retrieved]] = {}
    for line in pack(lines, room):
        found.setdefault(replaced_by(line.headings), []).append(line)
    return found


# ── whole documents, or texts of them ───────────────────────────────────────────────────────────


def text_id(view: View, doc_id: str) -> str:
    """Return the id that the text of a document has."""
    return view.spec.texts + doc_id.split("/", 1)[-1]


def digest(document: Document, of: Collection[int] | None = None) -> str:
    """Return what a text of these lines, or `of` some of them, wherever they stand, says of itself."""
    some = (place for place in document.entries if of is None or place.seq in of)
    lines = sorted((place.seq, place.entry.line.rstrip()) for place in some)
    return sha256("\n".join(line for _, line in lines).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def current_text(view: View, doc_id: str) -> Document | None:
    """Return the text of a document if one was written of the very lines that stand in it."""
    if not view.spec.texts or not doc_id.startswith(view.spec.writes):
        return None
    name = text_id(view, doc_id)
    text = view.document(name) if name in view else None
    is_current = text and text.header.values.get("digest") == digest(view.document(doc_id))
    return text if is_current else None


def as_shown(view: View, doc_id: str) -> Document:
    """Return what readers show for a document: itself, or its text if the strategy `shows` those."""
    own = view.settings.of(view.spec.settings) if view.spec.settings else None
    text = current_text(view, doc_id) if getattr(own, "shows", "") == "free" else None
    return text or view.document(doc_id)


def shown(view: View, doc_id: str, start: int = 1, end: int | None = None) -> Retrieved:
    """Return a document's body as readers show it, or some lines of that. A text cites the turns behind
    the lines that it names (`{41, 43}` ends an item); if it names none, behind all lines of the document."""
    search, document = searcher(view), as_shown(view, doc_id)
    told = search.lines_at(document.id, start, end or len(document.lines))
    if document.id == doc_id:
        return told
    lines = search.entries_at(doc_id, 1, len(view.document(doc_id).lines))
    here = set(chain.from_iterable(line.seqs for line in lines))
    ends = (_SEQS.search(line) for line in told.text.split("\n"))
    seqs = tuple(
        tuple(seq for seq in map(int, end[1].split(", ")) if seq in here) if end else () for end in ends
    )
    named = set(chain.from_iterable(seqs))
    behind = [line for line in lines if named.intersection(line.seqs)] or lines
    sources = {line.source for line in behind}
    return replace(
        told,
        text=_SEQS.sub("", told.text),
        told=seqs,
        origin=tuple(dict.fromkeys(seq for line in behind for seq in line.origin)),
        source=sources.pop() if len(sources) == 1 else None,
    )


# ── partitions ──────────────────────────────────────────────────────────────────────────────────


class _Partitions:
    """Heading blocks, and turns that no entry cites yet: document, first and last line as that is shown."""

    def __init__(self, view: View, *_: object) -> None:
        from rank_bm25 import BM25Okapi

        pieces = Pieces(view)
        terms = {
            (doc_id, block.start_line, block.end_line): terms
            for doc_id in view.ids()
            for block, terms in pieces.parts(as_shown(view, doc_id))
        }
        for place in filter(None, map(view.entry, view.unfiled())):
            lines = (place.start_line, place.end_line)
            terms[place.doc_id, *lines] = pieces.terms_at(view.document(place.doc_id), *lines)
        self.terms = {place: some.split() for place, some in terms.items() if some}
        self.engine = BM25Okapi([*self.terms.values()], k1=K1, b=B) if self.terms else None


def best_partitions(view: View, question: str, limit: int, without: Collection[str] = ()) -> list[Retrieved]:
    """Return the partitions that answer a question best by Okapi BM25; of a large library the index ranks.
    Source: HeadingPartitions and BM25Fallback of Algorithm 3, arXiv 2606.10677."""
    if len(view.ids()) + len(view.unfiled()) > MANY:
        found = searcher(view).blocks(question, limit * (len(without) + 1))
        return [block for block in found if block.doc_id not in without][:limit]
    held = view.derived(_Partitions)
    terms = analyzer(view.settings.search.language).query_terms(question)
    wanted = frozenset(terms)
    rows = {
        at: place
        for at, (place, own) in enumerate(held.terms.items())
        if place[0] not in without and not wanted.isdisjoint(own)
    }
    scores = held.engine.get_batch_scores(terms, [*rows]) if held.engine else ()
    best = sorted((-round(score, 6), place) for score, place in zip(scores, rows.values(), strict=True))
    return [replace(shown(view, *place), score=-score) for score, place in best[:limit]]


# ── the trace ───────────────────────────────────────────────────────────────────────────────────


class Trace:
    """The steps of a reader as they end, behind those `before`, each with its time."""

    def __init__(self, before: Iterable[Stage] = ()) -> None:
        self._steps = list(before)
        self._began = perf_counter()

    def add(self, step: Stage) -> None:
        """Note a stage that ends now."""
        now = perf_counter()
        self._steps.append(replace(step, ms=round((now - self._began) * 1000, 3)))
        self._began = now

    def evidence(self, items: Iterable[Retrieved], *asked: str) -> Evidence:
        """What is shown in the end, which is the last step."""
        shown = tuple(items)
        self.add(Stage("evidence", asked, candidates(shown), size(shown)))
        return Evidence(shown, tuple(self._steps))


def candidates(items: Iterable[Retrieved]) -> tuple[Candidate, ...]:
    """Pieces as a step names them."""
    return tuple(
        Candidate(f"{item.doc_id}:{item.start_line}-{item.end_line}", score=item.score) for item in items
    )
