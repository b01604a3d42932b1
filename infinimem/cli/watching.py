"""watch: what changes in a library, as it happens."""

from __future__ import annotations

import signal
from dataclasses import asdict
from types import FrameType
from typing import TYPE_CHECKING

import click

from infinimem.cli.options import Command, Options, pass_options
from infinimem.cli.output import Output, as_json

if TYPE_CHECKING:
    from infinimem.watch import DocumentChange


@click.command(cls=Command)
@pass_options
def watch(options: Options) -> None:
    """Runs until Ctrl-C.

    A second after the last change, lines in CURRENT and in topics that have no signature get one, and the
    index is updated. In a folder of plain notes nothing is written.
    """
    out, memory = options.out, options.reading()
    from infinimem.watch import watch as changes

    ended = _Ended()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, ended)
    try:
        found = changes(memory)
        out.say(f"watching {memory.library.root}; Ctrl-C ends it")
        for change in found:
            _show(out, change)
    except KeyboardInterrupt:
        return
    except Exception:
        if not ended.asked:  # an import that is interrupted says that it failed
            raise


class _Ended:
    """Ends what runs, and remembers that it was asked to."""

    asked = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        raise KeyboardInterrupt


def _show(out: Output, change: DocumentChange) -> None:
    if out.as_json:
        row = {name: value for name, value in asdict(change).items() if value}
        click.echo(as_json(row))
    elif out.for_people:
        why = f" (was {change.was})" if change.was else f" ({change.receipt})" if change.receipt else ""
        out.line(f"{change.event:<8} {change.doc_id}{why}")
    else:
        out.table(
            (), [[cell for cell in (change.event, change.doc_id, change.was or change.receipt) if cell]]
        )
