"""English, as far as rules know it: lists of words (english.txt), where sentences end, who says them, and
what a question asks for: a fact that holds now, where no pattern of another list fits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Literal

from infinimem.terms import MONTHS, STOP_WORDS, tokens


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


def asks(what: Literal["all", "past", "when", "my words"], question: str) -> bool:
    """Tell whether a question asks for "all", the order of things or how something went; for the "past";
    for a time ("when"); or for what the user said and not what was replied ("my words")."""
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
_NUMERAL = re.compile(r"\s*\(?\d{1,6}\.")
_SPEAKER = re.compile(r"\A([^\W\d_][\w .'’-]{0,39}): ")


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
