"""From ranked records to evidence: each turn once, with what they show of it; or a record in its own words.

Source: All-Mem, Appendix D.5 (evidence attached to selected units).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from infinimem import tokens
from infinimem.model import Candidate, Located, Retrieved
from infinimem.store.view import View
from infinimem.strategies.records.record import Quote, Ref, moment
from infinimem.strategies.records.record_store import RecordStore

OMITTED = " … "
"""Between pieces of a turn that do not follow each other."""

Spans = tuple[tuple[int, int], ...]
"""Characters of a turn's text, ascending, with more than blanks between any two."""


@dataclass(frozen=True)
class _Turn:
    """A turn as it is shown so far."""

    place: Located
    spans: Spans
    score: float
    when: str | None

    @property
    def text(self) -> str:
        """The pieces, as they were said."""
        text = self.place.entry.text
        return OMITTED.join(text[start:end].strip() for start, end in self.spans)

    @property
    def item(self) -> Retrieved:
        """The turn as evidence, cited where it was said."""
        place, entry = self.place, self.place.entry
        return Retrieved(
            doc_id=place.doc_id,
            start_line=place.start_line,
            end_line=place.end_line,
            text=self.text,
            score=self.score,
            seqs=(entry.seq,),
            origin=(entry.seq,),
            time=entry.time,
            source=entry.source,
            speaker=entry.fields.get("speaker"),
            when=self.when,
        )


def told(view: View, store: RecordStore, name: str, score: float) -> Retrieved:
    """A record as evidence in words of its own, which cites the turns that it names.

    Args:
        view: the snapshot that it stands in.
        store: its records.
        name: of the record.
        score: what it was found with.
    """
    record = store.records[name]
    document = view.document(record.doc_id)
    rows = (at for at, line in enumerate(document.lines, 1) if line.startswith("summary:"))
    start = document.header.end + 1 if record.prose else next(rows, 1)
    turns = [turn for turn in (store.turn(said.ref.seq) for said in store.quotes(name)) if turn]
    sources = {turn.entry.source for turn in turns}
    return Retrieved(
        record.doc_id,
        start,
        start + record.prose.count("\n"),
        record.prose or record.summary,
        score,
        origin=tuple(dict.fromkeys(turn.seq for turn in turns)),
        time=record.time,
        source=sources.pop() if len(sources) == 1 else None,
        physical=True,
    )


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

    def shows(self, quotes: Iterable[Quote]) -> bool:
        """Whether something of the turn of one of these is shown."""
        return any(said.ref.seq in self._turns for said in quotes)

    def add(self, score: float, quotes: Sequence[Quote], when: str | None = None) -> bool:
        """Take in what a unit shows beyond what is shown already, whole or not at all.

        Args:
            score: of the unit.
            quotes: what it shows.
            when: when that happened, if it is known.

        Returns:
            Whether it fits.
        """
        fresh = self._with(score, quotes, when)
        more = sum(tokens.count(turn.text) for turn in fresh.values())
        more -= sum(tokens.count(self._turns[seq].text) for seq in fresh if seq in self._turns)
        if self.tokens + more > self._budget:
            return False
        self._turns |= fresh
        self.tokens += more
        return True

    def _with(self, score: float, quotes: Sequence[Quote], when: str | None) -> dict[int, _Turn]:
        """The turns that would be shown otherwise than now."""
        fresh: dict[int, _Turn] = {}
        for said in quotes:
            seq = said.ref.seq
            place = self._bank.turn(seq)
            if place is None or not said.text.strip():  # it was forgotten, or a person cut it short
                continue
            old = fresh.get(seq) or self._turns.get(seq) or _Turn(place, (), score, when)
            spans = joined(place.entry.text, (*old.spans, _span(said)))
            if spans != old.spans:
                fresh[seq] = _Turn(place, spans, old.score, old.when or when)
        return fresh

    def add_turns(self, turns: Iterable[Candidate]) -> None:
        """Take in turns by their seqs, those that fit."""
        for turn in turns:
            self.add(turn.score, (self._bank.quote(Ref(int(turn.id))),))

    def by_rank(self) -> list[Retrieved]:
        """The turns in the order in which they came."""
        return [turn.item for turn in self._turns.values()]

    def by_time(self) -> list[Retrieved]:
        """The turns in the order in which they were said, those without a time last (Eq. 42)."""

        def order(seq: int) -> tuple[bool, datetime, int]:
            said = moment(self._turns[seq].place.entry.time)
            return said == datetime.min, said, seq

        return [self._turns[seq].item for seq in sorted(self._turns, key=order)]


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
