"""All records of a library with their links, as one value to try edits on.

Source: All-Mem, section 3.1 (bank, surface) and Appendix B.2 (evidence by reference).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, KeysView, MutableMapping, Set
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Generic, Self, TypeVar

from infinimem.markdown.document import Document
from infinimem.model import Finding, Located, Put
from infinimem.spec import StrategySpec
from infinimem.store.records import held_by, stem
from infinimem.store.spec import EVIDENCE
from infinimem.store.view import View
from infinimem.strategies.records.record import (
    Link,
    Quote,
    Record,
    Ref,
    is_record_id,
    moment,
    number_of,
    parse,
    prefix_of,
    record_id,
    render,
)

K = TypeVar("K")
V = TypeVar("V")

_SHARDS = 1024
"""Parts of a `SharedDict`: of so many a copy takes microseconds, and a change copies one."""


class SharedDict(MutableMapping[K, V], Generic[K, V]):
    """As a dict, but in no order; copies share what neither changed."""

    def __init__(self) -> None:
        self._shards: list[dict[K, V]] = [{}] * _SHARDS
        self._own: set[int] = set()
        """Shards that no copy shares."""

    def copy(self) -> SharedDict[K, V]:
        twin = SharedDict[K, V]()
        self._own, twin._shards = set(), self._shards.copy()
        return twin

    def changed(self, other: SharedDict[K, V]) -> set[K]:
        """Return the keys of which the two hold different values, or only one holds any."""
        keys = set[K]()
        pairs = zip(self._shards, other._shards, strict=True) if self is not other else ()
        for one, two in pairs:
            for key in one.keys() | two.keys() if one is not two else ():
                if (value := one.get(key)) is not (before := two.get(key)) and value != before:
                    keys.add(key)
        return keys

    def _owned(self, key: K) -> dict[K, V]:
        at = hash(key) % _SHARDS
        if at not in self._own:
            self._own.add(at)
            self._shards[at] = self._shards[at].copy()
        return self._shards[at]

    def __getitem__(self, key: K) -> V:
        return self._shards[hash(key) % _SHARDS][key]

    def __setitem__(self, key: K, value: V) -> None:
        self._owned(key)[key] = value

    def __delitem__(self, key: K) -> None:
        del self._owned(key)[key]

    def __contains__(self, key: object) -> bool:
        return key in self._shards[hash(key) % _SHARDS]

    def __iter__(self) -> Iterator[K]:
        return chain.from_iterable(self._shards)

    def __len__(self) -> int:
        return sum(map(len, self._shards))


class RecordStore:
    """Records by id, and their links. Records are values; what changes is which of them stand here."""

    def __init__(self, spec: StrategySpec, turn: Callable[[int], Located | None]) -> None:
        self.spec = spec
        self.records: SharedDict[str, Record] = SharedDict()
        self.held: Set[int] = frozenset()
        """Seqs of the turns that had a record when this was loaded, even if it cannot be read."""
        self.turn = turn
        self._surface: SharedDict[str, None] = SharedDict()
        self._into: SharedDict[tuple[str, str], tuple[str, ...]] = SharedDict()
        """The records that link to one by a kind, ascending."""
        self._findings: SharedDict[str, Finding] = SharedDict()
        self._sessions: SharedDict[str, tuple[str, ...]] = SharedDict()
        self._read: SharedDict[str, tuple[Document, Record | Finding]] = SharedDict()
        self._suffixes: SharedDict[str, int] = SharedDict()

    def __contains__(self, name: object) -> bool:
        return name in self.records

    def __len__(self) -> int:
        return len(self.records)

    @property
    def visible(self) -> KeysView[str]:
        """Ids of the records that are not archived."""
        return self._surface.keys()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Of files that hold no record, by their ids."""
        return tuple(self._findings[doc_id] for doc_id in sorted(self._findings))

    def copy(self) -> Self:
        """A store to try edits on; costs the same however many records there are."""
        twin = copy(self)
        vars(twin).update((key, one.copy()) for key, one in vars(self).items() if isinstance(one, SharedDict))
        return twin

    # ── loading ─────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def load(
        cls, view: View, known: RecordStore | None = None, changed: Collection[str] | None = None
    ) -> RecordStore:
        """The records as a view shows them (`View.derived`); what did not change is not read again."""
        own, folders = view.bare(), view.spec.record_folders
        store = cls(view.spec, own.entry)
        before = store if known is None else known
        follows = known is not None and changed is not None  # an empty store is false
        among = chain.from_iterable(map(view.below, folders)) if changed is None or not follows else changed
        documents = [doc_id for doc_id in among if doc_id.startswith(folders)]
        if follows:
            store = before.copy() if documents else copy(before)
        store.turn, store.held = partial(turn_of, own), view.cited
        for doc_id in documents:
            if doc_id not in view:
                store._read.pop(doc_id, None)
                continue
            document, read = view.document(doc_id), before._read.get(doc_id)
            if not read or read[0] is not document:
                read = document, parse(document, view.spec)
            store._read[doc_id] = read
        chosen = store._choose(documents)
        away = [doc_id for doc_id in documents if stem(doc_id) not in chosen]
        if follows and any(doc_id not in view or stem(doc_id) in store for doc_id in away):
            return cls.load(view, store)  # its suffix is free
        for name in sorted(chosen):
            store._keep(chosen[name])
        return store

    def _choose(self, documents: Collection[str]) -> dict[str, Record]:
        """What was read by name; of a record that stands in two folders the one that is not archived."""
        chosen: dict[str, Record] = {}
        names = {*map(stem, documents)}
        for name in filter(is_record_id, names):
            self._take(name)
        for doc_id in {*documents, *(folder + name for name in names for folder in self.spec.record_folders)}:
            self._findings.pop(doc_id, None)
            _, found = self._read.get(doc_id, (None, None))
            if isinstance(found, Finding):
                self._findings[doc_id] = found
            elif found:
                _, other = self._read.get(found.kind.folder + found.id, (None, None))
                if not found.visible and isinstance(other, Record):
                    what = f"{found.id} stands in {found.kind.folder} too; delete one"
                    self._findings[doc_id] = Finding("error", what, doc_id)
                else:
                    chosen[found.id] = found
        return chosen

    def renamed(self, before: RecordStore) -> set[int]:
        """The turns that files name which differ from those of another store, even if they hold no record."""
        pairs = (
            (store._read.get(name) for store in (self, before)) for name in self._read.changed(before._read)
        )
        return {seq for pair in pairs for read in pair if read for seq in held_by(read[0])}

    # ── editing ─────────────────────────────────────────────────────────────────────────────────

    def _keep(self, record: Record) -> None:
        old = self.records.get(record.id)
        self._seat(old, record)
        before, now = ({(link.to, link.kind) for link in (one.links if one else ())} for one in (old, record))
        for end in before ^ now:
            others = (name for name in self._into.get(end, ()) if name != record.id)
            self._into[end] = tuple(sorted((*others, record.id) if end in now else others))
        self.records[record.id] = record
        if record.visible:
            self._surface[record.id] = None
        else:
            self._surface.pop(record.id, None)

    def _seat(self, old: Record | None, new: Record) -> None:
        """Put a record where it belongs among those of its session."""
        if old and (old.session, old.time) == (new.session, new.time):
            return
        if old and old.session is not None:
            self._sessions[old.session] = tuple(
                name for name in self.of_session(old.session) if name != old.id
            )
        if new.session is not None:
            names = self.of_session(new.session)
            at = bisect_left(
                names, (new.age, new.order), key=lambda name: (self.records[name].age, number_of(name))
            )
            self._sessions[new.session] = (*names[:at], new.id, *names[at:])

    def of_session(self, session: str) -> tuple[str, ...]:
        """The records of a session, archived or not, the oldest first."""
        return self._sessions.get(session, ())

    def put(self, record: Record) -> None:
        """A new record, or another value for one that is here; links stay."""
        self._take(record.id)
        old = self.records.get(record.id)
        self._keep(replace(record, links=old.links) if old else record)

    def archive(self, name: str) -> None:
        """Archive a record; nothing else of it changes."""
        self._keep(replace(self.records[name], visible=False))

    def _take(self, name: str) -> None:
        """An id that no new record may have; files that cannot be read count too."""
        number, suffix = number_of(name)
        base = record_id(prefix_of(name), number)
        self._suffixes[base] = max(suffix, self._suffixes.get(base, 0))

    def new_id(self, prefix: str, number: int) -> str:
        """The next free id of a derived record; files that cannot be read count too."""
        suffix = self._suffixes.get(record_id(prefix, number), 0) + 1
        return record_id(prefix, number, suffix)

    def own_id(self, prefix: str, number: int) -> str:
        """An id without a suffix, or where another file has it that of a derived record."""
        own = record_id(prefix, number)
        taken = own in self.records or any(folder + own in self._read for folder in self.spec.record_folders)
        return self.new_id(prefix, number) if taken else own

    # ── links ───────────────────────────────────────────────────────────────────────────────────

    def links(self, name: str, kind: str | None = None) -> tuple[Link, ...]:
        """The links of a record to others that are here, all or of one kind, by (kind, target)."""
        links = self.records[name].links
        return tuple(link for link in links if kind in (None, link.kind) and link.to in self.records)

    def lost(self, name: str) -> tuple[Link, ...]:
        """Links to records that are not here, or cannot be read: they stay in the files."""
        return tuple(link for link in self.records[name].links if link.to not in self.records)

    def out(self, name: str, kind: str) -> tuple[str, ...]:
        """Where the links of a kind lead, ascending."""
        return tuple(link.to for link in self.links(name, kind))

    def into(self, name: str, kind: str) -> tuple[str, ...]:
        """The records that link to this one by a kind, ascending."""
        return self._into.get((name, kind), ())

    def link(self, name: str, link: Link) -> None:
        """Add a link; the one of this kind to this target, if there is one, takes the new weight."""
        others = (old for old in self.links(name, link.kind) if old.to != link.to)
        self.relink(name, link.kind, (*others, link))

    def relink(self, name: str, kind: str, links: Iterable[Link]) -> None:
        """Replace all links of a kind to others that are here.

        Raises:
            ValueError: one leads to the record itself, or to none, or is of another kind.
        """
        new = {link.to: link for link in links}
        if any(to == name or to not in self.records or link.kind != kind for to, link in new.items()):
            raise ValueError(f"{name} cannot have these {kind} links: {', '.join(new)}")
        record = self.records[name]
        kept = (link for link in record.links if link.kind != kind or link.to not in self.records)
        links = sorted((*kept, *new.values()), key=lambda link: (link.kind, link.to))
        self._keep(replace(record, links=tuple(links)))

    # ── evidence ────────────────────────────────────────────────────────────────────────────────

    def quotes(self, name: str) -> tuple[Quote, ...]:
        """What a record's evidence says, each piece once: what it has from others by time, then seq."""
        record = self.records[name]
        if not record.sources:
            return tuple(map(self.quote, record.refs))
        refs: set[Ref] = set()
        seen, waiting = {name}, list(record.sources)
        while waiting:
            source = waiting.pop()
            if source not in seen and source in self.records:
                seen.add(source)
                refs.update(self.records[source].refs)
                waiting += self.records[source].sources
        found = map(self.quote, refs)
        return tuple(sorted(found, key=lambda said: (moment(said.time), said.ref.seq, said.ref.span or ())))

    def quote(self, ref: Ref) -> Quote:
        """What a reference stands for."""
        place = self.turn(ref.seq)
        if place is None:
            return Quote(ref, None, None, "")
        entry = place.entry
        start, end = ref.span or (0, len(entry.text))
        return Quote(ref, entry.fields.get("speaker"), entry.time, entry.text[start:end], entry.role)

    def stands(self, turn: Located) -> bool:
        """Whether a turn is still there as it was."""
        now = self.turn(turn.seq)
        return now is not None and now.entry == turn.entry

    def text(self, name: str) -> str:
        """The words of a record's evidence alone, piece after piece: what a split cuts."""
        return "\n".join(said.text for said in self.quotes(name))

    def cut(self, name: str, start: int, end: int) -> tuple[Ref, ...]:
        """References to characters `start` to `end` of `text`."""
        refs = []
        at = 0
        for said in self.quotes(name):
            first, last = max(start - at, 0), min(end - at, len(said.text))
            if first < last:
                base = said.ref.span[0] if said.ref.span else 0
                refs.append(Ref(said.ref.seq, (base + first, base + last)))
            at += len(said.text) + 1
        return tuple(refs)

    def render(self, name: str) -> str:
        """The record's file."""
        return render(self.records[name], self.quotes(name))


def turn_of(view: View, seq: int) -> Located | None:
    """A turn of the evidence by its seq."""
    place = view.entry(seq)
    return place if place and place.doc_id.startswith(EVIDENCE) else None


def changed(before: RecordStore, after: RecordStore) -> tuple[str, ...]:
    """Records that differ between two stores, in order of creation."""
    return tuple(sorted(before.records.changed(after.records), key=lambda name: (number_of(name), name)))


def puts(before: RecordStore, after: RecordStore) -> tuple[Put, ...]:
    """What turns one store into the other on disk; a record's origin are the turns that none held before."""
    rows: list[Put] = []
    for name in changed(before, after):
        old, new = before.records.get(name), after.records.get(name)
        if old and (new is None or new.doc_id != old.doc_id):
            rows.append(Put(old.doc_id, None))
        if new:
            origin = tuple(ref.seq for ref in new.refs if ref.seq not in before.held)
            rows.append(Put(new.doc_id, after.render(name), origin))
    return tuple(rows)
