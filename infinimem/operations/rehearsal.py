"""A library in a folder of its own that goes when the block ends: what would happen, happens there.

It lies in the cache, so that a `forget` takes it away, and has the library's vectors, which may have been
paid for.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

from infinimem.errors import LibraryError, UsageError
from infinimem.model import Receipt
from infinimem.operations.as_of import Moment, as_of
from infinimem.store import sequence, state
from infinimem.store.files import MAX_OWNED, Files
from infinimem.store.folders import is_inside
from infinimem.store.library import Clock, Library
from infinimem.store.receipts import last_forget, named
from infinimem.store.spec import JOURNAL
from infinimem.store.view import View
from infinimem.user_folders import SETTINGS, cache_folder, delete_cache

_STATE = (".infinimem/", ".infinimem/withheld/")
_NONE = MappingProxyType[str, bytes]({})


@contextmanager
def copied(library: Library, clock: Clock, others: Mapping[str, bytes] = _NONE) -> Iterator[Library]:
    """Give the same library elsewhere, with the same machine state; `others` are files of the copy, by path.

    LibraryError if the library cannot be written to, or lines were forgotten in it meanwhile.
    """
    files, root = library.files, str(library.files.root)
    with TemporaryDirectory(dir=cache_folder(root, "rehearsal"), ignore_cleanup_errors=True) as place:
        there = Files(Path(place))
        with library.locked() as view:
            names = [SETTINGS, *(below + name for below in _STATE for name in files.names(below[:-1]))]
            names += () if others else (f"{doc_id}.md" for doc_id in view.ids("all"))
            for name in {*names, *others}:
                data = others[name] if name in others else files.read(name, MAX_OWNED)
                if data is not None and is_inside(name):
                    there.stage(name, data, durable=False)
                    if info := files.lstat(name):  # how long lines have waited in the buffer may count
                        os.utime(there.root / name, ns=(info.st_mtime_ns, info.st_mtime_ns))
        state.check(there, claim=True)
        vectors, copies = (cache_folder(one, "vectors") for one in (root, place))
        if vectors and copies:
            with suppress(OSError, shutil.Error):
                shutil.copytree(vectors, copies, dirs_exist_ok=True)
        try:
            yield library.elsewhere(there.root, clock)
        finally:
            delete_cache(place)
            if last_forget(library.view()) != last_forget(view):
                raise LibraryError("lines were forgotten meanwhile; do it again")


@contextmanager
def before(
    library: Library, name: str, model: str, made: Sized
) -> Iterator[tuple[Library, Sequence[Receipt]]]:
    """Give the library as it stood before a receipt, and the receipts from that on.

    The time there is that of the receipt; of each that is `made` there, that of the next. UsageError if there
    is no such receipt, or another strategy or model made it.
    """
    view, receipts = library.view(), library.receipts()
    first = named(receipts, name)
    if (first.strategy, first.model) != (library.spec.name, model):
        raise UsageError(
            f"{first.id} was made by {first.strategy} with the model {first.model}; choose these"
        )
    done = receipts[receipts.index(first) :]
    past = as_of(view, Moment(first.number - 1, first.high))
    files = {f"{doc_id}.md": past.document(doc_id).to_bytes() for doc_id in past.ids("all")}
    files |= {sequence.MARK: b"%d\n" % first.high, sequence.GIVEN: b""}

    def clock() -> datetime:
        return datetime.fromisoformat(done[min(len(made), len(done) - 1)].time)

    with copied(library, clock, files) as there:
        yield there, done


def differences(was: View, now: View) -> dict[str, tuple[bytes, bytes]]:
    """The program's documents that differ, but for receipts: bytes in either view."""
    both = ({one: view.document(one).to_bytes() for one in view.ids("all")} for view in (was, now))
    old, new = ({one: data for one, data in each.items() if not one.startswith(JOURNAL)} for each in both)
    pairs = {one: (old.get(one, b""), new.get(one, b"")) for one in sorted({**old, **new})}
    return {one: pair for one, pair in pairs.items() if pair[0] != pair[1]}


def changed(made: Sequence[Receipt], done: Sequence[Receipt]) -> tuple[str, ...]:
    """Ids of documents that receipts left otherwise than others did before them, pair by pair."""
    if not made:
        return (done[0].id,)
    new, old = ([{(name, now) for name, _, now in one.files} for one in each] for each in (made, done))
    differ = set().union(*(one ^ other for one, other in zip(new, old, strict=False)))
    return tuple(sorted({name for name, _ in differ}))
