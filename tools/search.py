"""search: the heading blocks that answer a query best.

In: a view and a query. Out: ranked blocks with their document and best lines. Promise: the lines are read
from the files as they are in that view; no model is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from infinimem import tokens
from infinimem.index.arcs import course
from infinimem.index.search import searcher
from infinimem.markdown.characters import one_line
from infinimem.markdown.document import Document
from infinimem.model import Retrieved
from infinimem.store.view import View
from infinimem.terms import Analyzer, analyzer

from .tool import LINE_LENGTH, RESULT_LENGTH, Result, closest, scope_of, shown

SNIPPET = 200
"""Tokens that are shown of a section, about."""
LINES = 4
"""Rows that are shown for each section that is asked for, of all together; those of the best are more."""


def search(view: View, query: str, k: int, scope: str, full: bool, offset: int) -> Result:
    """Blocks by score, each with its best lines and their neighbours, or `full`; `offset` are passed over."""
    words = analyzer(view.settings.search.language)
    terms = frozenset(words.query_terms(query))
    blocks = searcher(view).blocks(query, offset + k, scope_of(scope))[offset:]
    hits: list[dict[str, Any]] = []
    left = LINES * max(k, 10) - len(blocks)
    for after, block in zip(reversed(range(len(blocks))), blocks, strict=True):
        room = max(1, min(left - after, max(left // 4, left // (after + 1), 3)))
        hits.append(_hit(view.document(block.doc_id), block, terms, words, None if full else room))
        left -= sum(bool(row.strip()) for row in hits[-1]["snippet"].split("\n"))
    return {"hits": hits}


def course_of(view: View, query: str) -> Result:
    """The course of something as rows: a document and a day, then what was said there."""
    lines, above = list[str](), ""
    for item in course(view, query, RESULT_LENGTH // 6):
        head = f"{item.doc_id} {(item.time or '')[:10]}".rstrip()
        lines += [head] if head != above else []
        lines.append(f"  {item.start_line} {item.speaker or item.source}: {one_line(item.text)}")
        above = head
    return {"hits": [], "rows": lines}


def _hit(
    document: Document, block: Retrieved, terms: frozenset[str], words: Analyzer, room: int | None
) -> dict[str, Any]:
    lines = {n: document.text_line(n) for n in range(block.start_line, block.end_line + 1)}
    held = dict(zip(lines, words.held("\n".join(lines.values()), terms), strict=True))
    runs = [range(block.start_line, block.end_line + 1)] if room is None else _best(lines, held, room)
    texts = ((shown(lines[n], closest(lines[n], block.text, terms, words)) for n in run) for run in runs)
    located = document.entries_in(block.start_line, block.end_line) if block.seqs else ()
    return {
        "doc_id": block.doc_id,
        "title": shown(document.title),
        "heading": shown(" > ".join(document.path_at(max(lines, key=lambda n: (held[n], -n))))),
        "start_line": runs[0][0],
        "end_line": runs[-1][-1],
        "ranges": [[run[0], run[-1]] for run in runs],
        "seqs": [place.seq for place in located if any(place.start_line in run for run in runs)],
        "score": block.score,
        "snippet": "\n…\n".join(map("\n".join, texts)),
    }


def _best(lines: Mapping[int, str], held: Mapping[int, int], room: int) -> list[range]:
    """Runs of lines to show: those that hold most terms, then their neighbours; of a section that fits all,
    of one that holds no term the first. Blank lines part no run and take no room."""
    numbers = [n for n, text in lines.items() if text.strip()] or [*lines]
    sizes = {n: tokens.estimate(lines[n][:LINE_LENGTH]) for n in numbers}
    if len(numbers) <= room and sum(sizes.values()) <= SNIPPET:
        return [range(numbers[0], numbers[-1] + 1)]
    around = [0, *(held[n] for n in numbers), 0]
    worth = {n: around[at + 1] + max(around[at], around[at + 2]) / 2 for at, n in enumerate(numbers)}
    chosen, left = set[int](), SNIPPET
    for n in sorted(numbers, key=lambda n: (-worth[n], n))[:room]:
        left -= sizes[n]
        if chosen and (left < 0 or (not worth[n] and any(around))):
            break
        chosen.add(n)
    runs: list[range] = []
    for before, n in zip([0, *numbers], numbers, strict=False):
        if n in chosen:
            first = runs.pop()[0] if before in chosen else n
            runs.append(range(first, n + 1))
    return runs
