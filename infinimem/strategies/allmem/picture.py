"""The surroundings of a unit, for people to look at: which unit is meant, and what is linked to it."""

from __future__ import annotations

from infinimem.errors import LibraryError
from infinimem.store.view import whole
from infinimem.strategies.allmem.record_store import RecordStore
from infinimem.strategies.allmem.unit import HOME, KINDS, is_unit_id, unit_id
from infinimem.strategies.allmem.vector_index import VectorIndex
from infinimem.strategies.graph.draw import Topology, around

MOST = 40
"""Units that a picture shows."""


def picture(bank: RecordStore, space: VectorIndex, name: str | None, hops: int) -> Topology:
    """What is linked to a unit, either way.

    Args:
        bank: the units.
        space: where they lie.
        name: see `named`.
        hops: links from the unit at most.

    Raises:
        LibraryError: no unit is meant.
    """
    root = named(bank, space, name)
    return around(
        bank.graph,
        root,
        hops,
        MOST,
        KINDS,
        lambda unit: bank.units[unit].summary or bank.text(unit),
        bank.visible.__contains__,
    )


def named(bank: RecordStore, space: VectorIndex, name: str | None) -> str:
    """The unit that a person means.

    Args:
        bank: the units.
        space: where they lie.
        name: a unit's id or document id, the seq of its turn, or words that it is about; None for the newest.

    Raises:
        LibraryError: there is none.
    """
    if not bank.units:
        raise LibraryError("there are no units yet; infinimem add or import gives some")
    if name is None:
        return max(bank.visible or bank.units, key=lambda unit: (bank.units[unit].age, unit))
    wanted = name.strip()
    stem = wanted.removesuffix(".md").rsplit("/", 1)[-1].casefold()
    if stem in bank:
        return stem
    if is_unit_id(stem) or wanted.startswith(HOME):
        raise LibraryError(f"there is no unit {wanted!r}; infinimem ls shows which there are")
    if (seq := whole(wanted)) is not None:
        return _of_turn(bank, seq)
    found = space.nearest(space.embed(wanted), 1, archived=True)
    if not found or found[0][1] <= 0:
        raise LibraryError(f"no unit is about {wanted[:80]!r}; try other words")
    return found[0][0]


def _of_turn(bank: RecordStore, seq: int) -> str:
    """The unit of a turn; of several that hold parts of it the first."""
    own = unit_id(seq)
    if own in bank:
        return own
    holding = [unit for unit in bank.units.values() if any(ref.seq == seq for ref in unit.refs)]
    if not holding:
        raise LibraryError(f"no unit holds turn {seq}; infinimem history {seq} tells what became of it")
    return min(holding, key=lambda unit: unit.order).id
