"""From ranked units to evidence: each turn once, with what the units show of it, and where that stands.

Source: All-Mem, Appendix D.5 (evidence attached to selected units).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from infinimem import tokens
from infinimem.model import Located, Retrieved
from infinimem.store.view import View
from infinimem.strategies.allmem.record_store import RecordStore
from infinimem.strategies.allmem.unit import SHOWN, Quote, Unit, header, render

OMITTED = " … "
"""Between pieces of a turn that do not follow each other."""

_BARE = Unit("u-000000", "")
_ABOVE = len(header(_BARE, ()))
"""Lines of a unit's file above what it quotes, here of one without a descriptor."""

Spans = tuple[tuple[int, int], ...]
"""Characters of a turn's text, ascending, with more than blanks between any two."""


@dataclass(frozen=True)
class _Turn:
    """A turn as it is shown so far."""

    place: Located
    spans: Spans
    unit: str
    """That shows it: the first one, until another is named."""
    score: float

    @property
    def text(self) -> str:
        """The pieces, as they were said."""
        text = self.place.entry.text
        return OMITTED.join(text[start:end].strip() for start, end in self.spans)


class EvidenceBuilder:
    """The evidence of units that are added one by one, each turn once, within a budget.

    Args:
        bank: that the units stand in.
        budget: tokens of all texts together.
    """

    def __init__(self, bank: RecordStore, budget: int) -> None:
        self._bank = bank
        self._budget = budget
        self._turns: dict[int, _Turn] = {}
        self.tokens = 0
        """That its texts take."""

    def add(self, name: str, score: float, quotes: Sequence[Quote]) -> bool:
        """Take in what a unit shows beyond what is shown already, whole or not at all.

        Args:
            name: of the unit.
            score: of the unit.
            quotes: what it shows.

        Returns:
            Whether it fits.
        """
        fresh = self._with(name, score, quotes)
        more = sum(tokens.count(turn.text) for turn in fresh.values())
        more -= sum(tokens.count(self._turns[seq].text) for seq in fresh if seq in self._turns)
        if self.tokens + more > self._budget:
            return False
        self._turns |= fresh
        self.tokens += more
        return True

    def _with(self, name: str, score: float, quotes: Sequence[Quote]) -> dict[int, _Turn]:
        """The turns that would be shown otherwise than now."""
        fresh: dict[int, _Turn] = {}
        for said in quotes:
            seq = said.ref.seq
            place = self._bank.turn(seq)
            if place is None or not said.text.strip():  # it was forgotten, or a person cut it short
                continue
            old = fresh.get(seq) or self._turns.get(seq) or _Turn(place, (), name, score)
            spans = joined(place.entry.text, (*old.spans, _span(said)))
            if spans != old.spans:
                fresh[seq] = _Turn(place, spans, old.unit, old.score)
        return fresh

    def by_rank(self, view: View) -> list[Retrieved]:
        """The turns in the order in which they came."""
        return [self._item(view, turn) for turn in self._turns.values()]

    def by_time(self, view: View, units: Iterable[str]) -> list[Retrieved]:
        """The turns by the units that show them: by time, those without one last, then by id (Eq. 42).

        Args:
            view: whose documents they are.
            units: that were taken in. What a representative shows of another of them is left to that one.
        """
        kept = sorted((self._bank.units[name] for name in units), key=lambda unit: bool(unit.sources))
        own: dict[int, tuple[Unit, int]] = {}
        for unit in kept:
            for at, said in enumerate(self._bank.quotes(unit.id)):
                own.setdefault(said.ref.seq, (unit, at))
        items = []
        for seq, turn in self._turns.items():
            unit, at = own[seq]
            shown = _Turn(turn.place, turn.spans, unit.id, turn.score)
            when = unit.age[0]
            items.append(((when == datetime.min, when, unit.order, at), self._item(view, shown)))
        return [item for _, item in sorted(items, key=lambda pair: pair[0])]

    def _item(self, view: View, turn: _Turn) -> Retrieved:
        doc_id, start, end = self._where(view, turn)
        entry = turn.place.entry
        return Retrieved(
            doc_id=doc_id,
            start_line=start,
            end_line=end,
            text=turn.text,
            score=turn.score,
            seqs=(entry.seq,),
            origin=(entry.seq,),
            time=entry.time,
            source=entry.source,
            speaker=entry.fields.get("speaker"),
        )

    def _where(self, view: View, turn: _Turn) -> tuple[str, int, int]:
        """The lines that quote it in its unit's file; where these are not as they were written, or show less
        of it, those of the turn itself."""
        unit, place = self._bank.units[turn.unit], turn.place
        if unit.doc_id in view:
            for said in self._bank.quotes(unit.id):
                if said.ref.seq == place.seq and (_span(said),) == turn.spans and len(said.text) <= SHOWN:
                    wanted = render(_BARE, (), (said,)).split("\n")[_ABOVE:-1]
                    first = _find(view.document(unit.doc_id).lines, wanted)
                    if first:
                        return unit.doc_id, first, first + len(wanted) - 1
        return place.doc_id, place.start_line, place.end_line


def joined(text: str, spans: Iterable[tuple[int, int]]) -> Spans:
    """Spans of a text as few as they can be: those with nothing but blanks between them are one.

    Args:
        text: of the turn.
        spans: in any order; blank ones fall away.
    """
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if not text[start:end].strip():
            continue
        if found and not text[found[-1][1] : start].strip():
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return tuple(found)


def _span(said: Quote) -> tuple[int, int]:
    """The characters that a quotation shows."""
    start = said.ref.span[0] if said.ref.span else 0
    return start, start + len(said.text)


def _find(lines: Sequence[str], wanted: Sequence[str]) -> int:
    """The number of the first line of some below a header, from 1; 0 for none."""
    body = lines.index("---", 1) + 1 if "---" in lines[1:] else 0
    for at in range(body, len(lines) - len(wanted) + 1):
        if lines[at] == wanted[0] and tuple(lines[at : at + len(wanted)]) == tuple(wanted):
            return at + 1
    return 0
