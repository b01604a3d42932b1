"""All records of a library with their links, as one value to try edits on, and where they lie by the meaning
of their texts: cosines, and the nearest records of a folder, exact.

Source: All-Mem, sections 3.1 (bank, surface), 3.5 (search over the surface alone) and 4.4 (recoverability);
Eq. 2 to 4; Appendix B.2 (evidence by reference).
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from itertools import chain, compress
from operator import is_not
from typing import Self

import numpy as np

from infinimem.index.vectors import DIGITS, Matrix, Rows, Vectors, cosines, nearest, unchanged, vectors_of
from infinimem.markdown.characters import text_key
from infinimem.model import Finding, Located, Put
from infinimem.store.lines import STEM, stem
from infinimem.store.spec import EVIDENCE
from infinimem.store.view import Stored, View
from infinimem.strategies.records.record import (
    Link,
    Quote,
    Record,
    Ref,
    is_record_id,
    moment,
    number_of,
    parse,
    record_id,
    render,
)


class RecordStore:
    """Records by id, and their links. Records are values; what changes is which of them stand here."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.spec = view.spec
        self.records: dict[str, Record] = {}
        self.unread: dict[str, Finding] = {}
        """Why a document holds no record that counts; it names turns all the same (`held_by`)."""
        self.visible: set[str] = set()
        """Ids of the records that are not archived."""
        self._into: dict[tuple[str | None, str], tuple[str, ...]] = {}
        """The records that link to one by a kind, and of a session by none, ascending."""

    def __contains__(self, name: object) -> bool:
        return name in self.records

    def __len__(self) -> int:
        return len(self.records)

    def turn(self, seq: int) -> Located | None:
        """A turn of the evidence by its seq."""
        place = self.view.entry(seq)
        return place if place and place.doc_id.startswith(EVIDENCE) else None

    def copy(self) -> Self:
        """A store to try edits on."""
        twin = copy(self)
        vars(twin).update((key, one.copy()) for key, one in vars(self).items() if isinstance(one, dict | set))
        return twin

    @classmethod
    def load(
        cls, view: View, known: RecordStore | None = None, changed: Collection[str] | None = None
    ) -> RecordStore:
        """The records as a view shows them (`View.derived`); what did not change is not read again.

        Of a record that stands in two folders the one counts that is not archived.
        """
        folders = view.spec.record_folders
        if known is None or changed is None:
            known, changed = cls(view), [*chain.from_iterable(map(view.below, folders))]
        documents = {doc_id for doc_id in changed if doc_id.startswith(folders)}
        store = known.copy() if documents else copy(known)
        store.view = view.bare()  # a circle of the two would keep files open
        if not documents:
            return store
        chosen: dict[str, Record | None] = dict.fromkeys(sorted(map(stem, documents)))
        documents.update(folder + name for name in chosen for folder in folders)
        for doc_id in documents:
            store.unread.pop(doc_id, None)
        there = sorted(doc_id for doc_id in documents if doc_id in view)
        there.sort(key=lambda doc_id: doc_id.startswith(view.spec.archived))
        for doc_id, document in zip(there, view.each(there), strict=True):
            found = parse(document, view.spec)
            if isinstance(found, Record) and (other := chosen[found.id]):
                what = f"{found.id} stands in {other.folder} too; delete one"
                found = Finding("error", what, doc_id)
            if isinstance(found, Finding):
                store.unread[doc_id] = found
            else:
                chosen[found.id] = found
        for name, record in chosen.items():
            store._set(name, record)
        return store

    def _set(self, name: str, new: Record | None) -> None:
        """Let a record be as it is now; None takes it out."""
        old = self.records.get(name)
        before, now = (
            {(one.session, ""), *((link.to, link.kind) for link in one.links)} if one else set()
            for one in (old, new)
        )
        for end in before ^ now:
            others = (other for other in self._into.get(end, ()) if other != name)
            self._into[end] = tuple(sorted((*others, name) if end in now else others))
        if new:
            self.records[name] = new
        elif old:
            del self.records[name]
        (self.visible.add if new and new.visible else self.visible.discard)(name)

    def of_session(self, session: str) -> list[str]:
        """The records of a session, archived or not, the oldest first."""
        return sorted(self.into(session, ""), key=lambda name: (self.records[name].age, number_of(name)))

    def put(self, record: Record) -> None:
        """A new record, or another value for one that is here; links stay."""
        old = self.records.get(record.id)
        self._set(record.id, replace(record, links=old.links) if old else record)

    def archive(self, name: str) -> None:
        """Archive a record; nothing else of it changes."""
        self._set(name, replace(self.records[name], visible=False))

    def new_id(self, prefix: str, number: int) -> str:
        """The next free id of a derived record; files that cannot be read count too."""
        known = filter(is_record_id, self.view.lines.names(STEM, f"{record_id(prefix, number)}-"))
        suffix = max((number_of(name)[1] for name in known), default=0) + 1
        while (name := record_id(prefix, number, suffix)) in self.records:
            suffix += 1
        return name

    def own_id(self, prefix: str, number: int) -> str:
        """An id without a suffix, or where another file has it that of a derived record."""
        own = record_id(prefix, number)
        taken = own in self.records or any(folder + own in self.view for folder in self.spec.record_folders)
        return self.new_id(prefix, number) if taken else own

    # ── links ───────────────────────────────────────────────────────────────────────────────────

    def links(self, name: str, kind: str | None = None) -> tuple[Link, ...]:
        """The links of a record to others that are here, all or of one kind, by (kind, target)."""
        links = self.records[name].links
        return tuple(link for link in links if kind in (None, link.kind) and link.to in self.records)

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
        """Replace all links of a kind to others that are here; ValueError if one leads to the record itself,
        or to none, or is of another kind."""
        new = {link.to: link for link in links}
        if any(to == name or to not in self.records or link.kind != kind for to, link in new.items()):
            raise ValueError(f"{name} cannot have these {kind} links: {', '.join(new)}")
        record = self.records[name]
        kept = (link for link in record.links if link.kind != kind or link.to not in self.records)
        links = sorted((*kept, *new.values()), key=lambda link: (link.kind, link.to))
        self._set(name, replace(record, links=tuple(links)))

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


def differing(before: Mapping[str, Record], after: Mapping[str, Record]) -> list[str]:
    """Records that are not the same in two stores, in order of creation."""
    others = compress(after, map(is_not, map(before.get, after), after.values()))
    names = [name for name in others if before.get(name) != after[name]]
    if len(before) + sum(name not in before for name in names) > len(after):
        names += before.keys() - after.keys()
    return sorted(names, key=lambda name: (number_of(name), name))


def puts(before: RecordStore, after: RecordStore) -> tuple[Put, ...]:
    """What turns one store into the other on disk; a record's origin are the turns that none held before."""
    rows: list[Put] = []
    for name in differing(before.records, after.records):
        old, new = before.records.get(name), after.records.get(name)
        if old and (new is None or new.doc_id != old.doc_id):
            rows.append(Put(old.doc_id, None))
        if new:
            origin = tuple(ref.seq for ref in new.refs if ref.seq not in before.view.cited)
            rows.append(Put(new.doc_id, after.render(name), origin))
    return tuple(rows)


# ── nearness ─────────────────────────────────────────────────────────────────────────────────────


AT_ONCE = 32
"""Records that are compared with a folder's while these are gone through once."""

Scored = list[tuple[str, float]]
"""Records with their cosines."""


class VectorIndex:
    """The vectors of records, those of each folder apart; kept where the library has files."""

    def __init__(self, vectors: Vectors) -> None:
        self.vectors = vectors
        self.stored: Stored | None = None
        """The files that the store of the next `sync` shows."""
        self._rows = vectors.rows
        self._records: dict[str, Record] = {}
        self._places: defaultdict[str, dict[str, int]] = defaultdict(dict)
        """Where the vectors of their records stand, by group."""

    def sync(self, store: RecordStore) -> None:
        """Bring the index in line with a store; computes the vectors of new texts alone."""
        known, moved = self._records, differing(self._records, store.records)
        new = {name: store.records[name] for name in moved if name in store}
        fresh = [name for name, one in new.items() if name not in known or known[name].text != one.text]
        turns = {said.ref.seq for name in fresh for said in store.quotes(name)} if self.stored else ()
        rows = self._with([new[name].text for name in fresh], filter(None, map(store.turn, turns)))
        if rows is not self._rows:
            self._rows, self._records = rows, {}
            self._places.clear()
            if known:  # a `forget` came between: all stands elsewhere
                self.sync(store)
                return
        for name in moved:
            if old := known.get(name):
                del self._places[old.group][name]
            if record := new.get(name):
                self._places[record.group][name] = rows.at[text_key(record.text)]
        self._records = store.records.copy() if moved else known

    def _with(self, texts: Sequence[str], said: Iterable[Located]) -> Rows:
        """The library's vectors, with those of these texts, kept while the evidence that they tell of stands
        as it was."""
        if not texts:
            return self._rows
        places = {turn.doc_id for turn in said}
        return self.vectors.add(texts, lambda: self.stored is None or unchanged(self.stored, places))

    def embed(self, query: str) -> Matrix:
        """The vector of a question, which is not kept."""
        row: Matrix = self.vectors.embedder.embed([query], "query")[0]
        return row

    def row(self, name: str) -> Matrix:
        """The vector of a record."""
        row: Matrix = self._rows.matrix[self._place(name)]
        return row

    def _place(self, name: str) -> int:
        return self._places[self._records[name].group][name]

    def cos(self, one: str, other: str) -> float:
        """Cosine of two records, to 6 decimals."""
        return self.cosines(self.row(one), (other,))[0]

    def cosines(self, query: Matrix, names: Sequence[str]) -> list[float]:
        """Cosines of a vector and of records, to 6 decimals."""
        return cosines(self._rows.matrix[[self._place(name) for name in names]], query) if names else []

    def of_turns(self, query: Matrix, turns: Sequence[Located]) -> list[float]:
        """Cosines of a vector and of what was said, to 6 decimals; the vectors are those of search."""
        texts = [turn.text for turn in turns]
        rows = self._with(texts, turns)
        return cosines(rows.matrix[rows.places(map(text_key, texts))], query) if turns else []

    def coherence(self, names: Sequence[str]) -> float:
        """Mean cosine over all pairs (All-Mem, Eq. 29); 1 for one record alone."""
        pairs = [self.cos(one, two) for at, one in enumerate(names) for two in names[at + 1 :]]
        return round(sum(pairs) / len(pairs), DIGITS) if pairs else 1.0

    def neighbours(self, names: Iterable[str], k: int) -> dict[str, Scored]:
        """For each of these records the k that are nearest to it in its folder, itself apart (k-NN)."""
        found: dict[str, Scored] = {name: [] for name in names}
        for folder in {self._records[name].group for name in found} - {""}:
            names = [name for name in found if self._records[name].group == folder]
            for start in range(0, len(names), AT_ONCE):
                some = names[start : start + AT_ONCE]
                queries = self._rows.matrix[[self._place(name) for name in some]]
                for name, near in zip(some, self._near(folder, queries, k + 1 if k > 0 else 0), strict=True):
                    found[name] = _sorted(one for one in near if one[0] != name)[:k]
        return found

    def nearest(
        self, query: Matrix, k: int, folders: Iterable[str], *, without: Collection[str] = ()
    ) -> Scored:
        """The records of some folders nearest to a vector, best first; ties by creation (Eq. 4)."""
        room = k + len(without) if k > 0 else 0
        near = (one for folder in folders for one in self._near(folder, query[None], room)[0])
        return _sorted(one for one in near if one[0] not in without)[: max(k, 0)]

    def _near(self, folder: str, queries: Matrix, k: int) -> list[Scored]:
        """The records of a folder nearest to each vector and all that tie with the last, in no order."""
        names, places = [*self._places[folder]], [*self._places[folder].values()]
        found = nearest(self._rows.matrix, queries, k, np.array(places, np.int64))
        return [
            [(names[at], cosine) for at, cosine in zip(near.tolist(), cosines, strict=True)]
            for near, cosines in found
        ]


def _sorted(found: Iterable[tuple[str, float]]) -> Scored:
    return sorted(found, key=lambda one: (-one[1], number_of(one[0]), one[0]))


class Loaded:
    """The index of the view that was asked for last, for one thread at a time."""

    def __init__(self, load: Callable[..., RecordStore] = RecordStore.load) -> None:
        self._load = load
        self._lock = threading.RLock()
        self._known: tuple[object, VectorIndex] | None = None

    @contextmanager
    def at(self, view: View) -> Iterator[tuple[RecordStore, VectorIndex]]:
        """The records as a view shows them, and where they lie.

        The store may be copied and is never edited; the index may follow a copy, and is set right next
        time.
        """
        store, where = view.derived(self._load), (view.root, view.stored is None, view.embedder.name)
        with self._lock:
            if self._known is None or self._known[0] != where:
                self._known = where, VectorIndex(vectors_of(view))
            index = self._known[1]
            index.stored = view.stored
            index.sync(store)
            yield store, index
