"""English, as far as rules know it: lists of words (english.txt), where sentences end, who says them, what a
question asks for (a fact that holds now, where no pattern of another list fits), and when something happened.

A `when` is a day, a month, a year (`2023-07-03`, `2023-07`, `2023`) or an interval of two of these. Words are
read against the day on which they were said: "last month", said on 2023-08-27, is `2023-07`. What more than
one may be meant by ("next Friday") is recognised, but settles nothing. The libraries that read dates give a
point in time for each of these, and lose whether a day, a month or a year was meant.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterable, Iterator
from datetime import date, timedelta
from functools import cache
from importlib import resources
from typing import Literal, NamedTuple

from infinimem.terms import DAYS, MONTHS, STOP_WORDS, tokens


@cache
def listed(name: str) -> frozenset[str]:
    """Return the items of a list in english.txt."""
    text = (resources.files("infinimem.grounding") / "english.txt").read_text(encoding="utf-8")
    parts = (part.partition("\n") for part in text.split("\n# ")[1:])
    items = next(items for head, _, items in parts if head.partition(":")[0] == name)
    return frozenset(filter(None, re.split(r",\s+|\n", items)))


@cache
def any_of(name: str) -> str:
    """A pattern of any item of a list, with straight or curly apostrophes."""
    items = sorted(listed(name), key=lambda item: (-len(item), item))
    return f"(?:{'|'.join(items)})".replace("'", "['’]")


@cache
def common_terms() -> frozenset[str]:
    """Terms that tell nothing about a topic: function words and common words, stemmed."""
    return frozenset(term for word in STOP_WORDS | listed("common") for term in tokens(word))


def asks(what: Literal["advice", "all", "ever", "past", "when", "my words"], question: str) -> bool:
    """Tell whether a question asks for "advice"; for "all", the order of things or how something went; for an
    experience ("ever"); for the "past"; for a time ("when"); or for what the user said and no reply ("my
    words")."""
    return re.search(any_of(f"asks {what}"), question, re.IGNORECASE) is not None


_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+(?=[\"'“‘(\[]?[^\W_a-z])|(?<=[。！？])")
_ABBREVIATION = re.compile(
    rf"\b(?:{any_of('abbreviations')}|[A-Za-z])\.\Z"
    r"|\b(?:im|vom|zum|zur|beim|der|das|den|dem|des) \d{1,3}\.\Z|[a-z]{3,9}\.? \d{1,2}, \d{1,2}\.\Z",
    re.IGNORECASE,
)
"""What ends in a full stop that ends no sentence: abbreviations, initials, German ordinals, "April 1, 2."."""
_BEFORE_NUMBER = re.compile(rf"\b{any_of('before numbers')}\.\Z", re.IGNORECASE)
_NUMBER = re.compile(
    rf"[\"'“‘(\[]?(?:\d|(?:{'|'.join(MONTHS)}|Januar|Februar|März|Mai|Juni|Juli|Oktober|Dezember)\b)"
)
_CODE = re.compile(r"(```|~~~).*?(?:\1|\Z)", re.DOTALL)
_NUMERAL = re.compile(r"\s*\(?\d{1,6}\.")
_SPEAKER = re.compile(r"\A([^\W\d_][\w .'’-]{0,39}): ")


def without_code(text: str, mark: str, least: int = 0) -> str:
    """Return a text with a mark for each block of code from so many characters on; as it is, if it is nothing
    else."""
    said = _CODE.sub(lambda block: mark if len(block[0]) > least else block[0], text)
    return said if re.search(r"\w", said) else text


def sentences(text: str) -> Iterator[str]:
    """A text cut where sentences end, as far as full stops tell."""
    start = 0
    for match in _SENTENCE_END.finditer(text):
        at, end = match.start(), match.end()
        if _ABBREVIATION.search(text[max(start, at - 24) : at]) or _NUMERAL.fullmatch(text, start, at):
            continue
        if _NUMBER.match(text, end) and _BEFORE_NUMBER.search(text[max(start, at - 8) : at]):
            continue
        if sentence := text[start:end].strip():
            yield sentence
        start = end
    if sentence := text[start:].strip():
        yield sentence


def split_speaker(line: str) -> tuple[str, str]:
    """ "Caroline: I moved." as its two parts; ("", line) where no one is named."""
    match = _SPEAKER.match(line)
    return (match[1], line[match.end() :]) if match else ("", line)


# ── when ────────────────────────────────────────────────────────────────────────────────────────

Span = tuple[date, date]
"""First and last day."""


class Mention(NamedTuple):
    """Words that name a time, and the spans that they may mean: one where it is sure."""

    words: str
    spans: tuple[Span, ...]


def span_of(when: str) -> Span | None:
    """The days that a `when` covers; None where it has not the form of one."""
    try:
        ends = [_period(part) for part in when.split("/")]
    except ValueError:
        return None
    first, last = ends[0], ends[-1]
    return (first[0], last[1]) if len(ends) < 3 and first[0] <= last[0] and first[1] <= last[1] else None


def when_of(span: Span) -> str:
    """The shortest `when` that covers these days."""
    first, last = span
    if first == last:
        return first.isoformat()
    if span == _around(first, "month"):
        return f"{first:%Y-%m}"
    return f"{first:%Y}" if span == _around(first, "year") else f"{first}/{last}"


def day_of(time: str | None) -> date | None:
    """The day of an ISO 8601 time; None where there is none."""
    try:
        return date.fromisoformat((time or "")[:10])
    except ValueError:
        return None


def settled(text: str, said: date | None) -> str | None:
    """Return the `when` that the words of a text settle; None if it is the day itself, or not sure."""
    times = {mention.spans for mention in mentions(text, said)} if said else set()
    spans = times.pop() if len(times) == 1 else ()
    return when_of(spans[0]) if len(spans) == 1 and spans[0] != (said, said) else None


def is_outdated(when: str, text: str, said: date | None) -> bool:
    """Whether an older version of these rules settled a `when` that the words do not."""
    times = mentions(text, said) if said and settled(text, said) != when else []
    return len({one.spans for one in times}) == 1 and when in map(when_of, times[0].spans)


def fits(when: str, told: Iterable[tuple[str, date | None]]) -> bool:
    """Tell whether words can mean a `when`, given the texts that it was drawn from, each with the day on
    which it was said.

    It must share a day with a time that they name, give or take a seventh of its length and a day: people
    round. Where words tell of time in a way that is not known here ("in my childhood"), any may be meant.
    """
    span = span_of(when)
    if span is None:
        return False
    for text, said in told:
        text = _RATE.sub(" , ", text)
        times = mentions(text, said) if said else []
        for first, last in (meant for mention in times for meant in mention.spans):
            slack = timedelta(days=1 + (last - first).days // 7)
            if span[0] <= last + slack and first <= span[1] + slack:
                return True
        if not times and _TEMPORAL.search(text):
            return True
    return False


def tells_of_past(text: str) -> bool:
    """Whether a verb of a text does, or the text names a day, a month or a span of time."""
    return "past" in _tenses(text) or _TEMPORAL.search(text) is not None


def mentions(text: str, said: date) -> list[Mention]:
    """The times that a text names, read against the day on which it was said."""
    times: list[Mention] = []
    for sentence in sentences(text):
        for pattern, read in _PATTERNS:

            def take(match: re.Match[str], read: _Reader = read) -> str:
                try:
                    times.append(Mention(match[0], tuple(read(match, said))))
                except (ValueError, OverflowError):  # 30 February, or before the year 1
                    return match[0]
                return " , "

            sentence = pattern.sub(take, sentence)
    return times


# ── spans ───────────────────────────────────────────────────────────────────────────────────────


def _period(text: str) -> Span:
    if not re.fullmatch(r"\d{4}(?:-\d\d){0,2}", text, re.ASCII):
        raise ValueError(text)
    return _around(date.fromisoformat(f"{text}-01-01"[:10]), {4: "year", 7: "month", 10: "day"}[len(text)])


def _around(day: date, unit: str) -> Span:
    if unit == "day":
        return day, day
    if unit == "month":
        return day.replace(day=1), day.replace(day=monthrange(day.year, day.month)[1])
    if unit == "year":
        return date(day.year, 1, 1), date(day.year, 12, 31)
    sunday = day + timedelta(days=6 - day.weekday())
    return sunday - timedelta(days=6 if unit == "week" else 1), sunday


def _away(said: date, unit: str, count: int) -> Span:
    if unit in ("month", "year"):
        year, month = divmod(said.year * 12 + said.month - 1 + count * (12 if unit == "year" else 1), 12)
        return _around(date(year, month + 1, 1), unit)
    return _around(said + timedelta(days=count * (1 if unit == "day" else 7)), unit)


# ── words ───────────────────────────────────────────────────────────────────────────────────────

SOON = 92
"""Days within which a day on the other side than that of the sentence's tense is as likely meant."""
NEARBY = 300
"""Characters around a date in which its verb is looked for."""
_Reader = Callable[[re.Match[str], date], Iterable[Span]]

_SIDES = {"last": -1, "past": -1, "this": 0, "next": 1}
_NEAR_DAYS = {"day before yesterday": -2, "day after tomorrow": 2, "last night": -1, "yesterday": -1}
_NEAR_DAYS |= {"tomorrow": 1, "today": 0, "tonight": 0, "this morning": 0, "this evening": 0}
_NUMBERS = {
    word: count for count, word in enumerate("one two three four five six seven eight nine ten".split(), 1)
}
_NUMBERS |= {"a": 1, "an": 1}
_SEASONS = "spring summer autumn fall winter".split()
_DAYS, _MONTHS = [day.lower() for day in DAYS], [name.lower() for name in MONTHS]
_TENSES = re.compile(
    "|".join(f"(?P<{name}>{any_of(name)})" for name in ("future", "open", "past", "now")), re.I
)
"""Verbs, and words (`open`) after which a date is mostly not that of the verb before: the concert's for which
tickets were bought, the move's on which was agreed."""
_CLAUSE = re.compile(any_of("clause ends"), re.I)
_OTHER_TIMES = re.compile(any_of("other times"), re.I)
_SUBJECT = re.compile(r"[,\s]*(?:(?:I|we|he|she|they|you|it)\b)?", re.I)
_TEMPORAL = re.compile(
    rf"\b(?:{any_of('times')}|{'|'.join(_DAYS)}|{'|'.join(_MONTHS)}|(?:19|20)\d\d)\b", re.I
)


def _tenses(text: str) -> list[str | None]:
    return [verb.lastgroup for verb in _TENSES.finditer(text)]


def _past(match: re.Match[str]) -> bool | None:
    """Tell whether the verb that governs a date tells of the past, or of what is to come; None where none
    does. It stands before the date in the same clause; else, if the date comes first, right behind it."""
    before = match.string[max(0, match.start() - NEARBY) : match.start()]
    after = match.string[match.end() : match.end() + NEARBY]
    if _OTHER_TIMES.search(before) or _OTHER_TIMES.search(after):
        return None
    left = _CLAUSE.split(before)[-1]
    tenses = _tenses(left)
    if not tenses and len(left.split()) < 4:
        right = _CLAUSE.split(_SUBJECT.sub("", after, count=1))[0]
        tenses = _tenses(" ".join(right.split()[:4]))
    if "open" in tenses or not tenses:
        return None
    if tenses[0] == "future":  # "will be opened"
        return False
    return True if set(tenses) == {"past"} else None


def _counted(match: re.Match[str], said: date) -> Iterable[Span]:
    """Two weeks ago. "In two weeks" may be how long something took, and "a few" are any from two to ten."""
    word, side = (match["n"] or "").lower(), match.groupdict().get("side", "in").lower()
    counts = [_NUMBERS.get(word) or int(word)] if word else range(2, 11)
    signs = {"from now": [1], "in": [1, -1]}.get(side, [-1])
    return [_away(said, match["unit"].lower(), sign * count) for count in counts for sign in signs]


def _beside(match: re.Match[str], said: date) -> Iterable[Span]:
    """Last week, this month, next year. "My last year of school" and "the past week" are not sure."""
    which, unit = match["which"].lower(), match["unit"].lower()
    if unit in _SEASONS:  # which months that is depends on where one lives
        return [_away(said, "year", away) for away in (-1, 0, 1)]
    vague = which == "past" or (which != "this" and (match["whose"] or match["of"]))
    return [
        _away(said, unit, away) for away in ((-1, 0) if vague and unit != "weekend" else (_SIDES[which],))
    ]


def _weekday(match: re.Match[str], said: date) -> Iterable[Span]:
    """Last Friday, on Monday: the nearest one, where the sentence tells on which side it lies."""
    which = (match["which"] or "").lower()
    gap = (_DAYS.index(match["weekday"].lower()) - said.weekday()) % 7
    before, after, later = (_away(said, "day", days) for days in (gap - 7, gap or 7, (gap or 7) + 7))
    past = which in ("last", "past") or _past(match)
    if which == "this":
        past = None if past else False
    if past is None or which == "next":  # "next Friday": of this week or of the next
        return before, after, later
    return [before if past else after]


def _named(match: re.Match[str], said: date) -> Iterable[Span]:
    """A date with a month's name; without a year the nearest on the side that the sentence tells."""
    parts = match.groupdict()
    month = next(at for at, name in enumerate(_MONTHS, 1) if name.startswith(match["month"].lower()[:3]))
    day, unit = (int(parts["day"]), "day") if parts.get("day") else (1, "month")
    if parts.get("year"):
        return [_around(date(int(parts["year"]), month, day), unit)]
    spans = [_around(date(said.year + away, month, day), unit) for away in (-1, 0, 1)]
    which = (parts.get("which") or "").lower()
    past = {"last": True, "next": False}.get(which, _past(match))
    if past is None:
        return spans
    meant = (
        max(one for one in spans if one[0] <= said) if past else min(one for one in spans if one[1] >= said)
    )
    soon = unit == "day" and any(abs((one[0] - said).days) < SOON for one in spans if one != meant)
    # "gave a talk on 29 March", said on the 15th; "last May", said in May
    return spans if soon or (which and meant[0] <= said <= meant[1]) else [meant]


_N = rf"(?:a few|several|some|a couple(?: of)?|(?P<n>\d{{1,3}}|{'|'.join(_NUMBERS)}))"
_PERIOD = rf"(?P<unit>week|weekend|month|year|{'|'.join(_SEASONS)})"
_UNIT = r"(?P<unit>day|week|weekend|month|year)s?"
_MONTH = rf"(?P<month>{'|'.join(_MONTHS)}|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?)"
_NTH, _YEAR = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?", r"(?P<year>(?:19|20)\d\d)"
_WEEKDAY = rf"(?P<weekday>{'|'.join(_DAYS)})"
_WHICH = r"(?P<which>last|past|this|next)"
_TABLE: tuple[tuple[str, _Reader], ...] = (
    (r"\b(?P<date>(?:19|20)\d\d-\d\d(?:-\d\d)?)\b", lambda match, said: [_period(match["date"])]),
    (rf"\b{_NTH} (?:of )?{_MONTH}(?:,? {_YEAR})?\b", _named),
    (rf"\b{_MONTH} {_NTH}\b(?!:)(?:,? {_YEAR}\b)?", _named),
    (rf"\b{_MONTH},? (?:of )?{_YEAR}\b", _named),
    (rf"\b(?:(?P<which>last|next)|in|during|since|until|by|early|late|mid)[ -]{_MONTH}\b", _named),
    (
        r"\b(?:in|since|during|year|early|late|mid|until|from|to|of)[ -](?P<date>(?:19|20)\d\d)(?![-\d])",
        lambda match, said: [_period(match["date"])],
    ),
    (
        rf"\b(?P<near>{'|'.join(_NEAR_DAYS)})\b",
        lambda match, said: [_away(said, "day", _NEAR_DAYS[match["near"].lower()])],
    ),
    (rf"\b{_N} {_UNIT} (?P<side>ago|back|earlier|from now)\b", _counted),
    (rf"\bin {_N} {_UNIT}(?! of\b)\b", _counted),
    (rf"\b(?P<whose>(?:the|my|our|his|her|their|your) )?{_WHICH} {_PERIOD}\b(?P<of> of\b)?", _beside),
    (rf"\b(?:{_WHICH} |on |since |by |until ){_WEEKDAY}\b(?! (?:of|\w+(?:ing|noon|ght)s)\b)", _weekday),
)
_RATE = re.compile(rf"\b\d+ \w+ in an? {_UNIT}\b", re.IGNORECASE)
"""How often something happens, or how fast: no time of it."""
_PATTERNS = tuple((re.compile(pattern, re.IGNORECASE), read) for pattern, read in _TABLE)
