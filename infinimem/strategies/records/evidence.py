"""From ranked records to evidence: each turn once, or a record in its own words; and what no record holds.

Source: All-Mem, Appendix D.5 (evidence attached to selected units).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import Generic, TypeVar

from infinimem.index.pieces import Pieces
from infinimem.index.search import searcher
from infinimem.index.vectors import Matrix
from infinimem.llm.base import LLM
from infinimem.model import Candidate, Evidence, Retrieved, Stage
from infinimem.store.spec import EVIDENCE
from infinimem.store.view import View
from infinimem.strategies.readers.pipeline import MOST, Trace, pack, size
from infinimem.strategies.records.record import Quote, Ref, moment
from infinimem.strategies.records.record_store import RecordStore, VectorIndex

OMITTED = " … "
"""Between pieces of a turn that do not follow each other."""

Own = TypeVar("Own")
Records = tuple[RecordStore, VectorIndex]
Spans = tuple[tuple[int, int], ...]
"""Characters of a turn's text, ascending, with more than blanks between any two."""


class RecordSearch(ABC, Generic[Own]):
    """A question to a snapshot, by a strategy's own reader; what does not fit is passed over.

    Args:
        records: those of the snapshot, and where they lie.
        budget: tokens of all texts together; a quarter of it at most is for what no record holds.
        llm: is asked for an answer's evidence alone.
    """

    def __init__(
        self,
        view: View,
        records: Records,
        query: str,
        budget: int,
        own: Own,
        llm: LLM,
    ) -> None:
        self.view, self.query, self.own, self.llm = view, query, own, llm
        self.store, self.index = records
        self.trace = Trace()
        self.trace.add(Stage("query", (query,)))
        self._others = pack(self._without_record(), budget // 4)
        self.budget = budget - size(self._others)

    def open_turns(self) -> Iterable[int]:
        """Return the seqs of turns in no record that are found by words, unless the search does it itself."""
        return ()

    def _without_record(self) -> Iterator[Retrieved]:
        """By words: open turns, unreadable records' files, and people's notes."""
        view, unread, waiting = self.view, self.store.unread, set(self.open_turns())
        if lost := {seq for one in unread.values() for seq in one.turns}:
            waiting |= lost - {ref.seq for record in self.store.records.values() for ref in record.refs}
        if not waiting and len(view.ids()) == sum(len(view.below(folder)) for folder in view.spec.live):
            return
        for item in searcher(view).entries(self.query, MOST):
            is_open = item.doc_id.startswith(EVIDENCE) and waiting.issuperset(item.seqs)
            if view.is_note(item.doc_id) or item.doc_id in unread or is_open:
                yield item

    @property
    def by_vectors(self) -> bool:
        """Whether records are ranked by vectors alone; else by the library's own search."""
        return bool(getattr(self.own, "rank", "") == "cosine")

    @cached_property
    def row(self) -> Matrix:
        """The vector of the question."""
        return self.index.embed(self.query)

    @cached_property
    def turn_scores(self) -> Mapping[int, float]:
        """Turns with what the library's search makes of them, by words and vectors; the best first."""
        found: dict[int, float] = {}
        for _, seq, score in searcher(self.view).scores(self.query, MOST, "evidence"):
            if seq:
                found.setdefault(seq, score)
        return found

    @cached_property
    def record_scores(self) -> Mapping[str, Mapping[str, float]]:
        """The same of the records of each folder that readers see."""
        found: dict[str, dict[str, float]] = {kind.folder: {} for kind in self.store.spec.kinds}
        for doc_id, _, score in searcher(self.view).scores(self.query, MOST):
            folder, _, name = doc_id.rpartition("/")
            if f"{folder}/" in found and name in self.store:
                found[f"{folder}/"].setdefault(name, score)
        return found

    def nearest(self, folder: str, count: int) -> list[Candidate]:
        """The records of a folder that are nearest to the question, best first."""
        if self.by_vectors:
            near = self.index.nearest(self.row, count, (folder,))
            return [Candidate(name, {"cosine": cosine}, cosine) for name, cosine in near]
        found = [*self.record_scores[folder].items()][:count]
        return [Candidate(name, {"words": score}, score) for name, score in found]

    @abstractmethod
    def by_rank(self) -> Evidence:
        """Turns by rank; asks no model."""

    @abstractmethod
    def for_answer(self) -> Evidence:
        """Evidence that an answer is read from."""

    def evidence(self, items: Iterable[Retrieved]) -> Evidence:
        """Return these and what no record holds, with the trace."""
        return self.trace.evidence([*items, *self._others])

    def turns(self, ranked: Iterable[Candidate]) -> list[Retrieved]:
        """Return turns, named by their seqs, as far as they fit."""
        room = EvidenceBuilder(self.store, self.budget)
        for turn in ranked:
            room.add(turn.score, (self.store.quote(Ref(int(turn.id))),))
        return room.by_rank()

    def record(self, name: str, score: float) -> Retrieved:
        """Return a record in words of its own, which cites the turns that it names."""
        record = self.store.records[name]
        document = self.view.document(record.doc_id)
        rows = (at for at, line in enumerate(document.lines, 1) if line.startswith("summary:"))
        start = document.header.end + 1 if record.prose else next(rows, 1)
        turns = [turn for said in self.store.quotes(name) if (turn := self.store.turn(said.ref.seq))]
        sources = {turn.entry.source for turn in turns}
        return Retrieved(
            record.doc_id,
            start,
            start + record.prose.count("\n"),
            record.prose or record.summary,
            score,
            origin=tuple(dict.fromkeys(turn.seq for turn in turns)),
            time=record.time,
            when=record.when,
            source=sources.pop() if len(sources) == 1 else None,
            physical=True,
        )


# ── turns, piece by piece ───────────────────────────────────────────────────────────────────────


class EvidenceBuilder:
    """The evidence of records that are added one by one, each turn once, within a budget of tokens."""

    def __init__(self, store: RecordStore, budget: int) -> None:
        self._store = store
        self._budget = budget
        self._pieces = Pieces(store.view)
        self._turns: dict[int, Retrieved] = {}
        self._spans: dict[int, Spans] = {}
        self.tokens = 0
        """That its texts take."""

    def shows(self, quotes: Iterable[Quote]) -> bool:
        """Whether something of the turn of one of these is shown."""
        return any(said.ref.seq in self._turns for said in quotes)

    def add(self, score: float, quotes: Sequence[Quote], when: str | None = None) -> bool:
        """Take in what a record shows beyond what is shown already, if all of it fits; whether it did."""
        spans: dict[int, Spans] = {}
        fresh: dict[int, Retrieved] = {}
        for said in quotes:
            seq, place = said.ref.seq, self._store.turn(said.ref.seq)
            if place is None or not said.text.strip():  # it was forgotten, or a person cut it short
                continue
            text, start = place.entry.text, said.ref.span[0] if said.ref.span else 0
            old = spans.get(seq) or self._spans.get(seq, ())
            new = _joined(text, (*old, (start, start + len(said.text))))
            if new != old:
                item = (
                    fresh.get(seq) or self._turns.get(seq) or replace(self._pieces.entry(place), score=score)
                )
                shown = OMITTED.join(text[start:end].strip() for start, end in new)
                spans[seq], fresh[seq] = new, replace(item, text=shown, when=item.when or when)
        more = size(fresh.values()) - size(self._turns[seq] for seq in fresh if seq in self._turns)
        if self.tokens + more > self._budget:
            return False
        self._turns |= fresh
        self._spans |= spans
        self.tokens += more
        return True

    def by_rank(self) -> list[Retrieved]:
        """The turns in the order in which they came."""
        return [*self._turns.values()]

    def by_time(self) -> list[Retrieved]:
        """The turns in the order in which they were said, those without a time last (Eq. 42)."""
        times = {seq: moment(turn.time) for seq, turn in self._turns.items()}
        order = sorted(self._turns, key=lambda seq: (times[seq] == datetime.min, times[seq], seq))
        return [self._turns[seq] for seq in order]


def _joined(text: str, spans: Iterable[tuple[int, int]]) -> Spans:
    """Spans of a text as few as they can be: those with nothing but blanks between them are one."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if not text[start:end].strip():
            continue
        if found and not text[found[-1][1] : start].strip():
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return tuple(found)
