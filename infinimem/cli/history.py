"""Where things came from, and the way back: history, blame, log, undo."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from infinimem.cli.completion import document_ids
from infinimem.cli.options import Command, Options, pass_options
from infinimem.cli.output import Output
from infinimem.cli.show import show_receipt
from infinimem.errors import UsageError
from infinimem.markdown.signature import text_start
from infinimem.results import event_words, history_json, log_json, receipt_json, summary, without_blanks

if TYPE_CHECKING:
    from infinimem.operations.blame import Blamed
    from infinimem.operations.history import Event


@click.command(cls=Command)
@click.argument("seq", type=click.IntRange(min=1))
@pass_options
def history(options: Options, seq: int) -> None:
    """Trace a line from its source turn to where it is now.

    Lists every receipt that moved it.
    """
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
        when = event.time[:16].replace("T", " ")
        out.line(
            f"{when:<16}  {event.seq:>5}  {event_words(event)}", "bold" if event.event == "now" else None
        )
        if event.text and (event.text != shown or event.event == "receipt"):  # the same words once
            for line in event.text.split("\n"):
                out.line(f"{'':<25}{line}", "dim" if event.event == "receipt" else "cyan")
        shown = event.text or shown


@click.command(cls=Command)
@click.argument("target", metavar="ID[:LINE]", shell_complete=document_ids)
@pass_options
def blame(options: Options, target: str) -> None:
    """Show which receipt put each line there, and who said it."""
    name, line = _target(target)
    out = options.out
    found = options.reading().blame(name, line)
    rows = [{**without_blanks(asdict(one)), "turns": [asdict(turn) for turn in one.turns]} for one in found]

    def show() -> None:
        columns = ("line", "seq", "here since", "said", "text")
        out.table(columns, [_blamed(one, out.for_people) for one in found])

    out.result({"rows": rows}, show)


def _target(text: str) -> tuple[str, int | None]:
    name, colon, line = text.rpartition(":")
    if not colon:
        return text, None
    if not (name and line.isascii() and line.isdigit() and len(line) < 10):
        raise UsageError(f"{text!r}: write ID or ID:LINE, for example CURRENT:12")
    return name, int(line)


def _blamed(one: Blamed, short: bool) -> tuple[object, ...]:
    words = {"said": "was said", "quoted": "quoted", "person": "typed by a person", "blank": ""}
    since = f"derived {one.why}".strip() if one.kind == "derived" else words.get(one.kind, "")
    if one.kind == "entry" and not one.receipt:
        since = one.why
    receipt = one.receipt.removeprefix("journal/")
    came = ", ".join(filter(None, [since, receipt])) + (f" {one.time[:10]}" if receipt else "")
    said = ""
    if one.turns and (one.kind in ("entry", "quoted") or not short):
        turn = one.turns[0]
        told = (turn.speaker, turn.time[:10]) if short else (turn.where, turn.speaker, turn.time)
        said = " ".join(filter(None, [*told, turn.turn]))
    more = f" +{len(one.turns) - 1}" if len(one.turns) > 1 else ""
    text = one.text[text_start(one.text) :] if short and one.kind == "entry" else one.text
    return one.line, one.seq or "", came, said + more, text


@click.command(cls=Command)
@click.option("-n", "limit", type=click.IntRange(min=1), metavar="N", help="Only the newest N.")
@pass_options
def log(options: Options, limit: int | None) -> None:
    """List the receipts, newest first."""
    out = options.out
    receipts = options.reading().log(limit)

    def show() -> None:
        table = [(r.id, r.time, r.model, summary(r)) for r in receipts]
        out.table(("receipt", "time", "model", "what"), table)
        if not receipts:
            out.say("no receipts: nothing was consolidated yet")

    out.result(log_json(receipts), show)


@click.command(cls=Command)
@click.argument("receipt", metavar="[RECEIPT]", required=False)
@click.option("--together", is_flag=True, help="Also undo the later receipts that moved the same lines.")
@pass_options
def undo(options: Options, receipt: str | None, together: bool) -> None:
    """Undo a receipt (the newest by default). This is a new transaction with a receipt of its own."""
    out = options.out
    done = options.reading().undo(receipt, together)

    def show() -> None:
        for one in done:
            show_receipt(out, one)

    out.result({"receipt": receipt_json(done[-1]), "receipts": [receipt_json(one) for one in done]}, show)
