"""Writing: a block is told as an episode, its facts are drawn, and join themes; one plan a block.

Source: xMemory, section 3.2.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any

from infinimem.grounding.claims import is_duplicate, unsupported
from infinimem.grounding.when import day_of, fits
from infinimem.llm.base import LLM
from infinimem.llm.parallel import in_order
from infinimem.model import Finding, RejectedReply
from infinimem.strategies.graph.links import Link
from infinimem.strategies.records.asking import Asked, named
from infinimem.strategies.records.descriptor import undescribed
from infinimem.strategies.records.narrated import narrated, narrative, one_liner
from infinimem.strategies.records.prompt_views import shown_turns
from infinimem.strategies.records.record import UNVERIFIED, Record, Ref, number_of, record_id
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.vector_index import VectorIndex
from infinimem.strategies.xmemory.blocks import Block
from infinimem.strategies.xmemory.partition import Change, Limits, Partition
from infinimem.strategies.xmemory.spec import SPEC, XmemorySettings
from infinimem.strategies.xmemory.tasks import EPISODE, FACTS, THEME

EPISODES, FACT, GROUP = SPEC.kinds
VERSION, SOURCE = SPEC.links

MOST = 40
"""Facts of a block."""
DEGRADED = (("degraded", "true"),)
"""`aux` of an episode that no model told: its first words stand in."""


def age(name: str) -> tuple[object, ...]:
    """Orders facts and themes; a theme is as old as its oldest fact was when it was made."""
    return number_of(name), name


# ── episode and facts ───────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Told:
    """A block with what a model made of it; `episode` is None where that was of no use."""

    block: Block
    episode: Mapping[str, Any] | None
    facts: Sequence[Mapping[str, Any]]
    rejected: tuple[RejectedReply, ...]


def tell(llm: LLM, block: Block) -> Told:
    """Ask for the episode of a block, and then for its facts.

    Raises:
        ModelUnavailable: the model does not answer.
    """
    asked, turns = Asked(llm), shown_turns(block.turns)
    episode = asked.ask(EPISODE, turns=turns, reason=block.reason)
    if episode and not narrative(episode["content"]):
        episode = None
    found = asked.ask(FACTS, episode=episode["content"] if episode else "", turns=turns)
    return Told(block, episode, found["facts"] if found else (), (*block.rejected, *asked.rejected))


def keep(store: RecordStore, told: Told) -> list[str]:
    """Put the episode of a block and its facts; their names."""
    turns = told.block.turns
    session, times = turns[0].doc_id.rsplit("/", 1)[-1], [turn.seq for turn in turns]
    episode = replace(_episode(store, told), session=session)
    store.put(episode)
    names = [episode.id]
    texts: list[str] = []
    for row in told.facts:
        text, seqs = one_liner(row["text"]), named(row["from"], times)
        if text and seqs and len(texts) < MOST and not any(is_duplicate(text, one) for one in texts):
            texts.append(text)
            fact = narrated(store, store.new_id(FACT.prefix, turns[0].seq), text, map(Ref, seqs))
            store.put(replace(fact, session=session))
            store.graph.add(fact.id, Link(SOURCE, episode.id))
            names.append(fact.id)
    return names


def _episode(store: RecordStore, told: Told) -> Record:
    turns = told.block.turns
    name, refs = store.own_id(EPISODES.prefix, turns[0].seq), [Ref(turn.seq) for turn in turns]
    if told.episode is None:
        first = undescribed(" ".join(turn.entry.text for turn in turns)).summary
        return replace(narrated(store, name, first, refs), summary=first, prose="", aux=DEGRADED)
    title, when = one_liner(told.episode["title"]), told.episode["when"] or ""
    new = narrated(store, name, narrative(told.episode["content"]), refs)
    said = [(turn.entry.text, day_of(turn.entry.time)) for turn in turns]
    return replace(new, summary=title or new.summary, when=when if fits(when, said) else None)


# ── themes ──────────────────────────────────────────────────────────────────────────────────────


def themes_of(store: RecordStore) -> dict[str, tuple[str, ...]]:
    """The facts of each theme; of two themes that hold a fact the older counts."""
    found: dict[str, tuple[str, ...]] = {}
    taken: set[str] = set()
    for name in sorted((name for name in store.visible if name.startswith(f"{GROUP.prefix}-")), key=age):
        facts = (one for one in store.records[name].sources if one in store.visible and one not in taken)
        if members := tuple(one for one in facts if one.startswith(f"{FACT.prefix}-")):
            found[name] = members
            taken.update(members)
    return found


def loose_facts(store: RecordStore, themes: Mapping[str, Sequence[str]]) -> list[str]:
    """Facts that are in no theme, the oldest first."""
    facts = {name for name in store.visible if name.startswith(f"{FACT.prefix}-")}
    return sorted(facts.difference(*themes.values()), key=age)


def group(store: RecordStore, index: VectorIndex, asked: Asked, own: XmemorySettings, limits: Limits) -> None:
    """Attach what is in no theme, split and merge, and put the themes that changed.

    Args:
        store: the records, which are edited.
        index: where they lie.
        asked: the model that names themes.
        own: whether themes are split and merged, and how many calls run side by side.
        limits: thresholds of the partition.

    Raises:
        ModelUnavailable: the model does not answer.
    """
    before = themes_of(store)
    fixed = [name for name in before if store.records[name].pinned]
    themes = Partition(before, index.row, _namer(store), age, limits, fixed)
    where = {fact: theme for theme, facts in before.items() for fact in facts}
    where |= {fact: themes.attach(fact) for fact in loose_facts(store, before)}
    if own.split:
        themes.split()
    if own.merge:
        themes.merge()
    changed = [name for name, facts in themes.themes.items() if tuple(facts) != before.get(name)]
    renamed = [name for name in changed if name not in fixed]
    found = in_order(partial(_named, asked, store), [themes.themes[name] for name in renamed], own.workers)
    names = dict(zip(renamed, found, strict=True))
    for name in changed:
        facts = themes.themes[name]
        moved = {fact: where[fact] for fact in facts if where[fact] != name}
        _put(store, name, facts, moved, names.get(name), themes.changes)
    kept = {change.before[1]: change.before[0] for change in themes.changes if change.op == "merge"}
    for gone in before.keys() - themes.themes.keys():
        heir = kept[gone]
        while heir in kept:
            heir = kept[heir]
        store.archive(gone)
        store.graph.add(heir, Link(VERSION, gone))


def _namer(store: RecordStore) -> Callable[[str], str]:
    """Gives a name to each theme that is founded: the number of its oldest fact."""
    taken: set[str] = set()

    def name(fact: str) -> str:
        number = number_of(fact)[0]
        first = number_of(store.own_id(GROUP.prefix, number))[1]
        names = (record_id(GROUP.prefix, number, suffix) for suffix in count(first))
        taken.add(found := next(one for one in names if one not in taken))
        return found

    return name


def _named(asked: Asked, store: RecordStore, facts: Sequence[str]) -> str:
    """What a model calls facts; one alone names itself, and the newest does where no reply is of use."""
    records = [store.records[name] for name in facts]
    if len(records) == 1:
        return records[0].summary
    rows = [{"id": str(at), "time": one.time, "text": one.summary} for at, one in enumerate(records, 1)]
    data = asked.ask(THEME, facts=rows)
    newest = max(records, key=lambda one: (one.age, one.order))
    return (one_liner(data["summary"]) if data else "") or newest.summary


def _put(
    store: RecordStore,
    name: str,
    facts: Sequence[str],
    moved: Mapping[str, str],
    summary: str | None,
    changes: Sequence[Change],
) -> None:
    """Put a theme with these facts; without a summary it keeps its own."""
    old = store.records.get(name) or Record(name, SPEC, "")
    aux = dict(old.aux)
    for change in changes:
        if name in change.after:
            aux |= {"made": change.op, "f": f"{change.f_after:.3f}", "from": f"{change.f_before:.3f}"}
    if summary is not None:
        aux.pop("unverified", None)
        aux |= UNVERIFIED if unsupported(summary, [store.records[fact].summary for fact in facts]) else ()
        old = replace(old, summary=summary)
    was = {**dict(old.moved), **moved}
    kept = tuple((fact, was[fact]) for fact in facts if fact in was)
    store.put(replace(old, sources=tuple(facts), moved=kept, aux=tuple(aux.items())))


# ── what must hold ──────────────────────────────────────────────────────────────────────────────


def bounded(cap: int, store: RecordStore, record: Record) -> Iterator[str]:
    """A theme that nobody pinned holds no more than it may."""
    if record.kind is GROUP and record.visible and len(record.sources) > cap and not record.pinned:
        yield f"it holds more than {cap} facts; infinimem consolidate splits it"


def doubled(store: RecordStore) -> Iterator[Finding]:
    """Facts that two themes hold."""
    where: dict[str, str] = {}
    themes: Collection[str] = [name for name in store.visible if name.startswith(f"{GROUP.prefix}-")]
    for name in sorted(themes, key=age):
        for fact in store.records[name].sources:
            if (other := where.setdefault(fact, name)) != name:
                what = f"{fact} is in {other} too, where it counts; take the line out of one"
                yield Finding("error", what, store.records[name].doc_id)
