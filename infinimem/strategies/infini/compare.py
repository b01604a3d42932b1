"""REWRITE_CURRENT and COMPARE: the buffer's lines by topic; which repeat others, which newer ones outdate.

Lines under a heading have their topic from extraction; a model groups the others, and where it forgets,
doubles or invents lines, the lines win. Repetitions are found by rule: the law takes nothing for one but what
differs in wording only. Which lines newer ones make untrue a model is asked once for a whole consolidation,
and it is shown those lines alone that come in near to others. A claim that the law would not pass goes back
once, with the reason; if it insists, the line stays live beside the other, and the receipt says why.

Source: Infini Memory, section 3.3 and prompts B and D, which settle both while they rewrite the buffer and
each document. Here no document is shown for that: what is near is looked up.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

from infinimem import law
from infinimem.grounding.claims import find_duplicates, is_repetition
from infinimem.llm.shown import shown
from infinimem.model import Entry, Located, Move, Plan, Reason, Withheld
from infinimem.store.spec import TOPICS
from infinimem.store.state.withheld import ASKED
from infinimem.store.view import View
from infinimem.strategies.infini.plan import near, open_documents
from infinimem.strategies.infini.spec import InfiniSettings
from infinimem.strategies.infini.tasks import COMPARE, REWRITE
from infinimem.strategies.infini.topics import (
    Topic,
    ask_groups,
    brief,
    clean_title,
    entries_of,
    fact,
    heading_of,
    joined,
    movable,
    packed,
    sections,
    seq_of,
    size,
    title_of,
    unsorted,
)
from infinimem.strategies.records.asking import Asker, Data
from infinimem.terms import query_terms

# ── compare ──────────────────────────────────────────────────────────────────────────────────────


NEAR = 0.15
"""Cosine from which two lines are near, their terms weighed by how few lines hold them. Of the 14 facts of
sample_library that newer ones replace 12 are found with it, and 89 lines are shown; with 0.25 10 and 46, with
0.35 6 and 24."""
FEWEST = 100
"""Lines of which there are taken to be, where there are less: of a few, most hold any word that two share."""
NEAREST = 2
"""Lines that one which comes in is compared with, at most."""
DOCUMENTS = 8
"""Documents beside those that lines go to which may hold what is near."""


@dataclass(frozen=True)
class Claim:
    """Line `seq` may go to the archive because line `by` says the same, or what holds now."""

    seq: int
    by: int
    why: Literal["duplicate", "superseded"]


@dataclass(frozen=True)
class Comparison:
    """The claims that hold, each with a survivor that stays; and what is to be said of the others."""

    claims: tuple[Claim, ...]
    notes: tuple[str, ...] = ()
    withheld: tuple[Withheld, ...] = ()


def repeats(entries: Iterable[Entry]) -> list[Claim]:
    """Lines that say what another of them says, by rule."""
    return [Claim(seq, by, "duplicate") for seq, by in find_duplicates(entries)]


def compare(
    fresh: Iterable[Entry], standing: Iterable[Entry], known: Iterable[Claim], view: View, asker: Asker
) -> Comparison:
    """Compare what comes in with what stands where it goes or near to there, and with each other.

    `known` are claims of other lines that come in, whose survivors are among these.
    """
    incoming = {entry.seq: entry for entry in fresh}
    claims = {claim.seq: claim for claim in known}
    if not incoming:
        return Comparison(tuple(claims.values()))
    pool = {entry.seq: entry for entry in standing} | incoming
    for row in near(view, incoming.values(), open_documents(view))[:DOCUMENTS]:
        pool |= {place.entry.seq: place.entry for place in movable(view.document(row.id), view)}
    said_again = repeats(entry for _, entry in sorted(pool.items()))
    claims |= {claim.seq: claim for claim in said_again if {claim.seq, claim.by} & incoming.keys()}
    pool = {seq: entry for seq, entry in pool.items() if seq not in claims}
    unmended: list[Reason] = []
    topics = [Topic(str(at), lines) for at, lines in enumerate(_near(pool, incoming, view), 1)]
    for part in packed(topics, view.settings.of(InfiniSettings).plan_split_threshold):
        found, wrong = _ask(part, incoming, view, asker)
        claims |= {claim.seq: claim for claim in found}
        unmended += wrong
    held, withheld = allowed(claims.values(), incoming, view)
    why = [item.reason for item in withheld]
    notes = [f"compare: {reason}" for reason in unmended if reason not in why]
    return Comparison(held, (*notes, *map(str, withheld)), tuple(withheld))


def _near(pool: Mapping[int, Entry], incoming: Collection[int], view: View) -> Iterator[tuple[Entry, ...]]:
    """Groups of lines that are near to each other, one at least of each coming in; by seq."""
    import numpy as np

    entries = [entry for _, entry in sorted(pool.items())]
    terms = [sorted(query_terms(entry.text)) for entry in entries]
    holding: defaultdict[str, list[int]] = defaultdict(list)
    for at, own in enumerate(terms):
        for term in own:
            holding[term].append(at)
    lines = max(len(entries), FEWEST)
    weight = {term: math.log(1 + lines / len(those)) ** 2 for term, those in holding.items()}
    length = np.array([math.sqrt(sum(sorted(weight[term] for term in own))) for own in terms])
    places = {term: np.array(those) for term, those in holding.items()}
    group = list(range(len(entries)))

    def first(at: int) -> int:
        while group[at] != at:
            at = group[at]
        return at

    for at in (at for at, entry in enumerate(entries) if entry.seq in incoming):
        shared = np.zeros(len(entries))
        for term in terms[at]:
            shared[places[term]] += weight[term]
        shared[at] = 0.0
        (close,) = np.nonzero((shared > 0.0) & (shared >= NEAR * length[at] * length))
        nearest = close[np.argsort(-shared[close] / length[close], kind="stable")].tolist()
        others = (other for other in nearest if _may_outdate(entries[at], entries[other], view))
        for other in islice(others, NEAREST):
            group[max(first(at), first(other))] = min(first(at), first(other))
    members: defaultdict[int, list[Entry]] = defaultdict(list)
    for at, entry in enumerate(entries):
        members[first(at)].append(entry)
    yield from (tuple(those) for _, those in sorted(members.items()) if len(those) > 1)


def _may_outdate(one: Entry, other: Entry, view: View) -> bool:
    """Whether the law would let one of two lines go for the other, and they were not said in one breath."""
    if set(one.origin).intersection(other.origin):
        return False
    new, old = (one, other) if law.is_newer(one, other, view.entry) else (other, one)
    move = _archiving(Claim(old.seq, new.seq, "superseded"))
    reason = law.archive_refusal(move, old, view.entry(new.seq), view.entry, same=is_repetition)
    return reason is None or reason.code in ASKED


def _ask(
    topics: Sequence[Topic], incoming: Collection[int], view: View, asker: Asker
) -> tuple[list[Claim], Sequence[Reason]]:
    shown = {entry.seq for topic in topics for entry in topic.entries}

    def read(data: Data) -> tuple[list[Claim], list[Reason]]:
        claims: list[Claim] = []
        wrong: list[Reason] = []
        for item in data["superseded"]:
            old, new = seq_of(item["old"]), seq_of(item["new"])
            if old is None or old not in shown:
                wrong.append(Reason("UNKNOWN", (), item["old"][:20]))
            elif new is None or new not in shown or new == old:
                wrong.append(Reason("UNKNOWN_SURVIVOR", (old,), item["new"][:20]))
            else:
                claims.append(Claim(old, new, "superseded"))
        return claims, wrong

    def check(data: Data) -> list[Reason]:
        claims, wrong = read(data)
        _, withheld = allowed(claims, incoming, view)
        return [*wrong, *(item.reason for item in withheld if item.reason.code not in ASKED)]

    groups = [
        {"heading": topic.title, "facts": [brief(entry) for entry in topic.entries]} for topic in topics
    ]
    data, wrong = asker.ask_checked(COMPARE, {"groups": groups}, check)
    return (read(data)[0] if data is not None else []), wrong


def allowed(
    claims: Iterable[Claim], run: Iterable[int], view: View
) -> tuple[tuple[Claim, ...], list[Withheld]]:
    """Return the claims that the law lets pass, each pointing at a line that stays; and why the others do
    not.

    There is at most one for each seq; `run` are the seqs that the plan will touch, of which the law
    archives a share.
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
        verdict = law.verify(Plan(moves=moves), view.entry, (TOPICS,), same=is_repetition)
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


# ── rewrite ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Draft:
    """The buffer, sorted: each line is in one topic, or in one claim whose survivor is; and which were
    `titled`."""

    topics: tuple[Topic, ...]
    claims: tuple[Claim, ...]
    titled: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    withheld: tuple[Withheld, ...] = ()


def rewrite(view: View, asker: Asker, count: int | None = None) -> Draft:
    """Group the buffer's first lines, or all; what is too large for one call goes in parts."""
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
        docs = [_offered(row.id, view) for row in near(view, entries_of(chunk), open_ids)]
        found, wrong = _part(part, docs, asker, view)
        topics += found
        unmended += wrong
    notes = [*(f"rewrite: {reason}" for reason in unmended), *map(str, withheld)]
    titles = frozenset(topic.title for topic in titled)
    return Draft(joined(topics), claims, titles, tuple(notes), tuple(withheld))


def _offered(doc_id: str, view: View) -> dict[str, object]:
    """A document as a model is told of it."""
    told = {"title": title_of(doc_id, view), "tokens": view.row(doc_id).tokens}
    return {**told, "told": [shown(told)]}


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
