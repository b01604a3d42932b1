"""Commands that ask: search, grep, ls and read, as an agent sees them; ask, retrieve, compare, graph."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from infinimem import tokens
from infinimem.cli.options import (
    COUNT,
    Options,
    cap_option,
    command,
    document_ids,
    raw_option,
    snapshot_options,
    spending_options,
    words,
)
from infinimem.cli.output import Marks, Output, ago
from infinimem.errors import LibraryError, UsageError, escape
from infinimem.model import SOURCES, Answer, Stage
from infinimem.results import answer_json, asked_for, counted, demand, place
from infinimem.settings import reader_names
from infinimem.spec import strategies

if TYPE_CHECKING:
    from infinimem.reader import Compared
    from infinimem.store.view import View
    from infinimem.tools import Result, Scope

PAGE = 20  # documents that the tool lists at once
SUMMARY = 160  # characters of a summary in a person's table
SHOWN, LENGTH = 5, 200  # pieces of evidence that are shown, and characters of each; -v and --json give all
_NUMBERED = re.compile(r" *(?:\d+[:-]? |…$)")  # what stands before the words of a line that is shown

_scope = click.option(
    "--scope",
    type=click.Choice(["default", "archive", "evidence", "journal", "all"]),
    default="default",
    help="Live memory and notes, superseded lines, what was said, receipts, or live and superseded.",
)
_sources = click.option(
    "--source",
    "sources",
    multiple=True,
    type=click.Choice(SOURCES),
    help="Use lines of this source only; repeatable.",
)


@command()
@words("query")
@click.option("-k", "limit", type=click.IntRange(1, 50), default=10, help="Number of sections.")
@click.option("--full", is_flag=True, help="Show sections whole, not their best lines.")
@raw_option
@_scope
@snapshot_options
def search(options: Options, query: str, limit: int, full: bool, scope: Scope) -> None:
    memory = options.reading(notes=True)
    reader = options.snapshot(memory)
    from infinimem.tools.search import search as find

    if not query.strip():
        raise LibraryError("query is empty")
    result = find(reader.view.for_models, query, limit, scope, full, brief=not options.json)

    def marks() -> Marks:
        from infinimem.terms import analyzer

        language = analyzer(reader.view.settings.search.language)
        terms = frozenset(language.query_terms(query))
        return lambda line: asked_for(line, terms, language)

    _show(options, result, reader.view, marks)
    if not result["hits"]:
        options.say_nothing(memory, reader.tools.search(query, 1, "evidence"))
    elif (hit := next((one for one in result["hits"] if one["more"]), None)) and not full:
        first, last = hit["section"]
        options.out.say(f"a whole section: infinimem read {shlex.quote(hit['doc_id'])} {first}:{last}")


@command()
@words("pattern")
@click.option("--doc", metavar="ID", shell_complete=document_ids, help="Search this document only.")
@click.option("-C", "--context", type=click.IntRange(0, 5), default=0, help="Lines around each match.")
@raw_option
@_scope
@snapshot_options
def grep(options: Options, pattern: str, doc: str | None, context: int, scope: Scope) -> None:
    memory = options.reading(notes=True)
    reader = options.snapshot(memory)
    if doc:
        result = demand(reader.tools.grep_doc(doc_id=doc, pattern=pattern, context_lines=context))
    else:
        result = demand(reader.tools.grep(pattern=pattern, context_lines=context, scope=scope))
    from infinimem.index.grep import AS_IT_STANDS, compile_pattern

    literal = AS_IT_STANDS in result.get("notes", ())
    _show(options, result, reader.view, lambda: compile_pattern(pattern, literal=literal).places)
    if not result["matches"]:
        options.say_nothing(memory, reader.tools.grep(pattern, 1, scope="evidence"))
    rest, _, last = pattern.rpartition(" ")
    if rest and not result["matches"]:
        if last in reader.view:
            options.out.say(f"to look in one document: infinimem grep {shlex.quote(rest)} --doc {last}")
        else:
            options.out.say("no line has these words side by side; infinimem search finds them anywhere")


@command()
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Number of documents to skip.")
@click.option("--limit", type=COUNT, default=20, help="Number of documents to list.")
@_scope
@snapshot_options
def ls(options: Options, offset: int, limit: int, scope: Scope) -> None:
    memory, out = options.reading(notes=True), options.out
    tool = options.snapshot(memory).tools.list_docs
    docs: list[Any] = []
    result: dict[str, Any] = {"has_more": True}
    while result["has_more"] and len(docs) < limit:  # an agent turns pages, a person need not
        left = min(limit - len(docs), PAGE)
        result = demand(tool(offset=offset + len(docs), limit=left, scope=scope))
        docs += result["docs"]
    if out.result({**result, "docs": docs}):
        length = SUMMARY if out.for_people else None
        rows = [(d["id"], d["tokens"], d["archived"] or "", d["title"], d["summary"][:length]) for d in docs]
        out.table(("id", "tokens", "archived", "title", "summary"), rows)
        out.say(f"{len(docs)} of {result['total']} documents in {memory.library.root}")


@command()
@click.argument("doc_id", metavar="ID", shell_complete=document_ids)
@click.argument("lines", metavar="[START:END]", required=False)
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Characters of the first line to skip.")
@raw_option
@snapshot_options
def read(options: Options, doc_id: str, lines: str | None, offset: int) -> None:
    """Lines count from 1, the header included."""
    match = re.fullmatch(r"(\d{0,9})(:?)(\d{0,9})", lines or ":")
    if match is None or (lines and not (match[1] or match[3])):
        raise UsageError(f"lines {lines!r}: write START:END, for example 12:40")
    start, end = (int(part) if part else None for part in (match[1], match[3] if match[2] else match[1]))
    if start == 0 or end == 0 or (start and end and end < start):
        raise UsageError(f"lines {lines!r}: lines count from 1, and START comes before END")
    reader = options.snapshot(options.reading(notes=True))
    name = doc_id.removeprefix("./")  # as shells complete the path of a note
    result = demand(reader.tools.read_lines(doc_id=name, start=start or 1, end=end, offset=offset))
    if options.raw and result["lines"]:  # of a file as it stands there are no pages
        document, total = reader.view.document(result["doc_id"]), result["total_lines"]
        numbers = range(result["lines"][0]["line"], min(end or total, total) + 1)
        result["lines"] = [{"line": number, "text": document.text_line(number)} for number in numbers]
        result.pop("notes", None)
    _show(options, result, reader.view)


def _show(options: Options, result: Result, view: View, marks: Callable[[], Marks] | None = None) -> None:
    """Print a tool's result as a model is shown it, with numbers of entries; its last line is a message."""
    from infinimem.tools.tool import rows

    out, raw = options.out, options.raw
    if out.result(result):
        whole = (lambda doc_id, number: view.document(doc_id).text_line(number)) if raw else None
        *lines, total = rows(result, ids=True, dated=ago if out.for_people else None, raw=whole)
        mark = marks() if marks and out.for_people else None
        for line in lines:
            if number := _NUMBERED.match(line):
                out.line(line, hang=0 if raw else number.end(), marks=mark)
            else:
                out.line(line, "bold")
        for note in (total, *result.get("notes", ())):
            out.say(note)


@command()
@words("question")
@click.option("--reader", type=click.Choice(reader_names()[1:]), help="How to collect evidence.")
@_sources
@snapshot_options
@spending_options
def ask(options: Options, question: str, reader: str | None, sources: tuple[str, ...]) -> None:
    out, memory = options.out, options.asking()
    if options.estimate:
        from infinimem.estimate import for_question

        size = for_question(memory.view, question, memory.chosen(reader))
        out.result({"estimate": size}, lambda: out.line(f"{size} tokens"))
        return
    with out.progress("Reading"):
        answer = options.snapshot(memory).ask(question, reader, sources or None, options.max_tokens)
    if out.result(answer_json(answer)):
        show_answer(out, answer)
        if not answer.citations:
            options.say_nothing(memory)
        if options.verbose:
            _show_trace(out, answer.trace)
            usage = answer.usage
            spent = f"{usage.calls} calls, {usage.tokens_in} tokens in, {usage.tokens_out} out"
            out.say(f"{escape(memory.llm.name)}: {spent}")


def show_answer(out: Output, answer: Answer) -> None:
    out.line(answer.text)
    if answer.citations:
        out.line()
        rows = (
            (place(item), ",".join(map(str, item.seqs)), "" if item.text in answer.text else item.text)
            for item in answer.citations
        )
        out.table(("where", "seq", "line"), rows)


def _show_trace(out: Output, trace: Iterable[Stage]) -> None:
    for step in trace:
        stage = f"{step.stage}: {len(step.found)} found, {counted(step.tokens, 'token')}, {step.ms:.1f} ms"
        out.say("; ".join(filter(None, (stage, *step.asked, step.stop, step.failure))))


@command()
@words("question")
@click.option("--budget", type=COUNT, metavar="TOKENS", help="At most this many tokens of evidence.")
@click.option("--arc", is_flag=True, help="What was said about it in all sessions, in order of time.")
@_sources
@snapshot_options
def retrieve(
    options: Options, question: str, budget: int | None, arc: bool, sources: tuple[str, ...]
) -> None:
    if not question.strip():
        raise UsageError("the question is empty; ask something")
    out, memory = options.out, options.reading(notes=True)
    reader = options.snapshot(memory)
    evidence = reader.retrieve(question, budget, sources or None, arc)
    rows = [(f"{item.score:.2f}", place(item), item.text) for item in evidence.items]
    if not rows:
        options.say_nothing(memory, reader.tools.search(question, 1, "evidence"))
    if out.result(asdict(evidence)):
        out.table(("score", "where", "line"), rows)
        if options.verbose:
            _show_trace(out, evidence.trace)


@command()
@words("question")
@cap_option
def compare(options: Options, question: str) -> None:
    """`rebuild --strategy NAME` makes another one keep it, too."""
    out, memory = options.out, options.asking()
    with out.progress("Reading"):
        results = memory.compare(question, options.max_tokens)
    data = [
        {
            "strategy": one.strategy,
            "reader": one.reader,
            **answer_json(one.answer),
            "evidence": [asdict(item) for item in one.evidence.items],
            "evidence_tokens": _tokens(one),
            "ms": one.ms,
        }
        for one in results
    ]
    out.result({"strategies": data}, lambda: _show_compared(out, results, options.verbose))
    if len(results) == 1 and memory.view.initialised:
        name = results[0].strategy
        out.say(f"only {name} keeps this library; to add one: infinimem rebuild --strategy NAME")


def _show_compared(out: Output, results: tuple[Compared, ...], everything: bool) -> None:
    for one in results:
        out.line(one.strategy, "bold")
        out.line("\n".join([one.answer.text, *(f"  {line}" for line in _evidence(one, everything)), ""]))
    rows = [
        (one.strategy, one.reader, _tokens(one), used.calls, used.tokens, round(one.ms))
        for one in results
        for used in [one.answer.usage]
    ]
    out.table(("strategy", "reader", "evidence, tokens", "calls", "tokens, in and out", "ms"), rows)


def _tokens(one: Compared) -> int:
    return sum(tokens.count(item.text) for item in one.evidence.items)


def _evidence(one: Compared, everything: bool) -> list[str]:
    """Return where each piece stands and how it begins, with a star if the answer cites a line of it."""
    lines = []
    for item in one.evidence.items if everything else one.evidence.items[:SHOWN]:
        cites = (
            at.doc_id == item.doc_id and item.start_line <= at.start_line <= item.end_line
            for at in one.answer.citations
        )
        text = " ".join(item.text.split())
        text = text if everything or len(text) <= LENGTH else f"{text[: LENGTH - 1]}…"
        lines.append(f"{'*' if any(cites) else '-'} {place(item)}: {text}")
    left = len(one.evidence.items) - len(lines)
    return [*lines, f"and {counted(left, 'piece')} more"] if left else lines


@command()
@words("name", required=False, metavar="[UNIT|SEQ|QUERY]")
@click.option("--hops", type=click.IntRange(0, 9), default=2, help="How many links to follow.")
def graph(options: Options, name: str | None, hops: int) -> None:
    """UNIT is an id or a document, SEQ the number of a turn, QUERY what the unit is about; the default is the
    newest unit. Links are followed in both directions.
    """
    from infinimem.strategies.base import Linked

    out, memory = options.out, options.reading()
    strategy = memory.strategy
    if not isinstance(strategy, Linked):
        able = " or ".join(name for name, spec in strategies().items() if spec.links)
        raise LibraryError(
            f"{memory.view.spec.name} keeps no links between its documents; --strategy {able} does"
        )
    data, cut = strategy.graph(memory.view, name, hops)
    if out.result(data):
        rows = [(n["id"], n["hop"], "" if n["visible"] else "archived", n["label"]) for n in data["nodes"]]
        out.table(("unit", "hops", "", "what it says"), rows)
        rows = [
            (link["from"], link["type"], link["to"], "" if (w := link["weight"]) is None else f"{w:.3f}")
            for link in data["links"]
        ]
        out.table(("from", "link", "to", "weight"), rows)
    units, links = counted(len(data["nodes"]), "unit"), counted(len(data["links"]), "link")
    out.say(f"{units}, {links} around {data['root']}")
    if cut:
        out.say("there are more within so many links; --hops shows fewer, another unit shows others")
