"""Commands about settings: config tells which are in force, trust lets those of a library act."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from infinimem import user_folders as book
from infinimem.cli.locate import configuration_of
from infinimem.cli.options import Command, Options, pass_options
from infinimem.cli.output import Output
from infinimem.errors import LibraryError, UsageError, escape
from infinimem.settings import Configuration, defaults, host_of, shown

_ACTS = {
    "llm.model": "the model that is asked",
    "embedder.name": "what gives texts vectors",
    "embedder.path": "the folder that a model is loaded from",
    "memory_tool.observe": "what a model writes into memories/ is recorded and drawn from",
}
_OPTIONS = {"model": "llm.model", "embedder": "embedder.name", "strategy": "strategy"}


@click.command(cls=Command)
@pass_options
def config(options: Options) -> None:
    """Settings that decide where text is sent come from options, the environment, this user's config.toml, or
    the library's infinimem.toml if it is trusted, in this order.
    """
    place = options.place()
    found = configuration_of(place.path)
    said = {setting: getattr(options, option) for option, setting in _OPTIONS.items()}
    origins = {**found.origins, **{name: "option" for name, value in said.items() if value}}
    values = {**defaults(), **found.values, **{name: value for name, value in said.items() if value}}
    rows = [
        {
            "name": name,
            "value": shown(name, value) if name.endswith("base_url") and value else value,
            "origin": origins.get(name, "default"),
            "suspended": shown(name, found.suspended[name]) if name in found.suspended else None,
        }
        for name, value in values.items()
    ]
    mine = place.is_default or book.is_mine(place.path)
    data = {"library": str(place.path), "mine": mine, "settings": rows}

    def show() -> None:
        out = options.out
        out.line(
            f"{place.path} ({'yours' if mine else 'not yours: hooks and MCP clients do not write here'})"
        )
        shorter = [{**row, "value": "-" if row["value"] is None else escape(row["value"])} for row in rows]
        cells = [[row[key] for key in ("name", "value", "origin")] for row in shorter]
        out.table(("setting", "value", "from"), cells)
        for name, value in found.suspended.items():
            what = f"{name} = {shown(name, value)} does not count: the library is not trusted"
            out.line(what, "bold yellow")

    options.out.result(data, show)


@click.command(cls=Command)
@click.argument("directory", metavar="[DIR]", required=False)
@click.option("--list", "list_", is_flag=True, help="List the trusted libraries.")
@click.option("--remove", is_flag=True, help="Stop trusting it.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@pass_options
def trust(options: Options, directory: str | None, list_: bool, remove: bool, yes: bool) -> None:
    """Hooks and MCP clients may then write into it, and its settings decide where text is sent.

    Shows what that means and asks; in a pipe it only shows, unless --yes is given. If those settings change
    later, run it again.
    """
    out = options.out
    if list_:
        rows = [{"library": row.path, "state": _state(row)} for row in book.trusted()]
        cells = [tuple(row.values()) for row in rows]
        out.result({"rows": rows}, lambda: out.table(("library", "settings"), cells))
        return
    path = Path.cwd() / Path(directory).expanduser() if directory else options.place().path
    if remove:
        done = book.revoke(path)
        out.result({"library": str(path), "trusted": False}, lambda: None)
        out.say(f"{path} is {'trusted no more' if done else 'not trusted anyway'}")
        return
    if not path.is_dir():
        raise LibraryError(f"there is no folder {path}; name the library's folder")
    found = configuration_of(path)
    if not out.as_json:
        _show(out, path, found)
    agreed = yes or bool(
        out.for_people and sys.stdin.isatty() and click.confirm("Trust it?", err=True, default=False)
    )
    if agreed and not book.approve(path, found.digest):
        raise UsageError("HOME is not set, so nothing can be noted; name the library in INFINIMEM_TRUST")
    trusted = agreed or book.is_named(path) or book.approved(path) == found.digest
    acting = [{"name": name, "value": shown(name, value)} for name, value in found.proposed.items()]
    out.result({"library": str(path), "settings": acting, "trusted": trusted}, lambda: None)
    out.say(f"{path} is {'trusted' if trusted else 'not trusted; add --yes to trust it'}")


def _show(out: Output, path: Path, found: Configuration) -> None:
    out.line(f"{escape(os.path.realpath(path), 4096)}: hooks and MCP clients may write into it")
    acting = {**found.suspended, **found.proposed}
    for name, value in acting.items():
        effect = _ACTS.get(name, "is taken from here")
        if name.endswith("base_url"):
            what = "what is said" if name.startswith("llm") else "texts and queries"
            effect = f"{what}, and OPENAI_API_KEY, go to {host_of(str(value))}"
        elif name == "git" and value:
            effect = "commits here; of programs that git runs only those of your own configuration"
        out.line(f"  {name} = {shown(name, value)}: {effect}")
    if not acting:
        out.line("  its settings send nothing anywhere")


def _state(row: book.Trusted) -> str:
    try:
        return "trusted" if configuration_of(Path(row.path)).digest == row.digest else "changed since"
    except (LibraryError, UsageError):
        return "cannot be read"
