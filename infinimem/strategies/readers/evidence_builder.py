"""From places that a reader found to evidence: heading blocks within a budget, with what is newest.

Knows snapshots and their searcher; asks no model.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from infinimem import tokens
from infinimem.errors import DocumentNotFound
from infinimem.model import CURRENT, Retrieved
from infinimem.retrieval.origins import pack
from infinimem.retrieval.searcher import searcher
from infinimem.settings import ReaderSettings
from infinimem.store.view import View

MARGIN = 10
"""Lines before and after a place that is in no block."""
RECENT = 20
"""Entries of CURRENT that are shown beside what was found, at most."""


@dataclass(frozen=True)
class LineRange:
    """Lines of a document that matter, both ends included."""

    doc_id: str
    start_line: int
    end_line: int


def blocks_around(view: View, question: str, places: Iterable[LineRange]) -> list[Retrieved]:
    """The heading blocks that hold these lines, or the lines with a margin; each block once, in that order.

    A place in a document's header stands for what the document says on the question: its best block. One
    in a document that does not exist is passed over: models invent ids.

    Source: Algorithm 3 of arXiv 2606.10677.
    """
    found: dict[tuple[str, int], Retrieved] = {}
    for place in places:
        try:
            doc_id = view.resolve(place.doc_id)
        except DocumentNotFound:
            continue
        for block in _blocks(view, question, doc_id, *sorted((place.start_line, place.end_line))):
            found.setdefault((doc_id, block.start_line), block)
    return [block for block in found.values() if block.text.strip()]


def _blocks(view: View, question: str, doc_id: str, start: int, end: int) -> list[Retrieved]:
    document, search = view.document(doc_id), searcher(view)
    if end <= document.header.end:
        return search.order(question, search.blocks_at(doc_id, 1, len(document.lines)))[:1]
    return search.blocks_at(doc_id, start, end) or [search.lines_at(doc_id, start - MARGIN, end + MARGIN)]


def bodies(view: View, question: str, doc_ids: Iterable[str], budget: int) -> list[Retrieved]:
    """Whole documents while they fit the budget; of one that does not, the best blocks that do."""
    found: list[Retrieved] = []
    for doc_id in doc_ids:
        left = budget - sum(tokens.count(item.text) for item in found)
        document = view.document(doc_id)
        body = searcher(view).lines_at(doc_id, 1, len(document.lines))
        if tokens.count(body.text) <= left:
            found.append(body)
        else:
            blocks = searcher(view).blocks_at(doc_id, 1, len(document.lines))
            found += pack(searcher(view).order(question, blocks), left)
    return [item for item in found if item.text.strip()]


def with_fallback(
    view: View, question: str, items: list[Retrieved], settings: ReaderSettings
) -> list[Retrieved]:
    """The items, and the best blocks behind them where there are none or few tokens of them.

    Source: Algorithm 3 of arXiv 2606.10677 (fallback_topk, min_retrieval_tokens).
    """
    size = sum(tokens.count(item.text) for item in items)
    if items and size >= settings.min_tokens:
        return items
    wanted = settings.fallback_small if items else settings.fallback_empty
    taken = {(item.doc_id, item.start_line) for item in items}
    blocks = searcher(view).blocks(question, len(items) + wanted)
    more = [block for block in blocks if (block.doc_id, block.start_line) not in taken]
    return items + more[:wanted]


def assemble(view: View, items: Iterable[Retrieved], budget: int) -> tuple[Retrieved, ...]:
    """What the answer is read from: the items, best first, then the newest entries of CURRENT, where
    the strategy has one.

    Args:
        items: blocks and bodies, best first.
        budget: tokens of all; up to a quarter is kept for CURRENT.
    """
    kept = view.spec.buffer is not None and CURRENT in view
    newest = searcher(view).entries_at(CURRENT, 1, len(view.buffer.lines)) if kept else []
    newest = newest[: -RECENT - 1 : -1]
    room = min(budget // 4, sum(tokens.count(entry.text) for entry in newest))
    return tuple(pack([*pack(items, budget - room), *newest], budget))
