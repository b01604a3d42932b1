"""A folder made into a library."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from infinimem.embedders.connect import Choice
from infinimem.errors import LibraryError
from infinimem.settings import template
from infinimem.store.files import Files
from infinimem.store.library import SETTINGS, Clock, Library, system_clock
from infinimem.store.lock import exclusive
from infinimem.store.view import EVIDENCE, JOURNAL

IGNORED = ".infinimem/\n.obsidian/workspace*.json\n.trash/\n"
"""Machine state, and what Obsidian keeps of its windows and its bin: they change by themselves."""


def init(
    root: Path, clock: Clock = system_clock, embedder: Choice = None, strategy: str | None = None
) -> Library:
    """Make a folder a library: settings, folders, .gitignore. What is there already is left alone.

    Args:
        root: the folder; made if missing.
        clock, embedder, strategy: the library's.

    Raises:
        LibraryError: the folder cannot be made or written.
    """
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LibraryError(f"cannot make {root}: {error.strerror}; choose another folder") from error
    files = Files(root)
    made = {
        SETTINGS: template(strategy).encode(),
        ".gitignore": IGNORED.encode(),
        ".infinimem/.gitignore": b"*\n",
    }
    with exclusive(files):
        _create(files, made)
    library = Library(root, clock, embedder, strategy)
    if not library.initialised:
        raise LibraryError(f"{root / SETTINGS} is a link or no file; put the settings themselves there")
    keeper = library.keeper
    with exclusive(files):
        for folder in (*keeper.folders, EVIDENCE, JOURNAL):
            files.make_folder(folder)
        if keeper.buffer:
            _create(files, {f"{keeper.buffer}.md": b"---\nid: CURRENT\ncurrent_epoch: 0\n---\n"})
    return library


def _create(files: Files, made: Mapping[str, bytes]) -> None:
    for path, data in made.items():
        if not files.exists(path):
            files.create(path, data)
