"""A library without files: documents in a dict, plans verified by the law and rendered as the store does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from in_memory import Driven

from infinimem import law
from infinimem.grounding.sentences import is_repetition
from infinimem.markdown.document import Document
from infinimem.markdown.signature import format_entry
from infinimem.model import CURRENT, Plan, Reason, Receipt, Source, Usage
from infinimem.settings import Settings
from infinimem.store.plans import render
from infinimem.store.spec import TOPICS
from infinimem.store.view import Applied, Outcome, Rejected, View
from infinimem.strategies.infini.spec import InfiniSettings

NOW = "2025-03-03T12:00:00Z"


class Library(Driven):
    """Documents in memory.

    Args:
        settings: of the `infini` group.
        documents: text by id; a body of entries is enough.
    """

    def __init__(self, documents: Mapping[str, str] | None = None, **settings: Any) -> None:
        self.settings = Settings(own=(InfiniSettings(**settings),))
        self.documents: dict[str, Document] = {}
        self.age = 0.0
        self.plans: list[Plan] = []
        self.refuse: list[str] = []
        """Reasons for the next plans, one each; "" lets one pass."""
        self._empty: set[int] = set()
        self.refused: set[int] = set()
        self._high = 0
        for doc_id, text in (documents or {}).items():
            self.write(doc_id, text)

    def write(self, doc_id: str, text: str) -> None:
        self.documents[doc_id] = Document.parse(doc_id, text.encode())
        seqs = [place.entry.seq for place in self.documents[doc_id].entries]
        self._high = max([self._high, *seqs])

    def view(self) -> View:
        frozen = dict(self.documents)
        return View(
            tuple(sorted(frozen)),
            frozen.__getitem__,
            self.settings,
            drawn=frozenset(self._empty),
            refused=frozenset(self.refused),
            buffer_age=self.age,
        )

    def say(self, *texts: str, session: str = "s1", **fields: str) -> View:
        """Put turns into the evidence."""
        doc_id = f"evidence/{session}"
        lines = []
        for text in texts:
            self._high += 1
            source: Source = "AI" if fields.get("role") == "assistant" else "user"
            marks = {key: value for key, value in fields.items() if key not in ("role", "time")}
            lines.append(format_entry(self._high, text, time=fields.get("time"), source=source, fields=marks))
        before = self.documents.get(doc_id, Document.empty(doc_id))
        self.documents[doc_id] = before.insert(lines)
        return self.view()

    def buffer(self, *texts: str, **fields: str) -> View:
        """Put entries into CURRENT."""
        lines = []
        for text in texts:
            self._high += 1
            lines.append(entry(self._high, text, **fields))
        self.documents[CURRENT] = self.documents.get(CURRENT, Document.empty(CURRENT)).insert(lines)
        return self.view()

    def apply(self, plan: Plan) -> Outcome:
        """As the store: verified, rendered, weighed by the law."""
        self.plans.append(plan)
        view = self.view()
        if self.refuse and (code := self.refuse.pop(0)):
            return Rejected(view, (Reason(code),))
        verdict = law.verify(plan, view.entry, (TOPICS,), same=is_repetition)
        if verdict.refused:
            return Rejected(view, verdict.refused)
        head = Receipt(len(self.plans), plan.op, NOW, "infini", "none", Usage(), 0.0, (), ())
        done = render(verdict.plan, view, self._high + 1, head)
        before = [
            (place.entry.seq, place.entry.line)
            for doc_id in done.documents
            if doc_id in view
            for place in view.document(doc_id).entries
        ]
        after = [
            (place.entry.seq, place.entry.line)
            for document in done.documents.values()
            if document
            for place in document.entries
        ]
        assert not law.conserved(before, after, done.added)
        self._high += len(plan.adds)
        self._empty |= {*plan.empty, *plan.refused}
        self.refused |= set(plan.refused)
        for doc_id, document in done.documents.items():
            if document is None:
                del self.documents[doc_id]
            else:
                self.documents[doc_id] = document
        receipt = Receipt(len(self.plans), plan.op, NOW, "infini", "x", Usage(), 0.0, tuple(done.rows), ())
        return Applied(self.view(), None if plan.op == "append" else receipt)

    def lines(self, *prefixes: str) -> list[tuple[int, str]]:
        """(seq, bytes) of all lines in documents with these prefixes (all but evidence if none), by seq."""
        return sorted(
            (place.entry.seq, place.entry.line)
            for doc_id, document in self.documents.items()
            if (doc_id.startswith(prefixes) if prefixes else not doc_id.startswith("evidence/"))
            for place in document.entries
        )

    def texts(self, doc_id: str) -> dict[str, list[str]]:
        """Texts of a document's entries by heading."""
        found: dict[str, list[str]] = {}
        for place in self.documents[doc_id].entries:
            found.setdefault(place.headings[-1] if place.headings else "", []).append(place.entry.text)
        return found


def entry(seq: int, text: str, **fields: str) -> str:
    """A line."""
    marks = {key: value for key, value in fields.items() if key not in ("time", "source")}
    source: Any = fields.get("source", "user")
    return format_entry(seq, text, time=fields.get("time"), source=source, fields=marks)


def document(*lines: str, summary: str = "", **header: str) -> str:
    """A topic document's text."""
    keys = [f"{key}: {value}" for key, value in {"summary": summary, **header}.items() if value]
    return "\n".join(["---", *keys, "---", *lines, ""])


def ids(value: object) -> list[str]:
    """All fact ids in a task's variables, in order."""
    if isinstance(value, dict):
        own = [value["id"]] if {"id", "text"} <= value.keys() else []
        return own + [name for item in value.values() for name in ids(item)]
    if isinstance(value, list | tuple):
        return [name for item in value for name in ids(item)]
    return []


def one_topic(variables: Mapping[str, Any]) -> dict[str, Any]:
    """A REWRITE reply: all in one topic."""
    return rewritten({"Things": ids(variables["facts"])})


def rewritten(topics: Mapping[str, Sequence[object]]) -> dict[str, Any]:
    """A REWRITE reply."""
    return {
        "topics": [{"title": title, "fact_ids": [str(i) for i in seqs]} for title, seqs in topics.items()]
    }


def outdated(*pairs: tuple[int, int]) -> dict[str, Any]:
    """A COMPARE reply; pairs are (old, new)."""
    return {"superseded": [{"old": str(old), "new": str(new)} for old, new in pairs]}


def assigned(*items: tuple[str, Sequence[object]]) -> dict[str, Any]:
    """A PLAN reply; a target with a "/" is an id, another a new title."""
    return {
        "assign": [
            {
                "doc_id": name if "/" in name else None,
                "new_title": None if "/" in name else name,
                "fact_ids": [str(seq) for seq in seqs],
            }
            for name, seqs in items
        ]
    }


def laid(headings: Mapping[str, Sequence[object]]) -> dict[str, Any]:
    """A LAYOUT reply."""
    return {
        "layout": [
            {"heading": title, "fact_ids": [str(seq) for seq in seqs]} for title, seqs in headings.items()
        ]
    }


def keep_all(variables: Mapping[str, Any]) -> dict[str, Any]:
    """A LAYOUT reply: each where it stands."""
    return laid({part["heading"]: ids(part) for part in variables["doc"]["sections"]})


def nothing_outdated(_: Mapping[str, Any]) -> dict[str, Any]:
    """A COMPARE reply: no pair."""
    return outdated()
