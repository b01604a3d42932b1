"""hook: what a hook of Claude Code runs. Whatever happens, the session goes on: it exits 0."""

from __future__ import annotations

import os
import select
import sys
from pathlib import Path

import click

from infinimem.cli.locate import configuration_of, default, locate
from infinimem.cli.options import Command, Options, pass_options
from infinimem.configuration import advice
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
    from infinimem.hooks.event import REMEMBERS, given

    try:
        happened = given(_input(), event)
        cwd = Path(happened.cwd) if Path(happened.cwd).is_absolute() else Path.cwd()
        place = locate(options.library, cwd)
        if place.path.is_dir() and not is_mine(place.path):
            instead = "is not trusted, so the default library is used; to change that, run: infinimem trust"
            _tell(options, place.path, f"{place.path} {instead} {place.path}")
            place = default()
        if happened.name in REMEMBERS and (suspended := configuration_of(place.path).suspended):
            _tell(options, place.path, advice(place.path, suspended))
        text = answer(happened, place.path, place.is_default)
    except Exception as error:
        options.out.say(f"infinimem hook: {' '.join(str(error).split())}")
        return
    if text:
        click.echo(text)


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
