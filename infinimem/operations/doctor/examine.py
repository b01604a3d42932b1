"""Checks of a library as it lies on disk. Errors break the format or the law; notes are worth a look.

    checks      documents and their lines
    ledger      lines that receipts name: where are they now?
    links       links to nowhere
    leftovers   machine state, and files that are passed over

Nothing is written here; `repair` does what a finding's `fix` says.
"""

from __future__ import annotations

from infinimem.configuration import SETTINGS, shown
from infinimem.model import Finding
from infinimem.operations.doctor import checks, ledger, leftovers, links
from infinimem.operations.doctor.inspection import Shelf
from infinimem.operations.git import commits
from infinimem.store.external_edits import ExternalEdits, find_edits
from infinimem.store.files import Files
from infinimem.store.library import Library
from infinimem.store.state import last_seen, sequence


def examine(library: Library) -> list[Finding]:
    """All findings, errors first, then by place."""
    library.fresh.doubt()
    shelf = Shelf.of(library.view())
    found = [*leftovers.passed_over(library, shelf), *checks.documents(shelf), *links.nowhere(shelf)]
    if shelf.view.initialised:
        found += leftovers.machine_state(library, shelf)
        found += checks.lines(shelf, sequence.high_water(library.files), _edits(library, shelf))
        found += ledger.missing(shelf, library.root)
        found += commits.findings(library.files, shelf.view) if library.settings.git else []
    found += [
        Finding("note", f"{name} = {shown(name, value)} does not count: the library is not trusted", SETTINGS)
        for name, value in library.configuration.suspended.items()
    ]
    return sorted(set(found), key=lambda item: (item.level, _place(item.where), item.what))


def _edits(library: Library, shelf: Shelf) -> ExternalEdits:
    """What people and merges did; nothing where not all of it can be seen."""
    return find_edits(shelf.view, last_seen.read(Files(library.root))) if shelf.whole else ExternalEdits()


def _place(where: str) -> tuple[str, int]:
    """By document, then by line."""
    name, _, line = where.rpartition(":")
    return (name, int(line)) if name and line.isdecimal() else (where, 0)
