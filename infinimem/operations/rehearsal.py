"""A library in a folder of its own that goes when the block ends: what would happen, happens there.

It lies in the cache, so that a `forget` takes it away, and has the library's vectors, which may have been
paid for.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

from infinimem.errors import LibraryError
from infinimem.retrieval.cache import cache_folder, delete_cache
from infinimem.store.files import MAX_OWNED, Files
from infinimem.store.folders import is_inside
from infinimem.store.library import Clock, Library
from infinimem.store.receipts import last_forget
from infinimem.user_folders import SETTINGS

_STATE = (".infinimem/", ".infinimem/withheld/")
_NONE = MappingProxyType[str, bytes]({})


@contextmanager
def copied(library: Library, clock: Clock, others: Mapping[str, bytes] = _NONE) -> Iterator[Library]:
    """The same library elsewhere, with the same machine state.

    Args:
        library: it is not changed.
        clock: of the copy.
        others: files of the copy, by path, in the place of documents and of machine state of the same name.

    Raises:
        LibraryError: the library cannot be written to, or lines were forgotten in it meanwhile.
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
