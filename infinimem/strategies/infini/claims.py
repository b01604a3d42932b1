"""What a model says about lines that repeat or replace each other, and what of it the law lets pass.

A claim that does not pass costs nothing: its line stays live beside the other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Literal

from infinimem import law
from infinimem.grounding.claims import is_duplicate
from infinimem.model import Move, Plan, Reason, Withheld
from infinimem.store.spec import TOPICS
from infinimem.store.view import View
from infinimem.strategies.infini.asking import Data, once, seq_of


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
