"""What can be found in a snapshot: its entries, its heading blocks, and the terms each is found by.

An entry is found by its text, speaker, date and `refers`, by the turns around the evidence that it came
from, and by that evidence's session. It knows the layout of a library, nothing of ranking.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from infinimem.markdown.document import Document
from infinimem.markdown.sections import Partition, partitions
from infinimem.model import Located, Retrieved
from infinimem.retrieval.scoring import Bags
from infinimem.retrieval.tokenizer import tokens
from infinimem.store.view import EVIDENCE, Scope, View, drawn_from

NEIGHBOURS = 2
"""How many turns before and after count as what was said around one."""

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
    """A findable piece: what is shown of it (score 0) and what it is found by."""

    item: Retrieved
    bags: Bags


@lru_cache(maxsize=1 << 15)
def terms(text: str) -> tuple[str, ...]:
    """The tokenizer's terms, kept, since a snapshot shares most lines with the one before."""
    return tuple(tokens(text))


def date_words(time: str | None) -> str:
    """A date as people ask for it: "2023-05-08T13:56:00" gives "8 May 2023"."""
    found = _DATE.match(time or "")
    if not found:
        return ""
    year, month, day = found[1], int(found[2] or 0), int(found[3] or 0)
    return f"{day or ''} {_MONTHS[month] if month < len(_MONTHS) else ''} {year}"


class Origins:
    """The evidence of a library: which turns stand behind an entry, and what was said around them."""

    def __init__(self, view: View) -> None:
        self._said = {doc_id: view.document(doc_id).entries for doc_id in view.ids("evidence")}
        self._place = {
            place.entry.seq: (doc_id, number)
            for doc_id, places in self._said.items()
            for number, place in enumerate(places)
        }
        self._cites = {
            place.entry.seq: drawn_from(place.entry)
            for place in view.entries("all")
            if not place.doc_id.startswith(EVIDENCE)
        }
        self._found: dict[int, tuple[int, ...]] = {}

    def of(self, place: Located) -> tuple[int, ...]:
        """The evidence seqs behind an entry, followed through entries that it replaced."""
        first = place.entry.seq
        if first not in self._found:
            found: dict[int, None] = {}
            seen: set[int] = set()
            waiting = deque([first])
            while waiting:
                seq = waiting.popleft()
                if seq in self._place:
                    found[seq] = None
                elif seq in self._cites and seq not in seen:
                    seen.add(seq)
                    waiting += self._cites[seq]
            self._found[first] = tuple(found)
        return self._found[first]

    def turn(self, seq: int) -> Located:
        """The evidence line with that seq."""
        doc_id, number = self._place[seq]
        return self._said[doc_id][number]

    def around(self, seqs: Iterable[int]) -> list[Located]:
        """The turns beside these, each once, in order; never one of them."""
        near = {
            (doc_id, number)
            for doc_id, middle in (self._place[seq] for seq in seqs)
            for number in range(middle - NEIGHBOURS, middle + NEIGHBOURS + 1)
        }
        near -= {self._place[seq] for seq in seqs}
        return [
            self._said[doc_id][number]
            for doc_id, number in sorted(near)
            if 0 <= number < len(self._said[doc_id])
        ]

    def terms(self, seq: int) -> tuple[str, ...]:
        """The terms of a turn, as context of others: of a pasted book only how it begins."""
        return terms(self.turn(seq).entry.text[:CONTEXT_LENGTH])

    def session(self, doc_id: str) -> tuple[str, ...]:
        """All terms that were said in a session."""
        return tuple(term for place in self._said[doc_id] for term in terms(place.entry.text))


class Pieces:
    """Reads the pieces of a snapshot; keeps what several scopes share."""

    def __init__(self, view: View) -> None:
        self._view = view

    @cached_property
    def origins(self) -> Origins:
        return Origins(self._view)

    def entries(self, scope: Scope) -> list[Piece]:
        """Entries, and what people wrote unsigned, by document and line.

        The default scope holds evidence that no entry cites yet. A document without entries is a note
        and comes in heading blocks.
        """
        found: list[Piece] = []
        for doc_id in self._view.ids(scope):
            document = self._view.document(doc_id)
            if document.entries:
                found += [self._entry(place) for place in document.entries if not self._view.repeats(place)]
                found += _passages(document)
            else:
                found += self.blocks_of(document)
        if scope == "default":
            found += map(self._entry, self._view.uncited())
        return sorted(found, key=lambda piece: (piece.item.doc_id, piece.item.start_line))

    def blocks(self, scope: Scope) -> list[Piece]:
        """Heading blocks, by document and line."""
        return [
            piece for doc_id in self._view.ids(scope) for piece in self.blocks_of(self._view.document(doc_id))
        ]

    def blocks_of(self, document: Document) -> list[Piece]:
        """The heading blocks of one document."""
        title = terms(f"{document.id} {document.summary}")
        return [self._block(document, block, title) for block in partitions(document) if block.text.strip()]

    def lines_of(self, document: Document, start: int, end: int) -> Retrieved:
        """Some lines as one piece, whatever blocks they are in; cut to the document's body."""
        start = min(max(start, document.header.end + 1), max(len(document.lines), 1))
        end = max(min(end, len(document.lines)), start)
        text = "\n".join(document.text_line(line) for line in range(start, min(end, len(document.lines)) + 1))
        return self._shown(document, Partition(document.path_at(start), start, end, text))

    def entries_of(self, document: Document, start: int, end: int) -> list[Retrieved]:
        """The entries that begin in these lines."""
        places = document.entries_in(start, end)
        return [self._entry(place).item for place in places if place.start_line >= start]

    def wholes(self, pieces: Sequence[Piece]) -> dict[Hashable, Sequence[str]]:
        """The terms of every session or document that these pieces belong to."""
        found: dict[Hashable, Sequence[str]] = {}
        parts: dict[Hashable, list[str]] = {}
        for piece in pieces:
            key = piece.bags.whole
            if isinstance(key, str) and key.startswith(EVIDENCE):
                found[key] = found.get(key) or self.origins.session(key)
            else:
                parts.setdefault(key, []).extend(piece.bags.own)
        return {**found, **parts}

    def document_terms(self, doc_id: str) -> tuple[str, ...]:
        """All terms of a document: its name, its summary and its body without signatures."""
        document = self._view.document(doc_id)
        body = self._terms_at(document, document.header.end + 1, len(document.lines))
        return (*terms(f"{doc_id} {document.summary}"), *body)

    def terms_at(self, doc_id: str, start: int, end: int) -> tuple[str, ...]:
        """The terms of some lines, signatures read as speaker and date."""
        return self._terms_at(self._view.document(doc_id), start, end)

    def _terms_at(self, document: Document, start: int, end: int) -> tuple[str, ...]:
        places = {place.start_line: place for place in document.entries_in(start, end)}
        found: list[str] = []
        line = start
        while line <= end:
            place = places.get(line)
            found += self._entry_terms(place) if place else terms(document.text_line(line))
            line = place.end_line + 1 if place else line + 1
        return tuple(found)

    def _entry(self, place: Located) -> Piece:
        entry = place.entry
        origin = self.origins.of(place)
        around = [term for turn in self.origins.around(origin) for term in self.origins.terms(turn.entry.seq)]
        for seq in origin:  # a model's wording is also found by what was said
            if self.origins.turn(seq).entry.text != entry.text:
                around += self.origins.terms(seq)
        around += terms(" ".join(place.headings))
        whole = self.origins.turn(origin[0]).doc_id if origin else place.doc_id
        item = Retrieved(
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
            speaker=self._speaker(place),
        )
        return Piece(item, Bags(self._entry_terms(place), tuple(around), whole))

    def _entry_terms(self, place: Located) -> tuple[str, ...]:
        entry = place.entry
        times = dict.fromkeys(
            [entry.time, *(self.origins.turn(seq).entry.time for seq in self.origins.of(place))]
        )
        dates = dict.fromkeys(map(date_words, times))
        extra = " ".join([self._speaker(place) or "", entry.fields.get("refers", ""), *dates])
        return (*terms(entry.text), *terms(extra))

    def _speaker(self, place: Located) -> str | None:
        """Who said it: the entry's own field, or the one speaker of all its origins."""
        if "speaker" in place.entry.fields:
            return place.entry.fields["speaker"]
        names = {self.origins.turn(seq).entry.fields.get("speaker") for seq in self.origins.of(place)}
        return names.pop() if len(names) == 1 else None

    def _block(self, document: Document, block: Partition, title: tuple[str, ...]) -> Piece:
        own = self._terms_at(document, block.start_line, block.end_line)
        bags = Bags(own, (*title, *terms(" ".join(block.headings))), document.id)
        return Piece(self._shown(document, block), bags)

    def _shown(self, document: Document, block: Partition) -> Retrieved:
        places = document.entries_in(block.start_line, block.end_line)
        origin = tuple(dict.fromkeys(seq for place in places for seq in self.origins.of(place)))
        sources = {place.entry.source for place in places} or {"human"}
        return Retrieved(
            doc_id=document.id,
            start_line=block.start_line,
            end_line=block.end_line,
            text=block.text,
            score=0.0,
            seqs=tuple(place.entry.seq for place in places),
            origin=origin,
            source=sources.pop() if len(sources) == 1 else None,
            headings=block.headings,
            physical=True,
        )


def _passages(document: Document) -> Iterator[Piece]:
    """What people wrote between the entries of a document: list items and paragraphs."""
    places = {place.start_line: place for place in document.entries}
    titles = {heading.line for heading in document.headings}
    start = line = document.header.end + 1
    while line <= len(document.lines) + 1:
        text = document.text_line(line) if line <= len(document.lines) else ""
        ends = not text.strip() or line in places or line in titles
        if start < line and (ends or _ITEM.match(text)):
            yield _passage(document, start, line - 1)
            start = line
        if line in places:
            line = places[line].end_line
        line += 1
        if ends:
            start = line


def _passage(document: Document, start: int, end: int) -> Piece:
    text = "\n".join(document.text_line(line) for line in range(start, end + 1))
    path = document.path_at(start)
    item = Retrieved(document.id, start, end, text, 0.0, source="human", headings=path)
    around = terms(" ".join([document.summary, *path]))
    return Piece(item, Bags(terms(text), around, document.id))
