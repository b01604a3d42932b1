"""search: the heading blocks that answer a query best.

In: a view and a query. Out: ranked blocks with their document and best lines. Promise: the lines are read
from the files as they are in that view; no model is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from infinimem import tokens
from infinimem.index.search import searcher
from infinimem.markdown.characters import one_line
from infinimem.markdown.document import Document
from infinimem.model import Retrieved
from infinimem.store.view import View
from infinimem.terms import Analyzer, analyzer

from .tool import LINE_LENGTH, RESULT_LENGTH, Result, closest, scope_of, shown

SNIPPET = 200  # tokens that are shown of a section, about
LINES = 4
"""Rows that are shown for each section that is asked for, of all together; those of the best are more."""
FEW = 3  # rows of a section of somebody's notes, which are paragraphs, and of each for a person


def search(
    view: View, query: str, k: int, scope: str, full: bool, offset: int = 0, brief: bool = False
) -> Result:
    """Blocks by score, each with its best lines and their neighbours, or `full`; `offset` are passed over.
    `brief` is for a person, of whose facts each says something by itself: few of each, and no neighbours."""
    words = analyzer(view.settings.search.language)
    terms = frozenset(words.query_terms(query))
    blocks = searcher(view).blocks(query, offset + k, scope_of(scope))[offset:]
    hits: list[dict[str, Any]] = []
    left = LINES * max(k, 10) - len(blocks)
    for after, block in zip(reversed(range(len(blocks))), blocks, strict=True):
        room = max(1, min(left - after, max(left // 4, left // (after + 1), 3)))
        room = min(room, FEW) if brief or not block.seqs else room
        hits.append(_hit(view.document(block.doc_id), block, terms, words, None if full else room, brief))
        left -= sum(bool(row.strip()) for row in hits[-1]["snippet"].split("\n"))
    return {"hits": hits}


def course_of(view: View, query: str) -> Result:
    """The course of something as rows: a document and a day, then what was said there."""
    from infinimem.index.arcs import course

    lines, above = list[str](), ""
    for item in course(view, query, RESULT_LENGTH // 6):
        head = f"{item.doc_id} {(item.time or '')[:10]}".rstrip()
        lines += [head] if head != above else []
        lines.append(f"  {item.start_line} {item.speaker or item.source}: {one_line(item.text)}")
        above = head
    return {"hits": [], "rows": lines}


def _hit(
    document: Document, block: Retrieved, terms: frozenset[str], words: Analyzer, room: int | None, few: bool
) -> dict[str, Any]:
    lines = {n: document.text_line(n) for n in range(block.start_line, block.end_line + 1)}
    held = dict(zip(lines, words.held("\n".join(lines.values()), terms), strict=True))
    runs = [range(block.start_line, block.end_line + 1)]
    if room is not None:
        runs = _best(lines, held, room, alone=few and bool(block.seqs))
    texts = ((shown(lines[n], closest(lines[n], block.text, terms, words)) for n in run) for run in runs)
    located = document.entries_in(block.start_line, block.end_line) if block.seqs else ()
    return {
        "doc_id": block.doc_id,
        "title": shown(document.title),
        "heading": shown(" > ".join(document.path_at(max(lines, key=lambda n: (held[n], -n))))),
        "start_line": runs[0][0],
        "end_line": runs[-1][-1],
        "section": [block.start_line, block.end_line],
        "more": sum(not any(n in run for run in runs) for n in _written(lines)),
        "ranges": [[run[0], run[-1]] for run in runs],
        "seqs": [place.seq for place in located if any(place.start_line in run for run in runs)],
        "score": block.score,
        "snippet": "\n…\n".join(map("\n".join, texts)),
    }


def _written(lines: Mapping[int, str]) -> list[int]:
    """Return which lines say something, headings only where nothing else does: a hit has its heading."""
    written = [n for n, text in lines.items() if text.strip()]
    return [n for n in written if not lines[n].startswith("#")] or written


def _best(lines: Mapping[int, str], held: Mapping[int, int], room: int, alone: bool) -> list[range]:
    """Runs of lines to show: those that hold most terms, then their neighbours (`alone`: of those that hold
    most, and half as many); of a section that fits all, of one that holds no term the first. Blank lines part
    no run and take no room."""
    numbers = _written(lines) or [*lines]
    sizes = {n: tokens.estimate(lines[n][:LINE_LENGTH]) for n in numbers}
    if len(numbers) <= room and sum(sizes.values()) <= SNIPPET:
        return [range(numbers[0], numbers[-1] + 1)]
    around = [0, *(held[n] for n in numbers), 0]
    worth = {n: around[at + 1] + max(around[at], around[at + 2]) / 2 for at, n in enumerate(numbers)}
    if alone and (most := max(around)):
        worth = {n: held[n] if 2 * held[n] >= most else 0 for n in numbers}
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
