"""What a library remembers of its work, in one SQLite file: turns drawn from, lines as seen, what was spent.

    .infinimem/state.db

Written after a turn is acknowledged, and never synced: it may be deleted, or lost with the power. Then all
that was said before the newest cited turn counts as drawn from (turns are taken in order, so what is still to
do is the end), and lines count as new. What serves nobody, as a copy, is made anew (docs/FORMAT.md, Machine
state); a reader has an empty one in memory.

SQLite opens by path. So each look first sees, without following a link, that a plain file is there, and no
journal beside it that leads elsewhere: SQLite would delete what that names. Who writes holds the lock.
"""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from errno import ENOSPC
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from threading import RLock
from types import MappingProxyType
from typing import Any, cast
from urllib.parse import quote, unquote
from weakref import ref
from zlib import crc32

from infinimem.errors import LibraryError
from infinimem.log import log
from infinimem.markdown.signature import format_seqs, parse_seqs
from infinimem.model import AGAIN, KINDS, TRIES, Unanswered, Usage
from infinimem.spec import StrategySpec
from infinimem.store.files import LOCK_TIMEOUT, MAX_OWNED, STAGED, Files
from infinimem.store.folders import Stamp, explained, stamp_of
from infinimem.store.lines import SeqSet
from infinimem.user_folders import machine, user_folder

FOLDER, PATH = ".infinimem", ".infinimem/state.db"
BESIDE = ("journal", "wal", "shm")
"""What SQLite may leave beside the file, after a dash."""
DRAWN, REFUSED = "drawn", "refused"
"""Lists of turns: drawn from (by a strategy of records `drawn-NAME`), and those that nothing came of."""
LISTED = 20

_SCHEMA = """
CREATE TABLE meta (id TEXT, place TEXT, inode INTEGER, changes INTEGER, lines INTEGER);
CREATE TABLE turn (n INTEGER PRIMARY KEY, list TEXT, seq INTEGER, UNIQUE (list, seq));
CREATE TABLE unanswered (strategy TEXT, seq INTEGER, kind TEXT, model TEXT, tries INTEGER,
    PRIMARY KEY (strategy, seq));
CREATE TABLE seen (seq INTEGER PRIMARY KEY, doc_id BLOB, line BLOB);
CREATE TABLE usage (day TEXT PRIMARY KEY, calls INTEGER, tokens_in INTEGER, tokens_out INTEGER);
"""
_SHAPE = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name"
_PRAGMAS = """
PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY;
PRAGMA secure_delete = ON; PRAGMA synchronous = OFF;
"""
_LEADS_ON = bytes.fromhex("d9d505f920a163d7")
"""Ends a journal that names another one: SQLite writes it only where several databases are attached."""
_WORDS = {
    sqlite3.SQLITE_FULL: os.strerror(ENOSPC),
    sqlite3.SQLITE_BUSY: "another program holds it; try again",
    sqlite3.SQLITE_READONLY: "it may only be read, or is another meanwhile; try again",
}


class _Unusable(LibraryError):
    """The file is damaged, none of ours, or of another place."""


@contextmanager
def _errors(files: Files | None, action: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_CORRUPT and files:  # it also calls so what the disk failed to read
            with closing(sqlite3.connect(":memory:")) as tables, suppress(sqlite3.Error):
                tables.deserialize(files.read(PATH, MAX_OWNED) or b"")
                if tables.execute("PRAGMA integrity_check").fetchall() == [("ok",)]:
                    raise LibraryError(f"cannot {action} {PATH}: the disk failed; try again") from error
        is_stuck = code == sqlite3.SQLITE_READONLY and action == "read"  # a crash left it half written
        if is_stuck or code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR):
            raise _Unusable(f"{PATH} is of no use ({error}); try again, it is made anew") from error
        raise LibraryError(f"cannot {action} {PATH}: {_WORDS.get(code, error)}") from error


class State:
    """One connection to the file, or to what is in memory in its place. Threads may share it."""

    def __init__(
        self, files: Files, stamp: Stamp | None, connection: sqlite3.Connection, on_disk: bool
    ) -> None:
        self._files, self._stamp = ref(files), stamp
        self.connection, self.on_disk = connection, on_disk
        self._lock, self._pid = RLock(), os.getpid()
        self._unanswered: dict[str, tuple[int, Mapping[int, Unanswered]]] = {}
        self.id: str = self.query("SELECT id FROM meta")[0][0]

    def serves(self, stamp: Stamp | None) -> bool:
        """Return whether it tells of the file of this stamp. A child must not even close its parent's."""
        if self._pid != os.getpid():
            _FORKED.append(self)
            return False
        if self.on_disk and stamp and self._stamp:
            return stamp.inode == self._stamp.inode
        return stamp == self._stamp

    def __del__(self) -> None:
        if self._pid == os.getpid():
            self.connection.close()

    def query(self, sql: str, *values: object) -> list[Any]:
        """Return the rows; once the file turns out to be damaged, the next call is told nothing of it."""
        files = self._files()
        if files and self._pid != os.getpid() and (mine := _open(files)).id == self.id:
            return mine.query(sql, *values)
        try:
            with self._lock, _errors(files, "read"):
                return self.connection.execute(sql, values).fetchall()
        except _Unusable:
            if files and files.state is self:
                files.state = _in_memory(files, self._stamp)
            raise

    def write(self, act: Callable[[sqlite3.Connection], object]) -> None:
        with self._lock, _errors(self._files(), "write"):
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                act(self.connection)
                self.connection.execute("UPDATE meta SET changes = changes + 1")
                self.connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self.connection.execute("ROLLBACK")
                raise

    def lists(self, spec: StrategySpec) -> Lists:
        """Return what a strategy's snapshot sees; equal as long as nothing of it changes."""
        ((self.id, changes, upto),) = self.query("SELECT id, changes, (SELECT max(n) FROM turn) FROM meta")
        if (known := self._unanswered.get(spec.name)) is None or known[0] != changes:
            rows = self.query("SELECT seq, kind, model, tries FROM unanswered WHERE strategy = ?", spec.name)
            known = changes, {seq: Unanswered(*row) for seq, *row in rows}
            self._unanswered[spec.name] = known
        file = f"{self.id}-{self._stamp.inode if self._stamp else 0}"  # an older copy is another
        drawn, refused = (Seqs(self, (file, one), upto or 0) for one in (drawn_list(spec), REFUSED))
        return Lists(drawn or None, refused, known[1], (file, upto))


_FORKED: list[State] = []


def _open(files: Files) -> State:
    stamp, known = _look(files), files.state
    if known is not None and known.serves(stamp):
        return cast(State, known)
    state = None
    try:
        state = State(files, stamp, _connect(files, stamp), True) if stamp else None
    except _Unusable as error:
        log.info("%s: %s", files.root, error)
    except LibraryError:
        if _look(files) == stamp:
            raise
        return _open(files)  # it was replaced meanwhile
    files.state = state = state or _in_memory(files, stamp)
    return state


def _look(files: Files) -> Stamp | None:
    with explained("read", PATH), suppress(FileNotFoundError, NotADirectoryError):
        folder, info = os.lstat(f"{files.root}/{FOLDER}"), os.lstat(f"{files.root}/{PATH}")
        is_plain = S_ISDIR(folder.st_mode) and S_ISREG(info.st_mode)
        if is_plain and not _leads_on(f"{files.root}/{PATH}-journal"):
            return stamp_of(info)
    return None


def _leads_on(journal: str) -> bool:
    with suppress(FileNotFoundError):
        if not S_ISREG(os.lstat(journal).st_mode):
            return True
        with os.fdopen(os.open(journal, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - len(_LEADS_ON)))
            return file.read() == _LEADS_ON
    return False


def _connect(files: Files, stamp: Stamp | None = None) -> sqlite3.Connection:
    """Connect to the file of this stamp; without one to any that is whole."""
    path, mode = quote(os.fsencode(files.root / PATH)), "ro" if files.read_only else "rw"
    with _errors(files, "read"):
        tables = _connected(f"file:{path}?mode={mode}")
        is_ours = tables.execute(_SHAPE).fetchall() == _shape()
        rows = tables.execute("SELECT place, inode FROM meta").fetchall() if is_ours else []
        if len(rows) != 1 or tables.execute("PRAGMA journal_mode").fetchone() != ("delete",):
            raise _Unusable(f"{PATH} is none of this version, and is made anew")
        if stamp is None and tables.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
            raise _Unusable(f"{PATH} is damaged, and is made anew")
        ((place, inode),) = rows
        if stamp is not None and inode != stamp.inode and place != _place(files):
            raise _Unusable(f"{PATH} was copied from elsewhere, and is made anew")
    return tables


def _connected(address: str) -> sqlite3.Connection:
    tables = sqlite3.connect(address, LOCK_TIMEOUT, uri=True, isolation_level=None, check_same_thread=False)
    tables.executescript(_PRAGMAS)
    return tables


@cache
def _shape() -> list[Any]:
    tables = _connected(":memory:")
    tables.executescript(_SCHEMA)
    return tables.execute(_SHAPE).fetchall()


def _in_memory(files: Files, stamp: Stamp | None) -> State:
    tables = _connected(":memory:")
    tables.executescript(f"BEGIN; {_SCHEMA}")
    tables.execute("INSERT INTO meta VALUES (?, '', 0, 0, 0)", (os.urandom(16).hex(),))
    for path in _older(files):  # a torn row does not count
        for row in (files.read(path, MAX_OWNED) or b"").split(b"\n")[:-1]:
            with suppress(ValueError, TypeError, OverflowError):
                _take_row(tables, path.rpartition("/")[2], row)
    tables.execute("COMMIT")
    return State(files, stamp, tables, False)


def _place(files: Files) -> str:
    """Return a name for this machine and the path; no words, for those may have to be forgotten."""
    return _hashed(files.root, user_folder("data"))


@lru_cache(maxsize=64)
def _hashed(root: Path, _: Path | None) -> str:
    return sha256(os.fsencode(f"{machine()}:{os.path.realpath(root)}")).hexdigest()


def owner(files: Files) -> str:
    """Return whose the machine state is: a place, and a folder that may be moved."""
    folder = files.lstat(FOLDER)
    return f"{_place(files)}:{folder.st_ino if folder else 0}"


def is_here(files: Files, whose: str) -> bool:
    """Return whether it is that of this place, or of this folder; a copy has neither."""
    return any(map(str.__eq__, whose.split(":"), owner(files).split(":")))


def _write(files: Files, act: Callable[[sqlite3.Connection], object]) -> None:
    state = _open(files)
    if state.on_disk:
        with suppress(_Unusable):
            state.write(act)
            return
        clear(files)
        state = _open(files)
    state.write(act)
    _make(files, state)


def _make(files: Files, state: State) -> None:
    """Write what is in memory to a file that is whole before it has its name; drop the lists it replaces."""
    staged = f"{FOLDER}/{STAGED}"
    files.stage(staged, b"", durable=False)
    info = files.lstat(staged)
    _claim(files, state.connection, info.st_ino if info else 0)
    files.stage(staged, state.connection.serialize(), durable=False)
    clear(files)
    files.rename(staged, PATH)
    for path in _older(files):
        files.remove(path, durable=False)


def _claim(files: Files, tables: sqlite3.Connection, inode: int) -> None:
    tables.execute("UPDATE meta SET place = ?, inode = ?", (_place(files), inode))


def clear(files: Files) -> None:
    """Delete the file; then what is beside it, which no other file may find."""
    for path in (PATH, *(f"{PATH}-{end}" for end in BESIDE)):
        if files.exists(path):
            files.remove(path, durable=False)
    files.state = None


def check(files: Files, claim: bool = False) -> None:
    """Delete the file if it is not whole, as after a loss of power; `claim` one that was copied by us."""
    stamp, files.state = _look(files), None
    if stamp is not None:
        try:
            with closing(_connect(files)) as tables, _errors(files, "write"):
                if claim:
                    _claim(files, tables, stamp.inode)
            return
        except _Unusable as error:
            log.info("%s: %s", files.root, error)
    clear(files)


def compact(files: Files) -> None:
    """Leave nothing in the file of what was deleted from it; it replaces lists of earlier versions first."""
    state = _open(files)
    if state.on_disk:
        state.query("VACUUM")
    else:
        _make(files, state)


@dataclass(frozen=True, eq=False)
class Seqs(SeqSet):
    """The seqs of a list as one snapshot sees it: rows are only added, so the number of the last tells."""

    state: State
    key: tuple[str, str]
    """What is the same as long as rows are only added, and the list."""
    upto: int

    def since(self, before: Set[int] | None) -> Sequence[int] | None:
        """Return what was added to `before` to make this list; None if it was not made so."""
        if not isinstance(before, Seqs) or before.key != self.key or before.upto > self.upto:
            return None
        sql = "SELECT seq FROM turn WHERE n > ? AND n <= ? AND +list = ? ORDER BY n"
        return [seq for (seq,) in self.state.query(sql, before.upto, self.upto, self.key[1])]

    def ask(self, more: str = "", *values: object) -> list[int]:
        sql = f"SELECT seq FROM turn WHERE list = ? AND n <= ? {more}"
        return [seq for (seq,) in self.state.query(sql, self.key[1], self.upto, *values)]


@dataclass(frozen=True)
class Lists:
    """What a snapshot sees: turns drawn from (None where that is lost), refused, without a usable answer;
    `mark` is that of the first two."""

    drawn: Set[int] | None = field(default=None, compare=False)
    refused: Set[int] = field(default=frozenset(), compare=False)
    unanswered: Mapping[int, Unanswered] = field(default_factory=dict)
    mark: object = None


def read(files: Files, spec: StrategySpec) -> Lists:
    """Return what a strategy's snapshot sees now."""
    try:
        return _open(files).lists(spec)
    except _Unusable as error:
        log.info("%s: %s", files.root, error)
        return _open(files).lists(spec)


def drawn_list(spec: StrategySpec) -> str:
    return f"{DRAWN}-{spec.name}" if spec.sparse else DRAWN


def note(
    files: Files,
    lists: Mapping[str, Set[int]] = MappingProxyType({}),
    begin: Callable[[], Set[int]] = frozenset,
    emptied: str | None = None,
    reopened: Collection[int] = (),
    strategy: str = "",
    unanswered: Mapping[int, str] = MappingProxyType({}),
    model: str = "",
    seen: Mapping[int, SeenLine | None] = MappingProxyType({}),
) -> None:
    """Note all at once what became of turns, and lines as they are seen now.

    Args:
        lists: turns to add, by list.
        begin: gives what a list of turns drawn from begins with where it is lost.
        emptied: a list that begins anew.
        reopened: turns that are on no list any more.
        strategy, model, unanswered: kind of failure by turn; tries of one model add up until it answers.
    """

    def act(tables: sqlite3.Connection) -> None:
        if emptied:  # no number is given again
            tables.execute("INSERT INTO turn (list, seq) SELECT '', max(n) FROM turn")
            tables.execute("DELETE FROM turn WHERE list = ?", (emptied,))
        tables.executemany("DELETE FROM turn WHERE seq = ?", ((seq,) for seq in reopened))
        if emptied or reopened:
            tables.execute("UPDATE meta SET id = ?", (os.urandom(16).hex(),))
        for name, seqs in lists.items():
            row = tables.execute("SELECT 1 FROM turn WHERE list = ? LIMIT 1", (name,)).fetchone()
            _add(tables, name, seqs | begin() if seqs and not row and name != REFUSED else seqs)
        _add_unanswered(tables, strategy, unanswered, model)
        _add_seen(tables, seen)

    if emptied or reopened or unanswered or seen or any(lists.values()):
        _write(files, act)


def _add(tables: sqlite3.Connection, name: str, seqs: Iterable[int]) -> None:
    rows = ((name, seq) for seq in sorted(seqs))
    tables.executemany("INSERT OR IGNORE INTO turn (list, seq) VALUES (?, ?)", rows)


def _add_unanswered(tables: sqlite3.Connection, strategy: str, kinds: Mapping[int, str], model: str) -> None:
    model = model.encode("utf-8", "replace").decode()
    tables.executemany(
        "INSERT INTO unanswered VALUES (?, ?, ?, ?, 1) ON CONFLICT DO UPDATE SET kind = excluded.kind,"
        " tries = iif(model = excluded.model, tries + 1, 1), model = excluded.model",
        ((strategy, seq, kind, model) for seq, kind in kinds.items()),
    )
    tables.execute("DELETE FROM unanswered WHERE kind = ?", (AGAIN,))


def newly_unanswered(
    before: Mapping[int, Unanswered], now: Mapping[int, Unanswered]
) -> dict[int, Unanswered]:
    """Return the turns about which a call got no answer of use, by the list before it and now."""
    return {seq: one for seq, one in now.items() if before.get(seq) != one}


def unanswered_message(failed: Mapping[int, Unanswered]) -> str:
    """Say what became of turns about which there was no answer of use, and what can be done."""
    kinds = Counter(one.kind for one in failed.values())
    reasons = [(KINDS.get(kind, kind), number) for kind, number in kinds.items()]
    why = ", ".join(f"{reason}: {number}" if len(kinds) > 1 else reason for reason, number in reasons)
    again = "the model is asked again at the next add, import or consolidate"
    if over := [seq for seq, one in failed.items() if one.tries >= TRIES]:
        again = (
            f"about {format_seqs(over[:LISTED])}{'…' * (len(over) > LISTED)} it was asked {TRIES} times and "
            "is not any more: consolidate --retry asks again, --leave SEQ leaves a turn as it was said"
        )
    turns = f"{len(failed)} turn{'s' * (len(failed) > 1)}"
    return f"no usable answer about {turns} ({why}); what was said is recorded and found; {again}"


def usage_by_day(files: Files) -> Mapping[str, Usage]:
    """Return the usage by day (ISO 8601, UTC), oldest first."""
    return {day: Usage(*told) for day, *told in _open(files).query("SELECT * FROM usage ORDER BY day")}


def note_usage(files: Files, day: str, usage: Usage) -> None:
    """Add to a day (ISO 8601, UTC), taking the lock; nothing without tokens."""
    if usage.tokens_in or usage.tokens_out:
        with files.exclusive():
            _write(files, lambda tables: _add_usage(tables, day, usage))


def _add_usage(tables: sqlite3.Connection, day: str, usage: Usage) -> None:
    tables.execute(
        "INSERT INTO usage VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET calls = calls + excluded.calls,"
        " tokens_in = tokens_in + excluded.tokens_in, tokens_out = tokens_out + excluded.tokens_out",
        (day, usage.calls, usage.tokens_in, usage.tokens_out),
    )


@dataclass(frozen=True, slots=True)
class SeenLine:
    """Where a line stood, and how it read."""

    doc_id: str
    line: str


Changes = dict[int, SeenLine | None]
"""Lines as they are now; None for one that is gone."""


class SeenLines(Mapping[int, SeenLine]):
    """Every live and archived line as the program last saw it, so that what a person changed can be told; and
    every receipt, under a number below 0, so that those of another copy can.

    `began` stays the same as long as lines are only noted.
    """

    def __init__(self, files: Files) -> None:
        self._state = _open(files)
        self.began = self._state.id

    def load(self, which: str = "ORDER BY seq", *values: object) -> dict[int, SeenLine]:
        """Return all of them at once, or those of which this SQL is true."""
        rows = self._state.query(f"SELECT seq, doc_id, line FROM seen {which}", *values)
        return {seq: SeenLine(_text(doc_id), _text(line)) for seq, doc_id, line in rows}

    def __getitem__(self, seq: int) -> SeenLine:
        return self.load("WHERE seq = ?", seq)[seq]

    def __iter__(self) -> Iterator[int]:
        return iter(self.load())

    def __len__(self) -> int:
        ((length,),) = self._state.query("SELECT lines FROM meta")
        return int(length)


def receipt_seen(doc_id: str) -> int:
    """Return the number under which a receipt is noted as seen; that of "" where all of them are."""
    return -int(sha256(doc_id.encode()).hexdigest()[:15], 16)


def _add_seen(tables: sqlite3.Connection, changes: Mapping[int, SeenLine | None]) -> None:
    rows = [
        (seq, *(part.encode("utf-8", "surrogateescape") for part in (one.doc_id, one.line)))
        for seq, one in changes.items()
        if one
    ]
    gone = tables.executemany("DELETE FROM seen WHERE seq = ?", ((seq,) for seq in changes)).rowcount
    tables.executemany("INSERT INTO seen VALUES (?, ?, ?)", rows)
    tables.execute("UPDATE meta SET lines = lines + ?", (len(rows) - max(gone, 0),))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


# ── the lists of earlier versions ───────────────────────────────────────────────────────────────


def _older(files: Files) -> list[str]:
    kept = (DRAWN, REFUSED, "unanswered", "usage", "seen")
    return [f"{FOLDER}/{name}" for name in files.names(FOLDER) if name.partition("-")[0] in kept]


def _take_row(tables: sqlite3.Connection, name: str, row: bytes) -> None:
    kind, _, strategy = name.partition("-")
    if kind == "seen":
        checksum, _, rest = row.partition(b"\t")
        seq, doc_id, line = _text(rest).split("\t", 2)
        if checksum == b"%08x" % crc32(rest):
            _add_seen(tables, {int(seq): None if doc_id == "-" else SeenLine(doc_id, line)})
    elif kind == "usage":
        day, calls, tokens_in, tokens_out = row.decode("ascii").split(" ")
        _add_usage(tables, day, Usage(int(calls), int(tokens_in), int(tokens_out)))
    elif row.endswith(b";") and kind == "unanswered":
        seqs, failure, model = row[:-1].decode("ascii").split(" ")
        _add_unanswered(tables, strategy, dict.fromkeys(parse_seqs(seqs), failure), unquote(model))
    elif row.endswith(b";"):
        _add(tables, name, parse_seqs(row[:-1].decode("ascii")))
