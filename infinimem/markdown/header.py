"""The header of a document: the lines between two `---`, read as strings, edited line by line.

A header has a few kilobytes, no aliases, no tags, no duplicate keys, bounded depth. One that does not pass is
a `problem`, and its bytes are never rewritten. Editing touches the lines of the keys it changes; nothing is
ever dumped anew. The headers of other programs, TOML between two `+++` and a JSON object, are read the same
way, and never edited.

YAML is read from parser events: strings, lists and mappings only. Nothing recurses, and the parser is stopped
at the first event that a header may not hold, so a bomb costs no more than its first bytes. The yaml package
is slow to import, so the first header imports it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import zip_longest
from typing import Any, NamedTuple

from infinimem.markdown.characters import clean_text, sound

MAX_BYTES = 16 * 1024
MAX_DEPTH = 8
MAX_EVENTS = 20_000
_CLOSING = {"---": "---", "+++": "+++", "{": "}"}
"""What ends a header, by what begins it."""

Value = str | int | Sequence["Value"] | Mapping[str, "Value"]

_PLAIN = re.compile(r"[^\W_](?:[\w ./()+;%&'-]|:(?=\w))*+\Z")
_PLAIN_BLOCK = re.compile(r"[^\W_](?:[\w ./()+;%&',-]|:(?=\w))*+\Z")
_TYPED = re.compile(
    r"(?:true|false|yes|no|on|off|null|0[box][\da-f_]+|\d[\d_]*(?:\.[\d_]*)?(?:e[+-]?\d+)?"
    r"|\d+(?::\d+)+(?:\.\d*)?)\Z",
    re.I,
)
"""What other YAML readers take for a boolean, a number or nothing. A date may stay a date."""
_BEGINS_KEY = re.compile(r"[\w-]++:(?:\s|\Z)")
"""What makes an opening --- the beginning of a header."""
_DATED = re.compile(r"\d{4}-\d\d?-\d\d?(?:(?:[Tt]| +)\d.*)?\Z", re.ASCII)
_ESCAPE = re.compile(
    r'["\\]|[^\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]'
)


class _Key(NamedTuple):
    """A top-level key; its line counts from 0 and has the delimiter before it."""

    name: str
    line: int
    column: int


@dataclass(frozen=True)
class Header:
    """What a header says: strings, and lists and mappings of them; nothing if it has a `problem`.

    `end` is how many physical lines it takes, delimiters included; 0 if there is none.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    problem: str | None = None
    end: int = 0
    foreign: bool = False
    """Whether it is TOML or JSON."""

    @property
    def editable(self) -> bool:
        """Whether it is ours to edit, or there is none yet."""
        return self.problem is None and not self.foreign


def header_end(lines: Sequence[str]) -> int:
    """Return the number of lines that the header takes, 0 if there is none; looks at no YAML or TOML.

    A signed line cannot stand in a header: a stray `---` at the top of a document hides no entry.
    """
    mark = _CLOSING.get(lines[0].rstrip()) if lines else None
    for at in range(1, len(lines) if mark else 0):
        if lines[at].startswith("- <seq="):
            break
        if lines[at].startswith(mark or "") and lines[at].rstrip() == mark:
            return at + 1
    return 0


def read_header(lines: Sequence[str]) -> Header:
    """Return the header at the top of these physical lines; never raises."""
    end = header_end(lines)
    if end == 0:
        meant = len(lines) > 1 and lines[0].rstrip() == "---" and _BEGINS_KEY.match(lines[1])
        return Header(problem="the header has no closing ---" if meant else None)
    foreign = not lines[0].startswith("---")
    try:
        values = _load_foreign(lines[:end]) if foreign else _load(lines, end)[0]
        return Header(values, None, end, foreign)
    except (ValueError, RecursionError) as refused:
        return Header({}, f"the header is not read: {str(refused)[:200]}", end, foreign)


def _load_foreign(lines: Sequence[str]) -> dict[str, Any]:
    """Return the values of a header in TOML or JSON; raises as `_load`."""
    import tomllib

    _must_be_short(lines)
    toml = lines[0].startswith("+")
    text = "\n".join(line.removesuffix("\r") for line in (lines[1:-1] if toml else lines))
    return dict(_strings(tomllib.loads(text) if toml else json.loads(text), MAX_DEPTH))


def _strings(value: Any, depth: int) -> Any:
    """Return a value of TOML or JSON with all that is single in it as YAML would have it: a string."""
    if isinstance(value, dict | list) and depth == 0:
        raise RefusedError("it is nested too deeply")
    if isinstance(value, dict):
        return {sound(key): _strings(one, depth - 1) for key, one in value.items()}
    if isinstance(value, list):
        return [_strings(one, depth - 1) for one in value]
    return sound(value if isinstance(value, str) else json.dumps(value, default=str).strip('"'))


def _must_be_short(lines: Sequence[str]) -> None:
    if sum(len(line.encode("utf-8", "surrogateescape")) + 1 for line in lines) > MAX_BYTES:
        raise RefusedError(f"it is longer than {MAX_BYTES // 1024} KiB")


def edit_header(
    lines: Sequence[str], end: int, changes: Mapping[str, str | None], newline: str = "\n"
) -> tuple[list[str], Header]:
    """Set or remove some top-level keys, and return the physical lines and the header.

    Args:
        lines: all physical lines of the document, without "\\n" (a CRLF line keeps its "\\r").
        end: number of lines of the header as it stands, 0 to create one.
        changes: key to YAML text (from `quote` or `flow`; further lines must be indented), or to None to
            remove the key. New keys come last, in this order.
        newline: "\\n" or "\\r\\n", the document's.

    Raises:
        ValueError: the header has a problem, or would have one afterwards, or another key would change.
    """
    eol = newline[:-1]
    if not end and all(value is None for value in changes.values()):
        return list(lines), read_header(lines)
    before, keys = _load(lines, end)
    spans, indent = _spans(lines, end, keys), " " * (keys[0].column if keys else 0)
    head = list(lines[:end]) or ["---" + eol, "---" + eol]
    written = {
        key: [indent + line.rstrip(" ") + eol for line in f"{quote(key, flow=True)}: {value}".split("\n")]
        for key, value in changes.items()
        if value is not None
    }
    new = [line for key, more in written.items() if key not in spans for line in more]
    head[-1:-1] = new
    for key in sorted(changes.keys() & spans.keys(), key=lambda key: spans[key], reverse=True):
        first, last = spans[key]
        head[first:last] = written.get(key, [])
    try:
        after = _load(head, len(head))[0]
    except ValueError as refused:
        raise ValueError(f"the header cannot take these values of {sorted(changes)}: {refused}") from None
    if header_end(head) != len(head) or any(
        (key in after) != (changes[key] is not None) if key in changes else after.get(key) != before.get(key)
        for key in {*before, *after, *changes}
    ):
        raise ValueError(f"the header cannot take these values of {sorted(changes)}: other keys would change")
    return [*head, *lines[end:]], Header(after, None, len(head))


def quote(text: str, *, flow: bool = False) -> str:
    """Return `text`, cleaned, as a scalar that any YAML reader takes for that string; `flow`: in […]."""
    text = clean_text(text)
    plain = _PLAIN if flow else _PLAIN_BLOCK
    if plain.match(text) and text[-1] != " " and _TYPED.match(text) is None and not _is_no_date(text):
        return text
    return '"' + _ESCAPE.sub(lambda match: json.dumps(match[0])[1:-1], text) + '"'


def _is_no_date(text: str) -> bool:
    """Tell whether it looks like a date and is none, so that other readers fail over it."""
    if _DATED.match(text) is None:
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return True
    return False


def flow(value: Value) -> str:
    """Return strings, whole numbers, lists and mappings as YAML flow text on one line."""
    if isinstance(value, str):
        return quote(value, flow=True)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{quote(key, flow=True)}: {flow(one)}" for key, one in value.items()) + "}"
    return "[" + ", ".join(map(flow, value)) + "]"


def _load(lines: Sequence[str], end: int) -> tuple[dict[str, Any], list[_Key]]:
    """Return the values of a header and its top-level keys.

    Raises:
        ValueError: it is too large, or holds what a header may not.
    """
    _must_be_short(lines[:end])  # before YAML sees it
    return _parse("".join(line.removesuffix("\r") + "\n" for line in lines[1 : end - 1])) if end else ({}, [])


def _spans(lines: Sequence[str], end: int, keys: Sequence[_Key]) -> dict[str, tuple[int, int]]:
    """Return the lines of each top-level key, without blank and comment lines before the next."""
    spans: dict[str, tuple[int, int]] = {}
    for key, after in zip_longest(keys, keys[1:]):
        last = after.line if after else end - 1
        while last > key.line + 1 and (not lines[last - 1].strip() or lines[last - 1].startswith("#")):
            last -= 1
        spans[key.name] = (key.line, last)
    return spans


class RefusedError(ValueError):
    """Why a header is not read; one line."""


def _parse(text: str) -> tuple[dict[str, Any], list[_Key]]:
    """Return values and top-level keys, in order, of the YAML between the delimiters of a header.

    Raises:
        RefusedError: an alias, an anchor, a tag, a key that stands twice, too much of anything, or no YAML.
    """
    import yaml

    try:
        return _collect(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 2 if error.problem_mark else 1
        raise RefusedError(f"{error.problem or error.context} (line {line})") from None
    except (yaml.YAMLError, UnicodeError):
        raise RefusedError("it holds bytes or characters that YAML does not allow") from None


def _collect(text: str) -> tuple[dict[str, Any], list[_Key]]:
    import yaml

    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # both refuse the same headers
    keys: list[_Key] = []
    root: list[Any] = []
    stack: list[tuple[Any, list[str]]] = [(root, [])]  # a container, and the key that waits for its value
    for count, event in enumerate(yaml.parse(text, Loader=loader)):
        if count > MAX_EVENTS or len(stack) > MAX_DEPTH + 1:
            raise RefusedError("it is nested too deeply or holds too many values")
        if isinstance(event, yaml.DocumentStartEvent) and (root or event.version or event.tags):
            raise RefusedError("it holds a second YAML document or a directive")
        if isinstance(event, yaml.AliasEvent):
            raise RefusedError("aliases are not allowed")
        if isinstance(event, yaml.CollectionEndEvent):
            stack.pop()
        if not isinstance(event, (yaml.ScalarEvent, yaml.CollectionStartEvent)):
            continue
        if event.anchor is not None or event.tag is not None:
            raise RefusedError("anchors and tags are not allowed")
        if not root and not (isinstance(event, yaml.MappingStartEvent) and not event.flow_style):
            raise RefusedError("it does not consist of `key: value` lines")
        value: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
        if isinstance(event, yaml.ScalarEvent):
            value = event.value
        container, waiting = stack[-1]
        if isinstance(container, list):
            container.append(value)
        elif waiting:
            container[waiting.pop()] = value
        elif not isinstance(value, str):
            raise RefusedError("a key is not a plain string")
        elif value in container:
            raise RefusedError(f"the key {value[:40]!r} stands twice")
        else:
            container[value] = ""
            waiting.append(value)
            if container is root[0] and event.start_mark:
                # Not the mark's own line: YAML breaks lines at more than "\n".
                at = event.start_mark.index
                keys.append(_Key(value, text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at) - 1))
        if not isinstance(event, yaml.ScalarEvent):
            stack.append((value, []))
    return (root[0] if root else {}), keys
