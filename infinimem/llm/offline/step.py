"""The search agent by rules: one round of search and grep, then the first places that these showed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from infinimem.llm.offline.lexicon import names
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


def step(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `step`."""
    question: str = variables["question"]
    history: Sequence[Mapping[str, Any]] = variables["history"]
    tools = {tool["name"] for tool in variables["tools"]}
    calls = [call for call in _calls(question) if call["name"] in tools]
    if calls and calls[0]["arguments"] not in [entry["arguments"] for entry in history]:
        return _reply(calls)
    places = {tuple(place.values()): place for entry in history for place in _places(entry["result"])}
    return _reply([], [*places.values()][:SNIPPETS])


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


def _places(result: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Where the lines stand that a tool has shown, whichever it was; errors have none."""
    for hit in result.get("hits", ()):
        yield {key: hit[key] for key in ("doc_id", "start_line", "end_line")}
    for match in result.get("matches", ()):
        yield {"doc_id": match["doc_id"], "start_line": match["line"], "end_line": match["line"]}


def _reply(calls: list[Call], places: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    return {"done": not calls, "tool_calls": calls, "relevant_snippets": [*places], "relevant_docs": []}


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
