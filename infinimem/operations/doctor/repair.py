"""What `doctor --fix` does: only what loses nothing. Every write goes through the library, under its lock.

Texts are never touched, and of signatures `when` alone, where an older version derived it: a damaged
signature, a conflict marker or a wrong link is for a person to settle.
"""

from __future__ import annotations

import sys

from infinimem.model import Finding
from infinimem.operations.doctor.checks import (
    FINISHED,
    LED,
    RAISED,
    REBUILT,
    RENAMED,
    RENUMBERED,
    SIGNED,
    UNDATED,
    mended,
    outdated,
)
from infinimem.operations.doctor.examine import examine
from infinimem.store.external_edits import undate
from infinimem.store.library import Library
from infinimem.store.render import Rendered
from infinimem.store.state import last_seen


def repair(library: Library) -> list[Finding]:
    """Do what the findings' `fix` says; a second time there is nothing to do.

    Returns:
        The findings that this settled.

    Raises:
        LibraryError: the disk refused, or the library is busy; what was done until then stays.
    """
    found = [finding for finding in examine(library, sys.maxsize) if finding.fix]
    if not found:
        return []
    wanted = {finding.fix for finding in found}
    if wanted & {FINISHED, RAISED, REBUILT}:
        with library.locked() as view:  # which also finishes what a crash left
            library.allocate(0, view)
    if RENAMED in wanted:
        with library.locked() as view:
            done = Rendered()
            for doc_id in view.ids("all"):
                if not view.is_note(doc_id) and (document := mended(view.document(doc_id), view)):
                    done.documents[doc_id] = document
            library.commit(done, view, library.of_people("rename"), (), {})
    if wanted & {SIGNED, RENUMBERED, LED, UNDATED}:
        library.adopt_edits()
    if UNDATED in wanted:
        with library.locked() as view:
            done = undate(view, [*outdated(map(view.document, last_seen.tracked(view)))])
            notice = last_seen.differences(view, library.seen_lines(), done.documents)
            library.commit(done, view, library.of_people("undate"), (), notice)
    left = {_kind(finding) for finding in examine(library, sys.maxsize)}
    return [finding for finding in found if _kind(finding) not in left]


def _kind(finding: Finding) -> tuple[str, str]:
    """What was wrong and where; a repair may move the lines of a document, so their numbers tell nothing."""
    return finding.fix, finding.where.rsplit(":", 1)[0]
