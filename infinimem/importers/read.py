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
from typing import Any

from infinimem.errors import ImportFormatError, UsageError
from infinimem.importers import exports, fields, logs, mail, markdown, messengers, reading, simple
from infinimem.importers.fields import Format, Json, Skipped
from infinimem.importers.reading import Damaged, Source
from infinimem.model import Turn
from infinimem.spec import load, plugins

# Asked in this order: the particular shapes before the general one.
_OURS: dict[str, Format] = {
    "locomo": simple.LOCOMO,
    "longmemeval": simple.LONGMEMEVAL,
    "memoryagentbench": simple.MEMORYAGENTBENCH,
    "chatgpt": exports.CHATGPT,
    "claude": exports.CLAUDE,
    "mcp-memory": simple.MCP_MEMORY,
    "claude-code": logs.CLAUDE_CODE,
    "codex": logs.CODEX,
    "gemini": simple.GEMINI,
    "mem0": simple.MEM0,
    "telegram": messengers.TELEGRAM,
    "openai": simple.OPENAI,
}
_TEXTS = {"mail": mail.matches, "whatsapp": messengers.is_whatsapp}
_BUILT_IN = (*_OURS, "slack", *_TEXTS, "markdown")

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
    reader = _Reader(path, folder, format, only, stem or reading.stem_of(path.name))
    parts = reader.parts()
    name, first = next(parts)
    turns = keyed(reader.chosen(first, parts), path, reader.skipped)
    if name == "markdown":
        note = str(path.resolve())
        turns = (replace(turn, note=note) for turn in turns)
    return Import(name, turns, reader.skipped)


@dataclass
class _Reader:
    """One reading of a file: what was asked for, and what is met on the way."""

    path: Path
    folder: Path | None
    format: str | None
    only: str | None
    stem: str
    skipped: Skipped = field(default_factory=Counter)
    met: dict[str, None] = field(default_factory=dict)
    """Conversations."""

    def wants(self, *names: str | None) -> bool:
        """Whether a conversation of these names is what was asked for; remembers its last name."""
        wanted = self.only is None or self.only in names
        if wanted or len(self.met) < _SHOWN:
            self.met[str(self.only if wanted else names[-1])] = None
        return wanted

    def parts(self) -> Generator[tuple[str, Iterator[Turn]], None, None]:
        """The format and the turns of each text in the file; there is at least one."""
        name, wanted = self.path.name, self.format
        with reading.opened(self.path, self.skipped, self.folder) as sources:
            for source in sources:
                if source.name != name and source.name.rpartition("/")[2] in reading.SLACK_LISTS:
                    if wanted not in (None, "slack"):
                        raise ImportFormatError(f"{name} is a Slack export and not {wanted}")
                    files = ((one.name, reading.records(one, one.name)) for one in chain([source], sources))
                    yield "slack", self._of(messengers.slack_turns(files, self.skipped))
                    return
                is_text = wanted in (*_TEXTS, "markdown")
                found = None if is_text else _as_json(source, name, wanted)
                yield (found[0], self._of_json(*found[1:])) if found else self._as_text(source)

    def _as_text(self, source: Source) -> tuple[str, Iterator[Turn]]:
        """The format and the turns of a text that is no JSON; any may be asked to be read as Markdown."""
        found = next((name for name, matches in _TEXTS.items() if matches(source.head)), "markdown")
        if self.format not in (None, "markdown", found):
            raise ImportFormatError(
                f"{source.name} is not {self.format}: leave --format out, and it is recognised"
            )
        if self.format is None and (why := why_text(source.head)):
            raise ImportFormatError(f"{source.name} is {why}")
        if (name := self.format or found) == "mail":
            return name, self._of(mail.turns(reading.lines(source, self.path.name), self.stem, self.skipped))
        if name == "markdown" and self.only is not None:
            raise UsageError("--only chooses one of several conversations; a Markdown file is one")
        text = reading.whole_text(source, self.path.name)
        if name == "whatsapp":
            return name, self._of(messengers.whatsapp_turns(text, self.stem, self.skipped))
        in_vault = any(os.access(above / ".obsidian", os.F_OK) for above in self.path.absolute().parents)
        return name, markdown.turns(text, self.stem, self.skipped, Path(self.stem).name if in_vault else None)

    def _of(self, turns: Iterable[Turn]) -> Iterator[Turn]:
        """Those of the session, or of the chat, that was asked for."""
        return (turn for turn in turns if self.wants(turn.session, fields.chat_of(turn.session)))

    def _of_json(self, kind: Format, values: Iterable[Any]) -> Iterator[Turn]:
        """The turns of records; damaged lines are left out of a log, and an error in any other format."""
        if kind.is_log:
            yield from self._of(kind.turns(self._sound(values), self.stem, self.skipped))
            return
        for record in values:
            if isinstance(record, Damaged):
                raise record.error
            if not (isinstance(record, dict) and kind.matches(record)):
                self.skipped[fields.OTHER] += 1
            elif self.wants(*kind.names(record, self.stem)):
                yield from kind.turns(record, self.stem, self.skipped)

    def _sound(self, values: Iterable[Any]) -> Iterator[Any]:
        for value in values:
            if isinstance(value, Damaged):
                self.skipped["damaged lines"] += 1
            else:
                yield value

    def chosen(self, first: Iterator[Turn], parts: Generator[tuple[str, Iterator[Turn]]]) -> Iterator[Turn]:
        """The turns of all parts; the file is closed with them, even when it turns out to be damaged."""
        with closing(parts), reading.explained(self.path):
            yield from first
            for _, turns in parts:
                yield from turns
        if self.only is not None and self.only not in self.met:
            others = ", ".join(self.met)
            raise NotThere(f"no conversation {self.only!r} in {self.path.name}; it holds {others}, …")


def _as_json(source: Source, name: str, wanted: str | None) -> tuple[str, Format, Iterator[Any]] | None:
    """The format of a JSON file and its records; None for a text.

    A text may begin like JSON ("[ ] buy paint"): it is one if its first records are damaged and neither its
    name nor `wanted` says JSON.
    """
    is_named = wanted or (_JSON_NAME.search(source.name) and source.head.strip())
    if not is_named and not _JSON_START.match(source.head):
        return None
    values = reading.records(source, name, lenient=True)
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
    if found and not (why and found[0] == "openai"):  # which takes what has a role or a sender, and a text
        return *found, chain(leading, values)
    kind, to_do = wanted or "of a known format", 'write one {"role": …, "content": …} a line to import it'
    raise ImportFormatError(f"{name} is {why or f'not {kind}: {to_do}'}")


def _added(name: str) -> Format:
    """The format that a package adds: a module or object with functions of `Format`; a log has no names."""
    one = load(plugins("importers")[name])
    if hasattr(one, "names"):
        return Format(one.matches, one.turns, one.names)
    return Format(one.matches, one.turns, is_log=True)


def _recognised(values: Iterator[Any], wanted: str | None) -> tuple[tuple[str, Format] | None, list[Any]]:
    """The format of these records, and those that were read to tell: the first, or some lines of a log.

    A package's format that is broken hinders none but itself.
    """
    known = {name: one for name, one in _OURS.items() if wanted in (None, name)}
    for name in formats()[len(_BUILT_IN) :]:
        with suppress(*() if wanted else (UsageError,)):
            known |= {name: _added(name)} if wanted in (None, name) else {}
    leading: list[Any] = []
    for record in islice(values, _LEADING):
        leading.append(record)
        if isinstance(record, dict):
            for name, one in known.items():
                if one.matches(record):
                    return (name, one), leading
        known = {name: one for name, one in known.items() if one.is_log}
        if not known:
            break
    return None, leading


def keyed(turns: Iterator[Turn], path: Path, skipped: Skipped) -> Iterator[Turn]:
    """Make every turn recognisable when it comes again, and leave out empty ones.

    A turn with its source's own id is (the store goes by session and id); one without gets a key. Equal
    messages of one session are told apart by their order, different ones under one id by a longer id.
    """
    times: Counter[bytes] = Counter()
    words: dict[bytes, bytes] = {}
    count = 0
    for turn in turns:
        text, recalled = fields.without_recalled(turn.text)
        if recalled:
            skipped[fields.RECALLED] += recalled
            turn = replace(turn, text=text)
        if not text.strip():
            skipped[fields.EMPTY] += not recalled
            continue
        count += 1
        said = _digest(turn.role, turn.speaker, turn.text)
        if turn.turn is not None:
            if words.setdefault(_digest(turn.session, turn.turn), said) != said:
                turn = replace(turn, turn=f"{turn.turn}~{said.hex()}")
        elif turn.key is None:
            key = _digest(turn.session, said.hex())
            times[key] += 1
            key = _digest(key.hex(), str(times[key])) if times[key] > 1 else key
            turn = replace(turn, key=key.hex())
        yield turn
    skipped += Counter()  # drops what was counted zero times
    if not count:
        raise ImportFormatError(f"{path.name} holds no message with text: there is nothing to import")


def _digest(*parts: str | None) -> bytes:
    joined = "\0".join(part or "" for part in parts)
    return blake2b(joined.encode("utf-8", "surrogatepass"), digest_size=8).digest()


# ── what looks like a format and is not ─────────────────────────────────────────────────────────

_HTML = re.compile(
    r"\s*(?:<!--.*?-->\s*|<\?xml[^>]*>\s*)*<(?:!doctype html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)
_PAGES = {
    "My Activity": "Google's My Activity as a web page: ask Takeout for that of Gemini Apps as JSON",
    "Exported Data": "Telegram's export as a web page: export again as JSON, and give result.json",
    "ChatGPT Data Export": "ChatGPT's export as a web page: give conversations.json, or the zip as it came",
}
_OTHER_TEXTS = {
    "{\\rtf": "a document in RTF: save it as plain text",
    "BEGIN:VCARD": "an address book: names and numbers are no memory",
    "BEGIN:VCALENDAR": "a calendar: write what matters of it as a note",
    "%PDF-": "a PDF: save its text",
}


def why_text(head: str) -> str | None:
    """What a text is that is no note, by its beginning; None where nothing is known against it."""
    if head.startswith("---") and "\nexcalidraw-plugin:" in head:
        return "a drawing (Excalidraw): write what it shows as a note"
    if _HTML.match(head):
        page = next((why for name, why in _PAGES.items() if name in head), None)
        return page or "a web page: save its text, or have the program export JSON"
    return next((why for begin, why in _OTHER_TEXTS.items() if head.startswith(begin)), None)


_CHATGPT = "another file of ChatGPT's export: give conversations.json, or the zip as it came"
_TELEGRAM = "an export of Telegram without messages: export again with the chats"
_RECORDS = {
    ("guild", "channel"): 'a Discord export, which is not read: write one {"role": …, "content": …} a line',
    (
        "header",
        "title",
        "time",
        "products",
    ): "My Activity of another program of Google: ask Takeout for that of Gemini Apps alone",
    ("chatgpt_plus_user",): _CHATGPT,
    ("conversation_id", "is_anonymous"): _CHATGPT,
    ("uuid", "full_name", "email_address"): "the account of Claude's export: give conversations.json, "
    "memories.json or projects.json",
    ("personal_information",): _TELEGRAM,
}
"""Keys of records that tell what they are."""


def why_record(record: Json) -> str | None:
    """What a JSON file is by one of its records, where a program is known that writes such; else None."""
    if messengers.is_of_slack(record):
        return "one file of a Slack export: give the export's folder or zip"
    if isinstance(record.get("chats"), dict):
        return _TELEGRAM
    return next((why for keys, why in _RECORDS.items() if record.keys() >= set(keys)), None)
