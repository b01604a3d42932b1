"""The rows that are ranked: in index.db, and most of them in tantivy beside it.

    <folder of index.db>/words-<8 hex>/entries      tantivy: a row an entry, a passage, a note's heading block
                                       documents    tantivy: a row a document, with its names

In: an index that took in what changed. Out: `Reading`, what one search asks. Where more than
`TAIL` rows are new they go to tantivy, and their terms leave SQLite; the others, the tail, are scored by
`Bag`. One write transaction of index.db holds all of it, and names the state of tantivy in the end.
"""

from __future__ import annotations

import json
import secrets
import shutil
import sqlite3
import threading
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from copy import copy
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from infinimem.errors import LibraryError
from infinimem.index.pieces import GROUPS, NEIGHBOURS, Pieces, Row, name_key
from infinimem.index.words import AROUND, OWN, PADDING, Bag, Lookup, Words, fields_of, table_of
from infinimem.log import log
from infinimem.markdown.document import Document
from infinimem.store.files import MAX_FILE, Files
from infinimem.store.folders import Stamp, state_of
from infinimem.store.index import Index
from infinimem.store.lines import SAID, Lines, names_of
from infinimem.store.view import View
from infinimem.terms import analyzer

LAYOUT = 3
"""Of rows and their terms: raise it when they change, and they are made anew."""
TAIL = 64
"""Rows that are not in tantivy, or there and gone, before it is told."""
PORTION = 1000
"""Documents whose rows are made at once: a process that is killed loses no more."""
SLOW = 1000
"""Documents whose indexing people wait for, and are told so."""

SAID_PART = GROUPS.index("evidence")
_SCHEMA = """
create table row(
    id integer primary key autoincrement, doc integer not null, line integer not null, start integer not null,
    end integer not null, piece integer not null, seq integer not null, part integer not null,
    day integer not null, asking integer not null, personal integer not null, speaker text,
    whole integer not null,
    key blob not null, beside blob not null, own text, around text);
create index row_doc on row(doc);
create index row_line on row(line);
create table called(key blob not null, doc integer not null);
create index called_key on called(key);
create index called_doc on called(doc);
create table dead(id integer primary key);
create table moved(seq integer primary key);
create table doubt(doc integer not null, line integer not null, primary key(doc, line)) without rowid;
create table file(name text primary key, size integer not null, crc integer not null) without rowid;
create table ranking(
    made_for text not null, folder text not null, state integer not null, mark integer not null,
    sizes text not null);
create trigger row_dies after delete on row when old.id <= (select mark from ranking)
    begin insert into dead values(old.id); end;
create trigger document_dies after delete on document
    begin delete from row where doc = old.id; delete from called where doc = old.id; delete from doubt
    where doc = old.id; end;
create trigger line_moves after delete on line
    begin insert or ignore into moved values(old.seq); end;
create index if not exists document_unranked on document(id) where ranked = 0
"""
"""`state` counts what tantivy was told, `mark` is the last row that it knows; `sizes` are rows and terms, by
table. Of what goes rows go with it, and what was drawn from a line that moved is made anew."""

_ROWLESS = "select id from document where ranked = 0"
_STATE = "select made_for, folder, state, mark, sizes from ranking"
_NO_ROW = "not exists (select 1 from row where line = l.id)"


class Committed(NamedTuple):
    """What index.db says of tantivy."""

    made_for: str
    folder: str
    state: int
    mark: int
    sizes: str


class Reading:
    """What one search asks, in a read transaction.

    `words` are tantivy's tables in the state that the database names, None where it was told nothing; `tail`
    are the rows that it was not told.
    """

    def __init__(
        self, db: sqlite3.Connection, words: Mapping[str, Words] | None, tail: Sequence[Bag], known: Committed
    ) -> None:
        self.db, self._words, self._mark, self.folder = db, words, known.mark, known.folder
        sizes = json.loads(known.sizes)
        self.bags = {name: [bag for bag in tail if table_of(bag.row) == name] for name in PADDING}
        self._means = dict[str, dict[str, float]]()
        for name, bags in self.bags.items():
            rows, *terms = sizes[name]
            count = max(rows + len(bags), 1)
            self._means[name] = {
                field: (some + sum(bag.lengths[field] for bag in bags)) / count
                for field, some in zip((OWN, AROUND), terms, strict=True)
            }

    def count(self, table: str) -> int:
        """Return how many rows a table has; of tantivy's those that are gone too, for a while."""
        return (len(self._words[table]) if self._words else 0) + len(self.bags[table])

    def frequency(self, table: str, term: str) -> int:
        """Return how many rows say a term."""
        beside = sum(term in bag.counts[OWN] for bag in self.bags[table])
        return (self._words[table].frequency(OWN, term) if self._words else 0) + beside

    def scores(
        self,
        table: str,
        lookup: Lookup,
        limit: int,
        parts: Collection[int],
        turns: Collection[int] = (),
        ids: Collection[int] = (),
        by: Literal["id", "doc"] = "id",
    ) -> dict[int, float]:
        """Return the best rows that hold a term with their scores, by id or document, and how `ids` score.

        Args:
            limit: of tantivy's rows, about.
            parts, turns: numbers of groups that are searched, and seqs of turns that are searched too.
            ids: of rows that are asked for whatever they score; 0 where they hold none of the terms.
        """
        found = dict.fromkeys(ids, 0.0)
        words = self._words[table] if self._words else None
        if words and (query := words.query(lookup)):
            asked = limit if len(parts) == len(GROUPS) else 2 * limit
            while True:
                hits = words.find(query, asked)
                columns = (words.values(name, hits) for name in ("id", by, "part", "seq"))
                chosen = {
                    number: score
                    for (score, _), row, number, part, seq in zip(hits, *columns, strict=True)
                    if row <= self._mark and (part in parts or (part == SAID_PART and seq in turns))
                }
                if len(chosen) >= limit or len(hits) < asked:
                    break
                asked *= 8
            for number in list(chosen)[:limit]:
                found[number] = chosen[number]
            if others := [number for number in ids if number not in chosen]:
                hits = words.find(query, len(others), others)
                for number, (score, _) in zip(words.values("id", hits), hits, strict=True):
                    found[number] = score
        means = self._means[table]
        for bag in self.bags[table]:
            row = bag.row
            if row.part in parts or (row.part == SAID_PART and row.seq in turns):
                score, number = bag.score(lookup, means), row.id if by == "id" else row.doc
                if score or number in found:
                    found[number] = score
        return found


class Tables:
    """The rows of one index, for one process; its threads take turns."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self._lock = threading.RLock()
        self._words: dict[str, Words] | None = None
        self._state: tuple[str, int] = ("", 0)
        """Folder and state of tantivy as it is open here."""
        self._checked: dict[str, int] = {}
        self._unread: Set[int] = frozenset()
        """Documents that have no rows because they could not be read."""
        self._bag = lru_cache(1024)(Bag)
        self.kept: dict[str, Any] = {}
        """What others keep of this state."""

    @contextmanager
    def reading(self, view: View) -> Iterator[Reading]:
        """Give what a search asks."""
        for left in reversed(range(5)):
            try:
                db = self.index.pinned()
            except sqlite3.Error:  # it was deleted meanwhile
                self.fill(view)
                continue
            try:
                with self._lock:
                    known, words = self._known(db), self._words
                    words = words and {name: copy(one) for name, one in words.items()}  # their searchers stay
                    tail = _tail(db, known.mark) if known else []
                    rowless = {row[0] for row in db.execute(_ROWLESS)} if known else set[int]()
                is_whole = not left or rowless <= self._unread
                if known and is_whole and self._state == (known.folder, known.state):
                    yield Reading(db, words, list(map(self._bag, tail)), known)
                    return
            finally:
                self.index.release(db)
            self.fill(view)  # somebody else wrote meanwhile, told tantivy something, or it is all gone
        raise LibraryError("the index changes faster than it can be read; try again")

    def _known(self, db: sqlite3.Connection) -> Committed | None:
        with suppress(sqlite3.Error):  # it was deleted meanwhile, or is new
            if row := db.execute(_STATE).fetchone():
                return Committed(*row)
        return None

    def fill(self, view: View) -> None:
        """Make the rows of what has none."""
        self.index.attempt(view, lambda: self._fill(view))

    def _fill(self, view: View) -> None:
        last = 0
        while True:
            with self._lock, self.index.writing() as db:
                self._open(db, view)
                if not last:
                    _doubt(db)
                    if (count := len(db.execute(_ROWLESS).fetchall())) > SLOW:
                        log.warning("indexing %d documents; this is done once", count)
                query = "select id, name, mtime, size, inode from document where ranked = 0 and id > ?"
                todo = db.execute(f"{query} order by id limit {PORTION}", (last,)).fetchall()
                self._take(db, view, todo)
                if len(todo) < PORTION:
                    self._unread = {row[0] for row in db.execute(_ROWLESS)}
                    return
                last = todo[-1][0]

    def _open(self, db: sqlite3.Connection, view: View) -> None:
        """Have tantivy open as the database names it; else an sqlite3.Error, and both are made anew."""
        kind, folder = "library" if view.initialised else "notes", self.index.folder
        made_for = f"{LAYOUT} {kind} {analyzer(view.settings.search.language).fingerprint}"
        if (known := self._known(db)) is None:
            for statement in _SCHEMA.split(";\n"):
                db.execute(statement)
            self._words, self._state = None, (f"words-{secrets.token_hex(4)}", 0)
            values = (made_for, self._state[0], json.dumps({table: [0, 0, 0] for table in PADDING}))
            db.execute("insert into ranking values(?, ?, 0, 0, ?)", values)
            for old in folder.glob("words-*") if folder else ():
                shutil.rmtree(old, ignore_errors=True)
            return
        if known.made_for != made_for:
            raise sqlite3.DatabaseError(f"it is for {known.made_for}")
        try:
            self._check(db, known.folder)
            if self._state != (known.folder, known.state) and not known.mark:
                self._words = None
            elif self._state != (known.folder, known.state) and folder:
                self._words = {table: Words(folder / known.folder / table) for table in PADDING}
            self._state = (known.folder, known.state)
        except (OSError, ValueError) as error:
            raise sqlite3.DatabaseError(f"words: {error}") from error

    def _check(self, db: sqlite3.Connection, name: str) -> None:
        """Raise an OSError or ValueError unless tantivy's files are there and, looked at once, as written."""
        folder = self.index.folder / name if self.index.folder else Path()
        for path, size, crc in db.execute("select name, size, crc from file"):
            file, is_known = folder / path, self._checked.get(path) == crc
            if file.stat().st_size != size or not (is_known or zlib.crc32(file.read_bytes()) == crc):
                raise ValueError(f"{path} is garbled")
            self._checked[path] = crc

    def _take(self, db: sqlite3.Connection, view: View, todo: Sequence[tuple[Any, ...]]) -> None:
        reader = Current(db, view)
        pieces = Pieces(view, Lines(db).place, reader.read)
        rows = list[Row]()
        for doc, name, *stamp in todo:
            document = reader.read(name, Stamp(*stamp))
            if document is None:  # it was saved meanwhile, or cannot be read; then it is looked at again
                continue
            db.execute("delete from row where line in (select line from doubt where doc = ?)", (doc,))
            db.execute("delete from doubt where doc = ?", (doc,))
            query = f"select start, id from line l where doc = ? and {_NO_ROW}"
            lines = dict(db.execute(query, (doc,)).fetchall())
            db.execute("delete from row where doc = ? and line <= 0", (doc,))
            db.execute("delete from called where doc = ?", (doc,))
            rows += pieces.rows(document, doc, lines, reader.number)
            if view.group(name) != "aside":
                keys = {(name_key(pieces.words, called), doc) for called in names_of(document) if called}
                db.executemany("insert into called values(?, ?)", keys)
            db.execute("update document set ranked = 1 where id = ?", (doc,))
        last = db.execute("select seq from sqlite_sequence where name = 'row'").fetchone()
        first = max(last[0] if last else 0, db.execute("select mark from ranking").fetchone()[0]) + 1
        rows = [row._replace(id=at) for at, row in enumerate(rows, first)]
        if self._tell(db, rows):
            rows = [row._replace(own=None, around=None) for row in rows]
        db.executemany(f"insert into row values({', '.join('?' * len(Row._fields))})", rows)

    def _tell(self, db: sqlite3.Connection, rows: Sequence[Row]) -> bool:
        """Tell tantivy what is new, if it is much; return whether it knows all rows now."""
        _, folder, state, mark, sizes = db.execute(_STATE).fetchone()
        dead = [row[0] for row in db.execute("select id from dead")]
        tail = _tail(db, mark)
        if max(len(tail) + len(rows), len(dead)) <= TAIL:
            return False
        fresh = [*tail, *rows]
        counts = json.loads(sizes)
        try:
            path = self.index.folder / folder if self.index.folder else None
            if self._words is None:
                if path:
                    for table in PADDING:
                        (path / table).mkdir(mode=0o700, parents=True, exist_ok=True)
                self._words = {table: Words(path / table if path else None) for table in PADDING}
            for table, words in self._words.items():
                some = [row for row in fresh if table_of(row) == table]
                words.change(mark, dead, some)
                for row in some:
                    for at, (terms, extra) in enumerate(fields_of(row).values(), 1):
                        counts[table][at] += extra + (terms.count(" ") + 1 if terms else 0)
                counts[table][0] += len(some)
            if path:
                self._note_files(db, path)
        except (OSError, ValueError) as error:
            log.warning("the index of words cannot be written (%s); what is new is kept beside it", error)
            self._words = self._words if mark else None
            return False
        db.execute("update row set own = null, around = null where id > ?", (mark,))
        db.execute("delete from dead")
        last = max((row.id for row in fresh), default=mark)
        values = (state + 1, last, json.dumps(counts))
        db.execute("update ranking set state = ?, mark = ?, sizes = ?", values)
        self._state = (folder, state + 1)
        return True

    def _note_files(self, db: sqlite3.Connection, folder: Path) -> None:
        """Note the checksums of tantivy's files; it replaces files and never writes into them."""
        known, self._checked = self._checked, {}
        db.execute("delete from file")
        for path in folder.glob("*/*"):
            name = str(path.relative_to(folder))
            if path.suffix != ".lock":
                is_known = name in known and path.suffix != ".json"
                crc = known[name] if is_known else zlib.crc32(path.read_bytes())
                db.execute("insert into file values(?, ?, ?)", (name, path.stat().st_size, crc))
                self._checked[name] = crc


def _tail(db: sqlite3.Connection, mark: int) -> list[Row]:
    return [Row._make(row) for row in db.execute("select * from row where id > ?", (mark,))]


_DOUBTED = f"""
with recursive
fresh as (
    select l.seq, l.start, l.doc, d.rank from document d join line l on l.doc = d.id
    where d.ranked = 0 and {_NO_ROW}),
near(id) as (
    select l.id from fresh f join line l on l.id in (
        select id from line where doc = f.doc and start < f.start order by start desc limit {NEIGHBOURS})
    where f.rank = {SAID}
    union select l.id from fresh f join line l on l.id in (
        select id from line where doc = f.doc and start > f.start order by start limit {NEIGHBOURS})
    where f.rank = {SAID}),
below(seq) as (
    select seq from moved union select seq from fresh
    union select seq from line where id in (select id from near)
    union select l.seq from below b join cite c on c.origin = b.seq join line l on l.id = c.line)
select id, doc from line where id in (select id from near)
union select c.line, c.doc from below b join cite c on c.origin = b.seq
"""


def _doubt(db: sqlite3.Connection) -> None:
    """Have rows of entries made anew that say what stood beside a line that is new, or gone."""
    if db.execute("select 1 from row limit 1").fetchone():
        doubted = db.execute(_DOUBTED).fetchall()
        lines = [(doc, line) for line, doc in doubted if line]  # 0 for a whole document, a record
        db.executemany("insert or ignore into doubt values(?, ?)", lines)
        db.executemany("update document set ranked = 0 where id = ?", {(doc,) for _, doc in doubted})
    db.execute("delete from moved")


class Current:
    """Reads documents whose rows are made, in the state that the index took in.

    What is held in memory may be of before a `forget`, and must not come back into the cache.
    """

    def __init__(self, db: sqlite3.Connection, view: View) -> None:
        self._db, self._view = db, view
        self._files = Files(Path(view.stored.root)) if view.stored else None
        own = copy(self)  # methods of its own would be a circle, which keeps files open
        self._said, self.number = lru_cache(64)(own._read), lru_cache(4096)(own._number)

    def _number(self, name: str) -> int:
        row = self._db.execute("select id from document where name = ?", (name,)).fetchone()
        return row[0] if row else 0

    def read(self, name: str, stamp: Stamp | None = None) -> Document | None:
        """Return a document; None if it cannot be read, or is in another state."""
        return self._said(name) if name.startswith("evidence/") or stamp is None else self._read(name, stamp)

    def _read(self, name: str, stamp: Stamp | None = None) -> Document | None:
        view, stored = self._view, self._view.stored
        if stored is None or self._files is None:
            return view.document(name) if name in view else None
        if stamp is None:
            query = "select mtime, size, inode from document where name = ?"
            row = self._db.execute(query, (name,)).fetchone()
            if row is None:
                return None
            stamp = Stamp(*row)
        try:
            is_shown = stored.stamps.get(name) == stamp
            if is_shown and stamp == state_of(self._files.root, f"{name}.md"):
                return stored.read(name)
            data, there = self._files.read_stamped(f"{name}.md", MAX_FILE if is_shown else stamp.size)
            known = view.document(name) if data and is_shown and there != stamp else None
        except LibraryError:
            return None
        if data is not None and there == stamp:
            return Document.parse(name, data)
        # what somebody appended to says that still
        return known if data and known and known.lines and data.startswith(known.to_bytes()) else None
