"""Semantic refinement: facts that an episode leaves out, each a record of its own.

Source: RecMem, section 3.4, Eq. 8 and 9.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from infinimem.chronology import latest
from infinimem.grounding.claims import is_repetition
from infinimem.model import Entry, Located
from infinimem.strategies.graph.links import Link
from infinimem.strategies.recmem.spec import SPEC, RecmemSettings
from infinimem.strategies.recmem.subconscious import FACT
from infinimem.strategies.recmem.tasks import REFINE, TYPES
from infinimem.strategies.records.asking import Asker, named
from infinimem.strategies.records.narrated import narrated, one_liner
from infinimem.strategies.records.prompt_views import shown_turns
from infinimem.strategies.records.record import Record, Ref
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.vector_index import VectorIndex

VERSION, SOURCE = SPEC.links


@dataclass(frozen=True)
class Refined:
    """What a model found beside an episode, and the facts that it was shown by the ids that it was told."""

    episode: Record
    turns: Sequence[Located]
    known: Mapping[str, Record]
    found: Sequence[Mapping[str, Any]]


def refine(
    asker: Asker,
    store: RecordStore,
    index: VectorIndex,
    episode: Record,
    turns: Sequence[Located],
    own: RecmemSettings,
) -> Refined:
    """Ask for the facts of an episode (Eq. 8: beside those nearest to it); a reply that cannot be read holds
    none.

    Args:
        asker: the model.
        store: the records, in which the episode is.
        index: where they lie, the episode among them.
        episode: that which leaves something out.
        turns: of the exchanges that are new to it, by time.
        own: how many facts are shown, and whether the episode is.

    Raises:
        ModelUnavailable: the model does not answer.
    """
    near = index.nearest(index.row(episode.id), own.k_old, (FACT.folder,))
    known = {f"f{number}": store.records[name] for number, (name, _) in enumerate(near, 1)}
    facts = [{"id": called, "time": one.time, "text": one.summary} for called, one in known.items()]
    text = episode.prose if own.refine == "episode" else ""
    data = asker.ask(REFINE, episode=text, turns=shown_turns(turns), facts=facts)
    return Refined(episode, turns, known, data["facts"] if data else ())


def keep(store: RecordStore, refined: Refined, number: int, own: RecmemSettings) -> None:
    """Put the facts that are new and say where they come from, and archive those that they replace.

    Args:
        store: the records, which are edited.
        refined: what was found.
        number: of the facts' ids.
        own: how many there may be, and whether facts are archived.
    """
    facts = [Entry(0, one.summary, "", one.time) for one in refined.known.values()]
    times = {turn.seq: turn.entry.time for turn in refined.turns}
    most = len(facts) + own.facts_max
    for row in refined.found:
        text, seqs = one_liner(row["text"]), named(row["from"], times)
        new = Entry(0, text, "", latest(times[seq] for seq in seqs))
        if not text or not seqs or any(is_repetition(new, other) for other in facts):
            continue
        if len(facts) >= most:
            break
        facts.append(new)
        aux = [("type", row["type"])] if row["type"] in TYPES else []
        fact = narrated(store, store.new_id(FACT.prefix, number), text, map(Ref, seqs), aux)
        store.put(fact)
        store.graph.add(fact.id, Link(SOURCE, refined.episode.id))
        old = refined.known.get((row["replaces"] or "").strip())
        if own.supersede and old and not old.pinned and old.id in store.visible:
            store.graph.add(fact.id, Link(VERSION, old.id))
            store.archive(old.id)
