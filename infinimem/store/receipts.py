"""Receipts: what a transaction did, as a Markdown file of the journal.

Its form: docs/FORMAT.md. `## Before` leads back to the bytes before, by line maps (below).
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from string import ascii_lowercase

from infinimem.errors import LibraryError, UsageError
from infinimem.law import Line
from infinimem.markdown.characters import one_line
from infinimem.markdown.document import Document
from infinimem.markdown.header import quote
from infinimem.markdown.signature import forgotten_in, format_seqs, parse_entry, tombstone
from infinimem.model import Entry, Located, Move, Receipt, ReceiptRow, RejectedReply, Usage, Withheld
from infinimem.store.files import MAX_OWNED, Files, digest
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


# ── the way back from one version of a document to the one before ───────────────────────────────
# A line map has a row a line: `@41` for the entry with that seq or its tombstone, `>text` for any other line.
# A diff of two leads back and restores every byte; docs/FORMAT.md has its form (`## Before`).

LARGEST_DIFF = 4_000_000
"""Rows of one line map times rows of the other, up to which difflib compares them, for it takes the square.
Of longer line maps all between the first and the last difference counts as changed."""

MARK = "(forgotten)"
"""What stands in a receipt for derived text that could quote what was forgotten."""

_BOM, _UNENDED = "\\bom", "\\no newline"
_NOTHING, _LOST = "nothing", "forgotten"
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")


@dataclass(frozen=True)
class Hunk:
    """At row `start` (from 0) of the newer line map: rows that came, and what stood there before."""

    start: int
    came: tuple[str, ...]
    before: tuple[str, ...]


@dataclass(frozen=True)
class Reverse:
    """How a document was before a change. `is_new`: there was none. `is_lost`: a `forget` dropped it."""

    doc_id: str
    is_new: bool
    is_lost: bool
    hunks: tuple[Hunk, ...]


def line_map(document: Document | None, changed: Collection[Line] = ()) -> list[str]:
    """Return the rows; none for no file. Lines that will read otherwise, `changed`, stand in full."""
    if document is None:
        return []
    rows = [f"@{seq}" if (seq := forgotten_in(line)) else f">{line}" for line in document.lines]
    for place in reversed(document.entries):
        if (place.seq, place.entry.line) not in changed:
            end = "\r" * rows[place.end_line - 1].endswith("\r")
            rows[place.start_line - 1 : place.end_line] = [f"@{place.seq}{end}"]
    if document.bom:
        rows.insert(0, _BOM)
    if rows and not document.final_newline:
        rows.append(_UNENDED)
    return rows


def from_line_map(doc_id: str, rows: Iterable[str], lines: Mapping[int, str]) -> Document:
    """Return the document that a line map stands for; raise KeyError if there is no line for a seq."""
    rows = list(rows)
    text = []
    for row in rows:
        if row.startswith("@"):
            seq, end = row[1:].removesuffix("\r"), "\r" * row.endswith("\r")
            text.append(lines[int(seq)] + end)
        elif row.startswith(">"):
            text.append(row[1:])
    data = "\n".join(text) + "\n" * bool(text and _UNENDED not in rows)
    return Document.parse(doc_id, b"\xef\xbb\xbf" * (_BOM in rows) + data.encode("utf-8", "surrogateescape"))


def reading(document: Document, instead: Mapping[int, str]) -> Document:
    """Return the document with other lines in place of those with these seqs."""
    known = {seq: tombstone(seq) for line in document.lines if (seq := forgotten_in(line))}
    known |= {place.seq: place.entry.line for place in document.entries} | dict(instead)
    return from_line_map(document.id, line_map(document), known)


def reverse_diff(
    doc_id: str, old: Document | None, new: Document | None, changed: Collection[Line] = ()
) -> list[str]:
    """Return the lines of a diff from `new` back to `old`, of which `changed` lines read otherwise."""
    if old is None:
        return [f"--- {doc_id} (after)", f"+++ {_NOTHING}"]
    now, then = f"{doc_id} (after)" if new else _NOTHING, f"{doc_id} (before)"
    rows, before = line_map(new), line_map(old, changed)
    diff: list[str] = []
    for i1, i2, j1, j2 in _changes(rows, before):
        diff.append(f"@@ -{_range(i1, i2)} +{_range(j1, j2)} @@")
        diff += [*(f"-{row}" for row in rows[i1:i2]), *(f"+{row}" for row in before[j1:j2])]
    return [f"--- {now}", f"+++ {then}", *diff] if diff or not new else []  # of an empty file only its name


def _range(start: int, end: int) -> str:
    return str(end) if end - start == 1 else f"{start + (end > start)},{end - start}"


def _changes(one: Sequence[str], other: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """Give which rows `[0]:[1]` of the one list stand where rows `[2]:[3]` of the other do, in order."""
    shortest = min(len(one), len(other))
    head = next((n for n in range(shortest) if one[n] != other[n]), shortest)
    tail = next((n for n in range(shortest - head) if one[-1 - n] != other[-1 - n]), shortest - head)
    end, other_end = len(one) - tail, len(other) - tail
    if (end - head) * (other_end - head) > LARGEST_DIFF:
        yield head, end, head, other_end
        return
    matcher = difflib.SequenceMatcher(None, one[head:end], other[head:other_end])
    for kind, *bounds in matcher.get_opcodes():
        if kind != "equal":
            i1, i2, j1, j2 = (head + bound for bound in bounds)
            yield i1, i2, j1, j2


def lost(doc_id: str) -> list[str]:
    """Return what stands in place of a diff that a `forget` dropped."""
    return [f"--- {doc_id} (after)", f"+++ {_LOST}"]


def parts(lines: Sequence[str]) -> list[Sequence[str]]:
    """Return the lines of several diffs, those of each document apart."""
    heads = [
        number
        for number, (line, after) in enumerate(pairwise(lines))
        if line.startswith("--- ") and after.startswith("+++ ")
    ]
    return [lines[start:end] for start, end in pairwise([*heads, len(lines)])]


def name_of(part: Sequence[str]) -> str:
    now, then = part[0][4:], part[1][4:]
    return (then if now == _NOTHING else now).rpartition(" (")[0]


def parse_reverse(part: Sequence[str]) -> Reverse:
    """Read the diff of a document back; pass over what is none."""
    then = part[1][4:]
    hunks: list[tuple[int, list[str]]] = []  # where each starts, and its rows
    inside = False
    for line in part:
        if match := _HUNK.match(line):
            hunks.append((int(match[1]) - (int(match[2] or 1) > 0), []))
            inside = True
        elif inside and line[:2] in ("->", "+>", "-@", "+@", "-\\", "+\\"):
            hunks[-1][1].append(line)
        else:
            inside = False

    def side(mark: str, rows: Iterable[str]) -> tuple[str, ...]:
        return tuple(row[1:] for row in rows if row[0] == mark)

    parsed = tuple(Hunk(start, side("-", rows), side("+", rows)) for start, rows in hunks)
    return Reverse(name_of(part), then == _NOTHING, then == _LOST, parsed)


def reverted(reverse: Reverse, rows: Sequence[str]) -> list[str] | None:
    """Return the line map before a change; None if someone changed those very rows since."""
    left = list(rows)
    shift = 0
    for hunk in reverse.hunks:
        at = _place(left, hunk, hunk.start + shift)
        if at is None:
            return None
        left[at : at + len(hunk.came)] = hunk.before
        shift = at - hunk.start + len(hunk.before) - len(hunk.came)
    return left


def _place(rows: Sequence[str], hunk: Hunk, at: int) -> int | None:
    """Return where the rows that came stand: where they should, or in the one other place."""
    size = len(hunk.came)
    if _alike(rows[at : at + size], hunk.came):
        return min(at, len(rows))
    places = [n for n in range(len(rows) - size + 1) if _alike(rows[n : n + size], hunk.came)]
    return places[0] if len(places) == 1 else None


def _alike(rows: Sequence[str], came: Sequence[str]) -> bool:
    """Return whether these are the rows that came; what a `forget` took out may read as it likes."""
    return len(rows) == len(came) and all(
        row == one or (one.endswith(MARK) and row.startswith(one.removesuffix(MARK)))
        for row, one in zip(rows, came, strict=True)
    )


# ── what a receipt did not do, and waits for people ─────────────────────────────────────────────
# WITHHELD has 0007.json: archivings of receipt 7 that need approval; the lines stay live meanwhile. Of them a
# checksum is kept, which tells whether they were edited since, and no word. REJECTED has replies of models
# that were refused, 000123-extract.txt; no tool reads them.

WITHHELD, REJECTED = ".infinimem/withheld", ".infinimem/rejected"
ASKED = frozenset({"PROTECTED", "TOO_MANY"})
"""Reasons that a person may overrule; the others say that a proposal is wrong."""
KEPT = 100
MAX_BYTES = 64 * 1024
"""Of one reply; of a longer one the beginning is kept."""


@dataclass(frozen=True)
class Proposal:
    """An archiving that may be approved: the receipt that withheld it, the move, and why it waits."""

    receipt: int
    move: Move
    code: str
    marks: Mapping[int, str]
    """Of the line and of the one that would survive it, what `mark` gave; nothing where it is not known."""


def mark(text: str) -> str:
    """Return a checksum of a line's text; white space at its end does not count."""
    return hashlib.sha256(text.rstrip().encode("utf-8", "surrogateescape")).hexdigest()


def keep_withheld(
    files: Files, receipt: int, withheld: Sequence[Withheld], lookup: Callable[[int], Located | None]
) -> None:
    """Write down what a receipt withheld and a person may approve later."""
    waiting = []
    for item in withheld:
        if item.reason.code in ASKED:
            places = (lookup(seq) for seq in (item.move.seq, item.move.by) if seq is not None)
            marks = {place.seq: mark(place.text) for place in places if place}
            waiting.append(Proposal(receipt, item.move, item.reason.code, marks))
    if waiting:
        _write(files, receipt, waiting)


def proposals(files: Files) -> tuple[Proposal, ...]:
    """Return what waits, oldest first; pass over a file that cannot be read."""
    waiting: list[Proposal] = []
    for name in files.names(WITHHELD):
        with suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
            number = int(name.removesuffix(".json"))
            rows = json.loads(files.read(f"{WITHHELD}/{name}", MAX_OWNED) or b"")
            waiting += [
                Proposal(
                    number,
                    Move(**row["move"]),
                    row["code"],
                    {int(seq): text for seq, text in row.get("marks", {}).items()},
                )
                for row in rows
            ]
    return tuple(waiting)


def drop_withheld(files: Files, settled: Collection[tuple[int, int]]) -> None:
    """Forget proposals: (receipt, seq) each. The caller holds the lock."""
    waiting = proposals(files)
    left = [one for one in waiting if (one.receipt, one.move.seq) not in settled]
    for receipt in sorted({one.receipt for one in waiting if one not in left}):
        _write(files, receipt, [one for one in left if one.receipt == receipt])


def _write(files: Files, receipt: int, waiting: Sequence[Proposal]) -> None:
    path = f"{WITHHELD}/{receipt:04d}.json"
    rows = [{"move": asdict(one.move), "code": one.code, "marks": one.marks} for one in waiting]
    if rows:
        files.replace(path, json.dumps(rows, indent=1).encode())
    else:
        files.remove(path)


def keep_replies(files: Files, replies: Iterable[RejectedReply], when: str) -> None:
    """Write each refused reply into a file of its own, and drop the oldest beyond a hundred, under the lock.

    Nothing is synced, and a disk that refuses stops nothing. The files name the time, `when`.
    """
    kept = [*replies]
    with suppress(LibraryError):
        numbers = ((whole(name.partition("-")[0]), name) for name in files.names(REJECTED)) if kept else ()
        there = sorted((at, name) for at, name in numbers if at is not None)
        for number, reply in enumerate(kept, there[-1][0] + 1 if there else 1):
            task = re.sub("[^a-zA-Z0-9_]", "", reply.task)[:40] or "reply"
            there.append((number, f"{number:06d}-{task}.txt"))
            reasons = "".join(f"reason: {one_line(reason)[:500]}\n" for reason in reply.reasons[:100])
            text = f"time: {when}\ntask: {one_line(reply.task)}\n{reasons}\n{reply.text[:MAX_BYTES]}\n"
            data = text.encode("utf-8", "backslashreplace")[:MAX_BYTES]
            files.stage(f"{REJECTED}/{there[-1][1]}", data, durable=False)
        for _, name in there[:-KEPT]:
            files.remove(f"{REJECTED}/{name}", durable=False)
