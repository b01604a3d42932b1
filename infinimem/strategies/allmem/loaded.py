"""The bank and the space of the view that was asked for last: the next one costs what changed since."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from infinimem.store.view import View
from infinimem.strategies.allmem.record_store import Bank
from infinimem.strategies.allmem.vector_index import Space


class Loaded:
    """One bank and its space, for one thread at a time."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._view: View | None = None
        self._bank: Bank | None = None
        self._space: Space | None = None

    @contextmanager
    def at(self, view: View) -> Iterator[tuple[Bank, Space]]:
        """The bank as a view shows it, and where its units lie.

        The bank may be copied and is never edited; the space may follow a copy, and is set right next time.

        Raises:
            ModelUnavailable, ModelNotConfigured: of the embedder.
        """
        with self._lock:
            bank = self.bank(view)
            self._space = space = Space.of(view, self._space)
            if space.strayed:  # to look at every unit takes as long as to search them
                space.sync(bank)
            yield bank, space

    def bank(self, view: View) -> Bank:
        """The bank alone, which takes no embedder; it is never edited."""
        with self._lock:
            if self._bank is None or view is not self._view:
                self._bank, self._view = Bank.load(view, self._bank), view
                if self._space:
                    self._space.strayed = True
            return self._bank
