"""xMemory: talk in episodes, their facts in themes that one objective balances, read from the top down.

    observe   evidence -> blocks that ended -> episode, facts -> attach, split, merge, theme
    tick      the same for all that is open, and for facts that are in no theme

A block is one plan. An open one stands nowhere; it is what no record names. Source: arXiv 2602.02007, section
3.2 and Appendix C.1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple

from infinimem.grounding.when import day_of, fits
from infinimem.llm.base import CUT, in_order
from infinimem.model import Finding, Located, Plan, RejectedReply
from infinimem.store.records import stem
from infinimem.store.view import Outcome, View
from infinimem.strategies.base import Event, Plans
from infinimem.strategies.readers.pipeline import size
from infinimem.strategies.records.asking import Asker, narrated, narrative, new_facts, one_liner, shown_turns
from infinimem.strategies.records.evidence import Records
from infinimem.strategies.records.record import Link, Ref
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.records.strategy import RecordStrategy, by_kind, edited, faults, settled
from infinimem.strategies.segment import Segment, Segmented, open_turns, segments
from infinimem.strategies.vector_index import VectorIndex
from infinimem.strategies.xmemory import tasks
from infinimem.strategies.xmemory.partition import (
    EPISODE,
    FACT,
    SOURCE,
    THEMES,
    bounded,
    group,
    homes,
    members,
)
from infinimem.strategies.xmemory.read import ThemeSearch
from infinimem.strategies.xmemory.spec import SPEC, XmemorySettings, scaled

PORTION = 200
"""Turns that are looked at before anything is written."""
MOST = 40
"""Facts of a block."""
SCALES: Mapping[str, float] = {"lexical": 0.903, "static": 0.958, "minilm": 1.195}
"""What the thresholds of the published code are multiplied by, by embedder, so that a theme has as many facts
as in the paper (benchmarks/themes.py). Others have them as they are, for text-embedding-3-small."""
HOLDS, NEAR = "holds", "near"
"""Links of a picture: from a theme to its facts, and to the themes that are nearest."""
NEIGHBOURS = 2
_READ = 3
"""How often what is open is shown to a model, about."""
_NEVER = 1 << 62
"""Stands for the turn that ends what is ended because someone asked."""


# ── blocks: which messages are told together (Appendix C.1) ──────────────────────────────────────


class Strand(NamedTuple):
    """Turns of a session in no record that follow each other, so many of which were looked at before.

    `by` is the turn that ends the last block, the first of another session; None where it stays open.
    """

    turns: tuple[Located, ...]
    seen: int
    by: int | None


class Block(NamedTuple):
    """A block that ended, why, the turn that ended it, and replies about it that could not be read.

    Once it is told, with what a model made of it: no episode if there is nothing to tell, or why (`failure`).
    """

    turns: tuple[Located, ...]
    reason: str
    by: int
    rejected: tuple[RejectedReply, ...] = ()
    episode: Mapping[str, Any] = MappingProxyType({})
    facts: Sequence[Mapping[str, Any]] = ()
    failure: str = ""


def strands(
    view: View, new: Sequence[Located], most: int, given_up: Collection[int], *, end: bool
) -> Iterator[Strand]:
    """What is open, as of new turns (what was said behind them is not there yet), but for some turns.

    The first turn of a session ends what is open in all others, and a turn that a record names what is
    open before it. Where more than `most` turns were looked at, an undo reopened them, and they are looked
    at anew.
    """
    fresh = {turn.seq for turn in new}
    begins = [turn for turn in new if view.document(turn.doc_id).entries[0].seq == turn.seq]
    upto = new[-1].seq if new else _NEVER
    waiting = open_turns(view, *(() if begins or end else sorted({turn.doc_id for turn in new})))
    for doc_id, left in sorted(waiting.items()):
        ends = [turn.seq for turn in begins if turn.doc_id != doc_id]
        among = {turn.seq for turn in left if turn.seq <= upto}
        said = [turn for turn in view.document(doc_id).entries if turn.seq <= upto]
        run: tuple[Located, ...] = ()
        for turn in (*(one for one in said if one.seq in among or not view.repeats(one)), None):
            by = next((seq for seq in ends if run and run[-1].seq < seq), _NEVER)
            if run and (turn is None or turn.seq not in among or by < turn.seq):
                at = next((at for at, one in enumerate(run) if one.seq in fresh), len(run))
                stays = turn is None and by == _NEVER and not end
                yield Strand(run, at if at <= most else 0, None if stays else by)
                run = ()
            if turn and turn.seq in among and turn.seq not in given_up:
                run = (*run, turn)


# ── episode and facts ───────────────────────────────────────────────────────────────────────────


def keep(store: RecordStore, block: Block) -> None:
    """Put the episode of a block and its facts."""
    turns = block.turns
    first, session = turns[0].seq, stem(turns[0].doc_id)
    name = store.own_id(EPISODE.prefix, first)
    title, when = one_liner(block.episode["title"]), block.episode["when"] or ""
    episode = narrated(store, name, narrative(block.episode["content"]), [Ref(turn.seq) for turn in turns])
    said = [(turn.entry.text, day_of(turn.entry.time)) for turn in turns]
    when = when if fits(when, said) else None
    store.put(replace(episode, summary=title or episode.summary, when=when, session=session))
    for _, text, refs in new_facts(block.facts, turns, (), MOST):
        fact = narrated(store, store.new_id(FACT.prefix, first), text, refs)
        store.put(replace(fact, session=session))
        store.link(fact.id, Link(SOURCE, name))


# ── the strategy ────────────────────────────────────────────────────────────────────────────────


class XMemory(RecordStrategy):
    """The strategy (strategies/base.py)."""

    spec = SPEC
    own: XmemorySettings

    def observe(self, view: View, new: Sequence[Located]) -> Plans:
        """Tell the blocks that these turns end, a plan each; turns of open blocks are listed alone."""
        began = view
        for start in range(0, len(new), PORTION):
            portion = new[start : start + PORTION]
            after = yield from self._write_ended(began, view, portion)
            if after is None:
                return
            view = (yield Plan(empty=tuple(turn.seq for turn in portion))).view

    def tick(self, view: View, event: Event) -> Plans:
        """Because someone asked: tell all that is open, and group facts that are in no theme."""
        if event == "consolidate":
            after = yield from self._write_ended(view, view, (), end=True)
            if after is not None:
                yield from settled(after, partial(self._written, None))

    def _write_ended(
        self, began: View, view: View, new: Sequence[Located], *, end: bool = False
    ) -> Generator[Plan, Outcome, View | None]:
        """Write the blocks that end; None where the library took none, or no answer was given about any."""
        given_up = view.given_up(self.llm.name, began)
        open_ones = [*strands(view, new, self.own.block_max, given_up, end=end)]
        by_strand = in_order(self._ended, open_ones, self.own.workers)
        ended = sorted(chain.from_iterable(by_strand), key=lambda block: (block.by, block.turns[0].seq))
        failed = 0
        for block in chain.from_iterable(in_order(self._tell, ended, self.own.workers)):
            seqs = [turn.seq for turn in block.turns]
            if block.failure:
                unanswered = dict.fromkeys(seqs, block.failure)
                view = (yield Plan(unanswered=unanswered, rejected=block.rejected)).view
                failed += 1
            elif not block.episode:
                view = (yield Plan(empty=tuple(seqs))).view
            else:
                after = yield from settled(view, partial(self._written, block))
                if after is None:
                    return None
                view = after
        return None if ended and failed == len(ended) else view

    # ── what a model is asked ───────────────────────────────────────────────────────────────────

    def _ended(self, strand: Strand) -> list[Block]:
        """The blocks of a strand that ended; a model says where others begin, and a full one ends without it.

        It is asked at each message, as in the paper; or once a block is full or ends, and then the last part
        of a full one stays open.
        """
        most, blocks = max(self.own.block_max, 1), list[Block]()
        block, rejected = strand.turns[: strand.seen], tuple[RejectedReply, ...]()
        for turn in strand.turns[strand.seen :]:
            if self.own.segmenter == "each" and block:
                full = Segmented([Segment((turn,))])
                told = full if len(block) == most else segments(self.llm, [*block, turn], strict=False)
                rejected += told.rejected
                if told.segments[-1].turns == (turn,):
                    blocks.append(Block(block, told.segments[-1].reason, turn.seq, rejected))
                    block, rejected = (), ()
            block = (*block, turn)
            if self.own.segmenter == "batch" and len(block) >= most:
                *parts, last = self._parts(block, turn.seq)
                block = last.turns if parts else ()
                blocks += parts or [last]
        if strand.by is not None and block:
            whole = [Block(block, "", strand.by, rejected)]
            blocks += whole if self.own.segmenter == "each" else self._parts(block, strand.by)
        return blocks

    def _parts(self, block: Sequence[Located], by: int) -> list[Block]:
        """The parts of a block; each ends for the reason that the next begins."""
        told = segments(self.llm, block, strict=False)
        reasons = (*(part.reason for part in told.segments[1:]), "")
        first, *others = (
            Block(part.turns, why, by) for part, why in zip(told.segments, reasons, strict=True)
        )
        return [first._replace(rejected=told.rejected), *others]

    def _tell(self, block: Block) -> list[Block]:
        """Ask for the episode of a block, and then for its facts; of its halves, where it does not fit."""
        asker, turns = Asker(self.llm), shown_turns(block.turns)
        episode, data = asker.ask(tasks.EPISODE, turns=turns, reason=block.reason), None
        if episode and not narrative(episode["content"]):
            asker.failure = "EMPTY" if one_liner(episode["title"]) else ""
            episode = None  # without a title either, the block holds nothing to tell: "Safe travels!"
        if episode and not asker.failure:
            data = asker.ask(tasks.FACTS, episode=episode["content"], turns=turns)
        if asker.failure in CUT and (middle := len(block.turns) // 2):
            halves = (block._replace(turns=turns) for turns in (block.turns[:middle], block.turns[middle:]))
            return [part for half in halves for part in self._tell(half)]
        rejected, facts = (*block.rejected, *asker.rejected()), data["facts"] if data else ()
        return [block._replace(rejected=rejected, episode=episode or {}, facts=facts, failure=asker.failure)]

    # ── what is written ─────────────────────────────────────────────────────────────────────────

    def _written(self, block: Block | None, view: View) -> Plan | None:
        """The plan that writes what was told of a block, and groups all facts that are in no theme."""
        with self._writing.at(view) as (store, index):
            after, asker = store.copy(), Asker(self.llm)
            if block:
                if any(turn.seq in store.held or not store.stands(turn) for turn in block.turns):
                    return None
                keep(after, block)
                index.sync(after)
            own = scaled(self.own, SCALES.get(view.embedder.name.split()[0], 1.0))
            group(after, view.derived(members), index, asker, own)
            rejected = (*(block.rejected if block else ()), *asker.rejected())
            return edited("write", store, after, self.faults, rejected)

    def estimate(self, view: View) -> int:
        """What a model is shown of the turns that are open."""
        return _READ * sum(map(size, open_turns(view).values()))

    def search(self, view: View, held: Records, query: str, budget: int) -> ThemeSearch:
        """Turns by rank, or evidence from themes down to messages, for which the gate may ask a model."""
        return ThemeSearch(view, held, query, budget, self.own, self.llm)

    def drawn(self, view: View, store: RecordStore, index: VectorIndex) -> tuple[RecordStore, Sequence[str]]:
        """Link themes to their facts and to near themes."""
        linked, themes = store.copy(), view.derived(members)
        for theme, facts in themes.items():
            linked.relink(theme, HOLDS, (Link(HOLDS, fact) for fact in facts))
        for theme, near in index.neighbours(themes, NEIGHBOURS).items():
            linked.relink(theme, NEAR, (Link(NEAR, one, round(cos, 3)) for one, cos in near if cos > 0))
        return linked, (HOLDS, NEAR)

    def label(self, store: RecordStore, name: str) -> str:
        """Add f before and after the change that made it."""
        aux, told = dict(store.records[name].aux), super().label(store, name)
        return (
            f"{told} ({aux.get('made', 'made')}: f {aux.get('from', '')} to {aux['f']})"
            if "f" in aux
            else told
        )

    def status(self, view: View) -> Mapping[str, Any]:
        """How many turns are open, and of the records: sizes of themes, and how many facts changed theirs."""
        store = view.derived(RecordStore.load)
        sizes = Counter(map(len, view.derived(members).values()))
        return {
            "open": sum(map(len, open_turns(view).values())),
            **by_kind(store),
            "reassigned": sum(len(store.records[name].moved) for name in store.visible),
            "sizes": {str(size): sizes[size] for size in sorted(sizes)},
        }

    def faults(self, store: RecordStore, only: Collection[str] | None = None) -> list[Finding]:
        """As of all strategies of records, and themes over the cap, unless nothing is to be split."""
        cap = (partial(bounded, self.own.theme_max),) if self.own.split else ()
        return faults(store, only, *cap)

    def check(self, view: View) -> list[Finding]:
        """As of all strategies of records, and facts that two themes hold."""
        found, store, first = (
            super().check(view),
            view.derived(RecordStore.load),
            homes(view.derived(members)),
        )
        for _, theme in sorted(store.records.items()):
            for fact in theme.sources if theme.kind is THEMES and theme.visible else ():
                if (other := first.get(fact, theme.id)) != theme.id:
                    what = f"{fact} is in {other} too, where it counts; take the line out of one"
                    found.append(Finding("error", what, theme.doc_id))
        return found
