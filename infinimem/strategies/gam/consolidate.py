"""Consolidation: parts of the talk that ended become topics, each related to the nearest of those before it.

Source: GAM, section 3.3, Eq. 7 and 8; Algorithm 3.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

from infinimem.llm.base import CUT, LLM
from infinimem.llm.parallel import in_order
from infinimem.model import Plan
from infinimem.store.records import stem
from infinimem.store.spec import EVIDENCE
from infinimem.store.view import View
from infinimem.strategies.gam.boundaries import Due, Part, parts
from infinimem.strategies.gam.spec import SPEC, GamSettings
from infinimem.strategies.gam.tasks import RELATE, TOPIC
from infinimem.strategies.graph.links import Link
from infinimem.strategies.records.asking import Asker
from infinimem.strategies.records.describing import EMPTY
from infinimem.strategies.records.descriptor import Descriptor, descriptor
from infinimem.strategies.records.narrated import narrated
from infinimem.strategies.records.prompt_views import shown_descriptor, shown_turns
from infinimem.strategies.records.record import Ref
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.records.rounds import edited
from infinimem.strategies.records.rules import Check
from infinimem.strategies.vector_index import VectorIndex

FORCED = ("forced", "true")
"""`aux` of a topic that was cut off although the talk went on."""

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
        self._asker = Asker(llm)

    def plan(self, due: Sequence[Due], check: Check) -> Plan | None:
        """One plan for all that is due; None where nothing ends, and nothing went wrong.

        Args:
            due: of sessions, each once.
            check: the rules of records.

        Raises:
            ModelUnavailable, ModelNotConfigured: of the model or the embedder.
        """
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
