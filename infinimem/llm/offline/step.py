"""The search agent by rules: search, grep names, numbers and quotations, read around the best lines, stop.

Where a line answers a part of the question only and names something new, that is searched next, together
with the words still unanswered (chain.py); a question gets four searches at most. A round depends on the
history alone, so the loop's driver may cut, repeat or drop rounds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from infinimem.llm.offline.chain import LINKS, Statement, Walk, walks
from infinimem.llm.offline.duplicates import number
from infinimem.llm.offline.lexicon import strip_ordinal
from infinimem.llm.offline.relations import relations
from infinimem.llm.offline.relevance import Match, Question, names
from infinimem.llm.offline.statements import lead
from infinimem.markdown.signature import parse_entry
from infinimem.retrieval.kin import related
from infinimem.retrieval.tokenizer import STOP_WORDS, fold, tokens

GREPS = 3
"""Patterns of the first round."""
NAMES = 20
"""Names of a question that are looked at: somebody may paste a book."""
READS, AROUND = 4, 2
"""Places of the second round, and lines on each side of them."""
SNIPPETS = 8
SEARCHES = 4
"""Of one question, at most."""
WALKS = 3
"""Walks of which one is followed: the best, or the next where its end was searched already."""
HEAD = range(2, 12)
"""Words but one of what a statement says before its last phrase, where another one may begin alike."""
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
    seq: str


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
    found = walks(question, _statements(lines))
    searched = [str(entry["arguments"].get("query", "")) for entry in history if entry["name"] == "search"]
    looked = any(entry["name"] == "read_lines" for entry in history)
    left = int(variables["rounds_left"])
    chained = [lines[link.key] for walk in found[:1] if walk.is_chain for link in reversed(walk.links)]
    if left > 0 and not looked:
        calls = [call for call in (*_newer(found), *_follow(found, searched)) if str(call) not in done]
        if left > 1 and calls:
            return _reply(call for call in calls if call["name"] in tools)
        calls += _second_look(asked, ranked, SEARCHES - len(searched))
        calls = [call for call in calls if call["name"] in tools and str(call) not in done]
        if calls:  # the reader may end after a round that showed nothing new, so the walk is named here
            return _reply(calls, chained)
    return _reply((), [*dict.fromkeys([*chained, *(line for line, _ in ranked)])][:SNIPPETS])


def _first_look(question: str) -> Iterator[Call]:
    yield _call("search", query=_telling_words(question), limit=10)
    patterns = [
        *_QUOTED.findall(question),
        *_NUMBER.findall(question),
        *_runs(names(question)[:NAMES], question),
    ]
    for pattern in [*dict.fromkeys(patterns)][:GREPS]:
        yield _call("grep", pattern=_literal(pattern), context_lines=0)


def _statements(lines: Sequence[_Seen]) -> list[Statement]:
    return [Statement(i, line.text, (line.time, number(line.seq))) for i, line in enumerate(lines)]


def _follow(found: Sequence[Walk], searched: Sequence[str]) -> Iterator[Call]:
    """What the best walk has come to that was not searched yet, with the words that are still missing."""
    if not searched or len(searched) >= SEARCHES:
        return
    for walk in found[:WALKS]:
        if not walk.missing or len(walk.links) == LINKS:
            return
        if any(query.startswith(f"{walk.end} ") for query in searched):
            continue
        yield _call("search", query=f"{walk.end} {' '.join(walk.missing)}", limit=6)
        stems = {term for word in walk.missing for term in tokens(word)}
        stems |= {other for term in stems for other in relations().get(term, ())}
        words = "|".join(sorted(re.escape(stem) for stem in stems))
        name = _literal(walk.end)
        yield _call("grep", pattern=rf"{name}.*\b(?:{words})|\b(?:{words}).*{name}", context_lines=0)
        return


def _newer(found: Sequence[Walk]) -> Iterator[Call]:
    """Whether anything else was said in the words of the best walk's statements."""
    for link in found[0].links if found and found[0].score > 0 else ():
        head = lead(link.text)
        if head.count(" ") in HEAD:
            yield _call("grep", pattern=_literal(head), context_lines=0)


def _literal(text: str) -> str:
    """A pattern that stands for nothing but this text."""
    return re.escape(text).replace(r"\ ", " ")


def _second_look(question: Question, ranked: Sequence[tuple[_Seen, Match]], searches: int) -> Iterator[Call]:
    """Around the best lines; and once more for the words that no line had."""
    yield from [*_again(question, ranked)][: max(searches, 0)]
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
        return _Seen(doc_id, line, text, "", "")
    speaker = entry.fields.get("speaker")
    said = strip_ordinal(entry.text)
    return _Seen(doc_id, line, f"{speaker}: {said}" if speaker else said, entry.time or "", str(entry.seq))


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
