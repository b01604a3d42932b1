"""One consolidation: the buffer is read, diagnosed, routed and executed, and all of it is one plan.

Where the model falls silent nothing is kept, and the buffer stays as it was. Source: All-Mem, Algorithm 1.
"""

from __future__ import annotations

from infinimem.llm.base import LLM
from infinimem.model import Plan, Put
from infinimem.settings import AllmemSettings
from infinimem.store.view import View
from infinimem.strategies.allmem.audit import audit_text, next_run
from infinimem.strategies.allmem.diagnose import contexts, diagnose
from infinimem.strategies.allmem.execute import Done, Executor
from infinimem.strategies.allmem.ledger import BUFFER, buffered
from infinimem.strategies.allmem.record_store import Bank, puts
from infinimem.strategies.allmem.route import route
from infinimem.strategies.allmem.vector_index import Space


def consolidation(view: View, bank: Bank, space: Space, llm: LLM, settings: AllmemSettings) -> Plan | None:
    """The plan of a run; None where nothing waits.

    Args:
        view: the library.
        bank: its units; they are not edited.
        space: where they lie; follows the edits.

    Raises:
        ModelUnavailable, ModelNotConfigured: of the model or the embedder.
    """
    waiting = buffered(view, bank)
    if not waiting:
        return None
    looked_at = contexts(bank, waiting, settings.online_anchors)
    diagnosed = diagnose(bank, looked_at, llm, settings.workers)
    proposals = [proposal for one in diagnosed for proposal in one.proposals]
    routed = route(bank, space, proposals, settings)
    executor = Executor(bank, space, settings, llm)
    done = executor.run(routed)
    doc_id = next_run(view)
    text = audit_text(doc_id, view.embedder.name, settings, diagnosed, routed, done, bank, executor.bank)
    records = (*puts(bank, executor.bank), Put(BUFFER, None), Put(doc_id, text))
    return Plan(op="consolidate", records=records, notes=tuple(_note(one) for one in done if one.code))


def _note(one: Done) -> str:
    why = " ".join(filter(None, (one.code, one.sub)))
    return f"{one.item.op} of {', '.join(one.item.ids)} was not applied: {why}"
