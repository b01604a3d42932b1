"""Fitting ranked evidence into a budget of tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from infinimem import tokens
from infinimem.model import Retrieved


def pack(
    items: Iterable[Retrieved], budget: int, count: Callable[[str], int] = tokens.count
) -> list[Retrieved]:
    """The best items that fit, in their order.

    A piece that does not fit is passed over for smaller ones behind it; a line that an earlier piece
    already shows is left out.

    Args:
        items: best first.
        budget: tokens of all texts together.
        count: gives the tokens of a text.
    """
    packed: list[Retrieved] = []
    left = budget
    for item in items:
        if any(_covers(taken, item) for taken in packed):
            continue
        size = count(item.text)
        if size <= left:
            packed.append(item)
            left -= size
    return packed


def _covers(taken: Retrieved, item: Retrieved) -> bool:
    return (
        taken.doc_id == item.doc_id
        and taken.start_line <= item.start_line
        and item.end_line <= taken.end_line
    )
