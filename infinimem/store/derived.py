"""What is derived from a snapshot: made once, and handed to the next snapshot, which updates what changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

FAR = 1000
"""Changed documents after which what nobody asked for since is made anew rather than kept."""

T = TypeVar("T")
Derive = Callable[[Any, T | None, Collection[str] | None], T]
"""Is given a `View`; of one before it what it made there, and the ids of the documents that changed since, or
None and None. It changes neither."""


class Derived:
    """What was derived from one snapshot.

    Args:
        inherited: by the function that made it, from which documents it differs.
    """

    def __init__(self, inherited: Mapping[Derive[Any], tuple[Any, frozenset[str]]] | None = None) -> None:
        self._inherited = dict(inherited or {})
        self._made: dict[Derive[Any], Any] = {}

    def get(self, view: object, make: Derive[T]) -> T:
        if make not in self._made:
            known, changed = self._inherited.get(make, (None, None))
            self._made.setdefault(make, make(view, known, changed))
            self._inherited.pop(make, None)  # it may hold the snapshot that it was made of, and so on
        found: T = self._made[make]
        return found

    def handed_on(self, changed: Collection[str]) -> Derived:
        """What a snapshot begins with that differs in these documents."""
        own = {make: (found, frozenset(changed)) for make, found in self._made.copy().items()}
        older = {
            make: (found, was.union(changed))
            for make, (found, was) in self._inherited.copy().items()
            if make not in own and len(was) < FAR
        }
        return Derived(older | own)
