"""REWRITE_CURRENT: the buffer's lines grouped by topic, and what of them repeats or replaces another.

The draft is never stored; the planner routes it (plan.py). Where the model forgets, doubles or invents
lines, the lines win. A claim that the law would not pass goes back to the model once, with the reason; if it
insists, the line stays live beside the other, and the receipt says why.

Source: Infini Memory, section 3.3 and prompt B, as references instead of text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from infinimem import law
from infinimem.grounding.claims import is_duplicate
from infinimem.model import Entry, Located, Move, Plan, Reason, Withheld
from infinimem.store.spec import TOPICS
from infinimem.store.state.withheld import ASKED
from infinimem.store.view import View
from infinimem.strategies.infini.asking import Asker, Data, once, seq_of
from infinimem.strategies.infini.plan import near, open_documents
from infinimem.strategies.infini.spec import InfiniSettings
from infinimem.strategies.infini.tasks import REWRITE
from infinimem.strategies.infini.topics import (
    Topic,
    clean_title,
    entries_of,
    fact,
    joined,
    known,
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
    unmended: list[Reason] = []
    open_ids = open_documents(view)
    for chunk in packed(lines, _share(lines, view.settings.of(InfiniSettings).plan_split_threshold)):
        part = [places[line.entries[0].seq] for line in chunk]
        docs = [known(row, view) for row in near(view, entries_of(chunk), open_ids)]
        found, said, wrong = _part(part, docs, asker, view)
        topics += found
        claims += said
        unmended += wrong
    held, withheld = allowed(claims, places, view)
    entries = {seq: place.entry for seq, place in places.items()}
    topics += _returned(topics, claims, {claim.seq for claim in held}, entries, unsorted(view))
    why = [item.reason for item in withheld]
    notes = [f"rewrite: {reason}" for reason in unmended if reason not in why]
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
    places: Sequence[Located], docs: Sequence[Mapping[str, object]], asker: Asker, view: View
) -> tuple[list[Topic], list[Claim], tuple[Reason, ...]]:
    known = {place.entry.seq: place for place in places}
    untitled = unsorted(view)

    def check(data: Data) -> list[Reason]:
        return problems(data, "topics", known, view)

    facts = [fact(place.entry) for place in places]
    reply, wrong = asker.ask(REWRITE, {"facts": facts, "docs": docs}, check)
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


@dataclass(frozen=True)
class Claim:
    """Line `seq` may go to the archive because line `by` says the same, or what holds now."""

    seq: int
    by: int
    why: Literal["duplicate", "superseded"]


def sorted_out(
    data: Data, key: str, known: Collection[int]
) -> tuple[list[list[int]], list[Claim], list[Reason]]:
    """What a reply puts where, and what it would archive; a line in both stays where it is put.

    Args:
        data: a reply with `duplicates` and `superseded`, and groups with `fact_ids` under `key`.
        known: the seqs that the model was shown.

    Returns:
        The groups as seqs, the claims, and what is wrong with either.
    """
    said: list[tuple[str, str, Literal["duplicate", "superseded"]]] = [
        *((item["discarded"], item["kept"], "duplicate") for item in data["duplicates"]),
        *((item["old"], item["new"], "superseded") for item in data["superseded"]),
    ]
    groups = [*(group["fact_ids"] for group in data[key]), *([gone] for gone, _, _ in said)]
    placed, reasons = once(groups, known)
    count = len(data[key])
    claims: list[Claim] = []
    for seqs, (_, survivor, why) in zip(placed[count:], said, strict=True):
        for seq in seqs:
            by = seq_of(survivor)
            if by is None or by not in known or by == seq:
                reasons.append(Reason("UNKNOWN_SURVIVOR", (seq,), survivor[:20]))
            else:
                claims.append(Claim(seq, by, why))
    return placed[:count], claims, reasons


def problems(data: Data, key: str, known: Collection[int], view: View) -> list[Reason]:
    """What a model can mend of a reply (`sorted_out`), claims that the law would not let pass among it."""
    _, claims, reasons = sorted_out(data, key, known)
    _, withheld = allowed(claims, known, view)
    return [*reasons, *(item.reason for item in withheld if item.reason.code not in ASKED)]


def allowed(
    claims: Iterable[Claim], run: Iterable[int], view: View
) -> tuple[tuple[Claim, ...], list[Withheld]]:
    """The claims that the law lets pass, each pointing at a line that stays.

    Args:
        claims: at most one for each seq.
        run: the seqs that the plan will touch; the law archives only a share of them.

    Returns:
        The claims that hold, and why the others do not.
    """
    left = {claim.seq: claim for claim in claims}
    lines = sorted({*run, *left})
    withheld: list[Withheld] = []
    while True:
        final = {claim.seq: claim for claim in _followed(left)}
        circling = [seq for seq in left if seq not in final]
        withheld += [
            Withheld(_archiving(claim), Reason("UNKNOWN_SURVIVOR", (seq, claim.by), "a circle"))
            for seq in circling
            for claim in [left.pop(seq)]
        ]
        moves = tuple(_archiving(final[seq]) if seq in final else Move(seq, f"{TOPICS}x") for seq in lines)
        verdict = law.verify(Plan(moves=moves), view.entry, (TOPICS,), same=is_duplicate)
        if verdict.refused:
            move = moves[0]
            return (), [*withheld, *(Withheld(move, reason) for reason in verdict.refused)]
        refused = {item.move.seq: item for item in verdict.withheld}
        if not refused:
            return tuple(final[seq] for seq in sorted(final)), withheld
        for seq, item in refused.items():
            if left[seq].by not in refused:  # one that leans on a refused claim is looked at again
                withheld.append(item)
                del left[seq]


def _archiving(claim: Claim) -> Move:
    return Move(claim.seq, f"{TOPICS}x", why=claim.why, by=claim.by)


def _followed(claims: dict[int, Claim]) -> Iterable[Claim]:
    """Each claim with the survivor at the end of its chain; claims that run in a circle are left out."""
    for claim in claims.values():
        final, seen = claim, {claim.seq}
        while final.by in claims and final.by not in seen:
            seen.add(final.by)
            step = claims[final.by]
            final = replace(final, by=step.by, why=step.why if final.why == "duplicate" else final.why)
        if final.by not in seen:
            yield final
