"""The commands that take text and names out: forget, rename."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from infinimem.cli.options import Command, Options, document_ids, numbers, pass_options
from infinimem.cli.output import Output
from infinimem.model import SOURCES
from infinimem.results import counted, forgotten_json, going_json

if TYPE_CHECKING:
    from infinimem.operations.forget.forget import Forgotten


@click.command(cls=Command)
@click.option("--seq", "seqs", metavar="N[,N…]", help="Lines by number.")
@click.option("--match", metavar="PATTERN", help="Lines that match a pattern (RE2, any case).")
@click.option("--source", type=click.Choice(SOURCES), help="All lines from a source.")
@click.option("--session", metavar="NAME", help="All turns of a session; with --source, only that source's.")
@click.option("--dry-run", is_flag=True, help="Show what would be removed; write nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@pass_options
def forget(
    options: Options,
    seqs: str | None,
    match: str | None,
    source: str | None,
    session: str | None,
    dry_run: bool,
    yes: bool,
) -> None:
    """Everything else that was drawn from the same sources goes too.

    Shows the lines first and asks; in a pipe it only shows them, unless --yes is given.
    """
    out, memory = options.out, options.reading()
    wanted: dict[str, Any] = {"match": match, "source": source, "session": session}
    with out.progress("Looking"):
        going = memory.forget(numbers(seqs, "--seq"), **wanted, dry_run=True)
    for note in going.notes:
        out.say(f"note: {note}")
    asked = bool(going.files) and not (dry_run or yes) and out.for_people and sys.stdin.isatty()
    if asked:
        _show(out, going)
        what = counted(len(going.rows), "line") if going.rows else "what these files say of it"
        yes = click.confirm(f"Forget {what} for good?", err=True)
    if dry_run or not going.files or not yes:
        out.result(going_json(going), lambda: None if asked else _show(out, going))
        if not going.files:
            out.say("nothing matches: there is nothing to forget")
        elif not dry_run:
            out.say("nothing was forgotten" if asked else "nothing was forgotten; add --yes to forget them")
        return
    with out.progress("Forgetting"):
        done = memory.forget(numbers(seqs, "--seq"), **wanted)
    typed = sum(row.seq is None for row in going.rows)
    out.result(forgotten_json(done), lambda: _report(out, done, typed))


@click.command(cls=Command)
@click.argument("name", metavar="DOC", shell_complete=document_ids)
@click.argument("new")
@pass_options
def rename(options: Options, name: str, new: str) -> None:
    """NEW is its title from now on; lines, notes and what people wrote stay as they are."""
    out = options.out
    with out.progress("Renaming"):
        done = options.reading().rename(name, new)

    def show() -> None:
        out.line(f"{done.receipt.id}: {done.was} is {done.now} now", "bold")
        for left in done.left:
            out.line(f"{left.path} still holds the old name ({left.why})", "bold yellow")
        if done.history:
            out.line(done.history)

    out.result({**asdict(done), "receipt": done.receipt.id}, show)


def _show(out: Output, going: Forgotten) -> None:
    rows = [(row.seq or "-", f"{row.doc_id}:{row.line}", row.text) for row in going.rows]
    out.table(("seq", "where", "line"), rows)
    _tell(out, going, "holds some of it too, and stays")
    if going.files and not going.rows:
        told = counted(len(going.files), "file")
        out.say(f"no line has it, but summaries or headings of {told} do: {', '.join(going.files[:20])}")
    if going.records:
        out.say(f"{counted(len(going.records), 'record')} would be deleted: {', '.join(going.records[:20])}")
    if going.history:
        out.say(going.history)


def _report(out: Output, done: Forgotten, typed: int) -> None:
    if done.receipt is None:
        out.line("nothing was left to forget")
        return
    out.line(f"{done.receipt.id}: {counted(len(done.seqs) + typed, 'line')} forgotten", "bold")
    if not done.left:
        out.line("nothing of it is left in the library or its cache")
    _tell(out, done, "still holds some of it")
    if done.records:
        out.line(f"{counted(len(done.records), 'record')} came from it or told of it, and went whole")
    if done.history:
        out.line(done.history)


def _tell(out: Output, found: Forgotten, why: str) -> None:
    for left in found.left:
        out.line(f"{left.path} {why} ({left.why})", "bold yellow")
    if found.repeated:
        listed = ", ".join(map(str, found.repeated[:20])) + ", …" * (len(found.repeated) > 20)
        out.say(f"other lines say some of the same; they stay, --seq removes them: {listed}")
