"""Documents as last read: each state of a file is parsed once, and of notes only the latest are kept.

A library may hold more notes than memory does; what the program itself writes is always kept. It knows files
and states, nothing of views.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from infinimem.errors import LibraryError
from infinimem.markdown.document import Document
from infinimem.model import CURRENT
from infinimem.store.files import MAX_FILE, MAX_OWNED, Files
from infinimem.store.listing import Stamp
from infinimem.store.view import OWNED

NOTES = 8 * 1024 * 1024
"""Bytes of people's notes that stay parsed; in memory they take some ten times as much."""


class Parsed:
    """The documents of one library.

    Args:
        files: where they lie.
        initialised: whether some of them are the program's own.
    """

    def __init__(self, files: Files, initialised: bool) -> None:
        self._files = files
        self._initialised = initialised
        self._own: dict[str, tuple[Stamp, Document]] = {}
        self._notes: OrderedDict[str, tuple[Stamp, Document]] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def owned(self, doc_id: str) -> bool:
        """Whether the program writes it."""
        return self._initialised and (doc_id == CURRENT or doc_id.startswith(OWNED))

    def limit(self, doc_id: str) -> int:
        """The size in bytes over which it is not read."""
        return MAX_OWNED if self.owned(doc_id) else MAX_FILE

    def load(self, doc_id: str, found: Stamp, keep: bool = True) -> tuple[Document, bool]:
        """The document, and whether it is in the state that was found; one that may not be read is empty.

        Args:
            doc_id: its id.
            found: its state when the folder was listed.
            keep: whether it stays parsed.

        Raises:
            LibraryError: one of the program's own cannot be read.
        """
        with self._lock:
            known = self._own.get(doc_id) or self._notes.get(doc_id)
            if known is not None and known[0] == found:
                if doc_id in self._notes:
                    self._notes.move_to_end(doc_id)
                return known[1], True
        try:
            data, stamp = self._files.read_stamped(f"{doc_id}.md", self.limit(doc_id))
        except LibraryError:
            if self.owned(doc_id):
                raise
            return Document.empty(doc_id), True  # a note that may not be read stops nothing; doctor names it
        document = Document.parse(doc_id, data)
        if stamp is not None and keep:
            with self._lock:
                self._keep(doc_id, stamp, document)
        return document, stamp == found

    def grown(self, doc_id: str, before: Stamp, after: Stamp, data: bytes) -> None:
        """What was appended to a document; what was read of it before need not be read again."""
        known = self._own.get(doc_id)
        if known and known[0] == before:
            self._own[doc_id] = after, known[1].grown(data)

    def _keep(self, doc_id: str, stamp: Stamp, document: Document) -> None:
        if self.owned(doc_id):
            self._own[doc_id] = stamp, document
            return
        if doc_id in self._notes:
            self._size -= self._notes.pop(doc_id)[0].size
        self._notes[doc_id] = stamp, document
        self._size += stamp.size
        while self._size > NOTES and len(self._notes) > 1:
            self._size -= self._notes.popitem(last=False)[1][0].size
