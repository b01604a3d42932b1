"""Receipts without what is forgotten: its names, what they quote of it, checksums and ways back. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from infinimem.markdown.document import Document
from infinimem.operations.forget.choice import numbered
from infinimem.operations.forget.redaction import KEY, MARK, Redaction
from infinimem.store import line_map
from infinimem.store.files import digest
from infinimem.store.receipts import BEFORE, QUOTED, block, cells_of, file_cells, file_of, row_of
from infinimem.store.spec import EVIDENCE, JOURNAL

_NUMBERS = re.compile(
    r"\s*$|---$|(?:token_count|created_time|update_log|aux|date|current_epoch|links|evidence):|  - \{"
    r"|## [A-Z][a-z ]+ [0-9]+ \(receipt [0-9]+\)$"
)
"""Lines that the program writes whatever was said: counts, times and seqs."""


class Journal:
    """How receipts read from now on.

    Args:
        redaction: what is forgotten.
        changed: ids of the documents that held any of it until now.
    """

    def __init__(self, redaction: Redaction, changed: Collection[str]) -> None:
        self._redaction = redaction
        self.sums: dict[str, str] = {}
        """What stands for checksums of files that held any of it; which are the same can still be told."""
        view = redaction.view
        receipts = [view.document(doc_id) for doc_id in view.ids("all") if doc_id.startswith(JOURNAL)]
        parts = {
            r.id: [(part, self._is_lost(part)) for part in line_map.parts(r.lines[block(r.lines, BEFORE)])]
            for r in receipts
        }
        lost = {line_map.named(part) for some in parts.values() for part, is_lost in some if is_lost}
        self._untold = lost.union(redaction.held, changed, redaction.names)
        self.documents: dict[str, Document] = {}
        """The receipts that read otherwise."""
        for receipt in receipts:
            way = [row for part, is_lost in parts[receipt.id] for row in self._back(part, is_lost)]
            new = tuple(self._lines(receipt.lines, way))
            if new != receipt.lines:
                self.documents[receipt.id] = replace(receipt, lines=new)
        for doc_id in (*changed, *self.documents):
            self._sum(digest(view.document(doc_id).to_bytes()))

    def way_back(self, part: Sequence[str]) -> Sequence[str]:
        """A reverse diff under the name that may be told; one that holds or follows a line is dropped."""
        return self._back(part, self._is_lost(part)) if part else part

    def _back(self, part: Sequence[str], is_lost: bool) -> Sequence[str]:
        doc_id = line_map.named(part)
        name = self._redaction.names.get(doc_id, doc_id)
        if is_lost:
            return line_map.lost(name)
        if name == doc_id:
            return part
        return [*(line.replace(doc_id, name) for line in part[:2]), *part[2:]]

    def _is_lost(self, part: Sequence[str]) -> bool:
        """Whether it has text of a document that held a line, or tells of one elsewhere."""
        text = [row[2:] for row in part[2:] if row[:2] in ("+>", "->") and not _NUMBERS.match(row[2:])]
        if text and line_map.named(part) in self._redaction.held:
            return True
        seqs, tells = self._redaction.choice.seqs, self._redaction.texts.tells
        return any(numbered(line) in seqs or tells(KEY.sub("", line)) for line in text)

    def _sum(self, checksum: str) -> str:
        if len(checksum) < 64:
            return checksum
        return self.sums.setdefault(checksum, f"?{self._redaction.receipt}.{len(self.sums) + 1}")

    def _lines(self, lines: Sequence[str], way: Sequence[str]) -> Iterator[str]:
        """Of a receipt: its rows, quotations without the lines, and this way back."""
        quoted, before = block(lines, QUOTED), block(lines, BEFORE)
        seqs, at = self._redaction.choice.seqs, 0
        left = Document(f"{EVIDENCE}quoted", tuple(lines[quoted])).without(seqs).lines
        kept = [line for line in left if numbered(line) not in seqs]
        for where, instead in sorted(((quoted, kept), (before, way)), key=lambda one: one[0].start):
            yield from map(self._line, lines[at : where.start])
            yield from instead
            at = where.stop
        yield from map(self._line, lines[at:])

    def _line(self, line: str) -> str:
        if not line.startswith(("| ", "> ")):
            return line
        cells, names, told = cells_of(line), self._redaction.names, list[str]()
        if len(cells) == 4:
            told = [cells[0], *(names.get(name, name) for name in cells[1:3]), cells[3]]
        elif (file := file_of(cells)) and file[0] in self._untold:
            name, before, after = file
            told = [*file_cells(names.get(name, name), self._sum(before), self._sum(after))]
        elif line.startswith("> ") and (
            self._redaction.texts.tells(line[2:]) or any(name in line for name in names)
        ):
            return f"> {MARK}"
        return row_of(told) if told and told != cells else line
