"""The five tools by which an agent, a client or a person reads a library, and those that packages add.

Of a package's tool an entry point of the group "infinimem.tools" names the function, in the same form: it
takes a `View` and arguments, and returns what one of the five may return, or {"rows": lines}.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property, wraps
from inspect import signature
from types import MethodType
from typing import Annotated, Any, Concatenate, Literal, ParamSpec

from infinimem.log import log
from infinimem.spec import plugins
from infinimem.store.view import View, only

from .tool import LINE_LENGTH, RESULT_LENGTH, Result, Rule, Tool, header_end, rows, scope_of, shown, span

NAMES = ("grep", "grep_doc", "search", "list_docs", "read_lines")
MOST = 100  # lines that are read at a time

__all__ = ["Result", "Scope", "Tool", "Toolbox"]

P = ParamSpec("P")
Scope = Literal["default", "archive", "evidence", "journal", "all"]
DocId = Annotated[str, Rule(longest=1000)]
Context = Annotated[int, Rule(0, 5)]


def _checked(
    function: Callable[Concatenate["Toolbox", P], Result],
) -> Callable[Concatenate["Toolbox", P], Result]:
    """Called as a function, too, a tool mends its arguments and returns what went wrong."""

    @wraps(function)
    def call(self: "Toolbox", /, *args: P.args, **kwargs: P.kwargs) -> Result:
        taken = signature(function)
        try:
            given = taken.bind(self, *args, **kwargs).arguments
        except TypeError as error:
            names = ", ".join(list(taken.parameters)[1:])
            raise TypeError(f"{function.__name__}() takes {names}: {error}") from None
        return self.call(function.__name__, {name: value for name, value in given.items() if name != "self"})

    return call


class Toolbox:
    """The tools of one library, as functions that return data; `view` gives the snapshot of each call.

    What is wrong with a call is returned as {"error": one line}; an argument out of range is clamped, and
    that is told under "notes".
    """

    def __init__(self, view: Callable[[], View]) -> None:
        self._view = view

    def _seen(self, by: str | None) -> View:
        return only(self._view(), {by}) if by else self._view()

    # What a search needs is imported with the first one.

    @_checked
    def grep(
        self,
        pattern: str,
        limit: Annotated[int, Rule(1, 30)] = 30,
        context_lines: Context = 3,
        ignore_case: bool = True,
        scope: Scope = "default",
        by: str | None = None,
        offset: Annotated[int, Rule(0)] = 0,
    ) -> Result:
        """Find a regular expression (RE2 syntax, case-insensitive) in every document. Good for names,
        numbers, dates and exact words. Gives document id, line number, day, speaker and words, and the lines
        around; what is left out, or "-", is as above.

        Args:
            pattern: a regular expression in RE2 syntax, or plain text
            limit: at most so many matches are shown; all are counted
            context_lines: lines to show before and after each match
            ignore_case: whether upper and lower case are the same
            scope: default: live memory and notes; archive: superseded lines; all: both; evidence: what was
                said; journal: what consolidations did
            by: only lines of "user", "AI", "tool" or "human", or of the speaker of that name
            offset: how many matches to pass over
        """
        from .grep import grep

        return grep(self._seen(by), pattern, ignore_case, limit, context_lines, scope=scope, offset=offset)

    @_checked
    def grep_doc(
        self, doc_id: DocId, pattern: str, context_lines: Context = 3, ignore_case: bool = True
    ) -> Result:
        """Find a regular expression (RE2 syntax, case-insensitive) in one document. Gives line numbers, day,
        speaker, words and lines around.

        Args:
            doc_id: id of the document, as the other tools give it
            pattern: a regular expression in RE2 syntax, or plain text
            context_lines: lines to show before and after each match
            ignore_case: whether upper and lower case are the same
        """
        from .grep import MOST_IN_ONE, grep

        return grep(self._view(), pattern, ignore_case, MOST_IN_ONE, context_lines, doc_id=doc_id)

    @_checked
    def search(
        self,
        query: str,
        k: Annotated[int, Rule(1, 50)] = 10,
        scope: Scope = "default",
        full: bool = False,
        by: str | None = None,
        offset: Annotated[int, Rule(0)] = 0,
        arc: bool = False,
    ) -> Result:
        """Rank the sections of all documents by how well they answer a query (BM25, stemmed words in any
        order). Gives document id, heading and the best lines of each, some 40 in all: number, day, speaker,
        words; what is left out, or "-", is as above.

        Args:
            query: a question or keywords
            k: at most so many sections; of more than 10 more lines are shown
            scope: default: live memory and notes; archive: superseded lines; all: both; evidence: what was
                said; journal: what consolidations did
            full: whether sections are shown whole
            by: only lines of "user", "AI", "tool" or "human", or of the speaker of that name
            offset: how many sections to pass over
            arc: in place of sections, what was said about it in all sessions, in order of time: for a
                summary, an order, how something developed
        """
        from .search import course_of, search

        view = self._seen(by)
        return course_of(view, query) if arc else search(view, query, k, scope, full, offset)

    @_checked
    def list_docs(
        self,
        offset: Annotated[int, Rule(0)] = 0,
        limit: Annotated[int, Rule(1, 20)] = 20,
        scope: Scope = "default",
    ) -> Result:
        """List the documents with their titles, summaries and sizes in tokens, 20 a page, sorted by id.
        `archived` counts lines that left a topic for the archive: look there for the past.

        Args:
            offset: how many documents to pass over
            limit: at most so many documents
            scope: default: live memory and notes; archive: superseded lines; all: both; evidence: what was
                said; journal: what consolidations did
        """
        view, docs = self._view(), []
        ids = view.ids(scope_of(scope))
        for row in map(view.row, ids[offset : offset + limit]):
            told = {"id": row.id, "title": shown(row.title), "summary": shown(row.summary)}
            docs.append({**told, "tokens": row.tokens, "archived": row.archived})
        return {"docs": docs, "total": len(ids), "has_more": offset + len(docs) < len(ids)}

    @_checked
    def read_lines(
        self,
        doc_id: DocId,
        start: Annotated[int, Rule(1)] = 1,
        end: Annotated[int, Rule(1)] | None = None,
        offset: Annotated[int, Rule(0)] = 0,
    ) -> Result:
        """Read lines of a document, at most 100 at a time: number, day, speaker, words; a day or speaker that
        is left out, or "-", is that of the line above. Lines count from 1; a header is counted and not shown.

        Args:
            doc_id: id of the document, as the other tools give it
            start: first line
            end: last line; left out: 100 lines
            offset: of the first line, pass over so many characters: to read on in a line that is cut
        """
        view = self._view()
        document = view.document(view.resolve(doc_id))
        total = len(document.lines)
        wanted = start + MOST - 1 if end is None else end
        notes = [f"end {wanted} is before start {start}; one line is shown"] if wanted < start else []
        if wanted >= start + MOST:
            notes.append(f"at most {MOST} lines at a time")
        wanted = min(max(wanted, start), start + MOST - 1)
        lines: list[dict[str, object]] = []
        room = RESULT_LENGTH
        for number in range(start, min(wanted, total) + 1):
            text, at = document.text_line(number), offset if number == start else 0
            if len(text) - at > room and lines and (len(text) <= RESULT_LENGTH or room < LINE_LENGTH):
                notes.append(f"the rest would be too much at once; go on at line {number}")
                break
            part, stop = span(text, at, room)
            lines.append({"line": number, "text": part})
            room -= len(part)
            if stop < len(text):
                notes.append(f"line {number} is cut; go on at its offset {stop}")
                break
        if offset and offset >= len(document.text_line(start) if start <= total else ""):
            notes.append(f"line {start} has no offset {offset}")
        if start > total:
            notes.append(f"the document has {total} lines")
        result: Result = {"doc_id": document.id, "lines": lines, "total_lines": total}
        return result | {"header_lines": header_end(view, document)} | ({"notes": notes} if notes else {})

    @cached_property
    def _tools(self) -> dict[str, Tool]:
        own = Toolbox(self._view)  # this one would be a circle, which keeps files open
        return {name: Tool.of(MethodType(getattr(Toolbox, name).__wrapped__, own), rows) for name in NAMES}

    @cached_property
    def _added(self) -> dict[str, Tool]:
        """Those of other packages, but for names of ours; one that cannot be used is told in the log."""
        added: dict[str, Tool] = {}
        for name, value in sorted(plugins("tools").items()):
            try:
                if name not in NAMES:
                    added[name] = Tool.added(name, value, self._view)
            except Exception as error:  # whatever the code of others may raise
                log.warning("the tool %s is left out: %s", name, error)
        return added

    @property
    def extra(self) -> str:
        """The tools that packages add, a line each, as a prompt that knows the five lists them."""
        return "".join(
            f"{tool.name}({', '.join(tool.parameters['properties'])}): {tool.description}\n"
            for tool in self._added.values()
        )

    def __iter__(self) -> Iterator[Tool]:
        return iter([*self._tools.values(), *self._added.values()])

    def call(self, name: str, arguments: Mapping[str, Any] | str) -> Result:
        """Run a tool with a mapping or the JSON of one; {"error": one line} if the call is wrong."""
        tool = self._tools.get(name) or self._added.get(name)
        if tool is None:
            there = ", ".join(tool.name for tool in self)
            return {"error": f"there is no tool {name[:40]!r}; there are {there}"}
        with suppress(ValueError, RecursionError):
            arguments = json.loads(arguments or "{}") if isinstance(arguments, str) else arguments
        if not isinstance(arguments, Mapping):
            return {"error": "the arguments are not a JSON object"}
        return tool.run({str(name): value for name, value in arguments.items()})

    def text(self, name: str, arguments: Mapping[str, Any] | str) -> str:
        """The same as text for a model: `Tool.told`."""
        tool, result = self._tools.get(name) or self._added.get(name), self.call(name, arguments)
        return tool.told(result) if tool else str(result["error"])

    def functions(self) -> list[Callable[..., str]]:
        """Return the five as functions that return text for a model, for frameworks that take these."""
        return [self._tools[name].telling(getattr(self, name)) for name in NAMES]

    def openai(self) -> list[Result]:
        """The tools as OpenAI's chat API lists them."""
        return [{"type": "function", "function": tool.listed("parameters")} for tool in self]

    def anthropic(self) -> list[Result]:
        """The tools as Anthropic's messages API lists them."""
        return [tool.listed("input_schema") for tool in self]
