"""A whole strategy on the shared parts: a digest for each session that ended, linked to the nearest one.

observe   the sessions that a turn ends -> their digests
tick      because someone asked, all sessions end
retrieve  turns by rank; read: the digests nearest to a question, those linked to them, and turns
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from infinimem.model import Candidate, Evidence, Located, Plan, Stage
from infinimem.store.lines import stem
from infinimem.store.view import View
from infinimem.strategies.base import Event, Plans
from infinimem.strategies.readers.pipeline import pack, size
from infinimem.strategies.records.asking import Asker, ended_by, narrated, one_liner, open_turns
from infinimem.strategies.records.record import Link, Ref
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.records.strategy import (
    Records,
    RecordSearch,
    RecordStrategy,
    Step,
    by_kind,
    edited,
    either_way,
    run,
)
from toy_memory.spec import DIGESTS, DigestSettings
from toy_memory.tasks import NAME

Turns = Sequence[Located]
(KIND,) = DIGESTS.kinds


class Digests(RecordStrategy):
    """See infinimem/strategies/base.py."""

    spec = DIGESTS
    own: DigestSettings

    def observe(self, view: View, new: Sequence[Located]) -> Plans:
        """A plan for the sessions that a turn ends; a turn that ends none is listed as looked at."""
        steps: list[Step | int] = []
        for turn in new:
            steps += [partial(self._planned, view, partial(_ended, turn)), turn.seq]
        yield from run(view, steps)

    def tick(self, view: View, event: Event) -> Plans:
        """Digests of all that is open, because someone asked."""
        if event == "consolidate":
            yield from run(view, [partial(self._planned, view, _open)])

    def search(self, view: View, held: Records, query: str, budget: int) -> DigestSearch:
        """One question's search."""
        return DigestSearch(view, held, query, budget, self.own, self.llm)

    def status(self, view: View) -> Mapping[str, Any]:
        """How many digests, and turns in none."""
        return {"open": sum(map(len, _open(view))), **by_kind(view.derived(RecordStore.load))}

    def _planned(
        self, began: View, makes_due: Callable[[View], Iterable[Turns]], view: View, asks: bool
    ) -> Plan | None:
        """Ask about the sessions that are due now, then try their digests on a copy of the records."""
        given_up = view.given_up(self.llm.name, began)
        due = (
            [[turn for turn in turns if turn.seq not in given_up] for turns in makes_due(view)]
            if asks
            else []
        )
        asker = Asker(self.llm)
        told: list[tuple[Turns, str]] = []
        unanswered: dict[int, str] = {}
        for turns in filter(None, due):
            data = asker.ask(NAME, text="\n".join(turn.text for turn in turns))
            if summary := one_liner(data["name"]) if data else "":
                told.append((turns, summary))
            else:
                unanswered |= {turn.seq: asker.failure or "EMPTY" for turn in turns}
        with self.held(view) as (store, index):
            after = store.copy()
            for turns, summary in told:
                name = after.own_id(KIND.prefix, turns[0].seq)
                digest = narrated(after, name, summary, (Ref(turn.seq) for turn in turns))
                after.put(replace(digest, session=stem(turns[0].doc_id)))
                index.sync(after)
                for other, cosine in index.nearest(index.row(name), 1, (KIND.folder,), without=(name,)):
                    if cosine >= self.own.near:
                        after.link(name, Link("near", other, round(cosine, 3)))
            return edited("consolidate", store, after, self.faults, asker.rejected(), unanswered)


def _open(view: View) -> list[Turns]:
    return sorted(open_turns(view).values(), key=lambda turns: turns[0].seq)


def _ended(turn: Located, view: View) -> list[Turns]:
    return ended_by(view, turn)


class DigestSearch(RecordSearch[DigestSettings]):
    """What is found for one question."""

    def by_rank(self) -> Evidence:
        """Turns by the library's search."""
        found = [Candidate(str(seq), {"words": score}, score) for seq, score in self.turn_scores.items()]
        self.trace.add(Stage("turns", found=tuple(found)))
        return self.evidence(self.turns(found))

    def for_answer(self) -> Evidence:
        """Digests in at most a third of the budget, then turns."""
        anchors = self.nearest(KIND.folder, self.own.digests)
        scores = {one.id: one.score for one in anchors}
        links = ((one, link.to) for one in anchors for link in either_way(self.store, one.id, DIGESTS.links))
        beside = [Candidate(to, {}, one.score / 2, one.id) for one, to in links if to not in scores]
        self.trace.add(Stage("digests", found=(*anchors, *beside)))
        scores |= {one.id: one.score for one in beside}
        digests = pack((self.record(name, score) for name, score in scores.items()), self.budget // 3)
        self.budget -= size(digests)
        found = [Candidate(str(seq), {"words": score}, score) for seq, score in self.turn_scores.items()]
        self.trace.add(Stage("turns", found=tuple(found)))
        return self.evidence([*digests, *self.turns(found)])
