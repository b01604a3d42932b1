"""What a library tells of its making: the cost of each transaction, and the shape of what was made.

Source: All-Mem (arXiv 2603.19595), Table 3 (writing).
"""

from __future__ import annotations

from typing import Any

from infinimem.evaluation.model import Transaction
from infinimem.memory import Memory
from infinimem.model import Receipt
from infinimem.plugins import load
from infinimem.spec import strategies
from infinimem.store.records import stem


def transactions_of(memory: Memory) -> tuple[Transaction, ...]:
    """What the receipts of a library say of its cost, oldest first."""
    return tuple(
        Transaction(receipt.op, _turns(receipt), receipt.seconds, receipt.usage)
        for receipt in memory.receipts()
    )


def _turns(receipt: Receipt) -> int:
    """Turns whose records it wrote first: names without a suffix that were not there."""
    live = tuple(kind.folder for spec in strategies().values() for kind in spec.kinds)
    made = (doc_id for doc_id, was, _ in receipt.files if was == "-" and doc_id.startswith(live))
    return sum(stem(doc_id).count("-") == 1 for doc_id in made)


def structure_of(memory: Memory) -> dict[str, Any]:
    """The shape of what the strategy made, as counts that add up over cases; nothing where it tells none."""
    view = memory.view
    return dict(load(view.spec.shape)(view)) if view.spec.shape else {}
