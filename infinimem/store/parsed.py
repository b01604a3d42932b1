"""Documents as last read: each state of a file that is kept is parsed once.

It knows files and states, nothing of views.
"""

from __future__ import annotations

from collections.abc import Mapping

from infinimem.errors import LibraryError
from infinimem.markdown.document import Document, PartsCache
from infinimem.model import CURRENT
from infinimem.spec import owned_folders
from infinimem.store.files import MAX_FILE, MAX_OWNED, Files
from infinimem.store.listing import Stamp


class Parsed:
    """The documents of one library.

    Args:
        files: where they lie.
        initialised: whether some of them are the program's own.
    """

    def __init__(self, files: Files, initialised: bool) -> None:
        self._files = files
        self._initialised = initialised
        self._kept: dict[str, tuple[Stamp, Document]] = {}
        self._written: Mapping[str, Document | None] = {}
        self._cache = PartsCache()

    def owned(self, doc_id: str) -> bool:
        """Whether the program writes it."""
        return self._initialised and (doc_id == CURRENT or doc_id.startswith(owned_folders()))

    def limit(self, doc_id: str) -> int:
        """The size in bytes over which it is not read."""
        return MAX_OWNED if self.owned(doc_id) else MAX_FILE

    def load(self, doc_id: str, found: Stamp, keep: bool) -> tuple[Document, bool]:
        """The document, and whether it is in the state that was found; one that may not be read is empty.

        Args:
            doc_id: its id.
            found: its state when the folder was listed.
            keep: whether it stays parsed; a library may hold more notes than memory does.

        Raises:
            LibraryError: one of the program's own cannot be read.
        """
        known = self._kept.get(doc_id)
        if known is not None and known[0] == found:
            return known[1], True
        try:
            data, stamp = self._files.read_stamped(f"{doc_id}.md", self.limit(doc_id))
        except LibraryError:
            if self.owned(doc_id):
                raise
            return Document.empty(doc_id), True  # a note that can be read no more stops nothing
        data, before = data or b"", known[1].to_bytes() if known else b""
        if known and before.endswith(b"\n") and data.startswith(before):  # another process appended
            added = Document.parse(doc_id, data[len(before) :])
            document = known[1].grown(added) if data != before else known[1]
        else:
            document = Document.parse(doc_id, data)
        if (written := self._written.get(doc_id)) == document:
            document = written  # the same bytes, and what stands in them is known
        if stamp is not None and keep:
            document = document.cached(self._cache)
            self._kept[doc_id] = stamp, document
        return document, stamp == found

    def written(self, documents: Mapping[str, Document | None]) -> None:
        """What a transaction wrote: a document read with these very bytes need not be scanned again, and what
        it took away is not kept."""
        self._written = documents
        for doc_id in (doc_id for doc_id, document in documents.items() if document is None):
            self._kept.pop(doc_id, None)

    def grown(self, before: Stamp, after: Stamp, tail: Document) -> None:
        """What was appended to a document; what was read of it before need not be read again."""
        known = self._kept.get(tail.id)
        if known and known[0] == before:
            self._kept[tail.id] = after, known[1].grown(tail).cached(self._cache)
