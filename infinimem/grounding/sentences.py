"""Where sentences end, who says them, and words that tell nothing about a topic (common_words.txt)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import NamedTuple

from infinimem.terms import MONTHS, STOP_WORDS, tokens

_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+(?=[\"'“‘(\[]?[^\W_a-z])|(?<=[。！？])")
_ABBREVIATION = re.compile(
    r"(?:\b(?:mrs?|ms|messrs|dr|prof|st|sr|jr|vs|etc|approx|cf|inc|ltd|co|mt|ft|gen|col|capt|lt|sgt|rev|hon|gov|sen|ave"
    r"|blvd|rd|dept|univ|est|al|bzw|ca|usw|str|tel|hr|fr)|\b[A-Za-z])\.\Z"
    r"|\b(?:im|vom|zum|zur|beim|der|das|den|dem|des) \d{1,3}\.\Z|[a-z]{3,9}\.? \d{1,2}, \d{1,2}\.\Z",
    re.IGNORECASE,
)
"""What ends in a full stop that ends no sentence: abbreviations, initials, German ordinals, "April 1, 2."."""
_BEFORE_NUMBER = re.compile(
    r"\b(?:no|nos|nr|vol|fig|ch|sec|pp|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|mon|tues?|wed|thu(?:rs?)?|fri|sat"
    r"|sun)\.\Z|\b\d{1,3}\.\Z",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    rf"[\"'“‘(\[]?(?:\d|(?:{'|'.join(MONTHS)}|Januar|Februar|März|Mai|Juni|Juli|Oktober|Dezember)\b)"
)
_NUMERAL = re.compile(r"\s*\(?\d{1,6}\.")
_ORDINAL = re.compile(r"\A\s*\(?\d{1,6}[.):]\s+")
_SPEAKER = re.compile(r"\A([^\W\d_][\w .'’-]{0,39}): ")


class Said(NamedTuple):
    """A text and who said it ("" if that is not known)."""

    speaker: str
    text: str

    @property
    def line(self) -> str:
        """The text after its speaker's name."""
        return f"{self.speaker}: {self.text}" if self.speaker else self.text


def sentences(text: str) -> Iterator[str]:
    """A text cut where sentences end, as far as full stops tell."""
    return filter(None, (text[start:end].strip() for start, end in spans(text)))


def spans(text: str) -> Iterator[tuple[int, int]]:
    """Where the sentences of a text begin and end."""
    start = 0
    for match in _SENTENCE_END.finditer(text):
        at, end = match.start(), match.end()
        if _ABBREVIATION.search(text[max(start, at - 24) : at]) or _NUMERAL.fullmatch(text, start, at):
            continue
        if _NUMBER.match(text, end) and _BEFORE_NUMBER.search(text[max(start, at - 8) : at]):
            continue
        yield start, end
        start = end
    yield start, len(text)


def strip_ordinal(text: str) -> str:
    """A list item without its number: "12. The capital …"."""
    return _ORDINAL.sub("", text, count=1)


def split_speaker(line: str) -> tuple[str, str]:
    """ "Caroline: I moved." as its two parts; ("", line) where no one is named."""
    found = _SPEAKER.match(line)
    return (found[1], line[found.end() :]) if found else ("", line)


@cache
def listed(name: str) -> frozenset[str]:
    """The items of a list in english.txt."""
    text = (resources.files("infinimem.grounding") / "english.txt").read_text(encoding="utf-8")
    found = re.search(rf"^# {name}(?::.*)?\n((?:[^#\n].*\n)+)", text, re.MULTILINE)
    return frozenset(filter(None, re.split(r",\s+|\n", found[1] if found else "")))


@cache
def any_of(name: str) -> str:
    """A pattern of any item of a list, with straight or curly apostrophes."""
    items = sorted(listed(name), key=lambda item: (-len(item), item))
    return f"(?:{'|'.join(items)})".replace("'", "['’]")


@cache
def common_terms() -> frozenset[str]:
    """Terms that tell nothing about a topic: function words and common words, stemmed."""
    text = (resources.files("infinimem.grounding") / "common_words.txt").read_text(encoding="utf-8")
    words = [*STOP_WORDS, *text.split()]
    return frozenset(term for word in words for term in tokens(word))
