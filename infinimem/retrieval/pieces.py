"""What can be found in a document: its entries, its heading blocks, and the terms each is found by.

An entry is found by its text, speaker, date and `refers`, by the turns around the evidence that it came
from, and by that evidence's session. It knows the layout of a library, nothing of ranking.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from infinimem import chronology
from infinimem.markdown.document import Document
from infinimem.markdown.sections import Partition, partitions
from infinimem.model import Located, Retrieved
from infinimem.retrieval.origins import Origins
from infinimem.spec import record_folders
from infinimem.store.lines import common_time, drawn_from
from infinimem.store.records import turns_behind
from infinimem.store.sources import unsigned_source
from infinimem.store.spec import EVIDENCE
from infinimem.store.view import View
from infinimem.terms import analyzer

CONTEXT_LENGTH = 2000
"""Characters of a turn that are context of another entry; every entry carries its own copy."""

_MONTHS = (
    *("", "January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DATE = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?")
_ITEM = re.compile(r"(?:[-*+]|\d+[.)])\s")


@dataclass(frozen=True)
class Piece:
    """A findable piece: what is shown of it (score 0) and the terms that it is found by, joined by spaces."""

    item: Retrieved
    own: str
    """What it says, with who said it and when."""
    around: str
    """What stands around it."""
    whole: str
    """Id of the document or session that it belongs to."""
    cites: tuple[int, ...] = ()
    """What an entry was drawn from, as its signature says."""
    text: str = ""
    """What it says, without signatures: what vectors are made of."""


def date_parts(time: str | None) -> tuple[int, int, int]:
    """Year, month and day of a time, 0 for each that it does not name."""
    found = _DATE.match(time or "")
    return (int(found[1]), int(found[2] or 0), int(found[3] or 0)) if found else (0, 0, 0)


def date_words(time: str | None) -> str:
    """A date as people ask for it: "2023-05-08T13:56:00" gives "8 May 2023"."""
    year, month, day = date_parts(time)
    if not year:
        return ""
    return f"{day or ''} {_MONTHS[month] if month < len(_MONTHS) else ''} {year:04}"


class Pieces:
    """Reads the pieces of documents.

    Args:
        view: the snapshot that they are of.
        origins: the evidence behind entries.
    """

    def __init__(self, view: View, origins: Origins) -> None:
        self._view = view
        self._origins = origins
        self._words = analyzer(view.settings.search.language)

    def entries(self, document: Document) -> list[Piece]:
        """Its entries, and what people wrote unsigned between them, by line.

        A document without entries is a note and comes in heading blocks; a turn that stands in a copied file
        too is left out there.
        """
        if not document.entries:
            return self.blocks(document)
        places = (place for place in document.entries if not self._view.repeats(place))
        found = [*map(self._entry, places), *self._passages(document)]
        return sorted(found, key=lambda piece: piece.item.start_line)

    def blocks(self, document: Document) -> list[Piece]:
        """Its heading blocks, by line."""
        title = self._words.kept(f"{document.id} {document.summary}")
        return [self._block(document, block, title) for block in partitions(document) if block.text.strip()]

    # ── as they are shown ───────────────────────────────────────────────────────────────────────

    def lines(self, document: Document, start: int, end: int, headings: tuple[str, ...]) -> Retrieved:
        """Some lines as one piece; those of a record came from the turns behind it."""
        text = document.text(start, end)
        if document.id.startswith(record_folders()):
            return self._quoted(document, start, end, text, headings)
        # Reading all of a note only to see that it holds no entry would cost more than finding it.
        signed = "- <" in text or document.id.startswith(EVIDENCE)
        places = document.entries_in(start, end) if signed else ()
        origin = tuple(dict.fromkeys(seq for place in places for seq in self._origins.of(place)))
        sources = {place.entry.source for place in places} or {unsigned_source(self._view, document.id)}
        return Retrieved(
            doc_id=document.id,
            start_line=start,
            end_line=end,
            text=text,
            score=0.0,
            seqs=tuple(place.entry.seq for place in places),
            origin=origin,
            source=sources.pop() if len(sources) == 1 else None,
            headings=headings,
            physical=True,
        )

    def _quoted(
        self, document: Document, start: int, end: int, text: str, headings: tuple[str, ...]
    ) -> Retrieved:
        seqs = turns_behind(document, self._record)
        turns = [turn.entry for turn in self._origins.turns(seqs)]
        sources = {turn.source for turn in turns}
        speakers = {turn.fields.get("speaker") for turn in turns}
        return Retrieved(
            doc_id=document.id,
            start_line=start,
            end_line=end,
            text=text,
            score=0.0,
            origin=seqs,
            time=common_time(turn.time for turn in turns),
            source=sources.pop() if len(sources) == 1 else None,
            headings=headings,
            speaker=speakers.pop() if len(speakers) == 1 else None,
            physical=True,
        )

    def _record(self, name: str) -> Document | None:
        found = (f"{folder}{name}" for folder in record_folders())
        return next((self._view.document(doc_id) for doc_id in found if doc_id in self._view), None)

    def entry(self, place: Located) -> Retrieved:
        """An entry as a piece."""
        entry = place.entry
        return Retrieved(
            doc_id=place.doc_id,
            start_line=place.start_line,
            end_line=place.end_line,
            text=entry.text,
            score=0.0,
            seqs=(entry.seq,),
            origin=self._origins.of(place),
            time=entry.time,
            source=entry.source,
            headings=place.headings,
            speaker=self._speaker(place),
            when=self._when(place),
            refers=entry.fields.get("refers"),
        )

    def _when(self, place: Located) -> str | None:
        """When it happened; of a line of an earlier version what its `time` tells beside its turns'."""
        if not place.entry.origin or "when" in place.entry.fields:
            return place.entry.fields.get("when")
        turns = {turn.seq: turn for turn in self._origins.turns(self._origins.of(place))}
        return chronology.happened(place.entry, turns.get)

    # ── as they are found ───────────────────────────────────────────────────────────────────────

    def terms_at(self, document: Document, start: int, end: int) -> str:
        """The terms of some lines, joined by spaces, signatures read as speaker and date."""
        if not document.entries_in(start, end):
            return self._words.joined_terms(document.text(start, end))
        parts = _parts(document, start, end)
        return _joined(
            self._words.joined_terms(part) if isinstance(part, str) else self._entry_terms(part)
            for part in parts
        )

    def _entry(self, place: Located) -> Piece:
        entry, origin = place.entry, self._origins.of(place)
        turns = self._origins.turns(origin)
        # a model's wording is also found by what was said
        said = (turn for turn in turns if turn.entry.text != entry.text)
        context = map(self._context, (*self._origins.around(origin), *said))
        around = _joined([*context, self._words.kept(" ".join(place.headings))])
        whole = turns[0].doc_id if turns else place.doc_id
        own, cites = self._entry_terms(place), drawn_from(entry)
        return Piece(self.entry(place), own, around, whole, cites, entry.text)

    def _entry_terms(self, place: Located) -> str:
        entry = place.entry
        said = (turn.entry.time for turn in self._origins.turns(self._origins.of(place)))
        when = entry.fields.get("when", "").split("/")
        dates = dict.fromkeys(map(date_words, dict.fromkeys([*when, entry.time, *said])))
        extra = " ".join([self._speaker(place) or "", entry.fields.get("refers", ""), *dates])
        return _joined([self._words.kept(entry.text), self._words.kept(extra)])

    def _passages(self, document: Document) -> Iterator[Piece]:
        """What people wrote between the entries of a document: list items and paragraphs."""
        places = {place.start_line: place for place in document.entries}
        titles = {heading.line for heading in document.headings}
        start = line = document.header.end + 1
        while line <= len(document.lines) + 1:
            text = document.text_line(line) if line <= len(document.lines) else ""
            ends = not text.strip() or line in places or line in titles
            if start < line and (ends or _ITEM.match(text)):
                item = passage(document, start, line - 1)
                around = self._words.kept(" ".join([document.summary, *item.headings]))
                yield Piece(item, self._words.kept(item.text), around, document.id, text=item.text)
                start = line
            if line in places:
                line = places[line].end_line
            line += 1
            if ends:
                start = line

    def _context(self, turn: Located) -> str:
        """The terms of a turn, as context of others: of a pasted book only how it begins."""
        return self._words.kept(turn.entry.text[:CONTEXT_LENGTH])

    def _speaker(self, place: Located) -> str | None:
        """Who said it: the entry's own field, or the one speaker of all its origins."""
        if "speaker" in place.entry.fields:
            return place.entry.fields["speaker"]
        said = self._origins.turns(self._origins.of(place))
        names = {turn.entry.fields.get("speaker") for turn in said}
        return names.pop() if len(names) == 1 else None

    def _block(self, document: Document, block: Partition, title: str) -> Piece:
        own = self.terms_at(document, block.start_line, block.end_line)
        item = self.lines(document, block.start_line, block.end_line, block.headings)
        around = _joined([title, self._words.kept(" ".join(block.headings))])
        return Piece(item, own, around, document.id, text=plain(document, block.start_line, block.end_line))


def _joined(terms: Iterable[str]) -> str:
    return " ".join(filter(None, terms))


def plain(document: Document, start: int, end: int) -> str:
    """Some lines without signatures: `Piece.text` of what stands there."""
    if not document.entries_in(start, end):
        return document.text(start, end)
    parts = _parts(document, start, end)
    return "\n".join(part if isinstance(part, str) else part.entry.text for part in parts)


def _parts(document: Document, start: int, end: int) -> Iterator[Located | str]:
    """Some lines: the entries that begin there, and what stands between them line by line."""
    places = {place.start_line: place for place in document.entries_in(start, end)}
    line = start
    while line <= end:
        place = places.get(line)
        yield place or document.text_line(line)
        line = place.end_line + 1 if place else line + 1


def passage(document: Document, start: int, end: int) -> Retrieved:
    """What a person wrote between the entries of a document, as a piece."""
    text = document.text(start, end)
    return Retrieved(document.id, start, end, text, 0.0, source="human", headings=document.path_at(start))
