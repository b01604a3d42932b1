"""Which library a command means."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from infinimem.errors import UsageError
from infinimem.user_folders import SETTINGS, default_library

if TYPE_CHECKING:
    from infinimem.settings import Configuration

MOST = 20_000
"""Files of a folder that is searched without being named: more are hardly somebody's notes."""


class Location(NamedTuple):
    """A library's folder. `is_default`: nobody named it, so it may be made when something is to be kept."""

    path: Path
    is_default: bool = False


def locate(option: str | None, cwd: Path) -> Location:
    """The folder: the option, else $INFINIMEM_LIBRARY, else the nearest parent with an infinimem.toml, else
    $XDG_DATA_HOME/infinimem/default.

    Args:
        option: what --library said.
        cwd: the current folder; it counts as its own parent.

    Raises:
        UsageError: nothing is named and there is no home folder.
    """
    named = option or os.environ.get("INFINIMEM_LIBRARY")
    if named:
        return Location(cwd / Path(named).expanduser())
    for folder in (cwd, *cwd.parents):
        if (folder / SETTINGS).is_file():
            return Location(folder)
    return default()


def or_notes(place: Location, cwd: Path) -> Location:
    """Instead of a default library that nobody made yet, the current folder if notes lie in it.

    Never the home folder nor one above it: much lies there, and nobody asked for it.

    Args:
        place: what `locate` gave.
        cwd: the current folder.

    Raises:
        UsageError: there are notes, but so many files that the folder must be named.
    """
    home = Path(os.environ.get("HOME") or "/").resolve()
    if not place.is_default or place.path.is_dir() or home.is_relative_to(cwd.resolve()):
        return place
    files, notes = 0, False
    for _, folders, names in os.walk(cwd):
        folders[:] = [name for name in folders if not name.startswith(".")]
        files += len(names)
        notes = notes or any(name.endswith(".md") and not name.startswith(".") for name in names)
        if files > MOST:
            break
    if notes and files > MOST:
        raise UsageError(f"{cwd} has over {MOST:,} files; if you mean these, pass --library .")
    return Location(cwd) if notes else place


def default() -> Location:
    """The default library.

    Raises:
        UsageError: there is no home folder.
    """
    path = default_library()
    if path is None:
        raise UsageError("no library is named and HOME is not set; pass --library DIR")
    return Location(path, is_default=True)


def configuration_of(library: Path) -> Configuration:
    """The settings in force for a folder, which may be missing.

    Raises:
        LibraryError, SettingsError: its infinimem.toml cannot be read.
    """
    from infinimem.settings import configuration  # a hook that recalls does without both
    from infinimem.store.files import Files

    data = Files(library).read(SETTINGS) if library.is_dir() else None
    return configuration(data or b"", library)
