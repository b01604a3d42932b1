"""web: the memory in a browser."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from tempfile import mkstemp

import click

from infinimem.cli.options import Command, Options, pass_options
from infinimem.cli.output import as_json
from infinimem.errors import InfinimemError


@click.command(cls=Command)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", show_default="any", help="Port to serve."
)
@click.option("--open", "opens", is_flag=True, help="Open the page in the browser.")
@click.option("--read-only", is_flag=True, help="Show everything, change nothing, ask no model.")
@pass_options
def web(options: Options, port: int, opens: bool, read_only: bool) -> None:
    """Serves this machine alone, until Ctrl-C. The link that is printed works once, for one browser."""
    out, memory = options.out, options.asking()
    try:
        from infinimem.web.app import Live, make_app
        from infinimem.web.guard import ENTER, Session
        from infinimem.web.site import Site
    except ModuleNotFoundError as error:
        raise InfinimemError(f"no package {error.name}; run: pip install 'infinimem[web]'") from error
    from infinimem.serving.http import listen, names, serve

    address = f"127.0.0.1:{port}"
    with listen(address) as listening:
        known = names(address, listening)
        session = Session(listening.getsockname()[1])
        writes = not (read_only or memory.library.read_only)
        live = Live(memory)
        app = make_app(Site(memory, session.csrf if writes else ""), session, known, live)
        url = f"http://{known[0]}{ENTER}?token={session.token}"
        if options.json:
            click.echo(as_json({"url": url}))
        else:
            out.say(f"serving {memory.library.root}; Ctrl-C ends it")
            click.echo(url)
        if opens:  # by a file of this user's alone: everybody can read what a program is called with
            descriptor, page = mkstemp(prefix="infinimem-", suffix=".html")
            with os.fdopen(descriptor, "w") as written:
                written.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={url}">')
            session.used = partial(Path(page).unlink, missing_ok=True)
            click.launch(page)
        try:
            serve(app, listening, live.end)
        finally:
            session.used()
