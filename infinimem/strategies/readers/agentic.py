"""The agentic reader: a model asks for more, round by round, by the tools, under one of two policies.

"answering" (ours): whoever answers may ask for more, by the same prompt, so that an easy question costs one
call; what its calls show comes behind the evidence. "paper": one model begins with the catalog alone and
names lines and documents, and another answers from them.

In: the calls of a round, as a model made them. Out: the lines that their results show, each a piece of
evidence and none of them twice. Promise: whatever the model asks for costs rounds and nothing else.

Source: Algorithm 3 and prompt E of arXiv 2606.10677; the stops by budget and by rounds without news are its
section 3.4.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from infinimem.errors import DocumentNotFound
from infinimem.llm import tasks
from infinimem.llm.base import LLM, Reply
from infinimem.markdown.signature import text_start
from infinimem.model import Retrieved, Stage
from infinimem.retrieval.pieces import LONG
from infinimem.retrieval.searcher import searcher
from infinimem.store.view import View
from infinimem.strategies.readers.pipeline import FIRST, Trace, candidates, listed, near, pack, size
from infinimem.tools import Result, Toolbox
from infinimem.tools.compact import rows
from infinimem.tools.tool import scope_of

CATALOG, SUMMARIES = 10, 50
"""Documents that a model is told of, the nearest to the question: with their titles, or with summaries. They
stand by id, so that all rounds begin with the same text, which a server keeps."""
CALLS = 8
"""Tool calls of one round, at most."""
ROUND = 768
"""Tokens of lines that are shown at first, and that one round adds, at most."""
AROUND = 1
"""Lines before and after what grep matches, where a call does not say how many."""

Call = Mapping[str, Any]


def search(view: View, question: str, reader: str) -> Search | None:
    """What an answer's model may search with, where evidence is collected by the agentic reader."""
    is_ours = view.settings.reader.agent == "answering"
    return Search(view, question) if reader == "agent" and is_ours else None


class Search:
    """A search under way, by whoever answers."""

    task = tasks.SEARCHING
    last = 0
    """Requests that are still made when a round brings nothing new."""

    def __init__(self, view: View, question: str) -> None:
        self._view = view
        self._question = question
        self._tools = Toolbox(lambda: view)
        self._calls: list[dict[str, Any]] = []
        self.rounds_left = view.settings.reader.max_iterations - 1 + self.last
        self.reply: Reply | None = None
        """The one that ended it, if one did."""

    def rounds(
        self, llm: LLM, variables: Mapping[str, Any], shown: Iterable[Retrieved], budget: int, trace: Trace
    ) -> Iterator[list[Retrieved]]:
        """Ask, and make the calls of each reply until one ends the search; yield what each round brings.

        Args:
            variables: of the task; what the search itself tells is added.
            shown: what the model sees already.
            budget: tokens of what it sees in the end.
        """
        shown = list(shown)
        extra = self._tools.extra()
        while self.rounds_left > 0:
            told = {"calls": list(self._calls), "rounds_left": str(self.rounds_left), "tools": extra}
            reply = llm.complete(self.task, {**variables, **told, "catalog": self._catalog()})
            if self._ends(reply.data or {}):
                self.reply = reply
                return
            new, step = self._run(reply, shown, budget - size(shown))
            trace.add(step)
            shown += new
            yield new

    def _catalog(self) -> list[dict[str, Any]]:
        nearest = sorted(searcher(self._view).documents(self._question, CATALOG))
        titles = ((doc_id, self._view.document(doc_id).title) for doc_id in nearest)
        return [{"told": [" ".join(filter(None, row))]} for row in titles]

    def _ends(self, data: Mapping[str, Any]) -> bool:
        """Take in what a reply says; return whether it is the last."""
        return bool(data.get("answer", "").strip())

    def _note(self, told: list[str], new: Sequence[Retrieved]) -> None:
        """Keep what is told of a call; what it found comes behind the evidence."""
        self._calls.append({"told": told})

    def _run(self, reply: Reply, shown: Iterable[Retrieved], room: int) -> tuple[list[Retrieved], Stage]:
        """Make the calls of a round; a round without news is the last, or last but one."""
        calls = (reply.data or {}).get("calls", [])[:CALLS]
        left = min(room, ROUND)
        seen = {place for piece in shown for place in _places(piece)}
        new: list[Retrieved] = []
        news = False
        for after, call in zip(reversed(range(len(calls))), calls, strict=True):
            beside = {"context_lines": AROUND} if call["name"].startswith("grep") else {}
            result = self._tools.call(call["name"], {**beside, **call["arguments"]})
            pieces = [
                piece
                for piece in dict.fromkeys(self._pieces(call, result))
                if seen.isdisjoint(_places(piece))
            ]
            kept = pack(pieces, left // (after + 1))
            left -= size(kept)
            seen.update(place for piece in kept for place in _places(piece))
            new += kept
            news = news or bool(kept or result.get("docs") or result.get("rows"))
            self._note(_told(call, result, len(kept), len(pieces)), kept)
        if reply.failure:
            self._note([reply.failure], ())
        self.rounds_left = self.rounds_left - 1 if news else min(self.rounds_left - 1, self.last)
        stop = "" if news else "nothing new" if calls else "no calls"
        asked = tuple(map(_short, calls))
        return new, Stage("round", asked, candidates(new), stop=stop, failure=reply.failure or "")

    def _pieces(self, call: Call, result: Mapping[str, Any]) -> Iterator[Retrieved]:
        """What a search finds as entries, which say more than sections; of other results the lines shown."""
        search = searcher(self._view)
        if call["name"] == "search" and "hits" in result:
            scope = scope_of(call["arguments"].get("scope") or "default")
            yield from near(search.entries(str(call["arguments"]["query"]), FIRST, scope))
            return
        # Of a long line what the tool shows: all of it would not fit.
        texts = ((row["doc_id"], row["line"], row["text"]) for row in result.get("matches", ()))
        cut = {(doc_id, line): text[text_start(text) :] for doc_id, line, text in texts}
        for doc_id, start, end in _ranges(result):
            document = self._view.document(doc_id)
            start, end = max(start, document.header.end + 1), min(end, len(document.lines))
            entries = document.entries_in(start, end)
            inside = {line for place in entries for line in range(place.start_line, place.end_line + 1)}
            for line in sorted({place.start_line for place in entries} | {*range(start, end + 1)} - inside):
                found = search.entries_at(doc_id, line, line) if line in inside else []
                if line not in inside and document.text_line(line).strip():
                    found = [search.lines_at(doc_id, line, line)]
                for one in found:
                    is_long = len(one.text) > LONG and (doc_id, line) in cut
                    yield replace(one, text=cut[doc_id, line]) if is_long else one


class Selection(Search):
    """A search under way in the paper's way: by a model that names what is to be read and answers nothing."""

    task = tasks.SEEK
    last = 1

    def __init__(self, view: View, question: str) -> None:
        super().__init__(view, question)
        self.docs: dict[str, None] = {}
        """Ids of documents that were named, to be read whole."""
        self.snippets: dict[tuple[str, int, int], None] = {}
        """Lines that were named."""

    def _catalog(self) -> list[dict[str, Any]]:
        nearest = sorted(searcher(self._view).documents(self._question, SUMMARIES))
        return [listed(self._view.document(doc_id)) for doc_id in nearest]

    def _ends(self, data: Mapping[str, Any]) -> bool:
        for name in data.get("relevant_docs", ()):
            with suppress(DocumentNotFound):
                self.docs[self._view.resolve(name)] = None
        for row in data.get("relevant_snippets", ()):
            with suppress(DocumentNotFound):
                self.snippets[self._view.resolve(row["doc_id"]), row["start_line"], row["end_line"]] = None
        return bool(data.get("done"))

    def _note(self, told: list[str], new: Sequence[Retrieved]) -> None:
        super()._note(told, new)
        self._calls += (
            {
                "id": f"{piece.doc_id}:{piece.start_line}-{piece.end_line}",
                "time": piece.time,
                "source": piece.source,
                "speaker": piece.speaker,
                "text": piece.text,
            }
            for piece in new
        )


def _places(piece: Retrieved) -> set[tuple[str, int, str]]:
    part = piece.text if "…" in piece.text else ""  # of one line other parts are news
    return {(piece.doc_id, line, part) for line in range(piece.start_line, piece.end_line + 1)}


def _ranges(result: Mapping[str, Any]) -> Iterator[tuple[str, int, int]]:
    """The lines that a tool's result shows, those that match before those around."""
    for hit in result.get("hits", ()):
        yield hit["doc_id"], hit["start_line"], hit["end_line"]
    for match in result.get("matches", ()):
        yield match["doc_id"], match["line"], match["line"]
    for match in result.get("matches", ()):
        line = match["line"]
        yield match["doc_id"], line - len(match["before"]), line + len(match["after"])
    if result.get("lines"):
        yield result["doc_id"], result["lines"][0]["line"], result["lines"][-1]["line"]


def _told(call: Call, result: Result, kept: int, count: int) -> list[str]:
    """A call and what came of it; the lines themselves are told apart."""
    asked = f"{call['name']} {json.dumps(call['arguments'], ensure_ascii=False)}"
    if "error" in result:
        return [f"{asked}: {result['error']}"]
    if "docs" in result or "rows" in result:
        return [asked, *rows(result)]
    new = f"{kept} new lines" if kept == count else f"{kept} of {count} new lines"
    return [f"{asked}: {new}", *result.get("notes", ())]


def _short(call: Call) -> str:
    """A call on one line, for the trace."""
    given = call["arguments"].items()
    values = ((name, value if isinstance(value, int) else str(value)[:60]) for name, value in given)
    arguments = ", ".join(f"{name[:20]}={value!r}" for name, value in values)
    return f"{call['name'][:40]}({arguments})"
