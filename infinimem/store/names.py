"""What the documents of a snapshot are called, case-folded: by id, by stem, topics by alias.

A snapshot takes these over from the one before (`View.derived`), and looks only at what changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from immutables import Map, MapMutation

from infinimem.markdown.document import Document
from infinimem.store.lines import fold
from infinimem.store.spec import TOPICS

Index = Map[str, tuple[str, ...]]
"""Ids of documents, sorted, by a folded name."""


class Snapshot(Protocol):
    """What is asked of a `View`."""

    @property
    def initialised(self) -> bool: ...
    def ids(self, scope: Literal["all"], /) -> tuple[str, ...]: ...
    def below(self, folder: str, /) -> tuple[str, ...]: ...
    def document(self, doc_id: str, /) -> Document: ...
    def __contains__(self, doc_id: str, /) -> bool: ...


def aliases_of(document: Document) -> list[str]:
    """Other names that its header lists, or the one that it gives."""
    named = document.header.values.get("aliases", [])
    return [str(alias) for alias in (named if isinstance(named, list) else [named]) if alias]


def stem(doc_id: str) -> str:
    """The last part of an id, folded."""
    return fold(doc_id.rsplit("/", 1)[-1])


def by_id(view: Snapshot, known: Index | None = None, changed: Collection[str] | None = None) -> Index:
    """All documents by their folded id."""
    return _updated(view, fold, known, changed)


def by_stem(view: Snapshot, known: Index | None = None, changed: Collection[str] | None = None) -> Index:
    """All documents by their folded stem."""
    return _updated(view, stem, known, changed)


@dataclass(frozen=True)
class Aliases:
    """The other names of topics.

    Args:
        topics: ids by alias.
        own: the aliases of each topic that has any.
    """

    topics: Index = field(default_factory=Map)
    own: Map[str, tuple[str, ...]] = field(default_factory=Map)


def by_alias(view: Snapshot, known: Aliases | None = None, changed: Collection[str] | None = None) -> Aliases:
    """Topics by their folded aliases."""
    if known is None or changed is None:
        known, changed = Aliases(), view.below(TOPICS)
    topics, own = known.topics.mutate(), known.own
    for doc_id in changed if view.initialised else ():
        if not doc_id.startswith(TOPICS):
            continue
        names = tuple(map(fold, aliases_of(view.document(doc_id)))) if doc_id in view else ()
        for alias in own.get(doc_id, ()):
            _put(topics, alias, doc_id, there=False)
        for alias in names:
            _put(topics, alias, doc_id, there=True)
        if names:
            own = own.set(doc_id, names)
        elif doc_id in own:
            own = own.delete(doc_id)
    return Aliases(topics.finish(), own)


def _updated(
    view: Snapshot, name: Callable[[str], str], known: Index | None, changed: Iterable[str] | None
) -> Index:
    index = (known or Map[str, tuple[str, ...]]()).mutate()
    for doc_id in view.ids("all") if known is None or changed is None else changed:
        _put(index, name(doc_id), doc_id, there=doc_id in view)
    return index.finish()


def _put(index: MapMutation[str, tuple[str, ...]], key: str, doc_id: str, *, there: bool) -> None:
    ids = {*index.get(key, ())} - {doc_id} | ({doc_id} if there else set())
    if ids:
        index[key] = tuple(sorted(ids))
    else:
        index.pop(key, None)
