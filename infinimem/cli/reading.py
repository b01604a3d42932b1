"""Commands that answer from the memory: ask, retrieve."""

from __future__ import annotations

from dataclasses import asdict

import click

from infinimem.cli.options import (
    Command,
    Options,
    cap_option,
    estimate_option,
    pass_options,
    snapshot,
    snapshot_options,
    words,
)
from infinimem.cli.show import show_answer, show_trace
from infinimem.errors import UsageError, escape
from infinimem.model import SOURCES
from infinimem.results import answer_json, place
from infinimem.settings import reader_names

_sources = click.option(
    "--source",
    "sources",
    multiple=True,
    type=click.Choice(SOURCES),
    help="Use lines of this source only; repeatable.",
)


@click.command(cls=Command)
@words("question")
@click.option("--reader", type=click.Choice(reader_names()[1:]), help="How to collect evidence.")
@_sources
@snapshot_options
@estimate_option
@cap_option
@pass_options
def ask(
    options: Options,
    question: str,
    reader: str | None,
    sources: tuple[str, ...],
    moment: str | None,
    project: str | None,
    estimate: bool,
    max_tokens: int | None,
) -> None:
    out, memory = options.out, options.asking()
    if estimate:
        from infinimem.estimate import for_question

        size = for_question(memory.view, question, memory.chosen(reader))
        out.result({"estimate": size}, lambda: out.line(f"{size} tokens"))
        return
    with out.progress("Reading"):
        answer = snapshot(memory, moment, project).ask(question, reader, sources or None, max_tokens)

    def show() -> None:
        show_answer(out, answer)
        if options.verbose:
            show_trace(out, answer.trace)
            usage = answer.usage
            spent = f"{usage.calls} calls, {usage.tokens_in} tokens in, {usage.tokens_out} out"
            out.say(f"{escape(memory.llm.name)}: {spent}")

    out.result(answer_json(answer), show)


@click.command(cls=Command)
@words("question")
@click.option(
    "--budget", type=click.IntRange(min=1), metavar="TOKENS", help="At most this many tokens of evidence."
)
@_sources
@snapshot_options
@pass_options
def retrieve(
    options: Options,
    question: str,
    budget: int | None,
    sources: tuple[str, ...],
    moment: str | None,
    project: str | None,
) -> None:
    if not question.strip():
        raise UsageError("the question is empty; ask something")
    out = options.out
    evidence = snapshot(options.reading(), moment, project).retrieve(question, budget, sources or None)
    rows = [(f"{item.score:.2f}", place(item), item.text) for item in evidence.items]
    if not rows:
        out.say("nothing is found that fits the budget" if budget else "nothing is found")

    def show() -> None:
        out.table(("score", "where", "line"), rows)
        if options.verbose:
            show_trace(out, evidence.trace)

    out.result(asdict(evidence), show)
