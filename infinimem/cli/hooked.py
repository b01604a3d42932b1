"""What `infinimem hook EVENT` does, without the packages of the command line: a person waits for it.

Whatever happens, the session goes on.
"""

from __future__ import annotations

import os
import select
import sys
import tomllib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from infinimem.cli.locate import Location, configuration_of, default, locate
from infinimem.hooks.answer import answer
from infinimem.hooks.event import RECALLS, REMEMBERS, given
from infinimem.user_folders import SETTINGS, is_mine

Say = Callable[[str], None]

LONGEST = 1 << 22
"""Bytes of input that are read."""
PATIENCE, QUIET = 1.0, 0.1
"""Seconds that input is waited for, and after which one that nobody closes counts as whole."""


def run(event: str, option: str | None = None, say: Say | None = None) -> None:
    """Do what an event asks for, and print what it shows.

    Args:
        event: its name; its JSON is on standard input.
        option: what --library said.
        say: tells what is wrong, a line each; None writes to standard error.
    """
    say = say or _say
    try:
        happened = given(_input(), event)
        cwd = Path(happened.cwd) if Path(happened.cwd).is_absolute() else Path.cwd()
        place = library_of(option, cwd, say)
        if happened.name in REMEMBERS:
            _advise(say, place.path)
        if happened.name in RECALLS and _is_off(place.path):
            return
        if text := answer(happened, place.path, place.is_default):
            sys.stdout.write(f"{text}\n")  # JSON in ASCII: nothing in it controls a terminal
    except Exception as error:
        say(f"infinimem hook: {' '.join(str(error).split())}")


def _say(text: str) -> None:
    from infinimem.markdown.characters import visible

    shown = visible(text.encode("utf-8", "backslashreplace").decode("utf-8"), turned=False)
    sys.stderr.write(f"{shown}\n")


def library_of(option: str | None, cwd: Path, say: Say) -> Location:
    """That of a session's folder; what is not trusted is neither shown nor written."""
    place = locate(option, cwd)
    if not place.path.is_dir() or is_mine(place.path):
        return place
    instead = "is not trusted, so the default library is used; to change that, run: infinimem trust"
    _tell(say, place.path, f"{place.path} {instead} {place.path}")
    return default()


def _is_off(library: Path) -> bool:
    """Whether nothing is to be recalled: then no process is started that would say so."""
    with suppress(FileNotFoundError, NotADirectoryError):  # notes
        hooks = tomllib.loads((library / SETTINGS).read_text("utf-8-sig")).get("hooks")
        return isinstance(hooks, dict) and hooks.get("recall") == "off"
    return False


def _advise(say: Say, library: Path) -> None:
    """Tell of settings that do not count."""
    from infinimem.settings import advice

    if suspended := configuration_of(library).suspended:
        _tell(say, library, advice(library, suspended))


def _tell(say: Say, library: Path, text: str) -> None:
    """Once a day a library: a hook runs at each prompt."""
    from infinimem.hooks.rendezvous import first_today

    if first_today(library):
        say(f"infinimem hook: {text}")


def _input() -> bytes:
    """Standard input to its end, or as far as it came: a program that ends may forget to close it."""
    try:
        descriptor = sys.stdin.fileno()
    except (OSError, ValueError):  # no real stream
        return sys.stdin.buffer.read(LONGEST)
    if sys.stdin.isatty():
        raise ValueError("a program's hook runs this and gives it JSON on standard input")
    said = bytearray()
    while len(said) < LONGEST and select.select([descriptor], [], [], QUIET if said else PATIENCE)[0]:
        part = os.read(descriptor, 1 << 16)
        if not part:
            break
        said += part
    return bytes(said)
