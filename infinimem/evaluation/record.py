"""The files of a run: a JSON line for each Result and each Ingested, and back.

raw/<method>.jsonl       one Result a line
cases/<method>.jsonl     one Ingested a line
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from infinimem.errors import UsageError
from infinimem.evaluation.model import Found, Ingested, Result
from infinimem.model import Usage

_Record = TypeVar("_Record", Result, Ingested)


def to_json(record: Result | Ingested) -> str:
    """One line, without a line end; the same record gives the same bytes."""
    return json.dumps(asdict(record), ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def result_of(line: str) -> Result:
    """The Result of a line that `to_json` made.

    Raises:
        UsageError: the line is no whole Result.
    """
    values = object_of(line)
    try:
        found = tuple(Found(**{**item, "turns": tuple(item["turns"])}) for item in values["found"])
        steps = tuple(values["steps"])
        return Result(**{**values, "found": found, "steps": steps, "usage": _usage(values["usage"])})
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError("no whole result; remove the line and resume the run") from error


def ingested_of(line: str) -> Ingested:
    """The Ingested of a line that `to_json` made.

    Raises:
        UsageError: the line is no whole Ingested.
    """
    values = object_of(line)
    try:
        made = {"usage": _usage(values["usage"]), "sizes": tuple(values["sizes"])}
        return Ingested(**{**values, **made})
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError("no whole costs of a case; remove the line and resume the run") from error


def records(path: Path, record_of: Callable[[str], _Record]) -> Iterator[_Record]:
    """The records of a file.

    Args:
        path: one that is not there has none.
        record_of: `result_of` or `ingested_of`.

    Raises:
        UsageError: a line is damaged; file and line are named.
    """
    for number, line in enumerate(lines_of(path), 1):
        try:
            yield record_of(line)
        except UsageError as error:
            raise UsageError(f"{path}, line {number}: {error}") from error


def lines_of(path: Path) -> Iterator[str]:
    """The whole lines of a file; a last one without a line end was cut off while it was written.

    Raises:
        UsageError: a whole line is no UTF-8.
    """
    if not path.exists():
        return
    with path.open("rb") as file:  # what was cut off may end inside a character
        for number, line in enumerate(file, 1):
            if line.endswith(b"\n"):
                try:
                    yield line.decode("utf-8")
                except UnicodeDecodeError as error:
                    told = "no UTF-8; remove the line and resume the run"
                    raise UsageError(f"{path}, line {number}: {told}") from error


def _usage(values: Mapping[str, Mapping[str, int]]) -> dict[str, Usage]:
    return {phase: Usage(**counts) for phase, counts in values.items()}


def object_of(line: str) -> dict[str, Any]:
    """The object of a line.

    Raises:
        UsageError: it is none.
    """
    try:
        values = json.loads(line)
    except ValueError as error:
        raise UsageError("no JSON; remove the line and resume the run") from error
    if not isinstance(values, dict):
        raise UsageError("no JSON object; remove the line and resume the run")
    return values
