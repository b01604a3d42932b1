"""What lies in a library now, without looking at every file at every call.

In: the folder. Out: a `Listing`, the state of each document. A call looks at

    folder times    of all folders: what came, went or was renamed, by anybody, is seen by the next call. So
                    is what infinimem writes in any process, for it touches the folder of what it wrote
    named files     those that the watcher named, or somebody doubts
    known files     in a small library: what another program wrote in place
    every file      in a new process, and BOUND seconds after the last such look where nothing is watched: in
                    a larger library only this sees what another program wrote in place

Under the lock this is as safe as listing every file. What other processes of infinimem wrote is known
exactly. A person's save that was not seen yet might as well come a moment later, and then the transaction,
which looks at the bytes that it replaces, finds it. For the same reason a writer that `is_recent` may record
turns by looking at the files alone that they go to.
"""

from __future__ import annotations

import math
import os
import threading
import time
from bisect import insort
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from immutables import Map

from infinimem.store.files import MAX_FILE, Files
from infinimem.store.listing import FolderState, LeftOut, Listed, Stamp, folder_state, listed, state_of
from infinimem.store.watcher import Watcher

SMALL = 300
"""Documents up to which every call looks at every one that is known: that takes a millisecond."""
BOUND = 2.0
"""Seconds until another program's edit in place is seen where nothing is watched. Nothing is before that
either: most processes do not live that long."""
REST, SHARE = 30.0, 100
"""Seconds between two looks at every file where the folder is watched, or so many times what one takes."""
GRACE_NS = 3_000_000_000
"""Nanoseconds within which a watcher names an edit, at the latest."""

_NOW = -math.inf
TOO_LARGE = "it is larger than tools read"


@dataclass(frozen=True, eq=False)
class Listing:
    """The documents at one moment; the same object as long as nothing changes.

    Args:
        ids: sorted; the same object as long as none comes or goes.
        stamps: the state of each; what did not change is shared with the listing before.
        oversized: the state of those that are passed over.
        key, before, news: what changed since the listing with the key `before`.
    """

    ids: tuple[str, ...] = ()
    stamps: Map[str, Stamp] = field(default_factory=Map)
    oversized: Mapping[str, Stamp] = field(default_factory=dict)
    key: object = field(default_factory=object)
    before: object = None
    news: Collection[str] = ()

    def since(self, older: Listing) -> Collection[str]:
        """Ids of the documents that are there in another state than in an older listing, or in one alone."""
        if older is self:
            return ()
        if self.before is older.key:
            return self.news
        return _differing(self.stamps, older.stamps)

    def state(self, doc_id: str) -> Stamp | None:
        """The state of any document, also of one that is passed over."""
        return self.stamps.get(doc_id) or self.oversized.get(doc_id)

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
        if not _differing(stamps, self.stamps) and oversized == self.oversized:
            return self
        ids = tuple(sorted(stamps))
        return Listing(self.ids if ids == self.ids else ids, Map(stamps), oversized)

    def changed(self, found: Mapping[str, Stamp | None], limit: Callable[[str], int]) -> Listing:
        """The listing with some documents anew.

        Args:
            found: the state of each; None for what is not there.
            limit: as for `replaced`.
        """
        news = {doc_id: stamp for doc_id, stamp in found.items() if stamp != self.state(doc_id)}
        if not news:
            return self
        stamps, oversized = self.stamps.mutate(), dict(self.oversized)
        for doc_id, stamp in news.items():
            stamps.pop(doc_id, None)
            oversized.pop(doc_id, None)
            if stamp is not None:
                (oversized if stamp.size > limit(doc_id) else stamps)[doc_id] = stamp
        came = [doc_id for doc_id in news if doc_id in stamps and doc_id not in self.stamps]
        gone = {doc_id for doc_id in news if doc_id in self.stamps and doc_id not in stamps}
        return Listing(_with(self.ids, came, gone), stamps.finish(), oversized, before=self.key, news=news)


def _differing(now: Mapping[str, Stamp], before: Mapping[str, Stamp]) -> set[str]:
    """Ids of the documents that are in another state, or in one of both alone."""
    gone = {doc_id for doc_id in before if doc_id not in now}
    return gone | {doc_id for doc_id, stamp in now.items() if before.get(doc_id) != stamp}


def _with(ids: tuple[str, ...], came: Iterable[str], gone: Collection[str]) -> tuple[str, ...]:
    """Sorted ids with some more, and without others."""
    if not (came or gone):
        return ids
    new = [doc_id for doc_id in ids if doc_id not in gone] if gone else list(ids)
    for doc_id in came:
        insort(new, doc_id)
    return tuple(new)


class Freshness:
    """Keeps the listing of one library.

    Args:
        files: the library's files.
        limit: the size over which a document is passed over, by its id.
        needed, left_out: see `listed`.
        watcher: names files that are edited; default is one for the folder.
        small, clock: for tests; see SMALL. The clock is monotonic.
    """

    def __init__(
        self,
        files: Files,
        limit: Callable[[str], int],
        needed: Collection[str] = (),
        left_out: LeftOut | None = None,
        *,
        watcher: Watcher | None = None,
        small: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._files = files
        self._limit = limit
        self._needed, self._left_out = needed, left_out
        self._watcher = watcher or Watcher(files.root)
        self._small = SMALL if small is None else small
        self._clock = clock
        self._lock = threading.Lock()
        self._listing = Listing()
        self._folders: dict[str, Listed] = {}
        self._doubted: set[str] = set()
        self._due = _NOW
        self._relied = False
        self._looked = _NOW

    def is_recent(self, but: str) -> bool:
        """Whether the last look was less than BOUND seconds ago, and one at all but this folder would find
        nothing now; in many documents only what came, went or was renamed is found."""
        if self._due <= _NOW or self._doubted or self._clock() >= self._looked + BOUND:
            return False
        others = [folder for folder in self._folders if not folder.startswith(but)]
        if any(self._files.states.get(folder) != self._state(folder) for folder in others):
            return False
        return not (self._is_small() and any(self._edited(others)))

    def look(self) -> Listing:
        """The documents as they are.

        Raises:
            LibraryError: a folder cannot be listed.
        """
        with self._lock:
            was_relied = self._relied
            self._attend()
            named = self._watcher.take() if self._relied else frozenset()
            due = _NOW if named is None else self._due
            self._due = _NOW  # if it fails: what was named is still to be looked at
            if self._folders:
                self._look_at_some(named or ())
            if (began := self._clock()) >= due:
                self._look_at_all(judged=was_relied and named is not None)
                rests = self._watcher.living and named is not None
                due = began + (max(REST, SHARE * (self._clock() - began)) if rests else BOUND)
            self._due, self._looked = due, began
            return self._listing

    def passed_over(self) -> dict[str, str]:
        """What the last look passed over, by its path, and why."""
        with self._lock:
            found = {path: why for one in self._folders.values() for path, why in one.passed.items()}
            large = dict.fromkeys((f"{doc_id}.md" for doc_id in self._listing.oversized), TOO_LARGE)
        return dict(sorted((found | large).items()))

    def wait(self, seconds: float) -> None:
        """Wait until a file may have changed, so long at most."""
        self._watcher.begin()
        self._watcher.wait(seconds)

    def stop(self) -> None:
        """Watch no more; the listing is kept fresh all the same."""
        self._watcher.stop()

    def doubt(self, path: str | None = None) -> None:
        """This file, or any, may have changed: the next look is at the file itself."""
        with self._lock:
            if path is None:
                self._due = _NOW
            else:
                self._doubted.add(path)

    def _is_small(self) -> bool:
        return len(self._listing.stamps) + len(self._listing.oversized) <= self._small

    def _attend(self) -> None:
        """Begin to watch in a process that lives for some time; rely on the watcher while it lives."""
        if self._clock() >= self._due > _NOW and not self._is_small():
            self._watcher.begin()
        if self._watcher.living != self._relied:
            self._relied = not self._relied
            self._due = _NOW  # what changed before it watched, or since it does not, was not named

    def _look_at_some(self, named: Collection[str]) -> None:
        """Look at folders whose times changed, and at files that were named, doubted, or written by us."""
        doubted, self._doubted = {*named, *self._doubted}, set()
        while self._files.written:
            doubted.add(self._files.written.popleft())
        found: dict[str, Stamp | None] = {}
        for folder, known in list(self._folders.items()):
            state = self._files.states.get(folder)
            if state is None or state != self._state(folder):
                found.update(dict.fromkeys(known.documents))
                found.update(self._listed_again(folder))
        if self._is_small():
            doubted.update(self._edited(self._folders))
        for path in doubted:
            doc_id = path.removesuffix(".md")
            one = self._folders.get(path[: path.rfind("/") + 1])
            if one and path not in one.passed:
                found[doc_id] = stamp = state_of(self._files.root, path)
                if stamp is None:
                    one.documents.pop(doc_id, None)
                else:
                    one.documents[doc_id] = stamp
        self._listing = self._listing.changed(found, self._limit)

    def _listed_again(self, folder: str) -> dict[str, Stamp]:
        """The documents of a folder, and of new folders in it; none where it is gone."""
        new = listed(self._files.root, self._needed, folder, skip=self._folders, left_out=self._left_out)
        del self._folders[folder]
        self._files.states.pop(folder, None)
        return self._known(new)

    def _known(self, new: Mapping[str, Listed]) -> dict[str, Stamp]:
        """Note folders as they were listed; returns the documents in them."""
        self._folders.update(new)
        self._files.states.update((name, one.state) for name, one in new.items() if one.state)
        return {doc_id: stamp for one in new.values() for doc_id, stamp in one.documents.items()}

    def _edited(self, folders: Iterable[str]) -> Iterator[str]:
        """The paths of their files whose state is another; a link on the way is found out by `state_of`."""
        for folder in folders:
            for doc_id, known in self._folders[folder].documents.items():
                path = f"{doc_id}.md"
                try:
                    info = os.lstat(f"{self._files.root}/{path}")
                except OSError:
                    yield path
                else:
                    if (info.st_mtime_ns, info.st_size, info.st_ino) != known:
                        yield path

    def _state(self, folder: str) -> FolderState | None:
        try:
            return folder_state(os.lstat(f"{self._files.root}/{folder.removesuffix('/')}"))
        except OSError:  # whoever lists it finds out
            return None

    def _look_at_all(self, judged: bool) -> None:
        """Look at every file.

        Args:
            judged: whether the watcher should have named what is found only now.
        """
        before = self._listing
        self._files.written.clear()
        self._doubted.clear()
        self._folders.clear()
        self._files.states.clear()
        new = listed(self._files.root, self._needed, left_out=self._left_out)
        self._listing = before.replaced(self._known(new), self._limit)
        if judged and self._unnamed(before):  # a folder on a network, or a kind of edit that no system tells
            self._watcher.stop()

    def _unnamed(self, before: Listing) -> bool:
        """Whether a file was edited in place, and so long ago that a watcher would have named it."""
        then = time.time_ns() - GRACE_NS
        pairs = ((before.state(i), self._listing.state(i)) for i in self._listing.since(before))
        return any(old and new and old.inode == new.inode and new.mtime_ns < then for old, new in pairs)
