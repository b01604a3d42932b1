"""A dict whose copy costs nothing: copies share what neither changed (hash array mapped tries)."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Generic, TypeVar

from immutables import Map

K = TypeVar("K")
V = TypeVar("V")


class SharedDict(MutableMapping[K, V], Generic[K, V]):
    """As a dict, but in no order; changing one copy changes no other."""

    __slots__ = ("_held",)

    def __init__(self, held: Map[K, V] | None = None) -> None:
        self._held: Map[K, V] = Map() if held is None else held

    def copy(self) -> SharedDict[K, V]:
        return SharedDict(self._held)

    def __getitem__(self, key: K) -> V:
        return self._held[key]

    def __setitem__(self, key: K, value: V) -> None:
        self._held = self._held.set(key, value)

    def __delitem__(self, key: K) -> None:
        self._held = self._held.delete(key)

    def __contains__(self, key: object) -> bool:
        return key in self._held

    def __iter__(self) -> Iterator[K]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)
