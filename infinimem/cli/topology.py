"""What strategies that keep links can show of them: graph."""

from __future__ import annotations

import click

from infinimem.cli.options import Command, Options, pass_options, words
from infinimem.errors import LibraryError
from infinimem.results import counted


@click.command(cls=Command)
@words("name", required=False, metavar="[UNIT|SEQ|QUERY]")
@click.option(
    "--hops", type=click.IntRange(0, 9), default=2, show_default=True, help="How many links to follow."
)
@pass_options
def graph(options: Options, name: str | None, hops: int) -> None:
    """UNIT is an id or a document, SEQ the number of a turn, QUERY what the unit is about; the default is the
    newest unit. Links are followed in both directions.
    """
    from infinimem.spec import strategies
    from infinimem.strategies.base import Linked

    out, memory = options.out, options.reading()
    strategy = memory.strategy
    if not isinstance(strategy, Linked):
        able = " or ".join(name for name, spec in strategies().items() if spec.links)
        raise LibraryError(
            f"{memory.view.spec.name} keeps no links between its documents; --strategy {able} does"
        )
    found = strategy.graph(memory.view, name, hops)

    def show() -> None:
        units = [(n.id, str(n.hop), "" if n.visible else "archived", n.label) for n in found.nodes]
        out.table(("unit", "hops", "", "what it says"), units)
        links = [
            (source, link.kind, link.to, "" if link.weight is None else f"{link.weight:.3f}")
            for source, link in found.links
        ]
        out.table(("from", "link", "to", "weight"), links)

    out.result(found.data(), show)
    out.say(f"{counted(len(found.nodes), 'unit')}, {counted(len(found.links), 'link')} around {found.root}")
    if found.cut:
        out.say("there are more within so many links; --hops shows fewer, another unit shows others")
