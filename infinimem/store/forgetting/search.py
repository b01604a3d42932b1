"""After a `forget`: is a byte of it left, in the library or in a cache? And what keeps it out of reach: git.

Other lines may say the same words in their own right. Those are named by number, not counted as left.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from infinimem.errors import LibraryError
from infinimem.markdown.characters import clean_text
from infinimem.model import Located
from infinimem.store.caches import caches
from infinimem.store.files import MAX_OWNED, Files
from infinimem.store.forgetting.words import Texts, forms
from infinimem.store.keeper import BOOKS
from infinimem.store.listing import explained

GIT = ".git"


@dataclass(frozen=True)
class Left:
    """A file that holds some of the words still, and why that is so."""

    path: str
    why: str


def left(files: Files, texts: Texts, others: Sequence[Located], notes: Iterable[str]) -> tuple[Left, ...]:
    """Files in which any of the texts stands, but for lines that say the same in their own right.

    Args:
        files: of the library.
        texts: what was forgotten.
        others: lines of the library that were not, as they read anywhere.
        notes: ids of people's own notes.
    """
    own = _longest({line for place in saying(texts, others) for line in _written(place)})
    quoted = own_words(texts, others)
    people = {f"{doc_id}.md" for doc_id in notes}
    found = []
    for name, data in [*_files(files), *_cached()]:
        if holds(texts, data, quoted if name.startswith(BOOKS) else own):
            found.append(Left(name, "a person's note" if name in people else "not taken out"))
    return tuple(found)


def holds(texts: Texts, data: bytes, own: Iterable[bytes]) -> bool:
    """Whether any of the texts stands in bytes, but for what says the same in its own right.

    Args:
        own: that, the longest first.
    """
    if not texts.within(data):
        return False
    for words in own:
        data = data.replace(words, b"")
    return texts.within(data)


def own_words(texts: Texts, others: Iterable[Located]) -> list[bytes]:
    """As records quote them, the lines of other turns in which any of the texts stands."""
    lines = {line for place in saying(texts, others) for line in clean_text(place.text).split("\n")}
    return _longest({form for line in lines if texts.within_text(line) for form in forms(line)})


def _longest(found: Iterable[bytes]) -> list[bytes]:
    """By length, the longest first."""
    return sorted(found, key=lambda one: (-len(one), one))


def saying(texts: Texts, lines: Iterable[Located]) -> list[Located]:
    """Lines in which any of the texts stands."""
    return [place for place in lines if texts.within_text(place.text) or texts.within_text(place.entry.line)]


def _written(place: Located) -> Iterator[bytes]:
    line = place.entry.line
    yield line.encode("utf-8", "surrogateescape")
    yield json.dumps(line)[1:-1].encode()


def _files(files: Files) -> Iterator[tuple[str, bytes]]:
    for folder, folders, names in os.walk(files.root):
        folders[:] = sorted(name for name in folders if name != GIT)
        for name in sorted(names):
            path = (Path(folder) / name).relative_to(files.root).as_posix()
            try:
                data = files.read(path, MAX_OWNED)
            except LibraryError:
                continue
            if data is not None:
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
        " back, commit, push with --force, and have every clone made anew"
    )
