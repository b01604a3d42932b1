"""Forgetting: the one operation that removes text. Documents in one transaction, then the machine state.

What was chosen goes with what it was drawn from and all that was drawn from that. The receipt keeps numbers
and places. Afterwards the bytes of the library and of the cache are searched. Source: docs/FORMAT.md, Forget.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from infinimem.errors import LibraryError, UsageError
from infinimem.model import Receipt, ReceiptRow
from infinimem.operations.forget import aside, purge
from infinimem.operations.forget.choice import Choice, Wanted, choose
from infinimem.operations.forget.journal import Journal
from infinimem.operations.forget.redaction import FORGOTTEN, Redaction
from infinimem.operations.forget.search import Left, history, left
from infinimem.store.commit import backups
from infinimem.store.commit.transaction import Conflict, recover
from infinimem.store.library import RETRIES, Library
from infinimem.store.line_map import reverse_diff
from infinimem.store.plans import violations
from infinimem.store.receipts import next_number
from infinimem.store.records import stem
from infinimem.store.render import Rendered
from infinimem.store.spec import LEDGERS
from infinimem.store.state import last_seen
from infinimem.store.view import EVIDENCE, JOURNAL, View

OP = "forget"


@dataclass(frozen=True)
class Going:
    """A line that would go. `seq` is None for what a person typed and nobody signed yet."""

    seq: int | None
    doc_id: str
    line: int
    text: str


@dataclass(frozen=True)
class Forgotten:
    """What would be forgotten, or was.

    Args:
        rows: the lines, in a dry run; none afterwards.
        seqs: their numbers.
        files: paths of what would change, in a dry run: documents that hold any of it, or tell of it.
        receipt: None in a dry run, and where there was nothing to forget.
        left: what holds some of it still; in a dry run what people own.
        repeated: lines that say some of the same words in their own right, and stay.
        history: what to do about git; "" without a repository.
        records: ids of the records that come from it, or tell of it: they would go, or went, whole.
    """

    rows: tuple[Going, ...] = ()
    seqs: tuple[int, ...] = ()
    files: tuple[str, ...] = ()
    receipt: Receipt | None = None
    left: tuple[Left, ...] = ()
    repeated: tuple[int, ...] = ()
    history: str = ""
    records: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What was taken otherwise than it was written."""


def preview_forget(library: Library, wanted: Wanted) -> Forgotten:
    """What `forget` would take. Nothing is written.

    Raises:
        UsageError: a number that no line has.
    """
    view = _looked(library)
    choice = _chosen(library, view, wanted)
    redaction = Redaction(view, choice, next_number(view), view.max_seq + 1)
    held = _holding(view, redaction, _rendered(redaction))
    return replace(
        _told(library, redaction, held, preview=True),
        files=tuple(sorted(held)),
        rows=tuple(_going(choice)),
        seqs=tuple(sorted(choice.seqs)),
    )


def forget(library: Library, wanted: Wanted) -> Forgotten:
    """Take lines out for good: documents, evidence, receipts' quotations, names, machine state, caches.

    Raises:
        UsageError: a number that no line has.
        NotALibrary: the folder has no infinimem.toml.
        LibraryError: the disk refused. Nothing was forgotten, or all of it is at the next call.
    """
    library.demand_initialised()
    for again in reversed(range(RETRIES + 1)):
        try:
            with library.locked():
                return _forget(library, wanted)
        except Conflict:
            if not again:
                raise
    raise AssertionError


def _forget(library: Library, wanted: Wanted) -> Forgotten:
    """Under the lock. What someone saves meanwhile is taken out of their version too."""
    backups.recheck(library.files, library.clock().timestamp())  # late saves come back first
    view = _looked(library)
    choice = _chosen(library, view, wanted)
    redaction = _redaction(library, view, choice)
    done = _rendered(redaction)
    if not done.documents:
        return _told(library, redaction, set())
    receipt = _take_out(library, redaction, done)
    held = _holding(view, redaction, done)
    for _ in range(RETRIES):
        again = _looked(library)
        rest = choose(again, library.seen_lines(), replace(wanted, seqs=choice.seqs))
        more = _redaction(library, again, replace(rest, texts=choice.texts))
        if not (done := _rendered(more)).documents:
            break
        _take_out(library, more, done)
        held |= _holding(again, more, done)
    return replace(
        _told(library, redaction, held), seqs=tuple(row.seq for row in receipt.rows), receipt=receipt
    )


def _told(library: Library, redaction: Redaction, held: set[str], preview: bool = False) -> Forgotten:
    """What is told of it before and afterwards."""
    return Forgotten(
        left=left(library.files, redaction.texts, preview),
        repeated=tuple(sorted({place.seq for place in redaction.texts.repeated})),
        history=history(library.root.absolute(), held),
        records=redaction.records.deleted,
    )


def _looked(library: Library) -> View:
    """The library to the last file: nothing that somebody has just saved may be passed over."""
    library.fresh.doubt()
    return library.view()


def _rendered(redaction: Redaction) -> Rendered:
    """The documents that change, and what the receipt says of them; that tells no word of it."""
    changed = {doc_id: new for doc_id, new in redaction.documents() if new != redaction.view.document(doc_id)}
    journal = Journal(redaction, [*changed, *filter(redaction.records.concerns, redaction.view.ids("all"))])
    way: list[str] = []
    done = Rendered(names=redaction.names, sums=journal.sums, reverse_diffs=way)
    for doc_id, new in changed.items():
        old = redaction.view.document(doc_id)
        done.documents |= {doc_id: None} | ({new.id: new} if new else {})
        done.removed += [(p.seq, p.entry.line) for p in old.entries if p.seq in redaction.choice.seqs]
        if not doc_id.startswith(EVIDENCE):  # what else stands there, stood there before
            way += journal.way_back(reverse_diff(doc_id, old, new and replace(new, id=doc_id)))
    for doc_id, new in redaction.records.changed.items():
        done.documents[doc_id] = new
        if not redaction.records.concerns(doc_id):
            before = redaction.view.document(doc_id) if doc_id in redaction.view else None
            way += reverse_diff(doc_id, before, new)
    done.documents |= journal.documents
    done.rows = [ReceiptRow(seq, was, "-", FORGOTTEN) for seq, was in sorted(redaction.stood().items())]
    return done


def _take_out(library: Library, redaction: Redaction, done: Rendered) -> Receipt:
    """One transaction, and the purge after it."""
    view, known = redaction.view, library.seen_lines()
    if wrong := violations(view, done):
        raise LibraryError(f"the lines cannot be taken out ({wrong[0].code}); run infinimem doctor")
    aside.set_aside(library.files, redaction)
    purge.begin(library.files)
    notice: last_seen.Changes = {seq: None for seq in redaction.choice.seqs if seq in known}
    moved = {
        seq: replace(line, doc_id=redaction.names[line.doc_id])
        for seq, line in known.items()
        if line.doc_id in redaction.names and seq not in redaction.choice.seqs
    }
    stays = {seq for seq in moved if (place := view.entry(seq)) and place.doc_id == known[seq].doc_id}
    notice |= {seq: moved[seq] for seq in stays}
    last_seen.note(
        library.files, {seq: moved[seq] for seq in moved.keys() - stays}
    )  # a person carried these on
    receipt = library.commit(done, view, library.of_people(OP), tuple(_notes(redaction)), notice)
    recover(library.files)
    purge.finish(library.files)
    return receipt


def _notes(redaction: Redaction) -> Iterator[str]:
    """What the receipt says of records, by number."""
    records, names = redaction.records, redaction.names
    if gone := {stem(names.get(name, name)) for name in records.deleted if name not in records.audits}:
        yield f"records deleted, with all links to them: {', '.join(sorted(gone))}"
    if records.raised:
        yield f"back on the surface, for nothing led to them any more: {', '.join(records.raised)}"
    if records.audits:
        told = ", ".join(names.get(name, name) for name in records.audits)
        yield f"deleted whole, for they told of it: {told}"


def _holding(view: View, redaction: Redaction, done: Rendered) -> set[str]:
    """Files that held any of it; of records those that go, the others only lose links."""
    return {
        f"{doc_id}.md"
        for doc_id in done.documents
        if doc_id in view and (not doc_id.startswith(LEDGERS) or redaction.records.concerns(doc_id))
    }


def _chosen(library: Library, view: View, wanted: Wanted) -> Choice:
    choice = choose(view, library.seen_lines(), wanted)
    if missing := sorted(set(wanted.seqs) - choice.seqs):
        done = forgotten(library.receipts())
        again = [f"{seq} (receipt {done[seq]})" for seq in missing if seq in done]
        if len(again) == len(missing):
            raise UsageError(f"forgotten already: {', '.join(again)}")
        unknown = ", ".join(str(seq) for seq in missing if seq not in done)
        raise UsageError(f"no line has seq {unknown}; infinimem grep shows lines with their numbers")
    return choice


def forgotten(receipts: Sequence[Receipt]) -> dict[int, int]:
    """Numbers that were forgotten, and the receipt of it."""
    return {
        row.seq: receipt.number
        for receipt in receipts
        if receipt.op == OP
        for row in receipt.rows
        if row.why == FORGOTTEN
    }


def _redaction(library: Library, view: View, choice: Choice) -> Redaction:
    typed = len(choice.unsigned)
    first = library.allocate(typed, view) if typed else view.max_seq + 1
    return Redaction(view, choice, next_number(view), first)


def _going(choice: Choice) -> Iterator[Going]:
    """Each line where it stands; also how a receipt still quotes it, where that reads otherwise."""
    shown: set[tuple[int, str]] = set()
    for place in choice.lines:
        if place.start_line and not (place.doc_id.startswith(JOURNAL) and (place.seq, place.text) in shown):
            yield Going(place.seq, place.doc_id, place.start_line, place.text)
        elif (place.seq, place.text) not in shown:
            yield Going(place.seq, "-", 0, place.text)
        shown.add((place.seq, place.text))
    for doc_id, line, text in choice.unsigned:
        yield Going(None, doc_id, line, text)
