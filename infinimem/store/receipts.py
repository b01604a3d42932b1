"""Receipts: what a transaction did, as a Markdown file of the journal.

The table has a row for every seq touched. `## Before` holds, for every file touched, a reverse diff of its
skeleton: the file's lines with each entry written as `@seq` and every other line behind a `>`. Putting the
lines back by seq along it restores the bytes, and no entry is quoted. Of a file that was not there before
it says just that.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping

from infinimem.markdown.document import Document
from infinimem.markdown.header import quote
from infinimem.model import Receipt, Touched, Usage

_ROW = re.compile(r"^\| (\d+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$")


def format_receipt(
    receipt: Receipt, before: Mapping[str, Document | None], after: Mapping[str, Document | None]
) -> bytes:
    """The file's bytes.

    Args:
        receipt: what happened.
        before, after: the documents that changed, by id; None where there is none.
    """
    usage = receipt.usage
    lines = [
        "---",
        f"id: {receipt.id}",
        "kind: receipt",
        f"time: {receipt.time}",
        f"op: {receipt.op}",
        f"strategy: {quote(receipt.strategy)}",
        f"model: {quote(receipt.model)}",
        f"usage: {{calls: {usage.calls}, tokens_in: {usage.tokens_in}, tokens_out: {usage.tokens_out}}}",
        f"seconds: {receipt.seconds:.1f}",
        "files:",
        *(f"  - {{id: {quote(doc)}, old: {old}, new: {new}}}" for doc, old, new in receipt.files),
    ]
    if receipt.notes:
        lines += ["notes:", *(f"  - {quote(note)}" for note in receipt.notes)]
    lines += ["---", "| seq | was | now | why |", "| --- | --- | --- | --- |"]
    lines += [f"| {row.seq} | {row.was} | {row.now} | {row.why} |" for row in receipt.rows]
    diff: list[str] = []
    for doc_id in sorted(before):
        diff += _reverse(doc_id, before[doc_id], after[doc_id])
    fence = "`" * max(3, 1 + max((len(run) for line in diff for run in re.findall("`+", line)), default=0))
    lines += ["", "## Before", f"{fence}diff", *diff, fence, ""]
    return "\n".join(lines).encode("utf-8", "surrogateescape")


def skeleton(document: Document | None) -> list[str]:
    """The document's lines, entries as `@seq`; a file that is not there has none."""
    if document is None:
        return []
    lines = [f">{line}" for line in document.lines]
    for place in reversed(document.entries):
        lines[place.start_line - 1 : place.end_line] = [f"@{place.entry.seq}"]
    return lines


def _reverse(doc_id: str, old: Document | None, new: Document | None) -> list[str]:
    if old is None:
        return [f"--- {doc_id} (after)", "+++ nothing"]
    now, then = f"{doc_id} (after)" if new else "nothing", f"{doc_id} (before)"
    return list(difflib.unified_diff(skeleton(new), skeleton(old), now, then, n=0, lineterm=""))


def parse_receipt(document: Document) -> Receipt:
    """Read a receipt back; what is missing or mangled gets a neutral value, never an error."""
    header = document.header.values
    name = document.id.rsplit("/", 1)[-1]
    number, _, op = name.partition("-")
    usage = header.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    files = header.get("files")
    notes = header.get("notes")
    rows = [Touched(int(row[1]), row[2], row[3], row[4]) for row in map(_ROW.match, document.lines) if row]
    return Receipt(
        number=int(number) if number.isdigit() else 0,
        op=op,
        time=str(header.get("time", "")),
        strategy=str(header.get("strategy", "")),
        model=str(header.get("model", "")),
        usage=Usage(*(_int(counts.get(key)) for key in ("calls", "tokens_in", "tokens_out"))),
        seconds=_float(header.get("seconds")),
        rows=tuple(rows),
        files=tuple(
            (str(row.get("id")), str(row.get("old")), str(row.get("new")))
            for row in (files if isinstance(files, list) else ())
            if isinstance(row, dict)
        ),
        notes=tuple(map(str, notes)) if isinstance(notes, list) else (),
    )


def _int(value: object) -> int:
    return int(value) if isinstance(value, str) and value.isdigit() else 0


def _float(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        return 0.0
