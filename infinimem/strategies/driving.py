"""Carries out a strategy's plans one by one, and tells it what became of each."""

from __future__ import annotations

from collections.abc import Callable

from infinimem.llm.base import LLM, total
from infinimem.log import log
from infinimem.model import Plan, Receipt
from infinimem.store.library import Library
from infinimem.store.outcome import Applied, Outcome, Rejected
from infinimem.store.view import View
from infinimem.strategies.base import Plans

Note = Callable[[Plan, Outcome], Outcome]


def drive(library: Library, llm: LLM, plans: Plans, view: View, note: Note | None = None) -> list[Receipt]:
    """Apply plans until there are no more, and give the receipts.

    Args:
        library: takes or refuses them.
        llm: that the strategy asks; what it spends on a plan stands in the plan's receipt.
        plans: of the strategy.
        view: what the first of them is made from.
        note: told of each outcome; gives it to the strategy, with a newer view if there is one.
    """
    receipts: list[Receipt] = []
    view.entry(0)  # read now: what the plans are made from is as it is before a model thinks
    spent, began = total(llm.usage), library.clock()
    try:
        plan = next(plans)
        while True:
            outcome = library.apply(
                plan,
                base=view,
                strategy=library.spec.name,
                model=llm.name,
                usage=total(llm.usage) - spent,
                began=began,
            )
            if isinstance(outcome, Applied) and outcome.receipt:
                receipts.append(outcome.receipt)
            else:  # no receipt holds them
                reasons = outcome.reasons if isinstance(outcome, Rejected) else ()
                for remark in (*plan.notes, *map(str, reasons)):
                    log.info("%s: %s", plan.op, remark)
            outcome = note(plan, outcome) if note else outcome
            spent, began = total(llm.usage), library.clock()  # `note` may have driven others
            view = outcome.view
            plan = plans.send(outcome)
    except StopIteration:
        return receipts
