"""Recognise a file and read its turns. Knows the families, not what they look like inside."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

from infinimem.errors import ImportFormatError, UsageError
from infinimem.importers import (
    chatgpt,
    claude_code,
    claude_export,
    codex,
    gemini,
    locomo,
    longmemeval,
    mail,
    markdown,
    mcp_memory,
    mem0,
    memoryagentbench,
    openai_messages,
    slack,
    telegram,
    whatsapp,
)
from infinimem.importers.archives import SLACK_LISTS, stem_of
from infinimem.importers.fields import EMPTY, OTHER, RECALLED, Json, Skipped, chat_of
from infinimem.importers.reading import Damaged, Source, explained, lines, opened, records, whole_text
from infinimem.importers.recalled import without_recalled
from infinimem.importers.refused import why_record, why_text
from infinimem.model import Turn
from infinimem.plugins import load, plugins


@runtime_checkable
class Family(Protocol):
    """A JSON format; modules of this package are its instances, and objects that packages add."""

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
    """A JSON format that is read as a whole: of a log a line may need what an earlier one says."""

    def matches(self, record: Json) -> bool:
        """Whether only a log of this program has such a record."""
        ...

    def turns(self, records: Iterable[Any], stem: str, skipped: Skipped) -> Iterator[Turn]:
        """The turns of the log, in order; the session of a message of an endless chat is its day."""
        ...


_LOGS: dict[str, Log] = {
    "claude-code": claude_code,
    "codex": codex,
    "gemini": gemini,
    "mem0": mem0,
    "telegram": telegram,
}
# Asked in this order: the particular shapes before the general one.
_FAMILIES: dict[str, Family] = {
    "locomo": locomo,
    "longmemeval": longmemeval,
    "memoryagentbench": memoryagentbench,
    "chatgpt": chatgpt,
    "claude": claude_export,
    "mcp-memory": mcp_memory,
    "openai": openai_messages,
}
_TAKES_ANY = "openai"
"""What has a role or a sender and a text; so have records of some programs that are not read."""
_TEXTS = {"mail": mail, "whatsapp": whatsapp}
_BUILT_IN = (*_FAMILIES, *_LOGS, "slack", *_TEXTS, "markdown")

_OURS: dict[str, Family | Log] = {**_LOGS, **_FAMILIES}

_JSON_START = re.compile(r"\s*(?:\[\s*[{\]]|\{\s*[\"}])")
_JSON_NAME = re.compile(r"\.(?:json|jsonl|ndjson)(?:\.gz|\.xz)?\Z", re.IGNORECASE)
_SHOWN = 8
_LEADING = 64
"""Lines of a log that may come before the first one that tells whose it is."""


def formats() -> tuple[str, ...]:
    """What an import can be told that a file is: ours, then what packages add."""
    return (*_BUILT_IN, *sorted(plugins("importers").keys() - set(_BUILT_IN)))


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
        format: one of `formats()`; None recognises it by content.
        only: one conversation of several: LoCoMo's sample id, LongMemEval's question id, the id or title of
            a conversation of a chat export, a session of chat messages or of a log.
        stem: what names a session that has no name; None takes the file's name.
        folder: where the file was found below; then no link is followed from there.

    Raises:
        UsageError: no such format, or `only` for a Markdown file.
        ImportFormatError: here, or while the turns are read: the file is damaged, empty, not readable, of no
            known format, or holds no conversation `only`.
    """
    if format is not None and format not in formats():
        raise UsageError(f"no format {format!r}: use one of {', '.join(formats())}")
    skipped: Skipped = Counter()
    wanted = _Wanted(only)
    stem = stem or stem_of(path.name)
    parts = _parts(path, folder, format, wanted, stem, skipped)
    name, first = next(parts)
    turns = keyed(_chosen(first, parts, wanted, path), path, skipped)
    if name == "markdown":
        note = str(path.resolve())
        turns = (replace(turn, note=note) for turn in turns)
    return Import(name, turns, skipped)


class _Wanted:
    """Whether a conversation is the one that was asked for; remembers which others there were."""

    def __init__(self, name: str | None) -> None:
        self.name, self.found = name, name is None
        self.others: dict[str, None] = {}

    def __call__(self, *names: str | None) -> bool:
        if self.name is None or self.name in names:
            self.found = True
            return True
        if len(self.others) < _SHOWN:
            self.others[str(names[-1])] = None
        return False


_Parts: TypeAlias = Generator[tuple[str, Iterator[Turn]], None, None]


def _parts(
    path: Path, folder: Path | None, format_: str | None, wanted: _Wanted, stem: str, skipped: Skipped
) -> _Parts:
    """The format and the turns of each text in the file; there is at least one."""
    with opened(path, skipped, folder) as sources:
        for source in sources:
            if source.name != path.name and source.name.rpartition("/")[2] in SLACK_LISTS:
                if format_ not in (None, "slack"):
                    raise ImportFormatError(f"{path.name} is a Slack export and not {format_}")
                files = ((one.name, records(one, one.name)) for one in chain([source], sources))
                yield "slack", _of(slack.turns(files, skipped), wanted)
                return
            found = None if format_ in (*_TEXTS, "markdown") else _as_json(source, path.name, format_)
            if found is None:
                yield _as_text(source, format_, path, wanted, stem, skipped)
                continue
            name, importer, values = found
            rows = _sound(values, not isinstance(importer, Family), skipped)
            if isinstance(importer, Family):
                yield name, _turns(importer, rows, wanted, stem, skipped)
            else:
                yield name, _of(importer.turns(rows, stem, skipped), wanted)


def _as_text(
    source: Source, format_: str | None, path: Path, wanted: _Wanted, stem: str, skipped: Skipped
) -> tuple[str, Iterator[Turn]]:
    """The format and the turns of a text that is no JSON; any text may be asked to be read as Markdown.

    Raises:
        ImportFormatError: it is known to be none of ours, or not the one that was asked for.
    """
    found = next((name for name, one in _TEXTS.items() if one.matches(source.head)), "markdown")
    if format_ not in (None, "markdown", found):
        raise ImportFormatError(f"{source.name} is not {format_}: leave --format out, and it is recognised")
    if format_ is None and (why := why_text(source.head)):
        raise ImportFormatError(f"{source.name} is {why}")
    if (name := format_ or found) == "mail":
        return name, _of(mail.turns(lines(source, path.name), stem, skipped), wanted)
    if name == "whatsapp":
        return name, _of(whatsapp.turns(whole_text(source, path.name), stem, skipped), wanted)
    if wanted.name is not None:
        raise UsageError("--only chooses one of several conversations; a Markdown file is one")
    in_vault = any(os.access(above / ".obsidian", os.F_OK) for above in path.absolute().parents)
    title = Path(stem).name if in_vault else None
    return name, markdown.turns(whole_text(source, path.name), stem, skipped, title)


def _of(turns: Iterable[Turn], wanted: _Wanted) -> Iterator[Turn]:
    """Those of the session, or of the chat, that was asked for."""
    return (turn for turn in turns if wanted(turn.session, chat_of(turn.session)))


def _turns(
    family: Family, rows: Iterable[Any], wanted: _Wanted, stem: str, skipped: Skipped
) -> Iterator[Turn]:
    for record in rows:
        if not (isinstance(record, dict) and family.matches(record)):
            skipped[OTHER] += 1
        elif wanted(*family.names(record, stem)):
            yield from family.turns(record, stem, skipped)


def _chosen(first: Iterator[Turn], parts: _Parts, wanted: _Wanted, path: Path) -> Iterator[Turn]:
    """The turns of all parts; the file is closed with them, even when it turns out to be damaged."""
    with closing(parts), explained(path):
        yield from first
        for _, turns in parts:
            yield from turns
    if not wanted.found:
        others = ", ".join(wanted.others)
        raise NotThere(f"no conversation {wanted.name!r} in {path.name}; it holds {others}, …")


def _as_json(source: Source, name: str, wanted: str | None) -> tuple[str, Family | Log, Iterator[Any]] | None:
    """The format of a JSON file and its records; None for a text.

    A text may begin like JSON ("[ ] buy paint"): it is one if its first records are damaged and neither its
    name nor `wanted` says JSON.

    Raises:
        ImportFormatError: the records are those of no known format.
    """
    is_named = bool(wanted or (_JSON_NAME.search(source.name) and source.head.strip()))
    if not is_named and not _JSON_START.match(source.head):
        return None
    values = records(source, name, lenient=True)
    try:
        found, leading = _recognised(values, wanted)
    except ImportFormatError as error:
        found, leading = None, [Damaged(error)]
    damage = next((one.error for one in leading if isinstance(one, Damaged)), None)
    if not (found or is_named) and (damage or not leading):
        source.rewind()
        return None
    first = leading[0] if leading else None
    if found is None and isinstance(first, Damaged):
        raise first.error
    why = why_record(first) if not wanted and isinstance(first, dict) else None
    if found and not (why and found[0] == _TAKES_ANY):
        return *found, chain(leading, values)
    kind, to_do = wanted or "of a known format", 'write one {"role": …, "content": …} a line to import it'
    raise ImportFormatError(f"{name} is {why or f'not {kind}: {to_do}'}")


def _importers(wanted: str | None) -> dict[str, Family | Log]:
    """What a file may be: ours first; a package's that is broken hinders none that was not asked for.

    Raises:
        UsageError: that which was asked for cannot be imported.
    """
    added = plugins("importers")
    if wanted:
        mine = {name: one for name, one in _OURS.items() if name == wanted}
        return mine or {name: load(one) for name, one in added.items() if name == wanted}
    found = dict(_OURS)
    for name in formats()[len(_BUILT_IN) :]:
        with suppress(UsageError):
            found[name] = load(added[name])
    return found


def _recognised(
    values: Iterator[Any], wanted: str | None
) -> tuple[tuple[str, Family | Log] | None, list[Any]]:
    """The format of these records, and those that were read to tell: the first, or some lines of a log."""
    known = _importers(wanted)
    leading: list[Any] = []
    for record in islice(values, _LEADING):
        leading.append(record)
        if isinstance(record, dict):
            for name, importer in known.items():
                if importer.matches(record):
                    return (name, importer), leading
        known = {name: one for name, one in known.items() if not isinstance(one, Family)}
        if not known:
            break
    return None, leading


def _sound(values: Iterable[Any], is_log: bool, skipped: Skipped) -> Iterator[Any]:
    """The records; damaged lines are left out of a log, and an error in any other format."""
    for value in values:
        if not isinstance(value, Damaged):
            yield value
        elif is_log:
            skipped["damaged lines"] += 1
        else:
            raise value.error


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
