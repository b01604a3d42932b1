"""The law: a fact's line is written once, after that it only moves. Pure checks over lines and plans.

    conserved    lines after = lines before + added - removed, by seq and by bytes
    verify       what a plan may do: reasons to refuse it, and archivings that are withheld
    unsupported  what a model's sentence claims that its origin does not hold, or denies

Reason codes of `verify`:
    UNKNOWN_SEQ        a move or an origin names a line that is not in the library
    MOVED_TWICE        a line is moved more than once
    BAD_TARGET         a line would go to, or leave, a document that is not the strategy's
    NO_ORIGIN          a new entry names no origin
    EMPTY_TEXT         a new entry says nothing
    FOREIGN_RECORD     a record outside the strategy's folder
    STALE_RECORD       a record that someone changed since the plan was made (store/plans.py)
    PROTECTED          a new entry would replace a person's line, or a pinned one
and of archivings that are withheld (the line stays live):
    UNKNOWN_SURVIVOR   `by` names no line, or a line that is archived itself
    NOT_A_DUPLICATE    the two texts differ in more than wording
    OTHER_SPEAKER      two people say it: neither repeats nor replaces the other
    NOT_NEWER          what supersedes is older than what it supersedes
    PROTECTED          a person's line, or a pinned one
    TOO_MANY           more than a fifth of the lines of one run
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache

from infinimem import negation
from infinimem.markdown.characters import normalize
from infinimem.model import CURRENT, Entry, Located, Move, Plan, Reason, Withheld

ARCHIVE_SHARE = 0.2
"""Of a run's lines, how many may be archived without a person's word (docs/FORMAT.md)."""
ARCHIVE_FLOOR = 3
"""So many always may: a share of a handful of lines means nothing."""
MAX_NAME = 200
"""Bytes of a part of a document's id: file systems take 255, and ".md" comes behind it."""
NEAR_DUPLICATE = 0.85
"""Share of words that two texts must have in common (Jaccard) to be one fact said twice."""

Line = tuple[int, str]
"""A seq and the bytes of its line."""


def conserved(
    before: Iterable[Line], after: Iterable[Line], added: Iterable[Line] = (), removed: Iterable[Line] = ()
) -> list[Reason]:
    """Check the one equation.

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

Lookup = Callable[[int], Located | None]
"""Finds a line anywhere in the library by its seq."""


@dataclass(frozen=True)
class Verdict:
    """A plan as it may be applied (`plan`), what was withheld from it, and why it is refused."""

    plan: Plan
    withheld: tuple[Withheld, ...]
    refused: tuple[Reason, ...]


def verify(plan: Plan, lookup: Lookup, roots: Sequence[str], approved: Collection[int] = ()) -> Verdict:
    """Check a plan against the lines as they are.

    Args:
        plan: what a strategy wants.
        lookup: finds an entry or an evidence line by its seq.
        roots: the strategy's folders ("topics/"); nothing else may receive a line.
        approved: lines whose archiving a person approved: be they protected or too many, nothing else is
            let pass, and one that may not be archived stays where it is.
    """
    refused = [*_bad_moves(plan.moves, lookup, roots), *_bad_adds(plan, lookup, roots)]
    for put in plan.records:
        if not _under(put.doc_id, roots):
            refused.append(Reason("FOREIGN_RECORD", (), put.doc_id))
        if missing := tuple(seq for seq in put.origin if lookup(seq) is None):
            refused.append(Reason("UNKNOWN_SEQ", missing, put.doc_id))
    if refused:
        return Verdict(plan, (), tuple(refused))
    kept, withheld = _withhold(plan.moves, lookup, approved)
    return Verdict(replace(plan, moves=kept), withheld, ())


def _under(doc_id: str, roots: Sequence[str]) -> bool:
    """Whether it is a document that a strategy may write: below its roots, and readers will see it."""
    parts = doc_id.split("/")
    return any(doc_id.startswith(root) for root in roots) and all(
        part.isprintable() and not part.startswith(".") and 0 < len(part.encode()) <= MAX_NAME
        for part in parts
    )


def _bad_moves(moves: Sequence[Move], lookup: Lookup, roots: Sequence[str]) -> list[Reason]:
    reasons = []
    times = Counter(move.seq for move in moves)
    reasons += [Reason("MOVED_TWICE", (seq,)) for seq, count in sorted(times.items()) if count > 1]
    for move in moves:
        place = lookup(move.seq)
        if place is None:
            reasons.append(Reason("UNKNOWN_SEQ", (move.seq,)))
        elif place.doc_id != CURRENT and not _under(place.doc_id, roots):
            reasons.append(_foreign(place))
        if not _under(move.to, roots):
            reasons.append(Reason("BAD_TARGET", (move.seq,), move.to))
    return reasons


def _foreign(place: Located) -> Reason:
    return Reason("BAD_TARGET", (place.entry.seq,), f"{place.doc_id} is not the strategy's")


def _protected(entry: Entry) -> bool:
    return entry.pinned or entry.source == "human"


def _bad_adds(plan: Plan, lookup: Lookup, roots: Sequence[str]) -> list[Reason]:
    reasons = []
    moved = {move.seq for move in plan.moves}
    for add in plan.adds:
        if not add.text.strip():
            reasons.append(Reason("EMPTY_TEXT", add.origin))
        if not add.origin:
            reasons.append(Reason("NO_ORIGIN", (), add.text[:80]))
        missing = tuple(seq for seq in (*add.origin, *add.replaces) if lookup(seq) is None)
        if missing:
            reasons.append(Reason("UNKNOWN_SEQ", missing, add.text[:80]))
        if add.to != CURRENT and not _under(add.to, roots):
            reasons.append(Reason("BAD_TARGET", add.origin, add.to))
        for place in filter(None, map(lookup, add.replaces)):
            if place.doc_id != CURRENT and not _under(place.doc_id, roots):
                reasons.append(_foreign(place))
            elif _protected(place.entry):
                reasons.append(Reason("PROTECTED", (place.entry.seq,)))
        twice = tuple(seq for seq in add.replaces if seq in moved)
        if twice:
            reasons.append(Reason("MOVED_TWICE", twice))
    return reasons


def _withhold(
    moves: Sequence[Move], lookup: Lookup, approved: Collection[int]
) -> tuple[tuple[Move, ...], tuple[Withheld, ...]]:
    """Turn archivings that may not happen unasked into plain moves, or into nothing where the line stays."""
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
        reason = _why_not(move, old.entry, new, archived, move.seq in approved)
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


def _why_not(
    move: Move, old: Entry, survivor: Located | None, archived: set[int], approved: bool
) -> Reason | None:
    seqs = (move.seq, *((move.by,) if move.by is not None else ()))
    if survivor is None or move.by == move.seq or move.by in archived or is_archive(survivor.doc_id):
        return Reason("UNKNOWN_SURVIVOR", seqs)
    if _protected(old) and not approved:
        return Reason("PROTECTED", seqs)
    new = survivor.entry
    if len({old.fields.get("speaker"), new.fields.get("speaker")} - {None}) > 1:
        return Reason("OTHER_SPEAKER", seqs)
    if move.why == "duplicate" and not is_duplicate(old.text, new.text):
        return Reason("NOT_A_DUPLICATE", seqs)
    if move.why == "superseded" and not is_newer(new, old):
        return Reason("NOT_NEWER", seqs)
    return None


def is_archive(doc_id: str) -> bool:
    """Whether a line there is out of the readers' sight already."""
    return doc_id.startswith(("archive/", "evidence/"))


def is_newer(new: Entry, old: Entry) -> bool:
    """The recency rule: later time; where one is missing or they are equal, higher seq."""
    if new.time and old.time:
        later, earlier = _moment(new.time), _moment(old.time)
        if (later.tzinfo is None) != (earlier.tzinfo is None):
            later, earlier = later.replace(tzinfo=None), earlier.replace(tzinfo=None)
        if "T" not in new.time or "T" not in old.time:  # known to the day only
            return (later.date(), new.seq) > (earlier.date(), old.seq)
        return (later, new.seq) > (earlier, old.seq)
    return new.seq > old.seq


def _moment(time: str) -> datetime:
    """An entry's time; one that a person mistyped is older than all others."""
    try:
        return datetime.fromisoformat(time)
    except ValueError:
        return datetime.min


# ── texts ───────────────────────────────────────────────────────────────────────────────────────

_WORD = re.compile(r"\w+(?:['’]\w+)?")
_NUMBER = re.compile(r"\d+(?:[.,:/]\d+)*")
_QUOTED = re.compile(r'"([^"\n]{2,200})"|“([^”\n]{2,200})”')
_OPENING = re.compile(r"(?:^|[.!?:;]\s+)([A-Z]\w*(?:s|ed|ing))\b(?!')")
"""A capitalised verb at the head of a sentence: "Lives in …", "Moved to …", and, alas, Paris."""
_AROUND = ".,;:!?\"'()[]…“”"
_NOT_NAMES = frozenset(
    """
    i i'm i've i'll i'd a an the this that these those it its he she they we you my his her their
    our your and but or so if when while because as at by for from in of on to with after before
    since until during also user assistant speaker there here what who where why how which some many
    most all both each every today yesterday tomorrow is was are were has have had will would can
    could should may might must do does did be been being
    ate bought got found gave knew left lost made met new now old paid plan said sold spent still
    told took very went won wrote
    """.split()
)


@lru_cache(maxsize=4096)
def normalised(text: str) -> str:
    """Text for comparing: NFKC, case-folded, without the punctuation around words ("C++" keeps its own)."""
    text = normalize("NFKC", text).replace("’", "'")
    words = (word.strip(_AROUND) for word in text.casefold().split())
    return " ".join(word for word in words if word) or text


def _words(text: str) -> list[str]:
    return _WORD.findall(normalize("NFKC", text).casefold().replace("’", "'"))


def is_duplicate(one: str, other: str) -> bool:
    """Whether two lines say the same: equal, or nearly so with equal numbers, names and negations."""
    if normalised(one) == normalised(other):
        return True
    a, b = set(normalised(one).split()), set(normalised(other).split())
    if len(a & b) < NEAR_DUPLICATE * len(a | b):
        return False
    return claims(one) == claims(other) and negation.governed(one) == negation.governed(other)


@lru_cache(maxsize=4096)
def claims(text: str) -> Mapping[str, frozenset[str]]:
    """What in a sentence can be wrong: its numbers, names, quotations and whether it negates."""
    text = normalize("NFKC", text).replace("’", "'")
    words = _WORD.findall(text)
    opening = {match[1] for match in _OPENING.finditer(text)}
    names = frozenset(
        word.removesuffix("'s").casefold()
        for word in words
        if word[0].isupper() and word.removesuffix("'s").casefold() not in _NOT_NAMES and word not in opening
    )
    return {
        "number": frozenset(_NUMBER.findall(text)),
        "name": names,
        "quotation": frozenset(normalised(a or b) for a, b in _QUOTED.findall(text)),
        "negation": frozenset({"not"} if negation.negates(text) else ()),
    }


def unsupported(text: str, origins: Iterable[str]) -> list[str]:
    """What `text` claims that its origins do not hold, or deny (docs/FORMAT.md, One law).

    Args:
        text: a sentence that a model phrased.
        origins: what was said, with the names of those who said it.

    Returns:
        Lines such as 'number 14'; empty when all is borne out.
    """
    origins = list(origins)
    claimed = claims(text)
    held, said, whole = _held("\n".join(_telling(origins, claimed)))
    missing = []
    for kind, found in claimed.items():
        for item in sorted(found - held[kind]):
            if kind == "name" and item in said:
                continue
            if kind == "quotation" and item in whole:
                continue
            missing.append(f"{kind} {item}")
    if negation.lost(text, origins):
        missing.append("negation lost")
    return missing


def _telling(origins: Sequence[str], claimed: Mapping[str, frozenset[str]]) -> Sequence[str]:
    """The origins that may hold any of what is claimed: a topic has thousands, and its summary a few words.

    A quotation may run over several, so all are looked at for one.
    """
    items = claimed["number"] | claimed["name"]
    if len(origins) < 2 or claimed["quotation"]:
        return origins
    return [
        origin
        for origin in origins
        if any(map(_folded(origin).__contains__, items)) or (claimed["negation"] and negation.negates(origin))
    ]


def _folded(text: str) -> str:
    return normalize("NFKC", text).replace("’", "'").casefold()


@lru_cache(maxsize=4)  # one long text is the origin of many sentences, and may be a megabyte
def _held(origin: str) -> tuple[Mapping[str, frozenset[str]], frozenset[str], str]:
    """What an origin claims, its words, and all of it for comparing."""
    words = _words(origin)
    said = frozenset(words) | {word.removesuffix("'s") for word in words}
    return claims.__wrapped__(origin), said, normalised.__wrapped__(origin)
