"""When something happened: the form of an entry's `when`, and what English words say of it.

A `when` is a day, a month, a year (`2023-07-03`, `2023-07`, `2023`) or an interval of two of these, both ends
included (`2023-08-20/2023-08-26`). Words are read against the day on which they were said: "last month", said
on 2023-08-27, is `2023-07`. Weeks begin on Monday. What more than one day, month or year may be meant by
("next Friday") is recognised, so that a `when` can be held against it, but settles nothing.

The libraries that read dates give a point in time for each of these, take "we" for Wednesday, and lose
whether a day, a month or a year was meant; so the words are listed here.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterable, Iterator
from datetime import date, timedelta
from typing import NamedTuple

from infinimem.grounding.sentences import any_of, spans
from infinimem.terms import DAYS, MONTHS

Span = tuple[date, date]
"""First and last day."""

_WHEN = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?\Z", re.ASCII)


class Mention(NamedTuple):
    """Words that name a time. `sure`: nothing but `span` can be meant; else one of `others` may be."""

    words: str
    span: Span
    sure: bool = True
    others: tuple[Span, ...] = ()


def span_of(when: str) -> Span | None:
    """The days that a `when` covers; None where it has not the form of one."""
    ends = [_period(part) for part in when.split("/")]
    if len(ends) > 2 or None in ends:
        return None
    first, last = ends[0], ends[-1]
    assert first is not None and last is not None
    return (first[0], last[1]) if first[0] <= last[0] and first[1] <= last[1] else None


def when_of(span: Span) -> str:
    """The shortest `when` that covers these days."""
    first, last = span
    if first == last:
        return first.isoformat()
    if span == _month(first.year, first.month):
        return f"{first:%Y-%m}"
    return f"{first:%Y}" if span == _year(first.year) else f"{first}/{last}"


def day_of(time: str | None) -> date | None:
    """The day of an ISO 8601 time; None where there is none."""
    try:
        return date.fromisoformat((time or "")[:10])
    except ValueError:
        return None


def settled(text: str, said: date | None) -> str | None:
    """The `when` that the words of a text settle; None where they name no time, the day itself, several
    times, or one that is not sure."""
    if said is None:
        return None
    found = {mention.span if mention.sure else None for mention in mentions(text, said)}
    span = found.pop() if len(found) == 1 else None
    return when_of(span) if span and span != (said, said) else None


def is_outdated(when: str, text: str, said: date | None) -> bool:
    """Whether an older version of these rules settled a `when` that the words do not."""
    found = mentions(text, said) if said and settled(text, said) != when else []
    return len({one.span for one in found}) == 1 and when in map(when_of, (found[0].span, *found[0].others))


def fits(when: str, told: Iterable[tuple[str, date | None]]) -> bool:
    """Whether words can mean a `when`.

    It must share a day with a time that they name, give or take a seventh of its length and a day: people
    round. Where words tell of time in a way that is not known here ("in my childhood"), any may be meant.

    Args:
        when: a well-formed one.
        told: texts that it was drawn from, each with the day on which it was said.
    """
    span = span_of(when)
    if span is None:
        return False
    for text, said in told:
        found = mentions(text, said) if said else []
        spans = (meant for mention in found for meant in (mention.span, *mention.others))
        if any(_near(span, meant) for meant in spans) or (not found and _TEMPORAL.search(text)):
            return True
    return False


def tells_of_past(text: str) -> bool:
    """Whether a verb of a text does, or the text names a day, a month or a span of time."""
    past = any(verb.lastgroup == "past" for verb in _VERB.finditer(text))
    return past or _TEMPORAL.search(text) is not None


def mentions(text: str, said: date) -> list[Mention]:
    """The times that a text names, read against the day on which it was said."""
    found: list[Mention] = []
    rest = _HABIT.sub(" , ", text)
    for pattern, read in _PATTERNS:

        def take(match: re.Match[str], read: _Reader = read) -> str:
            try:
                mention = read(match, said)
            except (ValueError, OverflowError):  # 30 February, or before the year 1
                return match[0]
            if mention is not None:
                found.append(mention)
            return match[0] if mention is None else " , "

        rest = pattern.sub(take, rest)
    return found


# ── spans ───────────────────────────────────────────────────────────────────────────────────────


def _period(text: str) -> Span | None:
    match = _WHEN.match(text)
    try:
        if match is None:
            return None
        year, month, day = (int(part or 0) for part in match.groups())
        first = date(year, month if match[2] else 1, day if match[3] else 1)
        if match[3]:
            return _day(first)
        return _month(year, month) if match[2] else _year(year)
    except ValueError:
        return None


def _day(day: date) -> Span:
    return day, day


def _week(day: date) -> Span:
    monday = day - timedelta(days=day.weekday())
    return monday, monday + timedelta(days=6)


def _month(year: int, month: int) -> Span:
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    return date(year, month, 1), date(year, month, monthrange(year, month)[1])


def _year(year: int) -> Span:
    return date(year, 1, 1), date(year, 12, 31)


def _near(one: Span, other: Span) -> bool:
    slack = timedelta(days=1 + (other[1] - other[0]).days // 7)
    return one[0] <= other[1] + slack and other[0] <= one[1] + slack


# ── words ───────────────────────────────────────────────────────────────────────────────────────

_SIDES = {"last": -1, "past": -1, "next": 1}
SOON = 92
"""Days within which a day on the other side than that of the sentence's tense is as likely meant."""
NEARBY = 300
"""Characters around a date in which its sentence is looked for."""
_Reader = Callable[[re.Match[str], date], Mention | None]

_COUNTS = {
    word: count
    for count, words in enumerate("a an one,two,three,four,five,six,seven,eight,nine,ten".split(","), 1)
    for word in words.split()
}
_MONTHS = [name.lower() for name in MONTHS]
_DAYS = [day.lower() for day in DAYS]
_N = rf"(?P<n>\d{{1,3}}|{'|'.join(_COUNTS)})"
_UNIT = r"(?P<unit>day|week|month|year)s?"
_MONTH = rf"(?P<month>{'|'.join(_MONTHS)}|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?)"
_NTH, _YEAR = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?", r"(?P<year>(?:19|20)\d\d)"
_WEEKDAY = rf"(?P<weekday>{'|'.join(_DAYS)})"
_VERB = re.compile(
    rf"(?P<future>{any_of('future')})|(?P<open>{any_of('open')})|(?P<past>{any_of('past')})|(?P<now>{any_of('now')})",
    re.I,
)
"""Verbs, and words (`open`) after which a date is mostly not that of the verb before: the concert's for which
tickets were bought, the move's on which was agreed."""
_CLAUSE = re.compile(
    r"[,;:()!?\n–—]|\s-\s|\b(?:and|but|or|so|because|as|when|while|although|though|if|unless|whether|that|which"
    r"|who|whom|whose|where|what|how|why|than|after|before|I|we|he|she|they)\b",
    re.I,
)
_OTHER_TIMES = re.compile(
    r"\b(?:always|usually|often|sometimes|every|each|if|unless|wish|born|childhood"
    r"|as an? (?:child|kid|student|teenager|boy|girl)|back then|those days"
    r"|when (?:I|we|he|she|they) (?:was|were))\b|\?",
    re.I,
)
"""Words of what happens again and again, might, or was long ago: no verb tells its year."""
_SUBJECT = re.compile(r"[,\s]*(?:(?:I|we|he|she|they|you|it)\b)?", re.I)
_NOT_WHEN = re.compile(r"\b(?:for|to|until|till|by|before|from)\s+(?:the\s+)?\Z|\A(?:until|by)\b", re.I)
_COUNT = re.compile(rf"\d|\b(?:{'|'.join(list(_COUNTS)[2:])}|dozens?|several|many|twice)\b", re.I)
_HABIT = re.compile(
    rf"\b(?:every|each|most|all)\s+(?:\w+\s+)?(?:{'|'.join(_DAYS)}|day|week|month|year)s?\b", re.I
)
_TEMPORAL = re.compile(
    rf"\b(?:yesterday|tomorrow|tonight|ago|last|next|since|weekend|{'|'.join(_DAYS)}|{'|'.join(_MONTHS)}"
    r"|(?:19|20)\d\d|spring|summer|autumn|winter|christmas|easter|birthday|childhood|recently|soon|later|earlier"
    r"|(?:day|week|month|year)s?)\b",
    re.I,
)


def _past(match: re.Match[str]) -> bool | None:
    """Whether the verb that governs a date tells of the past, or of what is to come; None where none does.

    It stands before the date in the same clause; where none does and the date comes first, right behind it.
    """
    begin = max(0, match.start() - NEARBY)
    text, at = match.string[begin : match.end() + NEARBY], match.start() - begin
    after = at + len(match[0])
    start, end = next((one for one in spans(text) if at < one[1]), (0, len(text)))
    if _OTHER_TIMES.search(text, start, end) or _NOT_WHEN.search(text[start:at] + match[0][:6]):
        return None
    left = max((found.end() for found in _CLAUSE.finditer(text, start, at)), default=start)
    verbs = [*_VERB.finditer(text, left, at)]
    if not verbs and len(text[left:at].split()) < 4:
        subject = _SUBJECT.match(text, after, end)
        right = subject.end() if subject else after
        stop = _CLAUSE.search(text, right, end)
        verbs = [*_VERB.finditer(text, right, stop.start() if stop else end)][:2]
        verbs = verbs if verbs and len(text[right : verbs[0].start()].split()) < 4 else []
    kinds = [verb.lastgroup for verb in verbs]
    if "open" in kinds or not kinds:
        return None
    if kinds[0] == "future":  # "will be opened"
        return False
    return True if set(kinds) == {"past"} else None


def _number(match: re.Match[str]) -> int:
    word = match["n"].lower()
    return _COUNTS.get(word) or int(word)


def _away(said: date, unit: str, count: int) -> Span:
    """The day, week, month or year that is so many away."""
    if unit == "day":
        return _day(said + timedelta(days=count))
    if unit == "week":
        return _week(said + timedelta(weeks=count))
    return _month(said.year, said.month + count) if unit == "month" else _year(said.year + count)


def _counted(match: re.Match[str], said: date) -> Mention:
    """Two weeks ago; in three months, unless that is how long something took ("three books in a week")."""
    ago = (match.groupdict().get("ago") or "").lower()
    count = -_number(match) if ago in ("ago", "back", "earlier") else _number(match)
    begin = max(0, match.start() - NEARBY)
    clause = max(
        (found.end() for found in _CLAUSE.finditer(match.string, begin, match.start())), default=begin
    )
    lasts = not ago and (_past(match) is not False or _COUNT.search(match.string, clause, match.start()))
    return Mention(match[0], _away(said, match["unit"].lower(), count), sure=not lasts)


def _vague(match: re.Match[str], said: date) -> Mention:
    """A few days ago."""
    unit, ends = match["unit"].lower(), (-10, -2)
    return Mention(match[0], (_away(said, unit, ends[0])[0], _away(said, unit, ends[1])[1]), sure=False)


def _near_day(match: re.Match[str], said: date) -> Mention:
    words = " ".join(match[0].lower().split())
    away = {"yesterday": -1, "last night": -1, "tomorrow": 1}.get(words.split("day ")[-1], 0)
    if words.startswith(("the day ", "day ")):
        away = -2 if "before" in words else 2
    return Mention(match[0], _day(said + timedelta(days=away)))


def _beside(match: re.Match[str], said: date) -> Mention:
    """Last week, this month, next year; the week before last."""
    which = match["which"].lower()
    away = {"before last": -2, "after next": 2}.get(which, _SIDES.get(which, 0))
    told = re.search(r"\b(?:the|my|our|his|her|their|your)\s\Z", match.string[: match.start()], re.I)
    sure = which != "past" and not (
        away in (-1, 1) and (told or match.string[match.end() :].startswith(" of "))
    )
    return Mention(match[0], _away(said, match["unit"].lower(), away), sure)


def _weekend(match: re.Match[str], said: date) -> Mention:
    which = match["which"].lower()
    monday = _week(said)[0] + timedelta(weeks=_SIDES.get(which, 0))
    return Mention(match[0], (monday + timedelta(days=5), monday + timedelta(days=6)))


def _weekday(match: re.Match[str], said: date) -> Mention | None:
    """Last Friday, on Monday: the nearest one, where the sentence tells on which side it lies."""
    which = (match["which"] or "").lower()
    gap = (_DAYS.index(match["weekday"].lower()) - said.weekday()) % 7
    before, after = said + timedelta(days=gap - 7), said + timedelta(days=gap or 7)
    past = {"last": True, "past": True, "next": False}.get(which, _past(match))
    if which == "this":
        past = None if past else False
    if past is None or which == "next":  # "next Friday": of this week or of the next
        start = before if past is None else after
        return Mention(match[0], (start, after + timedelta(days=7)), False, (_day(before), _day(after)))
    return Mention(match[0], _day(before if past else after))


def _named(match: re.Match[str], said: date) -> Mention | None:
    """A date with a month's name; without a year the nearest on the side that the sentence tells."""
    parts = match.groupdict()
    short = match["month"].lower()[:3]
    month = next(at for at, name in enumerate(_MONTHS, 1) if name.startswith(short))
    day = int(parts.get("day") or 0)

    def span(year: int) -> Span:
        return _day(date(year, month, day)) if day else _month(year, month)

    if parts.get("year"):
        return Mention(match[0], span(int(parts["year"])))
    which = (parts.get("which") or "").lower()
    past = {"last": True, "next": False}.get(which, _past(match))
    years = (said.year - 1, said.year, said.year + 1)
    nearest = min(map(span, years), key=lambda one: abs((one[0] - said).days))
    if past is None:
        return Mention(match[0], nearest, False, tuple(map(span, years)))
    if past:
        found = max(one for one in map(span, years) if one[0] <= said)
    else:
        found = min(one for one in map(span, years) if one[1] >= said)
    soon = day and abs((nearest[0] - said).days) < SOON  # "gave a talk on 29 March", said on the 15th
    sure = (found == nearest or not soon) and not (which and found[0] <= said <= found[1])
    return Mention(match[0], found, sure, tuple(map(span, years)))


def _plain(match: re.Match[str], said: date) -> Mention | None:
    """2023-05-08; in 2021."""
    parts = match.groupdict()
    span = _period("-".join(filter(None, (parts["year"], parts.get("m"), parts.get("d")))))
    return Mention(match[0], span) if span else None


def _season(match: re.Match[str], said: date) -> Mention:
    """The summer of 2022: which months that is depends on where one lives."""
    year = match.groupdict().get("year")
    first, last = (int(year), int(year)) if year else (said.year - 1, said.year + 1)
    return Mention(match[0], (date(first, 1, 1), date(last, 12, 31)), sure=False)


def _compiled() -> Iterator[tuple[re.Pattern[str], _Reader]]:
    which = r"(?P<which>last|past|this|next)"
    table: list[tuple[str, _Reader]] = [
        (r"\b(?P<year>(?:19|20)\d\d)-(?P<m>\d\d)(?:-(?P<d>\d\d))?\b", _plain),
        (rf"\b{_NTH} (?:of )?{_MONTH}(?:,? {_YEAR})?\b", _named),
        (rf"\b{_MONTH} {_NTH}\b(?!:)(?:,? {_YEAR}\b)?", _named),
        (rf"\b{_MONTH},? (?:of )?{_YEAR}\b", _named),
        (rf"\b(?:(?P<which>last|next)|in|during|since|until|by|early|late|mid)[ -]{_MONTH}\b", _named),
        (r"\b(?:spring|summer|autumn|fall|winter)(?: of)? " + _YEAR + r"\b", _season),
        (r"\b(?:last|this|next) (?:spring|summer|autumn|fall|winter)\b", _season),
        (rf"\b(?:in|since|during|year|early|late|mid|until|from|of)[ -]{_YEAR}(?![-\d])", _plain),
        (r"\b(?:the )?day (?:before yesterday|after tomorrow)\b", _near_day),
        (r"\b(?:yesterday|last night|tomorrow|today|tonight|this (?:morning|evening))\b", _near_day),
        (rf"\b(?:a few|several|some|a couple(?: of)?) {_UNIT} (?:ago|back)\b", _vague),
        (rf"\b{_N} {_UNIT} (?P<ago>ago|back|earlier|from now)\b", _counted),
        (rf"\bin {_N} {_UNIT}(?! of\b)\b", _counted),
        (r"\b(?:the )?(?P<unit>week|month|year) (?P<which>before last|after next)\b", _beside),
        (rf"\b{which} (?P<unit>week|month|year)\b", _beside),
        (rf"\b{which} weekend\b", _weekend),
        (rf"\b(?:{which} |on |since |by |until ){_WEEKDAY}\b(?! of\b)", _weekday),
    ]
    return ((re.compile(pattern, re.IGNORECASE), read) for pattern, read in table)


_PATTERNS = tuple(_compiled())
