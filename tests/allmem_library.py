"""A library of units without files: documents in a dict, records put as the store puts them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from in_memory import Driven

from infinimem.index.vectors import vectors_of
from infinimem.markdown.document import Document
from infinimem.markdown.signature import format_entry
from infinimem.model import Located, Plan, Reason, Source
from infinimem.settings import Settings
from infinimem.store.view import Applied, Outcome, Rejected, View
from infinimem.strategies.allmem.spec import PAPER as PRESET
from infinimem.strategies.allmem.spec import SPEC as ALLMEM
from infinimem.strategies.allmem.spec import AllmemSettings
from infinimem.strategies.records.record import Record, Ref, record_id
from infinimem.strategies.records.record_store import RecordStore, VectorIndex

PAPER: Mapping[str, Any] = {**PRESET, "successors_first": True}
"""The paper's way, in which each stage stands alone, but for the order of what was superseded."""


def cards(of: Callable[[str], Mapping[str, Any]]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Answers `describe`: for each turn what its text gives."""

    def answer(variables: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "cards": [{"id": turn["id"], "when": None, **of(turn["text"])} for turn in variables["turns"]]
        }

    return answer


class Library(Driven):
    """Documents in memory.

    Args:
        settings: of the `allmem` group, where they are not as in the paper.
    """

    def __init__(self, **settings: Any) -> None:
        self.settings = Settings(strategy="allmem", own=(AllmemSettings(**{**PAPER, **settings}),))
        self.documents: dict[str, Document] = {}
        self.plans: list[Plan] = []
        self.refuse = 0
        """Plans to refuse from now on."""
        self._high = 0

    def say(self, *texts: str, session: str = "s1", **fields: str) -> list[Located]:
        """Put turns into the evidence."""
        doc_id = f"evidence/{session}"
        lines = []
        source: Source = "AI" if fields.pop("role", "") == "assistant" else "user"
        time = fields.pop("time", None)
        for text in texts:
            self._high += 1
            lines.append(format_entry(self._high, text, time=time, source=source, fields=fields))
        self.documents[doc_id] = self.documents.get(doc_id, Document.empty(doc_id)).insert(lines)
        return list(self.documents[doc_id].entries[-len(texts) :])

    def view(self) -> View:
        frozen = dict(self.documents)
        return View(tuple(sorted(frozen)), frozen.__getitem__, self.settings, spec=ALLMEM)

    def pending(self) -> list[Located]:
        """Turns that no unit holds."""
        bank = self.bank()
        held = {ref.seq for unit in bank.records.values() for ref in unit.refs}
        turns = [
            place
            for doc_id, document in sorted(self.documents.items())
            if doc_id.startswith("evidence/")
            for place in document.entries
        ]
        return sorted((place for place in turns if place.seq not in held), key=lambda place: place.seq)

    def bank(self, known: RecordStore | None = None) -> RecordStore:
        return RecordStore.load(self.view(), known)

    def apply(self, plan: Plan) -> Outcome:
        self.plans.append(plan)
        if self.refuse:
            self.refuse -= 1
            return Rejected(self.view(), (Reason("STALE_RECORD"),))
        assert not (plan.adds or plan.moves or plan.derived or plan.empty)
        for put in plan.records:
            assert put.doc_id.startswith("allmem/")
            if put.text is None:
                del self.documents[put.doc_id]
            else:
                self.documents[put.doc_id] = Document.parse(put.doc_id, put.text.encode())
        return Applied(self.view())

    def files(self, prefix: str = "allmem/") -> Mapping[str, bytes]:
        return {
            doc_id: document.to_bytes()
            for doc_id, document in self.documents.items()
            if doc_id.startswith(prefix)
        }


def banked(library: Library, *descriptors: tuple[str, str]) -> tuple[RecordStore, VectorIndex]:
    """A bank with a unit a turn of the library, each with these keywords (comma-separated) and summary."""
    bank = RecordStore.load(library.view())
    for place, (keywords, summary) in zip(library.pending(), descriptors, strict=True):
        bank.put(
            Record(
                record_id("u", place.seq),
                ALLMEM,
                summary,
                tuple(keywords.split(",")),
                place.entry.time,
                place.doc_id.split("/")[-1],
                (Ref(place.seq),),
            )
        )
    space = VectorIndex(vectors_of(library.view()))
    space.sync(bank)
    return bank, space
