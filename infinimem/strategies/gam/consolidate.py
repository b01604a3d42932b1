"""Consolidation: parts of the talk that ended become topics, each related to the nearest of those before it.

Source: GAM, section 3.3, Eq. 7 and 8; Algorithm 3.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

from infinimem.llm.base import LLM
from infinimem.llm.parallel import in_order
from infinimem.model import Plan
from infinimem.store.records import stem
from infinimem.store.spec import EVIDENCE
from infinimem.store.view import View
from infinimem.strategies.gam.boundaries import Due, Part, Rejected, parts
from infinimem.strategies.gam.spec import SPEC, GamSettings
from infinimem.strategies.gam.tasks import RELATE, TOPIC
from infinimem.strategies.graph.links import Link
from infinimem.strategies.records.asking import Asked
from infinimem.strategies.records.descriptor import Descriptor, descriptor, undescribed, unverified
from infinimem.strategies.records.prompt_views import shown_turns
from infinimem.strategies.records.record import UNVERIFIED, Record, Ref, moment
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.records.rounds import edited
from infinimem.strategies.records.rules import Check
from infinimem.strategies.vector_index import VectorIndex

FORCED = ("forced", "true")
"""`aux` of a topic that was cut off although the talk went on."""
DEGRADED = ("degraded", "true")
"""`aux` of one that no model told: its first words stand in."""

(KIND,) = SPEC.kinds


class Consolidation:
    """Makes topics, tried on a copy of the records.

    Args:
        view: the library.
        store: its topics; they are not edited.
        index: where they lie; follows the copy.
        llm: the model.
        own: the settings.
    """

    def __init__(
        self, view: View, store: RecordStore, index: VectorIndex, llm: LLM, own: GamSettings
    ) -> None:
        self._view = view
        self._before = store
        self._after = store.copy()
        self._index = index
        self._llm = llm
        self._own = own
        self._asked = Asked(llm)

    def plan(self, due: Sequence[Due], check: Check) -> Plan | None:
        """One plan for all that is due; None where nothing ends, and nothing went wrong.

        Args:
            due: of sessions, each once.
            check: the rules of records.

        Raises:
            ModelUnavailable, ModelNotConfigured: of the model or the embedder.
        """
        workers = self._own.workers
        cut = in_order(self._parts, due, workers)
        ended = [part for some, _ in cut for part in some]
        for part, told in zip(ended, in_order(self._told, ended, workers), strict=True):
            self._add(part, told)
        rejected = [*(one for _, some in cut for one in some), *self._asked.rejected]
        return edited("consolidate", self._before, self._after, check, rejected)

    def _parts(self, due: Due) -> tuple[list[Part], Rejected]:
        return parts(self._llm, due, self._own)

    def _told(self, part: Part) -> Descriptor | None:
        """c_sum of Eq. 7; None where no reply is of use."""
        data = self._asked.ask(TOPIC, turns=shown_turns(part.turns))
        found = descriptor(data["summary"], data["keywords"]).cut() if data else None
        return found if found and found.summary else None

    def _add(self, part: Part, told: Descriptor | None) -> None:
        """Put a topic into the network."""
        after, first = self._after, part.turns[0]
        refs = tuple(Ref(turn.seq) for turn in part.turns)
        quotes = [after.quote(ref) for ref in refs]
        found = told or undescribed("\n".join(said.text for said in quotes))
        times = [said.time for said in quotes if said.time]
        aux = [
            *([FORCED] if part.forced else ()),
            *(() if told else [DEGRADED]),
            *(UNVERIFIED if unverified(found, quotes) else ()),
        ]
        topic = Record(
            after.own_id(KIND.prefix, first.seq),
            SPEC,
            found.summary,
            found.keywords,
            max(times, key=moment, default=None),
            stem(first.doc_id),
            refs,
            aux=tuple(aux),
        )
        after.put(topic)
        self._index.sync(after, (topic.id,))
        for link in self._relations(topic, self._candidates(topic)):
            after.graph.add(topic.id, link)

    def _candidates(self, topic: Record) -> list[str]:
        """The nearest topics, and the one that it was cut off from."""
        row = self._index.row(topic.id)
        near = self._index.nearest(row, self._own.candidates, (KIND.folder,), without=(topic.id,))
        said = self._view.document(EVIDENCE + (topic.session or "")).entries
        at = bisect_left(said, topic.refs[0].seq, key=lambda turn: turn.seq)
        before = Ref(said[at - 1].seq) if at else None
        cut_off = (
            other.id
            for other in map(self._after.records.__getitem__, self._after.of_session(topic.session or ""))
            if FORCED in other.aux and before in other.refs
        )
        return list(dict.fromkeys([*(name for name, _ in near), *cut_off]))

    def _relations(self, topic: Record, names: Sequence[str]) -> Iterator[Link]:
        """Edges from a topic (Eq. 8), at most one to each of the others."""
        own = self._own
        calls = [names] if own.relations == "one" else [[name] for name in names]
        seen: set[str] = set()
        for found in in_order(
            lambda some: self._related(topic, some), [one for one in calls if one], own.workers
        ):
            for name, relation, confidence in found:
                if name not in seen and relation in SPEC.links and confidence > own.tau:
                    yield Link(relation, name, round(confidence, 3))
                seen.add(name)

    def _related(self, topic: Record, names: Sequence[str]) -> list[tuple[str, str, float]]:
        """What a model says of a topic and some others; names that it makes up are left out."""
        called = {str(at): name for at, name in enumerate(names, 1)}
        others = [{"id": short} | self._shown(name) for short, name in called.items()]
        data = self._asked.ask(RELATE, topic=self._shown(topic.id), others=others)
        rows = data["relations"] if data else ()
        told = ((row["id"].strip(), row["relation"].strip(), float(row["confidence"])) for row in rows)
        return [(called[short], relation, sure) for short, relation, sure in told if short in called]

    def _shown(self, name: str) -> dict[str, Any]:
        record = self._after.records[name]
        told = {"time": record.time, "summary": record.summary, "keywords": list(record.keywords)}
        return {key: value for key, value in told.items() if value}
