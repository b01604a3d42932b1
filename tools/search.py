"""search: the heading blocks that answer a query best.

In: a view and a query. Out: ranked blocks with their document and best lines. Promise: the lines are read
from the files as they are in that view; no model is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from infinimem import tokens
from infinimem.markdown.document import Document
from infinimem.model import Retrieved
from infinimem.retrieval.searcher import searcher
from infinimem.store.view import View
from infinimem.terms import Analyzer, analyzer

from .tool import LINE_LENGTH, Result, closest, scope_of, shown

SNIPPET = 200
"""Tokens that are shown of a section, about."""
LINES = 4
"""Rows that are shown for each section that is asked for, of all together; those of the best are more."""


def search(view: View, query: str, k: int, scope: str, full: bool) -> Result:
    """Blocks by score, each with its best lines and their neighbours, or `full`."""
    words = analyzer(view.settings.search.language)
    terms = frozenset(words.query_terms(query))
    blocks = searcher(view).blocks(query, k, scope_of(scope))
    hits, left = [], LINES * max(k, 10) - len(blocks)
    for after, block in reversed([*enumerate(reversed(blocks))]):
        room = max(1, min(left - after, max(left // 4, left // (after + 1), 3)))
        hits.append(_hit(view.document(block.doc_id), block, terms, words, None if full else room))
        left -= sum(bool(row.strip()) for row in hits[-1]["snippet"].split("\n"))
    return {"hits": hits}


def _hit(
    document: Document, block: Retrieved, terms: frozenset[str], words: Analyzer, room: int | None
) -> dict[str, Any]:
    lines = {n: document.text_line(n) for n in range(block.start_line, block.end_line + 1)}
    held = dict(zip(lines, words.held("\n".join(lines.values()), terms), strict=True))
    ranges = [[block.start_line, block.end_line]] if room is None else best_lines(lines, held, room)
    located = document.entries_in(block.start_line, block.end_line) if block.seqs else ()
    return {
        "doc_id": block.doc_id,
        "title": shown(document.title),
        "heading": shown(" > ".join(document.path_at(max(lines, key=lambda n: (held[n], -n))))),
        "start_line": ranges[0][0],
        "end_line": ranges[-1][1],
        "ranges": ranges,
        "seqs": [p.seq for p in located if any(first <= p.start_line <= last for first, last in ranges)],
        "score": block.score,
        "snippet": "\n…\n".join(
            "\n".join(shown(lines[n], closest(lines[n], block.text, terms, words)) for n in range(a, b + 1))
            for a, b in ranges
        ),
    }


def best_lines(lines: Mapping[int, str], held: Mapping[int, int], room: int) -> list[list[int]]:
    """First and last lines of the runs to show: those that hold most terms, then their neighbours.

    Of a section that fits all lines; of one that holds no term the first. Blank lines part no run and take
    no room.
    """
    numbers = [n for n, text in lines.items() if text.strip()] or [*lines]
    size = {n: tokens.estimate(lines[n][:LINE_LENGTH]) for n in numbers}
    if len(numbers) <= room and sum(size.values()) <= SNIPPET:
        return [[numbers[0], numbers[-1]]]
    around = [0, *(held[n] for n in numbers), 0]
    worth = {n: around[at + 1] + max(around[at], around[at + 2]) / 2 for at, n in enumerate(numbers)}
    chosen, left = set[int](), SNIPPET
    for n in sorted(numbers, key=lambda n: (-worth[n], n))[:room]:
        left -= size[n]
        if chosen and (left < 0 or (not worth[n] and any(around))):
            break
        chosen.add(n)
    runs: list[list[int]] = []
    for before, n in zip([0, *numbers], numbers, strict=False):
        if n in chosen and before in chosen:
            runs[-1][1] = n
        elif n in chosen:
            runs.append([n, n])
    return runs
