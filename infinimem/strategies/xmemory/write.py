"""Writing: a block is told as an episode, its facts are drawn, and join themes; one plan a block.

Source: xMemory, section 3.2.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from infinimem.chronology import latest
from infinimem.grounding.claims import is_repetition, unsupported
from infinimem.grounding.when import day_of, fits
from infinimem.llm.base import CUT, LLM
from infinimem.llm.parallel import in_order
from infinimem.model import Entry, RejectedReply
from infinimem.store.records import stem
from infinimem.strategies.graph.links import Link
from infinimem.strategies.records.asking import Asker, named
from infinimem.strategies.records.narrated import narrated, narrative, one_liner
from infinimem.strategies.records.prompt_views import shown_turns
from infinimem.strategies.records.record import UNVERIFIED, Record, Ref, number_of, record_id
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.vector_index import VectorIndex
from infinimem.strategies.xmemory.blocks import Block
from infinimem.strategies.xmemory.partition import Change, Memo, ThemePartition
from infinimem.strategies.xmemory.spec import SPEC, XmemorySettings
from infinimem.strategies.xmemory.tasks import EPISODE, FACTS, THEME
from infinimem.strategies.xmemory.themes import EPISODES, FACT, GROUP, Themes, age

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
    """Ask for the episode of a block, and then for its facts; of its halves, where it does not fit.

    Raises:
        ModelUnavailable: the model does not answer.
    """
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
    names, facts = [episode.id], list[Entry]()
    times = {turn.seq: turn.entry.time for turn in turns}
    for row in told.facts:
        text, seqs = one_liner(row["text"]), named(row["from"], times)
        new = Entry(0, text, "", latest(times[seq] for seq in seqs))
        if text and seqs and len(facts) < MOST and not any(is_repetition(new, one) for one in facts):
            facts.append(new)
            fact = narrated(store, store.new_id(FACT.prefix, turns[0].seq), text, map(Ref, seqs))
            store.put(replace(fact, session=session))
            store.graph.add(fact.id, Link(SOURCE, episode.id))
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
    """Attach what is in no theme, split and merge, and put the themes that changed.

    Args:
        store: the records, which are edited.
        themes: as they were.
        fresh: facts that came since.
        index: where all lie.
        memo: of the partition.
        asker: the model that names themes.
        own: the thresholds, whether themes are split and merged, and how many calls run side by side.

    Raises:
        ModelUnavailable: the model does not answer.
    """
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
    heirs = {change.before[1]: change.before[0] for change in found.changes if change.op == "merge"}
    for gone in sorted(themes.facts.keys() - found.themes.keys(), key=age):
        heir = gone
        while heir in heirs:
            heir = heirs[heir]
        store.archive(gone)
        store.graph.add(heir, Link(VERSION, gone))


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
    """Put a theme with these facts, which were in other themes or came to this one; without a summary it
    keeps its own."""
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
