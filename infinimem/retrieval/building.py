"""From documents to rows: which shelf each piece of a document is on, and what is known of it there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from infinimem.errors import LibraryError
from infinimem.markdown.document import Document
from infinimem.retrieval.columns import Builder, Segment
from infinimem.retrieval.lexical import ASIDE, key
from infinimem.retrieval.pieces import Piece, Pieces, date_parts
from infinimem.retrieval.priors import asking
from infinimem.retrieval.segment_file import write_segment
from infinimem.retrieval.tantivy_index import TantivyIndex
from infinimem.retrieval.vectors import as_keys, text_key
from infinimem.store.files import Files
from infinimem.store.listing import Stamp
from infinimem.store.view import View

Index = Callable[[str, int, Sequence[str]], object]
"""Told the shelf, the key and the terms of each row."""


def day_of(time: str | None) -> int:
    """The day of a time as yyyymmdd, months and days that it does not name as 00; 0 for none."""
    year, month, day = date_parts(time)
    return year * 10000 + month * 100 + day


class Shelves:
    """Segments under construction, one a shelf.

    Args:
        view: the snapshot that the documents are of.
        pieces: reads them.
        index: told of each row.
        uid: of the first part.
        full: given each segment that is as large as one should be.
    """

    def __init__(
        self,
        view: View,
        pieces: Pieces,
        index: Index,
        uid: int = 0,
        full: Callable[[Segment], None] | None = None,
    ) -> None:
        self.uid = uid
        self._view = view
        self._pieces = pieces
        self._index = index
        self._full = full
        self._builders: dict[str, Builder] = {}

    def add(self, document: Document, stamp: Stamp | None = None) -> None:
        """Add all rows of a document."""
        group = self._view.group(document.id)
        if group == "aside":
            self._part(ASIDE, document.id, stamp, ())
            return
        if document.entries:
            self._part(f"entries/{group}", document.id, stamp, self._pieces.entries(document))
            self._part(f"blocks/{group}", document.id, stamp, self._pieces.blocks(document))
        else:
            self._part(f"both/{group}", document.id, stamp, self._pieces.blocks(document))

    def finish(self) -> list[Segment]:
        """The segments that are left, by shelf."""
        builders, self._builders = self._builders, {}
        return [builder.build() for _, builder in sorted(builders.items())]

    def _part(self, shelf: str, doc_id: str, stamp: Stamp | None, pieces: Sequence[Piece]) -> None:
        if shelf not in self._builders:
            self._builders[shelf] = Builder(shelf)
        elif self._full and self._builders[shelf].full:
            self._full(self._builders[shelf].build())
            self._builders[shelf] = Builder(shelf)
        builder = self._builders[shelf]
        seen = (stamp.mtime_ns, stamp.size, stamp.inode) if stamp else (0, 0, 0)
        builder.part(self.uid, doc_id, seen)
        texts = as_keys([text_key(piece.text) for piece in pieces]).tolist()
        for ordinal, (piece, text) in enumerate(zip(pieces, texts, strict=True)):
            item = piece.item
            builder.row(
                (item.start_line, item.end_line),
                piece.own,
                piece.around,
                whole=None if piece.whole == doc_id else piece.whole,
                path=item.headings,
                speaker=item.speaker,
                seq=0 if item.physical or not item.seqs else item.seqs[0],
                day=day_of(item.time),
                asking=0 if item.physical else round(255 * asking(item.text)),
                personal=item.source in ("user", "human"),
                cites=() if item.physical else piece.cites,
                text=text,
            )
            self._index(shelf, key(self.uid, ordinal), [*piece.own, *piece.around])
        self.uid += 1


def write_index(
    folder: Path,
    lexical: str,
    view: View,
    pieces: Pieces,
    doc_ids: Iterable[str],
    uid: int,
    gone: Collection[int],
) -> tuple[list[dict[str, Any]], int]:
    """Write segments, and change tantivy's index. The caller holds the lock of the folder.

    Args:
        folder: of the index.
        lexical: name of tantivy's folder in it, made if missing.
        view: the snapshot that the documents are of.
        pieces: reads them.
        doc_ids: in the order in which they are to stand.
        uid: of the first part; what tantivy has from there on was never committed, and goes.
        gone: uids of parts that no commit names any more.

    Returns:
        Rows of the manifest, one a segment, and the first uid that no part has.

    Raises:
        OSError, ValueError: it cannot be written.
        LibraryError: the library's folder is gone.
    """
    stored = view.stored
    assert stored, "only what files show is written"
    files = Files(Path(stored.root))
    (folder / lexical).mkdir(mode=0o700, exist_ok=True)
    writer = TantivyIndex(folder / lexical).write()
    writer.delete_from(uid)
    writer.delete(gone)
    rows: list[dict[str, Any]] = []

    def keep(segment: Segment) -> None:
        rows.append(write_segment(folder, segment))

    shelves = Shelves(view, pieces, writer.add, uid, keep)
    for doc_id in doc_ids:
        document = as_stored(files, doc_id, stored.stamps[doc_id])
        if document is not None:  # else it counts as changed, and is looked at again
            shelves.add(document, stored.stamps[doc_id])
    for segment in shelves.finish():
        keep(segment)
    writer.commit()
    return rows, shelves.uid


def as_stored(files: Files, doc_id: str, stamp: Stamp) -> Document | None:
    """A document read from its file, if that can be read and is in the state that the snapshot says.

    What is held in memory may be of before a `forget`, and must not come back into the cache.
    """
    try:
        data, found = files.read_stamped(f"{doc_id}.md", stamp.size)
    except LibraryError:
        return None
    return Document.parse(doc_id, data) if found == stamp else None
