"""Turns as an inbox object, and back: a line of JSON each."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict

from infinimem.errors import UsageError
from infinimem.model import Turn
from infinimem.store.evidence import check_turn


def to_lines(turns: Iterable[Turn]) -> bytes:
    """The bytes of an inbox object; fields that say nothing are left out."""
    rows = ({name: value for name, value in asdict(turn).items() if value is not None} for turn in turns)
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def from_lines(data: bytes) -> list[Turn]:
    """The turns of an inbox object that anybody may have written.

    Raises:
        ValueError: it is none; says why.
    """
    turns = []
    try:
        for line in data.decode("ascii").splitlines():
            row = json.loads(line)
            if not isinstance(row, dict) or not all(isinstance(value, str) for value in row.values()):
                raise ValueError("a line that is no turn")
            turns.append(Turn(**row))
            check_turn(turns[-1])
    except (TypeError, RecursionError, UsageError) as error:
        raise ValueError(str(error)) from error
    return turns
