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
from infinimem.store.receipts import BEFORE, QUOTED, block, cells_of, row_of
from infinimem.store.view import EVIDENCE, JOURNAL

_PLAIN = re.compile(
    r"\s*$|---$|(?:token_count|created_time|update_log|aux|date|current_epoch|links|evidence):|  - \{"
    r"|## [A-Z][a-z ]+ [0-9]+ \(receipt [0-9]+\)$"
)
"""Lines of the program's that tell of nothing."""


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
        receipts = [view.document(doc_id) for doc_id in view.below(JOURNAL)]
        ways = {receipt.id: list(map(self._told, _parts(receipt))) for receipt in receipts}
        lost = {doc_id for way in ways.values() for doc_id, _, is_lost in way if is_lost}
        self._untold = lost.union(redaction.held, changed, redaction.names)
        self.documents: dict[str, Document] = {}
        """The receipts that read otherwise."""
        for receipt in receipts:
            rows = [row for _, part, _ in ways[receipt.id] for row in part]
            new = tuple(self._lines(receipt.lines, rows))
            if new != receipt.lines:
                self.documents[receipt.id] = replace(receipt, lines=new)
        for doc_id in (*changed, *self.documents):
            self._sum(digest(view.document(doc_id).to_bytes()))

    def way_back(self, part: Sequence[str]) -> Sequence[str]:
        """A reverse diff under the name that may be told, or what stands in its place."""
        return self._told(part)[1] if part else part

    def _told(self, part: Sequence[str]) -> tuple[str, Sequence[str], bool]:
        """The document of a reverse diff, what is told of it, and whether the way is lost."""
        doc_id = line_map.named(part)
        name = self._redaction.names.get(doc_id, doc_id)
        if self._is_lost(doc_id, part):
            return doc_id, line_map.lost(name), True
        return doc_id, [*(line.replace(doc_id, name) for line in part[:2]), *part[2:]], False

    def _is_lost(self, doc_id: str, part: Sequence[str]) -> bool:
        """Whether it quotes any of it, or may: that of a document which held any."""
        lines = [row[2:] for row in part[2:] if row[:2] in ("+>", "->") and not _PLAIN.match(row[2:])]
        if lines and doc_id in self._redaction.held:
            return True
        seqs, tells = self._redaction.choice.seqs, self._redaction.texts.tells
        return any(numbered(line) in seqs or tells(KEY.sub("", line)) for line in lines)

    def _sum(self, checksum: str) -> str:
        if len(checksum) < 64:
            return checksum
        return self.sums.setdefault(checksum, f"?{self._redaction.receipt}.{len(self.sums) + 1}")

    def _lines(self, lines: Sequence[str], way: Sequence[str]) -> Iterator[str]:
        """Of a receipt."""
        quoted, before = block(lines, QUOTED), block(lines, BEFORE)
        for number, line in enumerate(lines):
            if number == quoted.start:
                left = Document(f"{EVIDENCE}quoted", tuple(lines[quoted])).without(
                    self._redaction.choice.seqs
                )
                yield from (line for line in left.lines if numbered(line) not in self._redaction.choice.seqs)
            if number == before.start:
                yield from way
            if not (quoted.start <= number < quoted.stop or before.start <= number < before.stop):
                yield self._line(line)

    def _line(self, line: str) -> str:
        cells, names = cells_of(line), self._redaction.names
        if len(cells) == 4:
            cells[1:3] = [names.get(name, name) for name in cells[1:3]]
        elif len(cells) == 3 and cells[0] in self._untold:
            cells = [names.get(cells[0], cells[0]), *map(self._sum, cells[1:])]
        elif line.startswith("> ") and (
            self._redaction.texts.tells(line[2:]) or any(n in line for n in names)
        ):
            return f"> {MARK}"
        return row_of(cells) if cells and cells != cells_of(line) else line


def _parts(receipt: Document) -> list[Sequence[str]]:
    return line_map.parts(receipt.lines[block(receipt.lines, BEFORE)])
