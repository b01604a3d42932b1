"""How much records and turns have to do with a question: how near they lie, and what search makes of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from infinimem.model import Candidate
from infinimem.retrieval.searcher import searcher
from infinimem.store.view import View
from infinimem.strategies.graph.walk import heirs
from infinimem.strategies.readers.budget import MOST
from infinimem.strategies.records.record import record_id
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.vector_index import DIGITS, VectorIndex


def turns_found(view: View, query: str) -> dict[int, float]:
    """Turns with what the library's search makes of them, by words and vectors; the best first."""
    found: dict[int, float] = {}
    for _, seq, score in searcher(view).scores(query, MOST, "evidence"):
        if seq:
            found.setdefault(seq, score)
    return found


def records_found(view: View, store: RecordStore, query: str) -> dict[str, dict[str, float]]:
    """As `turns_found` the records of each folder that readers see."""
    found: dict[str, dict[str, float]] = {kind.folder: {} for kind in store.spec.kinds}
    for doc_id, _, score in searcher(view).scores(query, MOST):
        folder, _, name = doc_id.rpartition("/")
        if f"{folder}/" in found and name in store:
            found[f"{folder}/"].setdefault(name, score)
    return found


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
    found = turns_found(view, query)
    best = next(iter(found.values()), 0.0)
    shares: dict[str, float] = {}
    for seq, score in found.items() if best > 0 else ():
        name = record_id(store.spec.kinds[0].prefix, seq)
        if name in store:
            for heir in {name, *heirs(store.graph, name, link, store.visible)}:
                shares.setdefault(heir, round(score / best, DIGITS))
    return shares
