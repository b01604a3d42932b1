"""The operating system's word on which files of a folder were edited. A hint: some edits it never tells.

watchdog does the watching, in threads of its own; nothing else of the package knows it.
"""

from __future__ import annotations

import logging
import os
import threading
import warnings
import weakref
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent
    from watchdog.observers.api import BaseObserver

MANY = 4096
"""Names after which looking at every file is quicker."""


class Watcher:
    """Watches the files below a folder, in threads that end with the process.

    Args:
        root: the folder.
    """

    def __init__(self, root: Path) -> None:
        self._root = f"{root}/"
        self._lock = threading.Lock()
        self._paths: set[str] = set()
        self._begun = self._ended = False
        self._observer: BaseObserver | None = None
        self._woken = threading.Event()

    def begin(self) -> None:
        """Begin to watch, once; soon it is living, or never, where the system has no more watches to give.

        It is done in a thread, for it walks through all folders. What changed before is not named.
        """
        if not self._begun:
            self._begun = True
            threading.Thread(target=self._start, name="infinimem-watch", daemon=True).start()

    def stop(self) -> None:
        """Watch no more."""
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
        """The files that may have changed since the last call; None for any, where there were too many."""
        with self._lock:
            named, self._paths = self._paths, set()
        return None if len(named) > MANY else named

    def wait(self, seconds: float) -> None:
        """Wait until anything changes in the folder, so long at most; so long where it is not watched."""
        self._woken.wait(seconds)
        self._woken.clear()

    def _start(self) -> None:
        from watchdog import events
        from watchdog.observers import Observer

        _hush()
        attributes = getattr(events, "FileAttribEvent", events.FileModifiedEvent)  # a new time alone
        told = weakref.WeakMethod(self._hear)

        class Handler(events.FileSystemEventHandler):
            def on_any_event(self, event: FileSystemEvent) -> None:
                if (hear := told()) is not None:
                    hear(event)

        kinds = [
            events.FileCreatedEvent,
            events.FileModifiedEvent,
            attributes,
            events.FileDeletedEvent,
            events.FileMovedEvent,
            events.DirCreatedEvent,
            events.DirDeletedEvent,
            events.DirMovedEvent,
        ]
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
        """Called in a thread of watchdog's."""
        for name in (event.src_path, event.dest_path):
            path = os.fsdecode(name)
            if path.endswith(".md") and path.startswith(self._root):
                self.tell(path[len(self._root) :])
        self._woken.set()

    def tell(self, path: str) -> None:
        """A file may have changed."""
        with self._lock:
            if len(self._paths) <= MANY:
                self._paths.add(path)


def _stop(observer: BaseObserver) -> None:
    with suppress(RuntimeError):  # it never ran
        observer.stop()


def _hush() -> None:
    """Keep what watchdog says of its own bookkeeping from people's terminals: of folders that come and go
    quickly, and of being stopped. Who has a handler for its log still gets it."""
    warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"watchdog\.")
    if not (log := logging.getLogger("watchdog")).handlers:
        log.addHandler(logging.NullHandler())
