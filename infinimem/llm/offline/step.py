"""The search agent by rules: one round of search and grep, then the best of the lines that it showed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from infinimem.grounding.sentences import strip_ordinal
from infinimem.llm.offline.relevance import Question, names
from infinimem.markdown.signature import parse_entry
from infinimem.terms import STOP_WORDS, fold

GREPS = 3
"""Patterns of the first round."""
NAMES = 20
"""Names of a question that are looked at: somebody may paste a book."""
SNIPPETS = 8

_QUOTED = re.compile(r"[\"“]([^\"”]{2,80})[\"”]")
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_WORD = re.compile(r"\w+(?:['’-]\w+)*")

Call = dict[str, Any]


class _Seen(NamedTuple):
    """A line that some tool has shown."""

    doc_id: str
    line: int
    text: str
    time: str


def step(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `step`."""
    question: str = variables["question"]
    history: Sequence[Mapping[str, Any]] = variables["history"]
    tools = {tool["name"] for tool in variables["tools"]}
    if not history:
        return _reply([call for call in _calls(question) if call["name"] in tools])
    lines = list(dict.fromkeys(line for entry in history for line in _seen(entry["result"])))
    return _reply([], _ranked(lines, question)[:SNIPPETS])


def _calls(question: str) -> Iterator[Call]:
    words = " ".join(word for word in _WORD.findall(question) if fold(word) not in STOP_WORDS)
    yield {"name": "search", "arguments": {"query": words or question.strip() or "?", "limit": 10}}
    patterns = [
        *_QUOTED.findall(question),
        *_NUMBER.findall(question),
        *_runs(names(question)[:NAMES], question),
    ]
    for pattern in [*dict.fromkeys(patterns)][:GREPS]:
        literal = re.escape(pattern).replace(r"\ ", " ")
        yield {"name": "grep", "arguments": {"pattern": literal, "context_lines": 0}}


def _ranked(lines: Sequence[_Seen], question: str) -> list[_Seen]:
    """The lines that have something of the question, the best first."""
    asked = Question(question, (line.text for line in lines))
    found = {line: asked.match(line.text, line.time) for line in lines}
    telling = [line for line in lines if asked.telling(found[line].terms)]
    return sorted(telling, key=lambda line: (-found[line].score, line.doc_id, line.line))


def _seen(result: Mapping[str, Any]) -> Iterator[_Seen]:
    """Lines in what a tool returned, whichever it was; errors hold none."""
    for hit in result.get("hits", ()):
        for line, text in enumerate(hit["snippet"].split("\n"), start=hit["start_line"]):
            yield _line(hit["doc_id"], line, text)
    for match in result.get("matches", ()):
        yield _line(match["doc_id"], match["line"], match["text"])


def _line(doc_id: str, line: int, text: str) -> _Seen:
    """A line without its signature, but with who said it and when."""
    entry = parse_entry(text)
    if entry is None:
        return _Seen(doc_id, line, text, "")
    speaker = entry.fields.get("speaker")
    said = strip_ordinal(entry.text)
    return _Seen(doc_id, line, f"{speaker}: {said}" if speaker else said, entry.time or "")


def _reply(calls: list[Call], lines: Sequence[_Seen] = ()) -> dict[str, Any]:
    return {
        "done": not calls,
        "tool_calls": calls,
        "relevant_snippets": [
            {"doc_id": line.doc_id, "start_line": line.line, "end_line": line.line} for line in lines
        ],
        "relevant_docs": [],
    }


def _runs(found: Sequence[str], question: str) -> list[str]:
    """Names that stand side by side as one: "Noel Pemberton Billing"."""
    runs: list[str] = []
    for name in found:
        joined = f"{runs[-1]} {name}" if runs else ""
        if joined and joined in question:
            runs[-1] = joined
        else:
            runs.append(name)
    return runs
