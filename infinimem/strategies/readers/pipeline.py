"""What readers are made of: plain functions that gather, score, expand, order and pack, one after the other.

A stage says what it found as candidates, whose score is made of named parts by the strategy's one formula
(`ranked`). `Trace` notes the stages of all readers in the same shape (model.Stage).

Beside what was found belongs what the user asked for once and for all, and what was superseded. A question
about the order of things, or for a summary, has the nearest line of each session first, then the second of
each. No stage here asks a model.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

from infinimem import tokens
from infinimem.grounding.sentences import asks
from infinimem.model import Candidate, Evidence, Located, Retrieved, Stage
from infinimem.operations.provenance import replaced_by
from infinimem.retrieval.searcher import searcher
from infinimem.store.spec import INSTRUCTIONS, STANDING, TOPICS
from infinimem.store.view import View, archive_of

RANKED, MOST = 50, 200
"""Pieces that are ranked for a budget: at first, and where they leave room: 50 entries say about 1,500
tokens."""
ROOM = 16
"""Tokens; what is shorter is hardly worth a place."""


def best_that_fit(ranked: Callable[[int], Sequence[Retrieved]], budget: int) -> list[Retrieved]:
    """The best pieces that fit, as many being ranked as it takes to spend the budget."""
    items = ranked(RANKED)
    packed = pack(items, budget)
    more = len(items) == RANKED and budget - size(packed) >= ROOM
    return pack(ranked(MOST), budget) if more else packed


def pack(
    items: Iterable[Retrieved], budget: int, count: Callable[[str], int] = tokens.count
) -> list[Retrieved]:
    """The best items that fit, best first, in their order.

    A piece that does not fit is passed over for smaller ones behind it; a line that an earlier piece
    already shows is left out.
    """
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


CANDIDATES = 2000
"""Lines that are looked at: of a long message dozens are near to a question."""


def best_lines(view: View, question: str, budget: int) -> list[Retrieved]:
    """The lines that answer a question, within a budget of tokens: the nearest, or as `spread`."""
    if asks("all", question):
        return pack(spread(view, question), budget)
    return best_that_fit(partial(searcher(view).entries, question), budget)


def spread(view: View, question: str) -> list[Retrieved]:
    """Lines in an order in which however many of the first are from as many sessions and turns as can be.

    Of a question about what the user said the user's own lines, where there are any.
    """
    found = searcher(view).entries(question, CANDIDATES)
    if asks("my words", question):
        found = [item for item in found if item.source in ("user", "human")] or found

    def session(item: Retrieved) -> str:
        place = view.entry(item.origin[0]) if item.origin else None
        return place.doc_id if place else item.doc_id

    return _by_turns(
        _by_turns(found, lambda item: item.origin[:1] or (item.doc_id, item.start_line)), session
    )


def _by_turns(items: Iterable[Retrieved], of: Callable[[Retrieved], Hashable]) -> list[Retrieved]:
    """The first of each group, then the second of each; groups and what is in them keep their order."""
    groups: dict[Hashable, list[Retrieved]] = {}
    for item in items:
        groups.setdefault(of(item), []).append(item)
    rows: Sequence[list[Retrieved]] = [*groups.values()]
    return [row[at] for at in range(max(map(len, rows), default=0)) for row in rows if at < len(row)]


STANDING_TOKENS = 200
"""Of instructions, and as much of preferences, at most; of a small budget a quarter and an eighth."""
SUPERSEDED_TOKENS = 200
FIRST = 5
"""Pieces that stay before the user's wishes: who takes few of a ranking takes what was asked for."""


def with_beside(view: View, question: str, items: Sequence[Retrieved], budget: int) -> list[Retrieved]:
    """The pieces, best first, with what belongs beside them, within a budget of tokens."""
    share = budget // 8
    past = superseded(view, items, min(SUPERSEDED_TOKENS, share)) if asks("past", question) else {}
    found = [
        piece for item in items for piece in (item, *(old for seq in item.seqs for old in past.get(seq, ())))
    ]
    wishes = standing(view, question, budget)
    return pack([*found[:FIRST], *wishes, *found[FIRST:]], budget) if wishes or past else list(items)


def standing(view: View, question: str, budget: int) -> list[Retrieved]:
    """What the user asked for once and for all, in a part of the budget: the newest instructions, and the
    preferences that share a word with the question, the nearest first."""
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


FLOOR = 0.3
"""Of the best entry's score; what has less is not shown. On LoCoMo's development half it costs 0.1 % of the
gold turns in 1,024 tokens and saves 8 % of the tokens; 0.4 costs 0.6 %."""


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


def size(items: Iterable[Retrieved | Located]) -> int:
    """Tokens of all texts together."""
    return sum(tokens.count(item.text) for item in items)


def ranked(
    found: Iterable[Candidate],
    formula: Callable[[Mapping[str, float]], float],
    ties: Callable[[Candidate], Any],
) -> list[Candidate]:
    """Candidates with their scores, best first.

    Args:
        formula: what parts come to; a strategy has one.
        ties: what orders those of equal score; it ends in an id.
    """
    scored = (replace(one, score=formula(one.parts)) for one in found)
    return sorted(scored, key=lambda one: (-one.score, ties(one)))


def near(found: Sequence[Retrieved]) -> list[Retrieved]:
    """These, best first, without those that are nothing beside the first."""
    return [piece for piece in found if piece.score >= FLOOR * found[0].score]
