"""The index of a library: in the cache directory, built once, then changed document by document.

    manifest.json       the folder and the file below, and the checksum of everything in them
    index.<16 hex>      tantivy's tables; nothing in it changes once the manifest names it
    documents.<16 hex>  the documents that they hold, and the state of each one's file

A commit writes a copy of the folder (links, for tantivy's files never change), changes that, and then names
it: whoever reads the old one goes on, and what a killed writer leaves is swept away. What does not agree with
its checksum is built anew. A process scores what changed since the last commit beside it (scoring.py); when
that is much it commits, unless another does.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import threading
import zlib
from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infinimem.log import log
from infinimem.markdown.document import Document
from infinimem.retrieval import cache
from infinimem.retrieval.origins import KnownLines, Origins
from infinimem.retrieval.pieces import Pieces
from infinimem.retrieval.rows import precedence
from infinimem.retrieval.scoring import Ranking
from infinimem.retrieval.tables import TableLines, Tables
from infinimem.store.files import Files
from infinimem.store.spec import EVIDENCE
from infinimem.store.view import Stored, View
from infinimem.terms import analyzer

LAYOUT = 11
"""Of files and rows: raise it when either changes, and indexes are built anew."""
SLOW = 1000
"""Documents whose indexing people wait for, and are told so."""
BESIDE_DOCUMENTS, BESIDE_BYTES = 64, 4 << 20
"""How much may have changed before it is committed."""


@dataclass(frozen=True, eq=False)
class Committed(cache.Commit):
    """What the cache directory holds."""

    tables: Tables
    """Opened at this commit; a later one does not change them."""


@dataclass(frozen=True)
class Changes:
    """What a commit does not hold of a snapshot."""

    changed: frozenset[str]
    """Documents that are new or read otherwise now."""
    gone: frozenset[str]
    """Documents that are there no more."""
    size: int
    """Bytes of the changed ones."""

    @property
    def many(self) -> bool:
        """Whether they are worth a commit."""
        return len(self.changed) + len(self.gone) > BESIDE_DOCUMENTS or self.size > BESIDE_BYTES


class DiskIndex:
    """The index of one library, for one process; its threads take turns.

    Args:
        folder: as `cache.cache_folder` gave it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._turns = threading.Lock()
        self._newest: Committed | None = None

    def of(self, view: View) -> Ranking:
        """The ranking of a snapshot.

        Raises:
            OSError, ValueError: there is no index yet, and none can be written.
        """
        with self._turns:
            kind = "library" if view.initialised else "notes"
            layout = f"{LAYOUT} {kind} {analyzer(view.settings.search.language).fingerprint}"
            committed = self._open(layout)
            changes = _changes(committed, view)
            newest = view.stored is not None and view.stored.newest()
            if newest and (committed is None or changes.many):
                committed = self._committed(committed, view, layout)
                changes = _changes(committed, view)
            if committed is None:
                raise OSError("nothing is indexed yet, and this snapshot is an old one")
            return _beside(committed.tables, changes, view)

    def _open(self, layout: str) -> Committed | None:
        """The newest commit."""
        self._newest = cache.newest(self.folder, layout, self._newest, self._load)
        return self._newest

    def _load(self, manifest: dict[str, Any]) -> Committed:
        """What a manifest names; files that this process has checked are not read again.

        Raises:
            OSError, ValueError: something is not as the manifest says.
        """
        passed = self._newest.manifest["files"] if self._newest else {}
        for name, checksum in manifest["files"].items():
            if passed.get(name) != checksum and (
                zlib.crc32(cache.mapped(self.folder / manifest["index"] / name)) != checksum
            ):
                raise ValueError(f"{name} is garbled")
        data = (self.folder / str(manifest["documents"])).read_bytes()
        if zlib.crc32(data) != manifest["checksum"]:
            raise ValueError("the list of documents is garbled")
        tables = Tables(manifest["notes"], self.folder / manifest["index"], json.loads(data))
        return Committed(manifest, tables)

    def _committed(self, old: Committed | None, view: View, layout: str) -> Committed | None:
        """A commit that holds the snapshot; the old one where another process is writing it."""
        with ExitStack() as held:
            mine = held.enter_context(cache.exclusive(self.folder, wait=False))
            if not mine and old is None:
                log.warning("another process is indexing; waiting for it")
                mine = held.enter_context(cache.exclusive(self.folder, wait=True))
                if not mine:
                    raise OSError("it cannot be locked")
            if not mine:
                return old
            old = self._open(layout)  # what another process may have done meanwhile
            changes = _changes(old, view)
            if old is None or changes.many:
                try:
                    self._write(mine, old, changes, view, layout)
                except (OSError, ValueError):
                    if old is None:
                        raise
                    log.warning(
                        "the index in %s cannot be written; what is new is kept in memory", self.folder
                    )
                    return old
            found = self._open(layout)
        if found is None:
            raise OSError(f"{self.folder} cannot be read")
        return found

    def _write(
        self, writer: cache.Writer, old: Committed | None, changes: Changes, view: View, layout: str
    ) -> None:
        """Commit what changed."""
        stored = view.stored
        assert stored, "only what files show is written"
        name, documents = cache.new_name("index"), cache.new_name("documents")
        folder, known = self.folder / name, None
        folder.mkdir(mode=0o700)
        collecting = gc.isenabled()
        gc.disable()  # no cycle is made here, and to look for some takes a fifth of the time
        try:
            if old:
                _link(self.folder / old.manifest["index"], folder)
                known = old.tables.known
            elif len(changes.changed) > SLOW:
                log.warning("indexing %d documents; this is done once", len(changes.changed))
            tables = Tables(not view.initialised, folder, known)
            gone = changes.changed | changes.gone
            tables.drop(gone)
            read, under = _AsStored(stored).read, TableLines(old.tables, view, gone) if old else None
            lines = _lines(view, changes.changed, read, under)
            pieces = Pieces(view, Origins(view, lines, read))
            for doc_id in sorted(changes.changed):
                document = read(doc_id)
                if document is not None:  # else it counts as changed, and is looked at again
                    tables.add(document, pieces.read, stored.stamps[doc_id])
            tables.commit()
            data = json.dumps(tables.known).encode("utf-8", "surrogatepass")
            writer.write(documents, data)
            manifest = {
                "format": layout,
                "notes": not view.initialised,
                "index": name,
                "files": _sums(folder, old.manifest["files"] if old else {}),
                "documents": documents,
                "checksum": zlib.crc32(data),
            }
            writer.commit(manifest, [documents])
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        finally:
            if collecting:
                gc.enable()
        for other in self.folder.iterdir():
            if other.is_dir() and other.name != name:
                shutil.rmtree(other, ignore_errors=True)


def in_memory(view: View) -> Ranking:
    """The ranking of a snapshot that no files show, or where nothing can be written."""
    lines = _lines(view, view.ids("all"), view.document)
    pieces, tables = Pieces(view, Origins(view, lines)), Tables(not view.initialised)
    for doc_id in view.ids("all"):
        tables.add(view.document(doc_id), pieces.read)
    tables.commit()
    return Ranking(view, tables, lines)


def _beside(tables: Tables, changes: Changes, view: View) -> Ranking:
    """The ranking of a snapshot: a commit, and beside it what changed since."""
    assert view.stored, "files show it"
    gone = changes.changed | changes.gone
    lines = _lines(view, changes.changed, view.stored.read, TableLines(tables, view, gone))
    pieces, documents = Pieces(view, Origins(view, lines)), view.each(sorted(changes.changed))
    over = {document.id: pieces.read(document, uid) for uid, document in enumerate(documents, tables.uid)}
    found = {doc_id: one for doc_id, one in over.items() if one is not None}
    return Ranking(view, tables, lines, gone, found)


def _changes(committed: Committed | None, view: View) -> Changes:
    """What a commit does not hold of a snapshot; all of it where there is none."""
    now = view.stored.stamps if view.stored else {}
    known = committed.tables.stamps if committed else {}
    changed = {doc_id for doc_id, stamp in now.items() if known.get(doc_id) != stamp}
    gone = known.keys() - now.keys()
    if committed and view.initialised and (changed or gone):
        owned = [doc_id for doc_id in (*changed, *gone) if not view.is_note(doc_id)]
        here = view.each(doc_id for doc_id in owned if doc_id in now)
        seqs = [place.entry.seq for document in here for place in document.entries]
        changed |= {doc_id for doc_id in committed.tables.citing(owned, seqs) if doc_id in now}
    return Changes(frozenset(changed), frozenset(gone), sum(now[doc_id].size for doc_id in changed))


def _lines(
    view: View, ids: Collection[str], read: Callable[[str], Document | None], under: TableLines | None = None
) -> KnownLines:
    """Where each numbered line stands: looked up in some documents, then in the tables."""
    documents = map(read, sorted((doc_id for doc_id in ids if not view.is_note(doc_id)), key=precedence))
    return KnownLines((place for document in documents if document for place in document.entries), under)


class _AsStored:
    """The documents of a snapshot, read from their files (`cache.as_stored`); what was said is read once."""

    def __init__(self, stored: Stored) -> None:
        self._stamps = stored.stamps
        self._files = Files(Path(stored.root))
        self._said: dict[str, Document | None] = {}

    def read(self, doc_id: str) -> Document | None:
        if doc_id in self._said:
            return self._said[doc_id]
        stamp = self._stamps.get(doc_id)
        data = cache.as_stored(self._files, doc_id, stamp) if stamp else None
        document = None if data is None else Document.parse(doc_id, data)
        if doc_id.startswith(EVIDENCE):
            self._said[doc_id] = document
        return document


# ── files ───────────────────────────────────────────────────────────────────────────────────────


def _link(source: Path, target: Path) -> None:
    """Put the files of an index into a new folder; tantivy replaces files and never writes into them."""
    for path in _files(source):
        copy = target / path.relative_to(source)
        copy.parent.mkdir(mode=0o700, exist_ok=True)
        try:
            os.link(path, copy)
        except OSError:  # a file system without links
            shutil.copyfile(path, copy)


def _files(folder: Path) -> Iterable[Path]:
    return sorted(path for path in folder.glob("*/*") if not path.name.endswith(".lock"))


def _sums(folder: Path, known: dict[str, int]) -> dict[str, int]:
    """The checksum of each file of an index; those that are linked are known."""
    found = {}
    for path in _files(folder):
        name = str(path.relative_to(folder))
        same = path.suffix != ".json" and name in known
        found[name] = known[name] if same else zlib.crc32(cache.mapped(path))
    return found
