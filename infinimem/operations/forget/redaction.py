"""The library without what is forgotten: tombstones for its lines, derived text made anew, receipts. Pure.

A line that carries a forgotten seq becomes a tombstone in every file of the program. Names stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from infinimem import tokens
from infinimem.markdown.document import Document
from infinimem.markdown.header import flow, quote
from infinimem.markdown.scan import heading_title
from infinimem.markdown.signature import forgotten_in, format_seqs, tombstone
from infinimem.model import CURRENT, ReceiptRow
from infinimem.operations.forget.choice import Choice, numbered
from infinimem.operations.forget.records import Records, without_records
from infinimem.operations.provenance import recorded
from infinimem.spec import ledger_folders, record_folders, whole_folders
from infinimem.store.files import digest
from infinimem.store.line_map import MARK, lost, named, parts, reverse_diff
from infinimem.store.receipts import (
    BEFORE,
    FORGOTTEN,
    QUOTED,
    Checksums,
    block,
    cells_of,
    file_cells,
    file_of,
    row_of,
)
from infinimem.store.records import held_by
from infinimem.store.render import HEADER_KEYS, Rendered, described, headed, is_emptied
from infinimem.store.spec import EVIDENCE, JOURNAL, MEMORIES, TOPICS
from infinimem.store.view import View

_OTHER = "Other"
"""What a heading of CURRENT says in place of one that said too much."""
OWN_KEYS = HEADER_KEYS | {"kind", "session", "date", "participants"}
_KEY = re.compile(r"[a-z_]+: ")
_NUMBERS = re.compile(
    r"\s*$|---$|(?:created_time|update_log|date|current_epoch|links|evidence):|  - \{"
    r"|## [A-Z][a-z ]+ [0-9]+ \(receipt [0-9]+\)$"
)
"""Lines that the program writes whatever was said: times and seqs."""


@dataclass(frozen=True)
class Redaction:
    """A view without the lines of a choice.

    Args:
        view: the library.
        choice: what goes.
        receipt: number of the receipt.
        first_seq: of what people typed among it: the receipt names each by a number too.
    """

    view: View
    choice: Choice
    receipt: int
    first_seq: int

    @cached_property
    def _sums(self) -> Checksums:
        return Checksums(self.receipt)

    @cached_property
    def records(self) -> Records:
        """What becomes of the records."""
        holds = self.choice.texts.holds
        return without_records(self.view, self.choice.seqs, lambda document: holds(document.to_bytes()))

    @cached_property
    def _typed(self) -> dict[tuple[str, int], int]:
        """Numbers for what people typed, by document and line."""
        return {place[:2]: seq for seq, place in enumerate(self.choice.unsigned, self.first_seq)}

    def rendered(self) -> Rendered:
        """The documents that change, and what the receipt says of them; that tells no word of it."""
        view, seqs = self.view, self.choice.seqs
        done = Rendered(sums=self._sums.known, reverse_diffs=[])
        for doc_id in self._own:
            if doc_id.startswith((JOURNAL, *ledger_folders())):
                continue
            old = view.document(doc_id)
            new = self._without_lines(old) if doc_id.startswith(MEMORIES) else self._without(old)
            if new != old:
                done.documents[doc_id] = new
                done.removed += [(p.seq, p.entry.line) for p in old.entries if p.seq in seqs]
        changed = [*done.documents, *filter(self.records.concerns, view.ids("all"))]
        for doc_id, new in self.records.changed.items():
            done.documents[doc_id] = new
            if new and doc_id in view:  # it lost links alone: numbers
                done.reverse_diffs = [
                    *(done.reverse_diffs or ()),
                    *reverse_diff(doc_id, view.document(doc_id), new),
                ]
        done.documents |= self._journal(changed, done.documents)
        done.rows = [ReceiptRow(seq, was, "-", FORGOTTEN) for seq, was in sorted(self._stood().items())]
        return done

    @cached_property
    def _own(self) -> list[str]:
        memories = {doc_id for doc_id, _ in self._typed if doc_id.startswith(MEMORIES)}
        return [one for one in self.view.ids("all") if not self.view.is_note(one) or one in memories]

    def _stood(self) -> dict[int, str]:
        """In which document each line stands; "-" for none."""
        stood = dict.fromkeys(self.choice.seqs, "-") | {seq: at for (at, _), seq in self._typed.items()}
        for place in reversed(self.choice.lines):
            if place.doc_id in self.view and not place.doc_id.startswith(JOURNAL):
                stood[place.seq] = place.doc_id
        return stood

    # ── documents ───────────────────────────────────────────────────────────────────────────────────

    def _without_lines(self, old: Document) -> Document | None:
        """A model's own file."""
        left = old.without_lines({line for doc_id, line in self._typed if doc_id == old.id})
        return left if left == old or any(map(str.strip, left.lines)) else None

    def _without(self, old: Document) -> Document | None:
        """A document with tombstones for the lines, and derived text anew; None where nothing is left."""
        seqs, texts = self.choice.seqs, self.choice.texts
        spans = {p.start_line: (p.end_line, p.seq) for p in old.entries if p.seq in seqs}
        spans |= {n: (n, seq) for n in old.malformed if (seq := numbered(old.lines[n - 1])) in seqs}
        spans |= {line: (line, seq) for (doc_id, line), seq in self._typed.items() if doc_id == old.id}
        above = {heading for start in spans for heading in _headings_over(old, start)}
        tells = texts.hinted if old.id in self.held else texts.within
        above |= {heading.line for heading in old.headings if tells(heading.title)}
        name, lines, end = _name(old).casefold(), list[str](), 0
        for number, line in enumerate(old.lines, 1):
            eol = "\r" * line.endswith("\r")
            if number in spans:
                end, seq = spans[number]
                lines.append(tombstone(seq or 0) + eol)
            elif number > end:
                is_one = number in above and len(line.rstrip("\r").splitlines()) == 1
                title = heading_title(line.removesuffix("\r")) if is_one else None
                is_name = title and title[1].casefold() == name
                lines.append(f"{'#' * title[0]} {MARK}{eol}" if title and not is_name else line)
        new = replace(old, lines=tuple(lines), cache=None) if tuple(lines) != old.lines else old
        if spans and old.id != CURRENT and is_emptied(new, OWN_KEYS):
            return None
        if spans and old.id.startswith(EVIDENCE) and "participants" in old.header.values:
            speakers = (place.entry.fields.get("speaker") for place in new.entries)
            listed = [name for name in dict.fromkeys(speakers) if name]
            return headed(new, {"participants": flow(listed) if listed else None})
        describes = not seqs.isdisjoint(described(old)) or texts.within(old.summary)
        return made_anew(new, bool(spans) or describes)

    # ── receipts ────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def held(self) -> frozenset[str]:
        """Documents that hold one of the lines, or ever did."""
        seqs, receipts = self.choice.seqs, recorded(self.view).receipts
        rows = ((row.was, row.now) for one in receipts for row in one.rows if row.seq in seqs)
        names = {name for receipt in receipts for name, _, _ in receipt.files}.union(self._own)
        of_turns = (
            name
            for name in names
            if self.records.concerns(name)
            or (name.startswith(record_folders()) and not seqs.isdisjoint(held_by(Document.empty(name))))
        )
        standing = (place.doc_id for place in self.choice.lines)
        return frozenset(of_turns).union(standing, (doc_id for doc_id, _ in self._typed), *rows)

    def _journal(
        self, changed: Collection[str], documents: Mapping[str, Document | None]
    ) -> dict[str, Document]:
        """The receipts that read otherwise."""
        untold, found = self.held.union(changed), dict[str, Document]()
        for doc_id in self.view.below(JOURNAL):
            old = self.view.document(doc_id)
            new = replace(old, lines=tuple(self._receipt(old.lines, untold, documents)), cache=None)
            if new.lines != old.lines:
                found[doc_id] = new
        for doc_id in (*changed, *found):
            self._sums.of(digest(self.view.document(doc_id).to_bytes()))
        return found

    def _receipt(
        self, lines: Sequence[str], untold: Collection[str], documents: Mapping[str, Document | None]
    ) -> Iterator[str]:
        """Of a receipt: rows, quotations with tombstones, ways back that quote nothing of it."""
        quoted, before = block(lines, QUOTED), block(lines, BEFORE)
        at = 0
        for where in sorted((quoted, before), key=lambda one: one.start):
            yield from (self._row(line, untold) for line in lines[at : where.start])
            if where is quoted:
                yield from self._tombstones(lines[where], "", "")
            else:
                for part in parts(lines[where]):
                    yield from self._way_back(part, documents)
            at = where.stop
        yield from (self._row(line, untold) for line in lines[at:])

    def _row(self, line: str, untold: Collection[str]) -> str:
        file = file_of(cells_of(line)) if line.startswith("| ") else None
        if file and file[0] in untold:
            return row_of(file_cells(file[0], *map(self._sums.of, file[1:])))
        return f"> {MARK}" if line.startswith("> ") and self.choice.texts.within(line) else line

    def _tombstones(self, lines: Sequence[str], before: str, instead: str) -> Iterator[str]:
        """Lines with tombstones for those that are forgotten and all that belongs to them.

        Args:
            before: what each line begins with in a diff.
            instead: how the line of a tombstone begins there, if not with the tombstone.
        """
        gone = False
        for line in lines:
            text = line.removeprefix(before) if line.startswith(before) else ""
            goes_on = gone and line.startswith(before) and (text.startswith("  ") or not text)
            seq = numbered(text)
            gone = goes_on or seq in self.choice.seqs
            if not gone:
                yield line
            elif not goes_on:
                yield f"{instead}{seq}" if instead else tombstone(seq or 0)

    def _way_back(self, part: Sequence[str], documents: Mapping[str, Document | None]) -> Sequence[str]:
        """The reverse diff of a document; of a record that goes none."""
        doc_id, texts = named(part), self.choice.texts
        if doc_id.startswith(whole_folders()):
            is_lost = doc_id in self.held or texts.holds("\n".join(part))
            return lost(doc_id) if is_lost else part
        now = documents.get(doc_id, self.view.document(doc_id) if doc_id in self.view else None)
        standing, rows = set(now.lines) if now else set[str](), list(part[:2])
        for side in ("+", "-"):
            part = [*self._tombstones(part, f"{side}>", f"{side}@")]
        for row in part[2:]:
            text = row[2:]
            if row[:2] not in ("+>", "->") or numbered(text) or text in standing or _NUMBERS.match(text):
                rows.append(row)
            elif doc_id in self.held or texts.within(text):
                rows.append(row[:2] + _kind(text) + MARK)
            else:
                rows.append(row)
        return rows


def _kind(text: str) -> str:
    """How a row of its kind begins: a heading of its level, a key of a header."""
    title, key = heading_title(text), _KEY.match(text)
    return f"{'#' * title[0]} " if title else key[0] if key else ""


def made_anew(document: Document, is_touched: bool) -> Document:
    """With derived text that the program's rules make of what is left.

    Args:
        document: in which `MARK` stands for headings and other derived text that is gone.
        is_touched: whether its header spoke of what is gone.
    """
    doc_id, lines = document.id, list[str]()
    body = document.lines[document.header.end :]
    for number, line in enumerate(body, 1):
        if not line.rstrip().endswith(MARK) or line.startswith("- <"):
            lines.append(line)
        elif (title := heading_title(line.strip())) and _stands_below(body[number:]):
            name = _OTHER if doc_id == CURRENT else _name(document)
            lines.append(f"{'#' * title[0]} {name}" + "\r" * line.endswith("\r"))
    head = document.lines[: document.header.end]
    if len(lines) != len(body) or tuple(lines) != body:
        document = replace(document, lines=(*head, *lines), cache=None)
    is_touched = is_touched or any(line.rstrip().endswith(MARK) for line in head)
    if not is_touched or not doc_id.startswith(TOPICS):
        return document
    if document.header.problem:  # a person's, that cannot be read
        blotted = (f"summary: {MARK}" if line.startswith("summary:") else line for line in head)
        return replace(document, lines=(*blotted, *document.lines[len(head) :]), cache=None)
    titles = dict.fromkeys(heading.title for heading in document.headings if heading.title)
    changes: dict[str, str | None] = {
        "summary": quote(", ".join(titles)[:300] or _name(document)),
        "aux": f"{{from: {format_seqs(place.seq for place in document.entries)}}}",
        "token_count": str(tokens.count(document.body)),
    }
    values = document.header.values
    changes |= dict.fromkeys(key for key, value in values.items() if value == MARK and key not in changes)
    return headed(document, {key: value for key, value in changes.items() if key in values})


def _stands_below(lines: Sequence[str]) -> bool:
    """Whether anything but tombstones stands here before the next heading."""
    for line in map(str.strip, lines):
        if line and forgotten_in(line) is None:
            return heading_title(line) is None
    return False


def _headings_over(document: Document, line: int) -> Iterator[int]:
    """The lines of the headings that a line stands under."""
    level = 7
    for heading in reversed(document.headings):
        if heading.line < line and heading.level < level:
            level = heading.level
            yield heading.line


def _name(document: Document) -> str:
    """What a document is called."""
    title = "" if document.title == MARK else document.title
    return title or document.id.rpartition("/")[2].replace("-", " ")
