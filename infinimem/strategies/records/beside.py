"""What no record holds, beside the evidence that a strategy finds by its records."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from infinimem.model import Retrieved
from infinimem.retrieval.searcher import searcher
from infinimem.store.records import held_by
from infinimem.store.spec import EVIDENCE
from infinimem.store.view import View
from infinimem.strategies.readers.budget import MOST, pack
from infinimem.strategies.records.record_store import RecordStore


def beside(
    view: View, store: RecordStore, query: str, budget: int, open_turns: Iterable[int] | None = None
) -> list[Retrieved]:
    """The best of it, by words: open turns, records' files that cannot be read, and people's notes.

    Args:
        view: the snapshot.
        store: its records.
        query: a question or keywords, any text.
        budget: tokens of all evidence; a quarter of it at most is for this.
        open_turns: the open ones among which is looked; None for all that wait.
    """
    unread = {finding.where for finding in store.findings}
    waiting = set(view.unfiled()) if open_turns is None else set(open_turns)
    if lost := {seq for doc_id in unread for seq in held_by(view.document(doc_id))}:
        waiting |= lost - {ref.seq for record in store.records.values() for ref in record.refs}
    if not waiting and not view.derived(_has_notes):
        return []
    found = (
        item
        for item in searcher(view).entries(query, MOST)
        if view.is_note(item.doc_id)
        or item.doc_id in unread
        or (item.doc_id.startswith(EVIDENCE) and waiting.issuperset(item.seqs))
    )
    return pack(found, budget // 4)


def _has_notes(view: View, known: bool | None, changed: Collection[str] | None) -> bool:
    """Whether there are notes (`View.derived`)."""
    looked_at = view.ids() if known or changed is None else (name for name in changed if name in view)
    return any(map(view.is_note, looked_at))
