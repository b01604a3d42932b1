"""hook: what a hook of Claude Code runs, and recall: what it would show.

Whatever happens, the session goes on: a hook exits 0.
"""

from __future__ import annotations

import os
import select
import sys
import tomllib
from contextlib import suppress
from pathlib import Path

import click

from infinimem.cli.locate import Location, configuration_of, default, locate
from infinimem.cli.options import OFFLINE, Command, Options, pass_options
from infinimem.configuration import SETTINGS, advice
from infinimem.trust import is_mine

LONGEST = 1 << 22
"""Bytes of input that are read."""
PATIENCE, QUIET = 1.0, 0.1
"""Seconds that input is waited for, and after which one that nobody closes counts as whole."""


@click.command(cls=Command, context_settings={"ignore_unknown_options": True})
@click.argument("event", required=False, default="")
@click.argument("rest", nargs=-1, type=click.UNPROCESSED)
@pass_options
def hook(options: Options, event: str, rest: tuple[str, ...]) -> None:
    """Recall or remember for a hook of Claude Code.

    Reads the hook's JSON from standard input. SessionStart and UserPromptSubmit print the memory closest to
    the folder or the prompt, if it is found at once. PreCompact and SessionEnd remember the session in the
    background. Always exits 0.
    """
    from infinimem.hooks.answer import answer
    from infinimem.hooks.event import RECALLS, REMEMBERS, given

    try:
        happened = given(_input(), event)
        cwd = Path(happened.cwd) if Path(happened.cwd).is_absolute() else Path.cwd()
        place = _library(options, cwd)
        if happened.name in REMEMBERS and (suspended := configuration_of(place.path).suspended):
            _tell(options, place.path, advice(place.path, suspended))
        if happened.name in RECALLS and _is_off(place.path):
            return
        text = answer(happened, place.path, place.is_default)
    except Exception as error:
        options.out.say(f"infinimem hook: {' '.join(str(error).split())}")
        return
    if text:
        click.echo(text)


def _library(options: Options, cwd: Path) -> Location:
    """That of a session's folder; what is not trusted is neither shown nor written."""
    place = locate(options.library, cwd)
    if not place.path.is_dir() or is_mine(place.path):
        return place
    instead = "is not trusted, so the default library is used; to change that, run: infinimem trust"
    _tell(options, place.path, f"{place.path} {instead} {place.path}")
    return default()


def _is_off(library: Path) -> bool:
    """Whether nothing is to be recalled: then no process is started that would say so."""
    with suppress(FileNotFoundError, NotADirectoryError):  # notes
        hooks = tomllib.loads((library / SETTINGS).read_text("utf-8-sig")).get("hooks")
        return isinstance(hooks, dict) and hooks.get("recall") == "off"
    return False


def _tell(options: Options, library: Path, text: str) -> None:
    """Once a day a library: a hook runs at each prompt."""
    from infinimem.hooks.rendezvous import first_today

    if first_today(library):
        options.out.say(f"infinimem hook: {text}")


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


@click.command(cls=Command)
@click.argument("prompt", required=False)
@click.option("--cwd", metavar="DIR", default=".", help="The folder that the session is in.")
@pass_options
def recall(options: Options, prompt: str | None, cwd: str) -> None:
    """Show what hooks would put before a model for PROMPT, and why.

    Each line that came near has its score, the words that counted, and why it is left out. Without PROMPT:
    what the start of a session is shown.
    """
    from dataclasses import asdict

    from infinimem.hooks.event import Event
    from infinimem.hooks.recall import Recall, said
    from infinimem.memory import open_memory

    folder = Path(cwd).expanduser().resolve()
    recalled = Recall(open_memory(_library(options, folder).path, model=OFFLINE))
    if prompt is None:
        text = recalled.text(Event("SessionStart", cwd=str(folder)))
        hits = [hit for part in recalled.opening(str(folder)) for hit in part]
    else:
        text = recalled.text(Event("UserPromptSubmit", cwd=str(folder), prompt=prompt))
        hits = recalled.near(said(prompt), str(folder))

    def show() -> None:
        rows = [
            (f"{hit.score:.2f}", ", ".join(hit.words), hit.why or "shown", hit.where, hit.text)
            for hit in hits
        ]
        options.out.table(("score", "words", "why", "where", "line"), rows)
        options.out.line(text or "nothing is injected")

    options.out.result({"text": text, "lines": [asdict(hit) for hit in hits]}, show)
