"""`doctor` asks whether a library is sound: its errors break the format or the law. `repair` does what the
findings' `fix` says, and only what loses nothing, through the library, under its lock.

Texts are never touched, and of signatures `when` alone, where an older version derived it: a damaged
signature, a conflict marker or a wrong link is for a person to settle.
"""

from __future__ import annotations

import sys

from infinimem.model import Finding
from infinimem.operations import checks
from infinimem.operations.lint import MOST, Check, run
from infinimem.store.external_edits import differences, tracked, undate
from infinimem.store.library import Library
from infinimem.store.render import Rendered

TIMES = 4
"""Looks at a library that others write to; what is found each time is true."""

CHECKS = (
    Check("passed-over", checks.passed_over, notes_too=True),
    Check("documents", checks.documents, notes_too=True),
    Check("links", checks.links, notes_too=True),
    Check("settings", checks.suspended_settings, notes_too=True),
    Check("packages", checks.broken_packages, notes_too=True),
    Check("machine-state", checks.machine_state),
    Check("withheld", checks.withheld),
    Check("unanswered", checks.unanswered),
    Check("lines", checks.lines),
    Check("dates", checks.misdated),
    Check("receipts", checks.receipts),
    Check("stale-dependents", checks.stale),
    Check("git", checks.uncommitted_receipts),
)


def examine(library: Library, most: int = MOST) -> list[Finding]:
    """Return what `doctor` finds, errors first, then by place, of each check `most` notes.

    It looks again where others wrote meanwhile.
    """
    findings: list[Finding] = []
    for look in range(TIMES):
        library.fresh.doubt()
        view, before = library.view(), findings
        findings = run(CHECKS, checks.Inspection.of(view, library), most)
        library.fresh.doubt()
        if not findings or (checks.BUSY not in findings and library.view() is view):
            return findings
        findings = [finding for finding in findings if not look or finding in before]
    return [checks.BUSY] if checks.BUSY in findings else [*findings, checks.BUSY]


def repair(library: Library) -> list[Finding]:
    """Do what the findings' `fix` says, and return those that this settled; a second time there are none.

    LibraryError if the disk refuses or the library is busy; what was done until then stays.
    """
    findings = [finding for finding in examine(library, sys.maxsize) if finding.fix]
    if not findings:
        return []
    fixes = {finding.fix for finding in findings}
    if fixes & {checks.FINISHED, checks.RAISED, checks.REBUILT}:
        with library.locked() as view:  # which also finishes what a crash left
            library.allocate(0, view)
    if checks.RENAMED in fixes:
        with library.locked() as view:
            done = Rendered()
            for doc_id in view.ids("all"):
                if not view.is_note(doc_id) and (document := checks.mended(view.document(doc_id), view)):
                    done.documents[doc_id] = document
            library.commit(done, view, library.of_people("rename"), (), {})
    if fixes & {checks.SIGNED, checks.RENUMBERED, checks.LED, checks.UNDATED}:
        library.adopt_edits()
    if checks.UNDATED in fixes:
        with library.locked() as view:
            documents = map(view.document, tracked(view))
            places = (place for document in documents for place in document.entries)
            done = undate(view, [*checks.outdated(places)])
            notice = differences(view, library.seen_lines(), done.documents)
            library.commit(done, view, library.of_people("undate"), (), notice)
    left = {_kind(finding) for finding in examine(library, sys.maxsize)}
    return [finding for finding in findings if _kind(finding) not in left]


def _kind(finding: Finding) -> tuple[str, str]:
    """What was wrong and where; a repair may move the lines of a document, so their numbers tell nothing."""
    return finding.fix, finding.where.rsplit(":", 1)[0]
