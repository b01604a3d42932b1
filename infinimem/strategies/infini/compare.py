"""COMPARE: which lines repeat others, which newer ones outdate.

Repetitions are found by rule: the law takes nothing for one but what
differs in wording only. Which lines newer ones make untrue a model is asked once for a whole consolidation,
and it is shown those lines alone that come in near to others. A claim that the law would not pass goes back
once, with the reason; if it insists, the line stays live beside the other, and the receipt says why.

Source: Infini Memory, section 3.3 and prompts B and D, which settle both while they rewrite the buffer and
each document. Here no document is shown for that: what is near is looked up.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from infinimem import law
from infinimem.grounding.claims import find_duplicates, is_repetition
from infinimem.model import Entry, Move, Plan, Reason, Why, Withheld
from infinimem.store.spec import TOPICS
from infinimem.store.state.withheld import ASKED
from infinimem.store.view import View
from infinimem.strategies.infini.spec import InfiniSettings
from infinimem.strategies.infini.tasks import COMPARE
from infinimem.strategies.infini.topics import Account, Topic, brief, packed, seq_of
from infinimem.strategies.records.asking import Asker, Data
from infinimem.terms import query_terms

NEAR = 0.15
"""Cosine from which two lines are near, their terms weighed by how few lines hold them. Of the 14 facts of
sample_library that newer ones replace 12 are found with it, and 89 lines are shown; with 0.25 10 and 46, with
0.35 6 and 24."""
FEWEST = 100
"""Lines of which there are taken to be, where there are less: of a few, most hold any word that two share."""
NEAREST = 2
"""Lines that one which comes in is compared with, at most."""


def claim(seq: int, by: int, why: Why) -> Move:
    """That a line may go to the archive, because another says the same, or what holds now. Of which document
    it is the archive, the plan will tell."""
    return Move(seq, f"{TOPICS}x", why=why, by=by)


def compare(
    fresh: Iterable[Entry], pool: Mapping[int, Entry], view: View, asker: Account
) -> tuple[Move, ...]:
    """Compare what comes in with what stands near to it (`pool`), and with each other.

    Returns the claims that hold, each with a survivor that stays.
    """
    incoming = {entry.seq: entry for entry in fresh}
    if not incoming:
        return ()
    pool = {**pool, **incoming}
    said_again = find_duplicates(entry for _, entry in sorted(pool.items()))
    claims = {seq: claim(seq, by, "duplicate") for seq, by in said_again if {seq, by} & incoming.keys()}
    entries = [entry for seq, entry in sorted(pool.items()) if seq not in claims]
    groups = near_groups(
        [sorted(query_terms(entry.text)) for entry in entries],
        NEAREST,
        {at for at, entry in enumerate(entries) if entry.seq in incoming},
        lambda one, other: _may_outdate(entries[one], entries[other], view),
    )
    unmended: list[Reason] = []
    topics = [Topic(str(n), tuple(entries[at] for at in group)) for n, group in enumerate(groups, 1)]
    for part in packed(topics, view.settings.of(InfiniSettings).plan_split_threshold):
        answers, wrong = _ask(part, incoming, view, asker)
        claims |= {move.seq: move for move in answers}
        unmended += wrong
    held, withheld = allowed(claims.values(), incoming, view)
    why = [item.reason for item in withheld]
    asker.note(*(f"compare: {reason}" for reason in unmended if reason not in why))
    asker.withhold(withheld)
    return held


def near_groups(
    terms: Sequence[Sequence[str]],
    nearest: int,
    among: Collection[int],
    may: Callable[[int, int], bool] = lambda one, other: True,
) -> list[list[int]]:
    """Groups of texts that are near to each other, given their sorted terms; positions, ascending.

    Args:
        nearest: each is joined with so many others at most.
        among: those of which a group has one at least.
        may: whether two may be joined.
    """
    import numpy as np

    holding: defaultdict[str, list[int]] = defaultdict(list)
    for at, own in enumerate(terms):
        for term in own:
            holding[term].append(at)
    count = max(len(terms), FEWEST)
    weight = {term: math.log(1 + count / len(those)) ** 2 for term, those in holding.items()}
    length = np.array([math.sqrt(sum(sorted(weight[term] for term in own))) for own in terms])
    places = {term: np.array(those) for term, those in holding.items()}
    group = list(range(len(terms)))

    def first(at: int) -> int:
        while group[at] != at:
            at = group[at]
        return at

    for at in sorted(among):
        shared = np.zeros(len(terms))
        for term in terms[at]:
            shared[places[term]] += weight[term]
        shared[at] = 0.0
        (close,) = np.nonzero((shared > 0.0) & (shared >= NEAR * length[at] * length))
        by_nearness = close[np.argsort(-shared[close] / length[close], kind="stable")].tolist()
        for other in islice((other for other in by_nearness if may(at, other)), nearest):
            group[max(first(at), first(other))] = min(first(at), first(other))
    members: defaultdict[int, list[int]] = defaultdict(list)
    for at in range(len(terms)):
        members[first(at)].append(at)
    return [those for _, those in sorted(members.items()) if len(those) > 1]


def _may_outdate(one: Entry, other: Entry, view: View) -> bool:
    """Whether the law would let one of two lines go for the other, and they were not said in one breath."""
    if set(one.origin).intersection(other.origin):
        return False
    new, old = (one, other) if law.is_newer(one, other, view.entry) else (other, one)
    move = claim(old.seq, new.seq, "superseded")
    reason = law.archive_refusal(move, old, view.entry(new.seq), view.entry, same=is_repetition)
    return reason is None or reason.code in ASKED


def _ask(
    topics: Sequence[Topic], incoming: Collection[int], view: View, asker: Asker
) -> tuple[list[Move], Sequence[Reason]]:
    shown = {entry.seq for topic in topics for entry in topic.entries}

    def read(data: Data) -> tuple[list[Move], list[Reason]]:
        claims: list[Move] = []
        wrong: list[Reason] = []
        for item in data["superseded"]:
            old, new = seq_of(item["old"]), seq_of(item["new"])
            if old is None or old not in shown:
                wrong.append(Reason("UNKNOWN", (), item["old"][:20]))
            elif new is None or new not in shown or new == old:
                wrong.append(Reason("UNKNOWN_SURVIVOR", (old,), item["new"][:20]))
            else:
                claims.append(claim(old, new, "superseded"))
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
    claims: Iterable[Move], run: Iterable[int], view: View
) -> tuple[tuple[Move, ...], list[Withheld]]:
    """Return the claims that the law lets pass, each pointing at a line that stays; and why the others do
    not.

    There is at most one for each seq; `run` are the seqs that the plan will touch, of which the law
    archives a share.
    """
    left = {move.seq: move for move in claims}
    lines = sorted({*run, *left})
    withheld: list[Withheld] = []
    while True:
        final = {move.seq: _followed(move, left) for move in left.values()}
        moves = tuple(final[seq] if seq in final else Move(seq, f"{TOPICS}x") for seq in lines)
        verdict = law.verify(Plan(moves=moves), view.entry, (TOPICS,), same=is_repetition)
        if verdict.refused:
            return (), [*withheld, *(Withheld(moves[0], reason) for reason in verdict.refused)]
        refused = {item.move.seq: item for item in verdict.withheld}
        if not refused:
            return tuple(final[seq] for seq in sorted(final)), withheld
        # one that leans on a refused claim is looked at again, unless all do: a circle
        for item in [
            item for seq, item in refused.items() if left[seq].by not in refused
        ] or refused.values():
            withheld.append(item)
            del left[item.move.seq]


def _followed(move: Move, claims: Mapping[int, Move]) -> Move:
    """A claim with the survivor at the end of its chain; in a circle one that goes as well."""
    seen = {move.seq}
    while move.by is not None and move.by in claims and move.by not in seen:
        seen.add(move.by)
        step = claims[move.by]
        move = replace(move, by=step.by, why=step.why if move.why == "duplicate" else move.why)
    return move
