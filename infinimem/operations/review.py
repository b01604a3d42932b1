"""What awaits a person's review, archivings that the law withheld and what is in the inbox, and the decision.

    7       what receipt 7 withheld
    7:12    of it what concerns line 12
    inbox   all that is in the inbox (docs/FORMAT.md, Inbox); inbox/2023-05-08-s01: of a session; inbox:12

Lines may have moved meanwhile: an archiving takes its line from where it is now. What cannot be done any more
is void: shown once, then dropped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from infinimem import law
from infinimem.errors import LibraryError, UsageError
from infinimem.grounding.sentences import is_repetition
from infinimem.markdown.signature import parse_seqs
from infinimem.model import CURRENT, INBOX, Located, Move, Plan, Receipt
from infinimem.store import spec
from infinimem.store.library import Library
from infinimem.store.plans import REVIEW, home_of
from infinimem.store.view import Rejected, View, archive_of
from infinimem.store.withheld import drop_withheld, mark

CODES = {"PROTECTED": "a person wrote or pinned it", "TOO_MANY": "too many at once"}
"""Why an archiving was withheld, by the law's reason code."""
ALL = "inbox"
"""What names all that is in the inbox."""
_WORDS = {
    "UNKNOWN_SURVIVOR": "the other line is not live any more",
    "OTHER_SPEAKER": "two people say it",
    "NOT_A_DUPLICATE": "the two do not say the same",
    "NOT_NEWER": "the other line is the older one",
}


@dataclass(frozen=True)
class ReviewItem:
    """What would become of one line, `text`, which is at `was` ("" if it is gone) and would go to `now`.

    `item` is the number of the receipt that withheld it, `why` "superseded" or "duplicate", `by` the line
    that would stand for it, `code` why it needs review, one of `CODES`, and `void` why it cannot be done any
    more. In the inbox `item` ends in the session of the line, and `why` is "approved".
    """

    item: str
    seq: int
    was: str
    now: str
    why: str
    text: str
    by: int | None = None
    by_where: str = ""
    by_text: str = ""
    code: str = ""
    void: str = ""


def awaiting(library: Library) -> tuple[ReviewItem, ...]:
    """Everything that awaits review, oldest first; the inbox before the rest."""
    view = library.view()
    rows = inbox(view)
    for proposal in library.proposals():
        move = _here(proposal.move, view)
        void = _void(move, proposal.marks, view)
        was, text = _where(move.seq, view)
        item, now = str(proposal.receipt), archive_of(move.to)
        by = (move.by, *_where(move.by, view))
        rows.append(ReviewItem(item, move.seq, was, now, move.why, text, *by, proposal.code, void))
    return tuple(rows)


def _turns(view: View) -> Iterator[Located]:
    for doc_id in view.below(spec.WAITING):
        yield from view.document(doc_id).entries if not doc_id.startswith(spec.REFUSED_TURNS) else ()


def _cited(view: View, approved: Collection[int] = ()) -> set[int]:
    """Return the seqs from which an entry was drawn that waits, once some are approved, or was refused."""
    ids = (*view.below(spec.HIDDEN[1]), *((INBOX,) if INBOX in view else ()))
    places = (place for doc_id in ids for place in view.document(doc_id).entries)
    return {seq for place in places if place.seq not in approved for seq in place.entry.origin}


def inbox(view: View) -> list[ReviewItem]:
    """Return the entries that await approval, and the turns from which there is none, nor will be."""

    def row(place: Located, said: Located, now: str) -> ReviewItem:
        item = f"{ALL}/{said.doc_id.rpartition('/')[2]}"
        return ReviewItem(item, place.seq, f"{place.doc_id}:{place.start_line}", now, "approved", place.text)

    if not view.initialised:
        return []
    rows = []
    for place in view.document(INBOX).entries if INBOX in view else ():
        stands = {*place.headings} & {spec.INSTRUCTIONS, spec.PREFERENCES}
        is_users = place.entry.source in ("user", "human")
        said = next(filter(None, map(view.entry, place.entry.origin)), place)
        rows.append(row(place, said, spec.STANDING if stands and is_users else CURRENT))
    if turns := [*_turns(view)]:
        known = {place.seq for place in view.uncited()} | _cited(view)
        left = (one for one in turns if one.seq not in known and one.seq not in view.cited)
        rows += [row(turn, turn, home_of(view, turn.doc_id, spec.EVIDENCE)) for turn in left]
    return sorted(rows, key=lambda row: (row.item, row.seq))


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
    receipts = (*_archive(library, yes), *_settle(library, yes, "approved"), *_settle(library, no, "refused"))
    done = {row.seq for row in yes if not row.void}
    drop(library, [*no, *yes, *(row for row in rows if row.seq in done)])
    return receipts


def _here(move: Move, view: View) -> Move:
    """The archiving as it is to be done now: into the archive of the topic that its survivor stands in."""
    survivor = view.entry(move.by) if move.by is not None else None
    return replace(move, to=survivor.doc_id) if survivor and survivor.doc_id.startswith(spec.TOPICS) else move


def _where(seq: int | None, view: View) -> tuple[str, str]:
    place = view.entry(seq) if seq is not None else None
    return (f"{place.doc_id}:{place.start_line}", place.text) if place else ("", "")


def _void(move: Move, marks: Mapping[int, str], view: View) -> str:
    """Return why it cannot be done any more, or ""; `marks` are of the lines as they were."""
    place, survivor = view.entry(move.seq), view.entry(move.by) if move.by is not None else None
    for one in filter(None, (place, survivor)):
        if marks.get(one.seq, "") not in ("", mark(one.text)):
            return f"line {one.seq} was edited since"
    if place is None:
        return "the line is gone"
    if law.is_archive(place.doc_id):
        return f"the line is in {place.doc_id} already"
    plan = Plan(REVIEW, moves=(move,))
    verdict = law.verify(plan, view.entry, (spec.TOPICS,), {move.seq}, same=is_repetition)
    reasons = [*verdict.refused, *(item.reason for item in verdict.withheld)]
    return _WORDS.get(reasons[0].code, str(reasons[0])) if reasons else ""


def _chosen(rows: Sequence[ReviewItem], names: Sequence[str]) -> list[ReviewItem]:
    found: list[ReviewItem] = []
    for name in names:
        item, colon, lines = name.partition(":")
        some = [row for row in rows if item.strip() in (row.item, row.item.partition("/")[0])]
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


def _settle(
    library: Library, rows: Sequence[ReviewItem], why: Literal["approved", "refused"]
) -> Iterator[Receipt]:
    """Approve what is in the inbox, with the turns from which nothing else waits; or refuse it."""
    view, moves = library.view(), dict[int, Move]()
    for row in rows:
        if row.item.startswith(ALL) and (place := view.entry(row.seq)):
            is_turn = place.doc_id != INBOX
            refused = home_of(view, place.doc_id, spec.REFUSED_TURNS) if is_turn else spec.REFUSED
            to = refused if why == "refused" else row.now
            moves[row.seq] = Move(row.seq, to, "".join(place.headings[-1:]), why)
    known, left = _cited(view), _cited(view, moves)
    mine = {seq for place in filter(None, map(view.entry, moves)) for seq in place.entry.origin}
    for turn in _turns(view) if moves and why == "approved" else ():
        if turn.seq not in left and (turn.seq in known or turn.seq in view.cited):
            moves[turn.seq] = Move(turn.seq, home_of(view, turn.doc_id, spec.EVIDENCE), "", why)
        elif turn.seq in mine:  # told, so that who undoes this undoes first what approves the turn
            moves[turn.seq] = Move(turn.seq, turn.doc_id, "", "waits")
    if moves:
        yield from _carried_out(library, view, tuple(moves.values()))


def _archive(library: Library, rows: Sequence[ReviewItem]) -> Iterator[Receipt]:
    """Archive approved lines; one that is to stand for another goes after that."""
    wanted = {(row.item, row.seq) for row in rows if not row.void}
    moves_of = {(str(one.receipt), one.move.seq): one.move for one in library.proposals()}
    left = {move.seq: move for name, move in moves_of.items() if name in wanted}
    while left:
        view = library.view()
        survivors = {move.by for move in left.values()}
        first = {seq: move for seq, move in left.items() if seq not in survivors} or left
        yield from _carried_out(library, view, tuple(_here(first[seq], view) for seq in sorted(first)))
        left = {seq: move for seq, move in left.items() if seq not in first}


def _carried_out(library: Library, view: View, moves: tuple[Move, ...]) -> Iterator[Receipt]:
    plan, approved = Plan(REVIEW, moves=moves), {move.seq for move in moves}
    outcome = library.apply(plan, base=view, strategy="people", model="none", approved=approved)
    if isinstance(outcome, Rejected):
        why = "; ".join(map(str, outcome.reasons))
        raise LibraryError(f"the plan cannot be carried out: {why}; reject it")
    if outcome.receipt:
        yield outcome.receipt


def drop(library: Library, rows: Sequence[ReviewItem]) -> None:
    with library.locked():
        drop_withheld(library.files, {(int(row.item), row.seq) for row in rows if row.item.isdigit()})
