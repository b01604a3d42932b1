"""Changes that await a person's review, as a diff to read, and the decision."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING

import click

from infinimem.cli.options import Command, Options, pass_options
from infinimem.cli.output import Output
from infinimem.cli.show import show_receipt
from infinimem.results import counted, receipt_json

if TYPE_CHECKING:
    from infinimem.operations.review import ReviewItem


@click.command(cls=Command)
@click.option("--approve", multiple=True, metavar="ITEM[:SEQ,…]", help="Do it: all of it, or these lines.")
@click.option("--reject", multiple=True, metavar="ITEM[:SEQ,…]", help="Drop it: all of it, or these lines.")
@pass_options
def review(options: Options, approve: tuple[str, ...], reject: tuple[str, ...]) -> None:
    """7 is what receipt 7 withheld, 7:12,15 two lines of it. What cannot be done any more is shown once."""
    out, memory = options.out, options.reading()
    if not (approve or reject):
        rows = memory.review()
        out.result({"rows": [asdict(row) for row in rows]}, lambda: _list(out, rows))
        return
    receipts = memory.decide(approve, reject)
    left = memory.review()

    def show() -> None:
        for receipt in receipts:
            show_receipt(out, receipt)
        if not receipts:
            out.say("nothing was moved")
        out.say(
            f"{counted(len(left), 'line')} still awaiting review" if left else "nothing else awaits review"
        )

    told = [receipt_json(receipt) for receipt in receipts]
    out.result({"receipts": told, "rows": [asdict(row) for row in left]}, show)


def _list(out: Output, rows: Iterable[ReviewItem]) -> None:
    """Each item with its lines; of each line where it would go, how it reads and what would stand for it."""
    shown = 0
    for item, some in groupby(rows, key=lambda row: row.item):
        lines = list(some)
        out.line(f"{item}: withheld by receipt {item}, {counted(len(lines), 'line')}", "bold")
        for row in lines:
            _show(out, row)
        shown += len(lines)
    if shown:
        out.say(
            f"{counted(shown, 'line')}; review --approve {item}, --reject {item}, or {item}:{row.seq} alone"
        )
    else:
        out.say("nothing awaits review")


def _show(out: Output, row: ReviewItem) -> None:
    from infinimem.operations.review import CODES

    words = {"superseded": "superseded by", "duplicate": "a duplicate of"}.get(row.why, row.why)
    by, why = f"{row.by} ({row.by_where or 'gone'})", CODES.get(row.code, row.code)
    void = f"; void: {row.void}" if row.void else ""
    way = f"{row.was or 'gone'} → {row.now}, {words} {by}"
    out.line(f"  {row.seq}  {way}; {why}{void}", "yellow" if row.void else None)
    out.line(f"    - {row.text}", "red")
    out.line(f"    + {row.by_text}", "green")
