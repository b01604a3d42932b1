"""Commands that look after a library: status, doctor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import click

from infinimem.cli.options import Command, Options, pass_options
from infinimem.cli.output import counted


@click.command(cls=Command)
@pass_options
def status(options: Options) -> None:
    """What the library holds, how full the buffer is, the last receipt, the model in use."""
    out = options.out
    found = options.status()
    out.result(found, lambda: out.table(("what", "value"), _rows(found)))


def _rows(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in values.items():
        label = f"{prefix}{name}".replace("_", " ")
        if isinstance(value, Mapping):
            yield from _rows(value, f"{label} ")
        else:
            yield label, "-" if value is None else value


@click.command(cls=Command)
@click.pass_context
def doctor(context: click.Context) -> None:
    """Check the library; exit code 1 if there are errors (notes are no errors)."""
    options = context.ensure_object(Options)
    out = options.out
    with out.progress("Checking"):
        findings = options.reading().doctor()

    def show() -> None:
        out.table(("level", "where", "what"), [(item.level, item.where, item.what) for item in findings])
        out.say(counted(len(findings), "finding"))

    out.result({"findings": [asdict(finding) for finding in findings]}, show)
    if any(finding.level == "error" for finding in findings):
        context.exit(1)
