"""The agentic reader: whoever answers may ask for more, round by round, by the five tools.

In: the calls of a round, as a model made them. Out: the lines that their results show, each a piece of
evidence and none of them twice. Promise: whatever the model asks for costs rounds and nothing else.

Source: Algorithm 3 of arXiv 2606.10677; the stops by budget and by rounds without news are its section 3.4.
There one model searches and names places, and another answers from them; here an answer and a request for
more are replies to one prompt, so that an easy question costs one call.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from infinimem.llm.base import Reply
from infinimem.markdown.signature import text_start
from infinimem.model import Retrieved, Stage
from infinimem.retrieval.pieces import LONG
from infinimem.retrieval.searcher import searcher
from infinimem.store.view import View
from infinimem.strategies.readers.pipeline import FIRST, candidates, near, pack, size
from infinimem.tools import Result, Toolbox
from infinimem.tools.compact import rows
from infinimem.tools.tool import scope_of

CATALOG = 10
"""Documents that a model is told of, with their titles: the nearest to the question. They stand by id, so
that all rounds begin with the same text, which a server keeps."""
CALLS = 8
"""Tool calls of one round, at most."""
ROUND = 768
"""Tokens of lines that are shown at first, and that one round adds, at most."""
AROUND = 1
"""Lines before and after what grep matches, where a call does not say how many."""

Call = Mapping[str, Any]


def search(view: View, question: str, reader: str) -> Search | None:
    """What an answer's model may search with, where evidence is collected by the agentic reader."""
    rounds = view.settings.reader.max_iterations - 1
    return Search(view, question, rounds) if reader == "agent" else None


class Search:
    """A search under way, of so many rounds of calls."""

    def __init__(self, view: View, question: str, rounds: int) -> None:
        self._view = view
        self._tools = Toolbox(lambda: view)
        self._calls: list[dict[str, Any]] = []
        self._question = question
        self.rounds_left = rounds

    @property
    def told(self) -> dict[str, Any]:
        """What a model is told of it beside the evidence (llm/tasks.py: SEARCHING)."""
        nearest = searcher(self._view).documents(self._question, CATALOG)
        titles = ((doc_id, self._view.document(doc_id).title) for doc_id in sorted(nearest))
        catalog = [{"told": [" ".join(filter(None, row))]} for row in titles]
        return {"catalog": catalog, "calls": list(self._calls), "rounds_left": str(self.rounds_left)}

    def run(self, reply: Reply, shown: Iterable[Retrieved], budget: int) -> tuple[list[Retrieved], Stage]:
        """Make the calls of a round, and return what is new, and the round; without news it is the last."""
        calls = (reply.data or {}).get("calls", [])[:CALLS]
        left = min(budget, ROUND)
        seen = {place for piece in shown for place in _places(piece)}
        new: list[Retrieved] = []
        news = False
        for after, call in zip(reversed(range(len(calls))), calls, strict=True):
            beside = {"context_lines": AROUND} if call["name"].startswith("grep") else {}
            result = self._tools.call(call["name"], {**beside, **call["arguments"]})
            found = [
                piece
                for piece in dict.fromkeys(self._pieces(call, result))
                if seen.isdisjoint(_places(piece))
            ]
            kept = pack(found, left // (after + 1))
            left -= size(kept)
            seen.update(place for piece in kept for place in _places(piece))
            new += kept
            news = news or bool(kept or result.get("docs"))
            self._calls.append({"told": _told(call, result, len(kept), len(found))})
        self.rounds_left = self.rounds_left - 1 if news else 0
        stop = "" if news else "nothing new" if calls else "no calls"
        asked = tuple(map(_short, calls))
        return new, Stage("round", asked, candidates(new), stop=stop, failure=reply.failure or "")

    def _pieces(self, call: Call, result: Mapping[str, Any]) -> Iterator[Retrieved]:
        """What a search finds as entries, which say more than sections; of other results the lines shown."""
        search = searcher(self._view)
        if "hits" in result:
            scope = scope_of(call["arguments"].get("scope") or "default")
            yield from near(search.entries(str(call["arguments"]["query"]), FIRST, scope))
        # Of a long line what the tool shows: all of it would not fit.
        texts = ((row["doc_id"], row["line"], row["text"]) for row in result.get("matches", ()))
        cut = {(doc_id, line): text[text_start(text) :] for doc_id, line, text in texts}
        for doc_id, start, end in _ranges(result):
            document = self._view.document(doc_id)
            start = max(start, document.header.end + 1)
            entries = document.entries_in(start, end)
            inside = {line for place in entries for line in range(place.start_line, place.end_line + 1)}
            for line in sorted({place.start_line for place in entries} | {*range(start, end + 1)} - inside):
                found = search.entries_at(doc_id, line, line) if line in inside else []
                if line not in inside and document.text_line(line).strip():
                    found = [search.lines_at(doc_id, line, line)]
                for one in found:
                    is_long = len(one.text) > LONG and (doc_id, line) in cut
                    yield replace(one, text=cut[doc_id, line]) if is_long else one


def _places(piece: Retrieved) -> set[tuple[str, int, str]]:
    part = piece.text if "…" in piece.text else ""  # of one line other parts are news
    return {(piece.doc_id, line, part) for line in range(piece.start_line, piece.end_line + 1)}


def _ranges(result: Mapping[str, Any]) -> Iterator[tuple[str, int, int]]:
    """The lines that a tool's result shows, those that match before those around."""
    for match in result.get("matches", ()):
        yield match["doc_id"], match["line"], match["line"]
    for match in result.get("matches", ()):
        line = match["line"]
        yield match["doc_id"], line - len(match["before"]), line + len(match["after"])
    if result.get("lines"):
        yield result["doc_id"], result["lines"][0]["line"], result["lines"][-1]["line"]


def _told(call: Call, result: Result, kept: int, found: int) -> list[str]:
    """A call and what came of it; the lines themselves stand in the evidence."""
    asked = f"{call['name']} {json.dumps(call['arguments'], ensure_ascii=False)}"
    if "error" in result:
        return [f"{asked}: {result['error']}"]
    if "docs" in result:
        return [asked, *rows(result)]
    count = f"{kept} new lines" if kept == found else f"{kept} of {found} new lines"
    return [f"{asked}: {count}", *result.get("notes", ())]


def _short(call: Call) -> str:
    """A call on one line, for the trace."""
    given = call["arguments"].items()
    values = ((name, value if isinstance(value, int) else str(value)[:60]) for name, value in given)
    arguments = ", ".join(f"{name[:20]}={value!r}" for name, value in values)
    return f"{call['name'][:40]}({arguments})"
