"""A bank whose units lie as near to a question "? …" as their summaries say: "0.8" is a cosine of 0.8."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from allmem_library import PAPER, Library

from infinimem.markdown.document import Document
from infinimem.model import Evidence, Stage
from infinimem.retrieval.vectors import Vectors
from infinimem.store.view import View
from infinimem.strategies.allmem.read import Search
from infinimem.strategies.allmem.spec import SPEC as ALLMEM
from infinimem.strategies.allmem.spec import AllmemSettings
from infinimem.strategies.graph.links import Link
from infinimem.strategies.records.record import Record, Ref, record_id
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.vector_index import VectorIndex

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Angles:
    """Gives "? …" one direction, a text whose last line is a number that cosine to it, and all else none."""

    name, size, semantic = "angles", 2, True

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array([self._row(text.rsplit("\n", 1)[-1]) for text in texts], np.float32).reshape(-1, 2)

    def _row(self, last: str) -> tuple[float, float]:
        try:
            near = 1.0 if last.startswith("?") else float(last)
            return near, (1 - near**2) ** 0.5
        except (ValueError, TypeError):
            return 0.0, 0.0


def retrieve(
    view: View, bank: RecordStore, space: VectorIndex, query: str, budget: int, own: AllmemSettings
) -> Evidence:
    return Search(view, (bank, space), query, budget, own).by_rank()


def block(
    view: View, bank: RecordStore, space: VectorIndex, query: str, budget: int, own: AllmemSettings
) -> Evidence:
    return Search(view, (bank, space), query, min(budget, own.block_tokens), own).for_answer()


class Measured:
    """A library of units under construction."""

    def __init__(self) -> None:
        self.library = Library()
        self.bank = RecordStore(ALLMEM, lambda seq: self.library.view().entry(seq))

    def turn(self, text: str, near: float, time: str | None = None, visible: bool = True) -> str:
        """A turn and its unit."""
        (place,) = self.library.say(text, **({"time": time} if time else {}))
        return self._put(
            Record(
                record_id("u", place.seq),
                ALLMEM,
                str(near),
                (),
                time,
                "s1",
                (Ref(place.seq),),
                visible=visible,
            )
        )

    def split(self, name: str, *parts: tuple[str, float]) -> list[str]:
        """Siblings for these parts of a unit's text, linked to it and to each other; it is archived."""
        text, made = self.bank.text(name), []
        for part, near in parts:
            start = text.index(part)
            refs = self.bank.cut(name, start, start + len(part))
            fresh = self.bank.new_id("u", self.bank.records[name].order[0])
            made.append(self._put(replace(self.bank.records[name], id=fresh, summary=str(near), refs=refs)))
        for one in made:
            self.link(one, "version", name)
            for other in made:
                if other != one:
                    self.link(one, "sibling", other)
        self.bank.archive(name)
        return made

    def merge(self, *names: str, near: float) -> str:
        """A representative for units, which are archived."""
        newest = max((self.bank.records[name] for name in names), key=lambda unit: unit.age)
        fresh = self.bank.new_id("u", newest.order[0])
        self._put(replace(newest, id=fresh, summary=str(near), refs=(), sources=names, visible=True))
        for name in names:
            self.bank.archive(name)
            self.link(fresh, "version", name)
        return fresh

    def _put(self, unit: Record) -> str:
        self.bank.put(unit)
        return unit.id

    def link(self, source: str, kind: str, to: str) -> None:
        self.bank.graph.add(source, Link(kind, to))

    def view(self) -> View:
        """With the units' files as they are now."""
        for doc_id in [doc_id for doc_id in self.library.documents if doc_id.startswith("allmem/")]:
            del self.library.documents[doc_id]
        for name, unit in self.bank.records.items():
            data = self.bank.render(name).encode()
            self.library.documents[unit.doc_id] = Document.parse(unit.doc_id, data)
        return self.library.view()

    def retrieve(self, query: str = "?", budget: int = 1000, **settings: Any) -> Evidence:
        return self._ask(retrieve, query, budget, settings)

    def block(self, query: str = "?", budget: int = 4096, **settings: Any) -> Evidence:
        return self._ask(block, query, budget, settings)

    def _ask(self, face: Any, query: str, budget: int, settings: dict[str, Any]) -> Evidence:
        space = VectorIndex(Vectors(None, Angles()))
        space.sync(self.bank)
        found = face(self.view(), self.bank, space, query, budget, AllmemSettings(**{**PAPER, **settings}))
        assert isinstance(found, Evidence)
        return found


def texts(evidence: Evidence) -> list[str]:
    return [item.text for item in evidence.items]


def stage(evidence: Evidence, name: str) -> Stage:
    """A step of the trace."""
    return next(step for step in evidence.trace if step.stage == name)


def units(evidence: Evidence, name: str) -> list[str]:
    """The units that a step of the trace names."""
    return [unit.id for unit in stage(evidence, name).found]
