"""Where things came from, and the way back: history, blame, log, undo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING

import click

from infinimem.cli.completion import document_ids
from infinimem.cli.options import Command, Options, pass_options
from infinimem.cli.output import Output, ago
from infinimem.cli.show import show_receipt, unsigned
from infinimem.errors import UsageError
from infinimem.results import event_words, history_json, log_json, receipt_json, summary, without_blanks

if TYPE_CHECKING:
    from infinimem.operations.blame import Blamed
    from infinimem.operations.history import Event

INDENT = 8
"""Characters before the words of a line that is told of."""


@click.command(cls=Command)
@click.argument("seq", type=click.IntRange(min=1))
@pass_options
def history(options: Options, seq: int) -> None:
    """Lists every receipt that moved it."""
    out = options.out
    events = options.reading().history(seq)
    out.result(history_json(events), lambda: _tell(out, events))


def _tell(out: Output, events: tuple[Event, ...]) -> None:
    """An event a line for people, its words below; in a pipe all in one line."""
    if not out.for_people:
        out.table((), [(e.event, e.seq, e.time, event_words(e), e.text) for e in events])
        return
    shown = ""
    for event in events:
        when = event.time and f"{ago(event.time)}: "
        style = "bold" if event.event == "now" else None
        out.line(f"{f'[{event.seq}]':<{INDENT}}{when}{event_words(event)}", style, INDENT)
        if event.text and (event.text != shown or event.event == "receipt"):  # the same words once
            for line in event.text.split("\n"):
                out.line(f"{'':<{INDENT}}{line}", "dim" if event.event == "receipt" else "cyan", INDENT)
        shown = event.text or shown


@click.command(cls=Command)
@click.argument("target", metavar="ID[:LINE]", shell_complete=document_ids)
@pass_options
def blame(options: Options, target: str) -> None:
    name, line = _target(target)
    out = options.out
    found = options.reading().blame(name, line)
    rows = [{**without_blanks(asdict(one)), "turns": [asdict(turn) for turn in one.turns]} for one in found]

    out.result({"rows": rows}, lambda: _tell_blame(out, found, line is None))


def _target(text: str) -> tuple[str, int | None]:
    name, colon, line = text.rpartition(":")
    if not colon:
        return text, None
    if not (name and line.isascii() and line.isdigit() and len(line) < 10):
        raise UsageError(f"{text!r}: write ID or ID:LINE, for example CURRENT:12")
    return name, int(line)


def _tell_blame(out: Output, found: Sequence[Blamed], whole: bool) -> None:
    """For people a line's words, and below who said and put them there; derived lines in a row are told once.

    Args:
        out: where it is printed.
        found: the lines.
        whole: whether they are a whole document.
    """
    if not out.for_people:
        out.table((), [_blamed(one, False) for one in found])
        return
    for derived, run in groupby(found, lambda one: whole and one.kind in ("derived", "blank")):
        some = list(run)
        if derived:
            numbers = "-".join(dict.fromkeys((str(some[0].line), str(some[-1].line))))
            last = max(some, key=lambda one: one.receipt)
            by = f", derived by {last.receipt.removeprefix('journal/')}" if last.receipt else ""
            out.line(
                f"{numbers:<{INDENT}}(header, headings, blank lines{by} {last.time[:10]})", "dim", INDENT
            )
            continue
        for one in some:
            number, _, came, said, text = _blamed(one, True)
            out.line(f"{number:<{INDENT}}{text}", None, INDENT)
            if told := "; ".join(filter(None, (said, came))):
                out.line(f"{'':<{INDENT}}{told}", "dim", INDENT)


def _blamed(one: Blamed, short: bool) -> tuple[int, str, str, str, str]:
    words = {"said": "was said", "quoted": "quoted", "person": "typed by a person", "blank": ""}
    since = f"derived {one.why}".strip() if one.kind == "derived" else words.get(one.kind, "")
    edited = one.kind == "entry" and one.why.startswith("edited")
    if edited or (one.kind == "entry" and not one.receipt):
        since = one.why
    receipt = one.receipt.removeprefix("journal/")
    came = ", ".join(filter(None, [since, receipt])) + (f" {one.time[:10]}" if receipt else "")
    said = ""
    if one.turns and (one.kind in ("entry", "quoted") or not short):
        turn = one.turns[0]
        told = (
            (turn.speaker or turn.source, ago(turn.time)) if short else (turn.where, turn.speaker, turn.time)
        )
        said = (", " if short else " ").join(filter(None, [*told, turn.turn]))
        said = f"from {said}" if edited else said
    more = f" +{len(one.turns) - 1}" if len(one.turns) > 1 else ""
    text = unsigned(one.text) if short else one.text
    return one.line, str(one.seq or ""), came, said + more, text


@click.command(cls=Command)
@click.option("-n", "limit", type=click.IntRange(min=1), metavar="N", help="Only the newest N.")
@pass_options
def log(options: Options, limit: int | None) -> None:
    out = options.out
    receipts = options.reading().receipts()[::-1][:limit]

    def show() -> None:
        if out.for_people:
            cells = [
                (r.id.removeprefix("journal/"), ago(r.time), "; ".join(filter(None, (summary(r), r.model))))
                for r in receipts
            ]
            out.table(("receipt", "time", "what"), cells)
        else:
            out.table((), [(r.id, r.time, r.model, summary(r)) for r in receipts])
        if not receipts:
            out.say("no receipts: nothing was consolidated yet")

    out.result(log_json(receipts), show)


@click.command(cls=Command)
@click.argument("receipt", metavar="[RECEIPT]", required=False)
@click.option("--together", is_flag=True, help="Also undo the later receipts that moved the same lines.")
@pass_options
def undo(options: Options, receipt: str | None, together: bool) -> None:
    """This is a new transaction with a receipt of its own."""
    out = options.out
    done = options.reading().undo(receipt, together)

    def show() -> None:
        for one in done:
            show_receipt(out, one)

    out.result({"receipt": receipt_json(done[-1]), "receipts": [receipt_json(one) for one in done]}, show)
