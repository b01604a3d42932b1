"""What strategies that keep links and audits can show of them: graph, replay."""

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


@click.command(cls=Command)
@click.argument("receipt", required=False)
@click.pass_context
def replay(context: click.Context, receipt: str | None) -> None:
    """No model is called and nothing is written. RECEIPT is an id or a number; the default is the newest
    consolidation. Exit code 1 if a document comes out differently.
    """
    from infinimem.strategies.replaying import again

    options = context.ensure_object(Options)
    out = options.out
    with out.progress("Replaying"):
        memory = options.reading()
        done = again(memory.strategy, memory.view, memory.receipts(), receipt)
    found = {"receipt": done.receipt.id, "same": list(done.same), "other": list(done.other)}

    def show() -> None:
        for name in done.other:
            out.line(f"{name} comes out otherwise")
        out.line(f"{done.receipt.id}: {counted(len(done.same), 'document')} byte for byte as it was written")

    out.result(found, show)
    if done.other:
        context.exit(1)
