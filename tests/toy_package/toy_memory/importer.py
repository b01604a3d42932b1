"""An importer of {"toy": "what was said"}; the module itself is the importer (importers/read.py)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from infinimem import Turn


def matches(record: dict[str, Any]) -> bool:
    """Whether it is one of ours."""
    return "toy" in record


def names(record: dict[str, Any], stem: str) -> tuple[str, ...]:
    """Of the conversation."""
    return (stem,)


def turns(record: dict[str, Any], stem: str, skipped: Counter[str]) -> Iterator[Turn]:
    """The one turn."""
    yield Turn(record["toy"], session=stem)
