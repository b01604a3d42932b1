"""Semantic refinement: facts that an episode leaves out, each a record of its own.

Source: RecMem, section 3.4, Eq. 8 and 9.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from infinimem.grounding.claims import is_duplicate
from infinimem.markdown.characters import clean_text, one_line
from infinimem.model import Located
from infinimem.strategies.graph.links import Link
from infinimem.strategies.recmem.spec import SPEC, RecmemSettings
from infinimem.strategies.recmem.subconscious import FACT
from infinimem.strategies.recmem.tasks import REFINE, TYPES
from infinimem.strategies.records.asking import Asked, named, shown
from infinimem.strategies.records.descriptor import SUMMARY, Descriptor, unverified
from infinimem.strategies.records.record import UNVERIFIED, Record, Ref
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.vector_index import VectorIndex

VERSION, SOURCE = SPEC.links


def is_pinned(record: Record) -> bool:
    """Whether its header says `pin: true`: no model's word rewrites, merges or archives it."""
    return any(line.split() == ["pin:", "true"] for line in record.others)


@dataclass(frozen=True)
class Refined:
    """What a model found beside an episode, and the facts that it knew of."""

    episode: Record
    turns: Sequence[Located]
    known: Sequence[Record]
    found: Sequence[Mapping[str, Any]]


def refine(
    asked: Asked,
    store: RecordStore,
    index: VectorIndex,
    episode: Record,
    turns: Sequence[Located],
    own: RecmemSettings,
) -> Refined:
    """Ask for the facts of an episode (Eq. 8: beside those nearest to it); a reply that cannot be read holds
    none.

    Args:
        asked: the model.
        store: the records, in which the episode is.
        index: where they lie, the episode among them.
        episode: that which leaves something out.
        turns: of the exchanges that are new to it, by time.
        own: how many facts are shown, and whether the episode is.

    Raises:
        ModelUnavailable: the model does not answer.
    """
    near = index.nearest(index.row(episode.id), own.k_old, (FACT.folder,))
    known = [store.records[name] for name, _ in near]
    facts = [
        {"id": f"f{number}", "time": one.time, "text": one.summary} for number, one in enumerate(known, 1)
    ]
    text = episode.prose if own.refine == "episode" else ""
    data = asked.ask(REFINE, episode=text, turns=shown(turns), facts=facts)
    return Refined(episode, turns, known, data["facts"] if data else ())


def keep(store: RecordStore, refined: Refined, number: int, own: RecmemSettings) -> list[str]:
    """Put the facts that are new and say where they come from, and archive those that they replace.

    Args:
        store: the records, which are edited.
        refined: what was found.
        number: of the facts' ids.
        own: how many there may be, and whether facts are archived.

    Returns:
        Ids of the records that changed.
    """
    touched: list[str] = []
    old = {f"f{at}": one for at, one in enumerate(refined.known, 1)}
    texts = [one.summary for one in refined.known]
    times = {turn.seq: turn.entry.time for turn in refined.turns}
    for row in refined.found:
        text = " ".join(one_line(clean_text(row["text"])).split())[:SUMMARY].rstrip()
        seqs = named(row["from"], times)
        if not text or not seqs or any(is_duplicate(text, other) for other in texts):
            continue
        if len(touched) >= own.facts_max:
            break
        fact = _fact(store, refined.episode, text, seqs, times[seqs[-1]], row["type"], number)
        store.put(fact)
        store.graph.add(fact.id, Link(SOURCE, refined.episode.id))
        texts.append(text)
        touched.append(fact.id)
        replaced = old.get((row["replaces"] or "").strip())
        if own.supersede and replaced and not is_pinned(replaced) and replaced.id in store.visible:
            store.graph.add(fact.id, Link(VERSION, replaced.id))
            store.archive(replaced.id)
    return touched


def _fact(
    store: RecordStore,
    episode: Record,
    text: str,
    seqs: Sequence[int],
    time: str | None,
    kind: str,
    number: int,
) -> Record:
    refs = tuple(map(Ref, seqs))
    doubted = unverified(Descriptor(text, ()), [store.quote(ref) for ref in refs])
    aux = (("type", kind),) if kind in TYPES else ()
    return Record(
        store.new_id(FACT.prefix, number),
        SPEC,
        text,
        time=time,
        session=episode.session,
        refs=refs,
        aux=(*aux, *(UNVERIFIED if doubted else ())),
    )
