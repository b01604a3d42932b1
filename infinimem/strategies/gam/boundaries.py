"""Where topics end: what makes the turns due that are in no topic, the active ones, and where they are cut.

Source: GAM, section 3.3 and Algorithm 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Literal, NamedTuple

from infinimem.llm.base import LLM
from infinimem.model import Located, RejectedReply
from infinimem.store.view import View
from infinimem.strategies.gam.spec import GamSettings
from infinimem.strategies.readers.pipeline import size
from infinimem.strategies.records.open_turns import ended_by, open_until
from infinimem.strategies.segment import segments, silence

Turns = Sequence[Located]


class Due(NamedTuple):
    """Active turns of a session that are looked at, and why."""

    turns: Turns
    why: Literal["ended", "paused", "full"]


class Part(NamedTuple):
    """Turns that are told as a topic; `forced`: that they were cut off although the talk goes on."""

    turns: Turns
    forced: bool = False


def due_before(view: View, turn: Located, own: GamSettings) -> list[Due]:
    """What a turn makes due of what was said before it: the sessions that it ends, after a pause its own."""
    *said, _ = open_until(view, turn) or [turn]
    paused = [said] if said and 0 < own.gap_minutes <= silence(said[-1], turn) else []
    return [*(Due(said, "ended") for said in ended_by(view, turn)), *(Due(said, "paused") for said in paused)]


def due_after(view: View, turn: Located, own: GamSettings) -> list[Due]:
    """The active turns of its session up to this one, where they are too many."""
    said = open_until(view, turn)
    return [Due(said, "full")] if size(said) > own.active_tokens else []


def parts(llm: LLM, due: Due, own: GamSettings) -> tuple[list[Part], Sequence[RejectedReply]]:
    """What of active turns is told as topics, and replies that could not be read.

    At the end of a session that is all; after a pause all but the last part, which may go on. Of too many
    turns likewise, unless no part ends or the last is too large by itself: then all, the last one forced.
    Where no reply can be read, the end of a session ends one topic, and too many turns are cut in two.

    Raises:
        ModelUnavailable: the model does not answer.
    """
    found, rejected = _cut(llm, due.turns, own)
    *done, tail = map(Part, found)
    if due.why == "full":
        if not done and rejected and len(tail.turns) > 1:
            at = _widest(tail.turns)
            done, tail = [Part(tail.turns[:at], forced=True)], Part(tail.turns[at:])
        if not done or size(tail.turns) > own.active_tokens:
            done.append(tail._replace(forced=True))
    return ([*done, tail] if due.why == "ended" else done), rejected


def _cut(llm: LLM, turns: Turns, own: GamSettings) -> tuple[list[Turns], Sequence[RejectedReply]]:
    """Turns in parts, and replies that could not be read."""
    found = segments(llm, turns, True, workers=own.workers) if own.partition == "semantic" else None
    ends = accumulate(len(part.turns) for part in found.segments) if found else _ruled(turns, own)
    cuts = [at for at in ends if at < len(turns)]
    cut = [turns[start:end] for start, end in pairwise([0, *cuts, len(turns)])]
    return cut, found.rejected if found else ()


def _ruled(turns: Turns, own: GamSettings) -> Iterator[int]:
    """Where a rule cuts that knows no topics (section 4.4)."""
    most = {"turn": 1, "turns": own.window or 3, "window": own.window or 256}.get(own.partition)
    said = 0
    for at, turn in enumerate(turns, 1):
        said += size((turn,)) if own.partition == "window" else 1
        if most and said >= most:
            yield at
            said = 0


def _widest(turns: Turns) -> int:
    """Where turns are best told apart without a model: at the longest silence, or else in the middle."""
    gaps = [silence(before, after) for before, after in pairwise(turns)]
    return gaps.index(max(gaps)) + 1 if max(gaps) > 0 else len(turns) // 2
