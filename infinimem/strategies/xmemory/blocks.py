"""Blocks: which messages are told together. An open block stands nowhere; it is what no record names.

Source: xMemory, section 3.2, and Appendix C.1 (boundaries).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from infinimem.llm.base import LLM
from infinimem.model import Located, RejectedReply
from infinimem.store.view import View
from infinimem.strategies.records.open_turns import open_turns
from infinimem.strategies.segment import Segment, Segmented, segments
from infinimem.strategies.xmemory.spec import XmemorySettings

_NEVER = 1 << 62
"""Stands for the turn that ends what is ended because someone asked."""


class Strand(NamedTuple):
    """Turns of a session that follow each other and are in no record.

    Args:
        turns: in order.
        seen: how many of them were looked at before, an open block.
        by: the turn that ends the last block, the first of another session; None where it stays open.
    """

    turns: tuple[Located, ...]
    seen: int
    by: int | None

    def without(self, seqs: Collection[int]) -> Strand:
        """Without some turns."""
        first = [turn for turn in self.turns[: self.seen] if turn.seq not in seqs]
        last = (turn for turn in self.turns[self.seen :] if turn.seq not in seqs)
        return Strand((*first, *last), len(first), self.by)


class Block(NamedTuple):
    """A block that ended, why, the turn that ended it, and replies about its end that could not be read."""

    turns: tuple[Located, ...]
    reason: str
    by: int
    rejected: tuple[RejectedReply, ...] = ()

    @property
    def order(self) -> tuple[int, int]:
        """Blocks are told in the order in which they end."""
        return self.by, self.turns[0].seq


def strands(view: View, new: Sequence[Located], most: int, *, end: bool = False) -> Iterator[Strand]:
    """What is open, as of new turns.

    The first turn of a session ends what is open in all others, and a turn that a record names what is open
    before it.

    Args:
        view: the library.
        new: turns that were not looked at, in order; what was said behind them is not there yet.
        most: turns of a block; where more were looked at, an undo reopened them, and they are looked at anew.
        end: whether all that is open ends behind them.
    """
    waiting, fresh = open_turns(view), {turn.seq for turn in new}
    begins = [turn for turn in new if view.document(turn.doc_id).entries[0].seq == turn.seq]
    upto = new[-1].seq if new else _NEVER
    for doc_id in sorted(waiting if begins or end else {turn.doc_id for turn in new}):
        ends = [turn.seq for turn in begins if turn.doc_id != doc_id]
        among = {turn.seq for turn in waiting.get(doc_id, ()) if turn.seq <= upto}
        said = [turn for turn in view.document(doc_id).entries if turn.seq <= upto]
        run: tuple[Located, ...] = ()
        for turn in (*(one for one in said if one.seq in among or not view.repeats(one)), None):
            by = next((seq for seq in ends if run and run[-1].seq < seq), _NEVER)
            if run and (turn is None or turn.seq not in among or by < turn.seq):
                at = next((at for at, one in enumerate(run) if one.seq in fresh), len(run))
                stays = turn is None and by == _NEVER and not end
                yield Strand(run, at if at <= most else 0, None if stays else by)
                run = ()
            if turn and turn.seq in among:
                run = (*run, turn)


def ended(llm: LLM, own: XmemorySettings, strand: Strand) -> list[Block]:
    """The blocks of a strand that ended; a model says where others begin, and a full one ends without it.

    It is asked at each message, as in the paper; or once a block is full or ends, and then the last part of a
    full one stays open.

    Raises:
        ModelUnavailable: the model does not answer.
    """
    most, found = max(own.block_max, 1), list[Block]()
    block, rejected = strand.turns[: strand.seen], tuple[RejectedReply, ...]()
    for turn in strand.turns[strand.seen :]:
        if own.segmenter == "each":
            asked = 0 < len(block) < most
            told = segments(llm, [*block, turn], strict=False) if asked else Segmented([Segment((turn,))])
            rejected = (*rejected, *told.rejected)
            if block and told.segments[-1].turns == (turn,):
                found.append(Block(block, told.segments[-1].reason, turn.seq, rejected))
                block, rejected = (), ()
        block = (*block, turn)
        if own.segmenter == "batch" and len(block) >= most:
            *parts, last = _parts(llm, block, turn.seq)
            block = last.turns if parts else ()
            found += parts or [last]
    if strand.by is not None and block:
        whole = [Block(block, "", strand.by, rejected)]
        found += whole if own.segmenter == "each" else _parts(llm, block, strand.by)
    return found


def _parts(llm: LLM, block: Sequence[Located], by: int) -> list[Block]:
    """The parts of a block; each ends for the reason that the next begins."""
    told = segments(llm, block, strict=False)
    reasons = (*(part.reason for part in told.segments[1:]), "")
    first, *others = (Block(part.turns, why, by) for part, why in zip(told.segments, reasons, strict=True))
    return [first._replace(rejected=told.rejected), *others]
