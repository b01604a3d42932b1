"""What waits for a person's word: archivings that the law withheld, plans that were kept. Their word, done.

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
from infinimem.grounding.claims import is_duplicate
from infinimem.markdown.signature import parse_seqs
from infinimem.model import Move, Plan, Receipt
from infinimem.store.library import Library
from infinimem.store.outcome import Rejected
from infinimem.store.plans import REVIEW
from infinimem.store.spec import INFINI
from infinimem.store.state import kept_plans, withheld
from infinimem.store.state.kept_plans import Kept
from infinimem.store.state.withheld import Proposal, mark
from infinimem.store.view import View, archive_of

_WORDS = {
    "UNKNOWN_SURVIVOR": "the other line is not live any more",
    "OTHER_SPEAKER": "two people say it",
    "NOT_A_DUPLICATE": "the two do not say the same",
    "NOT_NEWER": "the other line is the older one",
}


@dataclass(frozen=True)
class Waiting:
    """What would become of one line.

    Args:
        item: what it belongs to, "7" or "p1".
        seq: the line.
        was: document and line where it is now; "" if it is gone.
        now: the document that would receive it.
        heading: its section there.
        why: "moved", "superseded", "duplicate", …; "rewritten" where a new line would stand for it.
        text: how it reads.
        by: the line that would stand for it, for an archiving.
        by_where, by_text: where that one is, and how it reads; of a rewriting the new text.
        code: why it waits: "PROTECTED", "TOO_MANY", or "PLAN" for a kept plan.
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


def waiting(library: Library) -> tuple[Waiting, ...]:
    """Everything that waits, oldest first: withheld archivings by receipt, then kept plans."""
    view = library.view()
    rows = [_withheld(one, view) for one in library.proposals()]
    for plan in kept_plans.plans(library.files):
        rows += _planned(plan, view)
    return tuple(rows)


def drop_void(library: Library, rows: Sequence[Waiting]) -> None:
    """Drop what cannot be done any more."""
    if void := [row for row in rows if row.void]:
        with suppress(LibraryError):  # of a disk that refuses, or while another writes: the next time
            _drop(library, void)


def decide(library: Library, approve: Sequence[str] = (), reject: Sequence[str] = ()) -> tuple[Receipt, ...]:
    """Do what a person approved, and drop what they rejected.

    Args:
        library: the library.
        approve, reject: items, whole ("7", "p1") or some lines of them ("7:12,15").

    Returns:
        The receipts of what was done.

    Raises:
        UsageError: nothing that waits has that name; nothing is done.
        LibraryError: a line named alone cannot be approved any more; nothing is done.
    """
    rows = waiting(library)
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
            receipts.append(_carry_out(library, plan, seqs))
    done = {row.seq for row in yes if not row.void}
    _drop(library, [*no, *yes, *(row for row in rows if row.seq in done and row.code != "PLAN")])
    return tuple(receipts)


# ── what waits ──────────────────────────────────────────────────────────────────────────────────


def _withheld(proposal: Proposal, view: View) -> Waiting:
    move = _here(proposal.move, view)
    void = _edited(proposal.marks, (move.seq, move.by), view) or _void(move, view)
    return _row(str(proposal.receipt), move, view, proposal.code, void)


def _here(move: Move, view: View) -> Move:
    """The archiving as it is to be done now: into the archive of the topic that its survivor stands in."""
    survivor = view.entry(move.by) if move.by is not None else None
    there = survivor is not None and survivor.doc_id.startswith(INFINI.writes)
    return replace(move, to=survivor.doc_id) if survivor and there else move


def _planned(plan: Kept, view: View) -> Iterator[Waiting]:
    item = f"p{plan.number}"
    for move in plan.plan.moves:
        void = _left(plan, move.seq, view)
        if not void and move.archives:
            void = _edited(plan.marks, (move.seq, move.by), view) or _void(move, view)
        yield _row(item, move, view, "PLAN", void)
    for add in plan.plan.adds:
        for seq in sorted(kept_plans.seqs_of(add)):
            place = view.entry(seq)
            void = "" if place else "the line is gone"
            if add.replaces:
                void = _left(plan, seq, view) or _edited(plan.marks, (seq,), view)
            yield Waiting(
                item,
                seq,
                f"{place.doc_id}:{place.start_line}" if place else "",
                add.to,
                add.heading,
                "rewritten" if add.replaces else "added",
                place.text if place else "",
                by_text=add.text,
                code="PLAN",
                void=void,
            )


def _row(item: str, move: Move, view: View, code: str, void: str) -> Waiting:
    place = view.entry(move.seq)
    by = view.entry(move.by) if move.by is not None else None
    return Waiting(
        item,
        move.seq,
        f"{place.doc_id}:{place.start_line}" if place else "",
        archive_of(move.to) if move.archives else move.to,
        "" if move.archives else move.heading,
        move.why,
        place.text if place else "",
        move.by,
        f"{by.doc_id}:{by.start_line}" if by else "",
        by.text if by else "",
        code,
        void,
    )


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
    verdict = law.verify(plan, view.entry, INFINI.writes, {move.seq}, same=is_duplicate)
    reasons = [*verdict.refused, *(item.reason for item in verdict.withheld)]
    return _WORDS.get(reasons[0].code, str(reasons[0])) if reasons else ""


# ── a person's word ─────────────────────────────────────────────────────────────────────────────


def _chosen(rows: Sequence[Waiting], names: Sequence[str]) -> list[Waiting]:
    """The rows that names stand for."""
    found: list[Waiting] = []
    for name in names:
        item, colon, lines = name.partition(":")
        some = [row for row in rows if row.item == item.strip()]
        if not some:
            raise UsageError(f"nothing that waits is called {item!r}; infinimem review lists what does")
        if colon:
            try:
                seqs = {seq for part in lines.split(",") for seq in parse_seqs(part.strip())}
            except ValueError as error:
                raise UsageError(f"{name!r}: write ITEM:SEQ,SEQ, for example {item}:{some[0].seq}") from error
            if missing := (seqs or {0}) - {row.seq for row in some}:
                raise UsageError(
                    f"{item} says nothing of line {min(missing)}; infinimem review shows its lines"
                )
            some = [row for row in some if row.seq in seqs]
        found += [row for row in some if row not in found]
    return found


def _archive(library: Library, rows: Sequence[Waiting]) -> Iterator[Receipt]:
    """Archive approved lines; one that is to stand for another goes after that."""
    wanted = {row.seq for row in rows if row.code != "PLAN" and not row.void}
    left = {
        one.move.seq: one.move
        for one in library.proposals()
        if one.move.seq in wanted
        and (str(one.receipt), one.move.seq) in {(row.item, row.seq) for row in rows}
    }
    while left:
        view = library.view()
        survivors = {move.by for move in left.values()}
        first = {seq: move for seq, move in left.items() if seq not in survivors} or left
        moves = tuple(_here(first[seq], view) for seq in sorted(first))
        yield from _applied(library, Plan(REVIEW, moves=moves), view, set(first))
        left = {seq: move for seq, move in left.items() if seq not in first}


def _carry_out(library: Library, plan: Kept, seqs: Collection[int]) -> Receipt:
    """Do what a kept plan says of these lines."""
    named = {move.seq for move in plan.plan.moves} | {
        seq for add in plan.plan.adds for seq in kept_plans.seqs_of(add)
    }
    left_out = sorted(named - set(seqs))
    wanted = replace(kept_plans.without(plan, left_out).plan, op=REVIEW, rejected=())
    archived = {move.seq for move in wanted.moves if move.archives}
    if not (wanted.moves or wanted.adds):
        raise LibraryError(
            f"p{plan.number}: a new line goes with all that it stands for; approve those together"
        )
    (receipt,) = _applied(library, wanted, library.view(), archived, plan.strategy, plan.model)
    return receipt


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
        raise LibraryError(
            f"the plan cannot be carried out: {'; '.join(map(str, outcome.reasons))}; reject it"
        )
    if outcome.receipt:
        yield outcome.receipt


def _drop(library: Library, rows: Sequence[Waiting]) -> None:
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
            f"a plan of {strategy} cannot be kept, for review goes line by line; look at it without --keep"
        )
    with library.locked():
        now = library.clock().isoformat(timespec="seconds")
        return f"p{kept_plans.keep(library.files, plan, view, now, strategy, model)}"
