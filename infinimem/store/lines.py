"""What lines and documents say of themselves: where lines come from, how they are known again, names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

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
