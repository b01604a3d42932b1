"""The law: a fact's line is written once, after that it only moves.

In: a plan and the lines it names, or the lines of two states. Out: the plan as it may be applied, what of it
needs approval, and reasons to refuse it. Promise: pure, and no plan that passes loses or invents a line.

Reason codes of `verify`:
    UNKNOWN_SEQ        a move or an origin names a line that is not in the library
    MOVED_TWICE        a line is moved more than once
    BAD_TARGET         a line would go to, or leave, a document that is not the strategy's
    NO_ORIGIN          a new entry names no origin
    EMPTY_TEXT         a new entry says nothing
    FOREIGN_RECORD     a record outside the strategy's folder
    STALE_RECORD       a record that someone changed since the plan was made (store/plans.py)
    FORGOTTEN          lines were forgotten since the plan was made (store/plans.py)
and of archivings that need approval (the line stays live):
    UNKNOWN_SURVIVOR   `by` names no line, or a line that is archived itself
    NOT_A_DUPLICATE    the two texts differ in more than wording, or tell of what happened on two days
    OTHER_SPEAKER      two people say it: neither repeats nor replaces the other
    NOT_NEWER          what supersedes is older than what it supersedes
    PROTECTED          a person's line, or a pinned one
    NOT_APPROVED       what an import archives, without the import
    TOO_MANY           more than a fifth of the lines of one run
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from infinimem.chronology import Lookup, is_newer
from infinimem.markdown.characters import normalised
from infinimem.model import CURRENT, Entry, Located, Move, Plan, Reason, Withheld

ARCHIVE_SHARE = 0.2
"""Of a run's lines, how many may be archived without approval (docs/FORMAT.md)."""
ARCHIVE_FLOOR = 3
"""So many always may: a share of a handful of lines means nothing."""
MAX_NAME = 200
"""Bytes of a part of a document's id: file systems take 255, and ".md" comes behind it."""

Line = tuple[int, str]
"""A seq and the bytes of its line."""


def conserved(
    before: Iterable[Line], after: Iterable[Line], added: Iterable[Line] = (), removed: Iterable[Line] = ()
) -> list[Reason]:
    """Check that lines after = lines before + added - removed, by seq and by bytes.

    Returns:
        One reason for each line that was lost (LOST) or that came from nowhere (INVENTED).
    """
    left = Counter(before)
    left.update(added)
    left.subtract(removed)
    left.subtract(after)
    return [
        Reason("LOST" if count > 0 else "INVENTED", (seq,), line[:80])
        for (seq, line), count in sorted(left.items())
        if count
    ]


# ── plans ───────────────────────────────────────────────────────────────────────────────────────

Same = Callable[[Entry, Entry], bool]
"""Tells whether a line says what another one says; grounding.claims.is_repetition knows."""


@dataclass(frozen=True)
class Verdict:
    """A plan as it may be applied (`plan`), what of it needs approval, and why it is refused."""

    plan: Plan
    withheld: tuple[Withheld, ...]
    refused: tuple[Reason, ...]


def verify(
    plan: Plan,
    lookup: Lookup,
    roots: Sequence[str],
    approved: Collection[int] = (),
    *,
    same: Same,
    files: Sequence[str] | None = None,
) -> Verdict:
    """Check a plan against the lines as they are.

    Args:
        plan: what a strategy wants.
        lookup: finds an entry or an evidence line by its seq.
        roots: the strategy's folders ("topics/"); nothing else may receive a line.
        approved: lines whose archiving a person approved, even if they are protected or too many; nothing
            else is let pass, and one that may not be archived stays where it is.
        same: what counts as a duplicate.
        files: the folders of its whole files, where those are not its roots.
    """
    refused = [*_bad_moves(plan.moves, lookup, roots), *_bad_adds(plan, lookup, roots)]
    for put in plan.records:
        if not _under(put.doc_id, roots if files is None else files):
            refused.append(Reason("FOREIGN_RECORD", (), put.doc_id))
        if missing := tuple(seq for seq in put.origin if lookup(seq) is None):
            refused.append(Reason("UNKNOWN_SEQ", missing, put.doc_id))
    if refused:
        return Verdict(plan, (), tuple(refused))
    kept, withheld = _withhold(plan.moves, lookup, same, approved)
    return Verdict(replace(plan, moves=kept), withheld, ())


def _under(doc_id: str, roots: Sequence[str]) -> bool:
    """Tell whether a strategy may write a document: it is below its roots, and readers will see it."""
    parts = doc_id.split("/")
    return any(doc_id.startswith(root) for root in roots) and all(
        part.isprintable() and not part.startswith(".") and 0 < len(part.encode()) <= MAX_NAME
        for part in parts
    )


def _bad_moves(moves: Sequence[Move], lookup: Lookup, roots: Sequence[str]) -> list[Reason]:
    times = Counter(move.seq for move in moves)
    reasons = [Reason("MOVED_TWICE", (seq,)) for seq, count in sorted(times.items()) if count > 1]
    for move in moves:
        place = lookup(move.seq)
        if place is None:
            reasons.append(Reason("UNKNOWN_SEQ", (move.seq,)))
        elif place.doc_id != CURRENT and not _under(place.doc_id, roots):
            reasons.append(Reason("BAD_TARGET", (move.seq,), f"{place.doc_id} is not the strategy's"))
        if not _under(move.to, roots):
            reasons.append(Reason("BAD_TARGET", (move.seq,), move.to))
    return reasons


def _protected(entry: Entry) -> bool:
    return entry.pinned or entry.source == "human"


def _bad_adds(plan: Plan, lookup: Lookup, roots: Sequence[str]) -> list[Reason]:
    reasons = []
    for add in plan.adds:
        if not add.text.strip():
            reasons.append(Reason("EMPTY_TEXT", add.origin))
        if not add.origin:
            reasons.append(Reason("NO_ORIGIN", (), add.text[:80]))
        if missing := tuple(seq for seq in add.origin if lookup(seq) is None):
            reasons.append(Reason("UNKNOWN_SEQ", missing, add.text[:80]))
        if add.to != CURRENT and not _under(add.to, roots):
            reasons.append(Reason("BAD_TARGET", add.origin, add.to))
    return reasons


def _withhold(
    moves: Sequence[Move], lookup: Lookup, same: Same, approved: Collection[int]
) -> tuple[tuple[Move, ...], tuple[Withheld, ...]]:
    """Turn archivings that need approval into plain moves, or into nothing if the line stays."""
    headings = {move.seq: move.heading for move in moves if not move.archives}
    archived = {move.seq for move in moves if move.archives}
    allowed = max(ARCHIVE_FLOOR, int(ARCHIVE_SHARE * len(moves)))
    kept: list[Move] = []
    withheld: list[Withheld] = []
    for move in moves:
        if not move.archives:
            kept.append(move)
            continue
        old, new = lookup(move.seq), lookup(move.by) if move.by is not None else None
        assert old is not None
        reason = archive_refusal(move, old.entry, new, lookup, archived, move.seq in approved, same=same)
        exact = new is not None and normalised(old.entry.text) == normalised(new.entry.text)
        if reason is None and not exact and move.seq not in approved:
            reason = None if allowed else Reason("TOO_MANY", (move.seq,))
            allowed -= reason is None
        if reason is None:
            kept.append(move)
            continue
        withheld.append(Withheld(move, reason))
        if old.doc_id != move.to and move.seq not in approved:
            heading = move.heading or headings.get(move.by or 0, "")
            kept.append(replace(move, why="moved", by=None, heading=heading))
    return tuple(kept), tuple(withheld)


def archive_refusal(
    move: Move,
    old: Entry,
    survivor: Located | None,
    lookup: Lookup,
    archived: Collection[int] = (),
    approved: bool = False,
    *,
    same: Same,
) -> Reason | None:
    """Return why this line may not be archived without approval, or None.

    Args:
        move: names both lines.
        old: the line that would go.
        survivor: the one that would stay, where it stands.
        lookup, same: as `verify`.
        archived: lines that go as well.
        approved: whether a person approved it.
    """
    seqs = (move.seq, *((move.by,) if move.by is not None else ()))
    if move.why == "reimported":  # nothing stands for it; whoever imported the note approved
        code = "PROTECTED" if _protected(old) else "" if approved else "NOT_APPROVED"
        return Reason(code, seqs) if code else None
    if survivor is None or move.by == move.seq or move.by in archived or is_archive(survivor.doc_id):
        return Reason("UNKNOWN_SURVIVOR", seqs)
    if _protected(old) and not approved:
        return Reason("PROTECTED", seqs)
    new = survivor.entry
    if len({old.fields.get("speaker"), new.fields.get("speaker")} - {None}) > 1:
        return Reason("OTHER_SPEAKER", seqs)
    if move.why == "duplicate" and not same(old, new):
        return Reason("NOT_A_DUPLICATE", seqs)
    if move.why == "superseded" and not is_newer(new, old, lookup):
        return Reason("NOT_NEWER", seqs)
    return None


def is_archive(doc_id: str) -> bool:
    """Tell whether a line there is out of the readers' sight already."""
    return doc_id.startswith(("archive/", "evidence/"))
