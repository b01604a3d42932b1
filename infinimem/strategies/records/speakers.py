"""Who speaks in a library, as its turns tell."""

from __future__ import annotations

from collections.abc import Collection, Set

from infinimem.store.spec import EVIDENCE
from infinimem.store.view import View
from infinimem.strategies.graph.shared_dict import SharedDict

_Known = SharedDict[str, frozenset[str]]


def speakers(view: View) -> Set[str]:
    """The names of all who said something."""
    return frozenset[str]().union(*view.derived(_by_session).values())


def _by_session(view: View, known: _Known | None, changed: Collection[str] | None) -> _Known:
    """By evidence document (`View.derived`)."""
    if known is None or changed is None:
        known, changed = SharedDict(), view.ids("evidence")
    found = known.copy()
    for doc_id in changed:
        if doc_id.startswith(EVIDENCE):
            entries = view.document(doc_id).entries if doc_id in view else ()
            found[doc_id] = frozenset(turn.entry.fields.get("speaker", "") for turn in entries) - {""}
    return found
