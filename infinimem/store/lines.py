"""What the lines of a library come to: where each seq stands, what cites it, what is still to be drawn from.

A snapshot takes this over from the one before and counts only the documents that changed. Maps share what did
not change (hash array mapped tries), so no snapshot sees another's changes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace

from immutables import Map

from infinimem.markdown.characters import clean_text, normalize, one_line
from infinimem.markdown.document import Document
from infinimem.markdown.signature import parse_seqs
from infinimem.model import CURRENT, Entry, Located
from infinimem.spec import StrategySpec
from infinimem.store.records import held_by
from infinimem.store.spec import ARCHIVE, EVIDENCE, TOPICS
from infinimem.store.state import Seqs

_FOLDERS = (ARCHIVE, CURRENT, TOPICS, EVIDENCE)
"""Of signed lines. Of a seq that stands twice the line in the later one counts."""


def former(entry: Entry) -> tuple[int, ...]:
    """Return seqs that a line had before a merge, and that another has now."""
    if "was" in entry.fields:
        with suppress(ValueError):
            return parse_seqs(entry.fields["was"])
    return ()


def said_at(turn: Entry) -> int:
    """Return its place in the order of turns: a merge may have given it a later seq."""
    return min((turn.seq, *former(turn)))


def drawn_from(entry: Entry) -> tuple[int, ...]:
    """Return its origin, but for what only tells where its number came from."""
    had = former(entry)
    return tuple(seq for seq in entry.origin if seq not in had) if had else entry.origin


Mark = tuple[str, ...]
"""By what a turn is recognised when it comes again; its text is no mark, people repeat themselves."""


def marks_of(key: str | None, session: str | None, turn: str | None) -> list[Mark]:
    marks: list[Mark] = [("key", plain(key))] if key else []
    if session and turn:
        marks.append(("turn", plain(session), plain(turn)))
    return marks


def plain(value: str) -> str:
    """Return a name as a field of a signature can hold it."""
    return one_line(clean_text(value))


def fold(name: str) -> str:
    """Return a name as ids are compared: case-folded and in NFC, as file systems do."""
    return normalize("NFC", name).casefold()


@dataclass(frozen=True)
class Lines:
    """The lines of one snapshot.

    Args:
        spec: whose records count as citing.
        documents: as they were counted, by id.
        places: the document with the line that a seq stands for: of several in it the last.
        doubled: of seqs that stand more than once the document of each line, in order of precedence.
        cites: how many entries, or records, name a line as what they come from.
        waiting: evidence that nothing cites and that was not drawn from.
        sessions: the first evidence document of each session, by its name.
        marks: document and seq of marked evidence.
        drawn: the list of what was drawn from, as it was then; None where it is lost.
        entries, merged: how many lines stand outside of evidence, and had another seq before a merge.
        highest: the highest seq; 0 for none.
    """

    spec: StrategySpec
    documents: Map[str, Document] = field(default_factory=Map)
    places: Map[int, str] = field(default_factory=Map)
    doubled: Map[int, tuple[str, ...]] = field(default_factory=Map)
    cites: Map[int, int] = field(default_factory=Map)
    waiting: Map[int, None] = field(default_factory=Map)
    sessions: Map[str, str] = field(default_factory=Map)
    marks: Map[Mark, tuple[str, int]] = field(default_factory=Map)
    drawn: Set[int] | None = None
    entries: int = 0
    merged: int = 0
    highest: int = 0

    def entry(self, seq: int) -> Located | None:
        doc_id = self.places.get(seq)
        return None if doc_id is None else self.documents[doc_id].entry(seq)

    def after(
        self, changed: Mapping[str, Document | None], drawn: Set[int] | None, is_note: Callable[[str], bool]
    ) -> Lines:
        """Return the lines once these documents changed (None: gone); lines of a person's do not count."""
        counting = _Counting(self)
        for doc_id, document in changed.items():
            if doc_id.startswith(self.folders) and not is_note(doc_id):
                counting.count(doc_id, document)
        return counting.done(drawn)

    @property
    def folders(self) -> tuple[str, ...]:
        """Folders of the documents whose lines, or records, count."""
        return (*_FOLDERS, *self.spec.folders)


def _order(doc_id: str) -> tuple[int, str]:
    """Sort documents so that of lines with one seq that in the last counts: evidence, else the live copy."""
    return next(n for n, name in enumerate(_FOLDERS) if doc_id.startswith(name)), doc_id


class _Counting:
    def __init__(self, before: Lines) -> None:
        self._before = before
        self._documents = before.documents
        self._places = before.places.mutate()
        self._doubled = before.doubled.mutate()
        self._cites = before.cites.mutate()
        self._sessions = before.sessions.mutate()
        self._marks = before.marks.mutate()
        self._entries, self._merged, self._highest = before.entries, before.merged, before.highest
        self._remarked = False
        self._doubtful: set[int] = set()

    def count(self, doc_id: str, document: Document | None) -> None:
        """Take a document's old lines out and its new ones in; those that were appended to stay."""
        old = self._documents.get(doc_id)
        if document is None:
            self._documents = self._documents.delete(doc_id) if old else self._documents
        else:
            self._documents = self._documents.set(doc_id, document)
        if not doc_id.startswith(_FOLDERS):  # a record: what its header names
            if doc_id.startswith((*self._before.spec.live, self._before.spec.archived)):
                self._cite(held_by(old) if old else (), -1)
                self._cite(held_by(document) if document else (), 1)
            return
        if doc_id.startswith(EVIDENCE):
            self._name(doc_id, _session(old), _session(document))
        gone, came = old.entries if old else (), document.entries if document else ()
        if gone and came[: len(gone)] == gone and _session(old) == _session(document):
            gone, came = (), came[len(gone) :]
        for place in gone:
            self._remove(place.seq, doc_id)
        for place in came:
            self._add(place.seq, doc_id)
        self._merged += sum(bool(former(place.entry)) for place in came)
        self._merged -= sum(bool(former(place.entry)) for place in gone)
        if doc_id.startswith(EVIDENCE):
            self._remarked = self._remarked or bool(gone)
            self._mark(_session(document), came)
            return
        self._entries += len(came) - len(gone)
        if self._before.spec.has_entries:
            self._cite((seq for place in gone for seq in drawn_from(place.entry)), -1)
            self._cite((seq for place in came for seq in drawn_from(place.entry)), 1)

    def _name(self, doc_id: str, was: str | None, session: str | None) -> None:
        if was is not None and was != session and self._sessions.get(was) == doc_id:
            del self._sessions[was]
            others = (one.id for one in self._evidence() if one.id != doc_id and _session(one) == was)
            if first := next(others, None):
                self._sessions[was] = first
        if session is not None and doc_id <= self._sessions.get(session, doc_id):
            self._sessions[session] = doc_id

    def _mark(self, session: str | None, places: Iterable[Located]) -> None:
        for place in places:
            fields = place.entry.fields
            for mark in marks_of(fields.get("key"), fields.get("session", session), fields.get("turn")):
                there = self._marks.get(mark)
                if there is None or there[0] <= place.doc_id:
                    self._marks[mark] = place.doc_id, place.seq

    def _add(self, seq: int, doc_id: str) -> None:
        self._doubtful.add(seq)
        self._highest = max(self._highest, seq)
        if (there := self._places.get(seq)) is not None:
            every = sorted((*self._doubled.get(seq, (there,)), doc_id), key=_order)
            self._doubled[seq] = tuple(every)
            doc_id = every[-1]
        self._places[seq] = doc_id

    def _remove(self, seq: int, doc_id: str) -> None:
        self._doubtful.add(seq)
        left = [*self._doubled.pop(seq, (doc_id,))]
        left.remove(doc_id)
        if left:
            self._places[seq] = left[-1]
            if len(left) > 1:
                self._doubled[seq] = tuple(left)
        else:
            del self._places[seq]

    def _cite(self, seqs: Iterable[int], by: int) -> None:
        for seq in seqs:
            count = self._cites.get(seq, 0) + by
            if count:
                self._cites[seq] = count
            else:
                self._cites.pop(seq, None)
            self._doubtful.add(seq)

    def _evidence(self) -> list[Document]:
        return [self._documents[name] for name in sorted(self._documents) if name.startswith(EVIDENCE)]

    def done(self, drawn: Set[int] | None) -> Lines:
        if self._remarked:  # a turn was edited or went: another may carry its mark
            self._marks = Map[Mark, tuple[str, int]]().mutate()
            for document in self._evidence():
                self._mark(_session(document), document.entries)
        before, places = self._before, self._places.finish()
        lines = replace(
            before,
            documents=self._documents,
            places=places,
            doubled=self._doubled.finish(),
            cites=self._cites.finish(),
            sessions=self._sessions.finish(),
            marks=self._marks.finish(),
            drawn=drawn,
            entries=self._entries,
            merged=self._merged,
            highest=self._highest if self._highest in places else max(places, default=0),
        )
        news = drawn.since(before.drawn) if isinstance(drawn, Seqs) else None
        if drawn is before.drawn:
            news = ()
        doubtful: Collection[int] = places if news is None else {*self._doubtful, *news}
        waiting = (Map[int, None]() if news is None else before.waiting).mutate()
        listed: Collection[int] = drawn if before.spec.lists_turns and drawn is not None else ()
        if news is None:
            listed = frozenset(listed)  # all of it is asked for
        for seq in doubtful:
            if places.get(seq, "").startswith(EVIDENCE) and seq not in lines.cites and seq not in listed:
                waiting[seq] = None
            else:
                waiting.pop(seq, None)
        return replace(lines, waiting=waiting.finish())


def _session(document: Document | None) -> str | None:
    values = document.header.values if document else {}
    return str(values["session"]) if "session" in values else None


def common_time(times: Iterable[str | None]) -> str | None:
    """Return the time that all share, or else the date that all share."""
    distinct = set(times)
    if None in distinct or not distinct:
        return None
    dates = {time[:10] for time in distinct if time}
    return distinct.pop() if len(distinct) == 1 else dates.pop() if len(dates) == 1 else None
