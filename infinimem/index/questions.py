"""What a question tells beside its words: whose words it asks for, of what day, that it wants no question.

What each prior does: docs/SEARCH.md, Priors.

Dates are read from the text alone: "8 May 2023", "2023-05-08", "in May", "in 2022"; "last week" and "since
2021" name no period by themselves. English month names; ISO dates in any language. Names are those of the
entries' speakers; a question that names two of them prefers nobody. Words whose answers use another one
("Where does she live?" - "I moved to Lisbon.") never outrank a question's own.

Source: the best pipeline without vectors that was measured on LoCoMo had them, stronger.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from infinimem.settings import SearchSettings
from infinimem.terms import MONTHS, STOP_WORDS, fold, tokens

if TYPE_CHECKING:
    from infinimem.index.pieces import Row

GAIN = 0.3
"""What a prior adds to a score or takes from it, as a share."""
POINTING = frozenset(Path(__file__).with_name("pointing.txt").read_text(encoding="utf-8").split())
"""Words that stand for what was said before."""


def factors(question: str, rows: Sequence[Row], settings: SearchSettings) -> list[float]:
    """Return what the score of each candidate is multiplied by, 1 - GAIN or more."""
    dates, rest = read_dates(question)
    asked = asked_of(rest, {row.speaker for row in rows if row.speaker}) if settings.people else Asked()
    days = {row.day for row in rows} if settings.dates and dates else ()
    near = {day: max(_near(day, named) for named in dates) for day in days}
    found = []
    for row in rows:
        factor = 1.0
        if asked.speakers:
            factor *= 1 + GAIN * (row.speaker in asked.speakers)
        if asked.oneself:
            factor *= 1 + GAIN * row.personal
        if near:
            factor *= 1 + GAIN * near[row.day]
        if settings.statements:
            factor *= 1 - GAIN * row.asking / 255
        found.append(factor)
    return found


REACH = 8
"""Days from a named one at which an entry is no longer near: people tell of a day within the week."""

_MONTHS = {name: at for at, month in enumerate(map(fold, MONTHS), 1) for name in (month[:3], month)}
_MONTHS["sept"] = _MONTHS["sep"]
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


class NamedDate(NamedTuple):
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
    """Return the dates that a text names, and the text without them, folded."""
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


def _near(day: int, named: NamedDate) -> float:
    """Return 1 for a day, as yyyymmdd, in a named period, less for each day beside it, 0 from `REACH` on.

    A day has zeros for what it leaves out, and is 0 for none; a date without a year is one of any year.
    """
    time, year = NamedDate(day // 10000, day // 100 % 100, day % 100), day // 10000
    span = time.period(year) if year else None
    near = 0.0
    for other in (named.year,) if named.year else (year - 1, year, year + 1):
        if span and other and (period := named.period(other)) is not None:
            gap = max(period[0] - span[1], span[0] - period[1], 0)
            near = max(near, 1 - gap / REACH)
    return near


_ONESELF = frozenset({"i", "me", "my", "mine", "myself", "we", "us", "our", "ours"})
_ADDRESSED = frozenset({"you", "your", "yours", "yourself", "yourselves"})
_TO_ME = re.compile(r"\b(?:tell|show|give|remind|help|let|ask) me\b")
_TITLES = frozenset({"dr", "mr", "mrs", "ms", "miss", "prof", "sir"})
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_SPACELESS = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u3041-\u30ff\u3400-\u9fff\uac00-\ud7af]")


class Asked(NamedTuple):
    """Whose words a question asks for.

    `speakers` are the names of the one person (several where people share the name that was used); `oneself`
    is whether it speaks of the asker and names nobody, never with `speakers`.
    """

    speakers: frozenset[str] = frozenset()
    oneself: bool = False


def asked_of(question: str, speakers: Collection[str]) -> Asked:
    """Return whose words a question asks for, of those who may have said the answer.

    A name counts as a whole word, in any case, possessives too.
    """
    words = [_bare(word) for word in _WORD.findall(fold(question))]
    named = _named(fold(question), words, speakers)
    said = set(_WORD.findall(_TO_ME.sub(" ", " ".join(words))))
    oneself = bool(said & _ONESELF) and not said & _ADDRESSED
    if len(named) == 1 and not oneself:
        return Asked(speakers=named[0])
    return Asked(oneself=oneself and not named)


def nameless(question: str, speakers: Collection[str]) -> str:
    """Return a question without the names of speakers; all of it where nothing else is said.

    A name is rarely in what its bearer says, so that a vector of it leads away from that.
    """
    names: set[str] = set()
    rest = question
    for words, spaceless in map(_name, speakers):
        names.update(set(words) - _TITLES - STOP_WORDS)
        if spaceless:
            rest = rest.replace(spaceless, " ")
    rest = _WORD.sub(lambda word: " " if _bare(fold(word[0])) in names else word[0], rest)
    return rest if _WORD.search(rest) else question


def _named(question: str, words: Sequence[str], speakers: Collection[str]) -> list[frozenset[str]]:
    whole: dict[tuple[str, ...], set[str]] = {}
    first: dict[tuple[str, ...], set[str]] = {}
    found: list[frozenset[str]] = []
    present = set(words)
    for speaker in sorted(speakers):
        name, spaceless = _name(speaker)
        if spaceless:
            found += [frozenset({speaker})] * (spaceless in question)
        elif name[:1] and name[0] in present:
            whole.setdefault(name, set()).add(speaker)
            if len(name) > 1 and name[0] not in _TITLES | STOP_WORDS:
                first.setdefault(name[:1], set()).add(speaker)
    used: set[int] = set()
    for names in (whole, first):
        for name in sorted(names, key=lambda name: (-len(name), name)):
            if len(name) == 1 and name[0] in STOP_WORDS:
                continue  # "Will she come?" names nobody called Will
            spans = (range(at, at + len(name)) for at in range(len(words)))
            places = {span for span in spans if tuple(words[span.start : span.stop]) == tuple(name)}
            free = [place for place in places if not used.intersection(place)]
            if free:
                used.update(*free)
                found.append(frozenset(names[name]))
    return list(dict.fromkeys(found))


@lru_cache(maxsize=1 << 14)
def _name(speaker: str) -> tuple[tuple[str, ...], str]:
    folded = fold(speaker)
    return ((), folded) if _SPACELESS.search(speaker) else (tuple(_WORD.findall(folded)), "")


def _bare(word: str) -> str:
    return re.sub(r"'(?:s|m|ve|d|ll|re)?$", "", word)


@cache
def kin() -> Mapping[str, frozenset[str]]:
    """Each term of everyday questions with those that answers use in its place, or that belong with it."""
    rows = Path(__file__).with_name("kin.txt").read_text(encoding="utf-8").split("\n")
    groups = [frozenset(term for word in row.split() for term in tokens(word)) for row in rows if row]
    return {
        term: frozenset().union(*(g for g in groups if term in g)) - {term}
        for group in groups
        for term in group
    }


def related(terms: Iterable[str]) -> list[str]:
    """The kin of some terms, sorted; empty where they have none."""
    return sorted({other for term in terms for other in kin().get(term, ())})
