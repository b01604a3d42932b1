"""Receipts, diffs, answers and evidence: as JSON objects and for reading."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from infinimem.cli.output import Output, counted
from infinimem.markdown.signature import parse_entry
from infinimem.model import CURRENT, Answer, Receipt, Step


def receipt_json(receipt: Receipt | None) -> dict[str, Any] | None:
    return None if receipt is None else {"id": receipt.id, **asdict(receipt)}


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


def diff(changes: Mapping[str, tuple[bytes, bytes]]) -> str:
    """Unified diff of documents, (bytes before, bytes after) each, by id; what left the buffer comes last."""
    import difflib

    parts: list[str] = []
    for doc_id, (before, after) in sorted(changes.items(), key=lambda item: (item[0] == CURRENT, item[0])):
        old, new = (data.decode("utf-8", "backslashreplace").split("\n") for data in (before, after))
        name = f"{doc_id}.md"
        parts += difflib.unified_diff(old, new, name if before else "/dev/null", name, lineterm="", n=1)
    return "\n".join(parts)


def answer_json(answer: Answer) -> dict[str, Any]:
    told = asdict(answer)
    return {"answer": told.pop("text"), **told}


def show_trace(out: Output, trace: Iterable[Step]) -> None:
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


def place(item: Any) -> str:
    """ "topics/food:12-14" of anything with a document and lines."""
    lines = f"{item.start_line}" if item.start_line == item.end_line else f"{item.start_line}-{item.end_line}"
    return f"{item.doc_id}:{lines}"
