"""lint: what the lines of a library say that is worth a person's look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import click

from infinimem.cli.options import Command, Options
from infinimem.cli.output import Output, counted
from infinimem.model import Finding


@click.command(cls=Command)
@click.pass_context
def lint(context: click.Context) -> None:
    """Look for contradictions, secrets, doubtful times, topics without bounds, lines that are there twice.

    Nothing is written, and no line is quoted: a finding says where to look. Exit code 1 if there are errors
    (secrets, values that exclude each other); notes are no errors. What breaks the format, `doctor` finds.
    """
    from infinimem.operations.doctor.lint import examine
    from infinimem.operations.doctor.secrets import has_scanner

    options = context.ensure_object(Options)
    out = options.out
    with out.progress("Looking"):
        found = examine(options.reading().view)
    scanner = "detect-secrets" if has_scanner() else None
    data = {"findings": [asdict(finding) for finding in found], "scanner": scanner}
    out.result(data, lambda: _show(out, found))
    errors = sum(finding.level == "error" for finding in found)
    out.say(f"{counted(errors, 'error')}, {counted(len(found) - errors, 'note')}")
    if scanner is None:
        out.say("few kinds of secrets are known without a scanner; pip install 'infinimem[lint]' brings one")
    if errors:
        context.exit(1)


def _show(out: Output, found: Sequence[Finding]) -> None:
    """A line a finding, errors first; in a pipe each begins with its level."""
    if not out.for_people:
        out.table((), [(item.level, item.where, item.what, item.fix) for item in found])
        return
    for level, style in (("error", "bold red"), ("note", "bold yellow")):
        some = [item for item in found if item.level == level]
        if some:
            out.line(f"{level}s", style)
            out.table(("where", "what"), [(item.where, f"{item.what}; {item.fix}") for item in some])
            out.line()
