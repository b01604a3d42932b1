"""A run again, from its audit: the same edits to the byte, without a model.

Source: All-Mem, Appendix C.5 (replay).
"""

from __future__ import annotations

from dataclasses import replace

from infinimem.errors import UsageError
from infinimem.markdown.document import Document
from infinimem.model import Put
from infinimem.settings import AllmemSettings
from infinimem.store.view import View
from infinimem.strategies.allmem.audit import REPLAYED, compiled
from infinimem.strategies.allmem.execute import apply
from infinimem.strategies.allmem.ledger import BUFFER, rows_of
from infinimem.strategies.allmem.record_store import Bank, puts
from infinimem.strategies.allmem.vector_index import Space


def replay(view: View, audit: Document) -> tuple[Put, ...]:
    """The records that a run put, its audit apart.

    Args:
        view: the library as it was before the run.
        audit: of the run.

    Raises:
        UsageError: the audit is damaged, or of another library or embedder.
        ModelUnavailable, ModelNotConfigured: of the embedder.
    """
    named = audit.header.values.get("embedder")
    if named != view.embedder.name:
        raise UsageError(f"{audit.id} was made with the embedder {named!r}; replay it with that one")
    before = Bank.load(view)
    after = before.copy()
    space = Space.of(view)
    space.sync(before)
    rows = rows_of(audit)
    try:
        told = next(row for row in rows if row["row"] == "settings")
        settings = replace(AllmemSettings(), **{key: told[key] for key in REPLAYED})
        for row in rows:
            if row["row"] == "proposal" and row["came"] == "applied":
                apply(after, space, row["op"], row["ids"], compiled(row["plan"]), settings)
    except (KeyError, ValueError, TypeError, StopIteration, IndexError) as wrong:
        raise UsageError(f"{audit.id} is damaged or of another library ({wrong!r})") from None
    return (*puts(before, after), Put(BUFFER, None))
