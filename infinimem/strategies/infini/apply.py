"""Laid-out documents and claims into one plan: where each line goes, and why.

It is the last word on conservation: every line that comes in has exactly one move.

Source: Infini Memory, algorithm 1, lines 17-23.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from infinimem.markdown.characters import clean_text, one_line
from infinimem.model import CURRENT, Derived, Move, Plan, Why
from infinimem.store.view import View
from infinimem.strategies.infini.asking import Asker
from infinimem.strategies.infini.claims import Claim, allowed
from infinimem.strategies.infini.layout import Laid, Target, lay_out
from infinimem.strategies.infini.topics import heading_of

_WHY: dict[str, Why] = {"split": "split", "merge": "merged"}


def apply(
    op: str,
    targets: Sequence[Target],
    claims: Iterable[Claim],
    view: View,
    asker: Asker,
    notes: Iterable[str] = (),
) -> Plan:
    """Lay out every target and propose the whole as one plan.

    Args:
        op: "consolidate", "split" or "merge".
        targets: documents with what comes into them; no line comes in twice.
        claims: what is known of lines that are in no target: each survivor is in one.

    Raises:
        ModelUnavailable: nothing is proposed.
    """
    return compose(op, [(target, lay_out(target, view, asker)) for target in targets], claims, view, notes)


def compose(
    op: str,
    laid: Sequence[tuple[Target, Laid]],
    claims: Iterable[Claim],
    view: View,
    notes: Iterable[str] = (),
) -> Plan:
    """The plan that the layouts and claims come to. Asks no model."""
    moves: dict[int, Move] = {}
    home: dict[int, tuple[str, str]] = {}
    said = {claim.seq: claim for _, layout in reversed(laid) for claim in reversed(layout.claims)}
    said |= {claim.seq: claim for claim in claims}
    for target, layout in laid:
        incoming = {entry.seq for entry in target.incoming}
        home |= {place.entry.seq: (target.doc_id, heading_of(place)) for place in target.places}
        for seq, heading in layout.headings.items():
            home[seq] = (target.doc_id, heading)
            why = _WHY.get(op, "moved") if seq in incoming else "moved"
            moves[seq] = Move(seq, target.doc_id, heading, why)
    for claim in said.values():  # a line that came into no target goes where its survivor is
        home.setdefault(claim.seq, home[claim.by])
        place = view.entry(claim.seq)
        if place is not None and place.doc_id == CURRENT:
            moves.setdefault(claim.seq, Move(claim.seq, *home[claim.seq]))
    held, withheld = allowed(said.values(), moves, view)
    for claim in held:
        moves[claim.seq] = Move(claim.seq, home[claim.by][0], home[claim.seq][1], claim.why, claim.by)
    said_of = [
        *notes,
        *(note for _, layout in laid for note in layout.notes),
        *map(str, withheld),
    ]
    gone = {claim.seq for claim in held}
    return Plan(
        op,
        moves=tuple(moves.values()),
        derived=tuple(found for target, layout in laid if (found := _described(target, layout, gone))),
        notes=tuple(dict.fromkeys(one_line(clean_text(note)) for note in said_of)),
        withheld=tuple(withheld),
    )


def _described(target: Target, layout: Laid, gone: set[int]) -> Derived | None:
    """The summary, with the lines that it describes."""
    seqs = {place.entry.seq for place in target.places} | {entry.seq for entry in target.incoming}
    return Derived(target.doc_id, layout.summary, tuple(sorted(seqs - gone))) if seqs - gone else None
