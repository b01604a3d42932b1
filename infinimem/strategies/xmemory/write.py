"""Writing: a block that ended is told as an episode, its facts are drawn, and join themes; one plan a block.

An open block stands nowhere; it is what no record names. Source: xMemory, section 3.2, and Appendix C.1.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from infinimem.grounding.claims import unsupported
from infinimem.grounding.when import day_of, fits
from infinimem.llm.base import CUT, LLM
from infinimem.llm.parallel import in_order
from infinimem.model import Finding, Located, RejectedReply
from infinimem.store.records import stem
from infinimem.store.view import View
from infinimem.strategies.links import Link
from infinimem.strategies.records.asking import Asker
from infinimem.strategies.records.record import UNVERIFIED, Record, Ref, number_of, prefix_of, record_id
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.records.telling import narrated, narrative, new_facts, one_liner, shown_turns
from infinimem.strategies.segment import Segment, Segmented, open_turns, segments
from infinimem.strategies.vector_index import VectorIndex
from infinimem.strategies.xmemory.partition import Change, Memo, ThemePartition
from infinimem.strategies.xmemory.spec import SPEC, XmemorySettings
from infinimem.strategies.xmemory.tasks import EPISODE, FACTS, THEME

# ── which theme each fact is in, as the records say ──────────────────────────────────────────────


EPISODES, FACT, GROUP = SPEC.kinds


def age(name: str) -> tuple[object, ...]:
    """Orders facts and themes; a theme is as old as its oldest fact was when it was made."""
    return number_of(name), name


class Themes:
    """Those of a snapshot that are not archived (`View.derived(Themes.load)`)."""

    def __init__(self) -> None:
        self.facts: dict[str, tuple[str, ...]] = {}
        """By theme; another object where one of them is not as it was."""
        self.of: dict[str, str] = {}
        """The theme of each fact, of two that hold it the older."""
        self.loose: set[str] = set()
        """Facts that are in none."""
        self._lists: dict[str, tuple[str, ...]] = {}
        self._holders: dict[str, tuple[str, ...]] = {}

    @classmethod
    def load(cls, view: View, known: Themes | None, changed: Collection[str] | None) -> Themes:
        """The themes as a view shows them; see `View.derived`."""
        new, store = cls(), view.derived(RecordStore.load)
        names = {*store.records}
        if known is not None and changed is not None:
            vars(new).update({name: copy(value) for name, value in vars(known).items()})
            names = {stem(doc_id) for doc_id in changed if doc_id.startswith(view.spec.record_folders)}
        facts = {name for name in names if prefix_of(name) == FACT.prefix}
        themes = names - facts
        for theme in (name for name in names if prefix_of(name) == GROUP.prefix):
            before = new._lists.pop(theme, ())
            sources = store.records[theme].sources if theme in store.visible else ()
            new._lists[theme] = now = tuple(one for one in sources if prefix_of(one) == FACT.prefix)
            facts.update(before, now)
            for fact in {*before, *now}:
                others = {one for one in new._holders.get(fact, ()) if one != theme}
                new._holders[fact] = tuple(sorted(others | ({theme} if fact in now else set()), key=age))
        for fact in facts:
            holders, here = new._holders.get(fact, ()), fact in store.visible
            themes.update(holders)
            new.of.pop(fact, None)
            new.of.update((fact, theme) for theme in holders[:1] if here)
            (new.loose.add if here and not holders else new.loose.discard)(fact)
        for theme in themes:
            new.facts.pop(theme, None)
            if members := tuple(one for one in new._lists.get(theme, ()) if new.of.get(one) == theme):
                new.facts[theme] = members
        return new

    def doubled(self, store: RecordStore) -> Iterator[Finding]:
        """Facts that two themes hold."""
        for fact in sorted(self.of, key=age):
            first, *others = self._holders[fact]
            for theme in others:
                what = f"{fact} is in {first} too, where it counts; take the line out of one"
                yield Finding("error", what, store.records[theme].doc_id)


# ── blocks: which messages are told together ─────────────────────────────────────────────────────


_NEVER = 1 << 62
"""Stands for the turn that ends what is ended because someone asked."""


class Strand(NamedTuple):
    """Turns of a session in no record that follow each other, so many of which were looked at before.

    `by` is the turn that ends the last block, the first of another session; None where it stays open.
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
    """What is open, as of new turns (what was said behind them is not there yet).

    The first turn of a session ends what is open in all others, and a turn that a record names what is
    open before it. Where more than `most` turns were looked at, an undo reopened them, and they are looked
    at anew.
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


VERSION, SOURCE = SPEC.links

MOST = 40
"""Facts of a block."""


# ── episode and facts ───────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Told:
    """A block with what a model made of it: no episode if there is nothing to tell, or why (`failure`)."""

    block: Block
    episode: Mapping[str, Any]
    facts: Sequence[Mapping[str, Any]]
    rejected: tuple[RejectedReply, ...]
    failure: str = ""


def tell(llm: LLM, block: Block) -> list[Told]:
    """Ask for the episode of a block, and then for its facts; of its halves, where it does not fit."""
    asker, turns = Asker(llm), shown_turns(block.turns)
    episode, found = asker.ask(EPISODE, turns=turns, reason=block.reason), None
    if episode and not narrative(episode["content"]):
        asker.failure = "EMPTY" if one_liner(episode["title"]) else ""
        episode = None  # without a title either, the block holds nothing to tell: "Safe travels!"
    if episode and not asker.failure:
        found = asker.ask(FACTS, episode=episode["content"], turns=turns)
    if asker.failure in CUT and (half := len(block.turns) // 2):
        halves = (block._replace(turns=turns) for turns in (block.turns[:half], block.turns[half:]))
        return [told for some in halves for told in tell(llm, some)]
    rejected = (*block.rejected, *asker.rejected())
    return [Told(block, episode or {}, found["facts"] if found else (), rejected, asker.failure)]


def keep(store: RecordStore, told: Told) -> list[str]:
    """Put the episode of a block and its facts; their names."""
    turns = told.block.turns
    session = stem(turns[0].doc_id)
    episode = replace(_episode(store, told), session=session)
    store.put(episode)
    names = [episode.id]
    for _, text, refs in new_facts(told.facts, turns, (), MOST):
        fact = narrated(store, store.new_id(FACT.prefix, turns[0].seq), text, refs)
        store.put(replace(fact, session=session))
        store.link(fact.id, Link(SOURCE, episode.id))
        names.append(fact.id)
    return names


def _episode(store: RecordStore, told: Told) -> Record:
    turns = told.block.turns
    name, refs = store.own_id(EPISODES.prefix, turns[0].seq), [Ref(turn.seq) for turn in turns]
    title, when = one_liner(told.episode["title"]), told.episode["when"] or ""
    new = narrated(store, name, narrative(told.episode["content"]), refs)
    said = [(turn.entry.text, day_of(turn.entry.time)) for turn in turns]
    return replace(new, summary=title or new.summary, when=when if fits(when, said) else None)


# ── themes ──────────────────────────────────────────────────────────────────────────────────────


def group(
    store: RecordStore,
    themes: Themes,
    fresh: Collection[str],
    index: VectorIndex,
    memo: Memo,
    asker: Asker,
    own: XmemorySettings,
) -> None:
    """Attach what is in no theme and `fresh` facts, split and merge, and put the themes that changed."""
    fixed = {name for name in themes.facts if store.records[name].pinned}
    found = ThemePartition(themes.facts, index.row, _namer(store), age, own, fixed, memo)
    where = {fact: found.attach(fact) for fact in sorted({*themes.loose, *fresh}, key=age)}
    if own.split:
        found.split()
    if own.merge:
        found.merge()
    changed = {name: facts for name, facts in found.themes.items() if tuple(facts) != themes.facts.get(name)}
    renamed = [name for name in changed if name not in fixed]
    told = in_order(partial(_named, asker, store), [changed[name] for name in renamed], own.workers)
    names = dict(zip(renamed, told, strict=True))
    made = {name: change for change in found.changes for name in change.after}
    for name, facts in changed.items():
        was = {fact: where.get(fact) or themes.of[fact] for fact in facts}
        _put(store, name, was, names.get(name), made.get(name))
    replaced = {change.before[1]: change.before[0] for change in found.changes if change.op == "merge"}
    for gone in sorted(themes.facts.keys() - found.themes.keys(), key=age):
        by = gone
        while by in replaced:
            by = replaced[by]
        store.archive(gone)
        store.link(by, Link(VERSION, gone))


def _namer(store: RecordStore) -> Callable[[str], str]:
    """Gives a name to each theme that is founded: the number of its oldest fact."""
    taken: set[str] = set()

    def name(fact: str) -> str:
        number = number_of(fact)[0]
        found = store.own_id(GROUP.prefix, number)
        while found in taken:
            found = record_id(GROUP.prefix, number, number_of(found)[1] + 1)
        taken.add(found)
        return found

    return name


def _named(asker: Asker, store: RecordStore, facts: Sequence[str]) -> str:
    """What a model calls facts; one alone names itself, and the newest does where no reply is of use."""
    records = [store.records[name] for name in facts]
    rows = [{"id": str(at), "time": one.time, "text": one.summary} for at, one in enumerate(records, 1)]
    data = asker.ask(THEME, facts=rows) if len(rows) > 1 else None
    newest = max(records, key=lambda one: (one.age, one.order))
    return (one_liner(data["summary"]) if data else "") or newest.summary


def _put(
    store: RecordStore, name: str, was: Mapping[str, str], summary: str | None, made: Change | None
) -> None:
    """Put a theme with these facts, which were in other themes or came to this one."""
    old = store.records.get(name) or Record(name, SPEC, "")
    aux, moved = dict(old.aux), dict(old.moved)
    if made:
        aux |= {"made": made.op, "f": f"{made.f_after:.3f}", "from": f"{made.f_before:.3f}"}
    if summary is not None:
        aux.pop("unverified", None)
        aux |= UNVERIFIED if unsupported(summary, [store.records[fact].summary for fact in was]) else ()
        old = replace(old, summary=summary)
    moved |= {fact: theme for fact, theme in was.items() if theme != name}
    kept = tuple((fact, moved[fact]) for fact in was if fact in moved)
    store.put(replace(old, sources=tuple(was), moved=kept, aux=tuple(aux.items())))


# ── what must hold ──────────────────────────────────────────────────────────────────────────────


def bounded(cap: int, store: RecordStore, record: Record) -> Iterator[str]:
    """A theme that nobody pinned holds no more than it may."""
    if record.kind is GROUP and record.visible and len(record.sources) > cap and not record.pinned:
        yield f"it holds more than {cap} facts; infinimem consolidate splits it"
