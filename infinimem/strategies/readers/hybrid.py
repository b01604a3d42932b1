"""The readers of one model call or none: hybrid (summaries and BM25), BM25 alone, summaries alone.

Source: Infini Memory-H and its ablations, arXiv 2606.10677.
"""

from __future__ import annotations

from infinimem.llm import tasks
from infinimem.llm.base import LLM
from infinimem.model import Evidence
from infinimem.retrieval.searcher import searcher
from infinimem.settings import ReaderSettings
from infinimem.store.view import View
from infinimem.strategies.readers.evidence_builder import assemble, bodies

OFFERED = 200
"""Documents whose summaries the model chooses among: the nearest to the question."""


def read_hybrid(
    llm: LLM,
    view: View,
    question: str,
    settings: ReaderSettings,
    budget: int,
) -> Evidence:
    """The documents that a model selects by their summaries, and the best blocks of all others.

    Args:
        llm: answers one `select`.
        view: the snapshot.
        question: in plain words.
        settings: `search_limit` bounds the documents and the blocks.
        budget: tokens of the evidence; at most two thirds go to the selected documents.

    Raises:
        ModelUnavailable: the model does not answer.
    """
    chosen, trace = _select(llm, view, question, settings.search_limit)
    items = bodies(view, question, chosen, budget * 2 // 3)
    blocks = searcher(view).blocks(question, settings.search_limit * (len(chosen) + 1))
    rest = [block for block in blocks if block.doc_id not in chosen][: settings.search_limit]
    trace["blocks"] = len(rest)
    return Evidence(assemble(view, items + rest, budget), (trace,))


def read_summary(
    llm: LLM,
    view: View,
    question: str,
    settings: ReaderSettings,
    budget: int,
) -> Evidence:
    """Only the documents that a model selects by their summaries. Arguments as `read_hybrid`."""
    chosen, trace = _select(llm, view, question, settings.search_limit)
    return Evidence(assemble(view, bodies(view, question, chosen, budget), budget), (trace,))


def read_bm25(
    view: View,
    question: str,
    settings: ReaderSettings,
    budget: int,
) -> Evidence:
    """Only the best blocks; no model is called. Arguments as `read_hybrid`."""
    blocks = searcher(view).blocks(question, settings.search_limit)
    return Evidence(assemble(view, blocks, budget), ({"blocks": len(blocks)},))


def _select(llm: LLM, view: View, question: str, limit: int) -> tuple[list[str], dict[str, object]]:
    """Ids that the model chose, without those that it made up."""
    offered = searcher(view).documents(question, OFFERED)
    docs = [{"id": doc_id, "summary": view.document(doc_id).summary} for doc_id in offered]
    reply = llm.complete(tasks.SELECT, {"question": question, "docs": docs, "limit": str(limit)})
    if reply.data is None:
        return [], {"selected": [], "failure": reply.failure}
    chosen = [doc_id for doc_id in dict.fromkeys(reply.data["ids"]) if doc_id in offered][:limit]
    return chosen, {"selected": chosen}
