"""What people, and merges of clones, did to the files since the program last looked: the lines compared.

After a git merge of clones several lines may share a seq. Entries cite by number: where several turns have a
number that an entry cites, it cites all of them.

Pure; adopt_edits.py takes them in. Source: docs/FORMAT.md, Entry and Merged clones.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from infinimem.markdown.document import Document
from infinimem.markdown.signature import format_seqs, parse_entry
from infinimem.model import Entry, Located
from infinimem.store.lines import drawn_from, former
from infinimem.store.spec import ARCHIVE, EVIDENCE
from infinimem.store.state.last_seen import SeenLine, live, tracked
from infinimem.store.view import View, without_seqs

_SEQ = re.compile(r"\bseq=([0-9]{1,18})\b")


@dataclass(frozen=True)
class ExternalEdits:
    """What people did since the program last looked.

    Lines are live ones unless stated otherwise; each is in one list only.
    """

    typed: tuple[tuple[str, int, str], ...] = ()
    """Document, line and text of list items without signature."""
    copies: tuple[Located, ...] = ()
    """Entries whose seq another line keeps."""
    turns: tuple[Located, ...] = ()
    """Evidence whose seq another turn keeps."""
    kept: Mapping[int, Located] = field(default_factory=dict)
    """The lines that keep a doubled seq."""
    ambiguous: tuple[AmbiguousCitation, ...] = ()
    """Citations of seqs that several lines have or had."""
    edited: tuple[tuple[Located, str], ...] = ()
    """Lines, also archived ones, and how they read before."""
    deleted: tuple[tuple[int, SeenLine], ...] = ()
    carried: tuple[tuple[Located, str], ...] = ()
    """Lines that stand in another document, and in which they stood before."""

    @property
    def renumbered(self) -> frozenset[Position]:
        return frozenset(map(position, (*self.copies, *self.turns)))

    @property
    def to_sign(self) -> int:
        """How many seqs `adopt` needs."""
        return len(self.typed) + len(self.copies) + len(self.turns)

    def __bool__(self) -> bool:
        return bool(self.to_sign or self.edited or self.deleted or self.carried or self.ambiguous)


def find_edits(view: View, seen: Mapping[int, SeenLine]) -> ExternalEdits:
    """Compare the files with what was last seen.

    Args:
        view: the library.
        seen: lines as last seen; empty where the list is lost, then nothing counts as edited or deleted.
    """
    typed = [
        (doc_id, item.line, item.text) for doc_id in live(view) for item in view.document(doc_id).unsigned
    ]
    said, entries = _by_seq(view, view.ids("evidence")), _by_seq(view, tracked(view))
    citations = tuple(ambiguous(said, entries, seen))
    kept = {seq: turns[0] for seq, turns in said.items() if len(turns) > 1 or seq in entries}
    turns = [turn for seq in kept for turn in said[seq] if turn is not kept[seq]]
    heirs = _heirs(entries)
    damaged = _damaged(view)
    copies: list[Located] = []
    edited: list[tuple[Located, str]] = []
    carried: list[tuple[Located, str]] = []
    for seq, places in entries.items():
        if seq in said:
            copies += places
            continue
        before = seen.get(seq)
        original = _original(places, before)
        if len(places) > 1:
            kept[seq] = original
            copies += [place for place in places if place is not original]
        if before is None or (heirs and seq in heirs.get(_text(before), ())):
            continue
        if _is_edited(original.entry, before):
            edited.append((original, before.line))
        if original.doc_id != before.doc_id:
            carried.append((original, before.doc_id))
    gone = [(seq, seen[seq]) for seq in sorted(seen) if view.entry(seq) is None and seq not in damaged]
    return ExternalEdits(
        tuple(typed), tuple(copies), tuple(turns), kept, citations, tuple(edited), tuple(gone), tuple(carried)
    )


def is_unedited(view: View, seen: Mapping[int, SeenLine], adopted: Mapping[str, Document]) -> bool:
    """Whether a look at what changed is enough to tell that there is nothing to find, or to note as seen.

    Args:
        view, seen: as for `find_edits`.
        adopted: documents in which there was nothing to find, by id.
    """
    if view.lines.doubled or view.lines.merged or view.lines.entries != len(seen):
        return False
    changed = (one for doc_id in tracked(view) if (one := view.document(doc_id)) is not adopted.get(doc_id))
    return not any(
        document.unsigned
        or document.malformed
        or any(seen.get(place.seq) != SeenLine(document.id, place.entry.line) for place in document.entries)
        for document in changed
    )


def _by_seq(view: View, doc_ids: Iterable[str]) -> dict[int, list[Located]]:
    places: dict[int, list[Located]] = defaultdict(list)
    for doc_id in doc_ids:
        for place in view.document(doc_id).entries:
            places[place.seq].append(place)
    return places


def _original(found: list[Located], before: SeenLine | None) -> Located:
    """Of entries with one seq that which keeps it: as it was and where it was, else the first.

    The archive's copy goes before live ones.
    """
    found = [place for place in found if place.doc_id.startswith(ARCHIVE)] or found
    if before is None:
        return found[0]
    return min(found, key=lambda p: (p.entry.line != before.line, p.doc_id != before.doc_id))


def _heirs(entries: Mapping[int, Sequence[Located]]) -> dict[str, set[int]]:
    """Texts of lines that a merge gave other seqs, and those that they had."""
    found: dict[str, set[int]] = defaultdict(set)
    for place in (place for places in entries.values() for place in places):
        if old := former(place.entry):
            found[place.text.rstrip()].update(old)
    return found


def _text(before: SeenLine) -> str:
    entry = parse_entry(before.line)
    return entry.text.rstrip() if entry else ""


def _is_edited(entry: Entry, before: SeenLine) -> bool:
    """Whether a person changed more of a line than its origin, or the white space that editors strip."""
    if entry.line.rstrip() == before.line.rstrip():
        return False
    was = parse_entry(before.line)
    return was is None or _bare(was) != _bare(entry)


def _bare(entry: Entry) -> Entry:
    return replace(without_seqs(entry), text=entry.text.rstrip(), origin=())


def _damaged(view: View) -> set[int]:
    """Seqs whose signature someone broke: those lines are there, `doctor` names them."""
    documents = map(view.document, tracked(view))
    broken = (document.text_line(number) for document in documents for number in document.malformed)
    return {int(seq) for line in broken for seq in _SEQ.findall(line)}


Lines = Mapping[int, Sequence[Located]]
"""Lines by the seq that they have."""
Position = tuple[str, int]
"""Document and line."""


def position(line: Located) -> Position:
    return line.doc_id, line.start_line


@dataclass(frozen=True)
class AmbiguousCitation:
    """An entry, a seq that it cites, and the lines with that seq that it may come from."""

    by: Located
    seq: int
    lines: tuple[Located, ...]

    def others(self, renumbered: Collection[Position] = ()) -> list[Located]:
        """Lines to cite beside the one that has the seq.

        Args:
            renumbered: lines that are about to get a new seq.
        """
        return [line for line in self.lines if line.seq != self.seq or position(line) in renumbered]


def ambiguous(turns: Lines, entries: Lines, known: Collection[int]) -> Iterator[AmbiguousCitation]:
    """Citations of a seq that several lines have, or that a line had before a merge.

    Args:
        turns, entries: of the library.
        known: seqs of entries that were here before. What they cite is settled, unless several lines have the
            number now.
    """
    rivals = _rivals(turns, entries)
    for place in (place for places in entries.values() for place in places) if rivals else ():
        origins = drawn_from(place.entry)
        for seq in dict.fromkeys(origins):
            lines = _candidates(place, rivals.get(seq, ()))
            standing = [line for line in lines if line.seq == seq]
            led = [line for line in lines if line.seq != seq]
            if any(line.seq in origins for line in led):
                led = []  # it cites one of them already
            if len(standing) > 1 or (led and known and place.seq not in known):
                yield AmbiguousCitation(place, seq, (*standing, *led))


def _rivals(turns: Lines, entries: Lines) -> Lines:
    """Lines that differ, by a seq that all of them have or had."""
    every = [line for lines in (*turns.values(), *entries.values()) for line in lines]
    doubled = {seq for line in every for seq in former(line.entry)} | (turns.keys() & entries.keys())
    doubled.update(seq for lines in (turns, entries) for seq in lines if len(lines[seq]) > 1)
    found: dict[int, dict[str, Located]] = defaultdict(dict)
    for line in every if doubled else ():
        for seq in doubled.intersection((line.seq, *former(line.entry))):
            found[seq].setdefault(line.entry.line, line)
    return {seq: tuple(lines.values()) for seq, lines in found.items() if len(lines) > 1}


def _candidates(entry: Located, lines: Sequence[Located]) -> list[Located]:
    """The turns among lines of one number, and what an entry is a copy of; all of them where no turn is."""
    others = [line for line in lines if position(line) != position(entry)]
    if not any(line.doc_id.startswith(EVIDENCE) for line in others):
        return others
    return [line for line in others if line.doc_id.startswith(EVIDENCE) or line.text == entry.text]


# ── the lines afterwards ────────────────────────────────────────────────────────────────────────


def renumbered(line: Entry, seq: int) -> Entry:
    """The line under another seq, with the one that it had."""
    was = format_seqs((*former(line), line.seq))
    return replace(line, seq=seq, fields={**line.fields, "was": was})


def renumbered_copy(entry: Entry, kept: Entry, seq: int) -> Entry:
    """The entry under another seq; its origins are its own and the line that keeps the old one.

    Where that says something else, it is told apart as what nothing was drawn from.
    """
    same = entry.text == kept.text
    theirs = frozenset(kept.origin) if same else frozenset[int]()
    own = [one for one in entry.origin if one != entry.seq and one not in theirs]
    return replace(replace(entry, seq=seq) if same else renumbered(entry, seq), origin=(*own, entry.seq))
