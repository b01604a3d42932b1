"""Receipts without what is forgotten: its names, what they quote of it, checksums and ways back. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from infinimem.markdown.document import Document
from infinimem.store import skeleton
from infinimem.store.files import digest
from infinimem.store.forgetting.choice import numbered
from infinimem.store.receipts import BEFORE, QUOTED, block, cells_of, row_of
from infinimem.store.view import EVIDENCE, JOURNAL, View

MARK = "(forgotten)"
"""What stands where something was."""

_PLAIN = re.compile(
    r"\s*$|---$|(?:kind|token_count|created_time|update_log|aux|date|current_epoch):|  - \{time:"
    r"|## [A-Z][a-z ]+ [0-9]+ \(receipt [0-9]+\)$"
)
"""Lines that the program writes and that quote nothing."""


@dataclass(frozen=True)
class Journal:
    """How receipts read from now on.

    Args:
        view: the library.
        receipt: number of the one that is written now; it marks what stands for checksums.
        names: new names for old.
        seqs: lines that go.
        held: documents that held any of them at some time.
        tells: whether text speaks of them.
    """

    view: View
    receipt: int
    names: Mapping[str, str]
    seqs: Collection[int]
    held: Collection[str]
    tells: Callable[[str], bool]
    sums: dict[str, str] = field(default_factory=dict)
    """What stands for the checksums of files that held any of it: which were the same can still be told."""

    def without(self, changed: Collection[str]) -> dict[str, Document]:
        """The receipts that read otherwise, by id.

        Args:
            changed: documents that held any of it until now.
        """
        ids = (doc_id for doc_id in self.view.ids("all") if doc_id.startswith(JOURNAL))
        receipts = list(map(self.view.document, ids))
        ways = {receipt.id: list(map(self._part, _parts(receipt))) for receipt in receipts}
        lost = {doc_id for parts in ways.values() for doc_id, _, is_lost in parts if is_lost}
        untold = lost.union(self.held, changed, self.names)
        stand = (self.view.document(doc_id) for doc_id in untold.difference(changed) if doc_id in self.view)
        told = {digest(document.to_bytes()) for document in stand}
        found = {}
        for receipt in receipts:
            way = [line for _, part, _ in ways[receipt.id] for line in part]
            new = tuple(self._lines(receipt.lines, way, untold, told))
            if new != receipt.lines:
                found[receipt.id] = replace(receipt, lines=new)
        for doc_id in (*changed, *found):
            self._untold(digest(self.view.document(doc_id).to_bytes()))
        return found

    def way_back(self, old: Document | None, new: Document | None, name: str) -> Sequence[str]:
        """The reverse diff of a document that changes now, or what stands in its place.

        Args:
            name: what it may be called.
        """
        before, after = (one and replace(one, id=name) for one in (old, new))
        return self._part(skeleton.reverse_diff(name, before, after), True)[1]

    def _untold(self, checksum: str) -> str:
        if len(checksum) < 64:
            return checksum
        return self.sums.setdefault(checksum, f"?{self.receipt}.{len(self.sums) + 1}")

    def _part(self, part: Sequence[str], held: bool = False) -> tuple[str, Sequence[str], bool]:
        """A document, the way back to what it was, and whether that is lost."""
        if not part:
            return "", part, False
        (back,) = skeleton.parse_reverse(part)
        name = self.names.get(back.doc_id, back.doc_id)
        held = held or back.doc_id in self.held
        if not back.is_new and any(self._quotes(row[1:], held) for row in part[2:]):
            return back.doc_id, skeleton.lost(name), True
        return back.doc_id, [line.replace(back.doc_id, name) for line in part[:2]] + [*part[2:]], False

    def _quotes(self, row: str, held: bool) -> bool:
        """Whether a row of a skeleton has any of it, or may, in a document that held it."""
        line = row[1:]
        if not row.startswith(">") or _PLAIN.match(line):
            return False
        return held or numbered(line) in self.seqs or self.tells(line)

    def _lines(
        self, lines: Sequence[str], way: Sequence[str], untold: Collection[str], told: Collection[str]
    ) -> Iterator[str]:
        quoted, before = block(lines, QUOTED), block(lines, BEFORE)
        for number, line in enumerate(lines):
            if number == quoted.start:
                yield from self._quoted(lines[quoted])
            if number == before.start:
                yield from way
            if not (quoted.start <= number < quoted.stop or before.start <= number < before.stop):
                yield self._line(line, untold, told)

    def _quoted(self, lines: Sequence[str]) -> Iterator[str]:
        left = Document(f"{EVIDENCE}quoted", tuple(lines)).without(self.seqs).lines
        yield from (line for line in left if numbered(line) not in self.seqs)

    def _line(self, line: str, untold: Collection[str], told: Collection[str]) -> str:
        cells = cells_of(line)
        if len(cells) == 4:
            cells[1:3] = [self.names.get(name, name) for name in cells[1:3]]
        elif len(cells) == 3 and cells[0] in untold:
            sums = [one if one in told else self._untold(one) for one in cells[1:]]
            cells = [self.names.get(cells[0], cells[0]), *sums]
        elif line.startswith("> ") and (self.tells(line[2:]) or any(name in line for name in self.names)):
            return f"> {MARK}"
        return row_of(cells) if cells and cells != cells_of(line) else line


def _parts(receipt: Document) -> list[Sequence[str]]:
    return skeleton.parts(receipt.lines[block(receipt.lines, BEFORE)])
