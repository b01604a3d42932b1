"""Blocks: which messages are told together. An open block stands nowhere; it is what no record names.

Source: xMemory, section 3.2, and Appendix C.1 (boundaries).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from infinimem.llm.base import LLM
from infinimem.model import Located, RejectedReply
from infinimem.store.view import View
from infinimem.strategies.records.open_turns import open_turns
from infinimem.strategies.segment import Segment, segments
from infinimem.strategies.xmemory.spec import XmemorySettings

_NEVER = 1 << 62
"""Stands for the turn that ends what is ended because someone asked."""


@dataclass(frozen=True)
class Strand:
    """Turns of a session that follow each other and are in no record.

    Args:
        open: those that were looked at, an open block.
        new: those that follow.
        by: the turn that ends the last block, the first of another session; None where it stays open.
    """

    open: tuple[Located, ...]
    new: tuple[Located, ...]
    by: int | None


@dataclass(frozen=True)
class Block:
    """A block that ended, why, and the turn that ended it.

    `rejected` are replies about its end that could not be read.
    """

    turns: tuple[Located, ...]
    reason: str
    by: int
    rejected: tuple[RejectedReply, ...] = ()

    @property
    def order(self) -> tuple[int, int]:
        """Blocks are told in the order in which they end."""
        return self.by, self.turns[0].seq


def strands(view: View, new: Sequence[Located], most: int, *, end: bool = False) -> list[Strand]:
    """What is open, as of new turns.

    The first turn of a session ends what is open in all others, and a turn that a record names what is open
    before it.

    Args:
        view: the library.
        new: turns that were not looked at, in order; what was said behind them is not there yet.
        most: turns of a block; where more were looked at, an undo reopened them, and they are looked at anew.
        end: whether all that is open ends behind them.
    """
    fresh = {turn.seq for turn in new}
    begins = [turn for turn in new if view.document(turn.doc_id).entries[0].seq == turn.seq]
    upto = new[-1].seq if new else _NEVER
    there = {
        doc_id: {turn.seq for turn in turns if turn.seq <= upto} for doc_id, turns in open_turns(view).items()
    }
    found: list[Strand] = []
    for doc_id in sorted(there if begins or end else {turn.doc_id for turn in new}):
        ends = [turn.seq for turn in begins if turn.doc_id != doc_id]
        runs = [*_runs(view, doc_id, there.get(doc_id, ()))]
        for run in runs:
            by: int | None = _NEVER if end or run is not runs[-1] else None
            for seq in ends:
                before = tuple(turn for turn in run if turn.seq not in fresh or turn.seq < seq)
                found += [_strand(before, fresh, most, seq)] if before else []
                run = run[len(before) :]
            found += [_strand(run, fresh, most, by)] if run else []
    return found


def _runs(view: View, doc_id: str, among: Collection[int]) -> Iterator[tuple[Located, ...]]:
    """The open turns of a session, those that follow each other together."""
    run: list[Located] = []
    for turn in view.document(doc_id).entries:
        if turn.seq in among:
            run.append(turn)
        elif run and not view.repeats(turn):
            yield tuple(run)
            run = []
    if run:
        yield tuple(run)


def _strand(turns: tuple[Located, ...], fresh: Collection[int], most: int, by: int | None) -> Strand:
    at = next((at for at, turn in enumerate(turns) if turn.seq in fresh), len(turns))
    at = at if at <= most else 0
    return Strand(turns[:at], turns[at:], by)


def ended(llm: LLM, own: XmemorySettings, strand: Strand) -> list[Block]:
    """The blocks of a strand that ended; a model says where others begin, and a full one ends without it.

    Raises:
        ModelUnavailable: the model does not answer.
    """
    most = max(own.block_max, 1)
    return [*(_by_turn if own.segmenter == "each" else _by_block)(llm, strand, most)]


def _by_turn(llm: LLM, strand: Strand, most: int) -> Iterator[Block]:
    """As in the paper: of each message a model is asked whether it begins a block."""
    block, rejected = strand.open, tuple[RejectedReply, ...]()
    for turn in strand.new:
        last = Segment((turn,))
        if 0 < len(block) < most:
            told = segments(llm, [*block, turn], strict=False)
            last, rejected = told.segments[-1], (*rejected, *told.rejected)
        if block and last.turns == (turn,):
            yield Block(block, last.reason, turn.seq, rejected)
            block, rejected = (), ()
        block = (*block, turn)
    if strand.by is not None and block:
        yield Block(block, "", strand.by, rejected)


def _by_block(llm: LLM, strand: Strand, most: int) -> Iterator[Block]:
    """A model is asked once a block is full or ends; the last part of a full one stays open."""
    block = strand.open
    for turn in strand.new:
        block = (*block, turn)
        if len(block) >= most:
            parts = [*_parts(llm, block, turn.seq)]
            block = parts.pop().turns if len(parts) > 1 else ()
            yield from parts
    if strand.by is not None and block:
        yield from _parts(llm, block, strand.by)


def _parts(llm: LLM, block: Sequence[Located], by: int) -> Iterator[Block]:
    """The parts of a block."""
    told = segments(llm, block, strict=False)
    reasons = (*(part.reason for part in told.segments[1:]), "")
    for at, (part, reason) in enumerate(zip(told.segments, reasons, strict=True)):
        yield Block(part.turns, reason, by, () if at else told.rejected)
