"""What waits for a person under .infinimem, without the lines that are to be forgotten: conflicts, withheld
archivings. Whatever else there quotes them is machine state, and goes.

This comes before the documents change, while the texts are known.
"""

from __future__ import annotations

import re

from infinimem.markdown.document import Document
from infinimem.model import Move
from infinimem.operations.forget.choice import numbered
from infinimem.operations.forget.redaction import Redaction
from infinimem.operations.forget.search import STATE, stored
from infinimem.store.commit import backups
from infinimem.store.commit.install import CONFLICTS, NAMED
from infinimem.store.files import Files, digest
from infinimem.store.spec import TOPICS
from infinimem.store.state import kept_plans, last_seen, rejected, withheld
from infinimem.store.view import EVIDENCE

_LATER = (backups.FOLDER, rejected.FOLDER, last_seen.PATH)
"""Looked after when the documents have changed (purge.py)."""
_CONFLICT = re.compile(r"((?:[0-9]+-)?(?:late-|torn-)?)([0-9a-f]{12}-)?(.*)\.md")
"""The receipt that it was in the way of, a checksum, and the document (commit/install.py)."""


def set_aside(files: Files, redaction: Redaction) -> None:
    """Take the lines out of what waits for a person. What cannot be read, or quotes them besides, goes."""
    seqs, texts = redaction.choice.seqs, redaction.texts

    def concerned(move: Move) -> bool:
        return bool(seqs & {move.seq, move.by}) or texts.tells(f"{move.to} {move.heading}")

    moves = [(item.receipt, item.move) for item in withheld.proposals(files)]
    withheld.drop(files, {(receipt, move.seq) for receipt, move in moves if concerned(move)})
    for number, plan in ((one.number, one.plan) for one in kept_plans.plans(files)):
        said = [(add.text, (*add.origin, *add.replaces)) for add in plan.adds]
        said += [(item.summary, item.origin) for item in plan.derived]
        said += [(note, ()) for note in plan.notes]
        if any(map(concerned, plan.moves)) or any(
            seqs & {*about} or texts.tells(text) for text, about in said
        ):
            files.remove(f"{kept_plans.FOLDER}/{number:04d}.json")  # it could not be carried out as it is
    for path, data in stored(files, STATE):
        if data is None or path.startswith(_LATER):
            continue
        if path.startswith(f"{CONFLICTS}/") and (named := _CONFLICT.fullmatch(path, len(CONFLICTS) + 1)):
            _conflict(files, path, named, data, redaction)
        elif texts.within(data):
            files.remove(path)


def _conflict(files: Files, path: str, named: re.Match[str], data: bytes, redaction: Redaction) -> None:
    """A version of a document, or lines of one, without the lines and without text that tells of them."""
    head, checksum, told = named.groups("")
    old = Document.parse(f"{EVIDENCE if told.startswith('evidence-') else TOPICS}{told}", data)
    new = old.without(redaction.choice.seqs)
    signed = {n for place in new.entries for n in range(place.start_line, place.end_line + 1)}
    lines = [(n, line) for n, line in enumerate(new.lines, 1) if n not in signed]
    new = new.blanked(
        {n for n, line in lines if numbered(line) in redaction.choice.seqs or redaction.texts.tells(line)}
    )
    names = {name.replace("/", "-"): now.replace("/", "-") for name, now in redaction.names.items()}
    called = names.get(told, f"topic-{redaction.receipt}" if redaction.texts.tells(told) else told)
    if new.lines == old.lines and called == told:
        return
    if new.entries or new.unsigned or new.has_prose:
        checksum = checksum and f"{digest(new.to_bytes())[:NAMED]}-"
        files.replace(f"{CONFLICTS}/{head}{checksum}{called}.md", new.to_bytes())
        if path.endswith(f"/{head}{checksum}{called}.md"):
            return
    files.remove(path)
