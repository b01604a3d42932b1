"""What lies beside the documents: files that are passed over, settings, leftovers of crashes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

from infinimem.errors import LibraryError, LockTimeout
from infinimem.model import Finding
from infinimem.operations.doctor.checks import FINISHED, REBUILT
from infinimem.operations.doctor.inspection import Inspection, listed
from infinimem.operations.review import CODES, awaiting
from infinimem.settings import SETTINGS, shown
from infinimem.spec import broken
from infinimem.store.commit.install import CONFLICTS
from infinimem.store.commit.transaction import FOLDER
from infinimem.store.lock import exclusive
from infinimem.store.spec import unlawful
from infinimem.store.state import sequence
from infinimem.store.state import unanswered as tried
from infinimem.store.state.drawn import PATH as DRAWN
from infinimem.store.state.sequence import MARK

BUSY = Finding("note", "a write is under way; look again when it is done", FOLDER)
_CONFLICT = (
    "text that someone saved while the program wrote this document, and that could not be merged: take over"
    " what you want, then delete this file"
)


def passed_over(inspection: Inspection) -> Iterator[Finding]:
    """Settings that are not read, and files that no tool shows although they may be meant as notes."""
    library = inspection.library
    if not library.initialised and os.path.lexists(library.root / SETTINGS):
        what = "is a link or no file, so this counts as a folder of notes; put the settings themselves there"
        yield Finding("error", what, SETTINGS)
    for path, why in library.fresh.passed_over().items():
        yield Finding("note", f"passed over: {why}", path)


def unlawful_names(inspection: Inspection) -> Iterator[Finding]:
    """People's notes whose names some system cannot hold; the program's own names are portable."""
    for doc_id in inspection.view.ids("all"):
        if inspection.view.is_note(doc_id) and (why := unlawful(doc_id)):
            yield Finding("note", why, doc_id, "rename the file")


def suspended_settings(inspection: Inspection) -> Iterator[Finding]:
    """Settings that do not count, because the user does not trust the library."""
    for name, value in inspection.library.configuration.suspended.items():
        what = f"{name} = {shown(name, value)} has no effect: the library is not trusted (infinimem trust)"
        yield Finding("note", what, SETTINGS)


def broken_packages(inspection: Inspection) -> Iterator[Finding]:
    """Strategies that packages add and that cannot be used."""
    for name, why in broken().items():
        yield Finding("note", why, f"strategy {name}")


def machine_state(inspection: Inspection) -> Iterator[Finding]:
    """What a crash left, what could not be put in place, what was lost."""
    root = inspection.library.root
    left = _entries(root / FOLDER)
    try:
        with exclusive(inspection.library.files, 1.0) if left else nullcontext():
            left = _entries(root / FOLDER)  # what stays then is no writer's
    except LockTimeout:
        yield BUSY
        return
    except LibraryError:  # a folder that may only be read
        pass
    for path in left:
        yield Finding("error", "a transaction did not finish", f"{FOLDER}/{path.name}", FINISHED)
    for path in _entries(root / CONFLICTS):
        yield Finding("note", _CONFLICT, f"{CONFLICTS}/{path.name}")
    # A clone has no machine state at all, and needs none before it is written to.
    lost = any(os.path.lexists(root / path) for path in (MARK, DRAWN))
    if lost and sequence.high_water(inspection.library.files) is None and inspection.places:
        fix = "" if inspection.crowded else REBUILT
        yield Finding("note", "the high-water mark of seqs is lost", MARK, fix)


def withheld(inspection: Inspection) -> Iterator[Finding]:
    """Archivings that await review, while both lines are live."""
    for row in awaiting(inspection.library) if inspection.complete else ():
        if row.code in CODES and not row.void:
            words = "outdated by" if row.why == "superseded" else "a duplicate of"
            what = f"line {row.seq} may be {words} {row.by}; archiving it awaits review ({CODES[row.code]})"
            yield Finding("note", what, row.was)


def unanswered(inspection: Inspection) -> Iterator[Finding]:
    """Turns about which no answer of a model was of use."""
    if failed := inspection.view.unanswered():
        what = f"{tried.words(failed)}; turns {listed(sorted(failed))}"
        yield Finding("note", what, f"{tried.PATH}-{inspection.view.spec.name}")


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []
