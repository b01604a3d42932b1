"""Recognise a file and read its turns. Knows the families, not what they look like inside."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

from infinimem.errors import ImportFormatError, UsageError
from infinimem.importers import (
    chatgpt,
    claude_export,
    locomo,
    longmemeval,
    markdown,
    memoryagentbench,
    openai_messages,
)
from infinimem.importers.fields import Json, Skipped
from infinimem.importers.reading import opened, records, whole_text
from infinimem.model import Turn


class Family(Protocol):
    """A JSON format; modules of this package are its instances."""

    def matches(self, record: Json) -> bool:
        """Whether this is a record of the format."""
        ...

    def names(self, record: Json, stem: str) -> tuple[str, ...]:
        """The id of the conversation, and its title where it has one; `stem` names what has no name."""
        ...

    def turns(self, record: Json, stem: str, skipped: Skipped) -> Iterator[Turn]:
        """The turns of the record, in order."""
        ...


# Asked in this order: the particular shapes before the general one.
_FAMILIES: dict[str, Family] = {
    "locomo": locomo,
    "longmemeval": longmemeval,
    "memoryagentbench": memoryagentbench,
    "chatgpt": chatgpt,
    "claude": claude_export,
    "openai": openai_messages,
}
FORMATS: tuple[str, ...] = (*_FAMILIES, "markdown")

_JSON_START = re.compile(r"\s*(?:\[\s*[{\]]|\{\s*[\"}])")
_JSON_NAMES = (".json", ".jsonl", ".ndjson")
_SHOWN = 8


@dataclass(frozen=True)
class Import:
    """A file that was recognised. `turns` can be read once; `skipped` (reason -> times) fills meanwhile."""

    format: str
    turns: Iterator[Turn]
    skipped: Skipped = field(default_factory=Counter)


def read_turns(path: Path, format: str | None = None, only: str | None = None) -> Import:  # noqa: A002
    """Open a file and say what it is; its turns follow as they are asked for.

    Every turn has a key or an id, so that bringing the same file in again (or the rest of one that was
    interrupted) adds only what is new.

    Args:
        path: a JSON, JSONL, Markdown or text file; plain, .zip (chat exports), .gz or .xz.
        format: one of `FORMATS`; None recognises it by content.
        only: one conversation of several: LoCoMo's sample id, LongMemEval's question id, the id or title of
            a conversation of a chat export, a session of chat messages.

    Raises:
        UsageError: no such format, or `only` for a Markdown file.
        ImportFormatError: here, or while the turns are read: the file is damaged, empty, not readable, of no
            known format, or holds no conversation `only`.
    """
    if format is not None and format not in FORMATS:
        raise UsageError(f"no format {format!r}: use one of {', '.join(FORMATS)}")
    skipped: Skipped = Counter()
    parts = _parts(path, format)
    first = next(parts)
    if first.format == "markdown" and only is not None:
        raise UsageError("only one of several conversations can be chosen, and a Markdown file is one")
    turns = keyed(_chosen(chain([first], parts), path, only, skipped), path, skipped)
    return Import(first.format, turns, skipped)


@dataclass(frozen=True)
class _Part:
    """One stream of the file: JSON records of a family, or a whole text."""

    format: str
    records: Iterable[Any] = ()
    text: str = ""


def _parts(path: Path, wanted: str | None) -> Iterator[_Part]:
    with opened(path) as sources:
        for source in sources:
            if wanted == "markdown" or (wanted is None and not _is_json(source.head, path)):
                yield _Part("markdown", text=whole_text(source, path.name))
                continue
            values = records(source, path.name)
            first = next(values, None)
            found = next((name for name in (wanted, *_FAMILIES) if name and _fits(name, first)), None)
            if found is None or (wanted and found != wanted):
                raise ImportFormatError(
                    f"{path.name} is not {wanted or 'of a known format'} ({', '.join(FORMATS)} are known): "
                    'write one {"role": …, "content": …} a line to bring it in'
                )
            yield _Part(found, chain([first], values))


def _is_json(head: str, path: Path) -> bool:
    """By content; only a file that says that it is JSON is told that it is none that is known."""
    named = path.suffix.lower() in _JSON_NAMES and bool(head.strip())
    return named or bool(_JSON_START.match(head))


def _fits(name: str, record: Any) -> bool:
    return isinstance(record, dict) and _FAMILIES[name].matches(record)


def _chosen(parts: Iterator[_Part], path: Path, only: str | None, skipped: Skipped) -> Iterator[Turn]:
    """The turns of all records, or of those that `only` names."""
    stem = path.name.split(".")[0] or path.name
    others: dict[str, None] = {}
    found = only is None
    for part in parts:
        if part.format == "markdown":
            yield from markdown.turns(part.text, stem, skipped)
        for record in part.records:
            if not _fits(part.format, record):
                skipped["records of another shape"] += 1
                continue
            family = _FAMILIES[part.format]
            names = family.names(record, stem)
            if only is None or only in names:
                found = True
                yield from family.turns(record, stem, skipped)
            elif len(others) < _SHOWN:
                others[names[-1]] = None
    if not found:
        raise ImportFormatError(f"no conversation {only!r} in {path.name}; it holds {', '.join(others)}, …")


def keyed(turns: Iterator[Turn], path: Path, skipped: Skipped) -> Iterator[Turn]:
    """Make every turn recognisable when it comes again, and leave out empty ones.

    A turn with its source's own id is (the store goes by session and id); one without gets a key. Equal
    messages of one session are told apart by their order, different ones under one id by a longer id.
    """
    times: Counter[bytes] = Counter()
    words: dict[bytes, bytes] = {}
    count = 0
    for turn in turns:
        if not turn.text.strip():
            skipped["empty messages"] += 1
            continue
        count += 1
        said = _digest(turn.role, turn.speaker, turn.text)
        if turn.turn is not None:
            if words.setdefault(_digest(turn.session, turn.turn), said) != said:
                turn = replace(turn, turn=f"{turn.turn}~{said.hex()}")
        elif turn.key is None:
            key = _digest(turn.session, said.hex())
            times[key] += 1
            if times[key] > 1:
                key = _digest(key.hex(), str(times[key]))
            turn = replace(turn, key=key.hex())
        yield turn
    for reason in [reason for reason, number in skipped.items() if not number]:
        del skipped[reason]
    if not count:
        raise ImportFormatError(f"{path.name} holds no message with text: there is nothing to import")


def _digest(*parts: str | None) -> bytes:
    joined = "\0".join(part or "" for part in parts)
    return blake2b(joined.encode("utf-8", "surrogatepass"), digest_size=8).digest()
