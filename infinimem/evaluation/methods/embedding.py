"""The embedders of a run: each is connected to once, and embeds a text once."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from infinimem.embedders.connect import connect
from infinimem.errors import ModelNotConfigured, UsageError
from infinimem.evaluation.methods.spec import Spec
from infinimem.evaluation.spending import Booked, Counts, Spending
from infinimem.retrieval.rows import text_key
from infinimem.settings import EMBEDDERS, configuration

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from infinimem.embedders.base import Embedder

_LOCAL = ("static", "minilm", "lexical")
"""What stands in for an embedder that nobody named, the first that is installed."""
KEPT = 1 << 26
"""Numbers that are kept of vectors, 256 MB: those of some 170,000 turns by a small model."""


class Embedders:
    """Connects to embedders by name; threads may share them.

    Args:
        name: of the run's; None takes INFINIMEM_EMBEDDER, else what each method takes by itself. A model
            may follow: "openai/NAME".
        spending: of the run, where vectors that are paid for are booked.
    """

    def __init__(self, name: str | None = None, spending: Spending | None = None) -> None:
        self._spending = spending or Spending()
        self._settings = configuration().settings.embedder
        self.name = name or (self._settings.name if self._settings.name != "lexical" else None)
        self._lock = threading.RLock()
        self._known: dict[str, Embedding] = {}

    def memory(self, name: str | None) -> Embedder | None:
        """The embedder of a library; None where neither the method nor the run names one."""
        wanted = name or self.name
        return self._of(wanted).embedder if wanted else None

    def dense(self, name: str | None) -> Embedding:
        """The embedder of a baseline, which cannot do without."""
        with self._lock:
            return self._of(name or self.name or self._fallback)

    def named(self, spec: Spec) -> str | None:
        """The full name of what a method's vectors come from; None where it says nothing of that."""
        found = self._for(spec)
        return found.name if found else None

    def is_paid(self, spec: Spec) -> bool:
        """Whether the vectors of a method take tokens."""
        return isinstance(self._for(spec), Booked)

    def _for(self, spec: Spec) -> Embedder | None:
        if spec.way is not None:
            return self.memory(spec.embedder)
        return self.dense(spec.embedder).embedder if spec.takes_embedder else None

    def _of(self, name: str) -> Embedding:
        with self._lock:
            if name not in self._known:
                self._known[name] = Embedding(self._connect(name))
            return self._known[name]

    def _connect(self, name: str) -> Embedder:
        kind, _, model = name.partition("/")
        if model and kind in EMBEDDERS and kind != "openai":
            raise UsageError(f"the embedder {kind!r} has one model only; write {kind!r}, without a slash")
        found = connect(kind, replace(self._settings, model=model or None))
        return Booked(found, found, self._spending) if isinstance(found, Counts) else found

    @cached_property
    def _fallback(self) -> str:
        for name in _LOCAL[:-1]:
            try:
                self._of(name)
            except ModelNotConfigured:
                continue
            return name
        return _LOCAL[-1]


class Embedding:
    """An embedder that remembers: histories of one data set share sessions, and methods share texts.

    What is oldest is forgotten first.
    """

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self._lock = threading.Lock()
        self._rows: dict[bytes, NDArray[np.float32]] = {}

    def __len__(self) -> int:
        """Vectors that are kept."""
        return len(self._rows)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """A row of length 1 for each text."""
        import numpy as np

        keys = [text_key(text) for text in texts]
        with self._lock:
            new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._rows}
            if new:
                self._rows.update(zip(new, self.embedder.embed(list(new.values())), strict=True))
            rows = [self._rows[key] for key in keys]
            most = KEPT // max(self.embedder.size, 1)
            for key in list(islice(self._rows, max(len(self._rows) - most, 0))):  # the oldest
                del self._rows[key]
        return np.stack(rows) if rows else np.zeros((0, self.embedder.size), np.float32)
