"""All documents of a library that can be read, for checks that must not stop at one that cannot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from infinimem.errors import LibraryError
from infinimem.markdown.document import Document
from infinimem.markdown.signature import format_seqs
from infinimem.model import CURRENT, Located, Receipt
from infinimem.store.receipts import parse_receipt
from infinimem.store.spec import ARCHIVE, TOPICS
from infinimem.store.state.sequence import MAX_SEQ
from infinimem.store.view import EVIDENCE, JOURNAL, View

LIMIT = 20
"""Findings of one kind that are listed; of more only the number is told."""
ROOM = 1_000_000
"""Seqs that must be left: a line with one near the end, typed by mistake, must not move the counter there."""


def listed(seqs: Sequence[int]) -> str:
    """`12-15+19`, cut where it would not end."""
    return format_seqs(seqs[:LIMIT]) + "…" * (len(seqs) > LIMIT)


@dataclass(frozen=True)
class Shelf:
    """A view, its documents by id, and why the others cannot be read."""

    view: View
    documents: Mapping[str, Document]
    unreadable: Mapping[str, str]

    @classmethod
    def of(cls, view: View) -> Shelf:
        documents, unreadable = {}, {}
        for doc_id in view.ids("all"):
            try:
                documents[doc_id] = view.document(doc_id)
            except LibraryError as error:
                unreadable[doc_id] = str(error)
        return cls(view, documents, unreadable)

    def own(self, *folders: str) -> Iterator[Document]:
        """Documents of the program, in these folders; receipts only where they are asked for."""
        folders = folders or (EVIDENCE, ARCHIVE, CURRENT, TOPICS)
        for folder in folders:
            for doc_id, document in self.documents.items():
                if doc_id.startswith(folder) and not self.view.is_note(doc_id):
                    yield document

    @cached_property
    def places(self) -> Mapping[int, Sequence[Located]]:
        """Where each seq stands: the place that keeps it first, then the copies."""
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
    def whole(self) -> bool:
        """Whether every line of the library could be looked at."""
        return not any(not self.view.is_note(doc_id) for doc_id in self.unreadable)

    @cached_property
    def receipts(self) -> tuple[Receipt, ...]:
        """Those that can be read, oldest first."""
        found = [parse_receipt(document) for document in self.own(JOURNAL)]
        return tuple(sorted(found, key=lambda receipt: (receipt.number, receipt.op)))

    @cached_property
    def deleted(self) -> frozenset[int]:
        """Seqs that a receipt says a person deleted, or had removed."""
        return frozenset(
            row.seq
            for receipt in self.receipts
            for row in receipt.rows
            if row.why.startswith(("deleted", "removed"))
        )
