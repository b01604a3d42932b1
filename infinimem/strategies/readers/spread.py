"""Evidence for a question about the order of things, or for a summary: lines from all that was said.

The ten nearest lines are often of one message; what such a question asks for lies in many. So the nearest
line of each session goes first, then the second nearest of each, and among those of a session one of each
turn before any second one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial

from infinimem.grounding.asked import about_all, about_my_words
from infinimem.model import Retrieved
from infinimem.retrieval.searcher import searcher
from infinimem.store.view import View
from infinimem.strategies.readers.budget import best_that_fit, pack

CANDIDATES = 2000
"""Lines that are looked at: of a long message dozens are near to a question."""


def best_lines(view: View, question: str, budget: int) -> list[Retrieved]:
    """The lines that answer a question, within a budget of tokens: the nearest, or as `spread`."""
    if about_all(question):
        return pack(spread(view, question), budget)
    return best_that_fit(partial(searcher(view).entries, question), budget)


def spread(view: View, question: str) -> list[Retrieved]:
    """Lines in an order in which however many of the first are from as many sessions and turns as can be.

    Of a question about what the user said the user's own lines, where there are any.
    """
    found = searcher(view).entries(question, CANDIDATES)
    if about_my_words(question):
        found = [item for item in found if item.source in ("user", "human")] or found

    def session(item: Retrieved) -> str:
        place = view.entry(item.origin[0]) if item.origin else None
        return place.doc_id if place else item.doc_id

    return _by_turns(
        _by_turns(found, lambda item: item.origin[:1] or (item.doc_id, item.start_line)), session
    )


def _by_turns(items: Iterable[Retrieved], of: Callable[[Retrieved], Hashable]) -> list[Retrieved]:
    """The first of each group, then the second of each; groups and what is in them keep their order."""
    groups: dict[Hashable, list[Retrieved]] = {}
    for item in items:
        groups.setdefault(of(item), []).append(item)
    rows: Sequence[list[Retrieved]] = [*groups.values()]
    return [row[at] for at in range(max(map(len, rows), default=0)) for row in rows if at < len(row)]
