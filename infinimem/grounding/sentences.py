"""Where sentences end, who says them, and words that tell nothing about a topic (common_words.txt)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import NamedTuple

from infinimem.terms import STOP_WORDS, tokens

_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+(?=[\"'“‘(\[]?[^\W_a-z])|(?<=[。！？])")
_ABBREVIATION = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|prof|st|sr|jr|vs|e\.g|i\.e|etc|approx|no|vol|fig|cf|inc|ltd|co)|\b[A-Za-z])\.$",
    re.IGNORECASE,
)
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
    start = 0
    for match in _SENTENCE_END.finditer(text):
        end = match.end()
        if _ABBREVIATION.search(text, max(start, match.start() - 8), match.start()):
            continue
        if piece := text[start:end].strip():
            yield piece
        start = end
    if piece := text[start:].strip():
        yield piece


def strip_ordinal(text: str) -> str:
    """A list item without its number: "12. The capital …"."""
    return _ORDINAL.sub("", text, count=1)


def split_speaker(line: str) -> tuple[str, str]:
    """ "Caroline: I moved." as its two parts; ("", line) where no one is named."""
    found = _SPEAKER.match(line)
    return (found[1], line[found.end() :]) if found else ("", line)


@cache
def common_terms() -> frozenset[str]:
    """Terms that tell nothing about a topic: function words and common words, stemmed."""
    text = (resources.files("infinimem.grounding") / "common_words.txt").read_text(encoding="utf-8")
    words = [*STOP_WORDS, *text.split()]
    return frozenset(term for word in words for term in tokens(word))
