"""The index of a large library, in the cache directory: built once, then changed document by document.

    manifest.json     the segments with what of them is dead, and tantivy's folder: the commit point
    segment.<16 hex>  one segment's columns
    lexical.<16 hex>  tantivy's folder

A process overlays what changed since the last commit in memory; when that is much it commits, unless another
does. What dies is deleted in tantivy a commit later, so that whoever reads the manifest before finds it.
"""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Collection, Iterator
from contextlib import ExitStack, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from infinimem.model import Located
from infinimem.retrieval import cache
from infinimem.retrieval.committed import Changes, Committed, Comparison
from infinimem.retrieval.index import Indexed, RowLines, Shelves, write_index
from infinimem.retrieval.lexical import nowhere
from infinimem.retrieval.origins import KnownLines, Origins, precedence
from infinimem.retrieval.pieces import Pieces
from infinimem.retrieval.rows import Rows
from infinimem.retrieval.segment_file import read_segment
from infinimem.retrieval.tantivy_index import TantivyIndex
from infinimem.store.view import View
from infinimem.terms import analyzer

LAYOUT = 5
"""Of files and rows: raise it when either changes, and indexes are built anew."""

SLOW = 1000
"""Documents whose indexing people wait for, and are told so."""

log = logging.getLogger("infinimem")


class DiskIndex:
    """The index of one library, for one process; its threads take turns.

    Args:
        folder: as `cache.cache_folder` gave it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._turns = threading.Lock()
        self._newest: Committed | None = None
        self._comparison = Comparison(None)

    def of(self, view: View) -> Indexed:
        """The index of a snapshot.

        Raises:
            OSError, ValueError: there is none yet, and none can be written.
        """
        with self._turns:
            kind = "library" if view.initialised else "notes"
            layout = f"{LAYOUT} {kind} {analyzer(view.settings.search.language).fingerprint}"
            comparison = self._compared(self._open(layout))
            changes = comparison.changes(view)
            newest = view.stored is not None and view.stored.newest()
            if newest and (comparison.committed is None or changes.many):
                comparison = self._compared(self._committed(comparison.committed, view, layout))
                changes = comparison.changes(view)
            if comparison.committed is None:
                raise OSError("nothing is indexed yet, and this snapshot is an old one")
            return overlaid(comparison.committed, changes, view)

    def _compared(self, committed: Committed | None) -> Comparison:
        """What compares snapshots with a commit."""
        if committed is None or self._comparison.committed is not committed:
            self._comparison = Comparison(committed)
        return self._comparison

    def _open(self, layout: str) -> Committed | None:
        """The newest commit."""
        for _ in range(3):
            manifest = cache.read_manifest(self._folder, layout)
            if manifest is None:
                return None
            if self._newest is None or self._newest.manifest != manifest:
                # A newer commit may have swept a file: look again. What is garbled is built anew.
                with suppress(OSError, ValueError, LookupError, TypeError):
                    segments = tuple(read_segment(self._folder, row) for row in manifest["segments"])
                    engine = TantivyIndex(self._folder / manifest["lexical"], new=False)
                    found = Committed(manifest, segments, engine)
                    if len(engine) < found.alive:
                        raise ValueError("tantivy holds too little")
                    if cache.read_manifest(self._folder, layout) == manifest:
                        self._newest = found
            if self._newest is not None and self._newest.manifest == manifest:
                return self._newest
        return None

    def _committed(self, old: Committed | None, view: View, layout: str) -> Committed:
        """A commit that holds the snapshot; the old one where another process is writing it."""
        with ExitStack() as held:
            mine = held.enter_context(cache.exclusive(self._folder, wait=False))
            if not mine and old is None:
                log.warning("another process is indexing; waiting for it")
                mine = held.enter_context(cache.exclusive(self._folder, wait=True))
                if not mine:
                    raise OSError("it cannot be locked")
            if not mine and old is not None:
                return old
            old = self._open(layout)  # what another process may have done meanwhile
            changes = self._compared(old).changes(view)
            if old is None or changes.many:
                try:
                    self._write(old, changes, view, layout)
                except (OSError, ValueError):
                    if old is None:
                        raise
                    log.warning(
                        "the index in %s cannot be written; what is new is kept in memory", self._folder
                    )
                    return old
            found = self._open(layout)
        if found is None:
            raise OSError(f"{self._folder} cannot be read")
        return found

    def _write(self, old: Committed | None, changes: Changes, view: View, layout: str) -> None:
        """Commit what changed. The caller holds the lock."""
        folder, uid = self._folder, int(old.manifest["uid"]) if old else 1
        base: Rows | None = None
        if old:
            lexical, gone = old.manifest["lexical"], old.manifest["gone"]
            dead = old.dead_without(changes.changed | changes.gone)
            again = {doc_id for doc_id in old.stale(dead) if doc_id in view}
            changes = Changes(changes.changed | again, changes.gone, changes.size)
            dead = old.dead_without(changes.changed | changes.gone)
            rows, dying = _kept(old, dead)
            base = Rows(old.segments, dead)
        else:
            if len(changes.changed) > SLOW:
                log.warning("indexing %d documents; this is done once", len(changes.changed))
            lexical, gone, rows, dying = cache.new_name("lexical"), [], [], []
        pieces = _pieces(view, changes.changed, base)
        built, uid = write_index(folder, lexical, view, pieces, sorted(changes.changed), uid, gone)
        rows += built
        manifest = {"format": layout, "uid": uid, "lexical": lexical, "gone": dying, "segments": rows}
        cache.write_manifest(folder, manifest)
        cache.sweep(folder, [row["file"] for row in rows])
        for other_folder in folder.iterdir():
            if other_folder.is_dir() and other_folder.name != lexical:
                shutil.rmtree(other_folder, ignore_errors=True)


@lru_cache(maxsize=8)
def disk_index(folder: Path) -> DiskIndex:
    """The one of a folder."""
    return DiskIndex(folder)


def overlaid(committed: Committed, changes: Changes, view: View) -> Indexed:
    """The index of a snapshot: a commit, and over it in memory what changed since."""
    dead = committed.dead_without(changes.changed | changes.gone)
    pieces = _pieces(view, changes.changed, Rows(committed.segments, dead))
    shelves = Shelves(view, pieces, nowhere, int(committed.manifest["uid"]))
    for document in view.each(sorted(changes.changed)):
        shelves.add(document)
    over = shelves.finish()
    rows = Rows([*committed.segments, *over], [*dead, *([()] * len(over))], overlaid=len(over))
    return Indexed(view, rows, committed.engine, RowLines(rows, view.is_note))


def _pieces(view: View, changed: Collection[str], base: Rows | None) -> Pieces:
    """Reads documents while their rows are made: evidence is looked up in what changed, then in `base`."""
    lines = KnownLines(_places(view, changed), RowLines(base, view.is_note) if base else None)
    return Pieces(view, Origins(view, lines))


def _places(view: View, doc_ids: Collection[str]) -> Iterator[Located]:
    owned = (doc_id for doc_id in doc_ids if not view.is_note(doc_id))
    for document in view.each(sorted(owned, key=precedence)):
        yield from document.entries


def _kept(old: Committed, dead: list[frozenset[int]]) -> tuple[list[dict[str, Any]], list[int]]:
    """The segments that stay, and the uids of the parts that died since."""
    rows: list[dict[str, Any]] = []
    gone: list[int] = []
    for row, segment, before, now in zip(old.manifest["segments"], old.segments, old.dead, dead, strict=True):
        gone += [int(segment.parts[part]["uid"]) for part in sorted(now - before)]
        if len(now) < len(segment.parts):
            rows.append({**row, "dead": sorted(now)})
    return rows, gone
