"""Lists that grow by rows: what was drawn from, refused or not answered, and what models were asked.

    .infinimem/drawn        seqs of evidence that entries were drawn from; of a strategy of records drawn-NAME
    .infinimem/refused      turns of which nothing was accepted: readers see the turns themselves
    .infinimem/unanswered-NAME   turns about which no answer of a model was of use, and why
    .infinimem/usage        calls and tokens by day

Where the first is lost (a clone, a copied folder), everything said before the newest cited turn counts as
drawn from: turns are taken in order, and what is still to do is always the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar, cast
from urllib.parse import quote, unquote

from infinimem.markdown.signature import format_seqs, parse_seqs
from infinimem.model import AGAIN, KINDS, TRIES, NewEntry, Plan, Unanswered, Usage
from infinimem.spec import StrategySpec
from infinimem.store.files import MAX_OWNED, Files
from infinimem.store.lines import Seqs
from infinimem.store.spec import EVIDENCE
from infinimem.store.view import View

DRAWN, REFUSED = ".infinimem/drawn", ".infinimem/refused"
UNANSWERED, USAGE = ".infinimem/unanswered", ".infinimem/usage"
LISTED = 20
"""Seqs that a message names."""

T = TypeVar("T")
_TAIL = 128
"""Bytes by which a list that grew is recognised, beside its inode."""
_CHUNK = 1 << 22
"""Bytes of a list that are read at once: one of a large library has a hundred megabytes."""
_END = ";"
"""Closes a row, so that a torn one is told from a whole one: it would name other seqs."""
_SPAN = 10_000
"""Seqs that a row names at most; far below what a reader of such rows takes."""


# ── any list ────────────────────────────────────────────────────────────────────────────────────


class _Reading(NamedTuple):
    """A list as it was read: of which file, as far as which byte, the last bytes before it, and the value."""

    inode: int
    end: int
    tail: bytes
    value: Any


def read(
    files: Files, path: str, empty: Callable[[], T], add: Callable[[T, list[bytes]], T], chunk: int = _CHUNK
) -> T:
    """Return the value of a list's whole rows; what was read of it before is not read again.

    `add` gives the value after more rows; it must not change the one it is given.
    """
    known: _Reading | None = files.lists.get(path)
    if known is None or (data := _after(files, path, known, chunk)) is None:
        data, stamp = files.read_stamped(path, MAX_OWNED, 0, chunk)
        known, data = _Reading(stamp.inode if stamp else 0, 0, b"", empty()), data or b""
    rows = data[len(known.tail) : data.rfind(b"\n") + 1]
    value = add(known.value, rows.split(b"\n")[:-1]) if rows else known.value
    tail = (known.tail + rows)[-_TAIL:]
    files.lists[path] = _Reading(known.inode, known.end + len(rows), tail, value)
    if len(data) == len(known.tail) + chunk:  # the rest is read as though it had been added since
        return read(files, path, empty, add, chunk if value is not known.value else 2 * chunk)
    return cast(T, value)


def _after(files: Files, path: str, known: _Reading, most: int) -> bytes | None:
    """Read on from the known tail; return None if the list is not the known one, grown."""
    size = len(known.tail)
    data, stamp = files.read_stamped(path, MAX_OWNED, known.end - size, size + most)
    same = stamp is not None and stamp.inode == known.inode and size
    return data if same and data and data.startswith(known.tail) else None


# ── evidence that was drawn from ────────────────────────────────────────────────────────────────


def drawn_path(spec: StrategySpec) -> str:
    return f"{DRAWN}-{spec.name}" if spec.sparse else DRAWN


def read_drawn(files: Files, spec: StrategySpec) -> Seqs | None:
    """Return the seqs of evidence that was drawn from; None if no row of that list can be read."""
    return read(files, drawn_path(spec), Seqs, _add_seqs) or None


def read_refused(files: Files) -> Seqs:
    return read(files, REFUSED, Seqs, _add_seqs)


def _add_seqs(before: Seqs, rows: list[bytes]) -> Seqs:
    seqs: set[int] = set()
    for row in rows:
        if row.endswith(_END.encode()):
            with suppress(ValueError):
                seqs.update(parse_seqs(row[:-1].decode("ascii", "replace")))
    return Seqs(seqs, before)


def _seq_rows(seqs: Iterable[int]) -> bytes:
    chosen = sorted(seqs)
    spans = (chosen[at : at + _SPAN] for at in range(0, len(chosen), _SPAN))
    return "".join(f"{format_seqs(span)}{_END}\n" for span in spans).encode()


def note_drawn(files: Files, view: View, seqs: Iterable[int], renumbered: Iterable[int] = ()) -> None:
    """Add to the list, under the lock; a lost one begins with what `view` takes for drawn from.

    `renumbered` are seqs that turns are about to get which were drawn from.
    """
    new = {*renumbered} | {seq for seq in seqs if _is_turn(seq, view)}
    path = drawn_path(view.spec)
    sound = view.drawn is not None and (files.read(path, MAX_OWNED) or b"").endswith(b"\n")
    if not sound:
        new |= view.processed
    if new:
        (files.append if sound else files.replace)(path, _seq_rows(new))


def note_plan(files: Files, view: View, plan: Plan) -> None:
    """Note what a plan drew from, made from this view, under the lock; after a rebuild nothing is."""
    if plan.op == "append" and view.spec.has_entries:
        cited = (seq for add in plan.adds for seq in add.origin)
        if rows := _seq_rows(plan.refused):
            files.append(REFUSED, rows)
        note_drawn(files, view, [*plan.empty, *plan.refused, *cited])
    elif view.spec.sparse and plan.op == "rebuild":
        if files.exists(drawn_path(view.spec)):
            files.remove(drawn_path(view.spec))
    elif view.spec.sparse:
        note_drawn(files, view, plan.empty)


def not_yet_drawn(adds: Sequence[NewEntry], view: View) -> tuple[NewEntry, ...]:
    """Return the new entries but those that another process has drawn from the same turns meanwhile."""
    pending = {place.seq for place in view.uncited({seq for add in adds for seq in add.origin})}

    def is_new(add: NewEntry) -> bool:
        turns = [seq for seq in add.origin if _is_turn(seq, view)]
        return not turns or not pending.isdisjoint(turns)

    return tuple(filter(is_new, adds))


def _is_turn(seq: int, view: View) -> bool:
    place = view.entry(seq)
    return place is not None and place.doc_id.startswith(EVIDENCE)


# ── turns that no answer was of use about ───────────────────────────────────────────────────────


def read_unanswered(files: Files, spec: StrategySpec) -> Mapping[int, Unanswered]:
    """Return the turns of a strategy's list, by seq; where it is lost, tries count anew."""
    return read(files, f"{UNANSWERED}-{spec.name}", dict[int, Unanswered], _add_unanswered)


def _add_unanswered(before: dict[int, Unanswered], rows: list[bytes]) -> dict[int, Unanswered]:
    turns = dict(before)
    for row in rows:
        with suppress(ValueError):
            seqs, kind, model = row.decode("ascii", "replace").split(" ")
            if not model.endswith(_END):
                continue
            model = unquote(model.removesuffix(_END))
            for seq in parse_seqs(seqs):
                last = turns.pop(seq, None)
                tries = last.tries + 1 if last and last.model == model else 1
                if kind != AGAIN:
                    turns[seq] = Unanswered(kind, model, tries)
    return turns


def note_unanswered(files: Files, spec: StrategySpec, kinds: Mapping[int, str], model: str = "") -> None:
    """Add to the list, under the lock, what became of a model's try, by seq."""
    by_kind: dict[str, list[int]] = {}
    for seq, kind in sorted(kinds.items()):
        by_kind.setdefault(kind, []).append(seq)
    rows = (f"{format_seqs(seqs)} {kind} {quote(model, safe='')}{_END}\n" for kind, seqs in by_kind.items())
    if data := "".join(rows).encode():
        files.append(f"{UNANSWERED}-{spec.name}", data)


def newly_unanswered(
    before: Mapping[int, Unanswered], now: Mapping[int, Unanswered]
) -> dict[int, Unanswered]:
    """Return the turns about which a call got no answer of use, by the list before it and now."""
    return {seq: one for seq, one in now.items() if before.get(seq) != one}


def unanswered_message(failed: Mapping[int, Unanswered]) -> str:
    """Say what became of turns about which there was no answer of use, and what can be done."""
    kinds = Counter(one.kind for one in failed.values())
    reasons = [(KINDS.get(kind, kind), number) for kind, number in kinds.items()]
    why = ", ".join(f"{reason}: {number}" if len(kinds) > 1 else reason for reason, number in reasons)
    again = "the model is asked again at the next add, import or consolidate"
    if over := [seq for seq, one in failed.items() if one.tries >= TRIES]:
        again = (
            f"about {format_seqs(over[:LISTED])}{'…' * (len(over) > LISTED)} it was asked {TRIES} times and "
            "is not any more: consolidate --retry asks again, --leave SEQ leaves a turn as it was said"
        )
    turns = f"{len(failed)} turn{'s' * (len(failed) > 1)}"
    return f"no usable answer about {turns} ({why}); what was said is recorded and found; {again}"


# ── what models were asked ──────────────────────────────────────────────────────────────────────


def usage_by_day(files: Files) -> Mapping[str, Usage]:
    """Return the usage by day (ISO 8601, UTC), oldest first; what cannot be read counts for nothing."""
    return dict(sorted(read(files, USAGE, dict[str, Usage], _add_usage).items()))


def _add_usage(before: dict[str, Usage], rows: list[bytes]) -> dict[str, Usage]:
    days = dict(before)
    for row in rows:
        with suppress(ValueError):
            day, *numbers = row.decode("ascii", "replace").split(" ")
            calls, tokens_in, tokens_out = map(int, numbers)
            days[day] = days.get(day, Usage()) + Usage(calls, tokens_in, tokens_out)
    return days


def note_usage(files: Files, day: str, usage: Usage) -> None:
    """Add to a day (ISO 8601, UTC), in one write, so that processes need no lock; nothing without tokens."""
    if usage.tokens_in or usage.tokens_out:
        files.append(USAGE, f"{day} {usage.calls} {usage.tokens_in} {usage.tokens_out}\n".encode())
