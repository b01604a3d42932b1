"""What awaits a person's review: archivings that the law withheld, plans that were kept; and the decision.

    7        what receipt 7 withheld
    p1       kept plan 1
    p1:12    of it what concerns line 12

Lines may have moved meanwhile: an archiving takes its line from where it is now, a kept plan leaves out what
left its place. What cannot be done any more is void: shown once, then dropped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from infinimem import law
from infinimem.errors import LibraryError, UsageError
from infinimem.grounding.claims import is_repetition
from infinimem.markdown.signature import parse_seqs
from infinimem.model import Move, Plan, Receipt
from infinimem.store.library import Library
from infinimem.store.plans import REVIEW
from infinimem.store.receipts import last_forget
from infinimem.store.spec import TOPICS
from infinimem.store.state import kept_plans, withheld
from infinimem.store.state.kept_plans import Kept
from infinimem.store.state.withheld import mark
from infinimem.store.view import Rejected, View, archive_of

CODES = {"PROTECTED": "a person wrote or pinned it", "TOO_MANY": "too many at once"}
"""Why an archiving was withheld, by the law's reason code."""
_WORDS = {
    "UNKNOWN_SURVIVOR": "the other line is not live any more",
    "OTHER_SPEAKER": "two people say it",
    "NOT_A_DUPLICATE": "the two do not say the same",
    "NOT_NEWER": "the other line is the older one",
}


@dataclass(frozen=True)
class ReviewItem:
    """What would become of one line.

    Args:
        item: what it belongs to, "7" or "p1".
        seq: the line.
        was: document and line where it is now; "" if it is gone.
        now: the document that would receive it.
        heading: its section there.
        why: "moved", "superseded", "duplicate", …; "added" where a new line is drawn from it.
        text: how it reads.
        by: the line that would stand for it, for an archiving.
        by_where, by_text: where that one is, and how it reads; of a rewriting the new text.
        code: why it needs review: "PROTECTED", "TOO_MANY", or "PLAN" for a kept plan.
        void: why it cannot be done any more; "" if it can.
    """

    item: str
    seq: int
    was: str
    now: str
    heading: str
    why: str
    text: str
    by: int | None = None
    by_where: str = ""
    by_text: str = ""
    code: str = ""
    void: str = ""


def awaiting(library: Library) -> tuple[ReviewItem, ...]:
    """Everything that awaits review, oldest first: withheld archivings by receipt, then kept plans."""
    view = library.view()
    rows = []
    for proposal in library.proposals():
        move = _here(proposal.move, view)
        void = _edited(proposal.marks, (move.seq, move.by), view) or _void(move, view)
        rows.append(_of_move(str(proposal.receipt), move, view, proposal.code, void))
    for plan in kept_plans.plans(library.files):
        rows += _planned(plan, view)
    return tuple(rows)


def drop_void(library: Library, rows: Sequence[ReviewItem]) -> None:
    """Drop what cannot be done any more."""
    if void := [row for row in rows if row.void]:
        with suppress(LibraryError):  # of a disk that refuses, or while another writes: the next time
            _drop(library, void)


def decide(library: Library, approve: Sequence[str] = (), reject: Sequence[str] = ()) -> tuple[Receipt, ...]:
    """As `Memory.decide`; where an item cannot be named or approved, nothing is done."""
    rows = awaiting(library)
    yes, no = _chosen(rows, approve), _chosen(rows, reject)
    if both := {(row.item, row.seq) for row in yes} & {(row.item, row.seq) for row in no}:
        item, seq = min(both)
        raise UsageError(f"{item}:{seq} is both approved and rejected; choose one")
    for row in _chosen(rows, [name for name in approve if ":" in name]):
        if row.void:
            raise LibraryError(f"{row.item}:{row.seq} cannot be approved: {row.void}")
    receipts = [*_archive(library, yes)]
    for plan in kept_plans.plans(library.files):
        seqs = {row.seq for row in yes if row.item == f"p{plan.number}" and not row.void}
        if seqs:
            receipts += _carry_out(library, plan, seqs)
    done = {row.seq for row in yes if not row.void}
    _drop(library, [*no, *yes, *(row for row in rows if row.seq in done and row.code != "PLAN")])
    return tuple(receipts)


# ── what awaits review ──────────────────────────────────────────────────────────────────────────────────


def _here(move: Move, view: View) -> Move:
    """The archiving as it is to be done now: into the archive of the topic that its survivor stands in."""
    survivor = view.entry(move.by) if move.by is not None else None
    there = survivor is not None and survivor.doc_id.startswith(TOPICS)
    return replace(move, to=survivor.doc_id) if survivor and there else move


def _planned(plan: Kept, view: View) -> Iterator[ReviewItem]:
    item = f"p{plan.number}"
    for move in plan.plan.moves:
        void = _left(plan, move.seq, view)
        if not void and move.archives:
            void = _edited(plan.marks, (move.seq, move.by), view) or _void(move, view)
        yield _of_move(item, move, view, "PLAN", void)
    for add in plan.plan.adds:
        for seq in sorted(set(add.origin)):
            void = "" if view.entry(seq) else "the line is gone"
            was, text = _where(seq, view)
            yield ReviewItem(
                item, seq, was, add.to, add.heading, "added", text, by_text=add.text, code="PLAN", void=void
            )


def _of_move(item: str, move: Move, view: View, code: str, void: str) -> ReviewItem:
    now, heading = (archive_of(move.to), "") if move.archives else (move.to, move.heading)
    was, text = _where(move.seq, view)
    by_where, by_text = _where(move.by, view)
    return ReviewItem(
        item, move.seq, was, now, heading, move.why, text, move.by, by_where, by_text, code, void
    )


def _where(seq: int | None, view: View) -> tuple[str, str]:
    """Document and line, and the text; "" for a line that is gone."""
    place = view.entry(seq) if seq is not None else None
    return (f"{place.doc_id}:{place.start_line}", place.text) if place else ("", "")


def _left(plan: Kept, seq: int, view: View) -> str:
    place, stood = view.entry(seq), plan.stood.get(seq)
    if place is None:
        return "the line is gone"
    return "" if place.doc_id == stood else f"the line went from {stood} to {place.doc_id}"


def _edited(marks: Mapping[int, str], seqs: Collection[int | None], view: View) -> str:
    for seq in seqs:
        place = view.entry(seq) if seq is not None else None
        if seq is not None and place and marks.get(seq, "") not in ("", mark(place.text)):
            return f"line {seq} was edited since"
    return ""


def _void(move: Move, view: View) -> str:
    """Why the law does not let a line be archived, even where a person wants it."""
    place = view.entry(move.seq)
    if place is None:
        return "the line is gone"
    if law.is_archive(place.doc_id):
        return f"the line is in {place.doc_id} already"
    plan = Plan(REVIEW, moves=(move,))
    verdict = law.verify(plan, view.entry, (TOPICS,), {move.seq}, same=is_repetition)
    reasons = [*verdict.refused, *(item.reason for item in verdict.withheld)]
    return _WORDS.get(reasons[0].code, str(reasons[0])) if reasons else ""


# ── the decision ─────────────────────────────────────────────────────────────────────────────


def _chosen(rows: Sequence[ReviewItem], names: Sequence[str]) -> list[ReviewItem]:
    """The rows that names stand for."""
    found: list[ReviewItem] = []
    for name in names:
        item, colon, lines = name.partition(":")
        some = [row for row in rows if row.item == item.strip()]
        if not some:
            raise UsageError(f"nothing named {item!r} awaits review; infinimem review lists what does")
        if colon:
            try:
                seqs = {seq for part in lines.split(",") for seq in parse_seqs(part.strip())}
            except ValueError as error:
                raise UsageError(f"{name!r}: write ITEM:SEQ,SEQ, for example {item}:{some[0].seq}") from error
            if missing := (seqs or {0}) - {row.seq for row in some}:
                raise UsageError(f"{item} has no line {min(missing)}; infinimem review shows its lines")
            some = [row for row in some if row.seq in seqs]
        found += [row for row in some if row not in found]
    return found


def _archive(library: Library, rows: Sequence[ReviewItem]) -> Iterator[Receipt]:
    """Archive approved lines; one that is to stand for another goes after that."""
    wanted = {(row.item, row.seq) for row in rows if row.code != "PLAN" and not row.void}
    moves_of = {(str(one.receipt), one.move.seq): one.move for one in library.proposals()}
    left = {move.seq: move for name, move in moves_of.items() if name in wanted}
    while left:
        view = library.view()
        survivors = {move.by for move in left.values()}
        first = {seq: move for seq, move in left.items() if seq not in survivors} or left
        moves = tuple(_here(first[seq], view) for seq in sorted(first))
        yield from _applied(library, Plan(REVIEW, moves=moves), view, set(first))
        left = {seq: move for seq, move in left.items() if seq not in first}


def _carry_out(library: Library, plan: Kept, seqs: Collection[int]) -> Iterator[Receipt]:
    """Do what a kept plan says of these lines."""
    named = {move.seq for move in plan.plan.moves}.union(*(add.origin for add in plan.plan.adds))
    wanted = replace(kept_plans.without(plan, sorted(named - set(seqs))).plan, op=REVIEW, rejected=())
    archived = {move.seq for move in wanted.moves if move.archives}
    if not (wanted.moves or wanted.adds):
        raise LibraryError(
            f"p{plan.number}: a new line goes with all that it stands for; approve those together"
        )
    return _applied(library, wanted, library.view(), archived, plan.strategy, plan.model)


def _applied(
    library: Library,
    plan: Plan,
    base: View,
    approved: Collection[int],
    strategy: str = "people",
    model: str = "none",
) -> Iterator[Receipt]:
    outcome = library.apply(plan, base=base, strategy=strategy, model=model, approved=approved)
    if isinstance(outcome, Rejected):
        why = "; ".join(map(str, outcome.reasons))
        raise LibraryError(f"the plan cannot be carried out: {why}; reject it")
    if outcome.receipt:
        yield outcome.receipt


def _drop(library: Library, rows: Sequence[ReviewItem]) -> None:
    with library.locked():
        withheld.drop(library.files, {(int(row.item), row.seq) for row in rows if row.code != "PLAN"})
        for plan in kept_plans.plans(library.files):
            if gone := {row.seq for row in rows if row.item == f"p{plan.number}"}:
                kept_plans.write(library.files, kept_plans.without(plan, gone))


def keep(library: Library, plan: Plan, view: View, strategy: str, model: str) -> str:
    """Write a plan down for a person to look at.

    Args:
        plan: made from `view`.
        strategy, model: who made it.

    Returns:
        What it is called.

    Raises:
        UsageError: it is of records, which are no lines that one could approve or reject.
    """
    if plan.records:
        raise UsageError(
            f"a plan of {strategy} cannot be kept, because review is line by line; look at it without --keep"
        )
    with library.locked() as newest:
        if last_forget(newest) != last_forget(view):
            raise LibraryError("lines were forgotten while the plan was made; make it again")
        now = library.clock().isoformat(timespec="seconds")
        return f"p{kept_plans.keep(library.files, plan, view, now, strategy, model)}"
