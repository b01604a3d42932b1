"""The file of a run, SQLite: what was asked for, what each method made of each question, and what that took.

A row is written once, whole, and never changed, so that a run that was killed goes on from what is there.
"""

from __future__ import annotations

import fcntl
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import Any

from infinimem.errors import LockTimeout, UsageError
from infinimem.evaluation.model import Ingested, Result
from infinimem.model import Usage

FILE, REPLIES = "run.db", "replies"

_TABLES = """
CREATE TABLE IF NOT EXISTS config (name TEXT PRIMARY KEY, value TEXT);
CREATE TABLE IF NOT EXISTS made (
    method TEXT, history TEXT, seconds REAL, turns INTEGER, disk INTEGER, sizes TEXT, written TEXT,
    PRIMARY KEY (method, history));
CREATE TABLE IF NOT EXISTS result (
    id INTEGER PRIMARY KEY, method TEXT, history TEXT, question TEXT, category TEXT, counted INTEGER,
    seconds REAL, shown INTEGER, failed TEXT, record TEXT,
    UNIQUE (method, history, question));
CREATE TABLE IF NOT EXISTS score (
    result INTEGER, measure TEXT, value REAL,
    PRIMARY KEY (result, measure)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS spent (
    method TEXT, history TEXT, question TEXT, phase TEXT, calls INTEGER, tokens_in INTEGER,
    tokens_out INTEGER, PRIMARY KEY (method, history, question, phase)) WITHOUT ROWID;
CREATE VIEW IF NOT EXISTS scored AS
    SELECT * FROM result JOIN score ON score.result = result.id WHERE measure NOT LIKE '% to %';
"""


class OtherRun(UsageError):
    """The folder holds a run that was asked for something else."""


class Database:
    """What a run has done so far; threads may share it."""

    def __init__(self, rows: sqlite3.Connection) -> None:
        self._rows = rows
        self._lock = Lock()
        self.asked = set(rows.execute("SELECT method, history, question FROM result"))
        self.made = set(rows.execute("SELECT method, history FROM made"))

    def add(self, record: Result | Ingested) -> None:
        """Write a record down, unless one of the same question or case is."""
        key = (record.method, record.case)
        with self._lock, self._rows:
            if isinstance(record, Result) and (*key, record.question.id) not in self.asked:
                question, drawn = record.question, record.drawn
                shown = sum(item.tokens for item in drawn.found)
                text = json.dumps({**asdict(drawn), "verdicts": record.verdicts})
                about = (question.id, question.category, question.counted, record.seconds, shown)
                cells = (*key, *about, drawn.failed, text)
                new = self._rows.execute("INSERT INTO result VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)", cells)
                scores = [(new.lastrowid, *pair) for pair in record.scores.items()]
                self._rows.executemany("INSERT INTO score VALUES (?, ?, ?)", scores)
                self._spend(*key, question.id, record.usage)
                self.asked.add((*key, question.id))
            elif isinstance(record, Ingested) and key not in self.made:
                texts = (json.dumps(record.sizes), json.dumps(record.written))
                row = (*key, record.seconds, record.turns, record.disk, *texts)
                self._rows.execute("INSERT INTO made VALUES (?, ?, ?, ?, ?, ?, ?)", row)
                self._spend(*key, "", record.usage)
                self.made.add(key)

    def _spend(self, method: str, case: str, question: str, usage: Mapping[str, Usage]) -> None:
        rows = [
            (method, case, question, phase, spent.calls, spent.tokens_in, spent.tokens_out)
            for phase, spent in usage.items()
        ]
        self._rows.executemany("INSERT INTO spent VALUES (?, ?, ?, ?, ?, ?, ?)", rows)


@contextmanager
def opened(folder: Path, config: Mapping[str, Any], write: bool = False) -> Iterator[Database]:
    """Open the file of a run, or of one that has not begun; to `write`, as the only process that does.

    UsageError if the folder is no run's, OtherRun if it was asked for with another `config`, LockTimeout if
    another process writes to it.
    """
    path = folder / FILE
    is_there = path.exists()
    is_run = is_there or (folder / REPLIES).is_dir()
    if not is_run and folder.is_dir() and any(found.name[0] != "." for found in folder.iterdir()):
        raise UsageError(f"{folder} is not empty and holds no run; choose another folder with --out")
    held = _exclusive(folder) if write else nullcontext()
    with held, _connected(path if write or is_there else ":memory:") as rows:
        _demand_same(rows, folder, config)
        if write:  # no row waits for the disk, and none is half there
            rows.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL")
        yield Database(rows)


@contextmanager
def read(folder: Path) -> Iterator[sqlite3.Connection]:
    """Open the file of a run to look at it; UsageError if there is none, or nothing was asked yet."""
    if not (folder / FILE).is_file():
        raise UsageError(f"{folder} holds no run that can be read: name the folder of one")
    with _connected(folder / FILE) as rows:
        if not rows.execute("SELECT 1 FROM result").fetchone():
            raise UsageError(f"{folder} holds no results yet: start the run first")
        yield rows


@contextmanager
def _connected(path: Path | str) -> Iterator[sqlite3.Connection]:
    try:
        with closing(sqlite3.connect(path, check_same_thread=False)) as rows:
            rows.executescript(_TABLES)
            yield rows
    except sqlite3.DatabaseError as error:
        what = f"{path} cannot be read or written"
        raise UsageError(f"{what} ({error}); choose another folder with --out") from error


@contextmanager
def _exclusive(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise LockTimeout(
                f"another run writes to {folder}; wait for it, or choose another --out"
            ) from error
        yield


def _demand_same(rows: sqlite3.Connection, folder: Path, config: Mapping[str, Any]) -> None:
    """Hold what is asked for against what was, and write it down where nothing was."""
    now = {name: json.dumps(value, ensure_ascii=False, sort_keys=True) for name, value in config.items()}
    before = dict(rows.execute("SELECT name, value FROM config"))
    if not before:
        with rows:
            rows.executemany("INSERT INTO config VALUES (?, ?)", now.items())
        return
    for name in sorted({*before, *now}):
        if before.get(name) != now.get(name):
            raise OtherRun(
                f"{folder} holds a run with other {name} ({before.get(name)}, now {now.get(name)}); "
                "ask for the same, or choose another --out"
            )
