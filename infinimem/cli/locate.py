"""Which library a command or a hook means; what `infinimem hook EVENT` does.

A person waits for a hook: it does without the packages of the command line. Whatever happens, the session
goes on.
"""

from __future__ import annotations

import os
import select
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from infinimem.errors import UsageError, escape
from infinimem.user_folders import SETTINGS, default_library, first_today, is_mine

if TYPE_CHECKING:
    from infinimem.settings import Configuration

MOST = 20_000  # files of a folder that is searched without being named: more are hardly somebody's notes
LONGEST = 1 << 22  # bytes of a hook's input that are read
PATIENCE, QUIET = 1.0, 0.1
"""Seconds that input is waited for, and after which one that nobody closes counts as whole."""
VAULTS = (".obsidian", "logseq")  # folders by which a program for notes marks its own
ATTACHED = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".pdf", ".mp3", ".mp4", ".canvas")
"""Endings of what lies beside notes."""
Say = Callable[[str], None]


class Location(NamedTuple):
    """A library's folder. `is_default`: nobody named it, so it may be made when something is to be kept."""

    path: Path
    is_default: bool = False


def locate(option: str | None, cwd: Path) -> Location:
    """Locate the library: the option, else $INFINIMEM_LIBRARY, else the nearest parent with an
    infinimem.toml, the current folder first, else `default`."""
    if named := option or os.environ.get("INFINIMEM_LIBRARY"):
        return Location(cwd / Path(named).expanduser())
    above = (folder for folder in (cwd, *cwd.parents) if (folder / SETTINGS).is_file())
    return Location(folder) if (folder := next(above, None)) else default()


def or_notes(place: Location, cwd: Path, say: Say, writes: bool = False) -> Location:
    """Return the current folder instead of the default library, if it is a vault or mostly notes, or if it
    has notes and nobody made that library yet, and say so; never the home folder nor one above it.
    UsageError if it has so many files that it must be named. `writes`: say that it is not written."""
    home = Path(os.environ.get("HOME") or "/").resolve()
    if not place.is_default or home.is_relative_to(cwd.resolve()):
        return place
    from infinimem.store.folders import ENDINGS  # a hook does without

    made = place.path.is_dir()
    is_vault = any((cwd / name).is_dir() for name in VAULTS)
    is_vault = is_vault and any(name.endswith(ENDINGS) for name in _names(cwd))
    names = [] if is_vault else list(islice(_names(cwd), MOST + 1))
    notes = sum(name.endswith(ENDINGS) for name in names)
    others = sum(not name.endswith((*ENDINGS, *ATTACHED)) for name in names)
    if notes and not made and len(names) > MOST:
        raise UsageError(f"{cwd} has over {MOST:,} files; if you mean these, pass --library .")
    if is_vault or (notes and not made) or (notes > others and len(names) <= MOST):
        if writes:
            say(f"writing to {place.path}, not to the notes in {cwd}; to write here: infinimem init")
            return place
        why = "not your default library" if made else "there is no library here"
        say(f"{why}: reading the notes in {cwd}")
        return Location(cwd)
    if notes and not writes and first_today("notes", str(cwd.resolve())):
        say(f"reading your default library; for the notes in {cwd}: --library .")
    return place


def _names(cwd: Path) -> Iterator[str]:
    """Yield the names of files in a folder and below, in lower case, as they are read; no hidden ones."""
    for _, folders, files in os.walk(cwd):
        folders[:] = [name for name in folders if name[0] != "." and name != "node_modules"]
        yield from (name.lower() for name in files if name[0] != ".")


def default() -> Location:
    """Return $XDG_DATA_HOME/infinimem/default; UsageError if there is no home folder."""
    path = default_library()
    if path is None:
        raise UsageError("no library is named and HOME is not set; pass --library DIR")
    return Location(path, is_default=True)


def configuration_of(library: Path) -> Configuration:
    from infinimem.settings import configuration  # a hook that recalls does without both
    from infinimem.store.files import Files

    data = Files(library).read(SETTINGS) if library.is_dir() else None
    return configuration(data or b"", library)


def run(event: str, option: str | None = None, say: Say | None = None) -> None:
    """Do what an event on standard input asks for, and print what it shows; `say` prints what is wrong."""
    from infinimem.hooks import RECALLS, REMEMBERS, given
    from infinimem.hooks.answer import answer

    say = say or (lambda text: print(escape(text, LONGEST), file=sys.stderr))
    try:
        event_ = given(_input(), event)
        cwd = Path(event_.cwd) if Path(event_.cwd).is_absolute() else Path.cwd()
        place = library_of(option, cwd, say)
        if event_.hook_event_name in REMEMBERS:
            from infinimem.settings import advice

            if suspended := configuration_of(place.path).suspended:
                _say_daily(say, place.path, advice(place.path, suspended))
        if event_.hook_event_name in RECALLS and _is_off(place.path):
            return
        if text := answer(event_, place.path, place.is_default):
            sys.stdout.write(f"{text}\n")  # JSON in ASCII: nothing in it controls a terminal
    except Exception as error:
        say(f"infinimem hook: {' '.join(str(error).split())}")


def library_of(option: str | None, cwd: Path, say: Say) -> Location:
    """Return the library of a session's folder; what is not trusted is neither shown nor written."""
    place = locate(option, cwd)
    if not place.path.is_dir() or is_mine(place.path):
        return place
    instead = "is not trusted, so the default library is used; to change that, run: infinimem trust"
    _say_daily(say, place.path, f"{place.path} {instead} {place.path}")
    return default()


def _is_off(library: Path) -> bool:
    """Tell whether nothing is to be recalled: then no process is started that would say so."""
    with suppress(FileNotFoundError, NotADirectoryError):  # notes
        hooks = tomllib.loads((library / SETTINGS).read_text("utf-8-sig")).get("hooks")
        return isinstance(hooks, dict) and hooks.get("recall") == "off"
    return False


def _say_daily(say: Say, library: Path, text: str) -> None:
    """Say it once a day a library: a hook runs at each prompt."""
    if first_today("hook", str(library.resolve())):
        say(f"infinimem hook: {text}")


def _input() -> bytes:
    """Read standard input to its end, or as far as it came: a program that ends may forget to close it."""
    try:
        descriptor = sys.stdin.fileno()
    except (OSError, ValueError):  # no real stream
        return sys.stdin.buffer.read(LONGEST)
    if sys.stdin.isatty():
        raise ValueError("a program's hook runs this and gives it JSON on standard input")
    data = bytearray()
    while len(data) < LONGEST and select.select([descriptor], [], [], QUIET if data else PATIENCE)[0]:
        part = os.read(descriptor, 1 << 16)
        if not part:
            break
        data += part
    return bytes(data)
