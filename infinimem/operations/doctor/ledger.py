"""The law against the receipts: every line that one names stands somewhere, or it is known why not.

A receipt gives the sha256 of each file after it. While a file is what the program left, a line missing from
it is the program's fault, and an error. Once a person changed the file (an edit, a checkout, a merge), what
they took out is theirs to take out: a note.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from infinimem.model import Finding, Receipt
from infinimem.operations.doctor.inspection import Shelf, listed
from infinimem.store.files import digest


@dataclass(frozen=True)
class _Step:
    """What one receipt did to a file."""

    receipt: Receipt
    before: str
    after: str


def missing(shelf: Shelf, root: Path) -> Iterator[Finding]:
    """Lines that receipts name and that stand nowhere.

    Args:
        shelf: all that can be read.
        root: the folder, to see when a file was last touched.
    """
    yield from _numbers(shelf)
    if not shelf.whole:
        return
    for (doc_id, receipt_id), seqs in sorted(_gone(shelf).items()):
        which = f"{'line' if len(seqs) == 1 else 'lines'} {listed(seqs)}"
        if _is_ours(_steps(shelf, doc_id, receipt_id), shelf, doc_id, lambda item: _touched(root, item)):
            what = f"{receipt_id} put {which} here, and it is lost; restore it from a backup or from git"
            yield Finding("error", what, doc_id)
        else:
            what = f"{which}, put here by {receipt_id}, went when the file was changed by hand"
            yield Finding("note", what, doc_id)


def _gone(shelf: Shelf) -> dict[tuple[str, str], list[int]]:
    """Seqs that stand nowhere, by the document and the receipt that named them last."""
    last: dict[int, tuple[str, str]] = {}
    for receipt in shelf.receipts:
        last.update((row.seq, (row.now, receipt.id)) for row in receipt.rows)
    in_notes = {place.seq for doc in shelf.documents.values() for place in doc.entries}
    gone: dict[tuple[str, str], list[int]] = defaultdict(list)
    for seq, (now, receipt_id) in sorted(last.items()):
        if seq not in shelf.places and seq not in in_notes and now not in ("", "-"):
            gone[now, receipt_id].append(seq)
    return gone


def _steps(shelf: Shelf, doc_id: str, receipt_id: str) -> list[_Step]:
    """What happened to a file from that receipt on; empty where that receipt does not name the file."""
    steps: list[_Step] = []
    for receipt in shelf.receipts:
        for name, before, after in receipt.files:
            if name == doc_id and (steps or receipt.id == receipt_id):
                steps.append(_Step(receipt, before, after))
    return steps


def _is_ours(steps: list[_Step], shelf: Shelf, doc_id: str, touched: Callable[[str], int]) -> bool:
    """Whether no hand but the program's was on the file since."""
    if not steps or any(one.after != then.before for one, then in pairwise(steps)):
        return False
    document = shelf.documents.get(doc_id)
    present = digest(document.to_bytes() if document else None)
    last = steps[-1]
    if present == last.after:
        return True
    # As before the last receipt, and untouched since: what the receipt says was never done. A checkout of an
    # old version would have touched the file.
    return document is not None and present == last.before and touched(doc_id) < touched(last.receipt.id)


def _touched(root: Path, doc_id: str) -> int:
    """When the file's bytes, or its name, last changed: nanoseconds."""
    info = (root / f"{doc_id}.md").stat(follow_symlinks=False)
    return max(info.st_mtime_ns, info.st_ctime_ns)


def _numbers(shelf: Shelf) -> Iterator[Finding]:
    by_number: dict[int, list[str]] = defaultdict(list)
    for receipt in shelf.receipts:
        if receipt.number:
            by_number[receipt.number].append(receipt.id)
    for number, same in sorted(by_number.items()):
        if len(same) > 1:
            yield Finding("note", f"several receipts have the number {number}: {', '.join(same)}", same[1])
