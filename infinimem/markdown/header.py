"""The header of a document: the lines between two `---`, read as strings, edited line by line.

A header has a few kilobytes, no aliases, no tags, no duplicate keys, bounded depth, so a bomb costs no more
than its bytes. One that does not pass is a `problem`, and its bytes are never rewritten. The headers of other
programs, TOML between two `+++` and a JSON object, are read the same way, and never edited. What reads them,
python-frontmatter and yaml, is slow to import: the first header imports it.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, partial
from typing import Any

from infinimem.markdown.characters import clean_text, sound

MAX_BYTES = 16 * 1024
_MAX_DEPTH = 8
_CLOSING = {"---": "---", "+++": "+++", "{": "}"}  # what ends a header, by what begins it

Value = str | int | Sequence["Value"] | Mapping[str, "Value"]

_PLAIN = re.compile(r"[^\W_](?:[\w ./()+;%&'-]|:(?=\w))*\Z")
_PLAIN_BLOCK = re.compile(r"[^\W_](?:[\w ./()+;%&',-]|:(?=\w))*\Z")
_TYPED = re.compile(
    r"(?:true|false|yes|no|on|off|null|0[box][\da-f_]+|\d[\d_]*(?:\.[\d_]*)?(?:e[+-]?\d+)?"
    r"|\d+(?::\d+)+(?:\.\d*)?)\Z",
    re.I,
)
"""What other YAML readers take for a boolean, a number or nothing. A date may stay a date."""
_TAGS = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:seq", "tag:yaml.org,2002:map")
_EDGES = re.compile(r"\A.+\n|^.+\Z", re.MULTILINE)
"""The lines that a header stands between; where it ends is known before it is read."""
_BEGINS_KEY = re.compile(r"[\w-]++:(?:\s|\Z)")  # what makes an opening --- the beginning of a header
_DATED = re.compile(r"\d{4}-\d\d?-\d\d?(?:(?:[Tt]| +)\d.*)?\Z", re.ASCII)
_ESCAPE = re.compile(
    r'["\\]|[^\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]'
)


@dataclass(frozen=True)
class Header:
    """What a header says: strings, and lists and mappings of them; nothing if it has a `problem`.

    `end` is how many physical lines it takes, delimiters included; 0 if there is none.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    problem: str | None = None
    end: int = 0
    foreign: bool = False  # whether it is TOML or JSON

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
        return Header(_load(lines[:end]), None, end, foreign)
    except ValueError as refused:
        return Header({}, f"the header is not read: {str(refused)[:200]}", end, foreign)


def edit_header(
    lines: Sequence[str], end: int, changes: Mapping[str, str | None], newline: str = "\n"
) -> tuple[list[str], Header]:
    """Set or remove some top-level keys, and return the physical lines and the header. ValueError if it has a
    problem, or would have one afterwards, or another key would change.

    Args:
        lines: of the document, without "\\n" (a CRLF line keeps its "\\r"); `end` of them are the header.
        changes: key to YAML text (from `quote` or `flow`; further lines must be indented), or to None to
            remove the key. New keys come last, in this order.
        newline: "\\n" or "\\r\\n", the document's.
    """
    eol = newline[:-1]
    if not end and all(value is None for value in changes.values()):
        return list(lines), read_header(lines)
    before = _load(lines[:end])
    spans, indent = _spans(lines[:end])
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
        after = _load(head)
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


def _load(lines: Sequence[str]) -> dict[str, Any]:
    """Return the values of a header with its delimiters; ValueError says why it may not be one."""
    if sum(len(line.encode("utf-8", "surrogateescape")) + 1 for line in lines) > MAX_BYTES:
        raise ValueError(f"it is longer than {MAX_BYTES // 1024} KiB")
    if not lines:
        return {}
    import frontmatter
    import yaml

    text = "\n".join(line.removesuffix("\r") for line in lines)
    try:
        return dict(_strings(frontmatter.parse(text, handler=_handlers()[text[0]])[0], _MAX_DEPTH))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 2 if error.problem_mark else 1
        raise ValueError(f"{error.problem or error.context} (line {line})") from None
    except (yaml.YAMLError, UnicodeError):
        raise ValueError("it holds bytes or characters that YAML does not allow") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _strings(value: Any, depth: int) -> Any:
    """Return a value with all that is single in it as a string."""
    if isinstance(value, dict | list) and depth == 0:
        raise ValueError("it is nested too deeply")
    if isinstance(value, dict):
        return {sound(key): _strings(one, depth - 1) for key, one in value.items()}
    if isinstance(value, list):
        return [_strings(one, depth - 1) for one in value]
    return sound(value if isinstance(value, str) else json.dumps(value, default=str).strip('"'))


def _spans(lines: Sequence[str]) -> tuple[dict[str, tuple[int, int]], str]:
    """Return the lines of each top-level key of a header that `_load` reads, without blank and comment lines
    before the next, and what stands before each key."""
    import yaml

    text = "".join(line.removesuffix("\r") + "\n" for line in lines[1:-1])
    root = yaml.compose(text, Loader=_handlers()["-"].loader)
    if root is None:
        return {}, ""
    spans: dict[str, tuple[int, int]] = {}
    end = len(lines) - 1
    for key, _ in reversed(root.value):
        # Not the mark's own line: YAML breaks lines at more than "\n".
        first = text.count("\n", 0, key.start_mark.index) + 1
        while end > first + 1 and (not lines[end - 1].strip() or lines[end - 1].startswith("#")):
            end -= 1
        spans[key.value] = (first, end)
        end = first
    return spans, " " * root.start_mark.column


@cache
def _handlers() -> dict[str, Any]:
    """Return what reads a header, by its first character."""
    import yaml
    from frontmatter.default_handlers import BaseHandler, JSONHandler, YAMLHandler

    class Strings(getattr(yaml, "CBaseLoader", yaml.BaseLoader)):  # type: ignore[misc]
        """Knows no types, and refuses what a header may not hold."""

        def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
            if not self.constructed_objects and (not isinstance(node, yaml.MappingNode) or node.flow_style):
                raise ValueError("it does not consist of `key: value` lines")
            if node in self.constructed_objects:
                raise ValueError("aliases are not allowed")
            if node.tag not in _TAGS:
                raise ValueError("tags are not allowed")
            self.constructed_objects[node] = None
            if isinstance(node, yaml.SequenceNode):
                return [self.construct_object(one) for one in node.value]
            if isinstance(node, yaml.ScalarNode):
                return node.value
            values: dict[str, Any] = {}
            for key, value in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    raise ValueError("a key is not a plain string")
                if key.value in values:
                    raise ValueError(f"the key {key.value[:40]!r} stands twice")
                values[key.value] = self.construct_object(value)
            return values

    handlers: dict[str, Any] = {"-": YAMLHandler(_EDGES), "+": BaseHandler(_EDGES), "{": JSONHandler(_EDGES)}
    handlers["-"].load, handlers["-"].loader = partial(yaml.load, Loader=Strings), Strings
    handlers["+"].load = tomllib.loads
    return handlers
