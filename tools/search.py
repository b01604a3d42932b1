"""search: the heading blocks that answer a query best.

In: a view and a query. Out: ranked blocks with their document and lines. Promise: the lines are read from the
files as they are in that view; no model is called.
"""

from __future__ import annotations

from typing import Any

from infinimem import tokens
from infinimem.index.search import searcher
from infinimem.markdown.document import Document
from infinimem.model import Retrieved
from infinimem.store.view import View
from infinimem.terms import Analyzer, analyzer

from .tool import Result, closest, scope_of, shown

SNIPPET = 200
"""Tokens of a snippet, about."""


def search(view: View, query: str, k: int, scope: str) -> Result:
    """Blocks by score, each with the lines around its best one."""
    words = analyzer(view.settings.search.language)
    terms = frozenset(words.query_terms(query))
    blocks = searcher(view).blocks(query, k, scope_of(scope))
    return {"hits": [_hit(view.document(block.doc_id), block, terms, words) for block in blocks]}


def _hit(document: Document, block: Retrieved, terms: frozenset[str], words: Analyzer) -> dict[str, Any]:
    start, end = snippet(document, block.start_line, block.end_line, terms, words)
    located = document.entries_in(start, end) if block.seqs else ()
    held = words.held(document.text(block.start_line, block.end_line), terms)
    best = block.start_line + held.index(max(held))
    return {
        "doc_id": block.doc_id,
        "title": shown(document.title),
        "heading": shown(" > ".join(document.path_at(best))),
        "start_line": start,
        "end_line": end,
        "seqs": [place.entry.seq for place in located if start <= place.start_line <= end],
        "score": block.score,
        "snippet": "\n".join(
            shown(text, closest(text, block.text, terms, words))
            for text in (document.text_line(line) for line in range(start, end + 1))
        ),
    }


def snippet(
    document: Document, start: int, end: int, terms: frozenset[str], words: Analyzer
) -> tuple[int, int]:
    """The lines of a block to show: the one with most of the terms, then its neighbours while they fit."""
    text = document.text(start, end)
    if tokens.estimate(text) <= SNIPPET:
        return start, end
    held = words.held(text, terms)
    first = last = best = start + held.index(max(held))
    left = SNIPPET - tokens.estimate(document.text_line(best))
    while first > start or last < end:
        # Below before above, so that a heading's own text comes first; in turn while both sides are left.
        line = last + 1 if last < end and (last - best <= best - first or first == start) else first - 1
        left -= tokens.estimate(document.text_line(line))
        if left < 0:
            break
        first, last = min(first, line), max(last, line)
    return first, last
