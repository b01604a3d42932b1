"""A consolidation done again from its audit, without a model, and held against its receipt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from infinimem.errors import UsageError
from infinimem.model import Receipt
from infinimem.operations.as_of import Moment, as_of
from infinimem.store.files import digest
from infinimem.store.receipts import named
from infinimem.store.view import View
from infinimem.strategies.base import Replayed, Strategy


@dataclass(frozen=True)
class Replay:
    """What came of it.

    Args:
        receipt: of the consolidation.
        same: documents that came out byte for byte as the receipt says.
        other: those that did not.
    """

    receipt: Receipt
    same: tuple[str, ...]
    other: tuple[str, ...]


def again(strategy: Strategy, view: View, receipts: Sequence[Receipt], name: str | None = None) -> Replay:
    """Replay a consolidation; nothing is written.

    Args:
        strategy: that which made it.
        view: the library as it is.
        receipts: all of them, oldest first.
        name: the consolidation's id or number; None for the newest.

    Raises:
        UsageError: there is no such receipt, it is of another strategy, or of one that keeps no audits.
        ModelUnavailable, ModelNotConfigured: of the embedder.
    """
    runs = [one for one in receipts if one.op == "consolidate"]
    if not runs:
        raise UsageError("nothing was consolidated yet, so there is nothing to replay")
    receipt = named(receipts, name) if name else runs[-1]
    if receipt.strategy != view.spec.name:
        raise UsageError(f"{receipt.id} is by {receipt.strategy}; --strategy {receipt.strategy} replays it")
    if not isinstance(strategy, Replayed):
        raise UsageError(f"{receipt.id} cannot be replayed: {receipt.strategy} keeps no audit")
    past = as_of(view, Moment(receipt.number - 1, receipt.high))
    came = {
        put.doc_id: digest(None if put.text is None else put.text.encode("utf-8", "surrogatepass"))
        for put in strategy.replay(past, receipt, view)
    }
    wrote = {doc_id: after for doc_id, _, after in receipt.files}
    names = sorted(wrote.keys() | came.keys())
    same = tuple(name for name in names if wrote.get(name) == came.get(name))
    return Replay(receipt, same, tuple(name for name in names if name not in same))
