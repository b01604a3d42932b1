"""What the documents of a snapshot are called, case-folded: by id, by stem, topics by alias.

A snapshot takes these over from the one before (`View.derived`), and looks only at what changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
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
    return said_in(document, "aliases")


def names_of(document: Document) -> list[str]:
    """What people call a document: by its file, title, first heading of the first level and aliases."""
    first = next((heading.title for heading in document.headings if heading.level == 1), "")
    return [document.id.rsplit("/", 1)[-1], document.title, first, *said_in(document, "aliases", "alias")]


def said_in(document: Document, *keys: str) -> list[str]:
    """The strings that a header has under some keys, whatever their case, however deep they stand."""
    held = {key.casefold(): value for key, value in document.header.values.items()}
    return [one for key in keys for one in _strings(held.get(key.casefold())) if one]


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _strings(one)


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
    """Topics by their folded aliases."""
    due = _topics(view, changed)
    if not due and known is not None:
        return known
    left = ((alias, tuple(i for i in ids if i not in due)) for alias, ids in (known or {}).items())
    found = {alias: ids for alias, ids in left if ids}
    for doc_id in filter(view.__contains__, due):
        for alias in map(fold, aliases_of(view.document(doc_id))):
            found[alias] = tuple(sorted({*found.get(alias, ()), doc_id}))
    return found


def renamed(view: Snapshot, known: frozenset[str] | None, changed: Collection[str] | None) -> frozenset[str]:
    """Topics whose header gives another id than their file."""
    due = _topics(view, changed)
    headers = {doc_id: view.document(doc_id).header for doc_id in due if doc_id in view}
    other = {doc_id for doc_id, header in headers.items() if header.values.get("id", doc_id) != doc_id}
    return (known or frozenset()) - due | other


def _topics(view: Snapshot, changed: Collection[str] | None) -> set[str]:
    """The topics that changed; all where that is not known."""
    ids = view.below(TOPICS) if changed is None else changed
    return {doc_id for doc_id in ids if doc_id.startswith(TOPICS)} if view.initialised else set()


def _put(index: MapMutation[str, tuple[str, ...]], key: str, doc_id: str, *, there: bool) -> None:
    ids = {*index.get(key, ())} - {doc_id} | ({doc_id} if there else set())
    if ids:
        index[key] = tuple(sorted(ids))
    else:
        index.pop(key, None)
