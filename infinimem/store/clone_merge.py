"""Seqs that several lines have, as after a git merge of clones: which turn keeps it, and what entries cite.

An entry cites by number. Where several lines have a number that it cites, or had it before (`was`), its own
words tell which it was drawn from. Pure; texts stay as they are. Source: docs/FORMAT.md, Merged clones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from infinimem.grounding.claims import unsupported
from infinimem.markdown.characters import normalised
from infinimem.markdown.signature import format_seqs
from infinimem.model import SOURCES, Entry, Located
from infinimem.store.view import EVIDENCE, drawn_from, former

Lines = Mapping[int, Sequence[Located]]
"""Lines by the seq that they have."""
Place = tuple[str, int]


def at(line: Located) -> Place:
    """Document and line."""
    return line.doc_id, line.start_line


@dataclass(frozen=True)
class Cited:
    """An entry, a seq that it cites, and which of the lines with that seq it may mean."""

    by: Located
    seq: int
    lines: tuple[Located, ...]

    @property
    def certain(self) -> bool:
        return len(self.lines) == 1

    def followed(self, renumbered: Collection[Place]) -> tuple[tuple[Located, ...], bool]:
        """Lines to cite from now on, and whether that is instead of what was cited; none where it stays.

        Args:
            renumbered: lines that are about to get a new seq.
        """
        stays = any(line.seq == self.seq and at(line) not in renumbered for line in self.lines)
        if not stays:
            return self.lines, True
        return tuple(p for p in self.lines if at(p) in renumbered and p.doc_id.startswith(EVIDENCE)), False


def cited(said: Lines, entries: Lines) -> tuple[Cited, ...]:
    """What entries mean by a seq that several lines have or had."""
    rivals = _rivals(said, entries)
    return tuple(_cited(said, entries, rivals)) if rivals else ()


def keeper(turns: Sequence[Located], sure: Collection[Place]) -> Located:
    """Of turns with one seq that which keeps it: what an entry was drawn from for certain, else the first."""
    return next((turn for turn in turns if at(turn) in sure), turns[0])


def certain(cites: Sequence[Cited]) -> frozenset[Place]:
    """Lines that an entry was drawn from for certain."""
    return frozenset(at(one.lines[0]) for one in cites if one.certain)


def _rivals(said: Lines, entries: Lines) -> Lines:
    """Lines that differ, by a seq that all of them have or had."""
    had: dict[int, list[Located]] = defaultdict(list)
    for place in (place for lines in (said, entries) for places in lines.values() for place in places):
        for old in former(place.entry):
            had[old].append(place)
    doubled = {seq for seq, places in entries.items() if len(places) > 1 or seq in said}
    doubled |= {seq for seq, places in said.items() if len(places) > 1}
    rivals = {}
    for seq in doubled | {old for old in had if old in said or old in entries}:
        first: dict[str, Located] = {}
        for place in (*said.get(seq, ()), *entries.get(seq, ()), *had[seq]):
            first.setdefault(place.entry.line, place)
        rivals[seq] = list(first.values())
    return {seq: lines for seq, lines in rivals.items() if len(lines) > 1}


def _cited(said: Lines, entries: Lines, rivals: Lines) -> Iterator[Cited]:
    for place in (place for places in entries.values() for place in places):
        origins = dict.fromkeys(drawn_from(place.entry))
        for seq in origins:
            lines = [line for line in rivals.get(seq, ()) if at(line) != at(place)]
            if not lines or any(line.seq != seq and line.seq in origins for line in lines):
                continue  # it was led to another of them before
            others = [
                _spoken(line)
                for other in origins
                if other != seq
                for line in (*said.get(other, ()), *entries.get(other, ()))
            ]
            yield Cited(place, seq, tuple(_meant(place.entry, lines, others, len(origins))))


def _meant(entry: Entry, lines: list[Located], others: Sequence[str], origins: int) -> list[Located]:
    """The lines that an entry may be drawn from; each test that some of them pass leaves those."""
    text = normalised(entry.text)

    missing = {at(line): len(unsupported(entry.text, [_spoken(line), *others])) for line in lines}
    least = min(missing.values())

    def bears_out(line: Located) -> bool:
        return missing[at(line)] == least

    def agrees(line: Located) -> bool:
        speaker, known = entry.fields.get("speaker"), line.entry.fields.get("speaker")
        rank, least = SOURCES.index(line.entry.source), SOURCES.index(entry.source)
        if entry.source == "human":  # a person's word: theirs is not that of what they edited
            return True
        if origins > 1:  # the store gave it the least trusted source, and the speaker that all share
            return rank >= least and speaker in (None, known)
        return rank == least and speaker == known

    def is_of_the_time(line: Located) -> bool:
        exact = "T" in (entry.time or "") or entry.fields.get("by") != "model"  # a model resolves days
        return exact and line.entry.time == entry.time

    lines = [line for line in lines if line.doc_id.startswith(EVIDENCE) and bears_out(line)] or lines
    for passes in (
        lambda line: normalised(line.text) == text,
        lambda line: f" {text} " in f" {normalised(line.text)} ",
        bears_out,
        agrees,
        is_of_the_time,
        lambda line: bool(_stems(line.text) & _stems(entry.text)),
    ):
        lines = [line for line in lines if passes(line)] or lines
    return lines


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


def _spoken(line: Located) -> str:
    return f"{line.entry.fields.get('speaker', '')} {line.text}"
