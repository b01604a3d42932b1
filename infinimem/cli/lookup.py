"""The five tools as commands: search, grep (one document or all), ls, read. They show what an agent sees."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from infinimem.cli.completion import document_ids
from infinimem.cli.options import Command, Options, pass_options, snapshot, snapshot_options
from infinimem.errors import LibraryError, UsageError

if TYPE_CHECKING:
    from infinimem.tools import Result

PAGE = 20
"""Documents that the tool lists at once."""
SUMMARY = 160
"""Characters of a summary in a person's table."""

_scope = click.option(
    "--scope",
    type=click.Choice(["default", "archive", "evidence", "journal", "all"]),
    default="default",
    help="Live memory and notes, superseded lines, what was said, receipts, or live and superseded.",
)


@click.command(cls=Command)
@click.argument("query")
@click.option("-k", "limit", type=click.IntRange(1, 50), default=10, help="Number of sections.")
@_scope
@snapshot_options
@pass_options
def search(
    options: Options, query: str, limit: int, scope: str, moment: str | None, project: str | None
) -> None:
    """Find the sections that answer a query best."""
    tool = snapshot(options, options.looking(), moment, project).tools.search
    _show(options, _run(tool, query=query, k=limit, scope=scope))


@click.command(cls=Command)
@click.argument("pattern")
@click.option("--doc", metavar="ID", shell_complete=document_ids, help="Search this document only.")
@click.option(
    "-C", "--context", type=click.IntRange(0, 5), default=0, help="Lines of context around each match."
)
@_scope
@snapshot_options
@pass_options
def grep(
    options: Options,
    pattern: str,
    doc: str | None,
    context: int,
    scope: str,
    moment: str | None,
    project: str | None,
) -> None:
    """Find lines that match a regular expression (RE2, any case)."""
    tools = snapshot(options, options.looking(), moment, project).tools
    if doc:
        found = _run(tools.grep_doc, doc_id=doc, pattern=pattern, context_lines=context)
    else:
        found = _run(tools.grep, pattern=pattern, context_lines=context, scope=scope)
    _show(options, found)


@click.command(cls=Command)
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Number of documents to skip.")
@click.option("--limit", type=click.IntRange(min=1), default=20, help="Number of documents to list.")
@_scope
@snapshot_options
@pass_options
def ls(
    options: Options, offset: int, limit: int, scope: str, moment: str | None, project: str | None
) -> None:
    """List the documents and their summaries."""
    tool, out = snapshot(options, options.looking(), moment, project).tools.list_docs, options.out
    found = _run(tool, offset=offset, limit=min(limit, PAGE), scope=scope)
    docs = found["docs"]
    while found["has_more"] and len(docs) < limit:  # an agent turns pages, a person need not
        left = min(limit - len(docs), PAGE)
        found = _run(tool, offset=offset + len(docs), limit=left, scope=scope)
        docs += found["docs"]

    def show() -> None:
        length = SUMMARY if out.for_people else None
        rows = [(doc["id"], doc["tokens"], doc["archived"] or "", doc["summary"][:length]) for doc in docs]
        out.table(("id", "tokens", "archived", "summary"), rows)
        out.say(f"{len(docs)} of {found['total']} documents")

    out.result({**found, "docs": docs}, show)


@click.command(cls=Command)
@click.argument("doc_id", metavar="ID", shell_complete=document_ids)
@click.argument("lines", metavar="[START:END]", required=False)
@snapshot_options
@pass_options
def read(options: Options, doc_id: str, lines: str | None, moment: str | None, project: str | None) -> None:
    """Print lines of a document, at most 100 at a time.

    Lines count from 1, the header included.
    """
    start, end = _range(lines)
    tool = snapshot(options, options.looking(), moment, project).tools.read_lines
    name = doc_id.removeprefix("./")  # as shells complete the path of a note
    _show(options, _run(tool, doc_id=name, start=start, end=end))


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


def _show(options: Options, found: Result) -> None:
    """A result as a model is shown it, with numbers of entries; its last line is a total, which is talk."""
    from infinimem.tools.compact import rows

    def show() -> None:
        *lines, total = rows(found, ids=True)
        for line in lines:
            options.out.line(line, None if line[:1].isspace() or line[:1].isdigit() else "bold")
        for note in (total, *found.get("notes", ())):
            options.out.say(note)

    options.out.result(found, show)
