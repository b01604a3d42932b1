"""What lies beside the documents: machine state that was left behind, and files that are passed over."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from infinimem.configuration import SETTINGS
from infinimem.model import Finding
from infinimem.operations.doctor.inspection import LIMIT, Shelf
from infinimem.store.commit.install import CONFLICTS
from infinimem.store.commit.transaction import FOLDER
from infinimem.store.library import Library
from infinimem.store.spec import ARCHIVE
from infinimem.store.state import sequence
from infinimem.store.state.drawn import PATH as DRAWN
from infinimem.store.state.sequence import MARK
from infinimem.store.view import EVIDENCE

_CONFLICT = (
    "lines that could not be put where they belong, or a save that came late, because someone kept saving the"
    " document in the name: take over what you want, then delete this file"
)
FINISHED = "finish it, or drop it where nothing was done yet"
REBUILT = "build it again from lines and receipts"


# ── files that nobody reads ─────────────────────────────────────────────────────────────────────


def passed_over(library: Library, shelf: Shelf) -> Iterator[Finding]:
    """Settings that are not read, notes that no tool shows, and why."""
    if not library.initialised and os.path.lexists(library.root / SETTINGS):
        what = "is a link or no file, so this counts as a folder of notes; put the settings themselves there"
        yield Finding("error", what, SETTINGS)
    for path in sorted(f"{doc_id}.md" for doc_id in library.fresh.look().oversized):
        yield Finding("note", "larger than tools read; it is passed over", path)
    found = _skipped(library.root)
    yield from islice(found, LIMIT)
    if more := sum(1 for _ in found):
        yield Finding("note", f"{more} more links, odd names and unreadable folders are passed over", "")


def _skipped(root: Path) -> Iterator[Finding]:
    """What the listing of documents leaves out although it may be meant as one; hidden files are not."""
    pending = [""]
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(root / folder) as found:
                items = sorted(found, key=lambda item: item.name)
        except OSError as error:
            yield Finding("note", f"cannot be listed ({error.strerror}); it is passed over", _shown(folder))
            continue
        for item in items:
            path = f"{folder}{item.name}"
            is_folder, is_note = item.is_dir(), item.name.endswith(".md")
            if item.name.startswith(".") or not (is_folder or is_note):
                continue
            if not item.name.isprintable():
                yield Finding("note", "the name has characters that do not show; rename it", _shown(path))
            elif item.is_symlink():
                yield Finding("note", "a link; none is followed, put the file itself there", path)
            elif is_folder:
                pending.append(f"{path}/")
            elif not item.is_file():
                yield Finding("note", "no plain file; it is passed over", path)


def _shown(path: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in path)


# ── machine state ───────────────────────────────────────────────────────────────────────────────


def machine_state(library: Library, shelf: Shelf) -> Iterator[Finding]:
    """What is left of a crash, what could not be put in place, what was lost."""
    for path in _entries(library.root / FOLDER):
        yield Finding("error", "a transaction did not finish", f"{FOLDER}/{path.name}", FINISHED)
    for path in _entries(library.root / CONFLICTS):
        yield Finding("note", _CONFLICT, f"{CONFLICTS}/{path.name}")
    yield from islice(_withheld(library, shelf), LIMIT)
    # A clone has no machine state at all, and needs none before it is written to.
    lost = any(os.path.lexists(library.root / path) for path in (MARK, DRAWN))
    if lost and sequence.high_water(library.files) is None and shelf.places:
        yield Finding("note", "the high-water mark of seqs is lost", MARK, "" if shelf.crowded else REBUILT)


def _withheld(library: Library, shelf: Shelf) -> Iterator[Finding]:
    """Archivings that wait for a person's word, while both lines are live."""
    for proposal in library.proposals():
        move = proposal.move
        places = [shelf.places[seq][0] for seq in (move.seq, move.by or 0) if seq in shelf.places]
        if len(places) < 2 or any(place.doc_id.startswith((ARCHIVE, EVIDENCE)) for place in places):
            continue
        words = "outdated by" if move.why == "superseded" else "a duplicate of"
        why = "too many at once" if proposal.code == "TOO_MANY" else "a person wrote or pinned it"
        what = f"line {move.seq} may be {words} {move.by} and was not archived unasked ({why})"
        yield Finding("note", what, f"{places[0].doc_id}:{places[0].start_line}")


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []
