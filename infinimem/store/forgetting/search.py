"""After a `forget`: does a byte or a name of it stand, in the library or in a cache? And what does git keep?

Other lines may say the same words in their own right. Those are named by number, not counted as left.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from infinimem.configuration import SETTINGS
from infinimem.errors import LibraryError
from infinimem.markdown.characters import clean_text
from infinimem.model import CURRENT, Located
from infinimem.settings import template
from infinimem.store.caches import caches
from infinimem.store.create import IGNORED
from infinimem.store.files import MAX_OWNED, Files
from infinimem.store.forgetting.choice import Choice
from infinimem.store.forgetting.words import Texts, forms, lowered
from infinimem.store.keeper import MEMORIES
from infinimem.store.listing import explained
from infinimem.store.state import drawn, sequence, tails
from infinimem.store.view import OWNED

GIT = ".git"
STATE = ".infinimem/"
NUMBERS = frozenset(
    {f"{STATE}lock", f"{STATE}.gitignore", tails.DOUBTFUL, sequence.MARK, sequence.GIVEN, drawn.PATH}
)
"""Machine state without a word."""
_OURS = (f"{CURRENT}.md/", *OWNED, STATE)
_MADE = {SETTINGS: template().encode(), ".gitignore": IGNORED.encode(), MEMORIES.rstrip("/"): b""}
"""What the program made for people, and wrote there."""


@dataclass(frozen=True)
class Left:
    """What holds some of the words still, why that is so, and what to do."""

    path: str
    why: str


def left(files: Files, texts: Texts, choice: Choice, preview: bool = False) -> tuple[Left, ...]:
    """Files and folders in which any of it stands, but for lines that say the same in their own right.

    Args:
        files: of the library.
        texts: what was forgotten.
        choice: the lines that were.
        preview: tell only what a `forget` will not touch.
    """
    own, found = own_words(texts, choice.others), []
    for path, data in [*stored(files), *_cached()]:
        ours = f"{path}/".startswith(_OURS) or Path(path).is_absolute()
        name = os.fsencode(Path(path).name)
        if not preview and texts.within(name) if ours or path in _MADE else speaks(texts, choice, name):
            found.append(Left(path, "its name: rename it"))
        if preview and (ours or path.startswith(MEMORIES)):
            continue
        if data and (holds(texts, data, own) or (not ours and speaks(texts, choice, data))):
            found.append(Left(path, _advice(path)))
    return tuple(found)


def _advice(path: str) -> str:
    if Path(path).is_absolute():
        return "a cache that could not be deleted: delete it"
    if path.startswith(MEMORIES):
        return "a model's own file: edit it"
    if path.startswith(STATE):
        return "machine state: delete it when doctor finds nothing pending"
    return "text beside the lines: edit it" if f"{path}/".startswith(_OURS) else "a person's note: edit it"


def speaks(texts: Texts, choice: Choice, data: bytes) -> bool:
    """Whether people's own text or name has any word that was asked for."""
    text = data.decode("utf-8", "replace")
    return texts.named(text) or any(map(choice.wanted.found, text.split("\n")))


def holds(texts: Texts, data: bytes, own: Iterable[bytes]) -> bool:
    """Whether any of the texts stands in bytes, but for what says the same in its own right.

    Args:
        own: that, the longest first.
    """
    if not texts.within(data):
        return False
    data = lowered(data)
    for words in own:
        data = data.replace(words, b"")
    return texts.within(data)


def own_words(texts: Texts, others: Sequence[Located]) -> list[bytes]:
    """In all their forms, the lines of others in which any of the texts stands; the longest first."""
    said = (f"{clean_text(place.text)}\n{place.entry.line}" for place in saying(texts, others))
    lines = {line for text in said for line in text.split("\n") if texts.within_text(line)}
    return sorted({form for line in lines for form in forms(line)}, key=lambda form: (-len(form), form))


def saying(texts: Texts, lines: Iterable[Located]) -> list[Located]:
    """Lines in which any of the texts stands."""
    return [place for place in lines if texts.within_text(f"{place.text}\n{place.entry.line}")]


def stored(files: Files, below: str = "") -> Iterator[tuple[str, bytes | None]]:
    """What lies in the library but in .git, folders too; of what can say nothing only the name.

    Args:
        below: only what lies in this folder.
    """
    for folder, folders, names in os.walk(files.root / below):
        folders[:] = sorted(name for name in folders if name != GIT)
        for name in (*folders, *sorted(names)):
            path = (Path(folder) / name).relative_to(files.root).as_posix()
            data = None
            with suppress(LibraryError):
                data = None if path in NUMBERS or name in folders else files.read(path, MAX_OWNED)
            known = _MADE.get(path, b"").split(b"\n")
            yield path, data and b"\n".join(line for line in data.split(b"\n") if line not in known)


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
