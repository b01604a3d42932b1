"""Which shared reader collects the evidence; those of one model call or none stand here.

Source: Infini Memory-H and its ablations, arXiv 2606.10677.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from infinimem.errors import UsageError
from infinimem.grounding.asked import about_all
from infinimem.llm import tasks
from infinimem.llm.base import LLM
from infinimem.model import Candidate, Evidence, Stage
from infinimem.settings import ReaderSettings
from infinimem.store.view import View
from infinimem.strategies.readers.agentic import ROUND
from infinimem.strategies.readers.pipeline import (
    Request,
    Trace,
    assemble,
    best_entries,
    bodies,
    candidates,
    listed,
)

OFFERED = 200
"""Documents whose summaries the model chooses among: the nearest to the question."""


def read_agentic(request: Request) -> Evidence:
    """What an answer begins with; its model may search on (agentic.py).

    Where the whole is asked for, the order of things or a summary, it begins with half the budget: no search
    for a word finds what is missing there.
    """
    first = max(ROUND, request.budget // 2) if about_all(request.question) else ROUND
    return read_bm25(replace(request, budget=min(request.budget, first)))


def read_hybrid(request: Request) -> Evidence:
    """The documents that a model selects by their summaries and nothing beside them; where it selects none,
    the best entries."""
    trace = Trace()
    if chosen := _select(request, trace):
        return trace.evidence(assemble(request, bodies(request, chosen, request.budget)))
    return _entries(request, trace)


def read_summary(request: Request) -> Evidence:
    """Only the documents that a model selects by their summaries."""
    trace = Trace()
    chosen = _select(request, trace)
    return trace.evidence(assemble(request, bodies(request, chosen, request.budget)))


def read_bm25(request: Request) -> Evidence:
    """Only the best entries; no model is called."""
    return _entries(request, Trace())


def _entries(request: Request, trace: Trace) -> Evidence:
    found = best_entries(request)
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
    "agent": read_agentic,
    "hybrid": read_hybrid,
    "bm25": read_bm25,
    "summary": read_summary,
}
READERS = tuple(_READERS)


def collect(
    llm: LLM, view: View, question: str, reader: str, settings: ReaderSettings, budget: int
) -> Evidence:
    """Evidence for an answer, by one of `READERS` (arguments: `Request`).

    Raises:
        UsageError: there is no such reader.
        ModelUnavailable: the model does not answer.
    """
    if reader not in _READERS:
        raise UsageError(f"{view.spec.name} has no reader {reader!r}; choose {', '.join(READERS)}")
    return _READERS[reader](Request(llm, view, question, settings, budget))
