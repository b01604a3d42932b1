"""What a disk may hold after the power failed, worked out from the calls that were made.

    Cache         what is certain at a moment, and what is pending: written and not yet synced
    fates         a choice of what became of each pending operation: kept, lost or torn
    cache.tree    the folder as it is found then
    plant         that folder, on a real disk

The model is strict POSIX. A file's fsync makes its bytes durable, not its name; a folder's fsync makes the
changes of its names durable, and of a rename over two folders either one's will do. Unsynced writes may be
whole, absent, cut short or NULs, in any order; an unsynced change of names is there or not, but never where
one that it builds on is not.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

Slot = tuple[int, str]
"""A name in a folder: the folder's node, and the name."""
Tree = Mapping[str, bytes | None]
"""Files by path; None is a folder."""

ROOT = 0


@dataclass(frozen=True)
class Names:
    """Names that from now on mean these nodes, all at once; None is a name no more."""

    changes: tuple[tuple[Slot, int | None], ...]
    what: str

    @property
    def slots(self) -> set[Slot]:
        return {slot for slot, _ in self.changes}


@dataclass(frozen=True)
class Write:
    """Bytes written into a file."""

    node: int
    offset: int
    data: bytes
    what: str


@dataclass(frozen=True)
class Cut:
    """A file made shorter."""

    node: int
    size: int
    what: str


@dataclass(frozen=True)
class Sync:
    """A file or a folder made durable. `role` tells which of the program's syncs this is."""

    node: int
    role: str
    what: str


Change = Names | Write | Cut
Op = Change | Sync
Fate = Callable[[bytes], bytes]
"""What became of the bytes of a write."""


def whole(data: bytes) -> bytes:
    return data


def nuls(data: bytes) -> bytes:
    return bytes(len(data))


def short(data: bytes, size: int, padded: bool) -> bytes:
    return data[:size] + bytes(len(data) - size if padded else 0)


class Cache:
    """A disk in the middle of a run: what is durable, and the operations that are pending, oldest first."""

    def __init__(
        self,
        files: Mapping[int, bytes],
        names: Mapping[Slot, int],
        folders: Collection[int],
        pending: Mapping[int, Change] | None = None,
    ) -> None:
        self.files = dict(files)
        self.names = dict(names)
        self.folders = folders
        self.pending = dict(pending or {})

    def copy(self) -> Cache:
        return Cache(self.files, self.names, self.folders, self.pending)

    def take(self, number: int, op: Op) -> None:
        """The operation with this number in the log happens."""
        if not isinstance(op, Sync):
            self.pending[number] = op
            return
        settled = set()
        needed: set[Slot] = set()
        for earlier, change in reversed(self.pending.items()):
            if not isinstance(change, Names):
                if change.node == op.node:
                    settled.add(earlier)
            elif change.slots & needed or any(folder == op.node for folder, _ in change.slots):
                settled.add(earlier)
                needed |= change.slots
        self.files, self.names = self._after(dict.fromkeys(settled, whole))
        self.pending = {n: change for n, change in self.pending.items() if n not in settled}

    def _after(self, fates: Mapping[int, Fate]) -> tuple[dict[int, bytes], dict[Slot, int]]:
        files, names = dict(self.files), dict(self.names)
        missing: set[Slot] = set()
        for number, change in self.pending.items():
            fate = fates.get(number)
            if isinstance(change, Names):
                if fate is None or change.slots & missing:
                    missing |= change.slots
                    continue
                for slot, node in change.changes:
                    if node is None:
                        names.pop(slot, None)
                    else:
                        names[slot] = node
            elif fate is not None:
                old = files.get(change.node, b"")
                if isinstance(change, Cut):
                    files[change.node] = old[: change.size]
                elif new := fate(change.data):
                    start, end = change.offset, change.offset + len(new)
                    files[change.node] = old[:start].ljust(start, b"\0") + new + old[end:]
        return files, names

    def tree(self, fates: Mapping[int, Fate]) -> dict[str, bytes | None]:
        """The folder after a restart.

        Args:
            fates: the pending operations that reached the disk, by number; all others did not. For a
                change of names any fate means that it did.
        """
        files, names = self._after(fates)
        inside: dict[int, list[tuple[str, int]]] = {}
        for (folder, name), node in names.items():
            inside.setdefault(folder, []).append((name, node))
        found: dict[str, bytes | None] = {}
        ways = [("", ROOT)]
        while ways:
            way, folder = ways.pop()
            for name, node in inside.get(folder, ()):
                if node in self.folders:
                    found[f"{way}{name}"] = None
                    ways.append((f"{way}{name}/", node))
                else:
                    found[f"{way}{name}"] = files.get(node, b"")
        return found


def plant(tree: Tree, root: Path) -> None:
    """Make `root` this very folder."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    for path, data in sorted(tree.items()):
        if data is None:
            (root / path).mkdir()
        else:
            (root / path).write_bytes(data)


def torn(data: bytes, chance: random.Random) -> Fate:
    """What may become of a write: cut short at any byte, better at a line's end, or NULs."""
    ends = [at + 1 for at, byte in enumerate(data) if byte == 10]
    size = chance.choice([0, 1, len(data) - 1, chance.randrange(len(data) + 1), *ends[:-1]])
    padded = chance.random() < 0.5
    return nuls if size == 0 else lambda data: short(data, size, padded)


KINDS = ("none", "one missing", "one only", "half of it", "no later", "last torn", "torn")


def fates(cache: Cache, chance: random.Random, among: Sequence[int] = (), kind: str = "") -> dict[int, Fate]:
    """One choice of what reached the disk.

    Args:
        cache: the disk when the power failed.
        chance: what decides.
        among: the pending operations to decide about, all others reach it; if none, all of them.
        kind: one of KINDS; any, if none.
    """
    numbers = list(among or cache.pending)
    kept: dict[int, Fate] = dict.fromkeys(cache.pending, whole)
    if not numbers:
        return kept
    kind = kind or chance.choice(KINDS)
    one = chance.choice(numbers)
    gone: dict[str, set[int]] = {
        "none": set(numbers),
        "one missing": {one},
        "one only": set(numbers) - {one},
        "half of it": {number for number in numbers if chance.random() < 0.5},
        "no later": {number for number in numbers if number > one},
    }
    writes = {n: change.data for n in numbers if isinstance(change := cache.pending[n], Write)}
    last = max(writes, default=0)
    for number in numbers:
        if number in gone.get(kind, ()):
            del kept[number]
        elif number in writes and (kind == "torn" or (kind == "last torn" and number == last)):
            kept[number] = torn(writes[number], chance)
    return kept
