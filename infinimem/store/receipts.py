"""Receipts: what a transaction did, as a Markdown file of the journal.

Its form: docs/FORMAT.md. `## Before` leads back to the bytes before, (line_map.py).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from string import ascii_lowercase

from infinimem.errors import UsageError
from infinimem.markdown.document import Document
from infinimem.markdown.header import quote
from infinimem.markdown.signature import format_seqs, parse_entry
from infinimem.model import Entry, Receipt, ReceiptRow, Usage
from infinimem.store.files import digest
from infinimem.store.line_map import Reverse, parse_reverse, parts
from infinimem.store.lines import block_of
from infinimem.store.spec import JOURNAL
from infinimem.store.view import View, whole

QUOTED = "## As it was"
"""Heading of the lines that a person changed; the transaction itself changes none."""

BEFORE = "## Before"
FORGET, RENAME = "forget", "rename"
"""What receipts call the two operations that rewrite receipts, and that are not undone."""
FORGOTTEN = "forgotten"
"""Why a line is nowhere, in the row of a receipt."""
UNDONE = "undone"
DOUBLED = "doubled"
"""Why a line that a merge left twice is gone from one place: it stands in the other, where others put it."""
_SUM = re.compile(r"-|[0-9a-f]{64}|\?[0-9.]+")
"""Of no file, of a file, and what a `forget` puts in the place of one."""
_PLAIN, _LINKED = re.compile(r"[\w./-]+"), re.compile(r"\[([\w./-]+)\]\([^()\s]*\)")
"""A name that can be linked to; a link to one, wherever it leads: editors follow a file that moves."""


def forgotten(receipts: Iterable[Receipt]) -> dict[int, int]:
    """Return the numbers of lines that were forgotten, and the receipt of it."""
    return {
        row.seq: receipt.number
        for receipt in receipts
        if receipt.op == FORGET
        for row in receipt.rows
        if row.why == FORGOTTEN
    }


def forgotten_seqs(
    view: View, known: frozenset[int] | None, changed: Collection[str] | None
) -> frozenset[int]:
    """Return the numbers of lines that were forgotten, here or elsewhere; for `View.derived`."""
    forgets = [doc_id for doc_id in changed or view.below(JOURNAL) if op_and_suffix(doc_id)[0] == FORGET]
    if known is not None and not forgets:
        return known
    those = view.each(filter(view.__contains__, forgets))
    return (known or frozenset()) | forgotten(map(parse_receipt, those)).keys()


def last_forget(view: View) -> int:
    """Return the number of the last `forget`: what comes of a snapshot with another one may quote it."""
    return view.derived(_highest)[1]


def next_number(view: View) -> int:
    return 1 + view.derived(_highest)[0]


def _highest(view: View, known: tuple[int, int] | None, changed: Collection[str] | None) -> tuple[int, int]:
    fresh = [doc_id for doc_id in changed or () if doc_id.startswith(JOURNAL)]
    if known is None or not all(doc_id in view for doc_id in fresh):
        known, fresh = (0, 0), list(view.below(JOURNAL))
    forgets = (doc_id for doc_id in fresh if op_and_suffix(doc_id)[0] == FORGET)
    return max([known[0], *map(number_of, fresh)]), max([known[1], *map(number_of, forgets)])


def number_of(doc_id: str) -> int:
    """Return the number in a receipt's name; 0 for none."""
    return whole(doc_id.removeprefix(JOURNAL).partition("-")[0]) or 0


def op_and_suffix(doc_id: str) -> tuple[str, str]:
    """Return what stands behind the number in a receipt's name: the op, and all that follows."""
    rest = doc_id.partition("-")[2]
    suffix = rest.lstrip(ascii_lowercase)
    return rest.removesuffix(suffix), suffix


def receipt_ids(view: View) -> list[str]:
    """Return the ids of all receipts, oldest first; after a merge of clones several may have one number."""
    return sorted(view.below(JOURNAL), key=lambda doc_id: (number_of(doc_id), doc_id))


def with_suffix(head: Receipt, *change: object) -> Receipt:
    """Return the receipt under a name that no other change of a library gets, on any machine.

    `change` is what tells it from others: what was there before, and what is done.
    """
    told = ascii((head.number, head.op, head.time, head.strategy, head.model, *change))
    return replace(head, suffix=f"-{digest(told.encode())[:6]}")


def format_receipt(receipt: Receipt, way: Sequence[str]) -> bytes:
    """Return the file's bytes; `way` are the reverse diffs of the documents that changed."""
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
        f"high: {receipt.high}",
        "---",
        *_table(("seq", "was", "now", "why"), [(str(r.seq), r.was, r.now, r.why) for r in receipt.rows]),
        "",
        "## Files",
        *_table(("file", "sha256 before", "sha256 after"), [file_cells(*file) for file in receipt.files]),
    ]
    if receipt.notes:
        lines += ["", "## Notes", *(f"> {note}" for note in receipt.notes)]
    if receipt.quoted:
        lines += ["", QUOTED, *_fenced("markdown", receipt.quoted)]
    lines += ["", BEFORE, *_fenced("diff", way), ""]
    return "\n".join(lines).encode("utf-8", "surrogateescape")


def _fenced(language: str, lines: Sequence[str]) -> list[str]:
    """Make a code block; its fence is longer than any run of backticks in it."""
    fence = "`" * max(3, 1 + max((len(run) for line in lines for run in re.findall("`+", line)), default=0))
    return [f"{fence}{language}", *lines, fence]


def amend(
    planned: Document, stayed: Collection[int], notes: Sequence[str], files: Mapping[str, str]
) -> bytes:
    """Return the bytes of a planned receipt with what came otherwise.

    Rows of lines that `stayed` go; `files` are the sha256 of each document as it is.
    """
    receipt = parse_receipt(planned)
    more = [f"stayed where they were: {format_seqs(sorted(stayed))}"] if stayed else []
    told = replace(
        receipt,
        rows=tuple(row for row in receipt.rows if row.seq not in stayed),
        files=tuple((name, before, files.get(name, after)) for name, before, after in receipt.files),
        notes=(*more, *notes, *receipt.notes),
    )
    return format_receipt(told, planned.lines[block(planned.lines, BEFORE)])


class Checksums:
    """What receipt `number` says in the place of checksums of files that must not be guessed."""

    def __init__(self, number: int) -> None:
        self.known: dict[str, str] = {}
        self._number = number

    def of(self, checksum: str) -> str:
        """Return what stands for it: the same for the same bytes."""
        if len(checksum) < 64:
            return checksum
        return self.known.setdefault(checksum, f"?{self._number}.{len(self.known) + 1}")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [row_of(head), row_of(["---"] * len(head)), *map(row_of, rows)]


def file_cells(name: str, before: str, after: str) -> tuple[str, str, str]:
    """Return the cells of a file: a link to it if it is there afterwards and its name needs no escapes."""
    linked = after != "-" and _PLAIN.fullmatch(name)
    return f"[{name}](../{name}.md)" if linked else name, before, after


def file_of(cells: Sequence[str]) -> tuple[str, str, str] | None:
    """Return the file of a row of `## Files`, linked or not; None if the cells are of no such row."""
    if len(cells) != 3 or not all(map(_SUM.fullmatch, cells[1:])):
        return None
    linked = _LINKED.fullmatch(cells[0])
    return linked[1] if linked else cells[0], cells[1], cells[2]


def row_of(cells: Sequence[str]) -> str:
    escaped = (re.sub(r"[|\\]", r"\\\g<0>", cell) for cell in cells)
    return f"| {' | '.join(escaped)} |"


def cells_of(line: str) -> list[str]:
    """Return the cells of a row of a table; none if the line is no row."""
    if not (line.startswith("| ") and line.endswith(" |")):
        return []
    cells = line[2:-2].split(" | ")
    return [re.sub(r"\\(.)", r"\1", cell) for cell in cells] if "\\" in line else cells


def parse_receipt(document: Document) -> Receipt:
    """Read a receipt back; what is missing or mangled gets a neutral value, never an error."""
    header = document.header.values
    op, suffix = op_and_suffix(document.id)
    counts = usage if isinstance(usage := header.get("usage"), dict) else {}
    seconds = 0.0
    with suppress(ValueError):
        seconds = float(str(header.get("seconds")))
    rows = [cells_of(line) for line in document.lines]
    return Receipt(
        number=number_of(document.id),
        op=op,
        time=str(header.get("time", "")),
        strategy=str(header.get("strategy", "")),
        model=str(header.get("model", "")),
        usage=Usage(*(whole(counts.get(key)) or 0 for key in ("calls", "tokens_in", "tokens_out"))),
        seconds=seconds,
        rows=tuple(ReceiptRow(seq, *row[1:]) for row in rows if len(row) == 4 and (seq := whole(row[0]))),
        files=tuple(file for row in rows if (file := file_of(row))),
        notes=tuple(line[2:] for line in document.lines if line.startswith("> ")),
        quoted=document.lines[block(document.lines, QUOTED)],
        high=whole(header.get("high")) or 0,
        suffix=suffix,
    )


def quoted(receipt: Receipt) -> Mapping[int, Entry]:
    """Return the lines that it quotes, by seq, each as it was first of all."""
    return {entry.seq: entry for line in reversed(receipt.quoted) if (entry := parse_entry(line))}


def reverse_diffs(document: Document) -> tuple[Reverse, ...]:
    return tuple(map(parse_reverse, parts(document.lines[block(document.lines, BEFORE)])))


def block(lines: Sequence[str], heading: str) -> slice:
    """Return where the lines of the code block under a heading stand; an empty slice for none."""
    end = len(lines)
    at = lines.index(heading) + 2 if heading in lines else end
    fence = re.match("`*", lines[at - 1]) if at < end else None
    close = next((n for n in range(at, end) if fence and lines[n] == fence[0]), -1)
    return slice(at, close) if close >= 0 else slice(end, end)


@dataclass
class Tale:
    """What receipts tell of a line: from where to where it went, in order, and how it read before; `last` is
    DOUBLED if a merge left it twice, and UNDONE once that was taken back; `is_undone` if anything was."""

    steps: list[tuple[str, str]] = field(default_factory=list)
    quoted: set[str] = field(default_factory=set)
    last: str = ""
    is_undone: bool = False

    def ends(self, doc_id: str) -> bool:
        """Return whether the line came there last."""
        return self.steps[-1:] != [] and self.steps[-1][1] == doc_id


def tales_of(
    view: View, seqs: Collection[int], doc_ids: Iterable[str]
) -> tuple[Mapping[int, Tale], set[int]]:
    """Return what receipts tell of some lines, and the blocks of seqs of those who wrote these receipts."""
    tales, blocks = {seq: Tale() for seq in seqs}, set[int]()
    for receipt in map(parse_receipt, view.each(doc_ids)) if tales else ():
        blocks.add(block_of(receipt.high))
        for row in receipt.rows:
            if tale := tales.get(row.seq):
                tale.is_undone = tale.is_undone or row.why == UNDONE
                tale.last = row.why if row.why == DOUBLED or (row.why == UNDONE and tale.last) else ""
                tale.steps += [(row.was, row.now)] * (row.was != row.now and row.why != DOUBLED)
        for line in receipt.quoted:
            if (entry := parse_entry(line)) and entry.seq in tales:
                tales[entry.seq].quoted.add(line)
    return tales, blocks


def receipts_of(view: View, after: int = -1) -> Iterator[Receipt]:
    """Give the receipts after a number, oldest first; they are read one by one, and none is kept."""
    ids = (doc_id for doc_id in receipt_ids(view) if number_of(doc_id) > after)
    return map(parse_receipt, view.each(ids))


def named(receipts: Sequence[Receipt], name: str) -> Receipt:
    """Return the receipt called "0007-consolidate-3f9ac1", "7-3f9ac1", "0007-consolidate" or "7".

    UsageError if none or several are called so.
    """
    stem = name.removeprefix(JOURNAL).removesuffix(".md")
    those = [r for r in receipts if r.id == JOURNAL + stem] or [
        r for r in receipts if stem in (r.label, str(r.number), f"{r.number:04d}", f"{r.number:04d}-{r.op}")
    ]
    if not those:
        raise UsageError(f"there is no receipt {name!r}; infinimem log lists them")
    if len(those) > 1:
        several = ", ".join(receipt.id for receipt in those)
        raise UsageError(f"{name!r} names several receipts: {several}; give the full id")
    return those[0]
