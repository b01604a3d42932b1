"""Notes that are imported again: what is new in them, and which turns they no longer hold.

Evidence stays, and a note that did not change, or only its name or place, brings nothing. A file whose path
is unknown is a note that was recorded under another path if it holds the same; or if that file is gone and
they share half of the shorter one.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from hashlib import blake2b

from infinimem.markdown.characters import clean_text
from infinimem.model import CURRENT, Located, Move, Plan, Receipt, Turn
from infinimem.store.library import Library
from infinimem.store.spec import ARCHIVE, EVIDENCE, REIMPORTED, TOPICS, slug
from infinimem.store.view import Applied, View

Contents = Mapping[str, Set[bytes]]  # of each note, by path, its passages


def passage(text: str, session: str | None) -> bytes:
    """Return what tells a passage of a note from others: its text without the note's name before it."""
    title = (session or "").rpartition("/")[2]
    said = clean_text(text).rstrip().removeprefix(title)
    return blake2b(said.encode("utf-8", "surrogatepass"), digest_size=8).digest()


class Again:
    """Notes that are imported, held against what was recorded of them; `gone` are turns that they lost."""

    def __init__(self, contents: Contents, view: View) -> None:
        self._view, self._archived = view, _archived(view)
        known: dict[str, dict[bytes, list[int]]] = {}
        for doc_id in view.below(EVIDENCE) if contents else ():
            document = view.document(doc_id)
            session = document.header.values.get("session")
            for place in document.entries:
                if note := place.entry.fields.get("note"):
                    about = passage(place.text, session if isinstance(session, str) else None)
                    known.setdefault(note, {}).setdefault(about, []).append(place.seq)
        current = {
            note: {about for about, seqs in passages.items() if not self._archived.issuperset(seqs)}
            for note, passages in known.items()
        }
        moved = _moved(contents, current)
        self._held: dict[str, Mapping[bytes, Sequence[int]]] = {}  # seqs by path of today and passage
        gone = set[int]()
        for path, now in contents.items():
            before = moved.get(path, path)
            there = known.get(before, {})
            if path in known or now == current.get(before):
                self._held[path] = there
            kept = now & self._held.get(path, {}).keys()
            gone.update(seq for about, seqs in there.items() if about not in kept for seq in seqs)
        self.gone = frozenset(gone)

    def new(self, turns: Iterable[Turn]) -> Iterator[Turn]:
        """Yield the turns that are not recorded; what comes back, or what another note says, is said anew."""
        for turn in turns:
            seqs = self._held.get(turn.note or "", {}).get(passage(turn.text, turn.session), ())
            if seqs and self._archived.issuperset(seqs):
                yield replace(turn, key=f"{turn.key}-{len(seqs)}")
            elif not seqs:
                taken = self._view.lines.marked(("key", turn.key or "")) if turn.note else None
                place = self._view.document(taken[0]).entry(taken[1]) if taken else None
                is_of_other = place and place.entry.fields.get("note", turn.note) != turn.note
                other_key = f"{turn.key}-{passage(turn.note or '', None).hex()}"
                yield replace(turn, key=other_key) if is_of_other else turn


def _moved(contents: Contents, known: Contents) -> dict[str, str]:
    holding: dict[bytes, list[str]] = {}
    for note in known.keys() - contents.keys():
        for about in known[note]:
            holding.setdefault(about, []).append(note)
    likely: list[tuple[bool, int, str, str]] = []
    for path in contents.keys() - known.keys():
        own = contents[path]
        for note, shared in Counter(note for about in own for note in holding.get(about, ())).items():
            same = own == known[note]
            if same or (2 * shared >= min(len(own), len(known[note])) and not os.path.lexists(note)):
                likely.append((same, shared, path, note))
    moved: dict[str, str] = {}
    for same, _, path, note in sorted(likely, reverse=True):
        if path not in moved and (same or note not in moved.values()):
            moved[path] = note
    return moved


def _archived(view: View) -> frozenset[int]:
    """Return the turns of which all lines were archived because their note no longer held them."""
    reason = REIMPORTED.capitalize()
    places = (place for doc_id in view.below(ARCHIVE) for place in view.document(doc_id).entries)
    old = (place for place in places if place.headings and place.headings[-1].startswith(reason))
    live = {seq for place in _live(view) for seq in place.entry.origin}
    return frozenset({seq for place in old for seq in place.entry.origin} - live)


def _live(view: View) -> Iterator[Located]:
    for doc_id in (CURRENT, *view.below(TOPICS)):
        yield from view.document(doc_id).entries if doc_id in view else ()


def set_aside(library: Library, gone: Set[int]) -> Receipt | None:
    """Archive what was drawn only from turns that their notes lost, unless people edited or pinned it."""
    library.adopt_edits()
    view, moves = library.view(), list[Move]()
    if pending := tuple(place.seq for place in view.uncited(gone)):
        library.apply(Plan(empty=pending), base=view)
    for place in _live(view):
        entry, topic = place.entry, place.doc_id
        if entry.origin and gone >= set(entry.origin) and entry.source != "human" and not entry.pinned:
            if topic == CURRENT and (turn := view.entry(entry.origin[0])):
                topic = f"{TOPICS}{slug(turn.doc_id.rpartition('/')[2])}"
            moves.append(Move(place.seq, topic, why="reimported"))
    if not moves:
        return None
    plan, approved = Plan("reimport", moves=tuple(moves)), {move.seq for move in moves}
    done = library.apply(plan, base=view, strategy="people", model="none", approved=approved)
    return done.receipt if isinstance(done, Applied) else None
