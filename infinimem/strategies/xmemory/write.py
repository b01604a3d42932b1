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
from infinimem.markdown.characters import clean_text, one_line
from infinimem.model import Finding, Plan, RejectedReply
from infinimem.strategies.graph.links import Link
from infinimem.strategies.records import rules
from infinimem.strategies.records.asking import Asked, named, shown
from infinimem.strategies.records.codec import clean_prose
from infinimem.strategies.records.descriptor import SUMMARY, Descriptor, undescribed, unverified
from infinimem.strategies.records.record import UNVERIFIED, Record, Ref, moment, number_of, record_id
from infinimem.strategies.records.record_store import RecordStore, puts
from infinimem.strategies.vector_index import VectorIndex
from infinimem.strategies.xmemory.blocks import Block
from infinimem.strategies.xmemory.partition import Change, Limits, Partition
from infinimem.strategies.xmemory.spec import SPEC, XmemorySettings
from infinimem.strategies.xmemory.tasks import EPISODE, FACTS, THEME

EPISODES, FACT, GROUP = SPEC.kinds
VERSION, SOURCE = SPEC.links

PROSE = 4000
"""Characters of an episode."""
MOST = 40
"""Facts of a block."""
DEGRADED = (("degraded", "true"),)
"""`aux` of an episode that no model told: its first words stand in."""

_RULES = (rules.evidence_stands, rules.links_stand, rules.header_fits)


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
    asked, turns = Asked(llm), shown(block.turns)
    episode = asked.ask(EPISODE, turns=turns, reason=block.reason)
    if episode and not clean_prose(episode["content"]).strip():
        episode = None
    found = asked.ask(FACTS, episode=episode["content"] if episode else "", turns=turns)
    return Told(block, episode, found["facts"] if found else (), (*block.rejected, *asked.rejected))


def written(
    store: RecordStore, index: VectorIndex, llm: LLM, own: XmemorySettings, limits: Limits, told: Told | None
) -> Plan | None:
    """The plan that writes what was told of a block, and groups all facts that are in no theme.

    Args:
        store: the records; they are not edited.
        index: where they lie; follows the edits.
        llm: names the themes that changed.
        own: the settings.
        limits: thresholds of the partition.
        told: of the block; None where loose facts alone are grouped.

    Returns:
        None where there is nothing to write, or the block is no longer open.

    Raises:
        ModelUnavailable: of the model or the embedder; nothing is written.
    """
    after, asked, touched = store.copy(), Asked(llm), list[str]()
    if told:
        if any(turn.seq in store.held or not store.stands(turn) for turn in told.block.turns):
            return None
        touched += _kept(after, told)
        index.sync(after, touched)
    touched += _grouped(after, index, asked, own, limits)
    if not touched:
        return None
    rejected = (*(told.rejected if told else ()), *asked.rejected)
    notes = tuple(f"{one.task}: a reply that could not be read ({one.reasons[0]})" for one in rejected)
    if wrong := rules.new_faults(store, after, partial(faults, cap=limits.cap), touched):
        notes += tuple(f"not written, for {one.where} would be wrong: {one.what}" for one in wrong)
        return Plan(notes=notes, rejected=rejected)
    return Plan("write", records=puts(store, after), notes=notes, rejected=rejected)


# ── episode and facts ───────────────────────────────────────────────────────────────────────────


def _kept(store: RecordStore, told: Told) -> list[str]:
    """Put the episode and its facts; their names."""
    turns = told.block.turns
    episode = _episode(store, told)
    store.put(episode)
    names = [episode.id]
    times = {turn.seq: turn.entry.time for turn in turns}
    for text, seqs in _new(told, times):
        refs = tuple(map(Ref, seqs))
        fact = Record(
            store.new_id(FACT.prefix, turns[0].seq),
            SPEC,
            text,
            time=times[seqs[-1]],
            session=episode.session,
            refs=refs,
            aux=UNVERIFIED if unverified(Descriptor(text, ()), map(store.quote, refs)) else (),
        )
        store.put(fact)
        store.graph.add(fact.id, Link(SOURCE, episode.id))
        names.append(fact.id)
    return names


def _episode(store: RecordStore, told: Told) -> Record:
    turns = told.block.turns
    refs = tuple(Ref(turn.seq) for turn in turns)
    title, prose, when = undescribed(" ".join(turn.entry.text for turn in turns)).summary, "", None
    aux: tuple[tuple[str, str], ...] = DEGRADED
    if told.episode:
        prose = clean_prose(told.episode["content"][:PROSE])
        title = _line(told.episode["title"]) or title
        said = [(turn.entry.text, day_of(turn.entry.time)) for turn in turns]
        when = told.episode["when"] if fits(told.episode["when"] or "", said) else None
        doubted = unverified(Descriptor(f"{title}\n{prose}", ()), map(store.quote, refs))
        aux = UNVERIFIED if doubted else ()
    return Record(
        store.own_id(EPISODES.prefix, turns[0].seq),
        SPEC,
        title,
        time=max(filter(None, (turn.entry.time for turn in turns)), key=moment, default=None),
        session=turns[0].doc_id.rsplit("/", 1)[-1],
        refs=refs,
        aux=aux,
        prose=prose,
        when=when,
    )


def _line(text: str) -> str:
    return " ".join(one_line(clean_text(text)).split())[:SUMMARY].rstrip()


def _new(told: Told, seqs: Collection[int]) -> Iterator[tuple[str, list[int]]]:
    """The facts that say something, each once, and the turns that they come from."""
    texts: list[str] = []
    for row in told.facts:
        text, source = _line(row["text"]), named(row["from"], seqs)
        if text and source and len(texts) < MOST and not any(is_duplicate(text, one) for one in texts):
            texts.append(text)
            yield text, source


# ── themes ──────────────────────────────────────────────────────────────────────────────────────


def is_pinned(record: Record) -> bool:
    """Whether its header says `pin: true`: no model's word rewrites, merges or archives it."""
    return any(line.split() == ["pin:", "true"] for line in record.others)


def themes_of(store: RecordStore) -> dict[str, tuple[str, ...]]:
    """The facts of each theme; of two themes that hold a fact the older counts."""
    found: dict[str, tuple[str, ...]] = {}
    taken: set[str] = set()
    themes = (name for name in store.visible if name.startswith(f"{GROUP.prefix}-"))
    for name in sorted(themes, key=lambda name: (number_of(name), name)):
        facts = (one for one in store.records[name].sources if one in store.visible and one not in taken)
        if members := tuple(one for one in facts if one.startswith(f"{FACT.prefix}-")):
            found[name] = members
            taken.update(members)
    return found


def loose_facts(store: RecordStore, themes: Mapping[str, Sequence[str]]) -> list[str]:
    """Facts that are in no theme, the oldest first."""
    facts = {name for name in store.visible if name.startswith(f"{FACT.prefix}-")}
    return sorted(facts.difference(*themes.values()), key=lambda name: (number_of(name), name))


def _grouped(
    store: RecordStore, index: VectorIndex, asked: Asked, own: XmemorySettings, limits: Limits
) -> list[str]:
    """Attach what is in no theme, split and merge, and put the themes that changed; their names."""
    before = themes_of(store)
    loose = loose_facts(store, before)
    fixed = [name for name in before if is_pinned(store.records[name])]
    themes = Partition(before, index.row, _namer(store), lambda name: (number_of(name), name), limits, fixed)
    where = {fact: theme for theme, facts in before.items() for fact in facts}
    where |= {fact: themes.attach(fact) for fact in loose}
    if own.split:
        themes.split()
    if own.merge:
        themes.merge()
    changed = [name for name, facts in themes.themes.items() if tuple(facts) != before.get(name)]
    told = [name for name in changed if name not in fixed]
    ask = partial(_named, asked, store)
    names = dict(zip(told, in_order(ask, [themes.themes[name] for name in told], own.workers), strict=True))
    for name in changed:
        facts = themes.themes[name]
        moved = {fact: where[fact] for fact in facts if where[fact] != name}
        _put(store, name, facts, moved, names.get(name), themes.changes)
    kept = {
        gone: change.after[0]
        for change in themes.changes
        if change.op == "merge"
        for gone in change.before[1:]
    }
    for gone in before.keys() - themes.themes.keys():
        heir = kept[gone]
        while heir in kept:
            heir = kept[heir]
        store.archive(gone)
        store.graph.add(heir, Link(VERSION, gone))
    return [*changed, *(before.keys() - themes.themes.keys())]


def _namer(store: RecordStore) -> Callable[[str], str]:
    """Gives a name to each theme that is founded: the number of its oldest fact."""
    taken: set[str] = set()

    def name(fact: str) -> str:
        number = number_of(fact)[0]
        first = store.own_id(GROUP.prefix, number)
        names = (record_id(GROUP.prefix, number, suffix) for suffix in count(number_of(first)[1]))
        found = next(one for one in names if one not in taken)
        taken.add(found)
        return found

    return name


def _named(asked: Asked, store: RecordStore, facts: Sequence[str]) -> str:
    """What a model calls facts; where that is of no use the newest fact."""
    records = [store.records[name] for name in facts]
    rows = [{"id": str(at), "time": one.time, "text": one.summary} for at, one in enumerate(records, 1)]
    data = asked.ask(THEME, facts=rows)
    return (_line(data["summary"]) if data else "") or max(
        records, key=lambda one: (one.age, one.order)
    ).summary


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
    was = {**dict(old.moved), **moved}
    store.put(
        replace(
            old,
            summary=old.summary if summary is None else summary,
            sources=tuple(facts),
            moved=tuple((fact, was[fact]) for fact in facts if fact in was),
            aux=tuple(aux.items()),
        )
    )


# ── what must hold ──────────────────────────────────────────────────────────────────────────────


def faults(store: RecordStore, only: Collection[str] | None = None, *, cap: int) -> list[Finding]:
    """What does not hold (records/rules.py), and themes that hold too much; a pinned one may."""

    def bounded(store: RecordStore, record: Record) -> Iterator[str]:
        if record.kind is GROUP and record.visible and len(record.sources) > cap and not is_pinned(record):
            yield f"it holds more than {cap} facts; infinimem consolidate splits it"

    return rules.faults(store, (*_RULES, bounded), only)


def doubled(store: RecordStore) -> Iterator[Finding]:
    """Facts that two themes hold."""
    where: dict[str, str] = {}
    for name in sorted(store.visible, key=lambda name: (number_of(name), name)):
        for fact in store.records[name].sources if name.startswith(f"{GROUP.prefix}-") else ():
            if (other := where.setdefault(fact, name)) != name:
                what = f"{fact} is in {other} too, where it counts; take the line out of one"
                yield Finding("error", what, store.records[name].doc_id)
