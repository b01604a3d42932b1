"""completion: a shell completes commands, options, and ids where a command takes one."""

from __future__ import annotations

import os
import shlex

import click
from click.shell_completion import get_completion_class

from infinimem.cli.options import Command, Options
from infinimem.errors import InfinimemError

VARIABLE = "_INFINIMEM_COMPLETE"
MOST = 200
"""Ids that are offered; nobody reads more."""


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """It completes commands, options and document ids. To install it:

    \b
    bash  infinimem completion bash >> ~/.bashrc
    zsh   infinimem completion zsh >> ~/.zshrc
    fish  infinimem completion fish > ~/.config/fish/completions/infinimem.fish
    """
    chosen = get_completion_class(shell)
    assert chosen is not None
    root = context.find_root()
    script = chosen(root.command, {}, "infinimem", VARIABLE).source()
    out = context.ensure_object(Options).out
    out.result({"shell": shell, "script": script}, lambda: click.echo(script))


def document_ids(context: click.Context, param: click.Parameter, begun: str) -> list[str]:
    """Ids that begin so, from the names of the files alone; none where there is no library."""
    from infinimem.store.folders import listed

    options = context.find_root().ensure_object(Options)
    try:
        folders = listed(options.place(looking=True).path).values()
    except InfinimemError:  # nobody wants to read of it while typing
        return []
    ids = (doc_id for folder in folders for doc_id in folder.documents)
    found = sorted(doc_id for doc_id in ids if doc_id.startswith(begun))[:MOST]
    # bash puts on the line what it is given, and would run a name such as $(date); zsh and fish quote it.
    in_bash = os.environ.get(VARIABLE, "").startswith("bash")
    return [shlex.quote(doc_id) for doc_id in found] if in_bash else found
