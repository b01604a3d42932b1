"""After a `forget`: does a byte or a name of it stand, in the library or in a cache? And what does git keep?

Other lines may say the same words in their own right. Those are named by number, not counted as left.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from infinimem.configuration import SETTINGS
from infinimem.errors import LibraryError
from infinimem.model import CURRENT
from infinimem.operations.forget.words import Texts
from infinimem.store.files import MAX_OWNED, Files
from infinimem.store.listing import explained
from infinimem.store.spec import MEMORIES
from infinimem.store.state import drawn, sequence, tails
from infinimem.store.view import OWNED
from infinimem.user_folders import caches

GIT = ".git"
STATE = ".infinimem/"
_OURS = (f"{CURRENT}.md", *OWNED, STATE)
_SILENT = frozenset(folder.rstrip("/") for folder in (*OWNED, MEMORIES, STATE)).union(
    (SETTINGS, ".gitignore", f"{STATE}.gitignore", f"{STATE}lock"),
    (tails.DOUBTFUL, sequence.MARK, sequence.GIVEN, drawn.PATH),
)
"""What is called so in every library, and holds no word of what was said."""


@dataclass(frozen=True)
class Left:
    """What holds some of the words still, why that is so, and what to do."""

    path: str
    why: str


def left(files: Files, texts: Texts, preview: bool = False) -> tuple[Left, ...]:
    """Files and folders in which any of it stands, but for lines that say the same in their own right.

    Args:
        files: of the library.
        texts: what was forgotten.
        preview: tell only what a `forget` will not touch.
    """
    found = []
    for path, data in [*stored(files), *_cached()]:
        ours = path.startswith(_OURS) or Path(path).is_absolute()
        name = Path(path).name
        if not preview and texts.within_text(name) if ours else texts.named(name):
            found.append(Left(path, "its name: rename it"))
        if preview and (ours or path.startswith(MEMORIES)):
            continue
        if data and (texts.holds(data) or (not ours and texts.named(data.decode("utf-8", "replace")))):
            note = not ours and not path.startswith(MEMORIES)
            found.append(
                Left(path, "a person's note: edit it" if note else "not taken out: edit or delete it")
            )
    return tuple(found)


def stored(files: Files, below: str = "") -> Iterator[tuple[str, bytes | None]]:
    """What lies in the library but in .git and where no word can be; of folders only the name.

    Args:
        below: only what lies in this folder.
    """
    for folder, folders, names in os.walk(files.root / below):
        folders[:] = sorted(name for name in folders if name != GIT)
        for name in (*folders, *sorted(names)):
            path = (Path(folder) / name).relative_to(files.root).as_posix()
            data = None
            with suppress(LibraryError):
                data = None if name in folders else files.read(path, MAX_OWNED)
            if path not in _SILENT:
                yield path, data


def _cached() -> Iterator[tuple[str, bytes]]:
    for cache in caches():
        for folder, _, names in os.walk(cache):
            for name in sorted(names):
                with explained("read", name):
                    yield str(Path(folder) / name), (Path(folder) / name).read_bytes()


def history(root: Path, paths: Iterable[str]) -> str:
    """What to do about git, where the library lies in a repository; "" where it does not.

    Args:
        root: the library.
        paths: files that held any of it, by the names that they had.
    """
    top = next((folder for folder in (root, *root.parents) if (folder / GIT).exists()), None)
    listed = sorted(paths)
    if top is None or not listed:
        return ""
    named = [(root / path).relative_to(top).as_posix() for path in listed]
    options = " ".join(f"--path {shlex.quote(name)}" for name in named)
    return (
        "git keeps what earlier commits held, here and in every clone; its history was not touched. To"
        " rewrite it: commit, copy the library somewhere safe, run"
        f" `git filter-repo --force --invert-paths {options}` in {shlex.quote(str(top))}, copy the files"
        " back, commit, push with --force, and have every clone made anew; messages that name a document"
        " are rewritten by --replace-message"
    )
