"""mcp: the library as a server for MCP clients."""

from __future__ import annotations

import os
import signal
import sys

import click

from infinimem.cli.options import Command, Options, cap_option, named, pass_options, project_option
from infinimem.cli.output import as_json
from infinimem.errors import InfinimemError, UsageError
from infinimem.serving.http import listen, names


@click.command(cls=Command)
@click.option("--http", "address", metavar="HOST:PORT", help="Serve over HTTP instead of standard input.")
@click.option("--remote", is_flag=True, help="With --http: allow an address that other machines can reach.")
@click.option(
    "--trust-user", is_flag=True, help="Let clients record the user's words as the user's, not an AI's."
)
@project_option
@cap_option
@pass_options
def mcp(
    options: Options,
    address: str | None,
    remote: bool,
    trust_user: bool,
    project: str | None,
    max_tokens: int | None,
) -> None:
    """They can search, read, remember and ask; no tool deletes. A client starts this command and talks to it
    over standard input and output. With --http clients send a token: $INFINIMEM_MCP_TOKEN, or one that is
    made and printed on standard error.
    """
    if remote and not address:
        raise UsageError("--remote says who may reach --http HOST:PORT; give both")
    memory, begin = options.serving()
    try:
        from infinimem.mcp import http, server
    except ModuleNotFoundError as error:
        raise InfinimemError(f"no package {error.name}; run: pip install 'infinimem[mcp]'") from error
    with memory.llm.cap(max_tokens):
        serving = server.make_server(memory, trust_user, named(project), begin)
        if address is None:
            if sys.stdin.isatty():
                options.out.say("waiting for a client, which starts this command itself; Ctrl-C ends it")
            # The thread that waits for input hears of no interrupt. To be killed harms nothing written.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            server.serve_stdio(serving)
            return
        chosen = os.environ.get(http.TOKEN)
        token = http.token_of(chosen)
        with listen(address, remote) as listening:
            url = f"http://{names(address, listening)[0]}{http.PATH}"
            said = {"url": url, "token": None if chosen else token}
            if options.json:
                click.echo(as_json(said))
            else:
                options.out.say(f"serving {options.place().path} at {url}; Ctrl-C ends it")
                if not chosen:  # said even with -q: without it nobody can call
                    click.echo(f"token: {token}", err=True)
            http.serve_http(serving, address, listening, token)
