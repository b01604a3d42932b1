"""The surroundings of a record, for people to look at: which record is meant, and what is linked to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from infinimem.errors import LibraryError
from infinimem.store.view import whole
from infinimem.strategies.graph.draw import Topology, around
from infinimem.strategies.records.record import Record, is_record_id
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.vector_index import VectorIndex

MOST = 40
"""Records that a picture shows."""


def picture(
    store: RecordStore,
    index: VectorIndex,
    name: str | None,
    hops: int,
    kinds: Sequence[str] = (),
    told: Callable[[Record], str] = lambda record: record.summary,
) -> Topology:
    """What is linked to a record, either way.

    Args:
        store: the records.
        index: where they lie.
        name: see `named`.
        hops: links from the record at most.
        kinds: of links that its graph has beside those of its strategy.
        told: what a record says.

    Raises:
        LibraryError: no record is meant.
    """
    return around(
        store.graph,
        named(store, index, name),
        hops,
        MOST,
        (*store.spec.links, *kinds),
        lambda node: told(store.records[node]) or store.text(node),
        store.visible.__contains__,
    )


def named(store: RecordStore, index: VectorIndex, name: str | None) -> str:
    """The record that a person means.

    Args:
        store: the records.
        index: where they lie.
        name: a record's id or document id, the seq of its turn, or words that it is about; None for the
            newest.

    Raises:
        LibraryError: there is none.
    """
    kind = store.spec.kinds[0].name
    if not store.records:
        raise LibraryError(f"there are no {kind}s yet; infinimem add or import gives some")
    if name is None:
        return max(store.visible or store.records, key=lambda one: (store.records[one].age, one))
    wanted = name.strip()
    stem = wanted.removesuffix(".md").rsplit("/", 1)[-1].casefold()
    if stem in store:
        return stem
    if is_record_id(stem) or wanted.startswith(store.spec.writes):
        raise LibraryError(f"there is no {kind} {wanted!r}; infinimem ls shows which there are")
    if (seq := whole(wanted)) is not None:
        return _of_turn(store, seq)
    found = index.nearest(index.embed(wanted), 1, store.spec.record_folders)
    if not found or found[0][1] <= 0:
        raise LibraryError(f"no {kind} is about {wanted[:80]!r}; try other words")
    return found[0][0]


def _of_turn(store: RecordStore, seq: int) -> str:
    """The record of a turn; of several that hold parts of it the first."""
    holding = [record for record in store.records.values() if any(ref.seq == seq for ref in record.refs)]
    if not holding:
        kind = store.spec.kinds[0].name
        raise LibraryError(f"no {kind} holds turn {seq}; infinimem history {seq} tells what became of it")
    return min(holding, key=lambda record: (record.order, record.id)).id
