"""The days, months and years that a question names, and how near to them an entry's time is.

Read from the text alone: "8 May 2023", "May 8th", "2023-05-08", "in May", "in 2022". "Last week" and "since
2021" name no period by themselves. English month names; ISO dates in any language.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from infinimem.terms import fold

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

REACH = 8
"""Days from a named one at which an entry is no longer near: people tell of a day within the week."""

_MONTHS = {
    name: number
    for number, names in enumerate(
        "jan january,feb february,mar march,apr april,may,jun june,jul july,aug august,sep sept september,"
        "oct october,nov november,dec december".split(","),
        start=1,
    )
    for name in names.split()
}
_MONTH = rf"(?P<month>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})\b\.?"
_DAY, _YEAR = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?", r"(?P<year>\d{4})\b"
_OPEN = r"(?:\b(?P<open>since|until|till|before|after|by) )?"
_DATES = (
    re.compile(r"\b(?P<year>\d{4})[-/](?P<month>\d{1,2})(?:[-/](?P<day>\d{1,2}))?(?!\d)"),
    re.compile(rf"\b{_DAY} (?:of )?{_MONTH}(?:,? ?{_YEAR})?"),
    re.compile(rf"\b{_MONTH} {_DAY}\b(?!:)(?:,? ?{_YEAR})?"),
    re.compile(rf"{_OPEN}\b{_MONTH},? (?:of )?{_YEAR}"),
    re.compile(rf"\b(?:in|during|of|for|last|this|early|mid|late)[ -]{_MONTH}"),
    re.compile(
        rf"\b(?:in|during|of|from|year|spring|summer|autumn|fall|winter|early|mid|late)[ -]{_YEAR}(?![-\d])"
    ),
)
"""The most precise first; a month or a year alone only behind a word that says that it is one."""


@dataclass(frozen=True)
class NamedDate:
    """A day, a month or a year; 0 for what is left out ("8 May" has no year)."""

    year: int
    month: int = 0
    day: int = 0

    def period(self, year: int) -> tuple[int, int] | None:
        """Its first and last day in that year, as ordinals; None if there is no such day."""
        try:
            first = date(year, self.month or 1, self.day or 1)
            if self.day:
                return first.toordinal(), first.toordinal()
            month = self.month or 12
            return first.toordinal(), date(year + month // 12, month % 12 + 1, 1).toordinal() - 1
        except ValueError:
            return None


def read_dates(text: str) -> tuple[tuple[NamedDate, ...], str]:
    """The dates that a text names, and the text without them, folded.

    Args:
        text: a question or keywords, any text.
    """
    found: dict[NamedDate, None] = {}
    rest = fold(text)
    for pattern in _DATES:
        rest = pattern.sub(lambda match: _take(match, found), rest)
    return tuple(found), rest


def _take(match: re.Match[str], found: dict[NamedDate, None]) -> str:
    parts = match.groupdict()
    month = parts.get("month") or "0"
    named = NamedDate(
        int(parts.get("year") or 0), _MONTHS.get(month) or int(month), int(parts.get("day") or 0)
    )
    if named.period(named.year or 2000) is None:  # a leap year: any day of a year has its place
        return match[0]
    if not parts.get("open"):
        found[named] = None
    return " , "


def nearness(dates: Collection[NamedDate], days: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
    """1 where an entry's time is in a named period, less for each day beside it, 0 from `REACH` on.

    Args:
        dates: as `read_dates` gives them; without a year, that day or month of any year.
        days: time of each entry as yyyymmdd, with zeros for a day or month that it leaves out; 0 for none.
    """
    import numpy as np

    distinct, places = np.unique(days, return_inverse=True)
    first, last = np.array([_span(day) for day in distinct.tolist()] or [(0, 0)], dtype=np.int64).T
    near = np.zeros(len(first))
    years = {year + beside for year in (distinct // 10000).tolist() for beside in (-1, 0, 1)}
    for named in dates:
        for year in (named.year,) if named.year else sorted(years):
            if (period := named.period(year)) is not None:
                gaps = np.maximum(np.maximum(period[0] - last, first - period[1]), 0)
                near = np.maximum(near, 1 - gaps / REACH)
    return np.asarray((near * (first > 0))[places])


@lru_cache(maxsize=1 << 16)
def _span(day: int) -> tuple[int, int]:
    """First and last day (ordinals) of a time as yyyymmdd; zeros for none."""
    time = NamedDate(day // 10000, day // 100 % 100, day % 100)
    return time.period(time.year) or (0, 0)
