"""What all checks share: the documents that can be read, their lines and receipts. Each is read once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from infinimem.errors import LibraryError
from infinimem.markdown.document import Document
from infinimem.markdown.signature import format_seqs
from infinimem.model import CURRENT, Located, Receipt
from infinimem.store.external_edits import ExternalEdits, find_edits
from infinimem.store.library import Library
from infinimem.store.receipts import parse_receipt
from infinimem.store.records import evidence_of
from infinimem.store.spec import ARCHIVE, EVIDENCE, JOURNAL, TOPICS
from infinimem.store.state.sequence import MAX_SEQ
from infinimem.store.view import View

LISTED = 20
"""Seqs that one finding lists."""
ROOM = 1_000_000
"""Seqs that must be left: a line with one near the end, typed by mistake, must not move the counter there."""


def listed(seqs: Sequence[int]) -> str:
    """`12-15+19`, cut after LISTED seqs."""
    return format_seqs(seqs[:LISTED]) + "…" * (len(seqs) > LISTED)


@dataclass(frozen=True)
class Inspection:
    """A library as one run of `doctor` or `lint` sees it.

    Args:
        view: the library, or a folder of notes.
        documents: those that can be read, by id.
        unreadable: why the others cannot.
        opened: the library, for checks of what lies beside the documents; None where only a view is at hand.
    """

    view: View
    documents: Mapping[str, Document]
    unreadable: Mapping[str, str]
    opened: Library | None = None

    @classmethod
    def of(cls, view: View, opened: Library | None = None) -> Inspection:
        documents, unreadable = {}, {}
        for doc_id in view.ids("all"):
            try:
                documents[doc_id] = view.document(doc_id)
            except LibraryError as error:
                unreadable[doc_id] = str(error)
        return cls(view, documents, unreadable, opened)

    @property
    def library(self) -> Library:
        """The library, for checks that `doctor` alone runs."""
        if self.opened is None:
            raise LibraryError("this check needs the library itself, not a view of it")
        return self.opened

    def own(self, *folders: str) -> Iterator[Document]:
        """The program's documents in these folders; by default all but receipts and records."""
        for folder in folders or (EVIDENCE, ARCHIVE, CURRENT, TOPICS):
            for doc_id, document in self.documents.items():
                if doc_id.startswith(folder) and not self.view.is_note(doc_id):
                    yield document

    @cached_property
    def places(self) -> Mapping[int, Sequence[Located]]:
        """Where each seq stands: first where it belongs, then its copies."""
        found: dict[int, list[Located]] = {}
        for document in self.own():
            for place in document.entries:
                found.setdefault(place.seq, []).append(place)
        return found

    @property
    def crowded(self) -> bool:
        """Whether a line carries a seq that leaves no room for new ones."""
        return max(self.places, default=0) > MAX_SEQ - ROOM

    @cached_property
    def complete(self) -> bool:
        """Whether every document of the program could be read."""
        return not any(not self.view.is_note(doc_id) for doc_id in self.unreadable)

    @cached_property
    def receipts(self) -> tuple[Receipt, ...]:
        """Those that can be read, oldest first."""
        found = [parse_receipt(document) for document in self.own(JOURNAL)]
        return tuple(sorted(found, key=lambda receipt: (receipt.number, receipt.op)))

    @cached_property
    def deleted(self) -> frozenset[int]:
        """Seqs that a receipt says a person deleted, or had removed."""
        rows = (row for receipt in self.receipts for row in receipt.rows)
        return frozenset(row.seq for row in rows if row.why.startswith(("deleted", "removed")))

    @cached_property
    def external(self) -> ExternalEdits:
        """What people and merges did since; nothing where not every document can be read."""
        return find_edits(self.view, self.library.seen_lines()) if self.complete else ExternalEdits()

    @cached_property
    def live(self) -> Sequence[Located]:
        """Entries of topics and CURRENT, or the turns behind the records on the surface; each seq once."""
        view = self.view
        if view.spec.has_entries:
            places = [place for document in self.own(CURRENT, TOPICS) for place in document.entries]
        else:
            seqs = {seq for document in self.own(*view.spec.live) for seq in evidence_of(document)}
            places = [place for seq in sorted(seqs) if (place := view.entry(seq)) is not None]
        found: dict[int, Located] = {}
        for place in places:
            found.setdefault(place.seq, place)
        return tuple(found.values())
