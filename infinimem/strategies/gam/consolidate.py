"""Consolidation: parts of the talk that ended become topics, each related to the nearest of those before it.

Turns that are in no topic are active. Source: GAM, section 3.3, Eq. 7 and 8; Algorithms 2 and 3.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, chain, pairwise
from typing import Literal, NamedTuple

from infinimem.llm.base import CUT, LLM
from infinimem.llm.parallel import in_order
from infinimem.model import Located, Plan, RejectedReply
from infinimem.store.records import stem
from infinimem.store.spec import EVIDENCE
from infinimem.store.view import View
from infinimem.strategies.gam.spec import SPEC, GamSettings
from infinimem.strategies.gam.tasks import RELATE, TOPIC
from infinimem.strategies.graph.links import Link
from infinimem.strategies.readers.pipeline import size
from infinimem.strategies.records.asking import Asker
from infinimem.strategies.records.edits import Check, edited
from infinimem.strategies.records.open_turns import ended_by, open_until
from infinimem.strategies.records.record import Ref
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.records.telling import (
    EMPTY,
    Descriptor,
    descriptor,
    narrated,
    shown_descriptor,
    shown_turns,
)
from infinimem.strategies.segment import segments, silence
from infinimem.strategies.vector_index import VectorIndex

# ── where topics end ─────────────────────────────────────────────────────────────────────────────


Turns = Sequence[Located]


class Due(NamedTuple):
    """Active turns of a session that are looked at, and why."""

    turns: Turns
    why: Literal["ended", "paused", "full"]


class Part(NamedTuple):
    """Turns that are told as a topic; `forced`: that they were cut off although the talk goes on."""

    turns: Turns
    forced: bool = False


def due_before(view: View, turn: Located, own: GamSettings) -> list[Due]:
    """What a turn makes due of what was said before it: the sessions that it ends, after a pause its own."""
    *said, _ = open_until(view, turn) or [turn]
    paused = [said] if said and 0 < own.gap_minutes <= silence(said[-1], turn) else []
    return [*(Due(said, "ended") for said in ended_by(view, turn)), *(Due(said, "paused") for said in paused)]


def due_after(view: View, turn: Located, own: GamSettings) -> list[Due]:
    """The active turns of its session up to this one, where they are too many."""
    said = open_until(view, turn)
    return [Due(said, "full")] if size(said) > own.active_tokens else []


def parts(llm: LLM, due: Due, own: GamSettings) -> tuple[list[Part], Sequence[RejectedReply]]:
    """What of active turns is told as topics, and replies that could not be read.

    At the end of a session that is all; after a pause all but the last part, which may go on. Of too many
    turns likewise, unless no part ends or the last is too large by itself: then all, the last one forced.
    Where no reply can be read, the end of a session ends one topic, and too many turns are cut in two.
    """
    found, rejected = _cut(llm, due.turns, own)
    *done, tail = map(Part, found)
    if due.why == "full":
        if not done and rejected and len(tail.turns) > 1:
            # at the longest silence, or else in the middle
            gaps = [silence(before, after) for before, after in pairwise(tail.turns)]
            at = gaps.index(max(gaps)) + 1 if max(gaps) > 0 else len(tail.turns) // 2
            done, tail = [Part(tail.turns[:at], forced=True)], Part(tail.turns[at:])
        if not done or size(tail.turns) > own.active_tokens:
            done.append(tail._replace(forced=True))
    return ([*done, tail] if due.why == "ended" else done), rejected


def _cut(llm: LLM, turns: Turns, own: GamSettings) -> tuple[list[Turns], Sequence[RejectedReply]]:
    """Turns in parts, and replies that could not be read."""
    found = segments(llm, turns, True, workers=own.workers) if own.partition == "semantic" else None
    ends = accumulate(len(part.turns) for part in found.segments) if found else _ruled(turns, own)
    cuts = [at for at in ends if at < len(turns)]
    cut = [turns[start:end] for start, end in pairwise([0, *cuts, len(turns)])]
    return cut, found.rejected if found else ()


def _ruled(turns: Turns, own: GamSettings) -> Iterator[int]:
    """Where a rule cuts that knows no topics (section 4.4)."""
    most = {"turn": 1, "turns": own.window or 3, "window": own.window or 256}.get(own.partition)
    said = 0
    for at, turn in enumerate(turns, 1):
        said += size((turn,)) if own.partition == "window" else 1
        if most and said >= most:
            yield at
            said = 0


# ── topics and their relations ───────────────────────────────────────────────────────────────────


FORCED = ("forced", "true")
"""`aux` of a topic that was cut off although the talk went on."""

(KIND,) = SPEC.kinds


class Consolidation:
    """Makes topics, tried on a copy of the records, which the index follows."""

    def __init__(
        self, view: View, store: RecordStore, index: VectorIndex, llm: LLM, own: GamSettings
    ) -> None:
        self._view = view
        self._before = store
        self._after = store.copy()
        self._index = index
        self._llm = llm
        self._own = own
        self._asker = Asker(llm)

    def plan(self, due: Sequence[Due], check: Check) -> Plan | None:
        """One plan for all that is due; None where nothing ends, and nothing went wrong."""
        own = self._own
        cut = in_order(lambda one: parts(self._llm, one, own), due, own.workers)
        ended = [part for some, _ in cut for part in some]
        unanswered: dict[int, str] = {}
        for part, told, failure in chain.from_iterable(in_order(self._told, ended, own.workers)):
            if failure:
                unanswered |= {turn.seq: failure for turn in part.turns}
            else:
                self._add(part, told)
        rejected = [*(one for _, some in cut for one in some), *self._asker.rejected()]
        return edited("consolidate", self._before, self._after, check, rejected, unanswered)

    def _told(self, part: Part) -> list[tuple[Part, Descriptor, str]]:
        """c_sum of Eq. 7, or why there is none; of halves, where a part does not fit."""
        asker = Asker(self._llm)
        data = asker.ask(TOPIC, turns=shown_turns(part.turns))
        if asker.failure in CUT and (half := len(part.turns) // 2):
            halves = (part._replace(turns=turns) for turns in (part.turns[:half], part.turns[half:]))
            return [told for some in halves for told in self._told(some)]
        self._asker.take(asker)
        found = descriptor(data["summary"], data["keywords"]).cut() if data else EMPTY
        return [(part, found, asker.failure or ("" if found.summary else "EMPTY"))]

    def _add(self, part: Part, found: Descriptor) -> None:
        """Put a topic into the network."""
        after, first = self._after, part.turns[0]
        aux = [FORCED] if part.forced else []
        name = after.own_id(KIND.prefix, first.seq)
        refs = (Ref(turn.seq) for turn in part.turns)
        topic = narrated(after, name, found.summary, refs, aux, found.keywords)
        after.put(replace(topic, session=stem(first.doc_id)))
        self._index.sync(after, (name,))
        for link in self._relations(name, self._candidates(name)):
            after.graph.add(name, link)

    def _candidates(self, name: str) -> list[str]:
        """The nearest topics, and the one that it was cut off from."""
        after, topic, index = self._after, self._after.records[name], self._index
        near = index.nearest(index.row(name), self._own.candidates, (KIND.folder,), without=(name,))
        said = self._view.document(f"{EVIDENCE}{topic.session}").entries
        at = bisect_left(said, topic.refs[0].seq, key=lambda turn: turn.seq)
        before = Ref(said[at - 1].seq) if at else None
        others = map(after.records.__getitem__, after.of_session(topic.session or ""))
        cut_off = (one.id for one in others if FORCED in one.aux and before in one.refs)
        return list(dict.fromkeys([*(other for other, _ in near), *cut_off]))

    def _relations(self, topic: str, names: Sequence[str]) -> Iterator[Link]:
        """Edges from a topic (Eq. 8), at most one to each of the others."""
        own = self._own
        calls = [names] if own.relations == "one" and names else [[name] for name in names]
        for found in in_order(lambda some: self._related(topic, some), calls, own.workers):
            for name, (relation, confidence) in found.items():
                if relation in SPEC.links and confidence > own.tau:
                    yield Link(relation, name, round(confidence, 3))

    def _related(self, topic: str, names: Sequence[str]) -> dict[str, tuple[str, float]]:
        """What a model says first of each of the others; names that it makes up are left out."""
        called = {str(at): name for at, name in enumerate(names, 1)}
        shown = partial(shown_descriptor, self._after)
        others = [shown(name) | {"id": short} for short, name in called.items()]
        data = self._asker.ask(RELATE, topic=shown(topic), others=others)
        rows = [(called.get(row["id"].strip(), ""), row) for row in (data["relations"] if data else ())]
        return {name: (row["relation"], float(row["confidence"])) for name, row in reversed(rows) if name}
