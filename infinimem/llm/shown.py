"""Values as a model is shown them: a line for what was said, JSON for the rest.

A line costs half of its JSON and says the same: `[517] 2023-05-18 Ann (AI): text (when 2023-04)`. Clients
that are programs read the values themselves (llm/offline/).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from infinimem.markdown.characters import name, one_line

_NOTED = ("when", "refers", "label", "superseded_by")
_BREAK = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_INDENT = "\n" + 8 * " "
"""Before what goes on on another line: no text can pass for a line of its own."""


def shown(value: Any) -> str:
    """Return a variable of a prompt: a string as it is, or JSON values, in which whatever has an id and a
    text, or a summary, is told in a line, and lists of such below what they belong to. Of what has `told`,
    these lines are shown, and all else is for programs."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and value:
        return "\n".join("\n".join(_lines(item)) for item in value)
    return "\n".join(_lines(value))


def _lines(value: Any) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield _json(value)
    elif "told" in value:
        first, *rest = map(one_line, value["told"])
        yield from (first, *(f"  {line}" for line in rest))
    elif _is_said(value):
        yield _line(value)
    elif "span" in value:
        yield one_line(f"{value['doc_id']} {value['span']}")
        yield from _evidence(value["lines"])
    elif {"id", "summary"} <= value.keys() <= {"id", "title", "summary"}:
        yield one_line(": ".join(filter(None, (value["id"], value.get("title"), value["summary"]))))
    else:
        told = {key: item for key, item in value.items() if not _has_said(item)}
        yield f"# {one_line(told['heading'])}" if told.keys() == {"heading"} else _json(told)
        for rows in filter(_has_said, value.values()):
            yield from (f"  {line}" for row in rows for line in _lines(row))


def _has_said(value: Any) -> bool:
    """Whether a list holds lines, at whatever depth."""
    return isinstance(value, list | tuple) and any(
        isinstance(item, Mapping) and (_is_said(item) or any(map(_has_said, item.values()))) for item in value
    )


def _is_said(value: Mapping[str, Any]) -> bool:
    return {"id", "text"} <= value.keys() and "keywords" not in value


def _evidence(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The lines of a document: of a line's day and speaker what the line above it does not share."""
    above = None
    for row in rows:
        if "text" in row:
            yield _line(row, above)
            above = row
        else:
            yield from _lines(row)


def _line(row: Mapping[str, Any], above: Mapping[str, Any] | None = None) -> str:
    text, speaker = row["text"], row.get("speaker") or ""
    if speaker and text.startswith(f"{speaker}:"):
        text = text[len(speaker) + 1 :].lstrip()
    head = _head(row)
    if above and (day := _day(row)) == _day(above):
        head = "-" if head == _head(above) else head.removeprefix(day).lstrip()
    notes = ", ".join(f"{key.replace('_', ' ')} {row[key]}" for key in _NOTED if row.get(key))
    told = _BREAK.sub(_INDENT, text) + (f" ({notes})" if notes else "")
    begin = f"[{row['id']}] {head}".rstrip()
    return f"{begin} {told}" if head == "-" else f"{begin}: {told}"


def _day(row: Mapping[str, Any]) -> str:
    return (row.get("time") or "")[:10]


def _head(row: Mapping[str, Any]) -> str:
    source = row.get("source") or row.get("role") or "user"
    who = (name(row.get("speaker") or ""), "" if source in ("user", "human") else f"({source})")
    return " ".join(filter(None, (_day(row), *who)))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
