"""Turns described by a model, several in a call, whatever becomes of the records that are made of them.

Source: All-Mem, section 3.2, which asks about each turn by itself.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from infinimem.grounding.when import day_of, fits
from infinimem.llm.base import LLM, Reply, Task
from infinimem.llm.parallel import in_order
from infinimem.llm.tasks import turn as shown_turn
from infinimem.model import Located, RejectedReply
from infinimem.store.view import View
from infinimem.strategies.records.descriptor import Descriptor, descriptor, undescribed, unverified
from infinimem.strategies.records.prompt_views import LONGEST
from infinimem.strategies.records.record import Quote, Ref

CONTEXT_LENGTH = 400
"""Characters of an earlier turn that is shown for its context."""

EMPTY = Descriptor("", ())
"""Of what says nothing to be found by."""


@dataclass(frozen=True)
class Described:
    """A turn with its descriptor, which is empty for one that says nothing to be found by.

    Args:
        turn: as it was shown.
        descriptor: of the model; where its reply was of no use the turn's first words.
        when: when what it tells of happened, if the model said so and the words can mean it.
        wrong: what was wrong with the reply, if anything.
        unverified: whether it claims what neither the turn nor those before it say.
        failure: why nothing could be read, "" if something could.
    """

    turn: Located
    descriptor: Descriptor
    when: str | None = None
    wrong: RejectedReply | None = None
    unverified: bool = False
    failure: str = ""


@dataclass(frozen=True)
class Describer:
    """Asks a model.

    Args:
        task: is asked with `turns` and their `context`, and gives `cards`: id, `summary`, `keywords`, `when`.
        llm, workers: the model, and how many calls run side by side.
        most: turns of a call.
        before: turns before them that it is shown too.
    """

    task: Task
    llm: LLM
    workers: int
    most: int
    before: int

    def describe(self, view: View, turns: Sequence[Located]) -> list[Described]:
        """A descriptor for each of these turns of a session, in order.

        Raises:
            ModelUnavailable: nothing is to be written; the turns stay pending.
        """
        found = in_order(partial(self._portion, view), self._portions(turns), self.workers)
        return [one for portion in found for one in portion]

    def _portions(self, turns: Sequence[Located]) -> list[Sequence[Located]]:
        """Turns for a call each: about as many in all, and no more text than a model is shown."""
        most = max(1, self.most)
        size = -(-len(turns) // -(-len(turns) // most)) if turns else 1
        portions: list[list[Located]] = [[]]
        room = LONGEST
        for turn in turns:
            length = len(turn.entry.text)
            if portions[-1] and (len(portions[-1]) == size or length > room):
                portions.append([])
                room = LONGEST
            portions[-1].append(turn)
            room -= length
        return [portion for portion in portions if portion]

    def _portion(self, view: View, turns: Sequence[Located]) -> list[Described]:
        """What a reply about several lacks is asked for once more, each turn by itself."""
        told = [turn for turn in turns if turn.entry.text.strip()]
        found = self._ask(view, told, self.before) if told else {}
        for turn in told if len(told) > 1 else ():
            if found[turn.seq].wrong:
                found |= self._ask(view, [turn], 0 if found[turn.seq].failure else self.before)
        return [found.get(turn.seq) or Described(turn, EMPTY) for turn in turns]

    def _ask(self, view: View, turns: Sequence[Located], most: int) -> dict[int, Described]:
        """Descriptors by seq; what a model does not take is no context of others."""
        before = [turn for turn in _before(view, turns[0], most) if turn.seq not in view.tried]
        context = [shown_turn(turn.entry, turn.entry.text[:CONTEXT_LENGTH]) for turn in before]
        shown = [shown_turn(turn.entry, turn.entry.text[:LONGEST]) for turn in turns]
        reply = self.llm.complete(self.task, {"context": context, "turns": shown})
        cards = {row["id"].strip(" #[]"): row for row in (reply.data or {}).get("cards", ())}
        said = [*before, *turns]
        return {
            turn.seq: self._read(said[: at + 1], cards.get(str(turn.seq)), reply)
            for at, turn in enumerate(turns, len(before))
        }

    def _read(self, said: Sequence[Located], card: Mapping[str, Any] | None, reply: Reply) -> Described:
        """The last of some turns by its card; without one by its first words."""
        turn = said[-1]
        if card is None:
            why = f"{reply.failure}: {reply.detail}" if reply.data is None else "MISSING: no card of it"
            wrong = RejectedReply(self.task.name, reply.text, (why,))
            return Described(turn, undescribed(turn.text), wrong=wrong, failure=reply.failure or "")
        found = descriptor(card["summary"], card["keywords"]).cut()
        if not found.summary:
            return Described(turn, EMPTY)
        when = (card["when"] or "").strip()
        told = when and fits(when, [(turn.text, day_of(turn.entry.time))])
        return Described(turn, found, when if told else None, unverified=unverified(found, map(_quote, said)))


def _quote(turn: Located) -> Quote:
    return Quote(Ref(turn.seq), turn.entry.fields.get("speaker"), turn.entry.time, turn.text)


def _before(view: View, first: Located, count: int) -> Sequence[Located]:
    """The turns of the session just before one."""
    if first.doc_id not in view or count <= 0:
        return ()
    said = view.document(first.doc_id).entries
    at = bisect_left(said, first.start_line, key=lambda place: place.start_line)
    return said[max(at - count, 0) : at]
