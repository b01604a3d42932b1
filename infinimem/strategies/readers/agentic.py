"""The agentic reader: a model searches with the tools, round by round, and names what it found.

Whatever the model does costs quality only: what it names wrongly is passed over, and where it names
nothing, lexical search finds the evidence.

Source: Algorithm 3 of arXiv 2606.10677; the stops by budget and by rounds without news are its section 3.4.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from infinimem import tokens
from infinimem.llm import tasks
from infinimem.model import Evidence, Retrieved, Step
from infinimem.strategies.readers.pipeline import (
    LineRange,
    Request,
    Trace,
    assemble,
    blocks_around,
    bodies,
    candidates,
    deepen,
    fallback,
    listed,
    size,
)
from infinimem.tools import Tool, Toolbox
from infinimem.tools.compact import Place, rows

CATALOG = 50
CATALOG_TOKENS = 1000
"""Of the documents that the model is shown at the start with their summaries: all, or of more the nearest to
the question. They stand by id, so that all rounds begin with the same text, which a server keeps."""
BEFOREHAND = 5
"""Sections of a search for the question itself, which the first round is shown."""
CALLS = 8
"""Tool calls of one round, at most."""
HISTORY_LENGTH = 48_000
"""Characters of results that the model is shown; beyond it the oldest go."""
IDLE_ROUNDS = 2

Call = Mapping[str, Any]


@dataclass
class _Search:
    """What happened so far."""

    named: dict[LineRange, None] = field(default_factory=dict)
    """Places that the model called relevant, in its order."""
    docs: dict[str, None] = field(default_factory=dict)
    matched: dict[LineRange, None] = field(default_factory=dict)
    """Places that any tool has shown."""
    history: list[dict[str, Any]] = field(default_factory=list)
    seen: set[Place] = field(default_factory=set)
    """Lines that stand in the history."""
    idle: int = 0
    """Rounds of tool calls on end that showed nothing new."""


def read_agentic(request: Request) -> Evidence:
    """Evidence for a question; the trace has a step for each round."""
    search, trace = _Search(), Trace()

    def nothing_new() -> str:
        return "nothing new" if search.idle >= IDLE_ROUNDS else ""

    def full() -> str:
        return "budget" if size(blocks_around(request, search.named)) >= request.budget else ""

    stop = deepen(trace, _rounds(search, request), (nothing_new, full), request.settings.max_iterations)
    items = _collected(search, request, exhausted=stop not in ("done", "no calls"))
    trace.add(Step("named", found=candidates(items), tokens=size(items)))
    more = fallback(request, items)
    trace.add(Step("fallback", found=candidates(more), tokens=size([*items, *more])))
    return trace.evidence(assemble(request, [*items, *more]))


def _rounds(search: _Search, request: Request) -> Iterator[Step]:
    """A round each: the model is asked, and its calls are run."""
    tools = Toolbox(lambda: request.view)
    fixed = _introduction(request, tools)
    _run(search, tools, [{"name": "search", "arguments": {"query": request.question, "limit": BEFOREHAND}}])
    for left in count(request.settings.max_iterations - 1, -1):
        told = {**fixed, "history": list(search.history), "rounds_left": left}
        reply = request.llm.complete(tasks.STEP, told)
        if reply.data is None:
            _remember(search, {"name": "", "arguments": {}}, {"error": reply.failure})
            yield Step("round", failure=reply.failure or "EMPTY")
            continue
        _note(search, request, reply.data)
        calls = reply.data["tool_calls"][:CALLS]
        if reply.data["done"] or not calls:
            yield Step("round", stop="done" if reply.data["done"] else "no calls")
            continue
        hits = _run(search, tools, calls)
        yield Step("round", tuple(map(_short, calls)), candidates(hits))


def _introduction(request: Request, tools: Toolbox) -> dict[str, Any]:
    """What every round is told."""
    view = request.view
    left, catalog = CATALOG_TOKENS, []
    for doc_id in request.search.documents(request.question, CATALOG):
        row = listed(view.document(doc_id))
        left -= sum(map(tokens.count, row.values()))
        if left >= 0:
            catalog.append(row)
    times = (place.entry.time or "" for place in view.entries("all"))
    return {
        "question": request.question,
        "catalog": sorted(catalog, key=lambda row: row["id"]),
        "doc_count": str(len(view.ids())),
        "now": max(times, default="")[:10],  # a snapshot knows no clock: its newest day
        "tools": [{"name": tool.name, "told": [_usage(tool)]} for tool in tools],
    }


def _usage(tool: Tool) -> str:
    """How a tool is called: on one line what its schema says on thirty."""
    rules = tool.parameters["properties"].items()
    known = (
        f"{name}={'|'.join(rule['enum']) if 'enum' in rule else json.dumps(rule['default'])}"
        if "default" in rule
        else name
        for name, rule in rules
    )
    return f"{tool.name}({', '.join(known)}): {tool.description}"


def _remember(search: _Search, call: Call, result: Mapping[str, Any], told: Sequence[str] = ()) -> None:
    """Note a call and what the model is shown of its result, so that all of it stays within a length."""
    asked = f"{call['name']} {json.dumps(call['arguments'], ensure_ascii=False)}"
    step = {**call, "result": result, "told": [asked, *(told or [f"error: {result['error']}"])]}
    search.history.append(step)
    left = HISTORY_LENGTH
    for at in reversed(range(len(search.history))):
        left -= sum(map(len, search.history[at]["told"]))
        if left < 0 and "left_out" not in search.history[at]["result"]:
            told = [search.history[at]["told"][0], "left out"]
            search.history[at] = {**search.history[at], "result": {"left_out": True}, "told": told}
            search.seen.clear()  # what is asked for again is shown again


def _note(search: _Search, request: Request, data: Mapping[str, Any]) -> None:
    """Keep what the model calls relevant."""
    for snippet in data["relevant_snippets"]:
        search.named[LineRange(snippet["doc_id"], snippet["start_line"], snippet["end_line"])] = None
    known = {doc_id: None for doc_id in data["relevant_docs"] if doc_id in request.view}
    search.docs.update(known)


def _run(search: _Search, tools: Toolbox, calls: Iterable[Call]) -> list[LineRange]:
    """Run a round's calls; gives the places that they showed."""
    hits: list[LineRange] = []
    for call in calls:
        result = tools.call(call["name"], call["arguments"])
        told = [] if "error" in result else [*rows(result, search.seen), *result.get("notes", ())]
        _remember(search, {"name": call["name"], "arguments": call["arguments"]}, result, told)
        hits += _places(result)
    new = [place for place in hits if place not in search.matched]
    search.matched.update(dict.fromkeys(new))
    search.idle = 0 if new else search.idle + 1
    return hits


def _places(result: Mapping[str, Any]) -> Iterator[LineRange]:
    """The lines that a tool's result shows as found."""
    for match in result.get("matches", ()):
        yield LineRange(match["doc_id"], match["line"], match["line"])
    for hit in result.get("hits", ()):
        yield LineRange(hit["doc_id"], hit["start_line"], hit["end_line"])
    if result.get("lines"):
        yield LineRange(result["doc_id"], result["lines"][0]["line"], result["lines"][-1]["line"])


def _collected(search: _Search, request: Request, exhausted: bool) -> list[Retrieved]:
    """What the model named; where a search that ran out named nothing, what its tools matched."""
    items = blocks_around(request, search.named) + bodies(request, search.docs, request.budget)
    if not items and exhausted:
        items = request.search.order(request.question, blocks_around(request, search.matched))
    return items[: request.settings.search_limit]


def _short(call: Call) -> str:
    """A call on one line, for the trace."""
    given = (
        (name, value if isinstance(value, int) else str(value)[:60])
        for name, value in call["arguments"].items()
    )
    arguments = ", ".join(f"{name[:20]}={value!r}" for name, value in given)
    return f"{call['name'][:40]}({arguments})"
