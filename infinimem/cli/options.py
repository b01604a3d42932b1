"""What commands share: the global options, those of several commands, and the library that they come to."""

from __future__ import annotations

import os
import shlex
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from infinimem.cli.locate import Location, locate, or_notes
from infinimem.cli.output import Output
from infinimem.errors import InfinimemError, LibraryError, ModelError, UsageError
from infinimem.user_folders import SETTINGS, first_today, is_mine

if TYPE_CHECKING:
    from infinimem.memory import Memory
    from infinimem.reader import Reader

OFFLINE = "offline"
COMPLETION = "_INFINIMEM_COMPLETE"
COUNT = click.IntRange(min=1)
FILE = click.Path(exists=True, path_type=Path)
C = TypeVar("C", bound=Callable[..., Any])

TABLES = tomllib.loads(Path(__file__).with_name("commands.toml").read_text(encoding="utf-8"))
COMMANDS = {name: row for rows in TABLES["section"].values() for name, row in rows.items()}


@dataclass
class Options:
    """The options of one invocation; see `global_options` and the decorators below."""

    library: str | None = None
    model: str | None = None
    embedder: str | None = None
    strategy: str | None = None
    json: bool = False
    quiet: bool = False
    verbose: bool = False
    moment: str | None = None
    project: str | None = None
    raw: bool = False
    estimate: bool = False
    max_tokens: int | None = None

    @property
    def out(self) -> Output:
        return Output(as_json=self.json, quiet=self.quiet)

    def place(self, notes: bool = False, say: Callable[[str], None] | None = None) -> Location:
        place = locate(self.library, Path.cwd())
        return or_notes(place, Path.cwd(), say or self.out.say) if notes else place

    def reading(self, notes: bool = False) -> Memory:
        """Open the library, or the current folder of `notes`, with no model, whose key may be missing. Tell
        what is passed over that may be meant as notes: once a day, and always what cannot be read."""
        memory = self._open(OFFLINE, notes=notes)
        memory.library.view()
        passed = memory.library.fresh.passed_over()
        if passed:
            from infinimem.store.folders import UNREADABLE

            if not first_today("passed-over", str(memory.library.files.root)):
                passed = {path: why for path, why in passed.items() if why == UNREADABLE}
        if passed and not self.quiet:
            listed = ", ".join(f"{path} ({why})" for path, why in [*passed.items()][:3])
            more = f" and {len(passed) - 3} more" if len(passed) > 3 else ""
            click.echo(f"passed over: {listed}{more}; infinimem doctor names all", err=True)
        return self._warned(memory)

    def snapshot(self, memory: Memory) -> Reader:
        """Return the library as --as-of and --project ask for it."""
        reader, project = memory.at(self.moment) if self.moment else memory, self.folder()
        if self.moment and not self.moment.isdecimal() and not reader.view.below("journal/"):
            for first in memory.receipts()[:1]:
                known = f"all before the first receipt was recorded by {first.time}"
                self.out.say(f"as of {self.moment}: {known}, and an import counts from when it was said")
        return reader.within(project) if project else reader

    def say_nothing(self, memory: Memory, said: Mapping[str, Any] = {}) -> None:  # read alone
        """Say that nothing is found, and where it was looked for; `said` is what the evidence has of it."""
        from infinimem.results import counted

        documents = counted(len(memory.view.ids("all")), "document")
        self.out.say(f"nothing is found in {memory.library.root}, which has {documents}")
        if said.get("hits") or said.get("matches"):
            self.out.say("only the evidence has it: search and grep take --scope evidence")

    def folder(self) -> str | None:
        is_path = self.project and (self.project in (".", "..", "~") or "/" in self.project)
        return str(Path(self.project or "").expanduser().resolve()) if is_path else self.project

    def asking(self) -> Memory:
        """Open the library, or notes, with a model; rules answer where untrusted settings would choose it."""
        memory = self._warned(self._open(self.model, notes=True))
        if memory.library.configuration.suspends_model(self.model):
            return self._open(OFFLINE, notes=True)
        return self._tell_offline(memory)

    def writing(self) -> Memory:
        """Open the library with its model; the default library is made if it is not there."""
        place = self.place()
        memory = self._tell_offline(self._open(self.model, create=place.is_default))
        or_notes(place, Path.cwd(), self.out.say, writes=True)
        if memory.library.configuration.suspends_model(self.model):
            return memory  # to ask it is an error that says the same
        return self._warned(memory)

    def status(self) -> dict[str, Any]:
        """Count what the library holds; a model that cannot be used hinders nothing."""
        try:
            return self._warned(self._open(self.model, notes=True)).status()
        except ModelError as error:
            return {**self.reading(notes=True).status(), "model": f"not usable: {error}"}

    def serving(self) -> Memory:
        """Open the library for programs that call: one that is not this user's is read-only."""
        place = self.place()
        is_library = place.is_default or (place.path / SETTINGS).is_file()
        if place.is_default or (is_library and is_mine(place.path)):
            return self.writing()
        self.out.say(
            f"{place.path} is not trusted: it is read-only, and its settings decide nothing about where text "
            f"goes; to change that, run: infinimem trust {place.path}"
            if is_library
            else f"{place.path} is a folder of notes: it is read-only; infinimem init makes it a library"
        )
        return self._tell_offline(self._open(self.model, read_only=True))

    def _open(self, model: str | None, *, notes: bool = False, **how: Any) -> Memory:
        place = self.place(notes)
        if place.is_default and not how.get("create") and not place.path.is_dir():
            here = or_notes(place, Path.cwd(), lambda text: None).path
            advice = f"; --library . reads the notes in {here}, `infinimem init` makes them a library"
            raise LibraryError(
                f"there is no library at {place.path} yet; `infinimem add` makes it, --library names another"
                " or a folder of notes" + advice * (here != place.path)
            )
        from infinimem.memory import open_memory

        how |= {"embedder": self.embedder, "strategy": self.strategy}
        return open_memory(place.path, model=model, **how)

    def _tell_offline(self, memory: Memory) -> Memory:
        named = self.model or memory.library.settings.llm.model
        watched = self.out.for_people and self.out.talks
        if watched and memory.llm.name == OFFLINE and not named and first_today("offline"):
            self.out.say("offline: no model is configured, rules do the work; --model names one")
        return memory

    def _warned(self, memory: Memory) -> Memory:
        from infinimem.settings import advice

        if (suspended := memory.library.configuration.suspended) and not self.quiet:
            click.echo(advice(memory.library.root, suspended), err=True)
        return memory


_pass_options = click.make_pass_decorator(Options, ensure=True)


def _remember(context: click.Context, option: click.Parameter, value: Any) -> None:
    options = context.find_root().ensure_object(Options)
    if value not in (None, "") and value is not False:
        setattr(options, str(option.name), value)
    if options.quiet and options.verbose:
        raise click.UsageError("-q and -v exclude each other; choose one")


_shared = partial(click.option, expose_value=False, callback=_remember)


def global_options() -> list[click.Option]:
    option = partial(click.Option, expose_value=False, callback=_remember)
    return [
        option(["--library"], metavar="DIR", help="The library's folder."),
        option(["--model"], metavar="NAME", help="The model to use, or `offline`."),
        option(["--embedder"], metavar="NAME", help="The source of vectors of texts."),
        option(["--strategy"], metavar="NAME", help="The strategy that organises the library."),
        option(["--json"], is_flag=True, help="Print one JSON object on stdout."),
        option(["-q", "--quiet"], is_flag=True, help="Print no messages on stderr."),
        option(["-v", "--verbose"], is_flag=True, help="Show tracebacks, token use, traces."),
    ]


project_option = _shared(
    "--project", metavar="DIR", help="Use only what was said in this folder (its path or name) or below."
)
raw_option = _shared("--raw", is_flag=True, help="Show lines as they stand in the file, signatures too.")
cap_option = _shared(
    "--max-tokens", type=click.IntRange(min=0), metavar="N", help="Stop calling the model after N tokens."
)


def snapshot_options(function: C) -> C:
    about = "Use the library as it was at a time, seq or receipt."
    return _shared("--as-of", "moment", metavar="MOMENT", help=about)(project_option(function))


def spending_options(function: C) -> C:
    about = "Estimate the tokens it would take; write nothing."
    return _shared("--estimate", is_flag=True, help=about)(cap_option(function))


def words(name: str, required: bool = True, metavar: str | None = None) -> Callable[[C], C]:
    """Add an argument of one or more words, with or without quotes around them; None for none."""

    def joined(context: click.Context, param: click.Parameter, value: tuple[str, ...]) -> str | None:
        return " ".join(value) if value else None

    return click.argument(name, nargs=-1, required=required, metavar=metavar, callback=joined)


def numbers(text: str | None, option: str) -> list[int]:
    parts = text.split(",") if text is not None else []
    if not all(part.strip().isdecimal() and len(part.strip()) < 19 for part in parts):
        raise UsageError(f"{option} {text!r}: write numbers with commas between, for example 12,15")
    return [int(part) for part in parts]


def document_ids(context: click.Context, param: click.Parameter, begun: str) -> list[str]:
    """Complete an id from the names of the files alone; where there is no library there is none."""
    from infinimem.store.folders import listed

    options = context.find_root().ensure_object(Options)
    try:
        folders = listed(options.place(notes=True, say=lambda text: None).path).values()
    except InfinimemError:  # nobody wants to read of it while typing
        return []
    ids = (doc_id for folder in folders for doc_id in folder.documents)
    offered = sorted(doc_id for doc_id in ids if doc_id.startswith(begun))[:200]  # nobody reads more
    # bash puts on the line what it is given, and would run a name such as $(date); zsh and fish quote it.
    in_bash = os.environ.get(COMPLETION, "").startswith("bash")
    return [shlex.quote(doc_id) for doc_id in offered] if in_bash else offered


def write_examples(formatter: click.HelpFormatter, examples: Iterable[str]) -> None:
    with formatter.section("Examples"):
        for example in examples:
            formatter.write(f"{'':{formatter.current_indent}}infinimem {example}\n")


class Inner(click.Command):
    """A command below another one; it takes the global options too, listed apart in its help."""

    def __init__(self, name: str, *args: Any, **kwargs: Any) -> None:
        kwargs["context_settings"] = {"show_default": True, **(kwargs.get("context_settings") or {})}
        super().__init__(name, *args, **kwargs)
        self._globals = global_options()
        self.params += self._globals

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own = [p for p in self.get_params(ctx) if isinstance(p, click.Option) and p not in self._globals]
        for title, params in (("Options", own), ("Global options", self._globals)):
            rows = [row for param in params if (row := param.get_help_record(ctx)) is not None]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


class Command(Inner):
    """A command of the root: commands.toml has summary and examples, its docstring the rest."""

    def __init__(self, name: str, *args: Any, **kwargs: Any) -> None:
        self._listed = COMMANDS[name]
        told = self._listed["summary"], cleandoc(kwargs.get("help") or "")
        kwargs["help"] = "\n\n".join(filter(None, told))
        super().__init__(name, *args, **kwargs)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(formatter, self._listed["examples"])


def command(name: str | None = None, **attributes: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a function of the invocation's `Options` a command of the root."""
    return lambda function: click.command(name, cls=Command, **attributes)(_pass_options(function))


class Section(Command, click.Group):
    """A command of the root with commands of its own, which are functions of the `Options`, too."""

    command_class = Inner

    def command(  # type: ignore[override]  # never without a call
        self, *args: Any, **attributes: Any
    ) -> Callable[[Callable[..., Any]], click.Command]:
        made = super().command(*args, **attributes)
        return lambda function: made(_pass_options(function))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)
