"""What lines, documents and records say of themselves, and what a view asks the index of them.

Of a seq that stands twice the line in evidence counts, else the live copy, else the archived one.
"""

from __future__ import annotations

import json
import re
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Set
from typing import Any

from infinimem.errors import LibraryError
from infinimem.markdown.characters import clean_text, normalize, one_line
from infinimem.markdown.document import Document
from infinimem.model import CURRENT, INBOX
from infinimem.spec import folders
from infinimem.store.spec import ARCHIVE, EVIDENCE, TOPICS, WAITING

Mark = tuple[str, ...]
"""By what a turn is recognised when it comes again; its text is no mark, people repeat themselves."""


def marks_of(key: str | None, session: str | None, turn: str | None) -> list[Mark]:
    marks: list[Mark] = [("key", plain(key))] if key else []
    if session and turn:
        marks.append(("turn", plain(session), plain(turn)))
    return marks


HOME, SIZE, LAST = 10**9, 10**6, 10**12
"""Seqs below the first are of the library's first place; above lie blocks of this size, one of each copy."""


def block_of(seq: int) -> int:
    """Return the block that a seq was given in; 0 where the library was made, or by a person who typed it."""
    return seq // SIZE if HOME <= seq < LAST else 0


def plain(value: str) -> str:
    """Return a name as a field of a signature can hold it."""
    return one_line(clean_text(value))


CONFLICT = "<<<<<<<"
"""What git begins a conflict with, at the least; here also the mark of a document that has one."""


def fold(name: str) -> str:
    """Return a name as ids are compared: case-folded and in NFC, as file systems do."""
    return normalize("NFC", name).casefold()


def aliases_of(document: Document) -> list[str]:
    """Return other names that its header lists, or the one that it gives."""
    return said_in(document, "aliases")


def names_of(document: Document) -> list[str]:
    """Return what people call a document: by its file, title, first top heading and aliases."""
    first = next((heading.title for heading in document.headings if heading.level == 1), "")
    return [document.id.rsplit("/", 1)[-1], document.title, first, *said_in(document, "aliases", "alias")]


def said_in(document: Document, *keys: str) -> list[str]:
    """Return the strings that a header has under some keys, whatever their case, however deep they stand."""

    def strings(value: object) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from strings(one)

    held = {key.casefold(): value for key, value in document.header.values.items()}
    return [one for key in keys for one in strings(held.get(key.casefold())) if one]


def common_time(times: Iterable[str | None]) -> str | None:
    """Return the time that all share, or else the date that all share."""
    distinct = set(times)
    if None in distinct or not distinct:
        return None
    dates = {time[:10] for time in distinct if time}
    return distinct.pop() if len(distinct) == 1 else dates.pop() if len(dates) == 1 else None


ID, STEM, ALIAS, SPEAKER = range(4)
"""Kinds of names; the last are of those who said something, as they stand."""
RANKS = (ARCHIVE, INBOX, CURRENT, TOPICS, EVIDENCE)
"""Folders of signed lines, by precedence."""
SAID = RANKS.index(EVIDENCE)
_PLACE = (
    "select d.name from line l join document d on d.id = l.doc where l.seq = ? "
    "order by d.rank desc, d.name desc limit 1"
)


class Lines:
    """What one view asks of its lines, in a read transaction. A line of a person's document is none."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._places: dict[int, str | None] = {}

    def all(self, query: str, *values: object) -> list[Any]:
        """Return the rows of a query; raise a LibraryError if the index cannot be read any more."""
        try:
            return self._db.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise LibraryError(f"the index cannot be read ({error}); try again, it is made anew") from error

    def seqs(self, query: str, *values: object) -> list[int]:
        """Return the first column of a query."""
        return [row[0] for row in self.all(query, *values)]

    def place(self, seq: int) -> str | None:
        """Return the document with the line that a seq stands for."""
        if seq not in self._places:
            rows = self.all(_PLACE, seq) if 0 < seq < 1 << 63 else ()
            self._places[seq] = rows[0][0] if rows else None
        return self._places[seq]

    def waiting(self, among: Collection[int] | None = None) -> list[int]:
        """Return seqs of turns that nothing cites and that were not drawn from, ascending; of these alone."""
        if among is None:
            return self.seqs("select distinct seq from line where waiting order by seq")
        query = "select 1 from line where seq = ? and waiting"
        return [seq for seq in sorted(among) if self.all(query, seq)]

    def uncited(self) -> list[int]:
        """Return seqs of evidence that nothing cites, ascending."""
        return self.seqs("select distinct seq from line where open order by seq")

    def open(self, *documents: str) -> list[tuple[str, int]]:
        """Return document and seq of evidence that nothing cites, in order; of some documents alone."""
        query = "select d.name, l.seq from line l join document d on d.id = l.doc where l.open"
        if not documents:
            return self.all(f"{query} order by d.name, l.start")
        return [
            row for name in documents for row in self.all(f"{query} and d.name = ? order by l.start", name)
        ]

    @property
    def cited(self) -> Set[int]:
        """Seqs that some entry names as its origin, or some record of the strategy's as its evidence."""
        return _Cited(self)

    @property
    def newest(self) -> dict[int, int]:
        """The newest turn that an entry cites, by the block of seqs that it was given in."""
        query = "select c.origin from cite c join line l on l.seq = c.origin join document d on d.id = l.doc"
        cited = sorted(self.seqs(f"{query} where d.rank = {SAID}"))
        return {block_of(seq): seq for seq in cited}

    @property
    def doubled(self) -> frozenset[int]:
        """Seqs that stand more than once."""
        return frozenset(self.seqs("select seq from doubled"))

    @property
    def entries(self) -> int:
        """How many lines stand outside of evidence."""
        query = f"select coalesce(sum(entries), 0) from document where rank < {SAID}"
        return self.seqs(query)[0]

    def highest(self, block: int | None = None) -> int:
        """Return the highest seq, or that of a block; 0 for none."""
        first, end = (0, 1 << 62) if block is None else (block * SIZE, (block + 1) * SIZE if block else HOME)
        return self.seqs("select coalesce(max(seq), 0) from line where seq >= ? and seq < ?", first, end)[0]

    @property
    def suspects(self) -> list[str]:
        """Documents that may be conflict copies, by their names, or hold two versions."""
        named = "select name from document where name glob '* *' or name glob '*conflict*'"
        marked = "select d.name from mark join document d on d.id = doc where mark = ?"
        return [row[0] for row in self.all(f"{named} union {marked}", CONFLICT)]

    def session(self, name: str, folder: str = EVIDENCE) -> str | None:
        """Return the first document of a session in a folder of evidence."""
        names = self.all("select name from document where session = ? order by name", storable(name))
        return next((one for (one,) in names if one.rpartition("/")[0] == folder[:-1]), None)

    @property
    def hidden(self) -> Set[int]:
        """Seqs of turns that await approval, or were refused."""
        query = "select l.seq from line l join document d on d.id = l.doc where d.name glob ?"
        return {*self.seqs(query, f"{WAITING}*")}

    def marked(self, mark: Mark) -> tuple[str, int] | None:
        """Return document and seq of the turn with a mark."""
        query = "select name, seq from mark m join document d on d.id = m.doc where mark = ? "
        rows = self.all(f"{query} order by name desc, m.rowid desc limit 1", key_of(mark))
        return rows[0] if rows else None

    def named(self, kind: int, folded: str) -> tuple[str, ...]:
        """Return ids of documents by a folded name, sorted; kind is ID, STEM or ALIAS (of topics)."""
        query = "select d.name from name n join document d on d.id = n.doc where kind = ? and folded = ?"
        return tuple(sorted(row[0] for row in self.all(query, kind, storable(folded))))

    def clashes(self) -> list[tuple[str, ...]]:
        """Return ids that some file systems take for one, together."""
        query = "select folded from name where kind = ? group by folded having count(*) > 1 order by folded"
        return [self.named(ID, row[0]) for row in self.all(query, ID)]

    def names(self, kind: int, prefix: str = "") -> list[str]:
        """Return all folded names of a kind, or those that begin so."""
        query = "select distinct folded from name where kind = ? and folded between ? and ?"
        return [row[0] for row in self.all(query, kind, prefix, f"{prefix}\U0010ffff")]


class SeqSet(Set[int], ABC):
    """Seqs that are looked up whenever somebody asks."""

    @abstractmethod
    def ask(self, more: str = "", *values: object) -> list[int]:
        """Return those of which this is true, too: the end of a query, which calls them seq."""

    @classmethod
    def _from_iterable(cls, it: Iterable[Any]) -> Any:
        return frozenset(it)

    def __contains__(self, seq: object) -> bool:
        return bool(self.ask("and seq = ? limit 1", seq))

    def __and__(self, other: Set[Any]) -> frozenset[int]:
        return frozenset(self.ask("and seq in (select value from json_each(?))", json.dumps([*other])))

    def __iter__(self) -> Iterator[int]:
        return iter(self.ask())

    def __len__(self) -> int:
        return len(self.ask())

    def __bool__(self) -> bool:
        return bool(self.ask("limit 1"))


class _Cited(SeqSet):
    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    def ask(self, more: str = "", *values: object) -> list[int]:
        return self._lines.seqs(f"select distinct origin as seq from cite where true {more}", *values)


def key_of(mark: Mark) -> str:
    return storable("\0".join(mark))


def storable(value: str) -> str:
    """Return a text as SQLite takes it; bytes that are no UTF-8 are written out."""
    return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()


# ── records of strategies that keep no signed lines ────────────────────────────────────────────
# What their headers say of where they come from; all say it alike: docs/FORMAT.md, Records.

LONGEST_RUN = 100_000
"""Turns that one row may name; a longer run names none."""

_ROW = re.compile(r"  - \{(ref|record|unit): ([0-9a-z-]{1,40})(?:, [^{}]*)?\}\Z")
_RUN = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?\Z")
_LINK = re.compile(r"  - \{type: ([a-z]+), to: ([0-9a-z-]{1,40})(?:, [^{}]*)?\}\r?\Z")


def stem(doc_id: str) -> str:
    """Return what records call each other by."""
    return doc_id.rsplit("/", 1)[-1]


def evidence_of(document: Document) -> tuple[int, ...]:
    """Return seqs of the turns that a record names as its evidence."""
    runs = ((int(run[1]), int(run[2] or run[1])) for run in map(_RUN.match, _named(document, "ref")) if run)
    return tuple(seq for first, last in runs if last - first < LONGEST_RUN for seq in range(first, last + 1))


def sources_of(document: Document) -> tuple[str, ...]:
    """Return stems of the records that a record names as its evidence; All-Mem's files say "unit"."""
    return tuple(_named(document, "record", "unit"))


def _named(document: Document, *keys: str) -> list[str]:
    rows = _rows(document)
    if rows is None:  # not as the program writes it
        listed = document.header.values.get("evidence")
        named = listed if isinstance(listed, list) else []
        rows = [(name, value) for row in named if isinstance(row, dict) for name, value in row.items()]
    return [value for name, value in rows if name in keys and isinstance(value, str)]


def _rows(document: Document) -> list[tuple[str, object]] | None:
    """Read the rows of `evidence` as they are written without YAML, which takes a hundred times as long."""
    lines = document.lines
    if "evidence:" not in lines or lines[0] != "---" or "---" not in lines[1:]:
        return None
    rows: list[tuple[str, object]] = []
    for line in lines[lines.index("evidence:") + 1 : lines.index("---", 1)]:
        if not line.startswith(" "):
            break
        match = _ROW.match(line)
        if match is None:
            return None
        rows.append((match[1], match[2]))
    return rows


def versions_of(document: Document) -> tuple[str, ...]:
    """Return stems of what a record stands for or was described with: its links of the type "version"."""
    links = map(_LINK.match, document.lines[: document.header.end])
    return tuple(match[2] for match in links if match and match[1] == "version")


def link_to(line: str) -> str | None:
    """Return the stem that a line of a header links to; None if it is no link."""
    match = _LINK.match(line)
    return match[2] if match else None


def held_by(document: Document) -> tuple[int, ...]:
    """Return as `evidence_of`; of a record whose evidence a person broke, the turn that its name tells."""
    seqs = evidence_of(document)
    if seqs or sources_of(document):
        return seqs
    named = re.fullmatch(folders().names, stem(document.id))
    return (int(named[1]),) if named else ()


def turns_behind(document: Document, find: Callable[[str], Document | None]) -> tuple[int, ...]:
    """Return seqs of the turns that a record comes from, also through records that `find` gives by stem."""
    turns: dict[int, None] = {}
    seen, waiting = {stem(document.id)}, [document]
    while waiting:
        record = waiting.pop(0)
        turns.update(dict.fromkeys(evidence_of(record)))
        fresh = [name for name in dict.fromkeys(sources_of(record)) if name not in seen]
        seen.update(fresh)
        waiting += [source for name in fresh if (source := find(name))]
    return tuple(turns)
