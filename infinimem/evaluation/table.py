"""A table of a report, and how its cells are written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf

from infinimem.model import Usage

NONE = "–"
"""Of a figure that there is not."""


@dataclass(frozen=True)
class Table:
    """Rows of text under a title.

    Args:
        title: a heading.
        columns: the first names the rows.
        rows: as many cells as there are columns.
        note: what to know, one sentence or two.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]] = field(default_factory=list)
    note: str = ""

    def markdown(self) -> str:
        """With numbers to the right."""
        lines = [f"## {self.title}", ""]
        if self.note:
            lines += [self.note, ""]
        lines.append(_line(self.columns))
        lines.append(_line(["---", *["---:"] * (len(self.columns) - 1)]))
        lines += [_line([cell.replace("|", "\\|") for cell in row]) for row in self.rows]
        return "\n".join(lines)


def percent(value: float | None) -> str:
    """Of a share."""
    return NONE if value is None else f"{100 * value:.1f}"


def whole(value: float) -> str:
    """A number of tokens."""
    return "never" if value == inf else f"{value:,.0f}"


def tokens_of(usages: Iterable[Usage]) -> int:
    """In and out together."""
    return sum(usage.tokens_in + usage.tokens_out for usage in usages)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
