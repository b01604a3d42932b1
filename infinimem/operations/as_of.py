"""The library as it stood at a moment, and a copy in a folder of its own: what would happen, happens there.

Later receipts are taken back one by one, newest first. Pure. What a receipt moved goes back where it was;
what was said or drawn later is not there yet; lines that a person edited or deleted read as they did when
they were last seen. People's own notes are as they are now: nothing records how they were.

A copy goes when its block ends. It lies in the cache, so that a `forget` takes it away, and has the library's
vectors, which may have been paid for.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from infinimem.errors import LibraryError, UsageError
from infinimem.markdown.document import Document
from infinimem.markdown.signature import tombstone
from infinimem.model import Receipt
from infinimem.operations.provenance import REPLACED, recorded
from infinimem.spec import folders
from infinimem.store import sequence, state
from infinimem.store.files import MAX_OWNED, Files
from infinimem.store.folders import is_inside
from infinimem.store.library import Clock, Library
from infinimem.store.line_map import Reverse, from_line_map, line_map, reading, reverted
from infinimem.store.lines import block_of
from infinimem.store.receipts import forgotten, last_forget, named, quoted, receipts_of, reverse_diffs
from infinimem.store.spec import EVIDENCE, JOURNAL
from infinimem.store.view import Scope, View, whole
from infinimem.user_folders import SETTINGS, cache_folder, delete_cache

_AGO = re.compile(r"(\d{1,4})([dwmy])\Z")
_DAYS = {"d": 1, "w": 7, "m": 30, "y": 365}
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}\Z")
_RECEIPT = re.compile(r"(?:journal/)?\d+-(?:[a-z]|[0-9a-f]{6})")
_STATE = (".infinimem/", ".infinimem/withheld/")


@dataclass(frozen=True)
class Moment:
    """A moment between two writes: the numbers of the last receipt (0 for none) and of the last seq."""

    receipt: int
    seq: int


def moment(view: View, name: str, now: datetime | None = None) -> Moment:
    """Parse what `Memory.at` takes. A seq is the moment before the next one was given, a date the end of that
    day; a time without a zone is UTC; "7d" is so long before `now`."""
    receipts = list(receipts_of(view))
    if now and (ago := _AGO.match(name)):
        days = min(int(ago[1]) * _DAYS[ago[2]], now.toordinal() - 2)  # not before the year 1
        return _at(view, receipts, now - timedelta(days=days))
    if (seq := whole(name)) is not None:
        return Moment(max((r.number for r in receipts if r.high <= seq), default=0), seq)
    if _RECEIPT.match(name):
        receipt = named(receipts, name)
        return Moment(receipt.number, receipt.high)
    until = _time(f"{name}T23:59:59.999999" if _DATE.match(name) else name)
    if until is None:
        raise UsageError(
            f"{name!r} is not a moment; give a seq, a time such as 2025-03-03T14:05 or 7d, or a receipt's id"
        )
    return _at(view, receipts, until)


def _time(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _at(view: View, receipts: Sequence[Receipt], until: datetime) -> Moment:
    """Return the moment of a time: the last receipt's, and of later lines those that may have been recorded
    by then: before a turn that was, and before the first that was said later."""
    done = [r for r in receipts if (time := _time(r.time)) is not None and time <= until]
    number, seq = max(((r.number, r.high) for r in done), default=(0, 0))
    ahead = min((r.high for r in receipts if r.number > number), default=view.max_seq)
    turns = [place for doc_id in view.owned(EVIDENCE) for place in view.document(doc_id).entries]
    recorded = {p.seq for p in turns if (t := _time(p.entry.fields.get("observed", ""))) and t <= until}
    seq = max({seq} | {one for one in recorded if one <= ahead})
    later = (p.seq for p in turns if p.seq > seq and (t := _time(p.entry.known_time)) and t > until)
    return Moment(number, min({*later, ahead + 1}) - 1)


def as_of(view: View, at: Moment) -> View:
    documents = {doc_id: view.document(doc_id) for doc_id in view.ids("all")}
    lines = {seq: tombstone(seq) for seq in forgotten(receipts_of(view))}
    for receipt in reversed(list(receipts_of(view, at.receipt))):
        backs = reverse_diffs(documents.pop(receipt.id))
        documents = _without_later(view, documents, receipt.high)
        for document in documents.values():
            lines.update((place.seq, place.entry.line) for place in document.entries)
        documents = _before(documents, receipt, backs, lines)
    return view.showing(_without_later(view, documents, at.seq))


def _without_later(view: View, documents: Mapping[str, Document], seq: int) -> dict[str, Document]:
    left: dict[str, Document] = {}
    for doc_id, document in documents.items():
        later = {
            place.seq
            for place in document.entries
            if seq < place.seq and block_of(place.seq) == block_of(seq)
        }
        if not later or view.is_note(doc_id):
            left[doc_id] = document
        elif (rest := document.without(later)).entries or not doc_id.startswith(EVIDENCE):
            left[doc_id] = rest
    return left


def _before(
    documents: dict[str, Document], receipt: Receipt, backs: Sequence[Reverse], lines: Mapping[int, str]
) -> dict[str, Document]:
    left = dict(documents)
    for back in backs:
        here = documents.get(back.doc_id)
        rows = reverted(back, line_map(here))
        if back.is_new or back.is_lost:
            left.pop(back.doc_id, None)
        elif rows is not None:  # of a line that is nowhere any more there is nothing to show
            rows = [row for row in rows if row[0] != "@" or int(row[1:]) in lines]
            left[back.doc_id] = from_line_map(back.doc_id, rows, lines)
        elif not back.doc_id.startswith(folders().whole):  # a record that someone changed is as it is now
            # Of others the lines go back, the rest stays as someone made it.
            here = here or Document.empty(back.doc_id)
            came = {row.seq for row in receipt.rows if row.now == here.id != row.was}
            there = {place.seq for place in here.entries} - came
            away = [r.seq for r in receipt.rows if r.was == here.id != r.now and r.seq not in there]
            left[here.id] = here.without(came).insert([lines[seq] for seq in away if seq in lines])
    for doc_id in {row.was for row in receipt.rows if row.why == "moved by hand"} - left.keys():
        left[doc_id] = Document.empty(doc_id)
    return _as_seen(left, receipt, lines)


def _as_seen(
    documents: dict[str, Document], receipt: Receipt, lines: Mapping[int, str]
) -> dict[str, Document]:
    """Take back what a person did before the receipt: lines read as they were last seen, where they stood."""
    old = {seq: entry.line for seq, entry in quoted(receipt).items()}
    edited: dict[str, dict[int, str]] = {}
    away, back = defaultdict[str, set[int]](set), defaultdict[str, list[str]](list)
    for row in receipt.rows:
        by_hand = row.why == "moved by hand"
        line = old.get(row.seq, lines.get(row.seq) if by_hand else None)
        if line is None:
            continue
        if row.why == "edited" and row.was in documents:
            edited.setdefault(row.was, {})[row.seq] = line
        elif row.why == "deleted" or (by_hand and row.now in documents):
            back[row.was].append(line)
            for doc_id in {row.was, row.now} if by_hand else ():
                away[doc_id].add(row.seq)
    for doc_id, seqs in away.items():
        documents[doc_id] = documents[doc_id].without(seqs)
    for doc_id, some in back.items():
        documents[doc_id] = documents.get(doc_id, Document.empty(doc_id)).insert(some)
    return documents | {doc_id: reading(documents[doc_id], those) for doc_id, those in edited.items()}


Kind = Literal["new", "edited", "moved", "replaced", "gone"]


@dataclass(frozen=True)
class FactChange:
    """A fact that is other than it was: its words before and after, "" where it was not live, and its place.

    kind: new; edited; moved, with the same words; replaced, by line `by`, whose words are `now`; gone.
    """

    kind: Kind
    seq: int
    was: str
    now: str
    where: str
    time: str
    by: int | None = None


@dataclass(frozen=True)
class FactChanges:
    """What changed between two moments, by seq, and the receipts of that time."""

    rows: tuple[FactChange, ...]
    receipts: tuple[Receipt, ...]


def changes(view: View, span: str | None, now: datetime) -> FactChanges:
    """Return what changed by "7", a receipt (None: the newest), or between "2025-03-01..2025-03-08", moments,
    of which the second may be left out and a number is a receipt's. Of records, turns that are new."""
    receipts = tuple(receipts_of(view))
    parts = (span or "").partition("..")
    first, dots, last = (named(receipts, one).id if whole(one) is not None else one for one in parts)
    if dots:
        start = moment(view, first, now)
        end = moment(view, last, now) if last else None
    elif receipts:
        one = named(receipts, span) if span else max(receipts, key=lambda each: each.number)
        start, end = Moment(one.number - 1, one.high), Moment(one.number, one.high)
    else:
        raise UsageError("there are no receipts yet; say between which days, for example 7d..")
    before, after = as_of(view, start), as_of(view, end) if end else view
    scope: Scope = "default" if view.spec.has_entries else "evidence"
    old, new = ({place.seq: place for place in each.entries(scope)} for each in (before, after))
    records, rows, heirs = recorded(after), list[FactChange](), set[int]()
    for seq in old.keys() - new.keys():
        known = records.heirs(seq).items()
        by = next((heir for heir, why in known if why in REPLACED and heir in new), None)
        place, text = (new[by], new[by].text) if by else (old[seq], "")
        kind: Kind = "replaced" if by else "gone"
        rows.append(FactChange(kind, seq, old[seq].text, text, place.doc_id, place.entry.known_time, by))
        heirs |= {by} if by else set()
    for seq in new.keys() - heirs:
        place, was = new[seq], old[seq].text if seq in old else ""
        kind = "new" if seq not in old else "edited" if was != place.text else "moved"
        if kind != "moved" or old[seq].doc_id != place.doc_id:
            rows.append(FactChange(kind, seq, was, place.text, place.doc_id, place.entry.known_time))
    until = end.receipt if end else max((one.number for one in receipts), default=0)
    between = tuple(one for one in receipts if start.receipt < one.number <= until)
    return FactChanges(tuple(sorted(rows, key=lambda one: one.seq)), between)


@contextmanager
def copied(library: Library, clock: Clock, others: Mapping[str, bytes] | None = None) -> Iterator[Library]:
    """Give the same library elsewhere, with the same machine state; `others` are files of the copy, by path.
    LibraryError if the library cannot be written to, or lines were forgotten in it meanwhile."""
    files, root, others = library.files, str(library.files.root), others or {}
    with TemporaryDirectory(dir=cache_folder(root, "rehearsal"), ignore_cleanup_errors=True) as place:
        there = Files(Path(place))
        with library.locked() as view:
            mark = sequence.high_water(files)  # the copy goes on counting as the library will
            own = {} if mark is None else {sequence.MARK: b"%d\n" % mark}
            names = [SETTINGS, *(below + name for below in _STATE for name in files.names(below[:-1]))]
            names += () if others else (f"{doc_id}.md" for doc_id in view.ids("all"))
            others = own | {**others}
            for name in {*names, *others}:
                data = others[name] if name in others else files.read(name, MAX_OWNED)
                if data is not None and is_inside(name):
                    there.stage(name, data, durable=False)
                    if info := files.lstat(name):  # how long lines have waited in the buffer may count
                        os.utime(there.root / name, ns=(info.st_mtime_ns, info.st_mtime_ns))
        state.check(there, claim=True)
        vectors, copies = (cache_folder(one, "vectors") for one in (root, place))
        if vectors and copies:
            with suppress(OSError, shutil.Error):
                shutil.copytree(vectors, copies, dirs_exist_ok=True)
        try:
            yield library.elsewhere(there.root, clock)
        finally:
            delete_cache(place)
            if last_forget(library.view()) != last_forget(view):
                raise LibraryError("lines were forgotten meanwhile; do it again")


@contextmanager
def before(
    library: Library, name: str, model: str, made: Sized
) -> Iterator[tuple[Library, Sequence[Receipt]]]:
    """Give the library as it stood before a receipt, and the receipts from that on. The time there is that of
    the receipt; of each that is `made` there, that of the next. UsageError as of `Memory.repeat`."""
    view, receipts = library.view(), library.receipts()
    first = named(receipts, name)
    if (first.strategy, first.model.partition(" (")[0]) != (library.spec.name, model):
        raise UsageError(
            f"{first.id} was made by {first.strategy} with the model {first.model}; choose these"
        )
    done = receipts[receipts.index(first) :]
    past = as_of(view, Moment(first.number - 1, first.high))
    files = {f"{doc_id}.md": past.document(doc_id).to_bytes() for doc_id in past.ids("all")}
    files |= {sequence.MARK: b"%d\n" % first.high, sequence.GIVEN: b""}

    def clock() -> datetime:
        return datetime.fromisoformat(done[min(len(made), len(done) - 1)].time)

    with copied(library, clock, files) as there:
        yield there, done


def differences(was: View, now: View) -> dict[str, tuple[bytes, bytes]]:
    """The program's documents that differ, but for receipts: bytes in either view."""
    both = ({one: view.document(one).to_bytes() for one in view.ids("all")} for view in (was, now))
    old, new = ({one: data for one, data in each.items() if not one.startswith(JOURNAL)} for each in both)
    pairs = {one: (old.get(one, b""), new.get(one, b"")) for one in sorted({**old, **new})}
    return {one: pair for one, pair in pairs.items() if pair[0] != pair[1]}


def changed(made: Sequence[Receipt], done: Sequence[Receipt]) -> tuple[str, ...]:
    """Ids of documents that receipts left otherwise than others did before them, pair by pair."""
    if not made:
        return (done[0].id,)
    new, old = ([{(name, now) for name, _, now in one.files} for one in each] for each in (made, done))
    differ = set().union(*(one ^ other for one, other in zip(new, old, strict=False)))
    return tuple(sorted({name for name, _ in differ}))
