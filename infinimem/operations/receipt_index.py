"""What receipts say of each line, by seq. Pure; a receipt that is missing or mangled only says less."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from infinimem.markdown.signature import parse_entry
from infinimem.model import Entry, Receipt, ReceiptRow

REPLACED = ("superseded by", "duplicate of", "rewritten as")
"""Why a line is in the archive: another one, named after these words, stands for it."""

_BY = re.compile(rf"({'|'.join(REPLACED)}) ([1-9][0-9]{{0,17}})\b", re.IGNORECASE)
_COPY = re.compile(r"renumbered from ([1-9][0-9]{0,17})\b")
_BRINGS = ("added", "stamped", "renumbered")


@dataclass(frozen=True)
class Step:
    """A row of a receipt. `old`: the line as it was, where the receipt quotes it."""

    receipt: Receipt
    order: int
    """Of the receipt, among all; two clones may have given two receipts one number."""
    row: ReceiptRow
    old: Entry | None

    @property
    def brings(self) -> bool:
        """Whether the line was new, so that nothing is to be told of it before."""
        return self.row.was in ("", "-") or self.row.why.startswith(_BRINGS)


def successor(words: str) -> tuple[str, int] | None:
    """ "superseded by" and 41, of a row's reason or a heading of the archive; None where it names none."""
    found = _BY.match(words)
    return (found[1].lower(), int(found[2])) if found else None


class Trail:
    """All rows of all receipts.

    Args:
        receipts: oldest first.
    """

    def __init__(self, receipts: Sequence[Receipt]) -> None:
        self.receipts = tuple(receipts)
        self._steps: dict[int, list[Step]] = {}
        self._heirs: dict[int, dict[int, str]] = {}
        for order, receipt in enumerate(self.receipts):
            quoted = {entry.seq: entry for line in receipt.quoted if (entry := parse_entry(line))}
            for row in receipt.rows:
                steps = self._steps.setdefault(row.seq, [])
                steps.append(Step(receipt, order, row, quoted.get(row.seq)))
                if told := successor(row.why):
                    self._heirs.setdefault(row.seq, {})[told[1]] = told[0]
                elif copied := _COPY.match(row.why):
                    self._heirs.setdefault(int(copied[1]), {})[row.seq] = row.why

    @property
    def highest(self) -> int:
        """The highest seq that a receipt names or knows of; 0 for none."""
        return max(*self._steps, *(receipt.high for receipt in self.receipts), 0, 0)

    def of(self, seq: int) -> Sequence[Step]:
        """What happened to a line, in order."""
        return self._steps.get(seq, ())

    def heirs(self, seq: int) -> Mapping[int, str]:
        """Lines that were to replace a line, or were numbered anew from it, and the words of the receipt."""
        return self._heirs.get(seq, {})

    def quoted(self, seq: int) -> Entry | None:
        """The line as a receipt quoted it last."""
        return next((step.old for step in reversed(self.of(seq)) if step.old), None)

    def first_quoted(self, seq: int) -> Entry | None:
        """The line as it was before anyone changed it; None where no receipt quotes it."""
        return next((step.old for step in self.of(seq) if step.old), None)
