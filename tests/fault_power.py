"""What a disk may hold after the power failed, worked out from the calls that were made.

    Cache         what is certain at a moment, and what is pending: written and not yet synced
    fates         a choice of what became of each pending operation: kept, lost or torn
    cache.tree    the folder as it is found then
    plant         that folder, on a real disk

The model is strict POSIX. A file's fsync makes its bytes durable, not its name; a folder's fsync makes the
changes of its names durable, and of a rename over two folders either one's will do. Unsynced writes may be
whole, absent, cut short or NULs, in any order; an unsynced change of names is there or not, but never where
one that it builds on is not.

And a run written down: every call that it made of the disk, in order, and what it had promised by then.

    tape = Tape(root); with tape.recording(): …
    tape.caches()      the disk after each of the calls
    tape.caches(role)  the same of a build in which the syncs of one role do nothing
"""

from __future__ import annotations

import random
import re
import shutil
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch
from zlib import crc32

import fault_disk
from fault_disk import Call, hooked

from infinimem.model import Turn
from infinimem.store import disk, state
from infinimem.store.disk import At, Folder

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


@contextmanager
def anywhere() -> Iterator[None]:
    """What is planted is no copy, but the library of the run itself."""
    with patch.object(state, "_place", lambda files: "here"):  # private: a machine that starts again
        yield


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


UNLOGGED = frozenset({".infinimem/lock", state.PATH, f"{state.PATH}-journal"})
"""Files written without the log: one whose bytes mean nothing after a restart, and what SQLite writes."""


@dataclass(frozen=True)
class Promise:
    """What must hold, whenever the power fails from now on.

    Args:
        lines: text by seq of what was acknowledged and not deleted by a person since.
        places: the document in which a line was said to be.
        receipts: ids of the receipts that were returned.
        given: every seq that was ever acknowledged.
        struck: evidence that was drawn from and whose entry a person deleted; it is not drawn from again.
        saying: turns whose recording has begun and was not acknowledged; said again, they stand once.
        prose: what a person saved into some document.
        waiting: lines of which a person is to be asked.
        ready: whether the library was said to be made.
    """

    lines: Mapping[int, str] = field(default_factory=dict)
    places: Mapping[int, str] = field(default_factory=dict)
    receipts: frozenset[str] = frozenset()
    given: frozenset[int] = frozenset()
    struck: frozenset[int] = frozenset()
    saying: tuple[Turn, ...] = ()
    prose: frozenset[str] = frozenset()
    waiting: frozenset[int] = frozenset()
    ready: bool = False


class Tape:
    """A run on a real folder, whose every change of the disk is written down.

    Args:
        root: the folder; what it holds now counts as durable.
        promise: what was promised before the power failed; the run is in another boot then.
    """

    def __init__(self, root: Path, promise: Promise | None = None) -> None:
        self.root = root
        self._boot = "the boot between" if promise else "the boot before"
        self.ops: list[Op] = []
        self.texts: dict[int, set[str]] = {}
        """Every text that a seq ever had, by seq: not even before it was promised may half of one stand."""
        self.promises: list[tuple[int, Promise]] = [(0, promise or Promise())]
        self.folders = {ROOT}
        self._start: dict[int, bytes] = {}
        self._first: dict[Slot, int] = {}
        self._nodes = 1
        for path in sorted(root.rglob("*")):
            slot, node = self._slot(str(path.relative_to(root)), self._first), self._new()
            self._first[slot] = node
            if path.is_dir():
                self.folders.add(node)
            else:
                self._start[node] = path.read_bytes()
        self.states: list[tuple[int, bytes]] = []
        """The machine state, each with the number of calls made by then: SQLite writes it, never synced."""
        self._look()
        self._names = dict(self._first)
        """As the program sees it."""
        self._sizes = {node: len(data) for node, data in self._start.items()}
        self._open: dict[int, tuple[int, int | None, str]] = {}

    # ── recording ───────────────────────────────────────────────────────────────────────────────

    @property
    def promise(self) -> Promise:
        return self.promises[-1][1]

    @promise.setter
    def promise(self, promise: Promise) -> None:
        self._look()
        self.promises.append((len(self.ops), promise))

    def _look(self) -> None:
        path = self.root / state.PATH
        data = path.read_bytes() if path.is_file() else b""
        if data != (self.states[-1][1] if self.states else b""):
            self.states.append((len(self.ops), data))

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Write down the calls made inside."""
        with patch.object(disk, "boot", lambda: self._boot), anywhere(), hooked(self._note):
            yield
        if strays := self.strays():
            raise AssertionError(f"written past store/disk.py: {', '.join(strays)}")

    def strays(self) -> list[str]:
        """Paths at which the folder is not what the log makes of it."""
        cache = self.caches()[-1]
        logged = cache.tree(dict.fromkeys(cache.pending, whole))
        real = {
            str(path.relative_to(self.root)): None if path.is_dir() else path.read_bytes()
            for path in self.root.rglob("*")
        }
        missing = object()
        return sorted(
            path
            for path in {*logged, *real} - UNLOGGED
            if logged.get(path, missing) != real.get(path, missing)
        )

    def _note(self, call: Call) -> Any:
        noted: Callable[..., Any] = getattr(self, f"_{call.name}")
        self._look()
        return noted(call.made, *call.args)

    def _new(self) -> int:
        self._nodes += 1
        return self._nodes - 1

    def _slot(self, path: str, names: Mapping[Slot, int] | None = None) -> Slot:
        *folders, name = path.split("/")
        here = ROOT
        for folder in folders:
            here = (self._names if names is None else names)[here, folder]
        return here, name

    def _change(self, what: str, *changes: tuple[Slot, int | None]) -> None:
        self.ops.append(Names(changes, what))
        for slot, node in changes:
            if node is None:
                del self._names[slot]
            else:
                self._names[slot] = node

    def _made(self, path: str) -> int:
        node = self._new()
        self._sizes[node] = 0
        self._change(f"create {path}", (self._slot(path), node))
        return node

    def _open_append(self, made: Any, at: At) -> int:
        descriptor: int = made(at)
        slot = self._slot(at.path)
        node = self._names[slot] if slot in self._names else self._made(at.path)
        self._open[descriptor] = (node, None, at.path)
        return descriptor

    def _open_new(self, made: Any, at: At) -> int:
        descriptor: int = made(at)
        slot = self._slot(at.path)
        node = self._names[slot] if slot in self._names else self._made(at.path)
        self._open[descriptor] = (node, 0, at.path)
        if self._sizes[node]:
            self._sizes[node] = 0
            self.ops.append(Cut(node, 0, f"empty {at.path}"))
        return descriptor

    def _overwrite(self, made: Any, at: At, data: bytes) -> None:
        made(at, data)
        slot = self._slot(at.path)
        node = self._names[slot] if slot in self._names else self._made(at.path)
        self._sizes[node] = max(self._sizes[node], len(data))
        self.ops.append(Write(node, 0, data, f"overwrite {len(data)} bytes of {at.path}"))

    def _write(self, made: Any, descriptor: int, data: bytes | memoryview) -> int:
        count: int = made(descriptor, data)
        node, at, path = self._open[descriptor]
        offset = self._sizes[node] if at is None else at
        self.ops.append(Write(node, offset, bytes(data[:count]), f"write {count} bytes to {path}"))
        self._sizes[node] = max(self._sizes[node], offset + count)
        self._open[descriptor] = (node, None if at is None else at + count, path)
        return count

    def _truncate(self, made: Any, descriptor: int, size: int) -> None:
        made(descriptor, size)
        node, _, path = self._open[descriptor]
        self._sizes[node] = size
        self.ops.append(Cut(node, size, f"cut {path} to {size} bytes"))

    def _sync(self, made: Any, descriptor: int) -> None:
        made(descriptor)
        node, _, path = self._open[descriptor]
        self.ops.append(Sync(node, self._role("file", path.rpartition("/")[0]), f"sync {path}"))

    def _sync_folder(self, made: Any, folder: Folder) -> None:
        made(folder)
        node = self._names[self._slot(folder.path)] if folder.path else ROOT
        self.ops.append(Sync(node, self._role("folder", folder.path), f"sync {folder.path}"))

    def _role(self, kind: str, folder: str) -> str:
        """Which sync this is: the function that wanted something durable, the one that syncs, and where.

        "" for a sync that is not the program's.
        """
        frame: Any = sys._getframe()
        while frame.f_code.co_filename in (__file__, fault_disk.__file__):
            frame = frame.f_back
        if not frame.f_globals["__name__"].startswith("infinimem."):
            return ""
        inner = frame.f_code.co_name
        if inner != "make_folder":
            while Path(frame.f_code.co_filename).name in ("files.py", "contextlib.py"):
                frame = frame.f_back
        where = re.sub(r"\d+", "N", folder)
        return f"{frame.f_code.co_name} > {inner}: {kind} in {where}/, line {frame.f_lineno}"

    def _rename(self, made: Any, old: At, new: At) -> None:
        made(old, new)
        one, other = self._slot(old.path), self._slot(new.path)
        self._change(f"rename {old.path} {new.path}", (other, self._names[one]), (one, None))

    def _put(self, made: Any, old: At, new: At) -> None:
        made(old, new)
        one, other = self._slot(old.path), self._slot(new.path)
        self._change(f"put {old.path} {new.path}", (other, self._names[one]), (one, None))

    def _exchange(self, made: Any, one: At, other: At) -> None:
        made(one, other)
        a, b = self._slot(one.path), self._slot(other.path)
        self._change(f"exchange {one.path} {other.path}", (a, self._names[b]), (b, self._names[a]))

    def _unlink(self, made: Any, at: At) -> None:
        made(at)
        slot = self._slot(at.path)
        if slot in self._names:
            self._change(f"unlink {at.path}", (slot, None))

    def _make_folder(self, made: Any, at: At) -> None:
        made(at)
        slot = self._slot(at.path)
        if slot not in self._names:
            node = self._new()
            self.folders.add(node)
            self._change(f"make folder {at.path}", (slot, node))

    def _touch(self, made: Any, folder: Folder) -> Any:
        return made(folder)  # after a loss of power no process is left that goes by a time from before

    def _remove_folder(self, made: Any, at: At) -> None:
        made(at)
        self._change(f"remove folder {at.path}", (self._slot(at.path), None))

    # ── playing back ────────────────────────────────────────────────────────────────────────────

    def roles(self) -> list[str]:
        """All syncs of the run by what they are for, sorted."""
        return sorted({op.role for op in self.ops if isinstance(op, Sync) and op.role})

    def promised(self, point: int) -> Promise:
        """What had been promised when `point` operations were done."""
        return next(promise for since, promise in reversed(self.promises) if since <= point)

    def tree(self, cache: Cache, point: int, kept: Mapping[int, Fate]) -> dict[str, bytes | None]:
        """The folder after a restart, with the machine state as it was, older, torn, cut, or lost."""
        tree = cache.tree(kept)
        tree.pop(state.PATH, None)
        there = [data for since, data in self.states if since <= point]
        if there and ".infinimem" in tree:
            chance = random.Random(crc32(repr((point, sorted(kept))).encode()))
            new, old = there[-1], chance.choice(there)
            pages = range(0, max(len(new), len(old)), 4096)
            torn = b"".join(chance.choice((new, old, bytes(len(new))))[at : at + 4096] for at in pages)
            data = chance.choice((new, new, old, torn, new[: chance.randrange(len(new) + 1)], b""))
            tree |= {state.PATH: data} if data else {}
            tree |= {f"{state.PATH}-journal": bytes(512)} if chance.random() < 0.2 else {}
        return tree

    def has_state(self, root: Path, point: int) -> bool:
        """Whether the machine state lies there as it was at that point."""
        path, there = root / state.PATH, [data for since, data in self.states if since <= point]
        return bool(there) and path.is_file() and path.read_bytes() == there[-1]

    def caches(self, without: str | None = None) -> Sequence[Cache]:
        """The disk after 0, 1, 2 … operations; in a build where the syncs of one role do nothing."""
        cache = Cache(self._start, self._first, self.folders)
        found = [cache]
        for number, op in enumerate(self.ops):
            cache = cache.copy()
            if not (isinstance(op, Sync) and op.role == without):
                cache.take(number, op)
            found.append(cache)
        return found
