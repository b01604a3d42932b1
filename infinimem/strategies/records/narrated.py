"""Records in a model's words: cleaned, within bounds, dated, and marked where they claim too much.

Source: RecMem, sections 3.3 and 3.4; xMemory and GAM keep the same with other kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from infinimem.grounding.sentences import sentences
from infinimem.markdown.characters import one_line
from infinimem.strategies.records.codec import clean_prose
from infinimem.strategies.records.descriptor import SUMMARY, Descriptor, descriptor, unverified
from infinimem.strategies.records.record import UNVERIFIED, Record, Ref, moment
from infinimem.strategies.records.record_store import RecordStore

PROSE = 4000
"""Characters of a narrative."""


def one_liner(text: str) -> str:
    """A model's text as a summary."""
    return descriptor(text, ()).cut().summary


def narrative(text: str) -> str:
    """A model's text as prose."""
    return clean_prose(text[:PROSE])


def narrated(
    store: RecordStore,
    name: str,
    text: str,
    refs: Iterable[Ref],
    aux: Sequence[tuple[str, str]] = (),
    keywords: Sequence[str] = (),
) -> Record:
    """A record that tells of turns.

    Args:
        store: the records; it is not edited.
        name: its id, which tells its kind: whether the text is prose, whose first sentence is the summary
            then, or the summary itself.
        text: cleaned by `narrative` or `one_liner`; without any it is an archived record of prose.
        refs: the turns, in any order.
        aux: what else is to be told of it, before the mark.
        keywords: in the model's words too.
    """
    kind = store.spec.kind_of(name)
    prose = text if kind and kind.prose else ""
    summary = one_line(next(sentences(text), ""))[:SUMMARY] if prose else text
    refs = tuple(sorted(set(refs)))
    quotes = [store.quote(ref) for ref in refs]
    doubted = unverified(Descriptor(text, tuple(keywords)), quotes)
    times = [said.time for said in quotes if said.time]
    return Record(
        name,
        store.spec,
        summary,
        tuple(keywords),
        time=max(times, key=moment, default=None),
        refs=refs,
        visible=bool(text),
        aux=(*aux, *(UNVERIFIED if doubted else ())),
        prose=prose,
    )
