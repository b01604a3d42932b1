"""What the documents of a snapshot are called, case-folded: by id, by stem, topics by alias.

A snapshot takes these over from the one before (`View.derived`), and looks only at what changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Literal, Protocol

from immutables import Map, MapMutation

from infinimem.markdown.document import Document
from infinimem.store.derived import Derive
from infinimem.store.lines import fold
from infinimem.store.spec import TOPICS

Index = Map[str, tuple[str, ...]]
"""Ids of documents, sorted, by a folded name."""
Aliases = Mapping[str, tuple[str, ...]]
"""Ids of topics, sorted, by a folded alias."""


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


def _documents_by(name: Callable[[str], str]) -> Derive[Index]:
    def made(view: Snapshot, known: Index | None, changed: Collection[str] | None) -> Index:
        index = (known or Map[str, tuple[str, ...]]()).mutate()
        for doc_id in view.ids("all") if known is None or changed is None else changed:
            _put(index, name(doc_id), doc_id, there=doc_id in view)
        return index.finish()

    return made


by_id, by_stem = _documents_by(fold), _documents_by(stem)
"""All documents by their folded id, and by their folded stem; for `View.derived`."""


def by_alias(view: Snapshot, known: Aliases | None, changed: Collection[str] | None) -> Aliases:
    """Topics by their folded aliases, made anew where any topic changed: few turns change one."""
    if known is not None and not any(doc_id.startswith(TOPICS) for doc_id in changed or ()):
        return known
    found: dict[str, tuple[str, ...]] = {}
    for doc_id in view.below(TOPICS) if view.initialised else ():
        for alias in dict.fromkeys(map(fold, aliases_of(view.document(doc_id)))):
            found[alias] = (*found.get(alias, ()), doc_id)
    return found


def _put(index: MapMutation[str, tuple[str, ...]], key: str, doc_id: str, *, there: bool) -> None:
    ids = {*index.get(key, ())} - {doc_id} | ({doc_id} if there else set())
    if ids:
        index[key] = tuple(sorted(ids))
    else:
        index.pop(key, None)
