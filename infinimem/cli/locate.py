"""Which library a command means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from infinimem.errors import UsageError

MARK = "infinimem.toml"


@dataclass(frozen=True)
class Place:
    """A library's folder. `is_default`: nobody named it, so it may be made when something is to be kept."""

    path: Path
    is_default: bool = False


def locate(option: str | None, env: Mapping[str, str], cwd: Path) -> Place:
    """The folder: the option, else $INFINIMEM_LIBRARY, else the nearest parent with an infinimem.toml, else
    $XDG_DATA_HOME/infinimem/default.

    Args:
        option: what --library said.
        env: environment variables.
        cwd: the current folder; it counts as its own parent.

    Raises:
        UsageError: nothing is named and there is no home folder.
    """
    named = option or env.get("INFINIMEM_LIBRARY")
    if named:
        return Place(cwd / Path(named).expanduser())
    for folder in (cwd, *cwd.parents):
        if (folder / MARK).is_file():
            return Place(folder)
    data = Path(env.get("XDG_DATA_HOME", ""))
    if not data.is_absolute():  # the XDG specification: a relative path is ignored
        home = Path(env.get("HOME", ""))
        if not home.is_absolute():
            raise UsageError("no library is named and HOME is not set; pass --library DIR")
        data = home / ".local" / "share"
    return Place(data / "infinimem" / "default", is_default=True)
