"""What waits for a person under .infinimem, without the lines that are to be forgotten: conflicts, withheld
archivings. Whatever else there quotes them is machine state, and goes.

This comes before the documents change, while the texts are known.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from infinimem.markdown.document import Document
from infinimem.model import Move
from infinimem.store.commit import displaced
from infinimem.store.commit.install import CONFLICTS, NAMED
from infinimem.store.files import MAX_OWNED, Files, digest
from infinimem.store.forgetting.choice import numbered
from infinimem.store.forgetting.redaction import Redaction
from infinimem.store.forgetting.search import NUMBERS, STATE
from infinimem.store.keeper import TOPICS
from infinimem.store.state import kept, rejected, seen, withheld
from infinimem.store.view import EVIDENCE

_LATER = (displaced.FOLDER, rejected.FOLDER, seen.PATH)
"""Looked after when the documents have changed (purge.py)."""
_CHECKED = re.compile(r"(?<=[0-9])-[0-9a-f]{12}-")
"""A checksum in the name of a conflict (commit/install.py)."""


def set_aside(files: Files, redaction: Redaction) -> None:
    """Take the lines out of what waits for a person. What cannot be read, or quotes them besides, goes."""
    _proposals(files, redaction)
    _plans(files, redaction)
    for path in _machine_files(files):
        data = files.read(path, MAX_OWNED)
        if data is None:
            continue
        if path.startswith(f"{CONFLICTS}/"):
            _conflict(files, path, data, redaction)
        elif redaction.texts.within(data):
            files.remove(path)


def _proposals(files: Files, redaction: Redaction) -> None:
    """Archivings of the lines, or by them, and those whose places tell of them."""
    moves = [(item.receipt, item.move) for item in withheld.proposals(files)]
    withheld.drop(files, {(number, move.seq) for number, move in moves if _concerns(move, redaction)})


def _plans(files: Files, redaction: Redaction) -> None:
    """Kept plans with any of the lines, or with a word of them: they could not be carried out as they are."""
    for kept_plan in kept.plans(files):
        plan = kept_plan.plan
        seqs = {*kept_plan.stood, *plan.empty, *(seq for item in plan.derived for seq in item.origin)}
        seqs |= {seq for add in plan.adds for seq in (*add.origin, *add.replaces)}
        words = (*plan.notes, *(add.text for add in plan.adds), *(item.summary for item in plan.derived))
        concerned = any(_concerns(move, redaction) for move in plan.moves) or seqs & redaction.choice.seqs
        if concerned or any(map(redaction.tells, words)):
            files.remove(f"{kept.FOLDER}/{kept_plan.number:04d}.json")


def _concerns(move: Move, redaction: Redaction) -> bool:
    """Whether a move is of one of the lines, or names one, or a place that tells of one."""
    places = f"{move.to.rpartition('/')[2].replace('-', ' ')} {move.heading}"
    return not redaction.choice.seqs.isdisjoint({move.seq, move.by}) or redaction.tells(places)


def _machine_files(files: Files) -> Iterator[str]:
    for folder, _, names in os.walk(files.root / STATE.rstrip("/")):
        where = Path(folder).relative_to(files.root).as_posix()
        for path in (f"{where}/{name}" for name in sorted(names)):
            if path not in NUMBERS and not path.startswith(_LATER):
                yield path


def _conflict(files: Files, path: str, data: bytes, redaction: Redaction) -> None:
    """A version of a document, or lines of one, without the lines and without text that tells of them."""
    name = path.removeprefix(f"{CONFLICTS}/")
    found = Document.parse(f"{EVIDENCE if '-evidence-' in name else TOPICS}{name}", data)
    document = found.without(redaction.choice.seqs)
    signed = {n for place in document.entries for n in range(place.start_line, place.end_line + 1)}
    lines = [(n, line) for n, line in enumerate(document.lines, 1) if n not in signed]
    gone = {n for n, line in lines if numbered(line) in redaction.choice.seqs or redaction.tells(line)}
    left = document.blanked(gone)
    for old, new in redaction.names.items():
        name = name.replace(f"-{old.replace('/', '-')}.", f"-{new.replace('/', '-')}.")
    if left.lines == found.lines and path.endswith(f"/{name}"):
        return
    if left.entries or left.unsigned or left.has_prose:
        name = _CHECKED.sub(f"-{digest(left.to_bytes())[:NAMED]}-", name, count=1)
        files.replace(f"{CONFLICTS}/{name}", left.to_bytes())
        if path.endswith(f"/{name}"):
            return
    files.remove(path)
