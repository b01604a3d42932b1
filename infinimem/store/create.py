"""A folder made into a library."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from infinimem.embedders.connect import Choice
from infinimem.errors import LibraryError
from infinimem.settings import SETTINGS, configuration, template
from infinimem.store.files import Files
from infinimem.store.library import Clock, Library, system_clock
from infinimem.store.lock import exclusive
from infinimem.store.spec import EVIDENCE, JOURNAL
from infinimem.user_folders import approve

IGNORED = ".infinimem/\n.obsidian/workspace*.json\n.trash/\n"
"""Machine state, and what Obsidian keeps of its windows and its bin: they change by themselves."""


def init(
    root: Path,
    clock: Clock = system_clock,
    embedder: Choice = None,
    strategy: str | None = None,
    trust: bool = False,
) -> Library:
    """Make a folder a library: settings, folders, .gitignore. What is there already is left alone.

    A library that is new is this user's, and noted as such.

    Args:
        root: the folder; made if missing.
        clock, embedder, strategy, trust: the library's. One that the caller vouches for is not noted.

    Raises:
        LibraryError: the folder cannot be made or written.
    """
    settings = template(strategy).encode()
    digest = configuration(settings).digest  # first: what is wrong with config.toml stops it
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LibraryError(f"cannot make {root}: {error.strerror}; choose another folder") from error
    files = Files(root)
    made = {
        SETTINGS: settings,
        ".gitignore": IGNORED.encode(),
        ".infinimem/.gitignore": b"*\n",
    }
    with exclusive(files):
        is_new = not files.exists(SETTINGS)
        _create(files, made)
    if is_new and not trust:
        approve(root, digest)
    library = Library(root, clock, embedder, strategy, trust=trust)
    if not library.initialised:
        raise LibraryError(f"{root / SETTINGS} is a link or no file; put the settings themselves there")
    spec = library.spec
    with exclusive(files):
        for folder in (*spec.folders, EVIDENCE, JOURNAL):
            files.make_folder(folder)
        if spec.buffer:
            _create(files, {f"{spec.buffer}.md": b"---\nid: CURRENT\ncurrent_epoch: 0\n---\n"})
    return library


def _create(files: Files, made: Mapping[str, bytes]) -> None:
    for path, data in made.items():
        if not files.exists(path):
            files.create(path, data)
