"""The folder of a run: what was asked for, and what is done. Only grows; a line that was torn is none.

config.json              a run that goes on must ask for the same
raw/<method>.jsonl       a Result a line         cases/<method>.jsonl   an Ingested a line
errors.jsonl             what failed, and is tried again when the run goes on
replies/                 what models said (llm/replies.py): a run that goes on, or is repeated, asks no more
"""

from __future__ import annotations

import fcntl
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from infinimem.errors import LockTimeout, UsageError
from infinimem.evaluation.methods.spec import Spec
from infinimem.evaluation.model import Found, Ingested, Result
from infinimem.model import Usage

CONFIG = "config.json"
WORK, REPLIES = "work", "replies"
_LOCK = ".lock"


class Book:
    """What a run has done so far.

    Args:
        out: its folder; one that is not there yet has done nothing.
        specs: the methods.
    """

    def __init__(self, out: Path, specs: Sequence[Spec]) -> None:
        self.out = out
        self.work, self.replies = out / WORK, out / REPLIES
        self._lock = threading.Lock()
        self._asked: dict[str, set[tuple[str, str]]] = {}
        self._made: dict[str, set[str]] = {}
        for spec in specs:
            self._asked[spec.text] = {(one.case, one.question) for one in results(self._raw(spec))}
            self._made[spec.text] = {one.case for one in ingested(self._cases(spec))}
        self._specs = specs

    def open(self) -> None:
        """Make ready for writing; only who holds the folder may."""
        self.replies.mkdir(mode=0o700, exist_ok=True)
        for spec in self._specs:
            for path in (self._raw(spec), self._cases(spec)):
                path.parent.mkdir(parents=True, exist_ok=True)
                if path.exists() and not path.read_bytes().endswith(b"\n"):
                    _append(path, "")  # ends a line that was torn

    @property
    def done(self) -> int:
        """Questions that were asked, over all methods."""
        return sum(map(len, self._asked.values()))

    def has(self, spec: Spec, case: str, question: str) -> bool:
        """Whether a question was asked."""
        return (case, question) in self._asked[spec.text]

    def is_made(self, spec: Spec, case: str) -> bool:
        """Whether it is told what taking a case in cost."""
        return case in self._made[spec.text]

    def add(self, spec: Spec, record: Result | Ingested) -> None:
        """Write a record down."""
        with self._lock:
            if isinstance(record, Result):
                _append(self._raw(spec), to_json(record))
                self._asked[spec.text].add((record.case, record.question))
            elif record.case not in self._made[spec.text]:
                _append(self._cases(spec), to_json(record))
                self._made[spec.text].add(record.case)

    def fail(self, spec: Spec, case: str, question: str | None, error: Exception) -> None:
        """Write down that something went wrong."""
        row = {
            "method": spec.text,
            "case": case,
            "question": question,
            "error": f"{type(error).__name__}: {error}",
        }
        with self._lock:
            _append(self.out / "errors.jsonl", json.dumps(row, ensure_ascii=False))

    def _raw(self, spec: Spec) -> Path:
        return self.out / "raw" / f"{spec.file}.jsonl"

    def _cases(self, spec: Spec) -> Path:
        return self.out / "cases" / f"{spec.file}.jsonl"


class OtherRun(UsageError):
    """The folder holds a run that was asked for something else."""


def demand_same(out: Path, config: Mapping[str, Any]) -> None:
    """Check that a folder may hold the run: it is new, or holds the beginning of the same one.

    Raises:
        UsageError: the folder is no run's.
        OtherRun: it is another one's.
    """
    path = out / CONFIG
    if not path.exists():
        if out.is_dir() and any(found.name[0] != "." and found.name != REPLIES for found in out.iterdir()):
            raise UsageError(f"{out} is not empty and holds no run; choose another folder with --out")
        return
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
        names = sorted({*before, *config})
    except (ValueError, TypeError) as error:
        raise UsageError(f"{path} is damaged; choose another folder with --out") from error
    for name in names:
        if before.get(name) != config.get(name):
            was, now = (json.dumps(each.get(name), ensure_ascii=False) for each in (before, config))
            raise OtherRun(
                f"{out} holds a run with other {name} ({was}, now {now}); ask for the same, "
                "or choose another --out"
            )


@contextmanager
def held(out: Path, config: Mapping[str, Any]) -> Iterator[None]:
    """Have the folder for oneself; what is asked for is written down where nothing is.

    Raises:
        UsageError: as `demand_same`.
        LockTimeout: another process writes to it.
    """
    demand_same(out, config)
    out.mkdir(parents=True, exist_ok=True)
    with (out / _LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise LockTimeout(f"another run writes to {out}; wait for it, or choose another --out") from error
        demand_same(out, config)  # another one may have begun meanwhile
        if not (path := out / CONFIG).exists():
            part = out / f".{CONFIG}"
            text = json.dumps(config, ensure_ascii=False, indent=2, sort_keys=True)
            part.write_text(text + "\n", encoding="utf-8")
            part.replace(path)
        yield


def _append(path: Path, line: str) -> None:
    with path.open("ab") as file:
        file.write(f"{line}\n".encode("utf-8", "backslashreplace"))


# ── a line for each record ──────────────────────────────────────────────────────────────────────


def to_json(record: Result | Ingested) -> str:
    """One line, without a line end; the same record gives the same bytes."""
    return json.dumps(asdict(record), ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def results(path: Path) -> Iterator[Result]:
    """The Results of a file; of one that is not there, and of lines that are damaged, none."""
    for row in _rows(path):
        with suppress(KeyError, TypeError, AttributeError):
            found = tuple(Found(**{**item, "turns": tuple(item["turns"])}) for item in row["found"])
            read = {"found": found, "steps": tuple(row["steps"]), "usage": _usage(row["usage"])}
            yield Result(**{**row, **read})


def ingested(path: Path) -> Iterator[Ingested]:
    """What taking in cases cost, likewise."""
    for row in _rows(path):
        with suppress(KeyError, TypeError, AttributeError):
            yield Ingested(**{**row, "usage": _usage(row["usage"]), "sizes": tuple(row["sizes"])})


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with suppress(FileNotFoundError), path.open("rb") as file:
        for line in file:
            with suppress(ValueError, RecursionError):
                yield dict(json.loads(line))


def _usage(values: Mapping[str, Mapping[str, int]]) -> dict[str, Usage]:
    return {phase: Usage(**counts) for phase, counts in values.items()}
