"""REWRITE_CURRENT: the buffer's lines grouped by topic, and what of them repeats or replaces another.

The draft is never stored; the planner routes it (plan.py). Where the model forgets, doubles or invents
lines, the lines win.

Source: Infini Memory, section 3.3 and prompt B, as references instead of text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from infinimem.llm.tasks import REWRITE
from infinimem.model import Entry, Located, Reason, Withheld
from infinimem.store.view import View
from infinimem.strategies.infini.asking import Asker, Data
from infinimem.strategies.infini.claims import Claim, allowed, sorted_out
from infinimem.strategies.infini.topics import (
    Topic,
    clean_title,
    fact,
    joined,
    movable,
    packed,
    sections,
    size,
)


@dataclass(frozen=True)
class Draft:
    """The buffer, sorted: each line is in one topic, or in one claim whose survivor is in a topic."""

    topics: tuple[Topic, ...]
    claims: tuple[Claim, ...]
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
    lines = [Topic("", (place.entry,)) for place in places.values()]
    topics: list[Topic] = []
    claims: list[Claim] = []
    notes: list[str] = []
    for chunk in packed(lines, _share(lines, view.settings.infini.plan_split_threshold)):
        part = [places[line.entries[0].seq] for line in chunk]
        found, said, wrong = _part(part, asker, unsorted(view))
        topics += found
        claims += said
        notes += [f"rewrite: {reason}" for reason in wrong]
    held, withheld = allowed(claims, places, view)
    entries = {seq: place.entry for seq, place in places.items()}
    topics += _returned(topics, claims, {claim.seq for claim in held}, entries, unsorted(view))
    return Draft(joined(topics), held, (*notes, *map(str, withheld)), tuple(withheld))


def _share(lines: Sequence[Topic], limit: int) -> int:
    """Tokens of a part, so that all parts are about as large: a few lines alone are grouped badly."""
    sizes = [size(line.entries) for line in lines]
    parts = -(-sum(sizes) // max(limit, 1))
    return min(limit, -(-sum(sizes) // max(parts, 1)) + max(sizes, default=0))


def unsorted(view: View) -> str:
    """The title for lines that no one named one for."""
    return f"Unsorted {view.epoch + 1}"


def _part(
    places: Sequence[Located], asker: Asker, untitled: str
) -> tuple[list[Topic], list[Claim], tuple[Reason, ...]]:
    known = {place.entry.seq: place for place in places}

    def check(data: Data) -> list[Reason]:
        return sorted_out(data, "topics", known)[2]

    facts = [fact(place.entry) for place in places]
    reply, wrong = asker.ask(REWRITE, {"facts": facts}, check)
    if (data := reply.data) is None:
        return list(sections(places, untitled)), [], wrong
    placed, claims, _ = sorted_out(data, "topics", known)
    topics = [
        Topic(clean_title(topic["title"]) or untitled, tuple(known[seq].entry for seq in seqs))
        for topic, seqs in zip(data["topics"], placed, strict=True)
    ]
    settled = {seq for seqs in placed for seq in seqs} | {claim.seq for claim in claims}
    missing = [place for place in places if place.entry.seq not in settled]
    return [*topics, *sections(missing, untitled)], claims, wrong


def _returned(
    topics: Sequence[Topic],
    claims: Sequence[Claim],
    held: set[int],
    entries: Mapping[int, Entry],
    untitled: str,
) -> list[Topic]:
    """The lines of withheld claims, as additions to the topics of their survivors."""
    home = {entry.seq: topic.title for topic in topics for entry in topic.entries}
    by = {claim.seq: claim.by for claim in claims}
    back = []
    for seq in by:
        if seq not in held:
            survivor, seen = by[seq], {seq}
            while survivor in by and survivor not in home and survivor not in seen:
                seen.add(survivor)
                survivor = by[survivor]
            back.append(Topic(home.get(survivor, untitled), (entries[seq],)))
    return back
