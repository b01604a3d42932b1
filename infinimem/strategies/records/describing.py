"""Turns described by a model, one call each, whatever becomes of the records that are made of them.

Source: All-Mem, section 3.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from infinimem.llm.base import LLM, Task
from infinimem.llm.parallel import in_order
from infinimem.llm.tasks import turn as shown_turn
from infinimem.model import Located, RejectedReply
from infinimem.strategies.records.descriptor import Descriptor, descriptor, undescribed
from infinimem.strategies.records.prompt_views import LONGEST


@dataclass(frozen=True)
class Described:
    """A turn with its descriptor, and what was wrong with the model's reply, if anything."""

    turn: Located
    descriptor: Descriptor
    wrong: RejectedReply | None = None


def describe(turns: Sequence[Located], task: Task, llm: LLM, workers: int) -> list[Described]:
    """A descriptor for each turn, one call each; what a model answers wrongly is replaced by the turn's first
    words.

    Args:
        turns: in order.
        task: is asked with a `turn` and gives `summary` and `keywords`.
        llm, workers: the model, and how many calls run side by side.

    Raises:
        ModelUnavailable: nothing is to be written; the turns stay pending.
    """
    return in_order(partial(_describe, task, llm), turns, workers)


def _describe(task: Task, llm: LLM, turn: Located) -> Described:
    text = turn.entry.text
    if not text.strip():
        return Described(turn, undescribed(text))
    reply = llm.complete(task, {"turn": shown_turn(turn.entry, text[:LONGEST])})
    if reply.data is None:
        reasons = (f"{reply.failure}: {reply.detail}",)
        return Described(turn, undescribed(text), RejectedReply(task.name, reply.text, reasons))
    found = descriptor(reply.data["summary"], reply.data["keywords"]).cut()
    if not found.summary:
        wrong = RejectedReply(task.name, reply.text, ("EMPTY: no summary",))
        return Described(turn, undescribed(text), wrong)
    return Described(turn, found)
