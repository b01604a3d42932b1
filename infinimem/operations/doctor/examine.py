"""`doctor` and `lint`: one table of checks over one inspection of the library. Nothing is written here.

`doctor` asks whether the library is sound: its errors break the format or the law, and `repair` does what a
finding's `fix` says. `lint` asks what the lines say: its `fix` is what a person can do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from infinimem.model import Finding
from infinimem.operations.doctor import checks, folder, links, receipts, secrets, topics
from infinimem.operations.doctor.inspection import Inspection
from infinimem.operations.git import commits
from infinimem.operations.stale_dependents import stale_dependents
from infinimem.store.library import Library
from infinimem.store.view import View

TIMES = 4
"""Looks at a library that others write to; what is found each time is true."""
MOST = 100
"""Notes of one check that are listed; errors all are."""

Command = Literal["doctor", "lint"]


@dataclass(frozen=True)
class Check:
    """One row of the table.

    Args:
        name: what it looks at.
        command: which command runs it.
        find: gives its findings.
        notes_too: run also in a folder of notes, which has no infinimem.toml.
    """

    name: str
    command: Command
    find: Callable[[Inspection], Iterable[Finding]]
    notes_too: bool = False


def _stale(inspection: Inspection) -> Iterator[Finding]:
    if inspection.complete:
        yield from (one.finding() for one in stale_dependents(inspection.view))


def _git(inspection: Inspection) -> list[Finding]:
    library = inspection.library
    return commits.findings(library.files, inspection.view) if library.settings.git else []


CHECKS = (
    Check("passed-over", "doctor", folder.passed_over, notes_too=True),
    Check("documents", "doctor", checks.documents, notes_too=True),
    Check("links", "doctor", links.nowhere, notes_too=True),
    Check("settings", "doctor", folder.suspended_settings, notes_too=True),
    Check("packages", "doctor", folder.broken_packages, notes_too=True),
    Check("machine-state", "doctor", folder.machine_state),
    Check("withheld", "doctor", folder.withheld),
    Check("unanswered", "doctor", folder.unanswered),
    Check("lines", "doctor", checks.lines),
    Check("dates", "doctor", checks.misdated),
    Check("receipts", "doctor", receipts.missing),
    Check("stale-dependents", "doctor", _stale),
    Check("git", "doctor", _git),
    Check("secrets", "lint", secrets.secrets, notes_too=True),
    Check("names", "lint", folder.unlawful_names, notes_too=True),
    Check("duplicates", "lint", topics.repeated),
    Check("times", "lint", topics.mixed_zones),
    Check("growth", "lint", topics.unbounded),
)


def examine(library: Library, most: int = MOST) -> list[Finding]:
    """What `doctor` finds, errors first, then by place. It looks again where others wrote meanwhile.

    Args:
        library: the library, or a folder of notes.
        most: notes of one check that are listed.
    """
    found: list[Finding] = []
    for look in range(TIMES):
        library.fresh.doubt()
        view, before = library.view(), found
        found = _findings("doctor", Inspection.of(view, library), most)
        library.fresh.doubt()
        if not found or (folder.BUSY not in found and library.view() is view):
            return found
        found = [finding for finding in found if not look or finding in before]
    return [folder.BUSY] if folder.BUSY in found else [*found, folder.BUSY]


def lint(view: View) -> list[Finding]:
    """What `lint` finds, errors first, then by place. No text of a line stands in any finding."""
    return _findings("lint", Inspection.of(view), MOST)


def _findings(command: Command, inspection: Inspection, most: int) -> list[Finding]:
    found: list[Finding] = []
    for check in CHECKS:
        if check.command == command and (check.notes_too or inspection.view.initialised):
            found += _bounded(check, inspection, most)
    if found:
        found = list(secrets.without_names(found, inspection.view.ids("all")))
    return sorted(found, key=lambda item: (item.level, _place(item.where), item.what))


def _bounded(check: Check, inspection: Inspection, most: int) -> Iterator[Finding]:
    found = dict.fromkeys(check.find(inspection))
    notes = [finding for finding in found if finding.level == "note"]
    yield from (finding for finding in found if finding.level == "error")
    yield from notes[:most]
    if more := notes[most:]:
        yield replace(more[0], what=f"{len(more)} more like this one from here on ({check.name})")


def _place(where: str) -> tuple[str, int]:
    """By document, then by line."""
    name, _, line = where.rpartition(":")
    return (name, int(line)) if name and line.isdecimal() else (where, 0)
