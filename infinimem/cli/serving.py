"""Commands that serve: web, mcp, hook and what it recalls, fleet."""

from __future__ import annotations

import difflib
import os
import signal
import sys
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkstemp
from typing import TYPE_CHECKING

import click

from infinimem.cli.locate import library_of, locate, or_notes, run
from infinimem.cli.options import OFFLINE, Options, Section, cap_option, command, project_option, words
from infinimem.errors import UsageError
from infinimem.model import Turn
from infinimem.results import answer_json, counted
from infinimem.user_folders import SETTINGS, is_mine

if TYPE_CHECKING:
    from infinimem.fleet.fleet import Fleet

URL, DATABASE, CACHE = "INFINIMEM_FLEET", "INFINIMEM_FLEET_DATABASE", "INFINIMEM_FLEET_CACHE"


@command()
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default="any", help="Port to serve.")
@click.option("--open", "opens", is_flag=True, help="Open the page in the browser.")
@click.option("--read-only", is_flag=True, help="Show everything, change nothing, ask no model.")
def web(options: Options, port: int, opens: bool, read_only: bool) -> None:
    """Serves this machine alone, until Ctrl-C. The link that is printed works once, for one browser."""
    out, memory = options.out, options.asking()
    from infinimem.serving.http import listen, names, serve
    from infinimem.web.app import ENTER, Session, make_app
    from infinimem.web.site import Site

    address = f"127.0.0.1:{port}"
    with listen(address) as listening:
        known = names(address, listening)
        session = Session(listening.getsockname()[1])
        writes = not (read_only or memory.library.read_only)
        app = make_app(Site(memory, session.csrf if writes else ""), session, known)
        url = f"http://{known[0]}{ENTER}?token={session.token}"
        out.say(f"serving {memory.library.root}; Ctrl-C ends it")
        out.result({"url": url}, lambda: click.echo(url))
        if opens:  # by a file of this user's alone: everybody can read what a program is called with
            descriptor, page = mkstemp(prefix="infinimem-", suffix=".html")
            with os.fdopen(descriptor, "w") as file:
                file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={url}">')
            session.used = partial(Path(page).unlink, missing_ok=True)
            click.launch(page)
        try:
            serve(app, listening)
        finally:
            session.used()


@command()
@click.option("--http", "address", metavar="HOST:PORT", help="Serve over HTTP instead of standard input.")
@click.option("--remote", is_flag=True, help="With --http: allow an address that other machines can reach.")
@click.option("--trust-user", is_flag=True, help="Let clients record words as the user's, not an AI's.")
@project_option
@cap_option
def mcp(options: Options, address: str | None, remote: bool, trust_user: bool) -> None:
    """They can search, read, remember and ask; none deletes before a person agreed. A client starts this
    command and talks to it over standard input and output. With --http clients send a token:
    $INFINIMEM_MCP_TOKEN, or one that is made and printed on standard error.
    """
    if remote and not address:
        raise UsageError("--remote says who may reach --http HOST:PORT; give both")
    memory = options.serving()
    from infinimem.mcp import server

    with memory.llm.cap(options.max_tokens):
        serving = server.make_server(memory, trust_user, options.folder())
        if address is None:
            if sys.stdin.isatty():
                options.out.say("waiting for a client, which starts this command itself; Ctrl-C ends it")
            # The thread that waits for input hears of no interrupt. To be killed harms nothing written.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            server.serve_stdio(serving)
            return
        from infinimem.serving.http import listen, names, serve

        chosen = os.environ.get(server.TOKEN)
        token = server.token_of(chosen)
        with listen(address, remote) as listening:
            known = names(address, listening)
            url = f"http://{known[0]}{server.PATH}"
            options.out.result({"url": url, "token": None if chosen else token})
            options.out.say(f"serving {options.place().path} at {url}; Ctrl-C ends it")
            if not (chosen or options.json):  # said even with -q: without it nobody can call
                click.echo(f"token: {token}", err=True)
            serve(server.make_app(serving, known, token), listening)


@command()
@click.argument("agent", nargs=-1)
@click.option("--undo", is_flag=True, help="Take out what was added.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def connect(options: Options, agent: tuple[str, ...], undo: bool, yes: bool) -> None:
    """AGENT is claude-code, codex, cursor, gemini, opencode, claude-desktop or vscode; without it, all that
    are found. Shows each change and asks; in a pipe it only shows, unless --yes is given."""
    from infinimem.hooks import connect as connecting

    out, arguments = options.out, ["mcp"]
    if options.library:
        arguments += ["--library", str(Path(options.library).absolute())]
    elif Path(SETTINGS).exists():
        out.say(
            "a client reads the library of its own folder, else the default; this one: --library . connect"
        )
    if not (undo or find_spec("mcp")):
        out.say("the server lacks packages; run: pip install 'infinimem[mcp]'")
    known = connecting.agents(arguments, Path.home())
    if unknown := [one for one in agent if not known.get(one)]:
        why = "is not installed" if unknown[0] in known else f"is unknown; there are {', '.join(known)}"
        raise UsageError(f"{unknown[0]} {why}")
    rows = []
    for one in filter(None, (known[name] for name in agent or known)):
        try:
            before, after = connecting.change(one, undo)
            state = "unchanged" if before == after else "shown"
            if state == "shown":
                old, new = ((text or "").splitlines() for text in (before, after))
                diff = difflib.unified_diff(old, new, str(one.file), str(one.file), n=2, lineterm="")
                for line in () if options.json else diff:
                    out.line(line)
                if yes or out.confirms(f"Change it for {one.name}?"):
                    connecting.write(one, before, after, undo)
                    state = "undone" if undo else "connected"
        except UsageError as error:
            state = str(error)
        rows.append({"agent": one.id, "file": str(one.file), "state": state})
        out.say(f"{one.name}: {state}{f'; {one.more}' if state == 'connected' and one.more else ''}")
    out.result({"rows": rows}, lambda: None if rows else out.line("no agent program is found"))


@command(context_settings={"ignore_unknown_options": True})
@click.argument("event", required=False, default="")
@click.argument("rest", nargs=-1, type=click.UNPROCESSED)
def hook(options: Options, event: str, rest: tuple[str, ...]) -> None:
    """Reads the hook's JSON from standard input.

    The first UserPromptSubmit of a session prints what `recall` shows, if it is found at
    once. PreCompact and SessionEnd remember the session in the background. Always exits 0.
    """
    run(event, options.library, options.out.say)  # a plain call does not come here (cli/__init__.py)


@command()
@words("prompt", required=False)
@click.option("--cwd", metavar="DIR", default=".", help="The folder that the session is in.")
@click.option("--why", is_flag=True, help="Show why each line is shown, and what was left out and why.")
def recall(options: Options, prompt: str | None, cwd: str, why: bool) -> None:
    """The block stands before the first prompt of a session. Without PROMPT: what it always holds."""
    from infinimem.hooks.recall import Hit, Recall
    from infinimem.memory import open_memory

    out, folder = options.out, Path(cwd).expanduser().resolve()
    place = locate(options.library, folder)
    notes = or_notes(place, folder, out.say)
    if options.library is None and notes == place:
        notes = library_of(None, folder, out.say)
    memory = open_memory(notes.path, model=OFFLINE)
    if not (notes.is_default or is_mine(notes.path)):
        out.say(f"hooks do not read {notes.path}: it is not trusted; to change that, run: infinimem trust")
    recalled = Recall(memory).preview(prompt or "", str(folder))
    if out.result(recalled):
        rows = [
            (hit.why or hit.part, ", ".join(hit.words), f"{hit.score:.2f}", hit.where, hit.text)
            for hit in (Hit(**line) for line in recalled["lines"])
        ]
        if why and rows:
            out.table(("why", "words", "score", "where", "line"), rows)
        out.line(recalled["text"] or "nothing is injected")
        if not recalled["text"]:
            options.say_nothing(memory)


@click.group(cls=Section)
def fleet() -> None:
    """$INFINIMEM_FLEET names the store (s3://BUCKET/PREFIX), $INFINIMEM_FLEET_DATABASE a PostgreSQL database
    of its own. Keys and endpoint come from $AWS_ACCESS_KEY_ID, $AWS_SECRET_ACCESS_KEY, $AWS_ENDPOINT_URL.
    """


def _opened(options: Options) -> Fleet:
    from infinimem.fleet.fleet import open_fleet

    if options.library is not None:
        raise UsageError("a library of a fleet is named after the command; leave --library out")
    url, database = os.environ.get(URL), os.environ.get(DATABASE)
    if not url or not database:
        raise UsageError(f"set {URL if not url else DATABASE}; see: infinimem fleet --help")
    return open_fleet(url, database=database, cache=os.environ.get(CACHE), model=options.model)


@fleet.command()
def init(options: Options) -> None:
    """Make the database's tables, and see that the bucket is there."""
    with _opened(options) as opened:
        opened.init()
        url = opened.home.url
        options.out.result({"fleet": url}, lambda: options.out.line(f"{url} is ready"))


_library = click.argument("name", metavar="LIBRARY")
_folder = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))


@fleet.command()
@_library
@words("text")
@click.option("--key", help="What comes twice with the same key is recorded once.")
@click.option("--session", metavar="NAME", help="Name of the conversation.")
def append(options: Options, name: str, text: str, key: str | None, session: str | None) -> None:
    """Keep TEXT for LIBRARY; a worker draws from it. With `-`, TEXT is read from standard input."""
    text = sys.stdin.read() if text == "-" else text
    with _opened(options) as opened:
        due = opened.append(name, [Turn(text, session=session)], key)
    if not due:
        options.out.say("the database does not answer: the library is due at the next look through the store")
    options.out.result({"library": name, "due": due}, lambda: options.out.line(f"kept for {name}"))


@fleet.command()
@_library
@words("question")
def ask(options: Options, name: str, question: str) -> None:
    """Answer a question from LIBRARY, as its newest head has it."""
    from infinimem.cli.reading import show_answer

    with _opened(options) as opened, opened.open(name) as memory:
        answer = memory.ask(question)
    options.out.result(answer_json(answer), lambda: show_answer(options.out, answer))


@fleet.command()
@click.option("--concurrency", type=click.IntRange(1, 1000), default=20, help="Libraries at a time.")
@click.option("--drain", is_flag=True, help="Stop when nothing is due.")
def worker(options: Options, concurrency: int, drain: bool) -> None:
    """Consolidate what is due, until stopped. The model is this process's own (INFINIMEM_MODEL)."""
    import asyncio  # as `--help` imports this module

    async def work(opened: Fleet) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, task.cancel)  # type: ignore[union-attr]
        with suppress(asyncio.CancelledError):
            await opened.work(concurrency, wait=not drain)

    with _opened(options) as opened:
        opened.status()  # what is wrong with the database is told at once
        asyncio.run(work(opened))


@fleet.command()
def status(options: Options) -> None:
    """Count the libraries that are due, running and failed. Also says how long the oldest has been due."""
    with _opened(options) as opened:
        counts = opened.status()
    rows = [(name.replace("_", " "), value) for name, value in counts.items()]
    options.out.result(counts, lambda: options.out.table(("what", "value"), rows))


@fleet.command()
def requeue(options: Options) -> None:
    """Make each library due whose inbox is not empty. For after a loss of the database."""
    with _opened(options) as opened:
        due = opened.requeue()
    text = f"{due} {'library is' if due == 1 else 'libraries are'} due"
    options.out.result({"due": due}, lambda: options.out.line(text))


@fleet.command()
@_library
@_folder
def export(options: Options, name: str, folder: Path) -> None:
    """Write LIBRARY to the new folder DIR, to look at or edit."""
    with _opened(options) as opened:
        opened.export(name, folder)
    options.out.result({"folder": str(folder)}, lambda: options.out.line(f"{name} is in {folder}"))


@fleet.command(name="import")
@_library
@_folder
def import_(options: Options, name: str, folder: Path) -> None:
    """Bring DIR, edited, back into LIBRARY, or in as a new one."""
    with _opened(options) as opened:
        changed = opened.import_(name, folder)
    text = f"{counted(changed, 'file')} of {name} changed"
    options.out.result({"changed": changed}, lambda: options.out.line(text))


@fleet.command()
@_library
@words("pattern")
@click.option("--yes", is_flag=True, help="Do it; without, only show what would go.")
def forget(options: Options, name: str, pattern: str, yes: bool) -> None:
    """Remove lines of LIBRARY that match PATTERN for good. Head, inbox and caches are rid of them."""
    out = options.out
    with _opened(options) as opened:
        if yes:
            done = opened.forget(name, match=pattern)
        else:
            with opened.open(name) as memory:
                done = memory.forget(match=pattern, dry_run=True)
    data = {"seqs": list(done.seqs), "left": [asdict(item) for item in done.left], "forgotten": yes}
    if out.result(data):
        what = "forgotten" if yes else "would go; --yes forgets them"
        out.line(f"{counted(len(done.seqs), 'line')} {what}")
        for left in done.left:
            out.line(f"{left.path} still holds some of it ({left.why})", "bold yellow")
