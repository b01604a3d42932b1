"""Receipts, answers and evidence for reading."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from infinimem.cli.output import Output
from infinimem.markdown.signature import parse_entry
from infinimem.model import Answer, Receipt, Stage
from infinimem.results import counted, place


def show_receipt(out: Output, receipt: Receipt) -> None:
    """A line of totals, then how many lines went where and why."""
    spent = receipt.usage.tokens_in + receipt.usage.tokens_out
    calls, tokens = counted(receipt.usage.calls, "call"), counted(spent, "token")
    lines = f"{counted(len(receipt.rows), 'line')}, " if receipt.rows else ""  # records have none
    cost = f"{calls}, {tokens}, {receipt.seconds:.1f} s, {receipt.model}"
    out.line(f"{receipt.id}: {lines}{counted(len(receipt.files), 'file')} ({cost})", "bold")
    places = Counter(
        (row.now.rsplit(":", 1)[0] if ":" in row.now else row.now, row.why) for row in receipt.rows
    )
    rows = [(times, why, place) for (place, why), times in sorted(places.items())]
    out.table(("lines", "why", "where they are now"), rows)
    for note in receipt.notes:
        out.say(f"note: {note}")


def unsigned(line: str) -> str:
    """A line for people: of an entry its number and words, behind what stands before it in a diff."""
    mark = line[:1] if line[1:4] == "- <" else ""
    entry = parse_entry(line.removeprefix(mark))
    return f"{mark}[{entry.seq}] {entry.text}" if entry else line


def show_trace(out: Output, trace: Iterable[Stage]) -> None:
    """How evidence was found, a message for each stage."""
    for step in trace:
        told = f"{step.stage}: {len(step.found)} found, {counted(step.tokens, 'token')}, {step.ms:.1f} ms"
        out.say("; ".join(filter(None, (told, *step.asked, step.stop, step.failure))))


def show_answer(out: Output, answer: Answer) -> None:
    out.line(answer.text)
    if answer.citations:
        out.line()
        rows = ((place(item), ",".join(map(str, item.seqs)), item.text) for item in answer.citations)
        out.table(("where", "seq", "line"), rows)
