"""REWRITE_CURRENT: the buffer's lines grouped by topic.

Lines under a heading have their topic from extraction. What repeats another line is found by rule, for the
law lets nothing else pass as a repetition (compare.py); a model is asked about the others alone. The draft is
never stored; the planner routes it (plan.py). Where the model forgets, doubles or invents lines, the lines
win.

Source: Infini Memory, section 3.3 and prompt B, as references instead of text. The paper has the model group
all lines of the buffer and settle repetitions and contradictions among them; these are settled once, in
compare.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from infinimem.model import Located, Reason, Withheld
from infinimem.store.view import View
from infinimem.strategies.infini.asking import ask_groups
from infinimem.strategies.infini.compare import Claim, allowed, repeats
from infinimem.strategies.infini.plan import near, open_documents
from infinimem.strategies.infini.spec import InfiniSettings
from infinimem.strategies.infini.tasks import REWRITE
from infinimem.strategies.infini.topics import (
    Topic,
    clean_title,
    entries_of,
    fact,
    heading_of,
    joined,
    known,
    movable,
    packed,
    sections,
    size,
    unsorted,
)
from infinimem.strategies.records.asking import Asker


@dataclass(frozen=True)
class Draft:
    """The buffer, sorted: each line is in one topic, or in one claim whose survivor is in a topic.

    Args:
        titled: the titles that were given when the lines were drawn.
    """

    topics: tuple[Topic, ...]
    claims: tuple[Claim, ...]
    titled: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    withheld: tuple[Withheld, ...] = ()


def rewrite(view: View, asker: Asker, count: int | None = None) -> Draft:
    """Group the buffer's lines; what is too large for one call goes in parts.

    Args:
        count: how many lines, from the first on; None for all.

    Raises:
        ModelUnavailable: the buffer stays as it is.
    """
    places = {place.entry.seq: place for place in movable(view.buffer, view)[:count]}
    claims, withheld = allowed(repeats(place.entry for place in places.values()), places, view)
    gone = {claim.seq for claim in claims}
    live = [place for seq, place in places.items() if seq not in gone]
    untitled = ("", unsorted(view))
    titled = sections(place for place in live if heading_of(place) not in untitled)
    topics = list(titled)
    lines = [Topic("", (place.entry,)) for place in live if heading_of(place) in untitled]
    unmended: list[Reason] = []
    open_ids = open_documents(view) if lines else {}
    for chunk in packed(lines, _share(lines, view.settings.of(InfiniSettings).plan_split_threshold)):
        part = [places[line.entries[0].seq] for line in chunk]
        docs = [known(row, view) for row in near(view, entries_of(chunk), open_ids)]
        found, wrong = _part(part, docs, asker, view)
        topics += found
        unmended += wrong
    notes = [*(f"rewrite: {reason}" for reason in unmended), *map(str, withheld)]
    titles = frozenset(topic.title for topic in titled)
    return Draft(joined(topics), claims, titles, tuple(notes), tuple(withheld))


def _share(lines: Sequence[Topic], limit: int) -> int:
    """Tokens of a part, so that all parts are about as large: a few lines alone are grouped badly."""
    sizes = [size(line.entries) for line in lines]
    parts = -(-sum(sizes) // max(limit, 1))
    return min(limit, -(-sum(sizes) // max(parts, 1)) + max(sizes, default=0))


def _part(
    places: Sequence[Located], docs: Sequence[Mapping[str, object]], asker: Asker, view: View
) -> tuple[list[Topic], Sequence[Reason]]:
    known = {place.entry.seq: place for place in places}
    untitled = unsorted(view)
    facts = [fact(place.entry) for place in places]
    groups, wrong = ask_groups(asker, REWRITE, {"facts": facts, "docs": docs}, known)
    topics = [
        Topic(clean_title(topic["title"]) or untitled, tuple(known[seq].entry for seq in seqs))
        for topic, seqs in groups
    ]
    settled = {seq for _, seqs in groups for seq in seqs}
    missing = [place for place in places if place.entry.seq not in settled]
    return [*topics, *sections(missing, untitled)], wrong
