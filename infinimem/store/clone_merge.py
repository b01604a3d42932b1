"""Seqs that several lines have, as after a git merge of clones: which turn keeps it, and what entries cite.

An entry cites by number. Where several lines have a number that it cites, it cites those that share a word
with it, or all of them. Pure; texts stay as they are. Source: docs/FORMAT.md, Merged clones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from infinimem.markdown.characters import normalised
from infinimem.markdown.signature import format_seqs
from infinimem.model import Entry, Located
from infinimem.store.lines import drawn_from, former
from infinimem.store.spec import EVIDENCE

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

    def resolved(self, renumbered: Collection[Position]) -> tuple[tuple[Located, ...], bool]:
        """Lines to cite from now on, and whether that is instead of what was cited; none where it stays.

        Args:
            renumbered: lines that are about to get a new seq.
        """
        others = tuple(p for p in self.lines if p.seq != self.seq or position(p) in renumbered)
        return others, len(others) == len(self.lines)


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
            lines = [line for line in rivals.get(seq, ()) if position(line) != position(place)]
            if not lines or any(line.seq != seq and line.seq in origins for line in lines):
                continue  # it cites another of them already
            meant = _sharing_words(place, lines)
            standing = [line for line in lines if line.seq == seq]
            if len(standing) > 1:
                yield AmbiguousCitation(place, seq, tuple(meant))
            elif known and place.seq not in known and (led := [line for line in meant if line.seq != seq]):
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


def _sharing_words(entry: Located, lines: Sequence[Located]) -> Sequence[Located]:
    """The lines that share a longer word with an entry; all of them where no turn does."""
    words = _stems(entry.text)
    sharing = [line for line in lines if words & _stems(line.text)]
    return sharing if any(line.doc_id.startswith(EVIDENCE) for line in sharing) else lines


def _stems(text: str) -> set[str]:
    """Longer words, cut so that most of their forms are one."""
    return {word[:4] for word in normalised(text).split() if len(word) >= 4}


# ── the lines afterwards ────────────────────────────────────────────────────────────────────────


def citing(entry: Entry, seq: int, those: Sequence[int], instead: bool) -> Entry:
    """The entry with other lines among its origins, instead of `seq` or beside it."""
    led = {seq: those if instead else (seq, *those)}
    origin = dict.fromkeys(new for old in entry.origin for new in led.get(old, (old,)))
    return replace(entry, origin=tuple(origin))


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
