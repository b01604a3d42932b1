"""The day that a name, a heading or a value of a header writes: of daily notes, and of when a note was made.

Year, month and day in order, with or without marks between them; with the English name of a month in any
order; day and month before the year only where one of them can be no month, or both are the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date

from infinimem.importers.fields import iso
from infinimem.terms import DAYS, MONTHS

_NAMED = [name.lower() for name in MONTHS]
_YEAR, _DAY, _GAP = r"(?P<year>(?:19|20)\d\d)", r"(?P<day>\d{1,2})(?:st|nd|rd|th)?", r"[\s.,_/-]{0,3}"
_MONTH = rf"(?<![a-z])(?P<name>{'|'.join(f'{name[:3]}(?:{name[3:]})?' for name in _NAMED)}|sept)(?![a-z])"
_FORMS = [
    re.compile(rf"(?<![a-z\d]){form}(?!\d)", re.IGNORECASE)
    for form in (
        r"(?P<year>\d{4})(?P<mark>[-_./])(?P<month>\d{1,2})(?P=mark)(?P<day>\d{1,2})",
        rf"{_YEAR}(?P<mark> ?)(?P<month>\d\d)(?P=mark)(?P<day>\d\d)(?:[t_ -]?[0-2]\d[0-5]\d(?:[0-5]\d)?)?z?",
        rf"{_YEAR}年(?P<month>\d{{1,2}})月(?P<day>\d{{1,2}})日?",
        rf"{_DAY}{_GAP}(?:of\s)?{_MONTH}{_GAP}{_YEAR}",
        rf"{_MONTH}{_GAP}{_DAY}{_GAP}{_YEAR}",
        rf"{_YEAR}{_GAP}{_MONTH}{_GAP}{_DAY}",
        rf"(?P<day>\d{{1,2}})(?P<mark>[-_./])(?P<month>\d{{1,2}})(?P=mark){_YEAR}",
    )
]
_CLOCK = re.compile(r"(?<!\d)(\d{1,2}):(\d\d)(?::\d\d)?\s*([ap]m)?", re.IGNORECASE)
_KEYS = re.compile(
    r"date(?:time)?|day|(?:date|time)?created(?:at|on|date|time)?|creation(?:date|time)|createtime|pubdate|timestamp"
    r"|(?:date)?(?:published|posted|written)(?:at|on|date)?|(?:publish|publication|entry|journal)date"
)
"""Of a header; case and what stands between words make no difference."""


def day_of(text: str) -> str | None:
    """ISO 8601 of the first day that is written in a text; None where there is none, or it is ambiguous."""
    return next((day for day, _ in _days(text)), None)


def is_day(text: str) -> bool:
    """Whether a text says nothing but a day, and the day of the week perhaps."""
    rest = next((text.replace(written, " ", 1) for _, written in _days(text)), text)
    named = {name[:length].lower() for name in DAYS for length in (2, 3, len(name))}
    return rest != text and named.issuperset(re.findall(r"[^\W_]+", rest.lower()))


def day_of_header(values: Mapping[str, object]) -> tuple[str | None, str | None]:
    """The day of a note by its header, and the key that says it."""
    keys = [key for key in values if _KEYS.fullmatch(re.sub(r"[\W_]", "", key).casefold())]
    for key in sorted(keys, key=lambda key: key.casefold() != "date"):
        written = str(values[key])
        seconds = written if written.isdigit() and len(written) > 8 else None
        if day := day_of(written) or (iso(seconds) or "")[:10]:
            return day, key
    return None, None


def moment(text: object) -> str | None:
    """ISO 8601 of a day with a time of day in words, as data sets have it: "1:56 pm on 8 May, 2023"."""
    if not isinstance(text, str):
        return None
    day, clock = day_of(text), _CLOCK.search(text)
    if iso(text) or day is None or clock is None:
        return iso(text) or day
    hour = int(clock[1]) % 12 + 12 * (clock[3].lower() == "pm") if clock[3] else int(clock[1])
    return iso(f"{day}T{hour:02d}:{clock[2]}:00")


def _days(text: str) -> Iterator[tuple[str, str]]:
    """The days near the beginning of a text, and how each is written."""
    for form in _FORMS:
        for match in form.finditer(text[:1000]):
            parts = match.groupdict()
            name = (parts.get("name") or "")[:3].lower()
            day, month = int(parts["day"]), int(parts.get("month") or 0)
            month = month or next(at for at, one in enumerate(_NAMED, 1) if one.startswith(name))
            if form is _FORMS[-1] and day != month and (day > 12) == (month > 12):
                continue  # 10-03-2024
            if form is _FORMS[-1] and month > 12:
                day, month = month, day
            try:
                yield date(int(parts["year"]), month, day).isoformat(), match[0]
            except ValueError:
                continue
