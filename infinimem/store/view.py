"""A read-only snapshot of a library: what strategies, tools and readers see.

Documents are read on first use and parsed once. A new View shares what did not change: what is derived from a
snapshot is made once and handed to the next, which updates what changed. It opens files through the store's
own loader and never writes.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from infinimem import tokens
from infinimem.embedders.base import Embedder
from infinimem.embedders.local import lazily
from infinimem.errors import DocumentNotFound, closest
from infinimem.markdown.document import Document, is_signed
from infinimem.markdown.signature import parse_entry
from infinimem.model import CURRENT, INBOX, LEFT, TRIES, Entry, Located, Reason, Receipt, Source, Unanswered
from infinimem.settings import Settings
from infinimem.spec import MEMORIES, StrategySpec, folders, spec_of
from infinimem.store.folders import Stamp
from infinimem.store.index import Index
from infinimem.store.lines import ALIAS, ID, STEM, Lines, aliases_of, block_of, fold, stem, turns_behind
from infinimem.store.spec import ARCHIVE, EVIDENCE, HIDDEN, JOURNAL, TOPICS

if TYPE_CHECKING:
    from infinimem.store.freshness import DocumentStates

Scope = Literal["default", "archive", "kept", "evidence", "journal", "all"]  # kept: the first two

Group = Literal["live", "archive", "evidence", "journal", "aside"]
"""Of documents; "aside" are those of other strategies, a strategy's books, and what awaits approval."""

FAR = 1000
"""Changed documents after which what nobody asked for since is made anew rather than kept."""

T = TypeVar("T")
Derive = Callable[[Any, T | None, Collection[str] | None], T]
"""Is given a `View`; of one before it what it made there, and the ids of the documents that changed since, or
None and None. It changes neither, and what it makes holds neither (`View.bare`)."""
_WHOLE = re.compile(r"[0-9]{1,18}\Z")


@dataclass(frozen=True)
class CatalogRow:
    """What a reader is told of a document before opening it. `tokens` counts the body; `title` is its own."""

    id: str
    title: str
    summary: str
    tokens: int
    entries: int
    archived: int
    """Lines that left this topic for the archive: a question about the past may find them there."""


def is_hidden(doc_id: str) -> bool:
    """Return whether no model is shown a document: what stands there awaits approval, or was refused."""
    return doc_id == INBOX or doc_id.startswith(HIDDEN)


def archive_of(topic: str) -> str:
    return ARCHIVE + topic.split("/", 1)[-1]


def whole(value: object) -> int | None:
    """Return a whole number as headers and names carry it; None if it is none, or beyond all use."""
    return int(value) if isinstance(value, str) and _WHOLE.match(value) else None


@dataclass(frozen=True)
class Stored:
    """Where the files of a snapshot lie, and the state of each by document id: to derive more from them."""

    root: str
    stamps: Mapping[str, Stamp]
    read: Callable[[str], Document]
    """Gives a document without keeping it."""
    index: Index
    listing: DocumentStates
    block: Callable[[], int | None]
    """Gives the block in which seqs are given here, None where none was given yet."""


class View:
    """The library at one moment.

    Args:
        ids: of all documents, sorted; `load` gives one.
        initialised: whether the folder has an infinimem.toml; without it every document is a note.
        drawn: evidence seqs that were drawn from; None where that list is lost.
        refused: those of which no entry was accepted.
        unanswered: those about which no answer of a model was of use, or that a person wants left.
        buffer_age: seconds since CURRENT last changed.
        stored: the files that it shows; None if it shows them otherwise than they are.
        embedder: connects to what gives texts vectors; None takes the settings and the environment.
        root: the library's absolute path, whose vectors serve here too; None takes that of `stored`.
        before: a snapshot that this one follows, and the ids of the documents in which they differ.
        spec: the strategy that looks, and sees no sibling's documents; None takes that of the settings.
    """

    def __init__(
        self,
        ids: tuple[str, ...],
        load: Callable[[str], Document],
        settings: Settings,
        *,
        initialised: bool = True,
        drawn: Set[int] | None = None,
        refused: Set[int] = frozenset(),
        unanswered: Mapping[int, Unanswered] = MappingProxyType({}),
        buffer_age: float = 0.0,
        stored: Stored | None = None,
        embedder: Callable[[], Embedder] | None = None,
        root: str | None = None,
        spec: StrategySpec | None = None,
        before: tuple[View, Collection[str]] | None = None,
    ) -> None:
        self.spec = spec or spec_of(settings.strategy)
        self.stored = stored
        self.root = stored.root if stored else root
        self.connect_embedder = embedder or lazily(None, settings.embedder)
        """Gives `embedder`; views that are made from this one pass it on."""
        self.settings = settings
        self.initialised = initialised
        self.buffer_age = buffer_age
        self.drawn = drawn
        self.refused = refused
        self.tried = unanswered
        self.upto: int | None = None
        """The last turn that counts as said, of those that are open; None if all do."""
        self._whole: View | None = None
        self._ids = ids
        self._load = load
        self._made: dict[Derive[Any], Any] = {}
        self._inherited = before[0]._handed_on(before[1]) if before else {}

    def bare(self) -> View:
        """Return the same snapshot with nothing derived: what is derived and holds it keeps no files open."""
        twin = copy(self)
        twin.index, twin.lines, twin._made, twin._inherited = self.index, self.lines, {}, {}
        return twin

    def derived(self, make: Derive[T]) -> T:
        """Return what a function makes of this snapshot, once; it may update what it made of one before."""
        view = self.whole
        if make not in view._made:
            known, changed = view._inherited.get(make, (None, None))
            view._made.setdefault(make, make(view, known, changed))
            view._inherited.pop(make, None)  # it may hold the snapshot that it was made of, and so on
        value: T = view._made[make]
        return value

    def _handed_on(self, changed: Collection[str]) -> dict[Derive[Any], tuple[Any, frozenset[str]]]:
        own = {make: (value, frozenset(changed)) for make, value in self._made.copy().items()}
        older = {
            make: (value, was.union(changed))
            for make, (value, was) in self._inherited.copy().items()
            if make not in own and len(was) < FAR
        }
        return older | own

    @property
    def whole(self) -> View:
        """The snapshot with what awaits approval."""
        return self._whole or self

    @property
    def for_models(self) -> View:
        """The same snapshot as models see it: without the inbox and what was refused, and where there is such
        without receipts, which may tell of it."""
        hidden = {doc_id for folder in HIDDEN for doc_id in self.below(folder)}
        if not (self.initialised and (hidden or INBOX in self)):
            return self
        hidden.update((INBOX, *self.below(JOURNAL)))
        twin = copy(self)
        twin.index, twin.lines, twin._whole = self.index, self.lines, self
        twin._ids = tuple(doc_id for doc_id in self._ids if doc_id not in hidden)
        return twin

    @cached_property
    def embedder(self) -> Embedder:
        """What gives texts vectors, connected to on first use; ModelNotConfigured if anything is missing."""
        return self.connect_embedder()

    def ids(self, scope: Scope = "default") -> tuple[str, ...]:
        """Return the ids of the documents in a scope, sorted."""
        if scope == "kept":
            return tuple(sorted(self.ids() + self.ids("archive")))
        if scope == "all":
            return self._ids
        if scope == "journal" and self._whole:
            return ()
        return self.derived(_groups).get("live" if scope == "default" else scope, ())

    def below(self, folder: str) -> tuple[str, ...]:
        """Return the ids of all that lies below a folder ("topics/")."""
        return _below(self._ids, folder)

    def group(self, doc_id: str) -> Group:
        """Return what a document is to the strategy."""
        if self.initialised and is_hidden(doc_id):
            return "aside"
        if self.is_note(doc_id) or doc_id == self.spec.buffer or doc_id.startswith(self.spec.live):
            return "live"
        folders: tuple[tuple[str, Group], ...] = (
            (self.spec.archived, "archive"),
            (EVIDENCE, "evidence"),
            (JOURNAL, "journal"),
        )
        return next((group for folder, group in folders if doc_id.startswith(folder)), "aside")

    def is_note(self, doc_id: str) -> bool:
        """Return whether a person, or a model's memory tool, owns the document: no strategy writes it."""
        return not self.initialised or not is_signed(doc_id)

    def resolve(self, name: str) -> str:
        """Return the full id that an id, a path, a stem or an alias stands for; else DocumentNotFound."""
        exact = name.strip().strip("/")
        exact = exact if exact in self else exact.removesuffix(".md").strip("/")
        if exact in self:
            return exact
        wanted = fold(exact)
        if full := self._named(ID, wanted):
            return full[0]
        last = wanted.rsplit("/", 1)[-1]
        named = self._named(STEM, last) if "/" not in wanted else ()
        alias = self._named(ALIAS, last)[:1]
        visible = [doc_id for doc_id in named if self.group(doc_id) == "live"] or alias or named
        if len(visible) == 1:
            return visible[0]
        if visible:
            raise DocumentNotFound(
                f"{name!r} names several documents: {', '.join(visible[:5])}; give the full id"
            )
        stems = (self._named(STEM, one) for one in closest(last, self.lines.names(STEM)))
        near = [min(ids, key=lambda doc_id: self.group(doc_id) != "live") for ids in stems if ids]
        hint = f"near it: {', '.join(near)}" if near else "list_docs (ls) shows what there is"
        raise DocumentNotFound(f"no document is called {name!r}; {hint}")

    def _named(self, kind: int, name: str) -> tuple[str, ...]:
        return tuple(filter(self.__contains__, self.lines.named(kind, name)))

    def document(self, doc_id: str) -> Document:
        """Return the parsed document; raise DocumentNotFound if none has this very id (see `resolve`)."""
        if doc_id not in self:
            raise DocumentNotFound(f"no document is called {doc_id!r}; list_docs (ls) shows what there is")
        return self._load(doc_id)

    def each(self, ids: Iterable[str]) -> Iterator[Document]:
        """Give these documents one after another; those that nobody else holds are let go."""
        yield from map(self.stored.read if self.stored else self._load, ids)

    def __contains__(self, doc_id: str) -> bool:
        at = bisect_left(self._ids, doc_id)
        return at < len(self._ids) and self._ids[at] == doc_id

    def catalog(self, scope: Scope = "default", folder: str = "") -> tuple[CatalogRow, ...]:
        """Return a row a document, sorted by id; of those below a folder ("topics/") alone."""
        return tuple(self.row(doc_id) for doc_id in _below(self.ids(scope), folder))

    def row(self, doc_id: str) -> CatalogRow:
        """Return one row of the catalog; raise DocumentNotFound as `document`."""
        own = self.initialised and doc_id.startswith(TOPICS)
        return (self.derived(_topic_rows).get(doc_id) if own else None) or _row(self, doc_id)

    def showing(self, documents: Mapping[str, Document]) -> View:
        """Return this library with other documents in it."""
        return View(
            tuple(sorted(documents)),
            documents.__getitem__,
            self.settings,
            initialised=self.initialised,
            drawn=self.processed,
            refused=self.refused,
            unanswered=self.tried,
            buffer_age=self.buffer_age,
            embedder=self.connect_embedder,
            root=self.root,
            spec=self.spec,
        )

    def entries(self, scope: Scope = "default") -> Iterator[Located]:
        """Give the signed lines of a scope, by document and line."""
        for doc_id in self.ids(scope):
            yield from self.document(doc_id).entries

    def entry(self, seq: int) -> Located | None:
        """Return the line with this seq, wherever it is; of a doubled one evidence, else the live copy."""
        doc_id = self.lines.place(seq)
        return self.document(doc_id).entry(seq) if doc_id is not None and doc_id in self else None

    def owned(self, *folders: str) -> tuple[str, ...]:
        """Return ids of the program's own documents under these folders."""
        return tuple(i for folder in folders for i in self.below(folder)) if self.initialised else ()

    @cached_property
    def lines(self) -> Lines:
        """What the index tells of the lines of the program's own documents."""
        return self.index.lines(self)

    @cached_property
    def index(self) -> Index:
        """What keeps rows of the program's own documents; one in memory where no files show the snapshot."""
        return self.stored.index if self.stored else Index(None, self.spec.name)

    @property
    def max_seq(self) -> int:
        """The highest seq on disk; 0 in an empty library."""
        return self.lines.highest()

    @property
    def cited(self) -> Set[int]:
        """Seqs that some entry names as its origin, or some record of the strategy's as its evidence."""
        return self.lines.cited

    def uncited(self, among: Iterable[int] | None = None) -> tuple[Located, ...]:
        """Return the evidence that is still to be drawn from, by seq; of these seqs alone."""
        waiting = self.lines.waiting(None if among is None else {*among})
        if self.spec.has_entries and any(map(self._is_foreign, waiting)):
            newest = self.lines.newest  # turns are taken in order, so what is still to do is the end

            def is_open(seq: int) -> bool:  # what a person deleted since does not come back
                return seq > newest.get(block_of(seq), 0) and seq not in self.derived(_quoted)

            waiting = [seq for seq in waiting if not self._is_foreign(seq) or is_open(seq)]
        return tuple(
            place
            for place in map(self.entry, waiting)
            if place and not (self._left(place.seq) or self.repeats(place))
        )

    @cached_property
    def own(self) -> int | None:
        """The block in which seqs are given here; None where none was given yet."""
        return self.stored.block() if self.stored else None

    def _is_foreign(self, seq: int) -> bool:
        """Return whether no list here tells what became of a turn: it is lost, or another copy's."""
        return self.drawn is None or (self.own is not None and block_of(seq) != self.own)

    def unanswered(self) -> Mapping[int, Unanswered]:
        """Return the turns about which no answer of a model was of use, by seq; without those to be left."""
        tried = sorted(self.tried)
        there = filter(self.lines.place, tried) if self.spec.sparse else self.lines.waiting(tried)
        cited = self.cited
        return {seq: self.tried[seq] for seq in there if seq not in cited and not self._left(seq)}

    def given_up(self, model: str, began: View | None = None) -> Set[int]:
        """Return seqs of turns that a model is not asked about again, or not in the call that began so."""
        before = began.tried if began else self.tried
        return {
            seq
            for seq, one in self.tried.items()
            if self._left(seq) or (one.model == model and one.tries >= TRIES) or before.get(seq) != one
        }

    def pending(self, model: str) -> list[int]:
        """Return seqs of the turns that a model is to be asked about, ascending."""
        given_up = self.given_up(model)
        return [place.seq for place in self.uncited() if place.seq not in given_up]

    def _left(self, seq: int) -> bool:
        return seq in self.tried and self.tried[seq].kind == LEFT

    @cached_property
    def unfiled(self) -> frozenset[int]:
        """Seqs of turns that readers see themselves: no entry says, acceptably, what they do."""
        lines, left = self.lines, {*filter(self._left, self.tried)}
        waiting = {*lines.waiting()} - left
        if self.spec.has_entries and self.drawn is None:
            waiting = {place.seq for place in self.uncited()}
        refused = filter(lines.place, {*self.refused, *left} - lines.cited)
        return frozenset(waiting.union(lines.uncited() if self.spec.sparse else refused) - lines.hidden)

    @property
    def processed(self) -> frozenset[int]:
        """Seqs of evidence that was drawn from, on the list or not, and of those on it that are gone."""
        ids = self.owned(EVIDENCE) if self.spec.has_entries else self.ids("evidence")
        said = frozenset(place.entry.seq for doc_id in ids for place in self.document(doc_id).entries)
        return (said | frozenset(self.drawn or ())) - {place.seq for place in self.uncited()}

    def repeats(self, place: Located) -> bool:
        """Return whether a turn stands in a copied file, and the same turn in another."""
        return place.seq in self._doubled and place.doc_id != self.lines.place(place.seq)

    @cached_property
    def _doubled(self) -> frozenset[int]:
        return self.lines.doubled

    @cached_property
    def buffer(self) -> Document:
        if CURRENT in self and self.initialised:
            return self.document(CURRENT)
        return Document.empty(CURRENT)

    @property
    def epoch(self) -> int:
        """How many consolidations emptied the buffer so far."""
        return whole(self.buffer.header.values.get("current_epoch")) or 0


def _groups(
    view: View, known: Mapping[Group, tuple[str, ...]] | None, changed: Collection[str] | None
) -> Mapping[Group, tuple[str, ...]]:
    if known is None or changed is None:
        groups: dict[Group, list[str]] = {}
        for doc_id in view.ids("all"):
            groups.setdefault(view.group(doc_id), []).append(doc_id)
        return {group: tuple(ids) for group, ids in groups.items()}
    grouped = dict(known)
    for doc_id in changed:
        group = view.group(doc_id)
        ids = grouped.get(group, ())
        at = bisect_left(ids, doc_id)
        there = ids[at : at + 1] == (doc_id,)
        if there != (doc_id in view):
            grouped[group] = (*ids[:at], *(() if there else (doc_id,)), *ids[at + there :])
    return grouped


def _below(ids: tuple[str, ...], folder: str) -> tuple[str, ...]:
    end = f"{folder[:-1]}0"  # "0" comes after "/"
    return ids[bisect_left(ids, folder) : bisect_left(ids, end)] if folder else ids


def _topic_rows(
    view: View, known: Mapping[str, CatalogRow] | None, changed: Collection[str] | None
) -> Mapping[str, CatalogRow]:
    if known is None or changed is None:
        known, changed = {}, view.below(TOPICS)
    due = {doc_id for doc_id in changed if doc_id.startswith(TOPICS)}
    for name in (doc_id.removeprefix(ARCHIVE) for doc_id in changed if doc_id.startswith(ARCHIVE)):
        due.update((f"{TOPICS}{name}", *view.lines.named(ALIAS, fold(name))))
    rows = {doc_id: row for doc_id, row in known.items() if doc_id not in due}
    return rows | {doc_id: _row(view, doc_id) for doc_id in due if doc_id in view} if due else known


def _row(view: View, doc_id: str) -> CatalogRow:
    document = view.document(doc_id)
    archived = 0
    if view.initialised and doc_id.startswith(TOPICS):
        named = (f"{ARCHIVE}{alias}" for alias in aliases_of(document))
        archives = [one for one in {archive_of(doc_id), *named} if one in view]
        archived = sum(len(view.document(one).entries) for one in archives)
    size = whole(document.header.values.get("token_count"))
    count = tokens.count(document.body) if size is None else size
    summary = document.summary or next((head.title for head in document.headings if head.title), "")
    return CatalogRow(doc_id, document.title, summary, count, len(document.entries), archived)


def _quoted(view: View, known: frozenset[int] | None, changed: Collection[str] | None) -> frozenset[int]:
    """Return what the lines were drawn from that receipts quote, as people deleted or edited them."""
    doc_ids = view.below(JOURNAL) if known is None or changed is None else changed
    those = view.each(one for one in doc_ids if one.startswith(JOURNAL) and one in view)
    quoted = (parse_entry(line) for one in those for line in one.lines if line.startswith("- <"))
    return (known or frozenset()).union(*(entry.origin for entry in quoted if entry))


def without(entry: Entry, key: str) -> Entry:
    """Return a line without a field of its signature."""
    return replace(entry, fields={name: value for name, value in entry.fields.items() if name != key})


# ── the lines of some sources, or of one project ────────────────────────────────────────────────
# What people wrote unsigned counts as "human", what a model wrote in memories/ as "AI"; neither is of a
# project. Headers, headings and receipts may tell of any line, so they go where a line does. A record stays
# if it is known to come from what stays alone.

Keeps = Callable[[Entry], bool]


def unsigned_source(view: View, doc_id: str) -> Source:
    """Return whose words a document's unsigned lines are."""
    return "AI" if view.initialised and doc_id.startswith(MEMORIES) else "human"


def only(view: View, sources: Collection[str]) -> View:
    """Return the same library with nothing in it but what came from these sources, or speakers."""

    def keeps(entry: Entry) -> bool:
        named = entry.source in sources or entry.fields.get("speaker") in sources
        said = () if named else filter(None, map(view.entry, entry.origin))
        return named or any(place.entry.fields.get("speaker") in sources for place in said)

    return _showing(view, keeps, sources)


def only_project(view: View, project: str) -> View:
    """Return the same library with nothing in it but what was said in a project (`is_in`)."""
    return _showing(view, lambda entry: any(is_in(folder, project) for folder in folders_of(view, entry)))


def folders_of(view: View, entry: Entry) -> Set[str]:
    if "cwd" in entry.fields:
        return {entry.fields["cwd"]}
    places = (view.entry(seq) for seq in entry.origin)
    return {place.entry.fields["cwd"] for place in places if place and "cwd" in place.entry.fields}


def is_in(folder: str, project: str) -> bool:
    """Return whether a folder is a project's, or below it: a project is a path, or a folder's name."""
    path = PurePath(folder)
    if PurePath(project).is_absolute():
        return path.is_relative_to(project)
    return project.casefold() in (part.casefold() for part in path.parts)


def _showing(view: View, keeps: Keeps, unsigned: Collection[str] = ()) -> View:
    telling = (JOURNAL, *folders().ledgers)  # may tell of any line: receipts, what is kept beside records
    left: dict[str, Document] = {}
    records: dict[str, Document] = {}
    for doc_id in view.ids("all"):
        stays = unsigned_source(view, doc_id) in unsigned
        if view.is_note(doc_id):
            left |= {doc_id: view.document(doc_id)} if stays else {}
        elif doc_id.startswith(folders().records):
            records[doc_id] = view.document(doc_id)
        elif not doc_id.startswith(telling):
            document = _only(view.document(doc_id), keeps, stays)
            left |= {doc_id: document} if document.body.strip() else {}
    by_stem = {stem(doc_id): record for doc_id, record in records.items()}
    for doc_id, record in records.items():
        with suppress(KeyError):  # it names a record that is not there
            places = [view.entry(seq) for seq in turns_behind(record, by_stem.__getitem__)]
            if places and all(place is not None and keeps(place.entry) for place in places):
                left[doc_id] = record
    return view.showing(left)


def _only(document: Document, keeps: Keeps, unsigned: bool) -> Document:
    signed = {
        number: keeps(place.entry)
        for place in document.entries
        for number in range(place.start_line, place.end_line + 1)
    }
    titles = {heading.line for heading in document.headings}
    body = range(document.header.end + 1, len(document.lines) + 1)
    gone = {number for number in body if number not in titles and not signed.get(number, unsigned)}
    if any(document.text_line(number).strip() for number in gone):
        gone.update(range(1, document.header.end + 1), titles)
        left = document.blanked(gone)
        return left.blanked({1}) if left.header.end else left  # a rule above that would open a header now
    return document


@dataclass(frozen=True)
class Applied:
    """The plan was applied; `view` is the library as it is now, `added` the lines that `adds` became."""

    view: View
    receipt: Receipt | None = None
    added: tuple[Located, ...] = ()


@dataclass(frozen=True)
class Rejected:
    """The plan was refused whole; nothing changed. `view` is the library as it is now."""

    view: View
    reasons: tuple[Reason, ...]


Outcome = Applied | Rejected
