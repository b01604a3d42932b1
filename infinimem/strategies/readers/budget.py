"""Ranked evidence packed into a budget of tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from infinimem import tokens
from infinimem.model import Retrieved

FIRST, MOST = 50, 200
"""Pieces that are ranked for a budget: at first, and where they leave room: 50 entries say about 1,500
tokens."""
ROOM = 16
"""Tokens; what is shorter is hardly worth a place."""


def best_that_fit(
    ranked: Callable[[int], Sequence[Retrieved]], budget: int, count: Callable[[str], int] = tokens.count
) -> list[Retrieved]:
    """The best pieces that fit, as many being ranked as it takes to spend the budget, counted by `count`."""
    limit = FIRST
    while True:
        items = ranked(limit)
        packed = pack(items, budget, count)
        left = budget - sum(count(item.text) for item in packed)
        if len(items) < limit or limit == MOST or left < ROOM:
            return packed
        limit = MOST


def pack(
    items: Iterable[Retrieved], budget: int, count: Callable[[str], int] = tokens.count
) -> list[Retrieved]:
    """The best items that fit, best first, in their order.

    A piece that does not fit is passed over for smaller ones behind it; a line that an earlier piece
    already shows is left out.
    """
    packed: list[Retrieved] = []
    left = budget
    for item in items:
        if any(
            taken.doc_id == item.doc_id
            and taken.start_line <= item.start_line
            and item.end_line <= taken.end_line
            for taken in packed
        ):
            continue
        size = count(item.text)
        if size <= left:
            packed.append(item)
            left -= size
    return packed
