"""A conversation: which of its turns are open, that is in no record, and where it turns to something else.

What is open is listed nowhere, so undo and `forget` reopen turns; what is due hangs on the evidence as well,
and not on how many turns a call brings. Before which turns the talk turns to something else a model says; a
reply that is of no use cuts nothing.

Source: xMemory, section 3.2 (blocks within a session) and Appendix C.1 (boundaries); GAM, section 3.2.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from infinimem.llm.base import LLM, in_order
from infinimem.llm.tasks import TEXT, list_of, task
from infinimem.llm.tasks import turn as shown_turn
from infinimem.markdown.characters import one_line
from infinimem.model import Located, RejectedReply
from infinimem.store.view import View
from infinimem.strategies.records.asking import LONGEST, bare
from infinimem.strategies.records.record import moment


def open_turns(view: View, *documents: str) -> Mapping[str, Sequence[Located]]:
    """Return the turns that no record names, by evidence document, each in order; of some documents alone."""
    turns: dict[str, list[Located]] = {}
    for doc_id, seq in view.lines.open(*documents):
        turn = view.document(doc_id).entry(seq)
        if turn and not view.repeats(turn) and (view.upto is None or seq <= view.upto):
            turns.setdefault(doc_id, []).append(turn)
    return turns


def open_until(view: View, turn: Located) -> Sequence[Located]:
    """The open turns of a turn's session up to it."""
    return _until(open_turns(view, turn.doc_id).get(turn.doc_id, ()), turn)


def ended_by(view: View, turn: Located) -> list[Sequence[Located]]:
    """The open turns of the sessions that a turn ends: of all others, where it is the first of its own."""
    if view.document(turn.doc_id).entries[0].seq != turn.seq:
        return []
    found = (_until(said, turn) for doc_id, said in open_turns(view).items() if doc_id != turn.doc_id)
    return sorted(filter(None, found), key=lambda said: said[0].seq)


def _until(turns: Sequence[Located], last: Located) -> Sequence[Located]:
    return turns[: bisect_right(turns, last.seq, key=lambda turn: turn.seq)]


def ends_exchange(said: Sequence[Located], turn: Located) -> bool:
    """Whether with a turn the first speaker of some others is back after a reply."""
    places = (said[0], said[-1], turn)
    first, last, who = (place.entry.fields.get("speaker") or place.entry.role for place in places)
    return who == first != last


# ── segments ────────────────────────────────────────────────────────────────────────────────────


SHARED = 5
"""Turns that a window has in common with the one before."""
PAUSE = 30
"""Minutes of silence that a model is told of, and more."""
REASON = 200
"""Characters of a reason."""

SEGMENT = task("segment", "turns strict pauses", 1024, "tell:segment", cuts=list_of(before=TEXT, reason=TEXT))
"""Where parts of a conversation begin. `turns`: [turn, …] in order; `strict`: whether only another subject
begins one; `pauses`: [{"before": id of a turn, "minutes": of silence}, …]."""


class Segment(NamedTuple):
    """Turns that follow each other, and why they begin a segment: "" for the first."""

    turns: tuple[Located, ...]
    reason: str = ""


@dataclass(frozen=True)
class Segmented:
    """Segments, which together are the turns that were asked about, and replies that could not be read."""

    segments: Sequence[Segment]
    rejected: tuple[RejectedReply, ...] = ()


def segments(llm: LLM, turns: Sequence[Located], strict: bool, most: int = 60, workers: int = 1) -> Segmented:
    """Return turns, at least one, cut where the talk turns to something else.

    Args:
        strict: whether only a completely different subject begins a segment; else it does in doubt.
        most: turns that one call is shown; longer talks are shown in windows that share some.
    """
    shared = min(SHARED, most // 2)
    starts = range(0, max(len(turns) - shared, 1), most - shared)
    windows = [turns[start : start + most] for start in starts]
    found = in_order(partial(_asked, llm, strict), windows, workers)
    cuts: dict[int, str] = {}
    for start, (reasons, _) in zip(starts, found, strict=True):
        # of what two windows show, each judges the half of which it knows more
        first = turns[start + (shared + 1) // 2].seq if start else 0
        cuts = {seq: why for seq, why in cuts.items() if seq < first}
        cuts |= {seq: why for seq, why in reasons.items() if seq >= first}
    begins = [at for at, turn in enumerate(turns) if at == 0 or turn.seq in cuts]
    parts = [
        Segment(tuple(turns[begin:end]), cuts.get(turns[begin].seq, ""))
        for begin, end in pairwise([*begins, len(turns)])
    ]
    return Segmented(parts, tuple(wrong for _, wrong in found if wrong))


def _asked(
    llm: LLM, strict: bool, turns: Sequence[Located]
) -> tuple[Mapping[int, str], RejectedReply | None]:
    """The turns of a window that begin a segment, with the reasons; names that are made up begin none."""
    if len(turns) < 2:
        return {}, None
    room = LONGEST // len(turns)
    rows = [shown_turn(turn.entry, turn.entry.text[:room]) for turn in turns]
    silences = ((str(turn.seq), int(silence(before, turn))) for before, turn in pairwise(turns))
    pauses = [{"before": name, "minutes": minutes} for name, minutes in silences if minutes > PAUSE]
    reply = llm.complete(SEGMENT, {"turns": rows, "strict": strict, "pauses": pauses})
    if reply.data is None:
        return {}, RejectedReply(SEGMENT.name, reply.text, (f"{reply.failure}: {reply.detail}",))
    known = {str(turn.seq): turn.seq for turn in turns[1:]}
    told = ((bare(cut["before"]), one_line(cut["reason"])[:REASON]) for cut in reversed(reply.data["cuts"]))
    return {known[name]: reason for name, reason in told if name in known}, None


def silence(before: Located, turn: Located) -> float:
    """Minutes between two turns; 0 where their times are not known to the minute."""
    if min(len(one.entry.time or "") for one in (before, turn)) <= 10:
        return 0.0
    return (moment(turn.entry.time) - moment(before.entry.time)).total_seconds() / 60
