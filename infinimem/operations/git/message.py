"""What a commit says: a plain subject, then each receipt's list. Pure.

No text of a line is in it, so what is forgotten later need not be looked for in messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from infinimem.model import Receipt

LISTED, PARAGRAPHS = 40, 20
"""Rows of a receipt, and receipts, that a message lists."""
LENGTH = 30_000
"""Characters of a message: it is one argument of a command, and names may be long."""


def message(receipts: Sequence[Receipt], turns: int, lines: int) -> str:
    """A subject, and a paragraph for each receipt.

    Args:
        receipts: oldest first; none where there is only what was said and written since, more than one where
            some had to wait.
        turns, lines: how many were said, and drawn from that, since the receipts that were committed before.
    """
    said = ", ".join([f"{n} {what}{'s' * (n != 1)}" for n, what in ((turns, "turn"), (lines, "line")) if n])
    if not receipts:
        return f"record: {said}\n" if said else "edit: by hand\n"
    *earlier, last = receipts
    more = f" (and {len(earlier)} earlier)" if earlier else ""
    parts = [f"{_subject(last)}{more}", *("\n".join(_listed(receipt)) for receipt in receipts[-PARAGRAPHS:])]
    if len(receipts) > PARAGRAPHS:
        parts.insert(1, f"{receipts[0].id} and {len(receipts) - PARAGRAPHS - 1} more")
    return _plain("\n\n".join([*parts, *([f"record: {said}"] if said else [])]))[:LENGTH] + "\n"


def _subject(receipt: Receipt) -> str:
    what, number = ("line", len(receipt.rows)) if receipt.rows else ("file", len(receipt.files))
    return f"{receipt.op[:30]}: {number} {what}{'s' * (number != 1)}"


def _listed(receipt: Receipt) -> Iterator[str]:
    """The receipt's name, and what went where."""
    by = f", {receipt.strategy}" if receipt.strategy not in ("", "people") else ""
    model = f", {receipt.model[:60]}" if receipt.model not in ("", "none") else ""
    yield f"{receipt.id}: {_subject(receipt)}{by}{model}"
    ways = sorted(Counter((row.was, row.now) for row in receipt.rows if row.was != row.now).items())
    listed = [f"  {was} -> {now}: {count}" for (was, now), count in ways]
    listed = listed or [f"  {name}" for name, *_ in receipt.files]
    yield from listed[:LISTED]
    if len(listed) > LISTED:
        yield f"  and {len(listed) - LISTED} more"


def _plain(text: str) -> str:
    """A receipt is a file, and may say anything."""
    return "".join(c if c == "\n" or c.isprintable() else " " for c in text)
