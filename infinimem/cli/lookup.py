"""The five tools as commands: search, grep (one document or all), ls, read. They show what an agent sees."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from infinimem.cli.completion import document_ids
from infinimem.cli.options import (
    Command,
    Options,
    pass_options,
    raw_option,
    snapshot,
    snapshot_options,
    words,
)
from infinimem.cli.output import Marks, ago
from infinimem.errors import LibraryError, UsageError
from infinimem.results import asked_for

if TYPE_CHECKING:
    from infinimem.store.view import View
    from infinimem.tools import Result

PAGE = 20
"""Documents that the tool lists at once."""
SUMMARY = 160
"""Characters of a summary in a person's table."""
_NUMBERED = re.compile(r" *\d+[:-]? ")
"""What stands before the words of a line that is shown."""

_scope = click.option(
    "--scope",
    type=click.Choice(["default", "archive", "evidence", "journal", "all"]),
    default="default",
    help="Live memory and notes, superseded lines, what was said, receipts, or live and superseded.",
)


@click.command(cls=Command)
@words("query")
@click.option("-k", "limit", type=click.IntRange(1, 50), default=10, help="Number of sections.")
@raw_option
@_scope
@snapshot_options
@pass_options
def search(
    options: Options, query: str, limit: int, raw: bool, scope: str, moment: str | None, project: str | None
) -> None:
    reader = snapshot(options.looking(), moment, project)
    found = _run(reader.tools.search, query=query, k=limit, scope=scope)
    _show(options, found, reader.view, raw, lambda: _asked(query, reader.view))


@click.command(cls=Command)
@words("pattern")
@click.option("--doc", metavar="ID", shell_complete=document_ids, help="Search this document only.")
@click.option(
    "-C", "--context", type=click.IntRange(0, 5), default=0, help="Lines of context around each match."
)
@raw_option
@_scope
@snapshot_options
@pass_options
def grep(
    options: Options,
    pattern: str,
    doc: str | None,
    context: int,
    raw: bool,
    scope: str,
    moment: str | None,
    project: str | None,
) -> None:
    reader = snapshot(options.looking(), moment, project)
    if doc:
        found = _run(reader.tools.grep_doc, doc_id=doc, pattern=pattern, context_lines=context)
    else:
        found = _run(reader.tools.grep, pattern=pattern, context_lines=context, scope=scope)
    from infinimem.retrieval.grep import AS_IT_STANDS, compile_pattern

    literal = AS_IT_STANDS in found.get("notes", ())
    _show(options, found, reader.view, raw, lambda: compile_pattern(pattern, literal=literal).places)
    rest, _, last = pattern.rpartition(" ")
    if rest and not found["matches"]:
        if last in reader.view:
            options.out.say(f"to look in one document: infinimem grep {shlex.quote(rest)} --doc {last}")
        else:
            options.out.say("no line has these words side by side; infinimem search finds them anywhere")


@click.command(cls=Command)
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Number of documents to skip.")
@click.option("--limit", type=click.IntRange(min=1), default=20, help="Number of documents to list.")
@_scope
@snapshot_options
@pass_options
def ls(
    options: Options, offset: int, limit: int, scope: str, moment: str | None, project: str | None
) -> None:
    tool, out = snapshot(options.looking(), moment, project).tools.list_docs, options.out
    found = _run(tool, offset=offset, limit=min(limit, PAGE), scope=scope)
    docs = found["docs"]
    while found["has_more"] and len(docs) < limit:  # an agent turns pages, a person need not
        left = min(limit - len(docs), PAGE)
        found = _run(tool, offset=offset + len(docs), limit=left, scope=scope)
        docs += found["docs"]

    def show() -> None:
        length = SUMMARY if out.for_people else None
        rows = [
            (doc["id"], doc["tokens"], doc["archived"] or "", doc["title"], doc["summary"][:length])
            for doc in docs
        ]
        out.table(("id", "tokens", "archived", "title", "summary"), rows)
        out.say(f"{len(docs)} of {found['total']} documents")

    out.result({**found, "docs": docs}, show)


@click.command(cls=Command)
@click.argument("doc_id", metavar="ID", shell_complete=document_ids)
@click.argument("lines", metavar="[START:END]", required=False)
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Characters of the first line to skip.")
@raw_option
@snapshot_options
@pass_options
def read(
    options: Options,
    doc_id: str,
    lines: str | None,
    offset: int,
    raw: bool,
    moment: str | None,
    project: str | None,
) -> None:
    """Lines count from 1, the header included."""
    start, end = _range(lines)
    reader = snapshot(options.looking(), moment, project)
    name = doc_id.removeprefix("./")  # as shells complete the path of a note
    found = _run(reader.tools.read_lines, doc_id=name, start=start, end=end, offset=offset)
    rows, last = found["lines"], min(end or found["total_lines"], found["total_lines"])
    if raw and rows:
        found.pop("notes", None)
    while raw and rows and rows[-1]["line"] < last:  # of a file as it stands there are no pages
        rows += _run(reader.tools.read_lines, doc_id=name, start=rows[-1]["line"] + 1, end=end)["lines"]
    for row in rows if raw else ():
        row["text"] = reader.view.document(found["doc_id"]).text_line(row["line"])
    _show(options, found, reader.view, raw)


def _range(text: str | None) -> tuple[int | None, int | None]:
    """ "12:40", "12:", ":40", or "12" for that line alone."""
    match = re.fullmatch(r"(\d{0,9})(:?)(\d{0,9})", text or ":")
    if match is None or (text and not (match[1] or match[3])):
        raise UsageError(f"lines {text!r}: write START:END, for example 12:40")
    start, end = (int(found) if found else None for found in (match[1], match[3] if match[2] else match[1]))
    if start == 0 or end == 0 or (start and end and end < start):
        raise UsageError(f"lines {text!r}: lines count from 1, and START comes before END")
    return start, end


def _run(tool: Callable[..., Result], **arguments: object) -> Result:
    found = tool(**arguments)
    if "error" in found:
        raise LibraryError(found["error"])
    return found


def _show(
    options: Options, found: Result, view: View, raw: bool, marks: Callable[[], Marks] | None = None
) -> None:
    """A result as a model is shown it, with numbers of entries; its last line is a total, which is talk.

    Args:
        found: what a tool gave.
        view: of the documents.
        raw: show lines as they stand in the file.
        marks: makes what tells a line's matches; asked on a terminal alone.
    """
    from infinimem.tools.compact import rows

    out = options.out

    def show() -> None:
        whole = (lambda doc_id, number: view.document(doc_id).text_line(number)) if raw else None
        *lines, total = rows(found, ids=True, dated=ago if out.for_people else None, raw=whole)
        mark = marks() if marks and out.for_people else None
        for line in lines:
            if number := _NUMBERED.match(line):
                out.line(line, hang=0 if raw else number.end(), marks=mark)
            else:
                out.line(line, "bold")
        for note in (total, *found.get("notes", ())):
            out.say(note)

    out.result(found, show)


def _asked(query: str, view: View) -> Marks:
    """The words of a line that a query asks for, in any form."""
    from infinimem.terms import analyzer

    words = analyzer(view.settings.search.language)
    wanted = frozenset(words.query_terms(query))
    return lambda line: asked_for(line, wanted, words)
