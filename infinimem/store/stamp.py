"""What people did to the files, taken in: typed items signed, copies renumbered, edits and deletions noted.

Pure; texts stay as they are. Source: docs/FORMAT.md, Entry.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from infinimem.markdown.signature import format_entry
from infinimem.model import Entry, Located, Touched
from infinimem.store.render import Rendered
from infinimem.store.state.seen import SeenLine, tracked
from infinimem.store.view import ARCHIVE, EVIDENCE, View

_SEQ = re.compile(r"\bseq=([0-9]{1,18})\b")


@dataclass(frozen=True)
class Found:
    """What people did since the program last looked.

    Places are live lines but where said otherwise; each stands in one list only.
    """

    typed: tuple[tuple[str, int, str], ...] = ()
    """Document, line and text of list items without signature."""
    copies: tuple[Located, ...] = ()
    edited: tuple[tuple[Located, str], ...] = ()
    """Lines, also archived ones, and how they read before."""
    deleted: tuple[tuple[int, SeenLine], ...] = ()
    carried: tuple[tuple[Located, str], ...] = ()
    """Lines that stand in another document, and in which they stood before."""

    @property
    def to_sign(self) -> int:
        """How many seqs `stamp` needs."""
        return len(self.typed) + len(self.copies)

    def __bool__(self) -> bool:
        return bool(self.to_sign or self.edited or self.deleted or self.carried)


def look(view: View, seen: Mapping[int, SeenLine]) -> Found:
    """Compare the files with what was last seen.

    Args:
        view: the library.
        seen: the list of state/seen.py; empty where it is lost, then nothing counts as edited or deleted.
    """
    own = [doc_id for doc_id in view.ids() if not view.is_note(doc_id)]
    typed = [(doc_id, item.line, item.text) for doc_id in own for item in view.document(doc_id).unsigned]
    places: dict[int, list[Located]] = defaultdict(list)
    for doc_id in tracked(view):
        for place in view.document(doc_id).entries:
            places[place.seq].append(place)
    damaged = _damaged(view)
    copies: list[Located] = []
    edited: list[tuple[Located, str]] = []
    carried: list[tuple[Located, str]] = []
    for seq, found in places.items():
        before = seen.get(seq)
        original = _original(found, before, view)
        copies += [place for place in found if place is not original]
        if before is not None and original is not None:
            if original.entry.line.rstrip() != before.line.rstrip():  # editors strip white space at ends
                edited.append((original, before.line))
            if original.doc_id != before.doc_id:
                carried.append((original, before.doc_id))
    return Found(
        tuple(typed),
        tuple(copies),
        tuple(edited),
        tuple(
            (seq, line)
            for seq, line in sorted(seen.items())
            if view.entry(seq) is None and seq not in damaged
        ),
        tuple(carried),
    )


def _original(found: list[Located], before: SeenLine | None, view: View) -> Located | None:
    """Of lines with one seq that which keeps it: as it was and where it was, else the first.

    None where that is what was said; the archive's copy goes before live ones.
    """
    known = view.entry(found[0].seq)
    if known is not None and known.doc_id.startswith(EVIDENCE):
        return None
    found = [place for place in found if place.doc_id.startswith(ARCHIVE)] or found
    if before is None:
        return found[0]
    return min(found, key=lambda p: (p.entry.line != before.line, p.doc_id != before.doc_id))


def _damaged(view: View) -> set[int]:
    """Seqs whose signature someone broke: those lines are there, `doctor` names them."""
    documents = map(view.document, tracked(view))
    broken = (document.text_line(number) for document in documents for number in document.malformed)
    return {int(seq) for line in broken for seq in _SEQ.findall(line)}


def stamp(view: View, found: Found, first_seq: int) -> Rendered:
    """Sign what is to be signed and name the rest.

    Args:
        view: the library under the lock.
        found: what `look` found in it.
        first_seq: seq of the first new line; the others follow.
    """
    done = Rendered()
    copies = {(place.doc_id, place.start_line): place.entry for place in found.copies}
    texts = {(doc_id, number): text for doc_id, number, text in found.typed}
    for seq, (doc_id, number) in enumerate(sorted([*copies, *texts]), first_seq):
        if old := copies.get((doc_id, number)):
            line = _again(replace(old, seq=seq, origin=(old.seq,)))
            done.removed.append((old.seq, old.line))
        else:
            line = format_entry(seq, texts[doc_id, number], source="human")
        _sign(done, view, doc_id, number, seq, line)
        done.rows.append(Touched(seq, doc_id, doc_id, f"renumbered from {old.seq}" if old else "stamped"))
    for place, before in found.edited:
        entry = place.entry
        done.quoted.append(before)
        done.rows.append(Touched(place.seq, place.doc_id, place.doc_id, "edited"))
        if entry.source != "human":
            done.removed.append((entry.seq, entry.line))
            phrased = {key: value for key, value in entry.fields.items() if key != "by"}
            line = _again(replace(entry, source="human", fields=phrased))
            _sign(done, view, place.doc_id, place.start_line, entry.seq, line)
    for seq, seen in found.deleted:
        done.quoted.append(seen.line)
        done.rows.append(Touched(seq, seen.doc_id, "-", "deleted"))
    done.rows += [Touched(place.seq, was, place.doc_id, "moved by hand") for place, was in found.carried]
    return done


def _again(entry: Entry) -> str:
    return format_entry(
        entry.seq,
        entry.text,
        time=entry.time,
        source=entry.source,
        origin=entry.origin,
        fields=entry.fields,
    )


def _sign(done: Rendered, view: View, doc_id: str, number: int, seq: int, line: str) -> None:
    """Put the signature of `line` on a line of a document."""
    document = (done.documents.get(doc_id) or view.document(doc_id)).sign(number, line)
    done.documents[doc_id] = document
    done.added.append((seq, document.lines[number - 1].removesuffix("\r")))
