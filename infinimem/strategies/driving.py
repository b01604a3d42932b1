"""Carries out a strategy's plans one by one, and tells it what became of each."""

from __future__ import annotations

from collections.abc import Callable

from infinimem.llm.replies import Cached
from infinimem.log import log
from infinimem.model import Plan, Receipt
from infinimem.store.library import Library
from infinimem.store.outcome import Applied, Outcome, Rejected
from infinimem.store.receipts import last_forget
from infinimem.store.view import View
from infinimem.strategies.base import Plans

Note = Callable[[Plan, Outcome], Outcome]


def drive(
    library: Library, llm: Cached, propose: Callable[[View], Plans], view: View, note: Note | None = None
) -> list[Receipt]:
    """Apply plans until there are no more, and give the receipts.

    Where lines are forgotten meanwhile, what the strategy has thought so far may quote them: it begins anew.

    Args:
        library: takes or refuses them.
        llm: that the strategy asks; what it spends on a plan stands in the plan's receipt.
        propose: begins the strategy's plans from a snapshot.
        view: the snapshot of the first of them.
        note: told of each outcome; gives it to the strategy, with a newer view if there is one.
    """
    receipts: list[Receipt] = []
    while True:
        view.entry(0)  # read now: what the plans are made from is as it is before a model thinks
        forgotten, plans, outcome = last_forget(view), propose(view), None
        try:
            while outcome is None or last_forget(outcome.view) == forgotten:
                spent, began = llm.usage, library.clock()
                plan = plans.send(outcome) if outcome else next(plans)
                outcome = library.apply(
                    plan,
                    base=view,
                    strategy=library.spec.name,
                    model=llm.name,
                    usage=llm.usage - spent,
                    began=began,
                )
                if isinstance(outcome, Applied) and outcome.receipt:
                    receipts.append(outcome.receipt)
                else:  # no receipt holds them
                    reasons = outcome.reasons if isinstance(outcome, Rejected) else ()
                    for remark in (*plan.notes, *map(str, reasons)):
                        log.info("%s: %s", plan.op, remark)
                outcome = note(plan, outcome) if note else outcome
                view = outcome.view
        except StopIteration:
            return receipts
        plans.close()
