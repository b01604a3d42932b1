"""Undo a receipt, as a new transaction with a receipt of its own.

Where the files are as the receipt left them, every byte is restored. Where they changed since (a line was
added, a person wrote prose), the lines go back and the rest stays. If a later receipt moved the same lines,
that one must be undone first, or together with this one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from infinimem.errors import LibraryError, UsageError
from infinimem.law import Line
from infinimem.markdown.document import Document
from infinimem.model import Receipt, ReceiptRow
from infinimem.spec import whole_folders
from infinimem.store.files import digest
from infinimem.store.library import Library
from infinimem.store.line_map import Reverse, from_line_map, line_map, reverted
from infinimem.store.receipts import named, receipts_of, reverse_diffs
from infinimem.store.render import Rendered
from infinimem.store.state import last_seen
from infinimem.store.view import View

FORGET = "forget"
_NOTE = "takes back receipt "
_WRITTEN = ("added", "stamped", "edited", "renumbered", "cites", "undated", "undone", "removed")
"""How the reason of a row begins whose line the receipt itself wrote or took out."""


def undo(library: Library, receipt_id: str | None = None, together: bool = False) -> tuple[Receipt, ...]:
    """As `Memory.undo`; of several receipts the newest is taken back first."""
    receipts = receipts_of(library.view())
    if not receipts:
        raise UsageError("nothing was consolidated yet; there is nothing to undo")
    wanted = named(receipts, receipt_id) if receipt_id else receipts[-1]
    dependents = dependents_of(wanted, receipts)
    if dependents and not together:
        names = ", ".join(receipt.id for receipt in dependents)
        what = "records" if any(isinstance(one, str) for one in _changed(wanted)) else "lines"
        done = "changed" if what == "records" else "moved"
        raise LibraryError(f"{names} {done} the same {what} later; undo them first, or all with --together")
    return tuple(_undo(library, receipt) for receipt in [*dependents, wanted])


def dependents_of(wanted: Receipt, receipts: Sequence[Receipt]) -> list[Receipt]:
    """Later receipts that moved or changed lines of this one, or of those, and still stand; newest first.

    A record, or a model's file, is one as a whole: a later change depends on the earlier one.

    Raises:
        LibraryError: this one was taken back already.
    """
    taken = undone_by(receipts)
    if wanted.number in taken:
        by = taken[wanted.number]
        raise LibraryError(f"{wanted.id} was undone by {by} already; undo that one to restore it")
    changed = _changed(wanted)
    dependents: list[Receipt] = []
    for receipt in receipts:
        stands = receipt.number > wanted.number and receipt.number not in taken
        if stands and receipt.op != "undo" and changed & _changed(receipt):
            dependents.insert(0, receipt)
            changed |= _changed(receipt)
    return dependents


def _changed(receipt: Receipt) -> set[int | str]:
    """Seqs of the lines, ids of the records."""
    return {
        *(row.seq for row in receipt.rows),
        *(f[0] for f in receipt.files if f[0].startswith(whole_folders())),
    }


def undone_by(receipts: Sequence[Receipt]) -> dict[int, str]:
    """Numbers of the receipts that are taken back, and by which: an undo that was undone does not count."""
    taken: dict[int, str] = {}
    for receipt in reversed(receipts):
        for note in receipt.notes:
            number = note.removeprefix(_NOTE)
            if number != note and number.isdigit() and receipt.number not in taken:
                taken[int(number)] = receipt.id
    return taken


def _undo(library: Library, receipt: Receipt) -> Receipt:
    if receipt.op == FORGET:
        raise LibraryError(f"{receipt.id} cannot be undone: what was forgotten is gone for good")
    with library.locked() as view:
        done = _taken_back(view, receipt)
        notice = last_seen.differences(view, library.seen_lines(), done.documents)
        return library.commit(done, view, library.of_people("undo"), [f"{_NOTE}{receipt.number}"], notice)


def _taken_back(view: View, receipt: Receipt) -> Rendered:
    moved = [row for row in _done(receipt) if row.now not in ("", "-") and row.was != row.now]
    away = [row.seq for row in moved if (p := view.entry(row.seq)) is None or p.doc_id != row.now]
    if away:
        listed = ", ".join(map(str, away[:5]))
        raise LibraryError(f"{receipt.id} cannot be undone: lines {listed} are no longer where it put them")
    done = Rendered()
    known = map(view.document, last_seen.tracked(view))
    lines = {place.seq: place.entry.line for document in known for place in document.entries}
    after = {doc_id: sha for doc_id, _, sha in receipt.files}
    backs = reverse_diffs(view.document(receipt.id))
    if lost := [back.doc_id for back in backs if back.is_lost]:
        raise LibraryError(f"{receipt.id} cannot be undone: lines of {lost[0]} were forgotten since")
    for back in backs:
        here = view.document(back.doc_id) if back.doc_id in view else None
        untouched = digest(here.to_bytes() if here else None) == after.get(back.doc_id)
        if back.doc_id.startswith(whole_folders()):
            before = _record_before(back, here, receipt, untouched)
        else:
            before = _document_before(back, here, receipt, lines, untouched)
        if before != here:
            done.documents[back.doc_id] = before
    _tell(done, view, receipt)
    return done


def _document_before(
    back: Reverse, here: Document | None, receipt: Receipt, lines: Mapping[int, str], untouched: bool
) -> Document | None:
    """A document as it was; where it went on since, with what the receipt did not do."""
    came = {row.seq for row in _done(receipt) if row.now == back.doc_id != row.was}
    gone = {row.seq for row in _done(receipt) if row.was == back.doc_id != row.now}
    if back.is_new:
        rest = here.without(came) if here and not untouched else None
        return rest if rest and (rest.entries or rest.unsigned or rest.has_prose) else None
    rows = reverted(back, line_map(here)) if untouched or here else None
    if rows is not None:
        before = from_line_map(back.doc_id, rows, lines)
        stood = {place.seq for place in here.entries} if here else set()
        whole = {place.seq for place in before.entries} == (stood - came) | gone
        if untouched or (whole and not _tears_header(before, here)):
            return before
    if any(row.why.startswith(_WRITTEN) for row in receipt.rows):
        raise LibraryError(f"{receipt.id} cannot be undone: {back.doc_id} was changed where it wrote")
    document = here or Document.empty(back.doc_id)
    return document.without(came).insert([lines[seq] for seq in sorted(gone) if seq in lines])


def _tears_header(before: Document, here: Document | None) -> bool:
    """Whether lines would come to stand in the header: a person made it longer."""
    return before.header.problem is not None and (here is None or here.header.problem is None)


def _record_before(
    back: Reverse, here: Document | None, receipt: Receipt, untouched: bool
) -> Document | None:
    """A record as it was. It is one whole, so what a person made of it since is in the way."""
    if untouched:
        rows = reverted(back, line_map(here))
        if back.is_new or rows is not None:
            return None if back.is_new else from_line_map(back.doc_id, rows or (), {})
    elif back.is_new and here is None:
        return None
    raise LibraryError(f"{receipt.id} cannot be undone: {back.doc_id} was changed by hand since")


def _tell(done: Rendered, view: View, receipt: Receipt) -> None:
    """Rows, and for the law what the receipt wrote: nothing else may come or go.

    Raises:
        LibraryError: something else would.
    """
    there = (view.document(doc_id) for doc_id in done.documents if doc_id in view)
    before = Counter(line for document in there for line in _lines(document))
    after = Counter(line for document in done.documents.values() if document for line in _lines(document))
    done.removed += sorted((before - after).elements())
    done.added += sorted((after - before).elements())
    written = {row.seq for row in receipt.rows if row.why.startswith(_WRITTEN)}
    written |= {int(row.why.split()[-1]) for row in receipt.rows if row.why.startswith("renumbered from ")}
    if strange := sorted({seq for seq, _ in (*done.removed, *done.added)} - written):
        raise LibraryError(
            f"{receipt.id} cannot be undone: line {strange[0]} was added or removed by hand since"
        )
    standing = {seq for seq, _ in after}
    left = {seq for seq, _ in done.removed} - standing
    for row in _done(receipt):
        if row.seq in left:
            done.rows.append(ReceiptRow(row.seq, row.now, "-", "removed"))
        elif row.seq in standing or view.entry(row.seq) is not None:
            done.rows.append(ReceiptRow(row.seq, row.now, row.was, "undone"))


def _done(receipt: Receipt) -> list[ReceiptRow]:
    """What the receipt did itself; what a person had done before, it only tells."""
    return [row for row in receipt.rows if row.why not in ("deleted", "moved by hand")]


def _lines(document: Document) -> list[Line]:
    return [(place.seq, place.entry.line) for place in document.entries]
