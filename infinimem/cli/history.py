"""Commands that look back: history, blame, log, diff, undo, review, forget, rename."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from infinimem.cli.options import COUNT, Options, command, document_ids, numbers
from infinimem.cli.output import Output, ago
from infinimem.errors import UsageError
from infinimem.markdown.signature import parse_entry
from infinimem.model import SOURCES, Receipt
from infinimem.results import (
    counted,
    event_words,
    forgotten_json,
    history_json,
    log_json,
    receipt_json,
    summary,
    without_blanks,
)

if TYPE_CHECKING:
    from infinimem.operations.as_of import FactChange
    from infinimem.operations.forget.forget import Forgotten
    from infinimem.operations.history import Blamed
    from infinimem.operations.review import ReviewItem

INDENT = 8  # characters before the words of a line
_label = partial(re.compile(r"journal/0*(\d+)-[a-z]+").sub, r"receipt \1")
"""Gives what documents call a receipt, for it takes less room than its name."""


def show_receipt(out: Output, receipt: Receipt) -> None:
    """Print a line of totals, then how many lines went where and why."""
    calls, tokens = counted(receipt.usage.calls, "call"), counted(receipt.usage.tokens, "token")
    lines = f"{counted(len(receipt.rows), 'line')}, " if receipt.rows else ""  # records have none
    cost = f"{calls}, {tokens}, {receipt.seconds:.1f} s, {receipt.model}"
    out.line(f"{receipt.id}: {lines}{counted(len(receipt.files), 'file')} ({cost})", "bold")
    places = Counter((row.now.rsplit(":", 1)[0], row.why) for row in receipt.rows)
    rows = [(times, why, place) for (place, why), times in sorted(places.items())]
    out.table(("lines", "why", "where they are now"), rows)
    for note in receipt.notes:
        out.say(f"note: {note}")


def unsigned(line: str) -> str:
    """Return a line for people: of an entry its number and words, behind what stands before it in a diff."""
    mark = line[:1] if line[1:4] == "- <" else ""
    entry = parse_entry(line.removeprefix(mark))
    return f"{mark}[{entry.seq}] {entry.text}" if entry else line


@command()
@click.argument("seq", type=COUNT)
def history(options: Options, seq: int) -> None:
    """Lists every receipt that moved it."""
    out = options.out
    events = options.reading().history(seq)
    if not out.result(history_json(events)):
        return
    if not out.for_people:
        out.table((), [(e.event, e.seq, e.time, event_words(e), e.text) for e in events])
        return
    before = ""
    for event in events:
        when = event.time and f"{ago(event.time)}: "
        style = "bold" if event.event == "now" else None
        out.line(f"{f'[{event.seq}]':<{INDENT}}{when}{event_words(event)}", style, INDENT)
        if event.text and (event.text != before or event.event == "receipt"):  # the same words once
            for line in event.text.split("\n"):
                out.line(f"{'':<{INDENT}}{line}", "dim" if event.event == "receipt" else "cyan", INDENT)
        before = event.text or before


@command()
@click.argument("target", metavar="ID[:LINE]", shell_complete=document_ids)
def blame(options: Options, target: str) -> None:
    name, colon, line = target.rpartition(":")
    if colon and not (name and line.isascii() and line.isdigit() and len(line) < 10):
        raise UsageError(f"{target!r}: write ID or ID:LINE, for example CURRENT:12")
    out = options.out
    lines = options.reading().blame(name if colon else target, int(line) if colon else None)
    rows = [{**without_blanks(asdict(one)), "turns": [asdict(turn) for turn in one.turns]} for one in lines]
    if not out.result({"rows": rows}):
        return
    if not out.for_people:
        out.table((), [(one.line, one.seq or "", *_blame_words(one, False), one.text) for one in lines])
        return
    for derived, run in groupby(lines, lambda one: not colon and one.kind in ("derived", "blank")):
        some = list(run)
        if derived:
            numbers = "-".join(dict.fromkeys((str(some[0].line), str(some[-1].line))))
            last = max(some, key=lambda one: one.receipt)
            by = f", derived by {_label(last.receipt)}" if last.receipt else ""
            text = f"(header, headings, blank lines{by} {last.time[:10]})"
            out.line(f"{numbers:<{INDENT}}{text}", "dim", INDENT)
            continue
        for one in some:
            out.line(f"{one.line:<{INDENT}}{unsigned(one.text)}", None, INDENT)
            if words := "; ".join(filter(None, reversed(_blame_words(one, True)))):
                out.line(f"{'':<{INDENT}}{words}", "dim", INDENT)


def _blame_words(one: Blamed, short: bool) -> tuple[str, str]:
    edited = one.kind == "entry" and one.why.startswith("edited")
    words = {
        "said": "was said",
        "quoted": "quoted",
        "person": "typed by a person",
        "derived": f"derived {one.why}".strip(),
        "entry": one.why if edited or not one.receipt else "",
    }
    receipt = _label(one.receipt) if short else one.receipt.removeprefix("journal/")
    came = ", ".join(filter(None, [words.get(one.kind), receipt])) + (f" {one.time[:10]}" if receipt else "")
    said = ""
    if one.turns and (one.kind in ("entry", "quoted") or not short):
        turn = one.turns[0]
        long = (turn.where, turn.speaker, turn.time)
        parts = (turn.speaker or turn.source, ago(turn.time)) if short else long
        said = (", " if short else " ").join(filter(None, [*parts, turn.turn]))
        said = f"from {said}" if edited else said
    more = f" +{len(one.turns) - 1}" if len(one.turns) > 1 else ""
    return came, said + more


@command()
@click.option("-n", "limit", type=COUNT, metavar="N", help="Only the newest N.")
@click.option("--since", metavar="MOMENT", help="Since a time (7d, 2w, 2025-03-03), and which facts changed.")
def log(options: Options, limit: int | None, since: str | None) -> None:
    out, memory = options.out, options.reading()
    start = f"{since}T00:00:00" if re.fullmatch(r"[\d-]{10}", since or "") else since
    changes = memory.changes(f"{start}..") if start else None
    receipts = (changes.receipts if changes else memory.receipts())[::-1][:limit]
    facts = changes.rows if changes else ()
    if out.result(log_json(receipts) | ({"changes": list(map(asdict, facts))} if changes else {})):
        if out.for_people:
            cells = [
                (r.id.removeprefix("journal/"), ago(r.time), "; ".join(filter(None, (summary(r), r.model))))
                for r in receipts
            ]
            out.table(("receipt", "time", "what"), cells)
        else:
            out.table((), [(r.id, r.time, r.model, summary(r)) for r in receipts])
        if not receipts:
            out.say(f"no receipts{f' since {since}' if since else ': nothing was consolidated yet'}")
        _show_changes(out, facts)


@command()
@click.argument("span", metavar="[RECEIPT|MOMENT..[MOMENT]]", required=False)
def diff(options: Options, span: str | None) -> None:
    """RECEIPT is the newest one unless given; a MOMENT is a day (its end), a time, 7d, a seq or a receipt."""
    changes = options.reading().changes(span)
    data = {"changes": list(map(asdict, changes.rows)), "receipts": [one.id for one in changes.receipts]}
    options.out.result(data, lambda: _show_changes(options.out, changes.rows))
    if not changes.rows:
        options.out.say("no fact changed")


def _show_changes(out: Output, facts: Sequence[FactChange]) -> None:
    """Print facts as they were and are, in a pipe one a line; of those that only moved how many they are."""
    changed = [one for one in facts if one.kind != "moved"]
    for one in changed if out.for_people else ():
        out.line(f"{one.kind} in {one.where}{f', {ago(one.time)}' if one.time else ''}", "bold")
        if one.was:
            out.line(f"{f'[{one.seq}]':<{INDENT}}was  {one.was}", "red", INDENT)
        if one.now:
            out.line(f"{f'[{one.by or one.seq}]':<{INDENT}}now  {one.now}", "green", INDENT)
    if not out.for_people:
        out.table((), [(o.kind, o.seq, o.by or "", o.time[:10], o.where, o.was, o.now) for o in changed])
    if moved := len(facts) - len(changed):
        out.say(f"{counted(moved, 'fact')} moved to another document, in the same words")


@command()
@click.argument("receipt", metavar="[RECEIPT]", required=False)
@click.option("--together", is_flag=True, help="Also undo the later receipts that moved the same lines.")
def undo(options: Options, receipt: str | None, together: bool) -> None:
    """This is a new transaction with a receipt of its own."""
    out, memory = options.out, options.reading()
    done = memory.undo(receipt, together)
    if out.result({"receipt": receipt_json(done[-1]), "receipts": [receipt_json(one) for one in done]}):
        for one in done:
            show_receipt(out, one)
        taken = next(one for one in memory.receipts() if done[-1].notes[0].endswith(f" {one.label}"))
        out.say(f"taken back: the {taken.op} of {taken.time} ({summary(taken)})")
        from infinimem.store.lines import block_of

        places, block = memory.view.entries("evidence"), block_of(taken.high)
        later = [str(p.seq) for p in places if p.seq > taken.high and block_of(p.seq) == block]
        if later and not receipt:
            stay = f"{counted(len(later), 'turn')} recorded after it {'stay' if later[1:] else 'stays'}"
            listed = "…," * (len(later) > 20) + ",".join(later[-20:])
            out.say(f"{stay}, for recording has no receipt; to take out: infinimem forget --seq {listed}")


@command()
@click.option("--approve", multiple=True, metavar="ITEM[:SEQ,…]", help="Do it: all of it, or these lines.")
@click.option("--reject", multiple=True, metavar="ITEM[:SEQ,…]", help="Drop it: all of it, or these lines.")
def review(options: Options, approve: tuple[str, ...], reject: tuple[str, ...]) -> None:
    """7 is what receipt 7 withheld, 7:12,15 two lines of it; inbox is what awaits approval.

    What cannot be done any more is shown once.
    """
    out, memory = options.out, options.reading()
    if not (approve or reject):
        rows = memory.review()
        out.result({"rows": [asdict(row) for row in rows]}, lambda: _list_review(out, rows))
        view = memory.view
        if view.settings.write.approve and view.spec.has_entries and (turns := len(view.uncited())):
            out.say(f"waiting for the next consolidation to extract from them: {counted(turns, 'turn')}")
        return
    receipts = memory.decide(approve, reject)
    left = memory.review()
    told = [receipt_json(receipt) for receipt in receipts]
    if out.result({"receipts": told, "rows": [asdict(row) for row in left]}):
        for receipt in receipts:
            show_receipt(out, receipt)
        if not receipts:
            out.say("nothing was moved")
        out.say(
            f"{counted(len(left), 'line')} still awaiting review" if left else "nothing else awaits review"
        )


def _list_review(out: Output, rows: Sequence[ReviewItem]) -> None:
    from infinimem.operations.review import CODES

    for item, some in groupby(rows, key=lambda row: row.item):
        lines = list(some)
        what = f"withheld by receipt {item}" if item.isdigit() else "awaits approval"
        out.line(f"{item}: {what}, {counted(len(lines), 'line')}", "bold")
        for row in lines:
            way = f"  {row.seq}  {row.was or 'gone'} → {row.now}"
            if row.by:
                words = {"superseded": "superseded by", "duplicate": "a duplicate of"}.get(row.why, row.why)
                why = CODES.get(row.code, row.code) + (f"; void: {row.void}" if row.void else "")
                way += f", {words} {row.by} ({row.by_where or 'gone'}); {why}"
            out.line(way, "yellow" if row.void else None)
            out.line(f"    {'-' if row.by else '+'} {row.text}", "red" if row.by else "green")
            if row.by:
                out.line(f"    + {row.by_text}", "green")
    if rows:
        one = f"review --approve {item}, --reject {item}, or {item}:{row.seq} alone"
        out.say(f"{counted(len(rows), 'line')}; {one}")
    else:
        out.say("nothing awaits review")


@command()
@click.option("--seq", "seqs", metavar="N[,N…]", help="Lines by number.")
@click.option("--match", metavar="PATTERN", help="Lines that match a pattern (RE2, any case).")
@click.option("--source", type=click.Choice(SOURCES), help="All lines from a source.")
@click.option("--session", metavar="NAME", help="All turns of a session; with --source, only that source's.")
@click.option("--dry-run", is_flag=True, help="Show what would be removed; write nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def forget(options: Options, /, seqs: str | None, dry_run: bool, yes: bool, **wanted: Any) -> None:
    """Everything else that was drawn from the same sources goes too.

    Shows the lines first and asks; in a pipe it only shows them, unless --yes is given.
    """
    out, memory = options.out, options.reading()
    with out.progress("Looking"):
        going = memory.forget(numbers(seqs, "--seq"), **wanted, dry_run=True)
    for note in going.notes:
        out.say(f"note: {note}")
    if dry_run or not going.files or not yes:
        out.result(forgotten_json(going, planned=True), lambda: _show_going(out, going))
        if not going.files:
            out.say("nothing matches: there is nothing to forget")
        what = counted(len(going.rows), "line") if going.rows else "what these files say of it"
        if dry_run or not going.files or not out.confirms(f"Forget {what} for good?"):
            if going.files and not dry_run:
                out.say("nothing was forgotten; add --yes to forget them")
            return
    with out.progress("Forgetting"):
        done = memory.forget(numbers(seqs, "--seq"), **wanted)
    typed = sum(row.seq is None for row in going.rows)
    out.result(forgotten_json(done), lambda: _show_forgotten(out, done, typed))


@command()
@click.argument("name", metavar="DOC", shell_complete=document_ids)
@click.argument("new")
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


def _show_going(out: Output, going: Forgotten) -> None:
    rows = [(row.seq or "-", f"{row.doc_id}:{row.line}", row.text) for row in going.rows]
    out.table(("seq", "where", "line"), rows)
    _show_left(out, going, "holds some of it too, and stays")
    if going.files and not going.rows:
        told = counted(len(going.files), "file")
        out.say(f"no line has it, but summaries or headings of {told} do: {', '.join(going.files[:20])}")
    if going.records:
        out.say(f"{counted(len(going.records), 'record')} would be deleted: {', '.join(going.records[:20])}")
    if going.history:
        out.say(going.history)


def _show_forgotten(out: Output, done: Forgotten, typed: int) -> None:
    if done.receipt is None:
        out.line("nothing was left to forget")
        return
    out.line(f"{done.receipt.id}: {counted(len(done.seqs) + typed, 'line')} forgotten", "bold")
    if not done.left:
        out.line("nothing of it is left in the library or its cache")
    _show_left(out, done, "still holds some of it")
    if done.records:
        out.line(f"{counted(len(done.records), 'record')} came from it or told of it, and went whole")
    if done.history:
        out.line(done.history)


def _show_left(out: Output, found: Forgotten, why: str) -> None:
    for left in found.left:
        out.line(f"{left.path} {why} ({left.why})", "bold yellow")
    if found.repeated:
        listed = ", ".join(map(str, found.repeated[:20])) + ", …" * (len(found.repeated) > 20)
        out.say(f"other lines say some of the same; they stay, --seq removes them: {listed}")
