"""What a command prints: tables for people at a terminal, plain lines in a pipe, one JSON object with --json.

Data goes to stdout, messages to stderr. Knows nothing of libraries; rich is imported for a terminal alone.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from threading import Timer
from typing import IO, TYPE_CHECKING, Any, TextIO, cast

import click

from infinimem.markdown.characters import visible

if TYPE_CHECKING:
    from rich.console import Console

Step = Callable[[int, int], None]  # called with how much is done and how much there is
Marks = Callable[[str], Iterable[tuple[int, int]]]
"""Gives the parts of a text that matched: where each begins and ends."""
LEAST = 20  # characters of a line that is broken, however narrow the terminal
_SPANS = (("day", 1, 14), ("week", 7, 61), ("month", 30, 730), ("year", 365, 10**7))
"""Units of time, their days, and the days from which on the next one is used."""


def ago(time: str, today: date | None = None) -> str:
    """Return a time for people, "2025-10-21, 5 weeks ago"; what is no day unchanged."""
    try:
        days = ((today or date.today()) - date.fromisoformat(time[:10])).days
    except ValueError:
        return time
    if -1 <= days <= 0:  # it may be tomorrow in the place where it was said
        return f"{time[:10]}, today"
    if days == 1:
        return f"{time[:10]}, yesterday"
    from infinimem.results import counted  # `--help` needs none of it

    unit, length = next((unit, length) for unit, length, until in _SPANS if abs(days) < until)
    span = counted(abs(days) // length, unit)
    return f"{time[:10]}, {f'{span} ago' if days > 0 else f'in {span}'}"


@dataclass(frozen=True)
class Output:
    """How to print: with `as_json` one JSON object and no messages, with `quiet` no messages."""

    as_json: bool = False
    quiet: bool = False

    @property
    def for_people(self) -> bool:
        return not self.as_json and sys.stdout.isatty()

    @property
    def talks(self) -> bool:
        return not (self.as_json or self.quiet)

    def result(self, data: Mapping[str, Any], show: Callable[[], None] | None = None) -> bool:
        """Print `data` as JSON, or what `show` prints; return whether it is for the caller to print."""
        if self.as_json:
            click.echo(as_json(data))
        elif show:
            show()
        return not (self.as_json or show)

    def line(
        self, text: str = "", style: str | None = None, hang: int = 0, marks: Marks | None = None
    ) -> None:
        """Print a line, or several, on a terminal in a `style`, broken between words and indented by `hang`
        from the second on; `marks` says what to highlight behind the first `hang` characters."""
        if not self.for_people:
            click.echo(text)
            return
        from rich.text import Text

        console, shown = _console(), Text(printable(text), style or "")
        for start, end in marks(shown.plain[hang:]) if marks else ():
            shown.stylize("bold red", hang + start, hang + end)
        if hang:
            head, body = shown.divide([hang])
            rows = body.wrap(console, max(console.width - hang, LEAST), overflow="fold")
            for row in rows:
                row.rstrip()
            shown = head + Text(f"\n{'':{hang}}").join(rows)
        console.print(shown, soft_wrap=True)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Print a table for people, tab-separated lines in a pipe. What is too wide is folded, never cut."""
        if not self.for_people:
            for row in rows:
                click.echo("\t".join(" ".join(str(cell).split()) for cell in row))
            return
        from rich.table import Table
        from rich.text import Text

        cells = [[printable(str(cell)) for cell in row] for row in ([*columns], *rows)]
        console, table = _console(), Table(box=None, header_style="bold", pad_edge=False)
        widths = [max(map(len, column)) + 2 for column in zip(*cells, strict=True)]
        # Where the others leave room for the last column, none of them is broken.
        whole = sum(widths[:-1]) + LEAST <= console.width
        for number, name in enumerate(cells[0], 1):
            table.add_column(Text(name), overflow="fold", no_wrap=whole and number < len(columns))
        for row in cells[1:]:
            table.add_row(*map(Text, row))
        console.print(table)

    def say(self, text: str) -> None:
        if self.talks:
            click.echo(text, err=True)

    def confirms(self, question: str) -> bool:
        return self.for_people and sys.stdin.isatty() and click.confirm(question, err=True)

    @contextmanager
    def progress(self, label: str) -> Iterator[Step]:
        """Show a bar on stderr, once the work has taken over a second and a person watches."""
        if not (self.talks and sys.stderr.isatty()):
            yield lambda done, total: None
            return
        from rich import progress

        bar = progress.Progress(
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeElapsedColumn(),
            progress.TextColumn("elapsed,"),
            progress.TimeRemainingColumn(),
            progress.TextColumn("left"),
            console=_console(sys.stderr),
            transient=True,
            redirect_stdout=False,  # what else is written meanwhile goes through the filter
            redirect_stderr=False,
        )
        task = bar.add_task(printable(label), total=None)
        late = Timer(1.0, bar.start)  # most commands are over before a bar could be read
        late.daemon = True
        late.start()
        try:
            yield lambda done, total: bar.update(task, completed=done, total=total or None)
        finally:
            late.cancel()
            late.join()
            if bar.live.is_started:
                bar.stop()


def _console(stream: IO[str] | None = None) -> Console:
    """Return a console whose own escapes reach the terminal: its input is made printable before."""
    from rich.console import Console

    stream = stream or sys.stdout
    plain = None if os.environ.get("NO_COLOR") else "auto"  # source: no-color.org
    return Console(
        file=stream.unfiltered if isinstance(stream, _Filtered) else stream,
        color_system=cast("Any", plain),
        emoji=False,
        highlight=False,
    )


def as_json(data: Mapping[str, Any]) -> str:
    """Write JSON on one line, in which what may not be printed stands as an escape of JSON."""
    text = json.dumps(data, ensure_ascii=False)
    return text if printable(text) == text else json.dumps(data)


def printable(text: str) -> str:
    """Return text that no terminal obeys, as UTF-8: what controls, hides or reorders is escaped."""
    return visible(text.encode("utf-8", "backslashreplace").decode("utf-8"), turned=False)


@contextmanager
def filtered_streams() -> Iterator[None]:
    """Make printable all that is written to stdout and stderr: by commands, click, warnings and logs."""
    out, err = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = cast("TextIO", _Filtered(out)), cast("TextIO", _Filtered(err))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = out, err


class _Filtered:
    """A text stream that makes printable what is written to it, even by way of its buffer."""

    def __init__(self, stream: TextIO) -> None:
        self.unfiltered = stream

    def write(self, text: str) -> int:
        self.unfiltered.write(printable(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    @property
    def buffer(self) -> _FilteredBytes:
        return _FilteredBytes(self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unfiltered, name)


class _FilteredBytes:
    """The binary side, which click writes completions to, and all else where the encoding is ASCII."""

    def __init__(self, text: _Filtered) -> None:
        self._text = text

    def write(self, data: bytes) -> int:
        self._text.write(bytes(data).decode("utf-8", "backslashreplace"))
        return len(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._text.unfiltered.buffer, name)
