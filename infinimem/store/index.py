"""The derived index of a library: rows of its documents and lines, and the snapshots of them that views ask.

    <cache>/<16 hex>/index-STRATEGY/index.db      SQLite, in WAL mode, never synced: it may go at any time

In: a library's documents and the states of their files. Out: `Lines`, what one view asks of its lines: where
a seq stands, what cites it, what is still to be drawn from. A view asks in a read transaction of its own,
begun when it asks first, so that it says the same while others write. Ids of rows are never used twice.
Where else it lies, and when it is made anew: docs/SEARCH.md, One engine.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from infinimem.errors import LibraryError
from infinimem.log import log
from infinimem.markdown.document import Document
from infinimem.model import Located
from infinimem.spec import StrategySpec
from infinimem.store.folders import Stamp, state_of
from infinimem.store.lines import (
    ALIAS,
    CONFLICT,
    ID,
    RANKS,
    SAID,
    SPEAKER,
    STEM,
    Lines,
    aliases_of,
    fold,
    held_by,
    key_of,
    marks_of,
    storable,
)
from infinimem.store.spec import TOPICS, WAITING
from infinimem.store.state import Seqs
from infinimem.user_folders import cache_folder

if TYPE_CHECKING:
    from infinimem.store.freshness import DocumentStates

T = TypeVar("T")

LAYOUT = 6
"""Of the rows: raise it when they change, and indexes are made anew."""
WAIT = 120.0
"""Seconds to wait for another process that writes."""
PAUSE = 0.01
"""Seconds between two looks whether another process is ready."""
PORTION = 500
"""Documents that are taken in at once: a process that is killed loses no more."""
KEPT = 64
"""Documents that are remembered as they were taken in, to see what was only appended to."""
NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "fuse.sshfs", "fuse.glusterfs"}
)
"""File systems, as /proc/mounts names them, on which machines cannot share a WAL file."""


class Shown(Protocol):
    """What the index takes from a view."""

    spec: StrategySpec
    stored: Any
    drawn: Set[int] | None

    def ids(self, scope: Any = ...) -> tuple[str, ...]: ...
    def document(self, doc_id: str) -> Document: ...
    def is_note(self, doc_id: str) -> bool: ...


_SCHEMA = f"""
create table document(
    id integer primary key autoincrement, name text not null unique, version integer not null,
    mtime integer not null, size integer not null, inode integer not null,
    rank integer, session text, entries integer not null default 0,
    ranked integer not null default 0, traced integer not null default 0);
create index document_untraced on document(id) where not traced;
create table trace(
    kind text not null, seq integer not null, line integer not null, start integer not null,
    doc integer not null);
create index trace_seq on trace(kind, seq);
create index trace_doc on trace(doc);
create table mention(key integer not null, before text not null, after text not null, doc integer not null);
create index mention_key on mention(key);
create index mention_doc on mention(doc);
create index document_version on document(version);
create index document_session on document(session) where session is not null;
create table gone(name text primary key, version integer not null);
create table name(kind integer not null, folded text not null, doc integer not null,
    primary key(kind, folded, doc)) without rowid;
create index name_doc on name(doc);
create table line(
    id integer primary key autoincrement, doc integer not null, seq integer not null, start integer not null,
    end integer not null, waiting integer not null default 0, open integer not null default 0);
create index line_seq on line(seq, doc);
create index line_doc on line(doc, start);
create index line_waiting on line(seq) where waiting;
create index line_open on line(doc, start, seq) where open;
create table cite(origin integer not null, doc integer not null, line integer not null);
create index cite_origin on cite(origin);
create index cite_doc on cite(doc);
create table mark(mark text not null, doc integer not null, seq integer not null);
create index mark_mark on mark(mark);
create index mark_doc on mark(doc);
create table doubled(seq integer primary key);
create table meta(version integer not null, list text, upto integer);
insert into meta(version) values(0);
pragma user_version = {LAYOUT};
"""


class Index:
    """The index of one library as one strategy sees it, for one process; its threads take turns.

    `root` is the library's absolute path, None for views that no files show; `name` is the strategy's.
    """

    def __init__(self, root: str | None, name: str) -> None:
        self._root, self._name = root, name
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._connections = set[sqlite3.Connection]()
        weakref.finalize(self, _close, self._connections).atexit = False
        self._forget()

    def _forget(self) -> None:
        self._db: sqlite3.Connection | None = None
        self._idle: list[sqlite3.Connection] = []
        self._pinned: set[sqlite3.Connection] = set()
        self._listing: DocumentStates | None = None
        self._known: dict[str, tuple[int, Stamp]] = {}
        self._beyond = set[str]()  # of these what the last view does not have: it may have come and gone
        self._read: OrderedDict[str, Document] = OrderedDict()
        self._version = self._seen = -1
        self._inode = 0

    def _drop(self) -> None:
        unused = self._connections - self._pinned
        _close(unused)
        self._connections -= unused
        self._forget()

    def lines(self, view: Shown) -> Lines:
        """Take in what changed, and return what a view may ask from now on."""
        db = self.attempt(view, self.pinned)
        lines = Lines(db)
        weakref.finalize(lines, self.release, db).atexit = False
        return lines

    def attempt(self, view: Shown, work: Callable[[], T]) -> T:
        """Take in what changed and do some work; again with an index made anew where that fails."""
        with self._lock:
            if self._pid != os.getpid():  # a forked child cannot use what its parent opened
                self._pid = os.getpid()
                _FORKED.update(self._connections)  # nor close it
                self._connections.clear()
                self._forget()
            for left in (2, 1, 0):
                try:
                    self._update(view)
                    return work()
                except sqlite3.Error as error:
                    why = error
                if left == 2 and not _is_busy(why):
                    log.warning("the index is made anew (%s)", why)
                    self._discard()
                elif left:  # no space, no right to write, or another process writes for long
                    log.warning("the index cannot be kept; it is built in a temporary folder")
                    self._drop()
                    self.folder = self._made()
            raise LibraryError(f"cannot write an index in {self.folder} ({why}); make room there") from why

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Write to the index, after `lines` took in what changed; all or nothing of it is kept."""
        with self._lock, _transaction(self._opened()) as db:
            yield db

    def pinned(self) -> sqlite3.Connection:
        """Return a connection in a read transaction that begins now; `release` takes it back."""
        if self._root is None:
            return self._opened()
        try:
            db = self._idle.pop()
        except IndexError:  # not asked before: another thread may take the last
            db = self._connected()
        db.execute("begin")
        db.execute("select version from meta").fetchone()
        self._pinned.add(db)
        return db

    def release(self, db: sqlite3.Connection) -> None:
        """Take a connection back that `pinned` gave."""
        if self._pid != os.getpid() or db is self._db or db not in self._connections:
            return
        with suppress(sqlite3.Error):
            if db in self._pinned:
                self._pinned.discard(db)
                db.rollback()
                self._idle.append(db)
            else:  # of an index that was deleted: what a `forget` took out is to leave the disk
                self._connections.discard(db)
                db.close()

    @cached_property
    def folder(self) -> Path | None:
        """Where index.db lies, and what others keep beside it; None in memory."""
        if self._root is None:
            return None
        folder = cache_folder(self._root, f"index-{self._name}")
        return folder if folder is not None and not _is_remote(folder) else self._made()

    def _made(self) -> Path:
        folder = tempfile.mkdtemp(prefix="infinimem-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return Path(folder)

    def _connected(self) -> sqlite3.Connection:
        folder = self.folder
        path = str(folder / "index.db") if folder else ":memory:"
        db = sqlite3.connect(path, timeout=WAIT, isolation_level=None, check_same_thread=False)
        self._connections.add(db)
        for pragma in ("synchronous=off", "trusted_schema=off", "mmap_size=268435456"):
            db.execute(f"pragma {pragma}")
        while True:  # no waiting for a lock is built into this
            try:
                db.execute("pragma journal_mode=wal")
                break
            except sqlite3.OperationalError as error:
                if not _is_busy(error):
                    raise
            time.sleep(PAUSE)
        if self._db is not None and self._found() != self._inode:
            raise sqlite3.DatabaseError("it was deleted meanwhile")
        return db

    def _found(self) -> int:
        with suppress(OSError):
            return os.lstat(f"{self.folder}/index.db").st_ino
        return 0

    def _opened(self) -> sqlite3.Connection:
        if self._db is None:
            db = self._connected()
            if db.execute("pragma user_version").fetchone()[0] != LAYOUT:
                with _transaction(db):
                    if (found := db.execute("pragma user_version").fetchone()[0]) not in (0, LAYOUT):
                        raise sqlite3.DatabaseError(f"it is of another version, {found}")
                    if found == 0:
                        for statement in _SCHEMA.split(";\n"):
                            db.execute(statement)
            self._db, self._inode = db, self._found()
        return self._db

    def _discard(self) -> None:
        folder = self.folder if self._db is None or self._found() == self._inode else None
        self._drop()
        for path in folder.glob("index.db*") if folder else ():
            with suppress(OSError):
                path.unlink()

    # ── taking in what changed ──────────────────────────────────────────────────────────────────

    def _update(self, view: Shown) -> None:
        if self._db is not None and self._root is not None and self._found() != self._inode:
            self._drop()  # a `forget` deleted it, or somebody else
            self.__dict__.pop("folder", None)
        db = self._opened()
        self._note_drawn(db, view)
        theirs = self._refresh(db)
        listing = view.stored.listing if view.stored else None
        stamps: Mapping[str, Stamp] = (
            view.stored.stamps if view.stored else dict.fromkeys(view.ids("all"), _NEW)
        )
        if listing is None or self._listing is None:
            asked: Collection[str] = {*stamps, *self._known}
        else:
            asked = {*listing.since(self._listing), *theirs, *self._beyond}
        asked = {name for name in asked if self._is_changed(name, stamps, view)}
        once = view.stored is not None and len(asked) > KEPT
        while asked:
            with _transaction(db):  # what another process took in meanwhile is looked at under the lock
                asked = {
                    name for name in {*asked, *self._refresh(db)} if self._is_changed(name, stamps, view)
                }
                portion = sorted(asked)[:PORTION]
                _Update(self, db, view, once).take(portion, stamps)
            asked.difference_update(portion)
        self._listing = listing
        self._beyond = self._known.keys() - stamps.keys() if len(self._known) > len(stamps) else set()

    def _is_changed(self, name: str, stamps: Mapping[str, Stamp], view: Shown) -> bool:
        known, stamp = self._known.get(name), stamps.get(name)
        if (known[1] if known else None) == stamp:
            return False
        if self._root is None or known is None:
            return True
        now = stamp  # where it cannot be looked at the view counts: what it does not have is gone
        with suppress(LibraryError):
            now = state_of(Path(self._root), f"{name}.md")
        if now in (known[1], stamp):
            return now == stamp
        # of two old states the later; in one tick of the clock files grow
        return stamp is not None and stamp[:2] > known[1][:2]

    def _refresh(self, db: sqlite3.Connection) -> list[str]:
        seen = db.execute("pragma data_version").fetchone()[0]
        if seen == self._seen:
            return []
        version, last = db.execute("select version from meta").fetchone()[0], self._version
        if version < last:
            raise sqlite3.DatabaseError("it is older than it was")
        rows = db.execute(
            "select name, id, mtime, size, inode from document where version > ?", (last,)
        ).fetchall()
        for name, number, *stamp in rows:
            if last >= 0:
                self._read.pop(name, None)
            self._known[name] = number, Stamp(*stamp)
        names = [row[0] for row in rows]
        for (name,) in db.execute("select name from gone where version > ?", (last,)):
            self._known.pop(name, None)
            names.append(name)
        self._version, self._seen = version, seen
        return names

    def _note_drawn(self, db: sqlite3.Connection, view: Shown) -> None:
        drawn = view.drawn if view.spec.lists_turns else None
        name, upto = ("/".join(drawn.key), drawn.upto) if isinstance(drawn, Seqs) else ("", 0)
        known, last = db.execute("select list, upto from meta").fetchone()
        if known == name and upto <= last:  # or others looked later
            return
        if known == name and isinstance(drawn, Seqs):
            flags = [(0, seq) for seq in drawn.since(replace(drawn, upto=last)) or ()]
        else:
            rows = db.execute("select distinct seq, waiting from line where open").fetchall()
            held = (drawn or frozenset()) & {seq for seq, _ in rows}
            flags = [(int(seq not in held), seq) for seq, flag in rows if flag == (seq in held)]
        with _transaction(db):
            db.executemany("update line set waiting = ? where seq = ?", flags)
            db.execute("update meta set list = ?, upto = ?", (name, upto))


_NEW = Stamp(0, 0, 0)
_FORKED = set[sqlite3.Connection]()
_GIVEN = "(select value from json_each(?))"


class _Update:
    def __init__(self, index: Index, db: sqlite3.Connection, view: Shown, once: bool) -> None:
        self._index, self._db, self._view = index, db, view
        self._read = view.stored.read if once and view.stored else view.document
        self._asked: set[int] = set()
        """Seqs of which it may have changed whether they wait, or stand twice."""
        self._rows: dict[str, list[tuple[Any, ...]]] = {"line": [], "mark": [], "name": [], "cite": []}

    def take(self, names: Sequence[str], stamps: Mapping[str, Stamp]) -> None:
        """Take documents in, or out where they have no stamp."""
        index, db = self._index, self._db
        self._version = db.execute("update meta set version = version + 1 returning version").fetchone()[0]
        used = db.execute("select seq from sqlite_sequence where name = 'line'").fetchone()
        self._first = used[0] + 1 if used else 1
        known = dict[str, tuple[int, Stamp] | None]()
        read, own = dict[str, Document | None](), (*RANKS, *self._view.spec.folders)
        for name in names:
            stamp = stamps.get(name)
            is_ours = stamp and not self._view.is_note(name) and name.startswith(own)
            load = self._view.document if name.startswith(TOPICS) else self._read
            read[name] = load(name) if is_ours else None
            old = index._known.get(name)
            before = index._read.get(name)
            if stamp is None or old is None or not self._append(name, old[0], stamp, before, read[name]):
                if old is not None:
                    self._remove(name, old[0])
                if stamp is not None:
                    old = self._insert(name, stamp, read[name]), stamp
            known[name] = (old[0], stamp) if old and stamp else None
        self._settle()
        for name, one in known.items():  # what was taken in is known once all of it is
            index._known.pop(name, None)
            index._read.pop(name, None)
            if one is not None:
                index._known[name] = one
            if (document := read[name]) is not None:
                index._read[name] = document
        while len(index._read) > KEPT:
            index._read.popitem(last=False)
        index._version = self._version

    def _insert(self, name: str, stamp: Stamp, document: Document | None) -> int:
        rank = next((at for at, folder in enumerate(RANKS) if document and name.startswith(folder)), None)
        session = _session(document) if rank == SAID else None
        columns = "name, version, mtime, size, inode, rank, session"
        row = (name, self._version, *stamp, rank, session)
        cursor = self._db.execute(f"insert into document({columns}) values(?, ?, ?, ?, ?, ?, ?)", row)
        number = cursor.lastrowid or 0
        names = [(ID, fold(name)), (STEM, fold(name.rsplit("/", 1)[-1]))]
        if rank == RANKS.index(TOPICS) and document:
            names += ((ALIAS, fold(alias)) for alias in aliases_of(document))
        self._rows["name"] += ((kind, storable(folded), number) for kind, folded in names)
        self._db.execute("delete from gone where name = ?", (name,))
        if document and (_is_marked(document.lines) or (rank is not None and _is_split(document))):
            self._rows["mark"].append((CONFLICT, number, 0))
        if document is not None and rank is not None:
            self._add(number, rank, session, document.entries)
        elif document is not None and name.startswith((*self._view.spec.live, self._view.spec.archived)):
            self._cite(number, 0, held_by(document))
        return number

    def _append(
        self, name: str, number: int, stamp: Stamp, before: Document | None, now: Document | None
    ) -> bool:
        """Add the lines that a document got at its end, if nothing else of it changed; else return False."""
        rank = next((at for at, folder in enumerate(RANKS) if name.startswith(folder)), None)
        if before is None or now is None or rank is None or rank == RANKS.index(TOPICS):
            return False
        old, tail = before.entries, now.lines[len(before.lines) :]
        if now.lines[: len(before.lines)] != before.lines or _is_marked(tail):
            return False
        if now.entries[: len(old)] != old or _session(before) != _session(now):
            return False
        self._db.execute(
            "update document set version = ?, mtime = ?, size = ?, inode = ?, ranked = 0, traced = 0 "
            "where id = ?",
            (self._version, *stamp, number),
        )
        self._add(number, rank, _session(now), now.entries[len(old) :])
        return True

    def _add(self, number: int, rank: int, session: str | None, places: Sequence[Located]) -> None:
        rows = self._rows
        for line, place in enumerate(places, self._first + len(rows["line"])):
            rows["line"].append((line, number, place.seq, place.start_line, place.end_line, False, False))
            if rank == SAID:
                fields = place.entry.fields
                marks = marks_of(fields.get("key"), fields.get("session", session), fields.get("turn"))
                rows["mark"] += ((key_of(mark), number, place.seq) for mark in marks)
                if speaker := fields.get("speaker"):
                    rows["name"].append((SPEAKER, storable(speaker), number))
            elif self._view.spec.has_entries:
                self._cite(number, line, place.entry.origin)
        self._asked.update(place.seq for place in places)
        self._db.execute("update document set entries = entries + ? where id = ?", (len(places), number))

    def _cite(self, number: int, line: int, seqs: Sequence[int]) -> None:
        self._rows["cite"] += ((seq, number, line) for seq in seqs)
        self._asked.update(seqs)

    def _remove(self, name: str, number: int) -> None:
        db = self._db
        gone = "select seq from line where doc = ?1 union select origin from cite where doc = ?1"
        self._asked.update(row[0] for row in db.execute(gone, (number,)))
        for table in ("line", "cite", "mark", "name", "trace", "mention"):
            db.execute(f"delete from {table} where doc = ?", (number,))
        db.execute("delete from document where id = ?", (number,))
        db.execute("insert or replace into gone values(?, ?)", (name, self._version))

    def _settle(self) -> None:
        db, view = self._db, self._view
        for table, rows in self._rows.items():
            if rows:
                values = ", ".join("?" * len(rows[0]))
                db.executemany(f"insert or ignore into {table} values({values})", rows)
        asked = json.dumps([*self._asked])
        db.execute(f"delete from doubled where seq in {_GIVEN}", (asked,))
        twice = f"select seq from line where seq in {_GIVEN} group by seq having count(*) > 1"
        db.execute(f"insert into doubled {twice}", (asked,))
        drawn = (view.drawn if view.spec.lists_turns else None) or frozenset[int]()
        if isinstance(drawn, Seqs):  # others may have looked later
            known, last = db.execute("select list, upto from meta").fetchone()
            drawn = replace(drawn, upto=max(drawn.upto, last)) if known == "/".join(drawn.key) else drawn
        held = drawn & self._asked
        query = (
            "select l.id, l.seq, l.waiting, l.open, not exists (select 1 from cite where origin = l.seq) "
            "and d.name not glob ? "  # records are made of what was approved
            f"from line l join document d on d.id = l.doc where d.rank = {SAID} and l.seq in {_GIVEN}"
        )
        unseen = "" if view.spec.has_entries else f"{WAITING}*"
        flags = [
            (is_open and seq not in held, is_open, line)
            for line, seq, *known, is_open in db.execute(query, (unseen, asked))
            if known != [is_open and seq not in held, is_open]
        ]
        db.executemany("update line set waiting = ?, open = ? where id = ?", flags)


def _is_marked(lines: Iterable[str]) -> bool:
    return any(line.startswith(CONFLICT) for line in lines)


def _is_split(document: Document) -> bool:
    """Return whether a document may have two headers, for somebody kept those of two versions."""
    return document.header.problem is not None or "---" in document.lines[document.header_end :]


def _session(document: Document | None) -> str | None:
    values = document.header.values if document else {}
    return storable(str(values["session"])) if "session" in values else None


def _is_remote(folder: Path) -> bool:
    best = kind = ""
    with suppress(OSError):
        for row in Path("/proc/mounts").read_text(encoding="utf-8", errors="replace").splitlines():
            _, point, name, *_ = row.split(" ")
            if len(point) >= len(best) and f"{folder}/".startswith(f"{point.rstrip('/')}/"):
                best, kind = point, name
    return kind in NETWORK


def _close(connections: Iterable[sqlite3.Connection]) -> None:
    """Close connections, which hold files open until somebody looks for cycles."""
    for db in connections:
        with suppress(sqlite3.Error):
            db.close()


def _is_busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


@contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    db.execute("begin immediate")
    try:
        yield db
    except BaseException:
        with suppress(sqlite3.Error):
            db.execute("rollback")
        raise
    db.execute("commit")
