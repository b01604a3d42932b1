"""Commands that look after a library: status, doctor, lint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import click

from infinimem.cli.options import Command, Options, pass_options
from infinimem.cli.output import Output, ago
from infinimem.errors import FormatTooNew, SettingsError
from infinimem.model import KINDS, Finding
from infinimem.results import counted

_LABELS = {
    "entries": "live lines",
    "evidence": "recorded turns",
    "pending": "turns not processed yet",
    "lines awaiting review": "archivings awaiting review",
    "based on superseded": "lines and summaries based on superseded lines",
    "git waiting": "receipts not committed to git",
}
"""What `status` calls a count in its table, where the key alone says too little."""
_LABELS |= {
    f"unanswered {kind.replace('_', ' ')}": f"turns without a usable answer: {why}"
    for kind, why in KINDS.items()
}


@click.command(cls=Command)
@pass_options
def status(options: Options) -> None:
    """How full the buffer is, what awaits review, and the model in use."""
    out, found = options.out, options.status()
    out.result(found, lambda: out.table(("what", "value"), _rows(found, ago if out.for_people else str)))


def _rows(
    values: Mapping[str, Any], told: Callable[[str], str], prefix: str = ""
) -> Iterator[tuple[str, object]]:
    for name, value in values.items():
        label = f"{prefix}{name}".replace("_", " ")
        if isinstance(value, Mapping):
            yield from _rows(value, told, f"{label} ")
        elif isinstance(value, bool):
            yield label, "yes" if value else "no"
        elif name == "time":
            yield label, told(value)
        else:
            yield _LABELS.get(label, label), "-" if value is None else value


@click.command(cls=Command)
@click.option("--fix", is_flag=True, help="Repair what can be repaired without losing text.")
@click.pass_context
def doctor(context: click.Context, fix: bool) -> None:
    """Exit code 1 if there are errors (notes are no errors).

    Nothing is written without --fix; each finding says what --fix would do about it.
    """
    options = context.ensure_object(Options)
    out = options.out
    fixed: list[Finding] = []
    with out.progress("Checking"):
        try:
            memory = options.reading()
            if fix:
                fixed = memory.repair()
            found = memory.doctor()
        except (SettingsError, FormatTooNew) as error:  # nothing can be checked under unknown settings
            found = [Finding("error", str(error), "infinimem.toml")]
    data: dict[str, Any] = {"findings": [asdict(finding) for finding in found]}
    if fix:
        data["fixed"] = [asdict(finding) for finding in fixed]
    out.result(data, lambda: _show(out, found, fixed, advice="--fix: "))
    errors = _count(out, found)
    if some := [finding for finding in found if finding.fix]:
        out.say(f"infinimem doctor --fix repairs {len(some)} of them, and loses nothing")
    if errors:
        context.exit(1)


@click.command(cls=Command)
@click.pass_context
def lint(context: click.Context) -> None:
    """Also for doubtful times and overgrown topics.

    Nothing is written, and no line is quoted: a finding says where to look. Exit code 1 if there are errors
    (secrets); notes are no errors. What breaks the format, `doctor` finds.
    """
    from infinimem.operations.doctor import secrets
    from infinimem.operations.doctor.examine import lint as examined

    options = context.ensure_object(Options)
    out = options.out
    with out.progress("Looking"):
        found = examined(options.reading().view)
    scanner = "detect-secrets" if secrets.scanner() else None
    data = {"findings": [asdict(finding) for finding in found], "scanner": scanner}
    out.result(data, lambda: _show(out, found))
    errors = _count(out, found)
    if scanner is None:
        out.say("secrets were not looked for; pip install 'infinimem[lint]' adds a scanner")
    if errors:
        context.exit(1)


def _show(out: Output, found: Sequence[Finding], fixed: Sequence[Finding] = (), advice: str = "") -> None:
    """A line a finding, errors first; in a pipe each begins with its level.

    Args:
        found: what was found.
        fixed: what was repaired.
        advice: stands before what to do about a finding.
    """
    for level, style in (("error", "bold red"), ("note", "bold yellow"), ("fixed", "bold green")):
        some = fixed if level == "fixed" else [finding for finding in found if finding.level == level]
        if not out.for_people:
            out.table((), [(level, item.where, item.what, item.fix) for item in some])
        elif some:
            out.line(level if level == "fixed" else f"{level}s", style)
            fixes = [f" ({advice}{item.fix})" if item.fix and level != "fixed" else "" for item in some]
            out.table(
                ("where", "what"),
                [(item.where, item.what + fix) for item, fix in zip(some, fixes, strict=True)],
            )
            out.line()


def _count(out: Output, found: Sequence[Finding]) -> int:
    """Say how many errors and notes there are; the number of errors."""
    errors = sum(finding.level == "error" for finding in found)
    out.say(f"{counted(errors, 'error')}, {counted(len(found) - errors, 'note')}")
    return errors
