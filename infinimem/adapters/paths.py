"""Paths of a model's files and the documents that hold them, one to one. Pure.

    /memories/notes.md        memories/notes.md
    /memories/plan.txt        memories/plan.txt.md       every document of a library is Markdown
    /memories/todo            memories/todo..md          a name without an extension
    /memories/next.js.md      memories/next.js.md.md     for `next.js.md` is the file of `next.js`

A document's id is its file without ".md". Paths come from a model: what is no plain name is refused, never
mended.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from infinimem.errors import UsageError
from infinimem.law import MAX_NAME
from infinimem.store.lines import fold
from infinimem.store.spec import MEMORIES

ROOT = "/memories"
MAX_PATH = 1000
"""Bytes of a path."""

_EXTENSION = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,4}\Z")
_ENCODED = re.compile(r"%[0-9A-Fa-f]{2}")


class Refused(UsageError):
    """What a model asked for is not done; one line says why."""


@dataclass(frozen=True)
class MemoryPath:
    """A path of a model's, checked.

    Args:
        parts: names below `/memories`; none for that folder itself.
    """

    parts: tuple[str, ...]

    @classmethod
    def parse(cls, path: object) -> MemoryPath:
        """What a model's path names, be it there or not.

        Raises:
            Refused: it leads elsewhere, or a part of it is no plain name.
        """
        if not isinstance(path, str):
            raise Refused("The path must be text")
        shown = ascii(path[:80])
        if path != ROOT and not path.startswith(f"{ROOT}/"):
            raise Refused(f"Path must start with {ROOT}, got: {shown}")
        if len(path.encode("utf-8", "surrogatepass")) > MAX_PATH:
            raise Refused(f"Path {shown} is too long; {MAX_PATH} bytes are the most")
        rest = path.removeprefix(ROOT).removeprefix("/").removesuffix("/")
        place = cls(tuple(rest.split("/")) if rest else ())
        for part in place.parts:
            if wrong := _wrong(part):
                raise Refused(f"Path {shown} is refused: {wrong}")
        if any(part.casefold().endswith(".md") for part in place.parts[:-1]):
            raise Refused(f"Path {shown} is refused: the name of a directory may not end in .md")
        return place

    def __str__(self) -> str:
        return "/".join((ROOT, *self.parts))

    @property
    def doc_id(self) -> str:
        """The document that holds a file of this path."""
        *folders, name = self.parts
        return MEMORIES + "/".join((*folders, _stem(name)))

    @property
    def folder(self) -> str:
        """What the documents below it begin with, where it is a directory."""
        return MEMORIES + "".join(f"{part}/" for part in self.parts)

    @property
    def above(self) -> Iterator[MemoryPath]:
        """The directories that it lies in, but for `/memories`."""
        return (MemoryPath(self.parts[:length]) for length in range(1, len(self.parts)))


def path_of(doc_id: str) -> str:
    """The path of a document of the folder, below `/memories/`."""
    folder, slash, stem = doc_id.removeprefix(MEMORIES).rpartition("/")
    name = stem.removesuffix(".") if _marked(stem) else f"{stem}.md"
    return f"{folder}{slash}{name}"


def namesake(new: str, ids: Iterable[str]) -> str | None:
    """A document or folder that some file systems would take for one of `new`, or for it."""
    taken = {fold(name): name for doc_id in ids for name in _ways(doc_id)}
    for name in _ways(new):
        if taken.get(fold(name), name) != name:
            return taken[fold(name)]
    return None


def _ways(doc_id: str) -> Iterator[str]:
    """A document and the folders that it lies in."""
    parts = doc_id.split("/")
    return ("/".join(parts[:length]) for length in range(1, len(parts) + 1))


def _stem(name: str) -> str:
    if name.endswith(".md") and not _marked(name[:-3]):
        return name[:-3]
    return name if _EXTENSION.search(name) else f"{name}."


def _marked(stem: str) -> bool:
    """Whether a stem stands for another name than itself with ".md"."""
    return stem.endswith(".") or _EXTENSION.search(stem) is not None


def _wrong(part: str) -> str:
    """Why a part of a path is no plain name; "" where it is one."""
    if part in ("", ".", ".."):
        return "every part of it must be a name"
    if part.startswith(".") or part != part.strip(" "):
        return "no name may begin with a dot, or begin or end with a space"
    if not part.isprintable() or "\\" in part or _ENCODED.search(part):
        return "a name may hold no control or invisible characters, no backslash and no %-encoding"
    if len(_stem(part).encode()) > MAX_NAME:
        return f"a name is too long; {MAX_NAME} bytes are the most"
    return ""
