"""What people typed or pasted, signed: list items get a seq, of a doubled line the later copy a new one.

Pure; texts stay as they are. Source: docs/FORMAT.md, Entry.
"""

from __future__ import annotations

from collections.abc import Iterator

from infinimem.markdown.signature import format_entry
from infinimem.model import Located, Touched
from infinimem.store.render import Rendered
from infinimem.store.view import View

_Found = tuple[str, int, Located | str]
"""Where a line stands, and the doubled entry or the text that stands there."""


def count(view: View) -> int:
    """How many lines `stamp` would sign."""
    return sum(1 for _ in _doubled(view)) + sum(len(view.document(doc_id).unsigned) for doc_id in _own(view))


def stamp(view: View, first_seq: int) -> Rendered:
    """Sign them all.

    Args:
        view: the library under the lock.
        first_seq: seq of the first; the others follow.
    """
    done = Rendered()
    seq = first_seq
    signed: list[_Found] = [(place.doc_id, place.start_line, place) for place in _doubled(view)]
    typed: list[_Found] = [
        (doc_id, item.line, item.text) for doc_id in _own(view) for item in view.document(doc_id).unsigned
    ]
    for doc_id, number, what in sorted([*signed, *typed], key=lambda found: found[:2]):
        document = done.documents.get(doc_id) or view.document(doc_id)
        if isinstance(what, Located):
            old = what.entry
            line = format_entry(
                seq, old.text, time=old.time, source=old.source, origin=(old.seq,), fields=old.fields
            )
            done.removed.append((old.seq, old.line))
        else:
            line = format_entry(seq, what, source="human")
        document = document.sign(number, line)
        done.documents[doc_id] = document
        done.added.append((seq, document.lines[number - 1].removesuffix("\r")))
        why = f"renumbered from {what.seq}" if isinstance(what, Located) else "stamped"
        done.rows.append(Touched(seq, doc_id, doc_id, why))
        seq += 1
    return done


def _own(view: View) -> list[str]:
    """CURRENT and the topics."""
    return [doc_id for doc_id in view.ids() if not view.is_note(doc_id)]


def _doubled(view: View) -> Iterator[Located]:
    """Live lines whose seq stands in the evidence or the archive already, or further up."""
    seen = {place.seq for place in (*view.entries("evidence"), *view.entries("archive"))}
    for doc_id in _own(view):
        for place in view.document(doc_id).entries:
            if place.seq in seen:
                yield place
            seen.add(place.seq)
