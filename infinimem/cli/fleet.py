"""fleet: many libraries in an object store (docs/FLEET.md)."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from infinimem.cli.options import Options, Section, pass_options, words
from infinimem.cli.show import show_answer
from infinimem.errors import InfinimemError, UsageError
from infinimem.model import Turn
from infinimem.results import answer_json, counted

if TYPE_CHECKING:
    from infinimem.fleet.fleet import Fleet

URL, DATABASE, CACHE = "INFINIMEM_FLEET", "INFINIMEM_FLEET_DATABASE", "INFINIMEM_FLEET_CACHE"


@click.group(cls=Section)
def fleet() -> None:
    """$INFINIMEM_FLEET names the store (s3://BUCKET/PREFIX), $INFINIMEM_FLEET_DATABASE a PostgreSQL database
    of its own. Keys and endpoint come from $AWS_ACCESS_KEY_ID, $AWS_SECRET_ACCESS_KEY, $AWS_ENDPOINT_URL.
    """


def _opened(options: Options) -> Fleet:
    try:
        from infinimem.fleet.fleet import open_fleet
    except ImportError as error:
        needed = "pip install 'infinimem[fleet]'"
        raise InfinimemError(f"{error.name} is not installed, which a fleet needs; run: {needed}") from error
    if options.library is not None:
        raise UsageError("a library of a fleet is named after the command; leave --library out")
    url, database = os.environ.get(URL), os.environ.get(DATABASE)
    if not url or not database:
        raise UsageError(f"set {URL if not url else DATABASE}; see: infinimem fleet --help")
    return open_fleet(url, database=database, cache=os.environ.get(CACHE), model=options.model)


@fleet.command()
@pass_options
def init(options: Options) -> None:
    """Make the database's tables, and see that the bucket is there."""
    with _opened(options) as opened:
        opened.init()
        options.out.result(
            {"fleet": opened.home.url}, lambda: options.out.line(f"{opened.home.url} is ready")
        )


@fleet.command()
@click.argument("name", metavar="LIBRARY")
@words("text")
@click.option("--key", help="What comes twice with the same key is recorded once.")
@click.option("--session", metavar="NAME", help="Name of the conversation.")
@pass_options
def append(options: Options, name: str, text: str, key: str | None, session: str | None) -> None:
    """Keep TEXT for LIBRARY; a worker draws from it. With `-`, TEXT is read from standard input."""
    text = sys.stdin.read() if text == "-" else text
    with _opened(options) as opened:
        due = opened.append(name, [Turn(text, session=session)], key)
    if not due:
        options.out.say("the database does not answer: the library is due at the next look through the store")
    options.out.result({"library": name, "due": due}, lambda: options.out.line(f"kept for {name}"))


@fleet.command()
@click.argument("name", metavar="LIBRARY")
@words("question")
@pass_options
def ask(options: Options, name: str, question: str) -> None:
    """Answer a question from LIBRARY, as its newest head has it."""
    with _opened(options) as opened, opened.open(name) as memory:
        answer = memory.ask(question)
    options.out.result(answer_json(answer), lambda: show_answer(options.out, answer))


@fleet.command()
@click.option("--concurrency", type=click.IntRange(1, 1000), default=20, help="Libraries at a time.")
@click.option("--drain", is_flag=True, help="Stop when nothing is due.")
@pass_options
def worker(options: Options, concurrency: int, drain: bool) -> None:
    """Consolidate what is due, until stopped. The model is this process's own (INFINIMEM_MODEL)."""
    import asyncio  # as `--help` imports this module
    import signal

    async def run(opened: Fleet) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, task.cancel)  # type: ignore[union-attr]
        with suppress(asyncio.CancelledError):
            await opened.work(concurrency, wait=not drain)

    with _opened(options) as opened:
        opened.status()  # what is wrong with the database is told at once
        asyncio.run(run(opened))


@fleet.command()
@pass_options
def status(options: Options) -> None:
    """Count the libraries that are due, running and failed. Also says how long the oldest has been due."""
    with _opened(options) as opened:
        found = opened.status()
    rows = [(name.replace("_", " "), value) for name, value in found.items()]
    options.out.result(found, lambda: options.out.table(("what", "value"), rows))


@fleet.command()
@pass_options
def requeue(options: Options) -> None:
    """Make each library due whose inbox is not empty. For after a loss of the database."""
    with _opened(options) as opened:
        found = opened.requeue()
    told = f"{found} {'library is' if found == 1 else 'libraries are'} due"
    options.out.result({"due": found}, lambda: options.out.line(told))


@fleet.command()
@click.argument("name", metavar="LIBRARY")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@pass_options
def export(options: Options, name: str, folder: Path) -> None:
    """Write LIBRARY to the new folder DIR, to look at or edit."""
    with _opened(options) as opened:
        opened.export(name, folder)
    options.out.result({"folder": str(folder)}, lambda: options.out.line(f"{name} is in {folder}"))


@fleet.command(name="import")
@click.argument("name", metavar="LIBRARY")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@pass_options
def import_(options: Options, name: str, folder: Path) -> None:
    """Bring DIR, edited, back into LIBRARY, or in as a new one."""
    with _opened(options) as opened:
        changed = opened.import_(name, folder)
    told = f"{counted(changed, 'file')} of {name} changed"
    options.out.result({"changed": changed}, lambda: options.out.line(told))


@fleet.command()
@click.argument("name", metavar="LIBRARY")
@words("pattern")
@click.option("--yes", is_flag=True, help="Do it; without, only show what would go.")
@pass_options
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

    def show() -> None:
        out.line(
            f"{counted(len(done.seqs), 'line')} {'forgotten' if yes else 'would go; --yes forgets them'}"
        )
        for left in done.left:
            out.line(f"{left.path} still holds some of it ({left.why})", "bold yellow")

    out.result(data, show)
