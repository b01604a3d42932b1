"""The operating system's word on which files of a folder changed. A hint: some changes it never tells.

watchdog does the watching, in threads of its own; nothing else of the package knows it.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import warnings
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infinimem.store.listing import shows

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent
    from watchdog.observers.api import BaseObserver

MANY = 4096
"""Names after which looking at every file is quicker."""
GRACE = 3.0
"""Seconds within which a change is told at the latest. watchdog keeps a move's first half for half a second,
to find the other."""

_OVERFLOW = "watchdog.observers.inotify_c"
"""The logger that warns when the kernel dropped events: watchdog 7 tells of it in no other way, older ones
not at all."""


@dataclass(frozen=True)
class ChangeSet:
    """What changed since it was asked last.

    Args:
        paths: of files.
        folders: of which all below may have changed ("a/b/").
        lost: events were dropped; anything may have changed.
    """

    paths: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()
    lost: bool = False


class Watcher:
    """Watches the documents below a folder.

    Args:
        root: the folder.
        clock: seconds, monotonic.
    """

    def __init__(self, root: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._root = f"{root}/"
        self._clock = clock
        self._lock = threading.Lock()
        self._paths: set[str] = set()
        self._folders: set[str] = set()
        self._lost = False
        self._heard: set[str] = set()
        self._missed: set[str] = set()
        self._missed_at = 0.0
        self._observer: BaseObserver | None = None
        self._overflow: logging.Handler | None = None
        self._woken = threading.Event()

    def start(self) -> bool:
        """Begin to watch, in threads that end with the process; False where that cannot be.

        It lists the folder once. What changed before it returns may not be told.
        """
        try:
            self._start()
        except Exception:  # each system has its own: no more watches, no such call, no such module
            self.stop()
            return False
        return True

    def _start(self) -> None:
        from watchdog import events
        from watchdog.observers import Observer

        _hush()
        attributes = getattr(events, "FileAttribEvent", events.FileModifiedEvent)  # a new time alone
        hear = self._hear

        class Handler(events.FileSystemEventHandler):
            def on_any_event(self, event: FileSystemEvent) -> None:
                hear(event)

        observer = Observer()
        observer.daemon = True
        self._overflow = _Warned(self.lose)
        logging.getLogger(_OVERFLOW).addHandler(self._overflow)
        self._observer = observer
        observer.schedule(
            Handler(),
            self._root.rstrip("/") or "/",
            recursive=True,
            event_filter=[
                events.FileCreatedEvent,
                events.FileModifiedEvent,
                attributes,
                events.FileDeletedEvent,
                events.FileMovedEvent,
                events.DirCreatedEvent,
                events.DirDeletedEvent,
                events.DirMovedEvent,
            ],
        )
        observer.start()

    def stop(self) -> None:
        """End the watching."""
        observer, self._observer = self._observer, None
        if self._overflow is not None:
            logging.getLogger(_OVERFLOW).removeHandler(self._overflow)
        if observer is not None:
            with suppress(RuntimeError):  # it never ran
                observer.stop()

    @property
    def living(self) -> bool:
        """Whether it still watches; not so in a forked child, nor once the folder is gone."""
        observer = self._observer
        return observer is not None and observer.is_alive() and all(e.is_alive() for e in observer.emitters)

    def take(self) -> ChangeSet:
        """What was told since the last call."""
        with self._lock:
            told = ChangeSet(frozenset(self._paths), frozenset(self._folders), self._lost)
            self._paths.clear()
            self._folders.clear()
            self._lost = False
        return told

    def wait(self, seconds: float) -> bool:
        """Wait until something is told; False if nothing was. `take` gives it."""
        told = self._woken.wait(seconds)
        self._woken.clear()
        return told

    def lose(self) -> None:
        """Events were dropped."""
        with self._lock:
            self._lost = True
            self._missed.clear()
        self._woken.set()

    # ── whether it can be relied on ─────────────────────────────────────────────────────────────

    def listen(self) -> None:
        """Somebody begins to find out what has changed."""
        with self._lock:
            self._heard = {*self._paths, *self._folders}

    def report(self, paths: Collection[str], expected: bool) -> None:
        """They found that these files have; now that is told as well.

        Args:
            paths: of files.
            expected: it was to be told. Of which nothing is told soon, nothing ever will be.
        """
        with self._lock:
            folders = tuple(path for path in self._heard if path.endswith("/"))
            if expected and not self._lost and len(self._heard) <= MANY:
                self._missed = {
                    path for path in paths if path not in self._heard and not path.startswith(folders)
                }
                self._missed_at = self._clock()
            self._paths.update(paths)
            self._bounded()

    @property
    def deaf(self) -> bool:
        """Whether changes were not told: a folder on a network, or more folders than may be watched."""
        with self._lock:
            return bool(self._missed) and self._clock() - self._missed_at > GRACE

    # ── events ──────────────────────────────────────────────────────────────────────────────────

    def _hear(self, event: FileSystemEvent) -> None:
        """Called in a thread of watchdog's."""
        for name in (event.src_path, event.dest_path):
            path = os.fsdecode(name)
            if path.startswith(self._root):
                self.tell(path[len(self._root) :], event.is_directory)

    def tell(self, path: str, is_folder: bool = False) -> None:
        """A file, or all in a folder, may have changed."""
        if is_folder:
            if "/." in f"/{path}" or not path.isprintable():
                return
        elif not shows(path):
            return
        with self._lock:
            (self._folders if is_folder else self._paths).add(name := f"{path}/" if is_folder else path)
            self._heard.add(name)
            self._missed = {missed for missed in self._missed if not missed.startswith(name)}
            self._bounded()
        self._woken.set()

    def _bounded(self) -> None:
        if len(self._paths) + len(self._folders) > MANY:
            self._lost = True
            self._paths.clear()
            self._folders.clear()
        if len(self._heard) > 2 * MANY:  # so many that `report` judges nothing by them
            self._heard = set(islice(self._heard, MANY + 1))


def _hush() -> None:
    """Keep what watchdog says of its own bookkeeping from people's terminals: of folders that come and go
    quickly, and of being stopped. Who has a handler for its log still gets it."""
    warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"watchdog\.")
    if not (log := logging.getLogger("watchdog")).handlers:
        log.addHandler(logging.NullHandler())


class _Warned(logging.Handler):
    """Turns a warning into a call."""

    def __init__(self, call: Callable[[], None]) -> None:
        super().__init__(logging.WARNING)
        self._call = call

    def emit(self, record: Any) -> None:
        self._call()
