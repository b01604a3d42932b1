"""How much records have to do with a question: how near they lie, and what search makes of their turns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from infinimem.model import Candidate
from infinimem.retrieval.origins import MOST
from infinimem.retrieval.searcher import searcher
from infinimem.store.view import View
from infinimem.strategies.graph.walk import heirs
from infinimem.strategies.records.record import record_id
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.vector_index import DIGITS, VectorIndex


class Relevance:
    """Of the records of a snapshot.

    Args:
        view: the snapshot.
        store: its records.
        space: where they lie.
        query: a question or keywords, any text.
        weight: what search counts beside the cosine; 0 does not search.
        link: the type of link that leads to what a record stands for.
    """

    def __init__(
        self, view: View, store: RecordStore, space: VectorIndex, query: str, weight: float, link: str
    ) -> None:
        self.row = space.embed(query)
        self._space = space
        self._weight = weight
        self.found = _said(view, store, query, link) if weight else {}
        """Records by what search makes of their turns, as a share of the best; the best first."""

    def parts(self, names: Sequence[str]) -> Iterator[Candidate]:
        """What there is to say of records, in their order."""
        for name, cosine in zip(names, self._space.cosines(self.row, names), strict=True):
            yield Candidate(
                name, {"cosine": cosine} | ({"words": self.found[name]} if name in self.found else {})
            )

    def score(self, parts: Mapping[str, float]) -> float:
        """The cosine and so much of what search says; with a `successor` at most that, for what is superseded
        is often as near to a question as what is in force."""
        own = round(parts["cosine"] + self._weight * parts.get("words", 0.0), DIGITS)
        return min(own, parts.get("successor", own))


def _said(view: View, store: RecordStore, query: str, link: str) -> dict[str, float]:
    """A turn whose record was archived speaks for those that stand for it."""
    found = searcher(view).entries(query, MOST, "evidence")
    shares: dict[str, float] = {}
    for item in found if found and found[0].score > 0 else ():
        name = record_id(store.spec.kinds[0].prefix, item.seqs[0]) if item.seqs else ""
        if name in store:
            for heir in {name, *heirs(store.graph, name, link, store.visible)}:
                shares.setdefault(heir, round(item.score / found[0].score, DIGITS))
    return shares
