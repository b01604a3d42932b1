"""Which shared reader collects the evidence.

Source: Infini Memory-H, its ablations, and the evidence of Infini Memory-A, arXiv 2606.10677.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from infinimem.errors import UsageError
from infinimem.grounding.asked import about_all
from infinimem.llm import tasks
from infinimem.llm.base import LLM
from infinimem.model import Candidate, Evidence, Retrieved, Stage
from infinimem.store.view import View
from infinimem.strategies.readers.agentic import ROUND, Selection
from infinimem.strategies.readers.partitions import best_partitions
from infinimem.strategies.readers.pipeline import (
    Request,
    Trace,
    assemble,
    best_entries,
    best_that_fit,
    bodies,
    candidates,
    listed,
    size,
)

OFFERED = 200
"""Documents whose summaries the model chooses among: the nearest to the question."""


def _agent(request: Request) -> Evidence:
    """What an answer begins with, whose model may search on (agentic.py); in the paper's way all of it.

    Where the whole is asked for, it begins with half the budget: no search for a word finds what is missing.
    """
    if request.settings.agent == "paper":
        return _named(request)
    first = max(ROUND, request.budget // 2) if about_all(request.question) else ROUND
    return _entries(replace(request, budget=min(request.budget, first)))


def _named(request: Request) -> Evidence:
    """What a model that searches names: the heading blocks around its lines, whole documents; where that is
    little, the best partitions beside it."""
    trace, search = Trace(), Selection(request.view, request.question)
    for _ in search.rounds(request.llm, {"question": request.question}, (), request.budget, trace):
        pass
    blocks = [block for lines in search.snippets for block in request.search.blocks_at(*lines)]
    found = [*dict.fromkeys(blocks), *bodies(request, search.docs, request.budget)]
    trace.add(Stage("named", found=candidates(found), tokens=size(found)))
    if size(found) < request.settings.min_retrieval_tokens:
        rest = best_partitions(request.view, request.question, request.settings.fallback_topk)
        found += _noted(request, trace, rest)
    return trace.evidence(assemble(request, found))


def _selected(request: Request, *, share: float, partitions: bool) -> Evidence:
    """The documents that a model selects by their summaries, within a share of the budget; then the best
    partitions of all others, or nothing."""
    trace = Trace()
    chosen = _select(request, trace)
    found = bodies(request, chosen, int(request.budget * share))
    if partitions:
        ranked = partial(best_partitions, request.view, request.question, without=chosen)
        found += _noted(request, trace, best_that_fit(ranked, request.budget - size(found)))
    return trace.evidence(assemble(request, found))


def _noted(request: Request, trace: Trace, partitions: list[Retrieved]) -> list[Retrieved]:
    trace.add(Stage("partitions", (request.question,), candidates(partitions)))
    return partitions


def _entries(request: Request) -> Evidence:
    """Only the best entries, as the library ranks them; no model is called."""
    trace, found = Trace(), best_entries(request)
    trace.add(Stage("entries", (request.question,), candidates(found)))
    return trace.evidence(assemble(request, found))


def _select(request: Request, trace: Trace) -> list[str]:
    """Ids that the model chose, without those that it made up."""
    question, limit = request.question, request.settings.search_limit
    offered = request.search.documents(question, OFFERED)
    docs = [listed(request.view.document(doc_id)) for doc_id in offered]
    reply = request.llm.complete(tasks.SELECT, {"question": question, "docs": docs, "limit": str(limit)})
    named = dict.fromkeys(reply.data["ids"] if reply.data else ())
    chosen = [doc_id for doc_id in named if doc_id in offered][:limit]
    trace.add(Stage("select", (question,), tuple(map(Candidate, chosen)), failure=reply.failure or ""))
    return chosen


_READERS: Mapping[str, Callable[[Request], Evidence]] = {
    "agent": _agent,
    "hybrid": partial(_selected, share=2 / 3, partitions=True),
    "bm25": _entries,
    "summary": partial(_selected, share=1, partitions=False),
}
READERS = tuple(_READERS)


def collect(llm: LLM, view: View, question: str, reader: str, budget: int) -> Evidence:
    """Evidence for an answer by one of `READERS` (arguments: `Request`); UsageError for any other."""
    if reader not in _READERS:
        raise UsageError(f"{view.spec.name} has no reader {reader!r}; choose {', '.join(READERS)}")
    return _READERS[reader](Request(llm, view, question, budget))
