"""The smallest strategy: a card for each turn, and for each session a list of its cards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from infinimem import tokens
from infinimem.index.search import searcher
from infinimem.llm.base import LLM
from infinimem.markdown.characters import one_line
from infinimem.markdown.header import quote
from infinimem.model import Evidence, Finding, Located, Plan, Put, Retrieved
from infinimem.settings import Settings
from infinimem.store.lines import sources_of, stem
from infinimem.store.view import View
from infinimem.strategies.base import Event, Plans
from infinimem.strategies.readers.pipeline import READERS, Trace, best_that_fit, collect
from toy_memory.spec import SPEC, ToySettings
from toy_memory.tasks import NAME

CARDS, DAYS = (kind.folder for kind in SPEC.kinds)


class Toy:
    """See infinimem/strategies/base.py."""

    spec = SPEC
    readers: tuple[str, ...] = READERS

    def __init__(self, llm: LLM, settings: Settings) -> None:
        self.llm = llm
        self.settings = settings

    def observe(self, view: View, new: Sequence[Located]) -> Plans:
        """A card for each turn."""
        cards = [Put(f"{CARDS}tc-{turn.seq:06d}", self._card(turn), (turn.seq,)) for turn in new]
        if cards:
            yield Plan(op="observe", records=tuple(cards))

    def tick(self, view: View, event: Event) -> Plans:
        """A list for each session, of the cards that no list names."""
        sessions: dict[str, list[str]] = {}
        for name, session in self._loose(view).items():
            sessions.setdefault(session, []).append(name)
        ids = {f"{DAYS}{names[0].replace('tc', 'td')}": session for session, names in sessions.items()}
        days = [Put(doc_id, _day(doc_id, session, sessions[session])) for doc_id, session in ids.items()]
        if event == "consolidate" and days:
            yield Plan(op="consolidate", records=tuple(days))

    def rebuild(self, view: View) -> Plans:
        """All goes."""
        gone = [Put(doc_id, None) for doc_id in view.owned(*SPEC.writes)]
        if gone:
            yield Plan(op="rebuild", records=tuple(gone))

    def estimate(self, view: View) -> int:
        """What lists would be made of."""
        return sum(tokens.count(name) for name in self._loose(view))

    def retrieve(self, view: View, query: str, budget: int) -> Evidence:
        """Turns and people's notes by rank."""

        def best(limit: int) -> list[Retrieved]:
            found = [*searcher(view).entries(query, limit), *searcher(view).entries(query, limit, "evidence")]
            return sorted(found, key=lambda item: (-item.score, item.doc_id, item.start_line))

        return Trace().evidence(best_that_fit(best, budget), query)

    def read(self, view: View, question: str, reader: str, budget: int) -> Evidence:
        """By the readers that all strategies share."""
        return collect(self.llm, view, question, reader, budget)

    def status(self, view: View) -> Mapping[str, Any]:
        """How many there are."""
        return {"cards": len(view.owned(CARDS)), "days": len(view.owned(DAYS))}

    def check(self, view: View) -> list[Finding]:
        """Nothing can be wrong."""
        return []

    def _loose(self, view: View) -> dict[str, str]:
        """Cards that no list names, with their sessions."""
        listed = {name for doc_id in view.owned(DAYS) for name in sources_of(view.document(doc_id))}
        cards = (view.document(doc_id) for doc_id in view.owned(CARDS))
        return {
            stem(card.id): str(card.header.values.get("session", ""))
            for card in cards
            if stem(card.id) not in listed
        }

    def _card(self, turn: Located) -> str:
        reply = self.llm.complete(NAME, {"text": turn.text})
        name = one_line(str(reply.data["name"] if reply.data else turn.text))
        summary = name[: self.settings.of(ToySettings).longest]
        quoted = "\n".join(f"> {line}" for line in turn.text.split("\n"))
        head = f"id: {CARDS}tc-{turn.seq:06d}\nsummary: {quote(summary)}\nsession: {quote(stem(turn.doc_id))}"
        return f"---\n{head}\nevidence:\n  - {{ref: {turn.seq}}}\n---\n{quoted}\n"


def _day(doc_id: str, session: str, cards: Sequence[str]) -> str:
    rows = "".join(f"  - {{record: {card}}}\n" for card in cards)
    links = "".join(f"- [[{card}]]\n" for card in cards)
    return f"---\nid: {doc_id}\nsummary: {quote(session)}\nevidence:\n{rows}---\n{links}"
