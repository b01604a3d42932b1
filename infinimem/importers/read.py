"""Recognise a file and read its turns. Knows the families, not what they look like inside."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from infinimem.errors import ImportFormatError, UsageError
from infinimem.importers import (
    chatgpt,
    claude_code,
    claude_export,
    codex,
    locomo,
    longmemeval,
    markdown,
    memoryagentbench,
    openai_messages,
)
from infinimem.importers.fields import EMPTY, RECALLED, Json, Skipped
from infinimem.importers.reading import Damaged, Source, opened, records, whole_text
from infinimem.importers.recalled import without_recalled
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


class Log(Protocol):
    """A log of one session, a JSON object a line, of which one may need what an earlier one says."""

    def matches(self, record: Json) -> bool:
        """Whether only a log of this program has such a line."""
        ...

    def turns(self, records: Iterable[Any], stem: str, skipped: Skipped) -> Iterator[Turn]:
        """The turns of the log, in order."""
        ...


_LOGS: dict[str, Log] = {"claude-code": claude_code, "codex": codex}
# Asked in this order: the particular shapes before the general one.
_FAMILIES: dict[str, Family] = {
    "locomo": locomo,
    "longmemeval": longmemeval,
    "memoryagentbench": memoryagentbench,
    "chatgpt": chatgpt,
    "claude": claude_export,
    "openai": openai_messages,
}
FORMATS: tuple[str, ...] = (*_FAMILIES, *_LOGS, "markdown")

_JSON_START = re.compile(r"\s*(?:\[\s*[{\]]|\{\s*[\"}])")
_JSON_NAMES = (".json", ".jsonl", ".ndjson")
_SHOWN = 8
_LEADING = 64
"""Lines of a log that may come before the first one that tells whose it is."""


class NotThere(ImportFormatError):
    """The file holds no conversation of the name that was asked for."""


@dataclass(frozen=True)
class Import:
    """A file that was recognised. `turns` can be read once; `skipped` (reason -> times) fills meanwhile."""

    format: str
    turns: Iterator[Turn]
    skipped: Skipped = field(default_factory=Counter)


def read_turns(
    path: Path,
    format: str | None = None,  # noqa: A002
    only: str | None = None,
    stem: str | None = None,
    folder: Path | None = None,
) -> Import:
    """Open a file and say what it is; its turns follow as they are asked for.

    Every turn has a key or an id, so that bringing the same file in again (or the rest of one that was
    interrupted) adds only what is new. Lines of a session log that are damaged, as the last one of a session
    that is still being written may be, are left out and counted.

    Args:
        path: a JSON, JSONL, Markdown or text file; plain, .zip, .gz or .xz.
        format: one of `FORMATS`; None recognises it by content.
        only: one conversation of several: LoCoMo's sample id, LongMemEval's question id, the id or title of
            a conversation of a chat export, a session of chat messages or of a log.
        stem: what names a session that has no name; None takes the file's name.
        folder: where the file was found below; then no link is followed from there.

    Raises:
        UsageError: no such format, or `only` for a Markdown file.
        ImportFormatError: here, or while the turns are read: the file is damaged, empty, not readable, of no
            known format, or holds no conversation `only`.
    """
    if format is not None and format not in FORMATS:
        raise UsageError(f"no format {format!r}: use one of {', '.join(FORMATS)}")
    skipped: Skipped = Counter()
    parts = _parts(path, folder, format, stem or path.name.split(".")[0] or path.name, skipped)
    first = next(parts, None)
    if first is None:
        raise _unknown(path, format)
    if first.format == "markdown" and only is not None:
        raise UsageError("only one of several conversations can be chosen, and a Markdown file is one")
    chosen = _chosen(chain([first], parts), path, only, skipped)
    return Import(first.format, keyed(_closing(parts, chosen), path, skipped), skipped)


def _closing(parts: Generator[_Part, None, None], turns: Iterator[Turn]) -> Iterator[Turn]:
    """The turns; the file is closed with them, be it that its damage comes to light."""
    with closing(parts):
        yield from turns


@dataclass(frozen=True)
class _Part:
    """One stream of the file: JSON records of a family, a log, or a whole text; `stem` names it."""

    format: str
    stem: str
    records: Iterable[Any] = ()
    text: str = ""


def _parts(
    path: Path, folder: Path | None, wanted: str | None, stem: str, skipped: Skipped
) -> Generator[_Part, None, None]:
    with opened(path, skipped, folder) as sources:
        for source in sources:
            name = f"{stem}/{PurePosixPath(source.member).with_suffix('')}" if source.member else stem
            if wanted == "markdown" or (wanted is None and not _is_json(source, path)):
                yield _Part("markdown", name, text=whole_text(source, path.name))
                continue
            values = records(source, path.name, lenient=True)
            found, leading = _family(values, wanted)
            if found:
                yield _Part(found, name, _sound(chain(leading, values), found in _LOGS, skipped))
            elif source.member:
                skipped["files of the zip that are not of a known format"] += 1
            elif leading and isinstance(leading[0], Damaged):
                raise leading[0].error
            else:
                raise _unknown(path, wanted)


def _unknown(path: Path, wanted: str | None) -> ImportFormatError:
    return ImportFormatError(
        f"{path.name} is not {wanted or 'of a known format'} ({', '.join(FORMATS)} are known): "
        'write one {"role": …, "content": …} a line to bring it in'
    )


def _is_json(source: Source, path: Path) -> bool:
    """By content; only a file that says that it is JSON is told that it is none that is known."""
    named = (source.member or path.name).lower().endswith(_JSON_NAMES) and bool(source.head.strip())
    return named or bool(_JSON_START.match(source.head))


def _family(values: Iterator[Any], wanted: str | None) -> tuple[str | None, list[Any]]:
    """Whose records these are, and those that were read to tell: the first, or some lines of a log."""
    known: dict[str, Family | Log] = {**_LOGS, **_FAMILIES}
    leading: list[Any] = []
    for record in islice(values, _LEADING):
        leading.append(record)
        names = known if len(leading) == 1 else _LOGS
        if isinstance(record, dict):
            for name in [wanted] if wanted else names:
                if known[name].matches(record):
                    return name, leading
        if wanted in _FAMILIES:
            break
    return None, leading


def _sound(values: Iterable[Any], is_log: bool, skipped: Skipped) -> Iterator[Any]:
    """The records; of a log without the lines that are damaged, else none may be."""
    for value in values:
        if not isinstance(value, Damaged):
            yield value
        elif is_log:
            skipped["damaged lines"] += 1
        else:
            raise value.error


def _fits(name: str, record: Any) -> bool:
    return isinstance(record, dict) and _FAMILIES[name].matches(record)


def _chosen(parts: Iterator[_Part], path: Path, only: str | None, skipped: Skipped) -> Iterator[Turn]:
    """The turns of all records, or of those that `only` names."""
    others: dict[str, None] = {}
    found = only is None
    for part in parts:
        if part.format == "markdown":
            yield from markdown.turns(part.text, part.stem, skipped)
            continue
        if part.format in _LOGS:
            for turn in _LOGS[part.format].turns(part.records, part.stem, skipped):
                if only in (None, turn.session):
                    found = True
                    yield turn
                elif len(others) < _SHOWN:
                    others[str(turn.session)] = None
            continue
        family = _FAMILIES[part.format]
        for record in part.records:
            if not _fits(part.format, record):
                skipped["records of another shape"] += 1
                continue
            names = family.names(record, part.stem)
            if only is None or only in names:
                found = True
                yield from family.turns(record, part.stem, skipped)
            elif len(others) < _SHOWN:
                others[names[-1]] = None
    if not found:
        raise NotThere(f"no conversation {only!r} in {path.name}; it holds {', '.join(others)}, …")


def keyed(turns: Iterator[Turn], path: Path, skipped: Skipped) -> Iterator[Turn]:
    """Make every turn recognisable when it comes again, and leave out empty ones.

    A turn with its source's own id is (the store goes by session and id); one without gets a key. Equal
    messages of one session are told apart by their order, different ones under one id by a longer id.
    """
    times: Counter[bytes] = Counter()
    words: dict[bytes, bytes] = {}
    count = 0
    for turn in turns:
        text, recalled = without_recalled(turn.text)
        if recalled:
            skipped[RECALLED] += recalled
            turn = replace(turn, text=text)
        if not text.strip():
            skipped[EMPTY] += not recalled
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
