"""Undo a receipt, as a new transaction with a receipt of its own.

Where the files are as the receipt left them, every byte is restored. Where they changed since (a line was
added, a person wrote prose), the lines go back and the rest stays. If a later receipt moved the same lines,
that one must be undone first, or together with this one. A `forget` is passed over: what it took stays gone,
and what was phrased about it is made anew.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import replace

from infinimem.errors import LibraryError, UsageError
from infinimem.markdown.document import Document
from infinimem.markdown.signature import format_seqs, parse_entry, tombstone
from infinimem.model import Receipt, ReceiptRow
from infinimem.operations.forget.redaction import OWN_KEYS, made_anew, without_records
from infinimem.spec import folders, strategies
from infinimem.store.external_edits import ExternalEdits, adopt, differences, find_edits, tracked
from infinimem.store.files import digest
from infinimem.store.library import Library
from infinimem.store.line_map import Reverse, from_line_map, line_map, reading, reverted
from infinimem.store.lines import held_by, link_to, sources_of, stem
from infinimem.store.plans import Rendered, described, is_emptied
from infinimem.store.receipts import (
    DOUBLED,
    FORGET,
    RENAME,
    UNDONE,
    forgotten,
    named,
    quoted,
    receipts_of,
    reverse_diffs,
)
from infinimem.store.spec import EVIDENCE, TOPICS
from infinimem.store.view import View, is_hidden

_NOTE, _WITH = "takes back receipt ", "together with what leans on receipt "
_WRITTEN = tuple(
    "added stamped edited pinned unpinned renumbered cites undated undone removed doubled".split()
)
"""How the reason of a row begins whose line the receipt itself wrote or took out."""
_BY_HAND = ("deleted", "moved by hand")
"""Reasons of rows that tell what a person had done before."""
_PASSED = (FORGET, RENAME)


def undo(library: Library, receipt_id: str | None = None, together: bool = False) -> tuple[Receipt, ...]:
    """Take a receipt back, as `Memory.undo`; of several the newest first."""
    receipts = library.receipts()
    undoable = [receipt for receipt in receipts if receipt.op not in _PASSED]
    if not receipt_id and not undoable:
        why = "what was forgotten is gone for good" if receipts else "nothing was consolidated yet"
        raise UsageError(f"there is nothing to undo: {why}")
    wanted = named(receipts, receipt_id) if receipt_id else undoable[-1]
    dependents = dependents_of(wanted, receipts)
    if dependents and not together:
        names = ", ".join(receipt.id for receipt in dependents)
        raise LibraryError(f"{names} changed the same later; undo them first, or all with --together")
    group = [f"{_WITH}{wanted.label}"] if dependents else []
    return tuple(_undo(library, receipt, group) for receipt in [*dependents, wanted])


def dependents_of(wanted: Receipt, receipts: Sequence[Receipt]) -> list[Receipt]:
    """Return later receipts that moved or changed lines of this one, or of those, and stand; newest first. A
    record, or a model's file, is one as a whole, and so are undos that were done together; an undo counts
    where it is of an earlier one. LibraryError if this one was taken back already."""
    taken = undone_by(receipts)
    if by := taken.get(wanted.label):
        raise LibraryError(f"{wanted.id} was undone by {by} already; undo that one to restore it")
    older = {by for label, by in taken.items() if int(label.partition("-")[0]) < wanted.number}
    changed = _changed(wanted)
    dependents: list[Receipt] = []
    for receipt in receipts:
        stands = receipt.number > wanted.number and receipt.label not in taken
        counts = receipt.op not in _PASSED and (receipt.op != "undo" or receipt.id in older)
        if stands and counts and changed & _changed(receipt):
            dependents.insert(0, receipt)
            changed |= _changed(receipt)
    return dependents


def _changed(receipt: Receipt) -> set[int | str]:
    records = {name for name, *_ in receipt.files if name.startswith(folders().whole)}
    groups = {note for note in receipt.notes if note.startswith(_WITH)}
    return records | groups | {row.seq for row in receipt.rows}


def undone_by(receipts: Sequence[Receipt]) -> dict[str, str]:
    """Return labels of the receipts that are taken back, and by which: an undone undo does not count."""
    taken: dict[str, str] = {}
    for receipt in reversed(receipts):
        for note in receipt.notes:
            if note.startswith(_NOTE) and receipt.label not in taken:
                taken[note.removeprefix(_NOTE)] = receipt.id
    return taken


def _undo(library: Library, receipt: Receipt, group: Sequence[str]) -> Receipt:
    if receipt.op in _PASSED:
        why = "what was forgotten is gone for good" if receipt.op == FORGET else "rename the document back"
        raise LibraryError(f"{receipt.id} cannot be undone: {why}")
    with library.locked() as view:
        if edited := find_edits(view, library.seen_lines()).edited:  # else they would count as seen
            noted = library.sign(adopt(view, ExternalEdits(edited=edited), 0), view, "stamp")
            pins = {row.seq for row in receipt.rows if row.why in ("pinned", "unpinned")}
            if pins.intersection(row.seq for row in noted.rows):
                raise LibraryError(
                    f"{noted.id} changed the same later; undo it first, or all with --together"
                )
            view = library.view()
        gone = forgotten(receipts_of(view)).keys()
        done, lost = _taken_back(view, receipt, gone)
        notice = differences(view, library.seen_lines(), done.documents)
        notes = [f"{_NOTE}{receipt.label}", *group]
        if stay := sorted(gone & {row.seq for row in receipt.rows}):
            what = "1 forgotten line stays" if len(stay) == 1 else f"{len(stay)} forgotten lines stay"
            notes.append(f"{what} forgotten: {format_seqs(stay)}")
        if kept := sorted(one for one in lost if one in view and one not in done.documents):
            notes.append(f"left as they are, for lines of them were forgotten: {', '.join(kept)}")
        return library.commit(done, view, library.of_people("undo"), notes, notice)


def _taken_back(view: View, receipt: Receipt, gone: Collection[int]) -> tuple[Rendered, set[str]]:
    """Return the documents before the receipt, without lines that are gone; and files with no way back."""
    own = [row for row in receipt.rows if row.why not in _BY_HAND and row.seq not in gone]
    moved = [row for row in own if row.now not in ("", "-") and row.was != row.now]
    away = [row.seq for row in moved if (p := view.entry(row.seq)) is None or p.doc_id != row.now]
    if away:
        listed = ", ".join(map(str, away[:5]))
        raise LibraryError(f"{receipt.id} cannot be undone: lines {listed} are no longer where it put them")
    done, later = Rendered(), list(receipts_of(view, receipt.number))
    after = {doc_id: sha for doc_id, _, sha in receipt.files}
    turns = {row.now for row in moved if row.now.startswith(EVIDENCE)}
    known = {*tracked(view), *turns, *filter(view.__contains__, after)}
    lines = {seq: tombstone(seq) for seq in gone}
    for doc_id in sorted(known, key=lambda one: (one in after, one)):  # of a line that stands twice its own
        lines |= {place.seq: place.entry.line for place in view.document(doc_id).entries}
    redacted = {file[0] for one in later if one.op in _PASSED for file in one.files}
    lost = set[str]()
    for back in reverse_diffs(view.document(receipt.id)):
        here = view.document(back.doc_id) if back.doc_id in view else None
        untouched = digest(here.to_bytes() if here else None) == after.get(back.doc_id)
        before: Document | None
        if not back.doc_id.startswith(folders().whole):
            anew, stand = back.doc_id in redacted, {p.seq: p.entry.line for p in here.entries} if here else {}
            own_rows = replace(receipt, rows=tuple(own))
            before = _document_before(back, here, own_rows, lines | stand, untouched, anew)
        elif back.is_lost or (not untouched and back.doc_id in redacted):
            lost.add(back.doc_id)
            continue
        else:
            before = _record_before(back, here, receipt, later, untouched)
        if before != here:
            done.documents[back.doc_id] = before
    waiting = {row.seq for row in moved if is_hidden(row.was)}
    if gone or waiting:
        done.documents |= _sound_records(view, done, waiting.union(gone), lost)
    for topic in (done.documents.get(one, view.document(one)) for one in view.below(TOPICS) if waiting):
        if topic and waiting.intersection(described(topic)):
            done.documents[topic.id] = made_anew(topic, True)
    old, edited, unclear = quoted(receipt), dict[str, dict[int, str]](), list[int]()
    for seq in (row.seq for row in own if row.why == "edited"):
        if (place := view.entry(seq)) and seq in old:
            edited.setdefault(place.doc_id, {})[seq] = old[seq].line
        else:
            unclear.append(seq)
    for doc_id, instead in edited.items():
        document = done.documents.get(doc_id) or view.document(doc_id)
        there = Counter(one.seq for one in document.entries)
        unclear += [seq for seq in instead if there[seq] != 1]
        done.documents[doc_id] = reading(document, instead)
    if unclear:
        raise LibraryError(f"{receipt.id} cannot be undone: line {unclear[0]} would stand nowhere, or twice")
    if held := _held_elsewhere(view, done):
        raise LibraryError(
            f"{receipt.id} cannot be undone: {held} holds its turns now; undo what made that first"
        )
    _set_rows(done, view, receipt, own)
    return done, lost


def _sound_records(
    view: View, done: Rendered, gone: Set[int], lost: Collection[str]
) -> Mapping[str, Document | None]:
    """Return what else becomes of records: none comes back of a forgotten turn, and none of which no way back
    is kept stands; their turns are told anew."""
    documents = {doc_id: view.document(doc_id) for doc_id in view.ids("all")} | done.documents
    after = view.showing({doc_id: one for doc_id, one in documents.items() if one})
    names = {stem(doc_id) for doc_id in after.ids("all") if doc_id.startswith(folders().records)}

    def doomed(document: Document) -> bool:
        links = map(link_to, document.lines[: document.header.end])
        told = gone & {*described(document)} if document.id.startswith(folders().texts) else ()
        is_lost = document.id in lost or bool(told)
        return is_lost or not names.issuperset({*sources_of(document), *filter(None, links)})

    return without_records(after, gone, doomed)


def _held_elsewhere(view: View, done: Rendered) -> str:
    """Return a record that stays and holds a turn of one that comes back, if only one of their kind may."""
    own = folders().records
    alone = {kind.prefix for spec in strategies().values() for kind in spec.kinds if kind.alone}

    def turns(record: Document) -> set[tuple[str, int]]:
        is_record = record.id.startswith(own) and re.fullmatch(folders().names, stem(record.id))
        prefix = stem(record.id).partition("-")[0] if is_record else ""  # and no conflict copy of one
        return {(prefix, seq) for seq in held_by(record)} if prefix in alone else set()

    back = {turn for record in done.documents.values() if record for turn in turns(record)}
    back -= {turn for doc_id in done.documents if doc_id in view for turn in turns(view.document(doc_id))}
    stay = (one for one in view.ids("all") if one.startswith(own) and one not in done.documents)
    return next((one for one in stay if back and not back.isdisjoint(turns(view.document(one)))), "")


def _document_before(
    back: Reverse,
    here: Document | None,
    receipt: Receipt,
    lines: Mapping[int, str],
    untouched: bool,
    anew: bool,
) -> Document | None:
    """Return a document as it was; where it went on since, with what the receipt did not do. Its derived text
    is made `anew` if a `forget` changed it since."""
    rows = receipt.rows
    came = {row.seq for row in rows if row.now == back.doc_id != row.was}
    left = {row.seq for row in rows if row.was == back.doc_id != row.now}
    if back.is_new:
        rest = here.without(came) if here and not untouched else None
        return rest if rest and not is_emptied(rest, OWN_KEYS) else None
    old = reverted(back, line_map(here)) if untouched or here else None
    if old is not None and all(int(row[1:]) in lines for row in old if row[0] == "@"):
        before = from_line_map(back.doc_id, old, lines)
        stood = {place.seq for place in here.entries} if here else set()
        whole = {place.seq for place in before.entries} == (stood - came) | left
        # Lines would come to stand in the header, where a person made it longer.
        torn = before.header.problem is not None and (here is None or here.header.problem is None)
        if untouched or (whole and not torn):
            return made_anew(before, anew)
    quoted = {e.seq: e for hunk in back.hunks for row in hunk.before if (e := parse_entry(row[1:]))}
    if any(row.why.startswith(_WRITTEN) for row in rows) and not anew:
        raise LibraryError(f"{receipt.id} cannot be undone: {back.doc_id} was changed where it wrote")
    document = (here or Document.empty(back.doc_id)).without(came)
    edited = {p.seq: quoted[p.seq].line for p in document.entries if p.seq in quoted}
    there = {p.text for p in document.entries} | {item.text for item in document.unsigned}
    known = dict(lines) | {e.seq: e.line for e in quoted.values() if e.text not in there}
    document = reading(document, edited).insert([known[seq] for seq in sorted(left) if seq in known])
    return made_anew(document, anew)


def _record_before(
    back: Reverse, here: Document | None, receipt: Receipt, later: Sequence[Receipt], untouched: bool
) -> Document | None:
    """Return a record as it was. It is one whole, so what was made of it since is in the way."""
    if untouched:
        rows = reverted(back, line_map(here))
        if back.is_new or rows is not None:
            return None if back.is_new else from_line_map(back.doc_id, rows or (), {})
    elif back.is_new and here is None:
        return None
    present = digest(here.to_bytes() if here else None)
    by = [one.id for one in later if (back.doc_id, present) in {(f[0], f[2]) for f in one.files}]
    why = f"by {by[-1]}; undo that first" if by else "by hand since"
    raise LibraryError(f"{receipt.id} cannot be undone: {back.doc_id} was changed {why}")


def _set_rows(done: Rendered, view: View, receipt: Receipt, own: Iterable[ReceiptRow]) -> None:
    """Set the rows, and for the law what the receipt wrote; LibraryError if anything else came or went."""
    done.permit(view)
    written = {row.seq for row in receipt.rows if row.why.startswith(_WRITTEN)}
    written |= {int(row.why.split()[-1]) for row in receipt.rows if row.why.startswith("renumbered from ")}
    if strange := sorted({seq for seq, _ in (*done.removed, *done.added)} - written):
        raise LibraryError(
            f"{receipt.id} cannot be undone: line {strange[0]} was added or removed by hand since"
        )
    standing = {place.seq for one in done.documents.values() if one for place in one.entries}
    left = {seq for seq, _ in done.removed} - standing
    for row in own:
        if row.seq in left:
            done.rows.append(ReceiptRow(row.seq, row.now, "-", "removed"))
        elif row.seq in standing or view.entry(row.seq) is not None:
            was = row.was if row.why == DOUBLED else row.now  # it stands in both again
            done.rows.append(ReceiptRow(row.seq, was, row.was, UNDONE))
