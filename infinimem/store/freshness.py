"""What lies in a library now, without looking at every file at every call.

A small folder is listed at each call. Of a large one the listing is kept, and a call looks only at files of
which something says that they may have changed:

    dirty_list.py  what goes through infinimem, in any process: seen by the very next call
    watching.py    what other programs do: seen as soon as the system tells of it
    a rescan       BOUND seconds after the last one, where nothing is watched

Under the lock this is as safe as listing every file. What other processes wrote is known exactly. A save of a
person's that was not told of yet might as well come a moment later, and then the transaction, which looks at
the bytes that it replaces, finds it.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from infinimem.store.dirty_list import DirtyListReader
from infinimem.store.files import MAX_FILE, Files
from infinimem.store.listing import Stamp, state_of
from infinimem.store.watcher import MANY, ChangeSet, Watcher
from infinimem.store.watching import Survey, Watching

LARGE = 300
"""Documents up to which every call lists the folder: that takes a few milliseconds."""
BOUND = 2.0
"""Seconds until another program's edit is seen where nothing is watched. Nothing is before that either: most
processes do not live that long."""

FEW = 256
"""Ids that come and go at once and are put in their places one by one."""


@dataclass(frozen=True, eq=False)
class Listing:
    """The documents at one moment; the same object as long as nothing changes.

    Args:
        ids: sorted; the same object as long as none comes or goes.
        stamps: the state of each.
        oversized: the state of those that are passed over.
        key, before, news: what changed since the listing with the key `before`.
    """

    ids: tuple[str, ...] = ()
    stamps: Mapping[str, Stamp] = field(default_factory=dict)
    oversized: Mapping[str, Stamp] = field(default_factory=dict)
    key: object = field(default_factory=object)
    before: object = None
    news: Collection[str] = ()

    def since(self, older: Listing) -> Collection[str]:
        """Ids of the documents that are there in another state than in an older listing, or in one alone."""
        if self.before is older.key:
            return self.news
        return {doc_id for doc_id, _ in self.stamps.items() ^ older.stamps.items()}

    def state(self, doc_id: str) -> Stamp | None:
        """The state of any document, also of one that is passed over."""
        return self.stamps.get(doc_id) or self.oversized.get(doc_id)

    def below(self, folder: str) -> list[str]:
        """The ids of all that lies below a folder ("a/b/")."""
        end = f"{folder[:-1]}0"  # "0" comes after "/": the ids of a folder stand together
        found = self.ids[bisect_left(self.ids, folder) : bisect_left(self.ids, end)]
        return [*found, *(doc_id for doc_id in self.oversized if doc_id.startswith(folder))]

    def replaced(self, stamps: dict[str, Stamp], limit: Callable[[str], int]) -> Listing:
        """The listing with all documents anew.

        Args:
            stamps: the state of each.
            limit: the size over which one is passed over, by its id.
        """
        large = {doc_id: stamp for doc_id, stamp in stamps.items() if stamp.size > MAX_FILE}
        oversized = {doc_id: stamp for doc_id, stamp in large.items() if stamp.size > limit(doc_id)}
        for doc_id in oversized:
            del stamps[doc_id]
        if stamps == self.stamps and oversized == self.oversized:
            return self
        same = stamps.keys() == self.stamps.keys()
        return Listing(self.ids if same else tuple(sorted(stamps)), stamps, oversized)

    def changed(self, found: Mapping[str, Stamp | None], limit: Callable[[str], int]) -> Listing:
        """The listing with some documents anew.

        Args:
            found: the state of each; None for what is not there.
            limit: as for `replaced`.
        """
        news = {doc_id: stamp for doc_id, stamp in found.items() if stamp != self.state(doc_id)}
        if not news:
            return self
        stamps, oversized = dict(self.stamps), dict(self.oversized)
        for doc_id, stamp in news.items():
            large = stamp is not None and stamp.size > limit(doc_id)
            for states, holds in ((stamps, not large), (oversized, large)):
                if stamp is not None and holds:
                    states[doc_id] = stamp  # in its place: a dictionary with gaps is slow to copy
                else:
                    states.pop(doc_id, None)
        came = [doc_id for doc_id in news if doc_id in stamps and doc_id not in self.stamps]
        gone = [doc_id for doc_id in news if doc_id in self.stamps and doc_id not in stamps]
        return Listing(self._renamed(came, gone), stamps, oversized, before=self.key, news=news)

    def _renamed(self, came: Collection[str], gone: Collection[str]) -> tuple[str, ...]:
        """The ids with and without some; a few are put in their places, for sorting them all takes longer."""
        if not (came or gone):
            return self.ids
        if len(came) + len(gone) > FEW:
            return tuple(sorted({*self.ids, *came} - {*gone}))
        ids = list(self.ids)
        for doc_id in gone:
            del ids[bisect_left(ids, doc_id)]
        for doc_id in came:
            insort(ids, doc_id)
        return tuple(ids)


class Freshness:
    """Keeps the listing of one library.

    Args:
        files: the library's files.
        limit: the size over which a document is passed over, by its id.
        needed: see `listed`.
        watch: makes a watcher.
        large, bound, clock: for tests; see LARGE and BOUND. The clock is monotonic.
    """

    def __init__(
        self,
        files: Files,
        limit: Callable[[str], int],
        needed: Collection[str] = (),
        *,
        watch: Callable[[], Watcher] | None = None,
        large: int | None = None,
        bound: float = BOUND,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._files = files
        self._limit = limit
        self._needed = needed
        self._large = LARGE if large is None else large
        self._bound = bound
        self._clock = clock
        self._lock = threading.Lock()
        self._dirty_list = DirtyListReader(files.root)
        self._failures = 0
        self._doubted: set[str] = set()
        self._doubtful = True
        self._listing = Listing()
        self._scanned = 0.0
        self._watching = Watching(watch or (lambda: Watcher(files.root)), self._survey, clock)
        self._watched = False

    def look(self) -> Listing:
        """The documents as they are.

        Raises:
            LibraryError: a folder cannot be listed.
        """
        with self._lock:
            named = self._dirty_list.take()  # before any file is looked at
            told = None
            if not (named is None or self._doubtful or self._unsaid() or self._small()):
                told = self._told()
            self._doubtful = True  # if it fails: what was named is still to be looked at
            if named is None or told is None or told.lost:
                self._rescan()
            else:
                self._look_at({*named, *told.paths, *self._doubted}, told.folders)
            self._doubtful = False
            self._doubted.clear()
            return self._listing

    def wait(self, seconds: float) -> None:
        """Wait until a file may have changed, so long at most."""
        self._watched = True
        self._watching.wait(seconds)

    def stop(self) -> None:
        """Watch no more; the listing is kept fresh all the same."""
        self._watching.give_up()

    def doubt(self, path: str | None = None) -> None:
        """This file, or any, may have changed: the next look is at the file itself."""
        with self._lock:
            if path is None:
                self._doubtful = True
            else:
                self._doubted.add(path)

    def locked(self) -> None:
        """The lock was taken. Where no list tells what others wrote, the next look is at every file."""
        with self._lock:
            if self._dirty_list.missing:
                self._doubtful = True

    def _small(self) -> bool:
        return len(self._listing.ids) + len(self._listing.oversized) <= self._large

    def _unsaid(self) -> bool:
        """Whether this process wrote what it could not name."""
        before, self._failures = self._failures, self._files.dirty_list.failures
        return before != self._failures

    def _told(self) -> ChangeSet | None:
        """What other programs are known to have changed; None where it is time to look at everything."""
        late = self._clock() - self._scanned > self._bound
        self._watched = self._watched or late
        told = self._watching.hints() if self._watched else None
        return told or (None if late else ChangeSet())

    def _rescan(self) -> None:
        self._scanned = self._clock()
        stamps = self._files.scan(self._needed)
        self._listing = self._listing.replaced(stamps, self._limit)

    def _look_at(self, paths: Collection[str], folders: Collection[str]) -> None:
        if len(paths) > MANY:
            self._rescan()
        elif paths or folders:
            found = {path.removesuffix(".md"): state_of(self._files.root, path) for path in paths}
            for folder in folders:
                found.update(dict.fromkeys(self._listing.below(folder)))
                found.update(self._files.scan(self._needed, folder))
            self._listing = self._listing.changed(found, self._limit)

    def _survey(self) -> Survey:
        """Which files are otherwise than they are known to be. Called in a thread."""
        began = self._clock()
        stamps = self._files.scan(self._needed)
        known = self._listing
        other = [doc_id for doc_id, stamp in stamps.items() if known.state(doc_id) != stamp]
        other += (doc_id for doc_id in (*known.ids, *known.oversized) if doc_id not in stamps)
        if len(other) <= MANY:  # some were looked at meanwhile
            root = self._files.root
            other = [i for i in other if state_of(root, f"{i}.md") != self._listing.state(i)]
        return Survey([f"{doc_id}.md" for doc_id in other], self._clock() - began)
