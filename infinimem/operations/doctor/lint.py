"""All checks of what the lines of a library say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from infinimem.model import Finding
from infinimem.operations.doctor.contradictions import contradictions
from infinimem.operations.doctor.growth import repeated, unbounded
from infinimem.operations.doctor.inspection import Shelf
from infinimem.operations.doctor.lines import live
from infinimem.operations.doctor.secrets import named, secrets
from infinimem.operations.doctor.times import mixed
from infinimem.store.names import unlawful
from infinimem.store.view import View

MOST = 100
"""Notes of one kind that are listed; errors all are."""


def examine(view: View) -> list[Finding]:
    """What is worth a person's look, errors first, then by check and place. Writes nothing.

    Args:
        view: a library, or a folder of notes, of which only names and secrets are looked at.

    Returns:
        Findings whose `fix` is what a person can do. No text of a line stands in any of them.
    """
    shelf = Shelf.of(view)
    checks: list[Iterable[Finding]] = [secrets(shelf), _names(view)]
    if view.initialised:
        checks += [contradictions(live(shelf)), repeated(shelf), mixed(shelf), unbounded(shelf)]
    found = [finding for check in checks for finding in _bounded(check)]
    for doc_id in named(view.ids("all")):
        folder = doc_id.rpartition("/")[0]
        found = [_hidden(finding, doc_id, f"{folder}/…".lstrip("/")) for finding in found]
        found.append(Finding("error", "a file's name looks like a secret", folder or ".", "rename the file"))
    return sorted(found, key=lambda finding: finding.level)


def _hidden(finding: Finding, doc_id: str, shown: str) -> Finding:
    what, where = (text.replace(doc_id, shown) for text in (finding.what, finding.where))
    return replace(finding, what=what, where=where)


def _bounded(found: Iterable[Finding]) -> Iterator[Finding]:
    notes = []
    for finding in found:
        if finding.level == "error":
            yield finding
        else:
            notes.append(finding)
    yield from islice(notes, MOST)
    if more := notes[MOST:]:
        yield Finding("note", f"{len(more)} more like this one from here on", more[0].where, more[0].fix)


def _names(view: View) -> Iterator[Finding]:
    """Names of people's notes that some system cannot hold; the program's own are lawful."""
    for doc_id in view.ids("all"):
        if view.is_note(doc_id) and (why := unlawful(doc_id)):
            yield Finding("note", why, doc_id, "rename the file")
