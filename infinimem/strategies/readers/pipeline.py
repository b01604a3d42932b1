"""What readers are made of: plain functions that gather, score, expand, order and pack, one after the other.

A stage says what it found as candidates, whose score is made of named parts by the strategy's one formula
(`ranked`). `Trace` notes the stages of all readers in the same shape (model.Stage).

The stages over documents make evidence within a budget of what was found. No stage here asks a model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any

from infinimem import tokens
from infinimem.grounding.asked import about_all
from infinimem.llm.base import LLM
from infinimem.markdown.document import Document
from infinimem.model import CURRENT, Candidate, Evidence, Located, Retrieved, Stage
from infinimem.retrieval.searcher import Searcher, searcher
from infinimem.settings import ReaderSettings
from infinimem.store.view import View
from infinimem.strategies.readers.beside import with_beside
from infinimem.strategies.readers.budget import best_that_fit, pack
from infinimem.strategies.readers.spread import spread

FLOOR = 0.3
"""Of the best entry's score; what has less is not shown. On LoCoMo's development half it costs 0.1 % of the
gold turns in 1,024 tokens and saves 8 % of the tokens; 0.4 costs 0.6 %."""
RECENT = 20
"""Entries of CURRENT that are shown beside what was found, at most."""


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


def listed(document: Document) -> dict[str, str]:
    """A document as a model is told of it (llm/tasks.py, shape `doc`)."""
    told = {"id": document.id, "summary": document.summary}
    return told | ({"title": document.title} if document.title else {})


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


# ── stages over documents ───────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Request:
    """A question to a snapshot, the model that may be asked, and the tokens that evidence may take."""

    llm: LLM
    view: View
    question: str
    settings: ReaderSettings
    budget: int

    @property
    def search(self) -> Searcher:
        """Of the snapshot."""
        return searcher(self.view)


def best_entries(request: Request) -> list[Retrieved]:
    """The entries that answer the question best within the budget."""
    return near(best_that_fit(partial(request.search.entries, request.question), request.budget))


def near(found: Sequence[Retrieved]) -> list[Retrieved]:
    """These, best first, without those that are nothing beside the first."""
    return [piece for piece in found if piece.score >= FLOOR * found[0].score]


def bodies(request: Request, doc_ids: Iterable[str], budget: int) -> list[Retrieved]:
    """Whole documents while they fit the budget; of one that does not, the best blocks that do."""
    found: list[Retrieved] = []
    for doc_id in doc_ids:
        left = budget - size(found)
        document = request.view.document(doc_id)
        body = request.search.lines_at(doc_id, 1, len(document.lines))
        if tokens.count(body.text) <= left:
            found.append(body)
        else:
            blocks = request.search.blocks_at(doc_id, 1, len(document.lines))
            found += pack(request.search.order(request.question, blocks), left)
    return [item for item in found if item.text.strip()]


def assemble(request: Request, items: Iterable[Retrieved]) -> list[Retrieved]:
    """What the answer is read from: the items, best first, with what belongs beside them, then the newest
    entries of CURRENT, where the strategy has one; up to a quarter of the budget is kept for those. Where the
    question asks for the order of things or for a summary, half is kept for lines from the whole library."""
    view, budget = request.view, request.budget
    if about_all(request.question):
        items = [*pack(items, budget // 2), *spread(view, request.question)]
    kept = view.spec.buffer is not None and CURRENT in view
    newest = request.search.entries_at(CURRENT, 1, len(view.buffer.lines)) if kept else []
    newest = newest[: -RECENT - 1 : -1]
    room = min(budget // 4, size(newest))
    found = with_beside(view, request.question, pack(items, budget - room), budget - room)
    return pack([*found, *newest], budget)
