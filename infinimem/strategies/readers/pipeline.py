"""What readers are made of: plain functions that gather, score, expand, order and pack, one after the other.

A stage says what it found as candidates, whose score is made of named parts by the strategy's one formula
(`ranked`). A reader that goes deeper step by step ends when a model or a rule says that there is enough
(`deepen`). `Trace` notes the stages of all readers in the same shape (model.Step).

The stages over documents make heading blocks within a budget of what was found. No stage here asks a model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from time import perf_counter
from typing import Any

from infinimem import tokens
from infinimem.errors import DocumentNotFound
from infinimem.grounding.asked import asked_for
from infinimem.llm.base import LLM
from infinimem.markdown.document import Document
from infinimem.model import CURRENT, Candidate, Evidence, Retrieved, Step
from infinimem.retrieval.origins import pack
from infinimem.retrieval.searcher import Searcher, searcher
from infinimem.settings import ReaderSettings
from infinimem.store.spec import EVIDENCE
from infinimem.store.view import View
from infinimem.strategies.readers.beside import with_beside
from infinimem.strategies.readers.spread import spread

MARGIN = 10
"""Lines before and after a place that is in no block."""
FLOOR = 0.15
"""Of the best block's score; what has less is not shown. On LoCoMo's development half it costs 0.25 % of the
gold turns and saves 5.5 % of the tokens; 0.2 costs 1 %."""
RECENT = 20
"""Entries of CURRENT that are shown beside what was found, at most."""

Enough = Callable[[], str]
"""Why there is enough, in a word or two; "" where there is not."""


class Trace:
    """The steps of a reader as they end; the time of each runs from the end of the one before."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self._began = perf_counter()

    def add(self, step: Step) -> None:
        """Note a stage that ends now."""
        now = perf_counter()
        self._steps.append(replace(step, ms=round((now - self._began) * 1000, 3)))
        self._began = now

    def evidence(self, items: Iterable[Retrieved], *asked: str) -> Evidence:
        """What is shown in the end, which is the last step."""
        shown = tuple(items)
        self.add(Step("evidence", asked, candidates(shown), size(shown)))
        return Evidence(shown, tuple(self._steps))


def candidates(items: Iterable[Retrieved | LineRange]) -> tuple[Candidate, ...]:
    """Pieces as a step names them."""
    return tuple(
        Candidate(f"{item.doc_id}:{item.start_line}-{item.end_line}", score=getattr(item, "score", 0.0))
        for item in items
    )


def listed(document: Document) -> dict[str, str]:
    """A document as a model is told of it (llm/tasks.py, shape `doc`)."""
    told = {"id": document.id, "summary": document.summary}
    return told | ({"title": document.title} if document.title else {})


def size(items: Iterable[Retrieved]) -> int:
    """Tokens of all texts together."""
    return sum(tokens.count(item.text) for item in items)


def ranked(
    found: Iterable[Candidate],
    formula: Callable[[Mapping[str, float]], float],
    ties: Callable[[Candidate], Any],
) -> list[Candidate]:
    """Candidates with their scores, best first.

    Args:
        found: with their parts.
        formula: what parts come to; a strategy has one.
        ties: what orders those of equal score; it ends in an id.
    """
    scored = (replace(one, score=formula(one.parts)) for one in found)
    return sorted(scored, key=lambda one: (-one.score, ties(one)))


def deepen(trace: Trace, looks: Iterable[Step], rules: Sequence[Enough], most: int) -> str:
    """Look deeper, a step at a time, until there is enough.

    Args:
        trace: gets each step, the last with why it was the last.
        looks: a step each; one with a `stop` is a model's word that it has enough.
        rules: asked after each look, in this order.
        most: looks.

    Returns:
        Why it ended; "" where there was nothing deeper.
    """
    for number, look in enumerate(islice(looks, most), 1):
        stop = look.stop or next(filter(None, (rule() for rule in rules)), "" if number < most else "rounds")
        trace.add(replace(look, stop=stop))
        if stop:
            return stop
    return ""


# ── stages over documents ───────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class LineRange:
    """Lines of a document that matter, both ends included."""

    doc_id: str
    start_line: int
    end_line: int


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


def best_blocks(request: Request, limit: int) -> list[Retrieved]:
    """The blocks that answer the question best, without those that are nothing beside the first."""
    blocks = request.search.blocks(request.question, limit)
    return [block for block in blocks if block.score >= FLOOR * blocks[0].score]


def blocks_around(request: Request, places: Iterable[LineRange]) -> list[Retrieved]:
    """The heading blocks that hold these lines, or the lines with a margin; each block once, in that order.

    Of a session it is the turns themselves and those beside them: the reply, or what "it" is.
    A place in a document's header stands for what the document says on the question: its best block. One
    in a document that does not exist is passed over: models invent ids.

    Source: Algorithm 3 of arXiv 2606.10677.
    """
    found: dict[tuple[str, int, int], Retrieved] = {}
    for place in places:
        try:
            doc_id = request.view.resolve(place.doc_id)
        except DocumentNotFound:
            continue
        for block in _blocks(request, doc_id, *sorted((place.start_line, place.end_line))):
            found.setdefault((doc_id, block.start_line, block.end_line), block)
    return [block for block in found.values() if block.text.strip()]


def _blocks(request: Request, doc_id: str, start: int, end: int) -> list[Retrieved]:
    document, search = request.view.document(doc_id), request.search
    if doc_id.startswith(EVIDENCE) and (said := document.entries_in(start, end)):
        at = document.entries.index(said[0])
        near = document.entries[max(at - 1, 0) : at + len(said) + 1]
        return [search.lines_at(doc_id, near[0].start_line, near[-1].end_line)]
    if end <= document.header.end:
        return search.order(request.question, search.blocks_at(doc_id, 1, len(document.lines)))[:1]
    return search.blocks_at(doc_id, start, end) or [search.lines_at(doc_id, start - MARGIN, end + MARGIN)]


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


def fallback(request: Request, items: Sequence[Retrieved]) -> list[Retrieved]:
    """The best blocks beside these, where they are none or few tokens.

    Source: Algorithm 3 of arXiv 2606.10677 (fallback_topk, min_retrieval_tokens).
    """
    settings = request.settings
    if items and size(items) >= settings.min_tokens:
        return []
    wanted = settings.fallback_small if items else settings.fallback_empty
    taken = {(item.doc_id, item.start_line) for item in items}
    blocks = best_blocks(request, len(items) + wanted)
    more = [block for block in blocks if (block.doc_id, block.start_line) not in taken]
    return more[:wanted]


def assemble(request: Request, items: Iterable[Retrieved]) -> list[Retrieved]:
    """What the answer is read from: the items, best first, with what belongs beside them, then the newest
    entries of CURRENT, where the strategy has one; up to a quarter of the budget is kept for those. Where the
    question asks for the order of things or for a summary, half is kept for lines from the whole library."""
    view, budget = request.view, request.budget
    if asked_for(request.question) != "fact":
        items = [*pack(items, budget // 2), *spread(view, request.question)]
    kept = view.spec.buffer is not None and CURRENT in view
    newest = request.search.entries_at(CURRENT, 1, len(view.buffer.lines)) if kept else []
    newest = newest[: -RECENT - 1 : -1]
    room = min(budget // 4, size(newest))
    found = with_beside(view, request.question, pack(items, budget - room), budget - room)
    return pack([*found, *newest], budget)
