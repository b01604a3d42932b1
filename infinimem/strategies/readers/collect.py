"""Which shared reader collects the evidence; those of one model call or none stand here.

Source: Infini Memory-H and its ablations, arXiv 2606.10677.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from infinimem.errors import UsageError
from infinimem.grounding.sentences import asks
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


def _begun(request: Request) -> Evidence:
    """What an answer begins with; its model may search on (agentic.py).

    Where the whole is asked for, it begins with half the budget: no search for a word finds what is missing.
    """
    first = max(ROUND, request.budget // 2) if asks("all", request.question) else ROUND
    return _entries(replace(request, budget=min(request.budget, first)))


def _documents(request: Request, *, or_entries: bool) -> Evidence:
    """The documents that a model selects by their summaries and nothing beside them; entries where there are
    none, or none fits."""
    trace = Trace()
    found = bodies(request, _select(request, trace), request.budget)
    if or_entries and not found:
        return _entries(request, trace)
    return trace.evidence(assemble(request, found))


def _entries(request: Request, trace: Trace | None = None) -> Evidence:
    """Only the best entries; no model is called."""
    trace = trace or Trace()
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
    "agent": _begun,
    "hybrid": partial(_documents, or_entries=True),
    "bm25": _entries,
    "summary": partial(_documents, or_entries=False),
}
READERS = tuple(_READERS)


def collect(
    llm: LLM, view: View, question: str, reader: str, settings: ReaderSettings, budget: int
) -> Evidence:
    """Evidence for an answer by one of `READERS` (arguments: `Request`); UsageError for any other."""
    if reader not in _READERS:
        raise UsageError(f"{view.spec.name} has no reader {reader!r}; choose {', '.join(READERS)}")
    return _READERS[reader](Request(llm, view, question, settings, budget))
