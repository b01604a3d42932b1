"""Forget lines: the one operation that removes text. Documents in one transaction, then the machine state.

The chosen lines go with their sources and everything drawn from the same sources. The receipt keeps numbers
and places; names stay, and are reported. Afterwards every byte of library and cache is searched.
Source: docs/FORMAT.md, Forget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from infinimem.errors import LibraryError, UsageError
from infinimem.model import Receipt
from infinimem.operations.forget import machine_state
from infinimem.operations.forget.choice import Choice, Wanted, choose
from infinimem.operations.forget.machine_state import Residue, git_advice
from infinimem.operations.forget.redaction import Redaction
from infinimem.spec import ledger_folders
from infinimem.store.commit.transaction import Conflict, recheck, recover
from infinimem.store.library import RETRIES, Library
from infinimem.store.plans import violations
from infinimem.store.receipts import FORGET, forgotten, next_number
from infinimem.store.records import stem
from infinimem.store.render import Rendered
from infinimem.store.spec import JOURNAL
from infinimem.store.state import last_seen
from infinimem.store.view import View

T = TypeVar("T")


@dataclass(frozen=True)
class Candidate:
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

    rows: tuple[Candidate, ...] = ()
    seqs: tuple[int, ...] = ()
    files: tuple[str, ...] = ()
    receipt: Receipt | None = None
    left: tuple[Residue, ...] = ()
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
    view = looked(library)
    choice = _chosen(library, view, wanted)
    redaction = Redaction(view, choice, next_number(view), view.max_seq + 1)
    done = redaction.rendered()
    held = _holding(redaction, done)
    rows, files = tuple(_candidates(choice)), tuple(sorted(held))
    documents = {doc_id: view.document(doc_id) for doc_id in view.ids("all")} | done.documents
    after = view.showing({doc_id: document for doc_id, document in documents.items() if document})
    return replace(_report(library, redaction, held, after, preview=True), rows=rows, files=files)


def forget(library: Library, wanted: Wanted) -> Forgotten:
    """Take lines out for good: documents, evidence, receipts' quotations, names, machine state, caches.

    Raises:
        UsageError: a number that no line has.
        NotALibrary: the folder has no infinimem.toml.
        LibraryError: the disk refused. Nothing was forgotten, or all of it is at the next call.
    """
    library.demand_initialised()
    return retried(library, lambda: _forget(library, wanted))


def retried(library: Library, act: Callable[[], T]) -> T:
    """Do something under the lock, late saves first; again where someone saved a file of it meanwhile."""
    for again in reversed(range(RETRIES + 1)):
        try:
            with library.locked():
                recheck(library.files, library.clock().timestamp())
                return act()
        except Conflict:
            if not again:
                raise
    raise AssertionError


def _forget(library: Library, wanted: Wanted) -> Forgotten:
    """Under the lock. What someone saves meanwhile is taken out of their version too."""
    view = looked(library)
    choice = _chosen(library, view, wanted)
    first = redaction = _redaction(library, view, choice)
    receipt, held = None, set[str]()
    for _ in range(RETRIES + 1):
        if not (done := redaction.rendered()).documents:
            break
        held |= _holding(redaction, done)
        receipt, earlier = _take_out(library, redaction, done), receipt
        receipt = earlier or receipt
        view = looked(library)
        rest = choose(view, library.seen_lines(), replace(wanted, seqs=choice.seqs))
        redaction = _redaction(library, view, replace(rest, texts=choice.texts))
    found = replace(_report(library, first, held, view), receipt=receipt)
    return replace(found, seqs=tuple(row.seq for row in receipt.rows)) if receipt else found


def _report(
    library: Library, redaction: Redaction, held: set[str], after: View, preview: bool = False
) -> Forgotten:
    return Forgotten(
        seqs=tuple(sorted(redaction.choice.seqs)),
        left=machine_state.left(library.files, after, redaction.choice.texts, preview),
        repeated=tuple(sorted({place.seq for place in redaction.choice.texts.repeated})),
        history=git_advice(library.root.absolute(), held),
        records=redaction.records.deleted,
    )


def looked(library: Library) -> View:
    """The library to the last file: nothing that somebody has just saved may be passed over."""
    library.fresh.doubt()
    return library.view()


def _take_out(library: Library, redaction: Redaction, done: Rendered) -> Receipt:
    """One transaction, and the machine state after it."""
    view, known = redaction.view, library.seen_lines()
    if wrong := violations(view, done):
        raise LibraryError(f"the lines cannot be removed ({wrong[0].code}); run infinimem doctor")
    machine_state.set_aside(library.files, redaction.choice)
    machine_state.begin(library.files)
    notice: last_seen.Changes = {seq: None for seq in redaction.choice.seqs if seq in known}
    receipt = library.commit(done, view, library.of_people(FORGET), tuple(_notes(redaction)), notice)
    recover(library.files)
    machine_state.finish(library.files)
    return receipt


def _notes(redaction: Redaction) -> Iterator[str]:
    """What the receipt says of records, by number."""
    records = redaction.records
    if gone := {stem(name) for name in records.deleted if name not in records.audits}:
        yield f"records deleted, with all links to them: {', '.join(sorted(gone))}"
    if records.audits:
        yield f"deleted whole, for they told of it: {', '.join(records.audits)}"


def _holding(redaction: Redaction, done: Rendered) -> set[str]:
    """Files that held any of it; of records those that go, the others only lose links."""
    return {
        f"{doc_id}.md"
        for doc_id in done.documents
        if doc_id in redaction.view
        and (not doc_id.startswith(ledger_folders()) or redaction.records.concerns(doc_id))
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


def _redaction(library: Library, view: View, choice: Choice) -> Redaction:
    typed = len(choice.unsigned)
    first = library.allocate(typed, view) if typed else view.max_seq + 1
    return Redaction(view, choice, next_number(view), first)


def _candidates(choice: Choice) -> Iterator[Candidate]:
    """Each line where it stands; also how a receipt still quotes it, where that reads otherwise."""
    shown: set[tuple[int, str]] = set()
    for place in choice.lines:
        is_new = (place.seq, place.text) not in shown
        if place.start_line and (is_new or not place.doc_id.startswith(JOURNAL)):
            yield Candidate(place.seq, place.doc_id, place.start_line, place.text)
        elif is_new:
            yield Candidate(place.seq, "-", 0, place.text)
        shown.add((place.seq, place.text))
    for doc_id, line, text in choice.unsigned:
        yield Candidate(None, doc_id, line, text)
