"""The command compare: one question to every strategy that keeps the library."""

from __future__ import annotations

from dataclasses import asdict
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

import click

from infinimem import tokens
from infinimem.cli.options import Command, Options, cap_option, pass_options, words
from infinimem.cli.output import Output
from infinimem.results import answer_json, counted, place

if TYPE_CHECKING:
    from infinimem.reader import Compared

COLUMN = 36
"""Characters of a strategy beside others; in a narrower terminal one is below the other."""
SHOWN, LENGTH = 5, 200
"""Pieces of evidence that are shown, and characters of each; -v and --json give all."""


@click.command(cls=Command)
@words("question")
@cap_option
@pass_options
def compare(options: Options, question: str, max_tokens: int | None) -> None:
    """`rebuild --strategy NAME` makes another one keep it, too."""
    out, memory = options.out, options.asking()
    with out.progress("Reading"):
        found = memory.compare(question, max_tokens)
    out.result({"strategies": [_told(one) for one in found]}, lambda: _show(out, found, options.verbose))
    if len(found) == 1 and memory.view.initialised:
        out.say(f"only {found[0].strategy} keeps this library; to add one: infinimem rebuild --strategy NAME")


def _told(one: Compared) -> dict[str, Any]:
    answer = answer_json(one.answer)
    items = [asdict(item) for item in one.evidence.items]
    return {
        "strategy": one.strategy,
        "reader": one.reader,
        **answer,
        "evidence": items,
        "evidence_tokens": _size(one),
        "ms": one.ms,
    }


def _show(out: Output, found: tuple[Compared, ...], everything: bool) -> None:
    shown = [_evidence(one, everything) for one in found]
    if out.for_people and len(found) > 1 and get_terminal_size().columns >= COLUMN * len(found):
        answers = [f"{one.answer.text}\n" for one in found]
        out.table([one.strategy for one in found], [answers, ["\n".join(lines) for lines in shown]])
        out.line()
    else:
        for one, lines in zip(found, shown, strict=True):
            out.line(one.strategy, "bold")
            out.line(one.answer.text)
            for line in lines:
                out.line(f"  {line}")
            out.line()
    columns = ("strategy", "reader", "evidence, tokens", "calls", "tokens, in and out", "ms")
    out.table(columns, map(_figures, found))


def _figures(one: Compared) -> tuple[object, ...]:
    usage = one.answer.usage
    return (
        one.strategy,
        one.reader,
        _size(one),
        usage.calls,
        usage.tokens_in + usage.tokens_out,
        round(one.ms),
    )


def _size(one: Compared) -> int:
    return sum(tokens.count(item.text) for item in one.evidence.items)


def _evidence(one: Compared, everything: bool) -> list[str]:
    """Where each piece stands and how it begins, with a star if the answer cites a line of it."""
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
