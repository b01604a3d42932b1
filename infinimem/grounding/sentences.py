"""English, as far as rules know it: lists of words (english.txt) and patterns, where sentences end, who says
them, what a question asks for (a fact that holds now, where no pattern of another list fits), when something
happened; what a sentence claims, whether its origin bears it out, and which sentences say the same. Pure.

A `when` is a day, a month, a year (`2023-07-03`, `2023-07`, `2023`) or an interval of two of these. Words are
read against the day on which they were said: "last month", said on 2023-08-27, is `2023-07`. What more than
one may be meant by ("next Friday") is recognised, but settles nothing. The libraries that read dates give a
point in time for each of these, and lose whether a day, a month or a year was meant.

Negations are compared by the clauses of English sentences and the words that they share: no grammar is known
here, no synonyms, and nothing of who is spoken of; where it cannot be told, nothing is lost.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import cache, lru_cache
from importlib import resources
from typing import Literal, NamedTuple

from infinimem.markdown.characters import normalised
from infinimem.model import SOURCES, Entry, Source
from infinimem.terms import DAYS, MONTHS, STOP_WORDS, fold, tokens

_PARTS = (resources.files("infinimem.grounding") / "english.txt").read_text(encoding="utf-8").split("\n# ")
_LISTS = {
    head.partition(":")[0]: frozenset(filter(None, re.split(r",\s+|\n", items)))
    for head, _, items in (part.partition("\n") for part in _PARTS[1:])
}


def listed(name: str) -> frozenset[str]:
    """Return the items of a list in english.txt."""
    return _LISTS[name]


@cache
def any_of(name: str) -> str:
    """A pattern of any item of a list, with straight or curly apostrophes."""
    items = sorted(listed(name), key=lambda item: (-len(item), item))
    return f"(?:{'|'.join(items)})".replace("'", "['’]")


def patterns(package: str, file: str) -> dict[str, re.Pattern[str]]:
    """Return a file's patterns by name; in one %NAME% is any item of that list, or another pattern."""
    text = (resources.files(package) / file).read_text(encoding="utf-8").partition("\n\n")[2]
    rows = re.findall(r"^([a-z ]+?)  +(.+(?:\n .+)*)", text, re.MULTILINE)
    known = {name: re.sub(r"\n\s+", "", pattern) for name, pattern in rows}

    def whole(pattern: str) -> str:
        def named(match: re.Match[str]) -> str:
            return whole(any_of(match[1]) if match[1] in _LISTS else known[match[1]])

        return re.sub("%([a-z ]+)%", named, pattern)

    return {name: re.compile(whole(pattern), re.IGNORECASE) for name, pattern in known.items()}


ENGLISH = patterns("infinimem.grounding", "patterns.txt")


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
        before, numeral = text[max(start, at - 24) : at], _NUMERAL.fullmatch(text, start, at)
        if numeral or ENGLISH["abbreviation"].search(before):
            continue
        if ENGLISH["number"].match(text, end) and ENGLISH["before number"].search(before[-8:]):
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
        text = ENGLISH["rate"].sub(" , ", text)
        times = mentions(text, said) if said else []
        for first, last in (meant for mention in times for meant in mention.spans):
            slack = timedelta(days=1 + (last - first).days // 7)
            if span[0] <= last + slack and first <= span[1] + slack:
                return True
        if not times and ENGLISH["temporal"].search(text):
            return True
    return False


def tells_of_past(text: str) -> bool:
    """Whether a verb of a text does, or the text names a day, a month or a span of time."""
    return "past" in _tenses(text) or ENGLISH["temporal"].search(text) is not None


def mentions(text: str, said: date) -> list[Mention]:
    """The times that a text names, read against the day on which it was said."""
    times: list[Mention] = []
    for sentence in sentences(text):
        for name, read in _READERS.items():

            def take(match: re.Match[str], read: _Reader = read) -> str:
                try:
                    times.append(Mention(match[0], tuple(read(match, said))))
                except (ValueError, OverflowError):  # 30 February, or before the year 1
                    return match[0]
                return " , "

            sentence = ENGLISH[name].sub(take, sentence)
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
_NUMBERS = {"a": 1, "an": 1}
_NUMBERS |= dict(zip("one two three four five six seven eight nine ten".split(), range(1, 11), strict=True))
_SEASONS = "spring summer autumn fall winter".split()
_DAYS, _MONTHS = [day.lower() for day in DAYS], [name.lower() for name in MONTHS]


def _tenses(text: str) -> list[str | None]:
    return [verb.lastgroup for verb in ENGLISH["tenses"].finditer(text)]


def _past(match: re.Match[str]) -> bool | None:
    """Tell whether the verb that governs a date tells of the past, or of what is to come; None where none
    does. It stands before the date in the same clause; else, if the date comes first, right behind it."""
    before = match.string[max(0, match.start() - NEARBY) : match.start()]
    after = match.string[match.end() : match.end() + NEARBY]
    if ENGLISH["another time"].search(before) or ENGLISH["another time"].search(after):
        return None
    left = ENGLISH["clause"].split(before)[-1]
    tenses = _tenses(left)
    if not tenses and len(left.split()) < 4:
        right = ENGLISH["clause"].split(ENGLISH["subject"].sub("", after, count=1))[0]
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


_READERS: dict[str, _Reader] = {
    "iso date": lambda match, said: [_period(match["date"])],
    "day month": _named,
    "month day": _named,
    "month year": _named,
    "in month": _named,
    "in year": lambda match, said: [_period(match["date"])],
    "near": lambda match, said: [_away(said, "day", _NEAR_DAYS[match["near"].lower()])],
    "ago": _counted,
    "in some": _counted,
    "period": _beside,
    "weekday": _weekday,
}
"""Patterns of dates, in the order in which they are looked for."""


NEAR_DUPLICATE = 0.85
"""Share of words that two texts must have in common (Jaccard) to be one fact said twice."""
MOST = 100
"""Clauses of a retelling that are looked at: each is compared with all that was said."""

_WORD = re.compile(r"\w+(?:['’]\w+)?")
_NUMBER = re.compile(r"\d+(?:[.,:/]\d+)*")
_QUOTED = re.compile(r'"([^"\n]{2,200})"|“([^”\n]{2,200})”')


# ── what is claimed ──────────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=4096)  # a topic's lines are looked at each time that it is summed up
def claims(text: str) -> Mapping[str, frozenset[str]]:
    """What in a sentence can be wrong: its numbers, names, quotations and whether it negates."""
    opening = {match[1] for match in ENGLISH["opening"].finditer(text)}
    names = (word for word in _WORD.findall(text) if word[0].isupper() and word not in opening)
    return {
        "number": frozenset(_NUMBER.findall(fold(text))),
        "name": frozenset(fold(word).removesuffix("'s") for word in names) - listed("no names"),
        "quotation": frozenset(normalised(a or b) for a, b in _QUOTED.findall(text)),
        "negation": frozenset({"not"} if ENGLISH["outright"].search(fold(text)) else ()),
    }


@lru_cache(maxsize=4096)
def _words(text: str) -> frozenset[str]:
    words = _WORD.findall(fold(text))
    return frozenset(words) | {word.removesuffix("'s") for word in words}


def unsupported(text: str, origins: Iterable[str]) -> list[str]:
    """Return what a model's sentence claims that its origins (with speakers' names) do not hold: 'number
    14'."""
    origins = list(origins)
    missing = []
    for kind, items in claims(text).items():
        items = items.difference(*(claims(origin)[kind] for origin in origins)) if items else items
        if items and kind == "name":
            items = items.difference(*map(_words, origins))
        elif items and kind == "quotation":  # it may run over several origins
            whole = normalised("\n".join(origins))
            items = frozenset(item for item in items if item not in whole)
        missing += [f"{kind} {item}" for item in sorted(items)]
    return [*missing, "negation lost"] if _loses_negation(text, origins) else missing


def source_of(text: str, origins: Collection[Entry]) -> Source:
    """Return whose a line is: the least trusted of its origins', but a user's where an AI only confirms it:
    it adds no word, and what the user states, not asks, supports the line."""
    users = [one for one in origins if one.source in ("user", "human")]
    said = [": ".join(filter(None, (one.fields.get("speaker"), one.text))) for one in users]
    stated = [part for one in said for part in sentences(one) if not re.search("[?？؟]", part)]
    words, known = set(_content(text)), set(tokens("\n".join(stated)))
    added = words.intersection(tokens("\n".join(one.text for one in origins if one not in users))) - known
    least: Source = min((one.source for one in origins), key=SOURCES.index, default="tool")
    confirmed = not (words.isdisjoint(known) or added or unsupported(text, stated))
    return "user" if least == "AI" and confirmed else least


# ── what is denied ───────────────────────────────────────────────────────────────────────────────


class _Clause(NamedTuple):
    text: str
    words: frozenset[str]
    """Terms of its content words."""
    denied: str
    """The one that its negation is about; "" where it denies nothing."""


def _loses_negation(text: str, origins: Sequence[str]) -> bool:
    """Tell whether a retelling says plainly what its origin denies.

    It does where all clauses of the origin that share most words with one of its clauses negate some of these
    words, and nothing in the retelling that draws on them negates.
    """
    parts = [split_speaker(origin) for origin in origins]
    said = {clause.text: clause for _, part in parts for clause in _clauses(part)}
    denials = {clause.denied for clause in said.values()}
    names = frozenset(term for name, _ in parts for term in _content(name))
    ours = [(clause.text, clause.words - names) for clause in _clauses(text)[:MOST]]
    denied: set[_Clause] = set()
    for clause, words in ours:
        # A clause that the origin has too is nearest to itself, and so not denied.
        if clause not in said and not denials.isdisjoint(words):
            nearest = _nearest(words, said.values())
            denied.update(nearest if all(one.denied in words for one in nearest) else ())
    for clause, words in ours if denied else ():
        nearest = _nearest(words, said.values())
        bears = _bearing(clause)
        if any(ENGLISH["negation"].search(clause) or bears - _bearing(one.text) for one in nearest):
            denied.difference_update(nearest)
    return bool(denied)


def _nearest(words: frozenset[str], clauses: Collection[_Clause]) -> list[_Clause]:
    """The clauses that share most of these words, if any does."""
    shared = [len(words & clause.words) for clause in clauses]
    most = max(shared, default=0)
    return [clause for clause, count in zip(clauses, shared, strict=True) if most and count == most]


@lru_cache(maxsize=4096)
def _clauses(text: str) -> Sequence[_Clause]:
    return [
        _Clause(part, words, _denied(part, sentence.endswith("?")))
        for sentence in ENGLISH["sentence end"].split(fold(text))
        for part in ENGLISH["clause end"].split(" ".join(sentence.split()))
        if (words := frozenset(_content(part)))
    ]


def _denied(part: str, asked: bool) -> str:
    """The content word after a clause's negation; what comes later may be the circumstances."""
    part = ENGLISH["only sounds"].sub(" ", part) if ENGLISH["negation"].search(part) else ""
    negations = [*ENGLISH["negation"].finditer(part)]
    if len(negations) % 2 == 0 or ENGLISH["terms"].search(part) or (asked and ENGLISH["asked"].match(part)):
        return ""
    return (_content(part[negations[0].end() :]) or [""])[0]


def _governed(text: str) -> list[str]:
    """The next content word of each negation, sorted: texts that differ in it do not say the same."""
    return sorted((_content(part) or [""])[0] for part in ENGLISH["negation"].split(fold(text))[1:])


def _content(text: str) -> list[str]:
    """The terms of the content words, in their order; those that say little only if there is nothing else."""
    terms = [term for term in tokens(ENGLISH["negation"].sub(" ", text)) if term not in _terms_of("empty")]
    return [term for term in terms if term not in _terms_of("little")] or terms


def _bearing(text: str) -> frozenset[str]:
    return frozenset(tokens(" ".join(ENGLISH["bears"].findall(text))))


@cache
def _terms_of(name: str) -> frozenset[str]:
    return frozenset(term for word in listed(name) for term in tokens(word))


# ── what says the same ───────────────────────────────────────────────────────────────────────────


def is_duplicate(one: str, other: str) -> bool:
    """Whether two lines say the same: equal, or nearly so with equal numbers, names and negations."""
    if normalised(one) == normalised(other):
        return True
    a, b = set(normalised(one).split()), set(normalised(other).split())
    if len(a & b) < NEAR_DUPLICATE * len(a | b):
        return False
    return claims(one) == claims(other) and _governed(one) == _governed(other)


def lasts(text: str) -> bool:
    """Tell whether a text states, in English, what is so on one day as on another: "My bike is red"."""
    passes = ENGLISH["passes"].search(text) or tells_of_past(text)
    return not passes and ENGLISH["lasts"].search(text) is not None


def is_repetition(one: Entry, other: Entry) -> bool:
    """Tell whether two lines say the same, of the same day unless it lasts; none has no day."""
    same_day = bool(one.time and other.time) and str(one.time)[:10] == str(other.time)[:10]
    return is_duplicate(one.text, other.text) and (same_day or (lasts(one.text) and lasts(other.text)))


def find_duplicates(entries: Iterable[Entry]) -> list[tuple[int, int]]:
    """Return for every line that repeats another its seq, and that of the most trusted and newest of them."""
    rivals: dict[tuple[object, ...], list[list[Entry]]] = {}
    for entry in entries:
        terms = tokens(entry.text)
        day = "" if lasts(entry.text) else entry.time[:10] if entry.time else entry.seq
        telling = tuple(term for term in terms if term not in common_terms()) or tuple(terms) or entry.text
        # equal for lines that may repeat each other; "A beat B" and "B beat A" do not
        groups = rivals.setdefault((entry.fields.get("speaker"), day, telling), [])
        group = next((group for group in groups if is_repetition(entry, group[0])), None)
        if group is None:
            groups.append([entry])
        else:
            group.append(entry)
    pairs = []
    for group in (group for groups in rivals.values() for group in groups):
        *rest, kept = sorted(group, key=lambda entry: (SOURCES.index(entry.source), entry.seq))
        pairs += [(entry.seq, kept.seq) for entry in rest]
    return pairs
