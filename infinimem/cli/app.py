"""The root command: finds the commands, and turns every error into one line and an exit code.

0 done, 1 failed or findings, 2 usage, 130 interrupted.
"""

from __future__ import annotations

import errno
import gc
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from itertools import takewhile
from keyword import iskeyword
from typing import Any

import click

from infinimem.cli.options import COMMANDS, TABLES, Options, global_options, write_examples
from infinimem.cli.output import as_json, filtered_streams
from infinimem.errors import InfinimemError, UsageError, meant


class _Failure(click.ClickException):
    """One line on stderr; with --json an object on stdout."""

    json = False

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))

    def show(self, file: Any = None) -> None:
        if self.json:
            click.echo(as_json({"error": self.format_message()}))
            return
        click.echo(f"error: {self.format_message()}", file=file, err=file is None, color=True)


class _WrongCall(_Failure):
    exit_code = 2


class _Root(click.Group):
    """Imports a command when it is called: an agent's hook must not wait for what the others need."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += global_options()

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = import_module(f"infinimem.cli.{COMMANDS[name]['module']}")
        command: click.Command = getattr(module, f"{name}_" if iskeyword(name) else name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name in TABLES["gone"] and not ctx.resilient_parsing:
            raise UsageError(TABLES["gone"][name])
        if not name.startswith("-") and self.get_command(ctx, name) is None and not ctx.resilient_parsing:
            raise click.UsageError(f"no command is called {name!r}{meant(name, COMMANDS)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for title, section in TABLES["section"].items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:<{width}}", row["summary"]) for name, row in section.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(formatter, TABLES["first_steps"])

    def main(self, args: Sequence[str] | None = None, *more: Any, **kwargs: Any) -> Any:
        given = sys.argv[1:] if args is None else args  # a wrong call may end before its options are read
        _Failure.json = "--json" in takewhile(lambda word: word != "--", given)
        with filtered_streams():
            return super().main(args, *more, **kwargs)

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        try:
            return super().make_context(*args, **kwargs)
        except click.UsageError as error:
            raise _one_line(error) from error

    def invoke(self, ctx: click.Context) -> Any:
        import logging

        from infinimem.log import log

        log.addHandler(handler := logging.StreamHandler())
        handler.setLevel(logging.WARNING)
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            raise _one_line(error) from error
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:
            ctx.exit(130)
        except Exception as error:
            if isinstance(error, OSError) and error.errno == errno.EPIPE:
                # The reader of the pipe has seen enough (`| head`): that is no failure.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                ctx.exit(0)
            if ctx.ensure_object(Options).verbose:
                import traceback

                click.echo(traceback.format_exc(), err=True)
            extra = ctx.invoked_subcommand
            if isinstance(error, ImportError) and extra in ("web", "mcp", "fleet"):
                how = f"pip install 'infinimem[{extra}]', or in a checkout: pip install '.[{extra}]'"
                raise _Failure(f"no package {error.name}; run: {how}") from error
            if isinstance(error, InfinimemError):
                raise (_WrongCall if isinstance(error, UsageError) else _Failure)(str(error)) from error
            if isinstance(error, OSError) and error.strerror:
                raise _Failure(f"{error.filename or 'a file'}: {error.strerror}") from error
            what = f"unexpected {type(error).__name__}: {error}"
            raise _Failure(f"{what}; -v shows where, please report it") from error
        finally:
            log.removeHandler(handler)


def _one_line(error: click.UsageError) -> click.ClickException:
    """Return click's three lines about a wrong call as one; a call without a command still shows the help."""
    if type(error).__name__ == "NoArgsIsHelpError":
        return error
    command, text = "infinimem", error.format_message().rstrip(".")
    if error.ctx:
        command = error.ctx.command_path
        if isinstance(error, click.NoSuchOption):
            if gone := TABLES["gone"].get(f"{error.ctx.command.name} {error.option_name}"):
                return _WrongCall(gone)
            known = (name for param in error.ctx.command.params for name in param.opts)
            text = f"no such option {error.option_name!r}{meant(error.option_name, known)}"
    return _WrongCall(f"{text}{'' if text.endswith('?') else ';'} see: {command} --help")


# Colour: click would drop some escape sequences in a pipe, which are to be seen (output.py).
@click.group(cls=_Root, context_settings={"help_option_names": ["-h", "--help"], "color": True})
@click.version_option(package_name="infinimem")
def app() -> None:
    """Long-term memory in a folder of Markdown.

    The folder is --library, else $INFINIMEM_LIBRARY, else the nearest parent folder with an infinimem.toml,
    else this user's default library. A plain folder of notes can be read as it
    is; search, grep, ls, read and ask use the current one if there is no library.
    """


SELDOM = 50_000
"""New objects after which garbage is collected: at Python's 700 it is a fifth of an import's time."""


def main() -> None:
    gc.set_threshold(SELDOM)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:  # a terminal in another encoding shows escapes and does not fail
            reconfigure(errors="backslashreplace")
    warnings.formatwarning = lambda message, *_: f"note: {message}\n"
    app(prog_name="infinimem")
