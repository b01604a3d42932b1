"""The law: a fact's line is written once, after that it only moves.

In: a plan and the lines it names, or the lines of two states. Out: the plan as it may be applied, what of it
needs approval, and reasons to refuse it. Promise: pure, and no plan that passes loses or invents a line.
docs/FORMAT.md (Review) says what each reason code means.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from infinimem.markdown.characters import normalised
from infinimem.model import CURRENT, Entry, Located, Move, Plan, Reason, Withheld

ARCHIVE_SHARE = 0.2  # of a run's lines, how many may be archived without approval (docs/FORMAT.md)
ARCHIVE_FLOOR = 3  # so many always may: a share of a handful of lines means nothing
MAX_NAME = 200  # bytes of a part of a document's id: file systems take 255, and ".md" comes behind it

Line = tuple[int, str]  # a seq and the bytes of its line
Lookup = Callable[[int], Located | None]  # finds a line anywhere in the library by its seq


def conserved(
    before: Iterable[Line], after: Iterable[Line], added: Iterable[Line] = (), removed: Iterable[Line] = ()
) -> list[Reason]:
    """Check that lines after = lines before + added - removed, by seq and by bytes; return a reason for each
    that was lost (LOST) or came from nowhere (INVENTED)."""
    left = Counter(before)
    left.update(added)
    left.subtract(removed)
    left.subtract(after)
    return [
        Reason("LOST" if count > 0 else "INVENTED", (seq,), line[:80])
        for (seq, line), count in sorted(left.items())
        if count
    ]


Same = Callable[[Entry, Entry], bool]  # whether a line says what another one says (is_repetition)


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
    """Check a plan against the lines as they are; `roots` are the strategy's folders, `files` those of its
    whole files, where they are others, `approved` lines whose archiving a person approved."""
    times = Counter(move.seq for move in plan.moves)
    refused = [Reason("MOVED_TWICE", (seq,)) for seq, count in sorted(times.items()) if count > 1]
    for move in plan.moves:
        place = lookup(move.seq)
        if place is None:
            refused.append(Reason("UNKNOWN_SEQ", (move.seq,)))
        elif place.doc_id != CURRENT and not _under(place.doc_id, roots):
            refused.append(Reason("BAD_TARGET", (move.seq,), f"{place.doc_id} is not the strategy's"))
        if not _under(move.to, roots):
            refused.append(Reason("BAD_TARGET", (move.seq,), move.to))
    for add in plan.adds:
        if not add.text.strip():
            refused.append(Reason("EMPTY_TEXT", add.origin))
        if not add.origin:
            refused.append(Reason("NO_ORIGIN", (), add.text[:80]))
        if missing := tuple(seq for seq in add.origin if lookup(seq) is None):
            refused.append(Reason("UNKNOWN_SEQ", missing, add.text[:80]))
        if add.to != CURRENT and not _under(add.to, roots):
            refused.append(Reason("BAD_TARGET", add.origin, add.to))
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


def _protected(entry: Entry) -> bool:
    return entry.pinned or entry.source == "human"


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
        survivor: the line that would stay, where it stands.
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


def said_at(entry: Entry, lookup: Lookup) -> str | None:
    """Return when a line was said: the latest time of its turns, else its own."""
    origins = (place.entry.time for seq in entry.origin if (place := lookup(seq)))
    return latest(origins) or entry.time


def happened(entry: Entry, lookup: Lookup) -> str | None:
    """Return when it happened, if that is not when it was said; reads older lines as `said_at` does."""
    if when := entry.fields.get("when"):
        return when
    own, said = (entry.time or "")[:10], (said_at(entry, lookup) or "")[:10]
    return own if own and own != said else None


def latest(times: Iterable[str | None]) -> str | None:
    """Return the latest of some times, as it is written; None if none is known."""
    known = [time for time in times if time]
    return max(known, key=lambda time: (_moment(time).replace(tzinfo=None), time), default=None)


def is_newer(new: Entry, old: Entry, lookup: Lookup = lambda seq: None) -> bool:
    """Apply the recency rule: said later; if one time is missing or they are equal, higher seq."""
    time, before = said_at(new, lookup), said_at(old, lookup)
    if time and before:
        later, earlier = _moment(time), _moment(before)
        if (later.tzinfo is None) != (earlier.tzinfo is None):
            later, earlier = later.replace(tzinfo=None), earlier.replace(tzinfo=None)
        if "T" not in time or "T" not in before:  # known to the day only
            return (later.date(), new.seq) > (earlier.date(), old.seq)
        return (later, new.seq) > (earlier, old.seq)
    return new.seq > old.seq


def _moment(time: str) -> datetime:
    """Return an entry's time; one that a person mistyped is older than all others."""
    try:
        return datetime.fromisoformat(time)
    except ValueError:
        return datetime.min
