"""What can be found in a document: its entries, its heading blocks, and the terms each is found by.

An entry is found by its text, speaker, date and `refers`, by the turns around the evidence that it came
from, and by that evidence's session. It knows the layout of a library, nothing of ranking.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from infinimem.embedders.base import text_key
from infinimem.law import happened
from infinimem.markdown.document import Document
from infinimem.markdown.sections import Partition, partitions
from infinimem.model import Entry, Located, Retrieved
from infinimem.retrieval.origins import Origins
from infinimem.retrieval.rows import GROUPS, Found, Read, date_parts, found_of, name_key
from infinimem.spec import folders
from infinimem.store.lines import common_time, drawn_from, names_of, said_in
from infinimem.store.records import turns_behind
from infinimem.store.sources import unsigned_source
from infinimem.store.spec import EVIDENCE
from infinimem.store.view import View
from infinimem.terms import MONTHS, analyzer

CONTEXT_LENGTH = 2000
"""Characters of a turn that are context of another entry; every entry carries its own copy."""

LONG, PIECE = 2000, 1000
"""Characters of a text beyond which it is found in pieces, 4,000 at most, and bytes of a piece, about."""

TAGS = ("tags", "tag", "keywords", "categories")
"""Keys of a note's header that file it under words."""
_ITEM = re.compile(r"(?:[-*+]|\d+[.)])\s")


@lru_cache(maxsize=1 << 12)
def date_words(date: str) -> str:
    """A date as people ask for it: "2023-05-08" gives "8 May 2023"."""
    year, month, day = date_parts(date)
    if not year:
        return ""
    name = MONTHS[month - 1] if 0 < month <= len(MONTHS) else ""
    return f"{day or ''} {name} {year:04}"


class Pieces:
    """Reads the pieces of documents.

    Args:
        view: the snapshot that they are of.
        origins: the evidence behind entries.
    """

    def __init__(self, view: View, origins: Origins) -> None:
        self._view = view
        self._origins = origins
        self.words = analyzer(view.settings.search.language)

    def read(self, document: Document, uid: int) -> Read | None:
        """What of a document can be found; None for a strategy's ledger or a sibling's document.

        Its entries, and what people wrote unsigned between them, and its heading blocks. A document without
        entries is a note, whose blocks stand for entries too; a turn that stands in a copied file too is left
        out there.

        Args:
            document: what is read.
            uid: that it is known by.
        """
        group = self._view.group(document.id)
        if group == "aside":
            return None
        at = uid, GROUPS.index(group)
        title = self.words.kept(f"{document.id} {document.summary}")
        entries = [self._entry(place, at) for place in document.entries if not self._view.repeats(place)]
        known = {found.row.start: found.own for found in entries}
        called = [name for name in names_of(document) if name]
        tags = said_in(document, *TAGS) if self._view.is_note(document.id) else ()
        terms_of = dict.fromkeys(map(self.words.kept, called))
        names = (
            _joined([*terms_of, *map(self.words.kept, tags)]),
            tuple({name_key(self.words, name): None for name in called}),
        )
        blocks = [self._block(document, *part, title, at) for part in self.parts(document, known)]
        blocks, first = self._in_pieces(document, blocks), blocks[:1]
        if first and blocks[0].row != first[0].row and self._view.is_note(document.id):
            blocks[0] = blocks[0]._replace(own=_joined([blocks[0].own, *self._header_terms(document)]))
        if not document.entries:
            return Read(at[1], blocks, blocks, *names)
        entries = self._in_pieces(document, [*entries, *self._passages(document, at)])
        return Read(at[1], sorted(entries, key=lambda found: found.row.number), blocks, *names)

    def parts(self, document: Document, known: Mapping[int, str] = {}) -> list[tuple[Partition, str]]:
        """The heading blocks of a document with their terms, the first of a note with its header's too."""
        parts = [block for block in partitions(document) if block.text.strip()]
        note, end = self._view.is_note(document.id), document.header.end
        if note and end and not parts:  # all that it says
            parts = [Partition((), 1, end, document.text(1, end))]
        terms = [self.terms_at(document, block.start_line, block.end_line, known) for block in parts]
        if note and parts:
            terms[0] = _joined([terms[0], *self._header_terms(document)])
        return list(zip(parts, terms, strict=True))

    def _header_terms(self, document: Document) -> Iterator[str]:
        return map(self.words.kept, said_in(document, *document.header.values))

    # ── as they are shown ───────────────────────────────────────────────────────────────────────

    def lines(self, document: Document, start: int, end: int, headings: tuple[str, ...]) -> Retrieved:
        """Some lines as one piece; those of a record came from the turns behind it."""
        text = document.text(start, end)
        # Reading all of a note only to see that it holds no entry would cost more than finding it.
        signed = "- <" in text or document.id.startswith(EVIDENCE)
        places, turns = document.entries_in(start, end) if signed else (), list[Entry]()
        if document.id.startswith(folders().records):
            places, origin = (), turns_behind(document, self._record)
            turns = [turn.entry for turn in self._origins.turns(origin)]
            sources = {turn.source for turn in turns}
        else:
            origin = tuple(dict.fromkeys(seq for place in places for seq in self._origins.of(place)))
            sources = {place.entry.source for place in places} or {unsigned_source(self._view, document.id)}
        speakers = {turn.fields.get("speaker") for turn in turns}
        return Retrieved(
            doc_id=document.id,
            start_line=start,
            end_line=end,
            text=text,
            score=0.0,
            seqs=tuple(place.entry.seq for place in places),
            origin=origin,
            time=common_time(turn.time for turn in turns),
            source=sources.pop() if len(sources) == 1 else None,
            headings=headings,
            speaker=speakers.pop() if len(speakers) == 1 else None,
            physical=True,
        )

    def _record(self, name: str) -> Document | None:
        found = (f"{folder}{name}" for folder in folders().records)
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
            speaker=self._speaker(place, self._origins.behind(place)),
            when=self._when(place),
            refers=entry.fields.get("refers"),
            label=entry.fields.get("label"),
        )

    def _when(self, place: Located) -> str | None:
        """When it happened; of a line of an earlier version what its `time` tells beside its turns'."""
        if not place.entry.origin or "when" in place.entry.fields:
            return place.entry.fields.get("when")
        turns = {turn.seq: turn for turn in self._origins.behind(place)}
        return happened(place.entry, turns.get)

    # ── as they are found ───────────────────────────────────────────────────────────────────────

    def terms_at(self, document: Document, start: int, end: int, known: Mapping[int, str] = {}) -> str:
        """The terms of some lines, joined by spaces; signatures as speaker and date, or as `known`."""
        if not document.entries_in(start, end):
            return self.words.joined_terms(document.text(start, end))
        return _joined(
            self.words.joined_terms(part)
            if isinstance(part, str)
            else known.get(part.start_line) or self._entry_terms(part, self._origins.behind(part))
            for part in _parts(document, start, end)
        )

    def _entry(self, place: Located, at: tuple[int, int]) -> Found:
        entry, turns = place.entry, self._origins.behind(place)
        # a model's wording is also found by what was said
        said = (turn for turn in turns if turn.entry.text != entry.text)
        # of a pasted book only how it begins
        near = self._origins.around(self._origins.of(place))
        beside = (turn.entry.text[:CONTEXT_LENGTH] for turn in (*near, *said))
        context = map(self.words.kept, beside)
        around = _joined([*context, self.words.kept(" ".join(place.headings))])
        whole = turns[0].doc_id if turns else place.doc_id
        where, speaker = (place.doc_id, place.start_line, place.end_line), self._speaker(place, turns)
        item = Retrieved(*where, entry.text, 0.0, (entry.seq,), (), entry.time, entry.source, (), speaker)
        own = self._entry_terms(place, turns)
        return found_of(item, at, own, around, whole, entry.text, drawn_from(entry))

    def _in_pieces(self, document: Document, rows: Iterable[Found]) -> list[Found]:
        """These rows, in place of each with a long text a row for each piece of it."""
        found: list[Found] = []
        for one in rows:
            start, end = one.row.start, one.row.end
            is_long = sum(map(len, document.lines[start - 1 : end])) + end - start > LONG
            text = plain(document, start, end) if is_long else ""
            places = document.entries_in(start, end) if len(text) > LONG else ()
            beside = [self._beside(place, self._origins.behind(place)) for place in places]
            for piece, span in enumerate(parts := cuts(text), 1):
                said = text[slice(*span)]
                row = one.row._replace(number=one.row.number | piece)
                own = _joined([self.words.joined_terms(said), *beside])
                found.append(one._replace(row=row, own=own, key=text_key(said)))
            found += [] if parts else [one]
        return found

    def _entry_terms(self, place: Located, turns: Sequence[Located]) -> str:
        return _joined([self.words.kept(place.entry.text), self._beside(place, turns)])

    def _beside(self, place: Located, turns: Sequence[Located]) -> str:
        """Terms of who said an entry, when, and what it refers to."""
        entry = place.entry
        times = [*entry.fields.get("when", "").split("/"), entry.time, *(turn.entry.time for turn in turns)]
        dates = dict.fromkeys(date_words((time or "")[:10]) for time in dict.fromkeys(times))
        extra = " ".join([self._speaker(place, turns) or "", entry.fields.get("refers", ""), *dates])
        return self.words.kept(extra)

    def _passages(self, document: Document, at: tuple[int, int]) -> Iterator[Found]:
        """What people wrote between the entries of a document: list items and paragraphs."""
        places = {place.start_line: place for place in document.entries}
        titles = {heading.line for heading in document.headings}
        start = line = document.header.end + 1
        while line <= len(document.lines) + 1:
            text = document.text_line(line) if line <= len(document.lines) else ""
            ends = not text.strip() or line in places or line in titles
            if start < line and (ends or _ITEM.match(text)):
                item = passage(document, start, line - 1)
                around = self.words.kept(" ".join([document.summary, *item.headings]))
                yield found_of(item, at, self.words.kept(item.text), around, document.id, item.text)
                start = line
            if line in places:
                line = places[line].end_line
            line += 1
            if ends:
                start = line

    def _speaker(self, place: Located, turns: Sequence[Located]) -> str | None:
        """Who said it: the entry's own field, or the one speaker of all its origins."""
        if "speaker" in place.entry.fields:
            return place.entry.fields["speaker"]
        names = {turn.entry.fields.get("speaker") for turn in turns}
        return names.pop() if len(names) == 1 else None

    def _block(
        self, document: Document, block: Partition, own: str, title: str, at: tuple[int, int]
    ) -> Found:
        item = self.lines(document, block.start_line, block.end_line, block.headings)
        around = _joined([title, self.words.kept(" ".join(block.headings))])
        text = plain(document, block.start_line, block.end_line)
        return found_of(item, at, own, around, document.id, text)


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


def cuts(text: str) -> list[tuple[int, int]]:
    """Where the pieces of a long text begin and end: with a line or a sentence, or else a word."""
    size = max(PIECE * len(text) // len(text.encode("utf-8", "surrogatepass") or b" "), len(text) // 2000)
    at, found = 0, list[tuple[int, int]]()
    while at < len(text) > LONG:
        ends = (text.rfind(mark, at + size // 2, at + size) + 1 for mark in ("\n", ". ", " "))
        end = next(filter(None, ends), at + size) if at + size < len(text) else len(text)
        found.append((at, end))
        at = end
    return found


def cut(text: str, piece: int) -> tuple[int, int]:
    """Where a piece of a text stands; all of it for 0, or if it was saved meanwhile and has no such piece."""
    return next(iter(cuts(text)[piece - 1 : piece]), (0, len(text)))


def part(document: Document, item: Retrieved, piece: int) -> Retrieved:
    """A piece of what stands in a document; "…" stands where the text goes on."""
    text = plain(document, item.start_line, item.end_line)
    start, end = cut(text, piece)
    item = replace(
        item, text="…" * (start > 0) + text[start:end].strip(" ").rstrip() + "…" * (end < len(text))
    )
    if document.entries_in(item.start_line, item.end_line):
        return item
    first = item.start_line + text.count("\n", 0, start)
    return replace(item, start_line=first, end_line=first + item.text.count("\n"))


def passage(document: Document, start: int, end: int) -> Retrieved:
    """What a person wrote between the entries of a document, as a piece."""
    text = document.text(start, end)
    return Retrieved(document.id, start, end, text, 0.0, source="human", headings=document.path_at(start))
