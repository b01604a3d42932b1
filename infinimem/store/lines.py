"""What lines and documents say of themselves: where lines come from, how they are known again, names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import suppress
from threading import Lock
from typing import Any

from immutables import Map

from infinimem.markdown.characters import clean_text, normalize, one_line
from infinimem.markdown.document import Document
from infinimem.markdown.signature import parse_seqs
from infinimem.model import Entry


def former(entry: Entry) -> tuple[int, ...]:
    """Return seqs that a line had before a merge, and that another has now."""
    if "was" in entry.fields:
        with suppress(ValueError):
            return parse_seqs(entry.fields["was"])
    return ()


def said_at(turn: Entry) -> int:
    """Return its place in the order of turns: a merge may have given it a later seq."""
    return min((turn.seq, *former(turn)))


def drawn_from(entry: Entry) -> tuple[int, ...]:
    """Return its origin, but for what only tells where its number came from."""
    had = former(entry)
    return tuple(seq for seq in entry.origin if seq not in had) if had else entry.origin


Mark = tuple[str, ...]
"""By what a turn is recognised when it comes again; its text is no mark, people repeat themselves."""


def marks_of(key: str | None, session: str | None, turn: str | None) -> list[Mark]:
    marks: list[Mark] = [("key", plain(key))] if key else []
    if session and turn:
        marks.append(("turn", plain(session), plain(turn)))
    return marks


def plain(value: str) -> str:
    """Return a name as a field of a signature can hold it."""
    return one_line(clean_text(value))


def fold(name: str) -> str:
    """Return a name as ids are compared: case-folded and in NFC, as file systems do."""
    return normalize("NFC", name).casefold()


class Seqs(Set[int]):
    """An immutable set of seqs that grows by making a larger one, which shares what both hold."""

    __slots__ = ("_held", "_log", "_upto")
    _held: Map[int, None]
    _log: list[int]
    _upto: int
    _growing = Lock()

    def __init__(self, seqs: Iterable[int] = (), before: Seqs | None = None) -> None:
        new = [seq for seq in seqs if before is None or seq not in before]
        held: Map[int, None] = Map() if before is None else before._held
        self._held = held.update((seq, None) for seq in new)
        with self._growing:
            if before is not None and len(before._log) == before._upto:
                self._log = before._log  # of all that grew from one; each reads as far as its own end
                self._log += new
            else:
                self._log = [*held, *new]
            self._upto = len(self._log)

    def since(self, before: Set[int] | None) -> Sequence[int] | None:
        """Return what was added to `before` to make this set; None if it was not made so."""
        if isinstance(before, Seqs) and before._log is self._log and before._upto <= self._upto:
            return self._log[before._upto : self._upto]
        return None

    @classmethod
    def _from_iterable(cls, it: Iterable[Any]) -> Any:
        return frozenset(it)

    def __contains__(self, seq: object) -> bool:
        return seq in self._held

    def __iter__(self) -> Iterator[int]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)


def aliases_of(document: Document) -> list[str]:
    """Return other names that its header lists, or the one that it gives."""
    return said_in(document, "aliases")


def names_of(document: Document) -> list[str]:
    """Return what people call a document: by its file, title, first top heading and aliases."""
    first = next((heading.title for heading in document.headings if heading.level == 1), "")
    return [document.id.rsplit("/", 1)[-1], document.title, first, *said_in(document, "aliases", "alias")]


def said_in(document: Document, *keys: str) -> list[str]:
    """Return the strings that a header has under some keys, whatever their case, however deep they stand."""

    def strings(value: object) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from strings(one)

    held = {key.casefold(): value for key, value in document.header.values.items()}
    return [one for key in keys for one in strings(held.get(key.casefold())) if one]


def common_time(times: Iterable[str | None]) -> str | None:
    """Return the time that all share, or else the date that all share."""
    distinct = set(times)
    if None in distinct or not distinct:
        return None
    dates = {time[:10] for time in distinct if time}
    return distinct.pop() if len(distinct) == 1 else dates.pop() if len(dates) == 1 else None
