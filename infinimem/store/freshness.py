"""What lies in a library now, without looking at every file at every call: states, and parsed documents.

In: the folder. Out: a `DocumentStates`, the state of each document. What each call looks at and why that is
enough: docs/RELIABILITY.md, What a call sees.

Under the lock this is as safe as listing every file. A person's save that was not seen yet might as well
come a moment later, and then the transaction, which looks at the bytes that it replaces, finds it.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from infinimem.errors import LibraryError
from infinimem.markdown.document import Document, is_signed
from infinimem.store.files import MAX_FILE, MAX_OWNED, Files
from infinimem.store.folders import FolderListing, LeftOut, Stamp, folder_state, listed, state_of

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent
    from watchdog.observers.api import BaseObserver

SMALL = 300
"""Documents up to which every call looks at every one that is known: that takes a millisecond."""
BOUND = 2.0
"""Seconds until another program's edit in place is seen where nothing is watched, as at first nothing is."""
REST, SHARE = 30.0, 100
"""Seconds between two looks at every file where the folder is watched, or so many times what one takes."""
GRACE_NS = 3_000_000_000
"""Nanoseconds within which a watcher names an edit, at the latest."""

STEPS = 16
"""Listings before one of which it is known what changed since."""
MANY = 4096
"""Names of files that a watcher gives, after which looking at every file is quicker."""

_NOW = -math.inf
TOO_LARGE = "it is larger than tools read"


@dataclass(frozen=True, eq=False)
class DocumentStates:
    """The documents at one moment; the same object as long as nothing changes.

    `ids` are sorted, `oversized` those that are passed over; `steps` are the keys of some listings before
    this one, the last at the end, each with what changed after it.
    """

    ids: tuple[str, ...] = ()
    stamps: Mapping[str, Stamp] = field(default_factory=dict)
    oversized: Mapping[str, Stamp] = field(default_factory=dict)
    key: object = field(default_factory=object)
    steps: tuple[tuple[object, Collection[str]], ...] = ()

    def since(self, older: DocumentStates) -> Collection[str]:
        """Return ids of the documents that differ from an older listing, or stand in one alone."""
        if older is self:
            return ()
        news: set[str] = set()
        for key, names in reversed(self.steps):
            news.update(names)
            if key is older.key:
                return news
        return {doc_id for doc_id, _ in self.stamps.items() ^ older.stamps.items()}

    def state(self, doc_id: str) -> Stamp | None:
        """Return the state of any document, also of one that is passed over."""
        return self.stamps.get(doc_id) or self.oversized.get(doc_id)

    def changed(self, states: Mapping[str, Stamp | None], limit: Callable[[str], int]) -> DocumentStates:
        """Return the listing with these documents anew; None for what is not there."""
        news = {doc_id: stamp for doc_id, stamp in states.items() if stamp != self.state(doc_id)}
        if not news:
            return self
        stamps, oversized = dict(self.stamps), dict(self.oversized)
        for doc_id, stamp in news.items():
            stamps.pop(doc_id, None)
            oversized.pop(doc_id, None)
            if stamp is not None:
                is_large = stamp.size > MAX_FILE and stamp.size > limit(doc_id)
                (oversized if is_large else stamps)[doc_id] = stamp
        came = [doc_id for doc_id in news if doc_id in stamps and doc_id not in self.stamps]
        ids = self.ids
        if came or len(stamps) < len(ids):  # what is sorted but for the end is sorted quickly
            ids = tuple(sorted([*(doc_id for doc_id in ids if doc_id in stamps), *came]))
        steps = (*self.steps, (self.key, news))[-STEPS:] if self.ids else ()
        return DocumentStates(ids, stamps, oversized, steps=steps)


class Freshness:
    """Keeps the states of one library's documents; `limit` is the size over which one is passed over.

    The watcher names edited files; `small` and the monotonic clock are for tests.
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
        self.watcher = watcher or Watcher(files.root)
        self._small = SMALL if small is None else small
        self._clock = clock
        self._lock = threading.Lock()
        self._listing = DocumentStates()
        self._folders: dict[str, FolderListing] = {}
        self._doubted: set[str] = set()
        self._due = _NOW
        self._relied = False

    def look(self) -> DocumentStates:
        """Return the documents as they are; raise a LibraryError if a folder cannot be listed."""
        with self._lock:
            was_relied = self._relied
            if self._clock() >= self._due > _NOW and not self._is_small():
                self.watcher.begin()  # in a process that lives for some time
            if self.watcher.living != self._relied:
                self._relied = not self._relied
                self._due = _NOW  # what changed before it watched, or since it does not, was not named
            named = self.watcher.take() if self._relied else frozenset()
            due = _NOW if named is None else self._due
            self._due = _NOW  # if it fails: what was named is still to be looked at
            if self._folders:
                self._look_at_some(named or ())
            if (began := self._clock()) >= due:
                self._look_at_all(judged=was_relied and named is not None)
                rests = self.watcher.living and named is not None
                due = began + (max(REST, SHARE * (self._clock() - began)) if rests else BOUND)
            self._due = due
            return self._listing

    def passed_over(self) -> dict[str, str]:
        """Return why the last look passed over what it did, by its path."""
        with self._lock:
            passed = {path: why for one in self._folders.values() for path, why in one.passed.items()}
            large = dict.fromkeys((f"{doc_id}.md" for doc_id in self._listing.oversized), TOO_LARGE)
        return dict(sorted((passed | large).items()))

    def doubt(self, path: str | None = None) -> None:
        """Have the next look be at the file itself, or at all of them."""
        with self._lock:
            if path is None:
                self._due = _NOW
            else:
                self._doubted.add(path)

    def _is_small(self) -> bool:
        return len(self._listing.stamps) + len(self._listing.oversized) <= self._small

    def _look_at_some(self, named: Collection[str]) -> None:
        root = self._files.root
        doubted, self._doubted = {*named, *self._doubted}, set()
        while self._files.written:
            doubted.add(self._files.written.popleft())
        states: dict[str, Stamp | None] = {}
        for folder, known in list(self._folders.items()):
            state, now = self._files.states.get(folder), None
            with suppress(OSError):  # whoever lists it finds out
                now = folder_state(os.lstat(f"{root}/{folder.removesuffix('/')}"))
            if folder in self._folders and (state is None or state != now):
                new = listed(root, self._needed, folder, skip=self._folders, left_out=self._left_out)
                gone = {*known.folders}.difference(new[folder].folders if folder in new else ())
                for name in [folder, *(one for one in self._folders if one.startswith(tuple(gone)))]:
                    states.update(dict.fromkeys(self._folders.pop(name).documents))
                    self._files.states.pop(name, None)
                states.update(self._known(new))
        for listing in self._folders.values() if self._is_small() else ():
            for doc_id, known_as in listing.documents.items():
                with suppress(OSError):  # `state_of` finds out, also a link on the way
                    info = os.lstat(f"{root}/{doc_id}.md")
                    if (info.st_mtime_ns, info.st_size, info.st_ino) == known_as:
                        continue
                doubted.add(f"{doc_id}.md")
        for path in doubted:
            doc_id = path.removesuffix(".md")
            folder = path[: path.rfind("/") + 1]
            one = self._folders.get(folder)
            if one and {path, folder}.isdisjoint(one.passed):
                states[doc_id] = stamp = state_of(root, path)
                if stamp is None:
                    one.documents.pop(doc_id, None)
                else:
                    one.documents[doc_id] = stamp
        self._listing = self._listing.changed(states, self._limit)

    def _known(self, new: Mapping[str, FolderListing]) -> dict[str, Stamp]:
        self._folders.update(new)
        self._files.states.update((name, one.state) for name, one in new.items() if one.state)
        return {doc_id: stamp for one in new.values() for doc_id, stamp in one.documents.items()}

    def _look_at_all(self, judged: bool) -> None:
        """Look at every file; `judged` if the watcher should have named what is found only now."""
        before = self._listing
        self._files.written.clear()
        self._doubted.clear()
        self._folders.clear()
        self._files.states.clear()
        new = listed(self._files.root, self._needed, left_out=self._left_out)
        gone: dict[str, Stamp | None] = dict.fromkeys([*before.stamps, *before.oversized])
        self._listing = before.changed(gone | self._known(new), self._limit)
        then = time.time_ns() - GRACE_NS  # a watcher would have named an edit in place before that
        changed = self._listing.since(before) if judged else ()
        pairs = ((before.state(doc_id), self._listing.state(doc_id)) for doc_id in changed)
        if any(old and new and old.inode == new.inode and new.mtime_ns < then for old, new in pairs):
            self.watcher.stop()  # a folder on a network, or a kind of edit that no system tells


class Parsed:
    """Documents as last read: each state of a file that is kept is parsed once."""

    def __init__(self, files: Files, initialised: bool) -> None:
        self._files = files
        self._initialised = initialised
        self._kept: dict[str, tuple[Stamp, Document]] = {}
        self._written: Mapping[str, Document | None] = {}

    def owned(self, doc_id: str) -> bool:
        """Return whether the program writes it."""
        return self._initialised and is_signed(doc_id)

    def limit(self, doc_id: str) -> int:
        """Return the size in bytes over which it is not read."""
        return MAX_OWNED if self.owned(doc_id) else MAX_FILE

    def load(self, doc_id: str, state: Stamp, keep: bool) -> tuple[Document, bool]:
        """Return the document, empty if it may not be read, and whether it is in the state that was listed.

        It stays parsed if it is to be kept: a library may hold more notes than memory does. A LibraryError if
        one of the program's own cannot be read.
        """
        known = self._kept.get(doc_id)
        if known is not None and known[0] == state:
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
            self._kept[doc_id] = stamp, document
        return document, stamp == state

    def written(self, documents: Mapping[str, Document | None]) -> None:
        """Take over what a transaction wrote: a document read with these very bytes is not scanned again."""
        self._written = documents
        for doc_id in (doc_id for doc_id, document in documents.items() if document is None):
            self._kept.pop(doc_id, None)

    def grown(self, before: Stamp, after: Stamp, tail: Document) -> None:
        """Take over what was appended to a document; what was read of it before is not read again."""
        known = self._kept.get(tail.id)
        if known and known[0] == before:
            self._kept[tail.id] = after, known[1].grown(tail)


class Watcher:
    """Hears from the system which files below a folder were edited, in threads; some edits it never tells."""

    def __init__(self, root: Path) -> None:
        self._root = f"{root}/"
        self._lock = threading.Lock()
        self._paths: set[str] = set()
        self._begun = self._ended = False
        self._observer: BaseObserver | None = None
        self._woken = threading.Event()

    def begin(self) -> None:
        """Begin to watch, once, in a thread: it walks through all folders. Earlier changes are unnamed."""
        if not self._begun:
            self._begun = True
            threading.Thread(target=self._start, name="infinimem-watch", daemon=True).start()

    def stop(self) -> None:
        self._begun = self._ended = True
        observer, self._observer = self._observer, None
        if observer is not None:
            _stop(observer)

    @property
    def living(self) -> bool:
        """Whether it watches; not so in a forked child, nor once the folder is gone."""
        observer = self._observer
        return observer is not None and observer.is_alive() and all(e.is_alive() for e in observer.emitters)

    def take(self) -> Collection[str] | None:
        """Return the files that may have changed since the last call; None for any, if too many."""
        with self._lock:
            named, self._paths = self._paths, set()
        return None if len(named) > MANY else named

    def wait(self, seconds: float) -> None:
        """Wait until anything changes in the folder, or so long."""
        self.begin()
        self._woken.wait(seconds)
        self._woken.clear()

    def _start(self) -> None:
        from watchdog import events
        from watchdog.observers import Observer

        # What it says of its bookkeeping is not for people's terminals; a handler for its log gets it.
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"watchdog\.")
        if not (log := logging.getLogger("watchdog")).handlers:
            log.addHandler(logging.NullHandler())
        reference = weakref.WeakMethod(self._hear)

        class Handler(events.FileSystemEventHandler):
            def on_any_event(self, event: FileSystemEvent) -> None:
                if (hear := reference()) is not None:
                    hear(event)

        names = [f"{what}{how}Event" for what in ("File", "Dir") for how in ("Created", "Deleted", "Moved")]
        names += ["FileModifiedEvent", "FileAttribEvent"]  # the last of a new time alone, in some versions
        kinds = [getattr(events, name) for name in names if hasattr(events, name)]
        observer = Observer()
        observer.daemon = True
        try:
            observer.schedule(Handler(), self._root.rstrip("/") or "/", recursive=True, event_filter=kinds)
            observer.start()
        except Exception:  # each system has its own: no more watches, no such call
            _stop(observer)
            return
        weakref.finalize(self, _stop, observer).atexit = False
        self._observer = observer
        if self._ended:
            self.stop()

    def _hear(self, event: FileSystemEvent) -> None:
        for name in (event.src_path, event.dest_path):
            path = os.fsdecode(name)
            if path.endswith(".md") and path.startswith(self._root):
                with self._lock:
                    if len(self._paths) <= MANY:
                        self._paths.add(path[len(self._root) :])
        self._woken.set()


def _stop(observer: BaseObserver) -> None:
    with suppress(RuntimeError):  # it never ran
        observer.stop()
