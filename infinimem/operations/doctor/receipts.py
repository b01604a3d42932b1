"""Every line that a receipt names must still stand somewhere, or it must be known why not.

A receipt gives the sha256 of each file after it. While a file is as the program left it, a line missing from
it is the program's fault: an error. Once a person changed the file (an edit, a checkout, a merge), what they
took out is theirs to take out: a note.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from infinimem.model import Finding
from infinimem.operations.doctor.inspection import Inspection, listed
from infinimem.store.files import digest


def missing(inspection: Inspection) -> Iterator[Finding]:
    """Lines that receipts name and that stand nowhere; numbers that several receipts have."""
    by_number: dict[int, list[str]] = defaultdict(list)
    for receipt in inspection.receipts:
        by_number[receipt.number].append(receipt.id)
    for number, same in sorted(by_number.items()):
        if number and len(same) > 1:
            yield Finding("note", f"several receipts have the number {number}: {', '.join(same)}", same[1])
    if not inspection.complete:
        return
    for (doc_id, receipt_id), seqs in sorted(_gone(inspection).items()):
        which = f"{'line' if len(seqs) == 1 else 'lines'} {listed(seqs)}"
        if _is_ours(inspection, doc_id, receipt_id):
            what = f"{receipt_id} put {which} here, and it is lost; restore it from a backup or from git"
            yield Finding("error", what, doc_id)
        else:
            what = f"{which}, put here by {receipt_id}, went when the file was changed by hand"
            yield Finding("note", what, doc_id)


def _gone(inspection: Inspection) -> dict[tuple[str, str], list[int]]:
    """Seqs that stand nowhere, by the document and the receipt that named them last."""
    last: dict[int, tuple[str, str]] = {}
    for receipt in inspection.receipts:
        last.update((row.seq, (row.now, receipt.id)) for row in receipt.rows)
    in_notes = {place.seq for doc in inspection.documents.values() for place in doc.entries}
    gone: dict[tuple[str, str], list[int]] = defaultdict(list)
    for seq, (now, receipt_id) in sorted(last.items()):
        if seq not in inspection.places and seq not in in_notes and now not in ("", "-"):
            gone[now, receipt_id].append(seq)
    return gone


def _is_ours(inspection: Inspection, doc_id: str, receipt_id: str) -> bool:
    """Whether only the program changed a file since a receipt that names it."""
    steps = [  # receipt, checksum before, checksum after
        (receipt.id, before, after)
        for receipt in inspection.receipts
        for name, before, after in receipt.files
        if name == doc_id
    ]
    since = next((n for n, (named, *_) in enumerate(steps) if named == receipt_id), len(steps))
    steps = steps[since:]
    if not steps or any(one[2] != then[1] for one, then in pairwise(steps)):
        return False
    document = inspection.documents.get(doc_id)
    present = digest(document.to_bytes() if document else None)
    newest, before, after = steps[-1]
    if present == after:
        return True
    # As it was before the newest receipt, and untouched since: what that says was never done. A checkout of
    # an old version would have touched the file.
    return (
        document is not None
        and present == before
        and _changed(inspection, doc_id) < _changed(inspection, newest)
    )


def _changed(inspection: Inspection, doc_id: str) -> int:
    """When a file's bytes, or its name, last changed: nanoseconds."""
    info = (inspection.library.root / f"{doc_id}.md").stat(follow_symlinks=False)
    return max(info.st_mtime_ns, info.st_ctime_ns)
