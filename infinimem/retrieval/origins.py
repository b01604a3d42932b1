"""What was said behind an entry: the turns that it came from, those around them, and their session.

It looks up numbers of lines in whatever knows them all, and reads only the documents that it is asked about.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from infinimem.markdown.document import Document
from infinimem.model import Located
from infinimem.store.lines import drawn_from
from infinimem.store.spec import EVIDENCE
from infinimem.store.view import View

if TYPE_CHECKING:
    from infinimem.retrieval.tables import TableLines

NEIGHBOURS = 2
"""How many turns before and after count as what was said around one."""
SESSIONS = 64
"""Of which the turns are at hand."""


class KnownLines:
    """Where each numbered line of a library stands, and what it was drawn from.

    Args:
        places: the entries of some documents; of those with one number the last counts.
        under: knows all others.
    """

    def __init__(self, places: Iterable[Located], under: TableLines | None = None) -> None:
        self._said: dict[int, str] = {}
        self._cites: dict[int, tuple[int, ...]] = {}
        self._under = under
        for place in places:
            if place.doc_id.startswith(EVIDENCE):
                self._said[place.entry.seq] = place.doc_id
            else:
                self._cites[place.entry.seq] = drawn_from(place.entry)

    def evidence(self, seq: int) -> str | None:
        """Id of the document in which a turn was said; None if no turn has this seq."""
        found = self._said.get(seq)
        return self._under.evidence(seq) if found is None and self._under else found

    def cites(self, seq: int) -> tuple[int, ...]:
        """What an entry was drawn from; nothing if no entry has this seq."""
        found = self._cites.get(seq)
        return self._under.cites(seq) if found is None and self._under else found or ()


SAID = 4096
"""Turns of which it is remembered where they were said."""
FOLLOWED = 1000
"""Origins of one entry that are followed; a damaged file may name a million."""


class Origins:
    """The evidence of a library.

    Args:
        view: gives the documents.
        lines: knows where each line stands.
        read: gives them instead, None for one that is not there.
    """

    def __init__(
        self, view: View, lines: KnownLines, read: Callable[[str], Document | None] | None = None
    ) -> None:
        self._lines = lines
        self._found: dict[int, tuple[int, ...]] = {}
        self._read = read or (lambda doc_id: view.document(doc_id) if doc_id in view else None)
        self._session = lru_cache(SESSIONS)(self._turns_of)
        self._evidence = lru_cache(SAID)(lines.evidence)  # a search in the index; a line is asked for twice

    def of(self, place: Located) -> tuple[int, ...]:
        """The evidence seqs behind an entry, followed through entries that it replaced."""
        first = place.entry.seq
        if place.doc_id.startswith(EVIDENCE):
            return (first,)
        if first not in self._found:
            found: dict[int, None] = {}
            seen: set[int] = {first}
            waiting = deque(drawn_from(place.entry)[:FOLLOWED])
            while waiting and len(found) + len(seen) < FOLLOWED:
                seq = waiting.popleft()
                if self._evidence(seq) is not None:
                    found[seq] = None
                elif seq not in seen:
                    seen.add(seq)
                    waiting += self._lines.cites(seq)
            self._found[first] = tuple(found)
        return self._found[first]

    def behind(self, place: Located) -> list[Located]:
        """The evidence lines behind an entry."""
        return self.turns(self.of(place))

    def turns(self, seqs: Iterable[int]) -> list[Located]:
        """The evidence lines with these seqs; one that was taken out meanwhile is left out."""
        return [places[number] for places, number in map(self._said, seqs) if number >= 0]

    def around(self, seqs: Iterable[int]) -> list[Located]:
        """The turns beside these, each once, in order; never one of them."""
        wanted = set(seqs)
        near: dict[tuple[str, int], Located] = {}
        for places, middle in map(self._said, wanted):
            if middle < 0:
                continue
            first = max(middle - NEIGHBOURS, 0)
            for number, place in enumerate(places[first : middle + NEIGHBOURS + 1], first):
                if place.entry.seq not in wanted:
                    near[place.doc_id, number] = place
        return [near[key] for key in sorted(near)]

    def _said(self, seq: int) -> tuple[tuple[Located, ...], int]:
        """All turns of a session, and which of them has that seq; -1 for none."""
        doc_id = self._evidence(seq)
        places, numbers = self._session(doc_id) if doc_id else ((), {})
        return places, numbers.get(seq, -1)

    def _turns_of(self, doc_id: str) -> tuple[tuple[Located, ...], Mapping[int, int]]:
        document = self._read(doc_id)
        places = document.entries if document else ()
        return places, {place.entry.seq: number for number, place in enumerate(places)}
