"""The search agent by rules: search, grep names, numbers and quotations, read around the best lines, stop.

A round depends on the history alone, so the loop's driver may cut, repeat or drop rounds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from infinimem.grounding.sentences import strip_ordinal
from infinimem.llm.offline.relevance import Match, Question, names
from infinimem.markdown.signature import parse_entry
from infinimem.retrieval.synonyms import related
from infinimem.terms import STOP_WORDS, fold, tokens

GREPS = 3
"""Patterns of the first round."""
NAMES = 20
"""Names of a question that are looked at: somebody may paste a book."""
READS, AROUND = 4, 2
"""Places of the second round, and lines on each side of them."""
SNIPPETS = 8
COVERED = 0.6
"""Share of the question's weight that makes a second search needless."""

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
    told = _telling_words(question)
    looked_for = any(entry["arguments"].get("query") == told for entry in history)
    if not history or ("search" in tools and not looked_for):  # the reader may have searched for its parts
        return _reply(call for call in _first_look(question) if call["name"] in tools)
    lines = list(dict.fromkeys(line for entry in history for line in _seen(entry["result"])))
    asked = Question(question, (line.text for line in lines))
    ranked = _ranked(lines, asked)
    done = {str({"name": entry["name"], "arguments": dict(entry["arguments"])}) for entry in history}
    looked = any(entry["name"] == "read_lines" for entry in history)
    if int(variables["rounds_left"]) > 0 and not looked:
        calls = [
            call for call in _second_look(asked, ranked) if call["name"] in tools and str(call) not in done
        ]
        if calls:
            return _reply(calls)
    return _reply((), [line for line, _ in ranked[:SNIPPETS]])


def _first_look(question: str) -> Iterator[Call]:
    yield _call("search", query=_telling_words(question), limit=10)
    patterns = [
        *_QUOTED.findall(question),
        *_NUMBER.findall(question),
        *_runs(names(question)[:NAMES], question),
    ]
    for pattern in [*dict.fromkeys(patterns)][:GREPS]:
        yield _call("grep", pattern=_literal(pattern), context_lines=0)


def _literal(text: str) -> str:
    """A pattern that stands for nothing but this text."""
    return re.escape(text).replace(r"\ ", " ")


def _second_look(question: Question, ranked: Sequence[tuple[_Seen, Match]]) -> Iterator[Call]:
    """Around the best lines; and once more for the words that no line had."""
    yield from _again(question, ranked)
    taken: list[_Seen] = []
    for line, _ in ranked:
        if len(taken) == READS:
            return
        if all(line.doc_id != other.doc_id or abs(line.line - other.line) > AROUND for other in taken):
            taken.append(line)
            start = max(1, line.line - AROUND)
            yield _call("read_lines", doc_id=line.doc_id, start=start, end=line.line + AROUND)


def _again(question: Question, ranked: Sequence[tuple[_Seen, Match]]) -> Iterator[Call]:
    found = {term for _, match in ranked[:READS] for term in match.terms}
    if not ranked or ranked[0][1].share < COVERED:
        rest = [word for word in _words(question.text) if not found.intersection(tokens(word))]
        near = related(term for word in rest for term in tokens(word))
        if rest or near:
            yield _call("search", query=" ".join([*rest, *near]), limit=10)
    if ranked:  # whoever said it before or after said it in much the same words
        yield _call("search", query=_telling_words(ranked[0][0].text), limit=10)


def _ranked(lines: Sequence[_Seen], question: Question) -> list[tuple[_Seen, Match]]:
    """The lines that have something of the question, the best first."""
    matched = [(line, question.match(line.text, line.time)) for line in lines]
    telling = [(line, match) for line, match in matched if question.telling(match.terms)]
    return sorted(telling, key=lambda item: (-item[1].score, item[0].doc_id, item[0].line))


def _seen(result: Mapping[str, Any]) -> Iterator[_Seen]:
    """Lines in what a tool returned, whichever it was; errors hold none."""
    for hit in result.get("hits", ()):
        for line, text in enumerate(hit["snippet"].split("\n"), start=hit["start_line"]):
            yield _line(hit["doc_id"], line, text)
    for match in result.get("matches", ()):
        yield _line(match["doc_id"], match["line"], match["text"])
    for row in result.get("lines", ()):
        yield _line(result["doc_id"], row["line"], row["text"])


def _line(doc_id: str, line: int, text: str) -> _Seen:
    """A line without its signature, but with who said it and when."""
    entry = parse_entry(text)
    if entry is None:
        return _Seen(doc_id, line, text, "")
    speaker = entry.fields.get("speaker")
    said = strip_ordinal(entry.text)
    return _Seen(doc_id, line, f"{speaker}: {said}" if speaker else said, entry.time or "")


def _reply(calls: Any, lines: Sequence[_Seen] = ()) -> dict[str, Any]:
    called = list(calls)
    return {
        "done": not called,
        "tool_calls": called,
        "relevant_snippets": [
            {"doc_id": line.doc_id, "start_line": line.line, "end_line": line.line} for line in lines
        ],
        "relevant_docs": [],
    }


def _call(tool: str, **arguments: Any) -> Call:
    return {"name": tool, "arguments": arguments}


def _words(question: str) -> list[str]:
    return [word for word in _WORD.findall(question) if fold(word) not in STOP_WORDS]


def _telling_words(question: str) -> str:
    return " ".join(_words(question)) or question.strip() or "?"


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
