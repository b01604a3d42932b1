"""The global options, and what they come to: which library, which model, how to print.

They are accepted before and after the command's name, so each command carries them too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from infinimem.cli.commands import COMMANDS, FIRST_STEPS
from infinimem.cli.output import Output
from infinimem.errors import LibraryError, ModelError, UsageError

if TYPE_CHECKING:
    from infinimem.cli.locate import Location
    from infinimem.llm.base import LLM
    from infinimem.memory import Memory
    from infinimem.reader import Reader

OFFLINE = "offline"
Begin = Callable[[bool], "Memory | None"]
"""Gives a library once it is there; told True it makes it."""
C = TypeVar("C", bound=Callable[..., Any])


@dataclass
class Options:
    """What the command line said; one for the whole invocation."""

    library: str | None = None
    model: str | None = None
    embedder: str | None = None
    strategy: str | None = None
    json: bool = False
    quiet: bool = False
    verbose: bool = False

    @property
    def out(self) -> Output:
        return Output(as_json=self.json, quiet=self.quiet)

    def place(self, looking: bool = False) -> Location:
        """The library that is meant; for a command that only looks perhaps the current folder of notes."""
        from infinimem.cli.locate import locate, or_notes  # help needs no settings

        place = locate(self.library, Path.cwd())
        return or_notes(place, Path.cwd()) if looking else place

    def reading(self) -> Memory:
        """The library, for a command that calls no model: a missing key or endpoint cannot hinder it."""
        return self._warned(self._passed(self._open(create=False, model=OFFLINE)))

    def looking(self) -> Memory:
        """As `reading`, and where there is no library, the folder of notes that the command is called in."""
        return self._warned(self._passed(self._open(create=False, model=OFFLINE, looking=True)))

    def asking(self) -> Memory:
        """As `looking`, with a model. Where settings that nobody trusted would choose it, rules answer."""
        memory = self._warned(self._open(create=False, model=self.model, looking=True))
        if memory.library.configuration.suspends_model(self.model):
            return self._open(create=False, model=OFFLINE)
        return self._told(memory)

    def writing(self) -> Memory:
        """The library with its model; the default library is made if it is not there."""
        memory = self._told(self._open(create=self.place().is_default, model=self.model))
        if memory.library.configuration.suspends_model(self.model):
            return memory  # to ask it is an error that says the same
        return self._warned(memory)

    def status(self) -> dict[str, Any]:
        """Counts of the library; a model that cannot be used is told, and hinders nothing."""
        try:
            return self._warned(self._open(create=False, model=self.model)).status()
        except ModelError as error:
            return {**self.reading().status(), "model": f"not usable: {error}"}

    def _told(self, memory: Memory) -> Memory:
        """Tell a person once a day that no model is asked."""
        named = self.model or memory.library.settings.llm.model
        if memory.llm.name == OFFLINE and not named and self.out.for_people and self.out.talks:
            from infinimem.user_folders import cache_root, first_today

            if (folder := cache_root()) is None or first_today(folder / "offline"):
                self.out.say("offline: no model is configured, rules do the work; --model names one")
        return memory

    def serving(self) -> tuple[Memory, Begin | None]:
        """The library with its model, for programs that call: one that is not this user's is read-only.

        In the place of a default library that nobody made yet an empty one, and what gives it once it is.
        """
        from infinimem.user_folders import is_mine

        place = self.place()
        if place.is_default and not place.path.is_dir():
            from tempfile import TemporaryDirectory

            from infinimem.memory import open_memory

            with TemporaryDirectory() as nothing:
                empty = open_memory(nothing, model=self.model, embedder=self.embedder, strategy=self.strategy)

            def begin(make: bool) -> Memory | None:  # with the same client, for a cap on tokens is on that
                return self._open(create=True, model=empty.llm) if make or place.path.is_dir() else None

            return self._told(empty), begin
        if place.is_default or is_mine(place.path):
            return self.writing(), None
        self.out.say(
            f"{place.path} is not trusted: it is read-only, and its settings decide nothing about where text "
            f"goes; to change that, run: infinimem trust {place.path}"
        )
        return self._told(self._open(create=False, model=self.model, read_only=True)), None

    def _open(
        self, create: bool, model: str | LLM | None, *, read_only: bool = False, looking: bool = False
    ) -> Memory:
        from infinimem.memory import open_memory

        place = self.place(looking)
        if place != self.place():
            self.out.say(f"there is no library here: reading the notes in {place.path}")
        if place.is_default and not create and not place.path.is_dir():
            raise LibraryError(
                f"there is no library at {place.path} yet; `infinimem add` makes it, --library names another"
                " or a folder of notes"
            )
        return open_memory(
            place.path,
            model=model,
            create=create,
            embedder=self.embedder,
            strategy=self.strategy,
            read_only=read_only,
        )

    def _passed(self, memory: Memory) -> Memory:
        """Tell what is passed over that may be meant as notes: once a day, and always what cannot be read."""
        memory.library.view()
        passed = memory.library.fresh.passed_over()
        if passed:
            from infinimem.retrieval.cache import cache_folder
            from infinimem.store.listing import UNREADABLE
            from infinimem.user_folders import first_today

            folder = cache_folder(str(memory.library.files.root), "told")
            if folder and not first_today(folder / "passed-over"):
                passed = {path: why for path, why in passed.items() if why == UNREADABLE}
        if passed and not self.quiet:
            told = ", ".join(f"{path} ({why})" for path, why in [*passed.items()][:3])
            more = f" and {len(passed) - 3} more" if len(passed) > 3 else ""
            click.echo(f"passed over: {told}{more}; infinimem doctor names all", err=True)
        return memory

    def _warned(self, memory: Memory) -> Memory:
        from infinimem.settings import advice

        suspended = memory.library.configuration.suspended
        if suspended and not self.quiet:
            click.echo(advice(memory.library.root, suspended), err=True)
        return memory


def snapshot(memory: Memory, moment: str | None, project: str | None) -> Reader:
    """The library as it is, or as it stood at a moment that --as-of names; of a project alone, where
    --project names one."""
    found, project = memory.at(moment) if moment else memory, named(project)
    return found.within(project) if project else found


def named(project: str | None) -> str | None:
    """A project as --project names it; a path is made absolute."""
    is_path = project and (project in (".", "..", "~") or "/" in project)
    return str(Path(project).expanduser().resolve()) if project and is_path else project


_as_of_option = click.option(
    "--as-of", "moment", metavar="MOMENT", help="Use the library as it was at a time, seq or receipt."
)
project_option = click.option(
    "--project", metavar="DIR", help="Use only what was said in this folder (its path or name) or below."
)


def snapshot_options(command: C) -> C:
    """Which state of the library is looked at, and which part."""
    return _as_of_option(project_option(command))


raw_option = click.option("--raw", is_flag=True, help="Show lines as they stand in the file, signatures too.")
estimate_option = click.option(
    "--estimate", is_flag=True, help="Estimate the tokens it would take; write nothing."
)
cap_option = click.option(
    "--max-tokens", type=click.IntRange(min=0), metavar="N", help="Stop calling the model after N tokens."
)


def _remember(context: click.Context, option: click.Parameter, value: Any) -> None:
    options = context.find_root().ensure_object(Options)
    if value:
        setattr(options, str(option.name), value)
    if options.quiet and options.verbose:
        raise click.UsageError("-q and -v exclude each other; choose one")


def _globals() -> list[click.Option]:
    keep: dict[str, Any] = {"expose_value": False, "callback": _remember}
    return [
        click.Option(["--library"], metavar="DIR", help="The library's folder.", **keep),
        click.Option(["--model"], metavar="NAME", help="The model to use, or `offline`.", **keep),
        click.Option(["--embedder"], metavar="NAME", help="The source of vectors of texts.", **keep),
        click.Option(["--strategy"], metavar="NAME", help="The strategy that organises the library.", **keep),
        click.Option(["--json"], is_flag=True, help="Print one JSON object on stdout.", **keep),
        click.Option(["-q", "--quiet"], is_flag=True, help="Print no messages on stderr.", **keep),
        click.Option(["-v", "--verbose"], is_flag=True, help="Show tracebacks, token use, traces.", **keep),
    ]


def numbers(text: str | None, option: str) -> list[int]:
    """ "12,15" as numbers."""
    parts = text.split(",") if text is not None else []
    if not all(part.strip().isdecimal() and len(part.strip()) < 19 for part in parts):
        raise UsageError(f"{option} {text!r}: write numbers with commas between, for example 12,15")
    return [int(part) for part in parts]


def words(name: str, required: bool = True, metavar: str | None = None) -> Callable[[C], C]:
    """An argument of one or more words, with or without quotes around them; None for none."""

    def joined(context: click.Context, param: click.Parameter, value: tuple[str, ...]) -> str | None:
        return " ".join(value) if value else None

    return click.argument(name, nargs=-1, required=required, metavar=metavar, callback=joined)


def _write_examples(formatter: click.HelpFormatter, examples: Iterable[str]) -> None:
    with formatter.section("Examples"):
        for example in examples:
            formatter.write(f"{'':{formatter.current_indent}}infinimem {example}\n")


class Inner(click.Command):
    """A command that takes the global options too, listed apart in its help; one below another command."""

    def __init__(self, name: str, *args: Any, **kwargs: Any) -> None:
        kwargs["context_settings"] = {"show_default": True, **(kwargs.get("context_settings") or {})}
        super().__init__(name, *args, **kwargs)
        self._globals = _globals()
        self.params += self._globals

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own = [p for p in self.get_params(ctx) if isinstance(p, click.Option) and p not in self._globals]
        for title, params in (("Options", own), ("Global options", self._globals)):
            rows = [row for param in params if (row := param.get_help_record(ctx)) is not None]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


class Command(Inner):
    """A command of the root.

    What it does in a line, and examples, stand in commands.py; its function's docstring says the rest.
    """

    def __init__(self, name: str, *args: Any, **kwargs: Any) -> None:
        self._listed = COMMANDS[name]
        kwargs["help"] = "\n\n".join(filter(None, (self._listed.summary, cleandoc(kwargs.get("help") or ""))))
        super().__init__(name, *args, **kwargs)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_examples(formatter, self._listed.examples)


class Section(Command, click.Group):
    """A command of the root with commands of its own."""

    command_class = Inner

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


class Group(click.Group):
    """The root: its options are the global ones."""

    command_class = Command

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += _globals()

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_examples(formatter, FIRST_STEPS)


pass_options = click.make_pass_decorator(Options, ensure=True)
