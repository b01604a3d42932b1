"""Which shared reader collects the evidence."""

from __future__ import annotations

from infinimem.errors import UsageError
from infinimem.llm.base import LLM
from infinimem.model import Evidence
from infinimem.settings import ReaderSettings
from infinimem.store.view import View
from infinimem.strategies.readers.agentic import read_agentic
from infinimem.strategies.readers.hybrid import read_bm25, read_hybrid, read_summary
from infinimem.tools import Toolbox

READERS = ("agent", "hybrid", "bm25", "summary")


def collect(
    llm: LLM, view: View, question: str, reader: str, settings: ReaderSettings, budget: int
) -> Evidence:
    """Evidence for an answer.

    Args:
        llm: the model that helps.
        view: the snapshot.
        question: in plain words.
        reader: one of `READERS`.
        settings: rounds and limits.
        budget: tokens of the evidence.

    Raises:
        UsageError: there is no such reader.
        ModelUnavailable: the model does not answer.
    """
    if reader == "agent":
        return read_agentic(llm, Toolbox(lambda: view), view, question, settings, budget)
    if reader == "hybrid":
        return read_hybrid(llm, view, question, settings, budget)
    if reader == "summary":
        return read_summary(llm, view, question, settings, budget)
    if reader == "bm25":
        return read_bm25(view, question, settings, budget)
    raise UsageError(f"{view.spec.name} has no reader {reader!r}; choose {', '.join(READERS)}")
