"""What is linked to what: graph."""

from __future__ import annotations

import json

import click

from infinimem.cli.options import Command, Options, pass_options
from infinimem.cli.output import counted
from infinimem.errors import LibraryError
from infinimem.strategies.base import Linked
from infinimem.strategies.graph.draw import FORMATS


@click.command(cls=Command)
@click.argument("name", metavar="[UNIT|SEQ|QUERY]", required=False)
@click.option(
    "--hops", type=click.IntRange(0, 9), default=2, show_default=True, help="Links from the unit at most."
)
@click.option(
    "--format", "form", type=click.Choice(sorted(FORMATS)), default="mermaid", help="Of the picture."
)
@pass_options
def graph(options: Options, name: str | None, hops: int, form: str) -> None:
    """Draw what is linked to a unit, archived units too.

    UNIT is its id or document, SEQ the number of a turn, QUERY words that it is about; without any of them it
    is the newest. Links are followed either way.
    """
    out, memory = options.out, options.reading()
    strategy = memory.strategy
    if not isinstance(strategy, Linked):
        raise LibraryError(
            f"{memory.view.keeper.name} keeps no links between its documents; --strategy allmem does"
        )
    found = strategy.graph(memory.view, name, hops)
    out.result(json.loads(found.as_json()), lambda: out.line(FORMATS[form](found).rstrip("\n")))
    out.say(f"{counted(len(found.nodes), 'unit')}, {counted(len(found.links), 'link')} around {found.root}")
    if found.cut:
        out.say("there are more within so many links; --hops shows fewer, another unit shows others")
