"""What can be found in documents, and how it is shown: entries, passages, heading blocks, whole documents.

In: a document, and ways to look up seqs and other documents. Out: rows for the index (tables.py), each with
the terms that it is found by (docs/SEARCH.md), and `Retrieved` pieces. It knows nothing of ranking.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import lru_cache
from typing import Literal, NamedTuple

from infinimem.law import happened
from infinimem.markdown.characters import text_key
from infinimem.markdown.document import Document
from infinimem.markdown.sections import Partition, partitions
from infinimem.model import Entry, Located, Retrieved
from infinimem.spec import folders
from infinimem.store.lines import common_time, names_of, said_in, turns_behind
from infinimem.store.spec import EVIDENCE
from infinimem.store.view import View, unsigned_source
from infinimem.terms import MONTHS, Analyzer, analyzer

GROUPS = ("live", "archive", "evidence", "journal")
"""Of documents that can be found, in the order of their numbers."""
PASSAGE, BLOCK, WHOLE = 0, -1, -2
"""In place of a line's id: what is unsigned, a note's heading block, a document with its names around it."""
NEIGHBOURS = 2
"""How many turns before and after count as what was said around one."""
FOLLOWED = 1000
"""Origins of one entry that are followed; a damaged file may name a million."""
CONTEXT_LENGTH = 2000
"""Characters of a turn that are context of another entry; every entry carries its own copy."""
LONG, PIECE = 2000, 1000
"""Characters of a text beyond which it is found in pieces, 4,000 at most, and bytes of a piece, about."""
STATED = 100
"""Characters beside its questions from which on a text states something; a greeting has fewer."""
TAGS = ("tags", "tag", "keywords", "categories")
"""Keys of a note's header that file it under words."""

_LOOKED_AT = 2000
"""Characters of a text that are looked at for questions."""
_SENTENCE = re.compile(r"""\S.*?(?:[.!?]++["')\]*_”’]*(?=\s|$)|[。！？؟]++|$)""", re.MULTILINE)
_QUESTION = re.compile(r"""[?？؟][!?.]*["')\]*_”’]*$""")
_SEPARATORS = re.compile("[-_./:,]+")
_DATE = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?")
_ITEM = re.compile(r"(?:[-*+]|\d+[.)])\s")


class Row(NamedTuple):
    """A row of the index, as it lies in its table."""

    id: int
    doc: int
    line: int
    """The id of its line; or PASSAGE, BLOCK, WHOLE."""
    start: int
    end: int
    piece: int
    """Which piece of a long text it is; 0 for the whole."""
    seq: int
    """Of a signed line; 0 for what has none."""
    part: int
    day: int
    """As yyyymmdd, months and days that its time does not name as 00; 0 for none."""
    asking: int
    """How far it only asks, of 255."""
    personal: int
    """Whether a person said it."""
    speaker: str | None
    whole: int
    """The id of the document or session that it belongs to."""
    key: bytes
    """`text_key` of its text."""
    beside: bytes
    """Those of the turns before and after the one that it came from."""
    own: str | None
    """Terms of what it says, with who said it and when, joined by spaces."""
    around: str | None
    """Terms of what stands around it."""


def name_key(words: Analyzer, name: str) -> bytes:
    """Return what is the same for names of the same words, whatever separates them."""
    return text_key(words.joined_terms(_SEPARATORS.sub(" ", name)))


class Pieces:
    """Reads the pieces of documents, under a view's strategy and settings.

    `place` gives the document with the line that a seq stands for, `read` a document; or None.
    """

    def __init__(
        self,
        view: View,
        place: Callable[[int], str | None] = lambda _: None,
        read: Callable[[str], Document | None] = lambda _: None,
    ) -> None:
        self._view = view
        self._place, self._read = lru_cache(4096)(place), read
        self.words = analyzer(view.settings.search.language)
        own = copy(self)  # methods of its own would be a circle, which keeps files open
        self._session, self._terms_of = lru_cache(64)(own._turns_of), lru_cache(4096)(own._terms_beside)

    def origins(self, place: Located) -> tuple[int, ...]:
        """Return the evidence seqs behind an entry, followed through entries that it replaced."""
        if place.doc_id.startswith(EVIDENCE):
            return (place.seq,)
        turns, seen = dict[int, None](), {place.seq}
        waiting = deque(place.entry.origin[:FOLLOWED])
        while waiting and len(turns) + len(seen) < FOLLOWED:
            seq = waiting.popleft()
            name = self._place(seq)
            if name is not None and name.startswith(EVIDENCE):
                turns[seq] = None
            elif name is not None and seq not in seen:
                seen.add(seq)
                document = self._read(name)
                older = document.entry(seq) if document else None
                waiting += older.entry.origin if older else ()
        return tuple(turns)

    def turns(self, seqs: Iterable[int]) -> list[Located]:
        """Return the evidence lines with these seqs; one that was taken out meanwhile is left out."""
        return [places[at] for places, at in map(self._said, seqs) if at >= 0]

    def around(self, seqs: Iterable[int]) -> list[Located]:
        """Return the turns beside these, each once, in order; never one of them."""
        wanted = set(seqs)
        near: dict[tuple[str, int], Located] = {}
        for places, middle in map(self._said, wanted):
            first = max(middle - NEIGHBOURS, 0)
            for at, place in enumerate(places[first : middle + NEIGHBOURS + 1] if middle >= 0 else (), first):
                if place.seq not in wanted:
                    near[place.doc_id, at] = place
        return [near[key] for key in sorted(near)]

    def _said(self, seq: int) -> tuple[Sequence[Located], int]:
        name = self._place(seq)
        places, numbers = self._session(name) if name and name.startswith(EVIDENCE) else ((), {})
        return places, numbers.get(seq, -1)

    def _turns_of(self, name: str) -> tuple[Sequence[Located], Mapping[int, int]]:
        document = self._read(name)
        places = document.entries if document else ()
        return places, {place.seq: at for at, place in enumerate(places)}

    def rows(
        self, document: Document, doc: int, lines: Mapping[int, int], number: Callable[[str], int]
    ) -> Iterator[Row]:
        """Give the rows of a document: of some entries, of what people wrote unsigned between them, and of
        the whole. A document without entries gives its heading blocks; a strategy's ledger, or a sibling's
        document, nothing; a turn that stands in a copied file too is left out there.

        `doc` is its id, `lines` are the ids of the entries that are wanted, by their first lines; `number`
        gives the id of any document.
        """
        group, is_note = self._view.group(document.id), self._view.is_note(document.id)
        if group == "aside":
            return
        part = GROUPS.index(group)
        blank = Row(0, doc, PASSAGE, 0, 0, 0, 0, part, 0, 0, 0, None, doc, b"", b"", "", "")
        if document.entries:
            own = dict[int, str]()
            for place in document.entries:
                if place.start_line in lines and not self._view.repeats(place):
                    made = self._entry(blank, place, lines[place.start_line], number)
                    own |= {row.start: row.own or "" for row in made if not row.piece}
                    yield from made
            if document.has_prose or document.unsigned:
                yield from self._passages(blank, document)
            terms = self.terms_at(document, document.header.end + 1, len(document.lines), own)
        else:
            rows, terms = self._blocks(blank, document)
            yield from rows
        called = [self.words.kept(name) for name in names_of(document) if name]
        tags = map(self.words.kept, said_in(document, *TAGS) if is_note else ())
        names = _joined([*dict.fromkeys(called), *tags])
        if terms or names:
            yield blank._replace(line=WHOLE, own=terms, around=names)

    def parts(self, document: Document) -> list[tuple[Partition, str]]:
        """Return the heading blocks of a document with their terms, the first of a note with its header's."""
        parts = [block for block in partitions(document) if block.text.strip()]
        is_note, end = self._view.is_note(document.id), document.header.end
        if is_note and end and not parts:  # all that it says
            parts = [Partition((), 1, end, document.text(1, end))]
        if document.entries:
            terms = [self.terms_at(document, block.start_line, block.end_line) for block in parts]
        else:
            terms = [self.words.joined_terms(block.text) for block in parts]
        if is_note and parts:
            terms[0] = _joined([terms[0], *self._header_terms(document)])
        return list(zip(parts, terms, strict=True))

    def terms_at(self, document: Document, start: int, end: int, own: Mapping[int, str] = {}) -> str:
        """Return the terms of some lines, joined by spaces; signatures as speaker and date.

        `own` are those of entries, by first line, that are known.
        """
        if not document.entries_in(start, end):
            return self.words.joined_terms(document.text(start, end))
        return _joined(
            self.words.joined_terms(part)
            if isinstance(part, str)
            else own.get(part.start_line) or _joined([self.words.kept(part.entry.text), self._extra(part)])
            for part in _parts(document, start, end)
        )

    def _blocks(self, blank: Row, document: Document) -> tuple[list[Row], str]:
        is_note = self._view.is_note(document.id)
        title = self.words.kept(f"{document.id} {document.summary}")
        rows, parts = list[Row](), self.parts(document)
        for block, own in parts:
            around = _joined([title, self.words.kept(" ".join(block.headings))])
            row = blank._replace(start=block.start_line, end=block.end_line)
            if is_note:
                source = unsigned_source(self._view, document.id)
                row = row._replace(line=BLOCK, personal=int(source == "human"))
            else:
                item = self.block(document, block)
                row = _said(row, item.time, item.source, item.speaker)
            pieces = self._in_pieces(row, block.text, own, around)
            if is_note and not rows and pieces[0].piece:
                pieces[0] = pieces[0]._replace(own=_joined([pieces[0].own, *self._header_terms(document)]))
            rows += pieces
        return rows, _joined(own for _, own in parts)

    def _entry(self, blank: Row, place: Located, line: int, number: Callable[[str], int]) -> list[Row]:
        entry, origins = place.entry, self.origins(place)
        turns = self.turns(origins)
        # a model's wording is also found by what was said
        said = (turn for turn in turns if turn.entry.text != entry.text)
        # of a pasted book only how it begins
        near = self.around(origins)
        context = (self.words.kept(turn.entry.text[:CONTEXT_LENGTH]) for turn in (*near, *said))
        around = _joined([*context, self.words.kept(" ".join(place.headings))])
        row = _said(blank, entry.time, entry.source, self._speaker(place, turns))._replace(
            line=line,
            start=place.start_line,
            end=place.end_line,
            seq=entry.seq,
            asking=round(255 * asking(entry.text)),
            whole=number(turns[0].doc_id) if turns else blank.doc,
            beside=self._beside(place if place.doc_id.startswith(EVIDENCE) else next(iter(turns), None)),
        )
        extra = self._extra(place, turns)
        own = _joined([self.words.kept(entry.text), extra])
        return self._in_pieces(row, entry.text, own, around, extra)

    def _beside(self, turn: Located | None) -> bytes:
        places, at = self._said(turn.seq) if turn else ((), -1)
        if at < 0:
            return b""
        before = [_end_key(place.entry.text, -1) for place in places[max(at - 1, 0) : at]]
        return b"".join([*before, *(_end_key(place.entry.text, 0) for place in places[at + 1 : at + 2])])

    def _in_pieces(self, row: Row, text: str, own: str, around: str, extra: str = "") -> list[Row]:
        row = row._replace(own=own, around=around, key=text_key(text))
        pieces = enumerate((text[slice(*span)] for span in cuts(text)), 1)
        return [
            row._replace(piece=piece, own=_joined([self.words.joined_terms(said), extra]), key=text_key(said))
            for piece, said in pieces
        ] or [row]

    def _passages(self, blank: Row, document: Document) -> Iterator[Row]:
        places = {place.start_line: place for place in document.entries}
        titles = {heading.line for heading in document.headings}
        start = line = document.header.end + 1
        while line <= len(document.lines) + 1:
            text = document.text_line(line) if line <= len(document.lines) else ""
            ends = not text.strip() or line in places or line in titles
            if start < line and (ends or _ITEM.match(text)):
                item = passage(document, start, line - 1)
                around = self.words.kept(" ".join([document.summary, *item.headings]))
                row = _said(blank, None, "human", None)._replace(start=start, end=line - 1)
                row = row._replace(asking=round(255 * asking(item.text)))
                yield from self._in_pieces(row, item.text, self.words.kept(item.text), around)
                start = line
            if line in places:
                line = places[line].end_line
            line += 1
            if ends:
                start = line

    def _header_terms(self, document: Document) -> Iterator[str]:
        return map(self.words.kept, said_in(document, *document.header.values))

    def _extra(self, place: Located, turns: Sequence[Located] = ()) -> str:
        entry = place.entry
        turns = () if place.doc_id.startswith(EVIDENCE) else turns or self.turns(self.origins(place))
        times = *entry.fields.get("when", "").split("/"), entry.time, *(turn.entry.time for turn in turns)
        return self._terms_of((self._speaker(place, turns), entry.fields.get("refers")), times)

    def _terms_beside(self, words: tuple[str | None, ...], times: tuple[str | None, ...]) -> str:
        dates = dict.fromkeys(date_words((time or "")[:10]) for time in dict.fromkeys(times))
        return self.words.kept(" ".join([*(word or "" for word in words), *dates]))

    def _speaker(self, place: Located, turns: Sequence[Located]) -> str | None:
        """Return who said it: the entry's own field, or the one speaker of all its origins."""
        if "speaker" in place.entry.fields:
            return place.entry.fields["speaker"]
        names = {turn.entry.fields.get("speaker") for turn in turns}
        return names.pop() if len(names) == 1 else None

    def lines(self, document: Document, start: int, end: int, headings: tuple[str, ...]) -> Retrieved:
        """Return some lines as one piece; those of a record came from the turns behind it."""
        text = document.text(start, end)
        # Reading all of a note only to see that it holds no entry would cost more than finding it.
        signed = "- <" in text or document.id.startswith(EVIDENCE)
        places, turns = document.entries_in(start, end) if signed else (), list[Entry]()
        if document.id.startswith(folders().records):
            places, origin = (), turns_behind(document, self._record)
            turns = [turn.entry for turn in self.turns(origin)]
            sources = {turn.source for turn in turns}
        else:
            origin = tuple(dict.fromkeys(seq for place in places for seq in self.origins(place)))
            sources = {place.entry.source for place in places} or {unsigned_source(self._view, document.id)}
        speakers = {turn.fields.get("speaker") for turn in turns}
        return Retrieved(
            doc_id=document.id,
            start_line=start,
            end_line=end,
            text=text,
            score=0.0,
            seqs=tuple(place.seq for place in places),
            origin=origin,
            time=common_time(turn.time for turn in turns),
            source=sources.pop() if len(sources) == 1 else None,
            headings=headings,
            speaker=speakers.pop() if len(speakers) == 1 else None,
            physical=True,
        )

    def block(self, document: Document, block: Partition) -> Retrieved:
        return self.lines(document, block.start_line, block.end_line, block.headings)

    def entry(self, place: Located) -> Retrieved:
        entry, origin = place.entry, self.origins(place)
        turns = self.turns(origin)
        when = entry.fields.get("when")
        if entry.origin and when is None:  # of a line of an earlier version what its `time` tells
            when = happened(entry, {turn.seq: turn for turn in turns}.get)
        return Retrieved(
            doc_id=place.doc_id,
            start_line=place.start_line,
            end_line=place.end_line,
            text=entry.text,
            score=0.0,
            seqs=(entry.seq,),
            origin=origin,
            time=entry.time,
            source=entry.source,
            headings=place.headings,
            speaker=self._speaker(place, turns),
            when=when,
            refers=entry.fields.get("refers"),
            label=entry.fields.get("label"),
        )

    def shown(self, name: str, row: Row) -> Retrieved | None:
        """Return what a row stands for; None where a note was saved meanwhile and is shorter now."""
        document = self._view.document(name)
        if row.end > len(document.lines):
            return None
        if not document.entries:
            item = self.lines(document, row.start, row.end, document.path_at(row.start))
        elif row.line <= PASSAGE:
            item = passage(document, row.start, row.end)
        else:
            located = document.entries_in(row.start, row.start)
            if not located or located[0].seq != row.seq:
                return None
            item = self.entry(located[0])
        return part(document, item, row.piece) if row.piece else item

    def _record(self, name: str) -> Document | None:
        names = (f"{folder}{name}" for folder in folders().records)
        return next((self._view.document(doc_id) for doc_id in names if doc_id in self._view), None)


def _said(row: Row, time: str | None, source: str | None, speaker: str | None) -> Row:
    year, month, day = date_parts((time or "")[:10])
    date = year * 10000 + month * 100 + day
    return row._replace(day=date, personal=int(source in ("user", "human")), speaker=speaker)


@lru_cache(maxsize=1 << 12)
def _end_key(text: str, at: Literal[0, -1]) -> bytes:
    return text_key(text[slice(*(cuts(text) or [(0, len(text))])[at])])


def _joined(terms: Iterable[str | None]) -> str:
    return " ".join(filter(None, terms))


def plain(document: Document, start: int, end: int) -> str:
    """Return some lines without signatures: `Piece.text` of what stands there."""
    if not document.entries_in(start, end):
        return document.text(start, end)
    parts = _parts(document, start, end)
    return "\n".join(part if isinstance(part, str) else part.entry.text for part in parts)


def _parts(document: Document, start: int, end: int) -> Iterator[Located | str]:
    places = {place.start_line: place for place in document.entries_in(start, end)}
    line = start
    while line <= end:
        place = places.get(line)
        yield place or document.text_line(line)
        line = place.end_line + 1 if place else line + 1


def cuts(text: str) -> list[tuple[int, int]]:
    """Return where the pieces of a long text begin and end: with a line or a sentence, or else a word."""
    if len(text) <= LONG:
        return []
    size = max(PIECE * len(text) // len(text.encode("utf-8", "surrogatepass") or b" "), len(text) // 2000)
    at, spans = 0, list[tuple[int, int]]()
    while at < len(text):
        ends = (text.rfind(mark, at + size // 2, at + size) + 1 for mark in ("\n", ". ", " "))
        end = next(filter(None, ends), at + size) if at + size < len(text) else len(text)
        spans.append((at, end))
        at = end
    return spans


def cut(text: str, piece: int) -> tuple[int, int]:
    """Return where a piece of a text stands; all of it for 0, or if it was saved meanwhile and has none."""
    return next(iter(cuts(text)[piece - 1 : piece]), (0, len(text))) if piece else (0, len(text))


def part(document: Document, item: Retrieved, piece: int) -> Retrieved:
    """Return a piece of what stands in a document; "…" stands where the text goes on."""
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
    """Return what a person wrote between the entries of a document, as a piece."""
    text = document.text(start, end)
    return Retrieved(document.id, start, end, text, 0.0, source="human", headings=document.path_at(start))


@lru_cache(maxsize=1 << 12)
def date_parts(date: str) -> tuple[int, int, int]:
    """Return year, month and day of a date, 0 for each that it does not name."""
    match = _DATE.match(date)
    return (int(match[1]), int(match[2] or 0), int(match[3] or 0)) if match else (0, 0, 0)


@lru_cache(maxsize=1 << 12)
def date_words(date: str) -> str:
    """Return a date as people ask for it: "2023-05-08" gives "8 May 2023"."""
    year, month, day = date_parts(date)
    if not year:
        return ""
    name = MONTHS[month - 1] if 0 < month <= len(MONTHS) else ""
    return f"{day or ''} {name} {year:04}"


def asking(text: str) -> float:
    """Return how far a text only asks: 1 if it is all questions, less the more it states, 0 from `STATED`."""
    if "?" not in text and "？" not in text and "؟" not in text:
        return 0.0
    sentences = [match[0] for match in _SENTENCE.finditer(text[:_LOOKED_AT])]
    stated = [sentence for sentence in sentences if not _QUESTION.search(sentence)]
    if len(stated) == len(sentences):
        return 0.0
    return max(1 - sum(map(len, stated)) / STATED, 0.0)
