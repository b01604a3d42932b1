"""A read-only snapshot of a library: what strategies, tools and readers see.

Documents are read on first use and parsed once; a new View shares what did not change. It opens files
through the store's own loader and never writes.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, KeysView, Mapping, Set
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Literal

from immutables import Map

from infinimem import tokens
from infinimem.embedders.base import Embedder
from infinimem.embedders.connect import lazily
from infinimem.errors import DocumentNotFound, closest
from infinimem.markdown.document import Document
from infinimem.model import CURRENT, LEFT, TRIES, Entry, Located, Unanswered
from infinimem.settings import Settings
from infinimem.spec import StrategySpec, owned_folders, spec_of
from infinimem.store import names
from infinimem.store.derived import Derive, Derived, T
from infinimem.store.lines import Lines, fold, former, said_at
from infinimem.store.listing import Stamp
from infinimem.store.spec import ARCHIVE, EVIDENCE, JOURNAL, TOPICS

Scope = Literal["default", "archive", "kept", "evidence", "journal", "all"]  # kept: the first two

Group = Literal["live", "archive", "evidence", "journal", "aside"]
"""Of documents; "aside" are those of other strategies, and a strategy's books."""

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


def archive_of(topic: str) -> str:
    """Id of the archive of a topic document."""
    return ARCHIVE + topic.split("/", 1)[-1]


def whole(value: object) -> int | None:
    """A whole number as headers and names carry it; None for what is none, or beyond all use."""
    return int(value) if isinstance(value, str) and _WHOLE.match(value) else None


@dataclass(frozen=True)
class Stored:
    """Where the files of a snapshot lie, and the state of each by document id: to derive more from them."""

    root: str
    stamps: Mapping[str, Stamp]
    read: Callable[[str], Document]
    """Gives a document without keeping it."""
    newest: Callable[[], bool] = lambda: True
    """Whether nothing is known of the library that is newer than this snapshot."""


class View:
    """The library at one moment.

    Args:
        ids: ids of all documents, sorted.
        load: gives a document by id.
        settings: the settings in force.
        initialised: whether the folder has an infinimem.toml; without it every document is a note.
        drawn: evidence seqs that were drawn from; None where that list is lost.
        refused: those of which no entry was accepted.
        unanswered: those about which no answer of a model was of use, or that a person wants left.
        buffer_age: seconds since CURRENT last changed.
        stored: the files that it shows; None where it shows them otherwise than they are.
        embedder: connects to what gives texts vectors; None takes the settings and the environment.
        root: the library's absolute path, whose vectors serve here too; None takes that of `stored`.
        before: a snapshot that this one follows, and the ids of the documents in which they differ.
        spec: the strategy that looks: its documents are seen by default, and no sibling's. None takes that of
            the settings.
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
        self._ids = ids
        self._load = load
        self._derived: Derived = before[0]._derived.handed_on(before[1]) if before else Derived()

    def derived(self, make: Derive[T]) -> T:
        """What a function makes of this snapshot, once; it may update what it made of one before."""
        return self._derived.get(self, make)

    @cached_property
    def embedder(self) -> Embedder:
        """What gives texts vectors; it is connected to on first use.

        Raises:
            ModelNotConfigured: a package, a model's files or a key is missing.
        """
        return self.connect_embedder()

    # ── documents ───────────────────────────────────────────────────────────────────────────────

    def ids(self, scope: Scope = "default") -> tuple[str, ...]:
        """Ids of the documents in a scope, sorted."""
        if scope == "kept":
            return tuple(sorted(self.ids() + self.ids("archive")))
        return self._ids if scope == "all" else self._grouped.get("live" if scope == "default" else scope, ())

    def below(self, folder: str) -> tuple[str, ...]:
        """Ids of all that lies below a folder ("topics/"): they stand together."""
        return _below(self._ids, folder)

    @property
    def _grouped(self) -> Mapping[Group, tuple[str, ...]]:
        return self.derived(_groups)

    def group(self, doc_id: str) -> Group:
        """What a document is to the strategy."""
        if self.is_note(doc_id) or doc_id == self.spec.buffer or doc_id.startswith(self.spec.live):
            return "live"
        folders: tuple[tuple[str, Group], ...] = (
            (self.spec.archived, "archive"),
            (EVIDENCE, "evidence"),
            (JOURNAL, "journal"),
        )
        return next((group for folder, group in folders if doc_id.startswith(folder)), "aside")

    def is_note(self, doc_id: str) -> bool:
        """Whether a person owns the whole document, or a model's memory tool: no strategy writes it."""
        return not self.initialised or (doc_id != CURRENT and not doc_id.startswith(owned_folders()))

    def resolve(self, name: str) -> str:
        """The full id that a full id, a path, a bare stem or an alias stands for.

        Raises:
            DocumentNotFound: none, or several; the message lists what is near.
        """
        exact = name.strip().strip("/")
        exact = exact if exact in self else exact.removesuffix(".md").strip("/")
        if exact in self:
            return exact
        wanted = fold(exact)
        if full := self.derived(names.by_id).get(wanted):
            return full[0]
        last = wanted.rsplit("/", 1)[-1]
        found = self.derived(names.by_stem).get(last, ()) if "/" not in wanted else ()
        alias = self.derived(names.by_alias).get(last, ())[:1]
        visible = [doc_id for doc_id in found if self.group(doc_id) == "live"] or alias or found
        if len(visible) == 1:
            return visible[0]
        if visible:
            raise DocumentNotFound(
                f"{name!r} names several documents: {', '.join(visible[:5])}; give the full id"
            )
        raise DocumentNotFound(f"no document is called {name!r}{self._near(wanted)}")

    def _near(self, wanted: str) -> str:
        stems = self.derived(names.by_stem)
        near = closest(wanted.rsplit("/", 1)[-1], stems)
        ids = [min(stems[stem], key=lambda doc_id: self.group(doc_id) != "live") for stem in near]
        return f"; near it: {', '.join(ids)}" if ids else "; list_docs (ls) shows what there is"

    def document(self, doc_id: str) -> Document:
        """The parsed document.

        Raises:
            DocumentNotFound: no document has this very id (see `resolve`).
        """
        if doc_id not in self:
            raise DocumentNotFound(f"no document is called {doc_id!r}; list_docs (ls) shows what there is")
        return self._load(doc_id)

    def each(self, ids: Iterable[str]) -> Iterator[Document]:
        """These documents, one after another; those that nobody else holds are let go."""
        yield from map(self.stored.read if self.stored else self._load, ids)

    def __contains__(self, doc_id: str) -> bool:
        at = bisect_left(self._ids, doc_id)
        return at < len(self._ids) and self._ids[at] == doc_id

    def catalog(self, scope: Scope = "default", folder: str = "") -> tuple[CatalogRow, ...]:
        """A row a document, sorted by id; of those below a folder ("topics/") alone."""
        return tuple(self.row(doc_id) for doc_id in _below(self.ids(scope), folder))

    def row(self, doc_id: str) -> CatalogRow:
        """One row of the catalog; counting the tokens of a large note takes its time.

        Raises:
            DocumentNotFound: as `document`.
        """
        own = self.initialised and doc_id.startswith(TOPICS)
        return (self.derived(_topic_rows).get(doc_id) if own else None) or _row(self, doc_id)

    def showing(self, documents: Mapping[str, Document]) -> View:
        """This library with other documents in it."""
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

    # ── entries ─────────────────────────────────────────────────────────────────────────────────

    def entries(self, scope: Scope = "default") -> Iterator[Located]:
        """Signed lines of a scope, by document and line."""
        for doc_id in self.ids(scope):
            yield from self.document(doc_id).entries

    def entry(self, seq: int) -> Located | None:
        """The line with this seq, wherever it stands; of a doubled one evidence, else the live copy."""
        return self.lines.entry(seq)

    def owned(self, *folders: str) -> tuple[str, ...]:
        """Ids of the program's own documents under these folders."""
        if not self.initialised:
            return ()
        return tuple(doc_id for doc_id in self._ids if doc_id.startswith(folders))

    @cached_property
    def lines(self) -> Lines:
        """All lines of the program's own documents."""
        return self.derived(_lines)

    @property
    def max_seq(self) -> int:
        """The highest seq on disk; 0 in an empty library."""
        return self.lines.highest

    @property
    def cited(self) -> KeysView[int]:
        """Seqs that some entry names as its origin, or some record of the strategy's as its evidence."""
        return KeysView(self.lines.cites)

    def uncited(self, among: Iterable[int] | None = None) -> tuple[Located, ...]:
        """Evidence that is still to be drawn from (store/state/drawn.py), by seq; of these seqs alone."""
        return tuple(self.each_uncited(among))

    def each_uncited(self, among: Iterable[int] | None = None) -> Iterator[Located]:
        """As `uncited`, one after another."""
        newest, lines = 0, self.lines
        if self.spec.has_entries and self.drawn is None:
            cited = map(self.entry, filter(self._is_evidence, lines.cites))
            newest = max((said_at(place.entry) for place in cited if place), default=0)
        wanted = lines.waiting if among is None else (seq for seq in among if seq in lines.waiting)
        for place in map(self.entry, sorted(wanted)):
            if place and said_at(place.entry) > newest and not (self._left(place.seq) or self.repeats(place)):
                yield place

    def unanswered(self) -> Mapping[int, Unanswered]:
        """Turns about which no answer of a model was of use, by seq; without those that are to be left."""
        open_ones = self.lines.places if self.spec.sparse else self.lines.waiting
        there = (seq for seq in sorted(self.tried) if seq in open_ones and seq not in self.cited)
        return {seq: self.tried[seq] for seq in there if not self._left(seq)}

    def given_up(self, model: str, began: View | None = None) -> Set[int]:
        """Seqs of turns that a model is not asked about again, or not in the call that began with a view."""
        before = began.tried if began else self.tried
        return {
            seq
            for seq, one in self.tried.items()
            if self._left(seq) or (one.model == model and one.tries >= TRIES) or before.get(seq) != one
        }

    def _left(self, seq: int) -> bool:
        return seq in self.tried and self.tried[seq].kind == LEFT

    def unfiled(self) -> tuple[int, ...]:
        """Seqs of the turns that readers see themselves: no entry says yet, or acceptably, what they say."""
        seqs = self.lines.places if self.spec.sparse else {*self.refused, *filter(self._left, self.tried)}
        refused = (seq for seq in seqs if self._is_evidence(seq) and seq not in self.lines.cites)
        return tuple(sorted({place.seq for place in self.each_uncited()}.union(refused)))

    @property
    def processed(self) -> frozenset[int]:
        """Seqs of evidence that was drawn from, be it on the list or not; with those on it that are gone."""
        said = frozenset(place.entry.seq for place in self.entries("evidence"))
        return (said | frozenset(self.drawn or ())) - {place.seq for place in self.each_uncited()}

    def repeats(self, place: Located) -> bool:
        """Whether a turn stands in a copied file, and the same turn in another."""
        entry = place.entry
        return place.doc_id.startswith(EVIDENCE) and any(
            first is not None and without_seqs(first.entry) == without_seqs(entry)
            for first in map(self.entry, former(entry))
        )

    def _is_evidence(self, seq: int) -> bool:
        return self.lines.places.get(seq, "").startswith(EVIDENCE)

    @cached_property
    def buffer(self) -> Document:
        """CURRENT; an empty document where there is none."""
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
        found: dict[Group, list[str]] = {}
        for doc_id in view.ids("all"):
            found.setdefault(view.group(doc_id), []).append(doc_id)
        return {group: tuple(ids) for group, ids in found.items()}
    grouped = dict(known)
    for doc_id in changed:
        group = view.group(doc_id)
        ids = grouped.get(group, ())
        at = bisect_left(ids, doc_id)
        there = ids[at : at + 1] == (doc_id,)
        if there != (doc_id in view):
            grouped[group] = (*ids[:at], *(() if there else (doc_id,)), *ids[at + there :])
    return grouped


def _lines(view: View, known: Lines | None, changed: Collection[str] | None) -> Lines:
    if known is None or changed is None:
        known, changed = Lines(view.spec), view.owned(*Lines(view.spec).folders)
    mine = (doc_id for doc_id in changed if doc_id.startswith(known.folders))  # no receipt is read
    found = {doc_id: view.document(doc_id) if doc_id in view else None for doc_id in mine}
    return known.after(found, view.drawn, view.is_note) if found or view.drawn is not known.drawn else known


def _below(ids: tuple[str, ...], folder: str) -> tuple[str, ...]:
    """The ids that begin with "folder/", or all for "": they stand together."""
    end = f"{folder[:-1]}0"  # "0" comes after "/"
    return ids[bisect_left(ids, folder) : bisect_left(ids, end)] if folder else ids


def _topic_rows(
    view: View, known: Map[str, CatalogRow] | None, changed: Collection[str] | None
) -> Map[str, CatalogRow]:
    """The catalog's rows of topics; one also tells of the archives that bear its names."""
    if known is None or changed is None:
        known, changed = Map(), view.below(TOPICS)
    aliases = view.derived(names.by_alias)
    due = {doc_id for doc_id in changed if doc_id.startswith(TOPICS)}
    for name in (doc_id.removeprefix(ARCHIVE) for doc_id in changed if doc_id.startswith(ARCHIVE)):
        due.update((f"{TOPICS}{name}", *aliases.get(fold(name), ())))
    rows = known.mutate()
    for doc_id in due:
        if doc_id in view:
            rows[doc_id] = _row(view, doc_id)
        else:
            rows.pop(doc_id, None)
    return rows.finish()


def _row(view: View, doc_id: str) -> CatalogRow:
    document = view.document(doc_id)
    archived = 0
    if view.initialised and doc_id.startswith(TOPICS):
        named = (f"{ARCHIVE}{alias}" for alias in names.aliases_of(document))
        archives = [found for found in {archive_of(doc_id), *named} if found in view]
        archived = sum(len(view.document(found).entries) for found in archives)
    size = whole(document.header.values.get("token_count"))
    count = tokens.count(document.body) if size is None else size
    summary = document.summary or next((head.title for head in document.headings if head.title), "")
    return CatalogRow(doc_id, document.title, summary, count, len(document.entries), archived)


def without_seqs(entry: Entry) -> Entry:
    """What an entry says, without its own seq, those that it had, and its bytes: for comparing."""
    fields = {key: value for key, value in entry.fields.items() if key != "was"}
    return replace(entry, seq=1, line="", fields=fields)
