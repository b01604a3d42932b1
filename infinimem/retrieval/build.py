"""Writing rows of documents into an index's folder; a first build is shared with other processes.

What another process builds is people's notes, which hang on nothing else in the library. It writes into a
folder of its own, and whoever asked for it takes over the files.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infinimem.errors import LibraryError
from infinimem.markdown.document import Document
from infinimem.retrieval import cache
from infinimem.retrieval.building import Shelves
from infinimem.retrieval.columns import Segment
from infinimem.retrieval.origins import KnownLines, Origins
from infinimem.retrieval.pieces import Pieces
from infinimem.retrieval.segment_file import write_segment
from infinimem.retrieval.tantivy_index import TantivyIndex
from infinimem.store.files import Files
from infinimem.store.listing import Stamp
from infinimem.store.view import View

WORTH_SHARING = 5000
"""Notes for which starting another process pays."""
MOST_PROCESSES = 4


@dataclass(frozen=True)
class Built:
    """What was written.

    Args:
        rows: of the manifest, one a segment.
        lexical: name of tantivy's folder.
        uid: the first that no part has.
        left: documents that were not built.
    """

    rows: Sequence[dict[str, Any]]
    lexical: str
    uid: int
    left: Sequence[str] = ()


def build(
    folder: Path,
    lexical: str,
    view: View,
    pieces: Pieces,
    doc_ids: Iterable[str],
    uid: int,
    gone: Collection[int] = (),
    plain: bool = False,
) -> Built:
    """Write segments, and change tantivy's index. The caller holds the lock of the folder.

    Args:
        folder: of the index.
        lexical: name of tantivy's folder in it, made if missing.
        view: the snapshot that the documents are of.
        pieces: reads them.
        doc_ids: in the order in which they are to stand.
        uid: of the first part; what tantivy has from there on was never committed, and goes.
        gone: uids of parts that no commit names any more.
        plain: leave out documents that hold entries.

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
    left: list[str] = []

    def keep(segment: Segment) -> None:
        rows.append(write_segment(folder, segment))

    shelves = Shelves(view, pieces, writer.add, uid, keep)
    for doc_id in doc_ids:
        document = as_stored(files, doc_id, stored.stamps[doc_id])
        if document is None:
            continue  # it counts as changed, and is looked at again
        if plain and document.entries:
            left.append(doc_id)
        else:
            shelves.add(document, stored.stamps[doc_id])
    for segment in shelves.finish():
        keep(segment)
    writer.commit()
    return Built(rows, lexical, shelves.uid, left)


def as_stored(files: Files, doc_id: str, stamp: Stamp) -> Document | None:
    """A document read from its file, if that can be read and is in the state that the snapshot says.

    What is held in memory may be of before a `forget`, and must not come back into the cache.
    """
    try:
        data, found = files.read_stamped(f"{doc_id}.md", stamp.size)
    except LibraryError:
        return None
    return Document.parse(doc_id, data) if found == stamp else None


class Other:
    """A process that builds some notes. Making one may raise an OSError.

    Args:
        folder: of the index; the process writes into a new one in it.
        root: of the library.
        doc_ids: the notes.
        uid: of the first part.
    """

    def __init__(self, folder: Path, root: str, doc_ids: Sequence[str], uid: int) -> None:
        self._folder = folder
        self._doc_ids = doc_ids
        self._own = folder / cache.new_name("builder")
        self._own.mkdir(mode=0o700)
        self._job = json.dumps({"folder": str(self._own), "root": root, "ids": doc_ids, "uid": uid})
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "infinimem.retrieval.build"],  # nothing of the working directory
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdin
        with suppress(OSError):  # it died already; `result` says so
            self._process.stdin.write(self._job)
            self._process.stdin.close()

    def result(self) -> Built:
        """What it built, once it is done; nothing of it where it failed."""
        assert self._process.stdout
        said = self._process.stdout.read()
        try:
            if self._process.wait() == 0:
                found = json.loads(said)
                for name in (*(row["file"] for row in found["rows"]), found["lexical"]):
                    (self._own / name).rename(self._folder / name)
                return Built(found["rows"], found["lexical"], found["uid"], found["left"])
        except (OSError, ValueError, KeyError):
            pass
        return Built((), "", 0, self._doc_ids)

    def stop(self) -> None:
        """Let it go, done or not."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if stream:
                    stream.close()


def shares(view: View, doc_ids: Collection[str], uid: int) -> tuple[list[str], list[tuple[list[str], int]]]:
    """The documents that this process builds; for each other one its notes, and the uid of the first part."""
    notes = sorted(doc_id for doc_id in doc_ids if view.is_note(doc_id))
    processes = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1, MOST_PROCESSES)
    if len(notes) < WORTH_SHARING or processes < 2:
        return sorted(doc_ids), []
    size = -(-len(notes) // processes)
    own = sorted({*doc_ids} - {*notes[size:]})
    uid += 2 * len(own)  # no document has more than two parts
    others = [notes[first : first + size] for first in range(size, len(notes), size)]
    return own, [(ids, uid + 2 * size * number) for number, ids in enumerate(others)]


def main() -> None:
    """Build what standard input asks for, and say on standard output what was built."""
    from infinimem.store.library import Library

    job = json.load(sys.stdin)
    view = Library(Path(job["root"])).view()
    wanted = [doc_id for doc_id in job["ids"] if doc_id in view and view.is_note(doc_id)]
    folder = Path(job["folder"])
    pieces = Pieces(view, Origins(view, KnownLines(())))
    with cache.exclusive(folder, wait=False) as mine:
        if not mine:
            sys.exit(1)
        built = build(folder, cache.new_name("lexical"), view, pieces, wanted, job["uid"], plain=True)
    missed = [*built.left, *set(job["ids"]).difference(wanted).intersection(view.ids("all"))]
    json.dump(
        {"rows": built.rows, "lexical": built.lexical, "uid": built.uid, "left": sorted(missed)}, sys.stdout
    )


if __name__ == "__main__":
    main()
