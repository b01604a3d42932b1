"""What a statement is about and what it says of it, by the shape of its words.

"The author of Our Mutual Friend is Charles Dickens." has a subject phrase or name ("Our Mutual Friend"), an
object (what stands last: "Charles Dickens") and words for the relation between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from infinimem.llm.offline.relevance import split_speaker
from infinimem.retrieval.tokenizer import STOP_WORDS, fold, tokens

Phrase = tuple[str, ...]
"""Folded words of a name or noun phrase."""
Span = tuple[int, int]
LONGEST = 40
"""Words of a statement that are looked at."""

_WORD = re.compile(r"\w+(?:['’&./-]\w+)*\.?")
_JOINING = frozenset("of the de del von van du da di la le al and & for in to at on a an von der den".split())
"""Words that may stand inside a name, between capitalised ones."""
_ARTICLES = frozenset(["the", "a", "an"])
_CLITIC = re.compile(r"['’]s\Z")


@dataclass(frozen=True)
class Words:
    """A text as its words."""

    folded: Phrase
    capital: tuple[bool, ...]
    function: tuple[bool, ...]
    """Whether a word is a function word, written small (or first)."""
    text: str
    places: tuple[Span, ...]
    """Where each word stands in the text."""

    def surface(self, span: Span) -> str:
        """A phrase as it is written."""
        return self.text[self.places[span[0]][0] : self.places[span[1] - 1][1]]

    def find(self, phrase: Phrase) -> Iterator[Span]:
        """Where a phrase stands."""
        size = len(phrase)
        for start in range(len(self.folded) - size + 1):
            if self.folded[start] == phrase[0] and self.folded[start : start + size] == phrase:
                yield start, start + size


@lru_cache(maxsize=8192)
def words(text: str, limit: int = LONGEST) -> Words:
    """Cut a text into words; possessive endings and full stops are left off."""
    folded: list[str] = []
    capital: list[bool] = []
    places: list[Span] = []
    for match in _WORD.finditer(text):
        word = match.group().rstrip(".") if match.end() == len(text.rstrip()) else match.group()
        bare = _CLITIC.sub("", word)
        places.append((match.start(), match.start() + len(bare)))
        folded.append(fold(bare).rstrip("."))
        capital.append(bare[:1].isupper() or bare[:1].isdigit())
        if len(folded) == limit:
            break
    function = tuple(word in STOP_WORDS and (not capital[i] or i == 0) for i, word in enumerate(folded))
    return Words(tuple(folded), tuple(capital), function, text, tuple(places))


def names(text: Words) -> list[Span]:
    """Runs of capitalised words, with the small words that join them."""
    found: list[Span] = []
    at = 0
    count = len(text.folded)
    while at < count:
        if not text.capital[at] or text.function[at]:
            at += 1
            continue
        end = last = at + 1
        while end < count and (text.capital[end] or text.folded[end] in _JOINING):
            if text.capital[end]:
                last = end + 1
            elif end - last >= 2:
                break
            end += 1
        found.append((at, last))
        at = last
    return found


def last_phrase(text: Words) -> Span:
    """What a statement ends in: a name, or the words after its last function word."""
    count = len(text.folded)
    start = count
    while start:
        before = start - 1
        if text.function[before] and not _inside_name(text, before):
            break
        start = before
    return start, count


def lead(text: str) -> str:
    """A statement without what it ends in: "The capital of Chad is"; without a speaker before it."""
    said = split_speaker(text)[1]
    cut = words(said)
    start = last_phrase(cut)[0]
    return said[: cut.places[start - 1][1]] if start else ""


def first_phrase(text: Words) -> Span:
    """What a statement begins with, up to its first function word."""
    start = 1 if text.folded and text.folded[0] in _ARTICLES else 0
    end = start
    while end < len(text.folded) and (not text.function[end] or (end > start and _inside_name(text, end))):
        end += 1
    return start, end


def _inside_name(text: Words, at: int) -> bool:
    """Whether a small word joins two capitalised ones: "University of Pisa"."""
    if text.folded[at] not in _JOINING:
        return False
    before, after = at - 1, at + 1
    while before >= 0 and text.folded[before] in _JOINING and text.function[before]:
        before -= 1
    while after < len(text.folded) and text.folded[after] in _JOINING and text.function[after]:
        after += 1
    return before >= 0 and after < len(text.folded) and text.capital[before] and text.capital[after]


def is_whole(text: Words, span: Span) -> bool:
    """Whether a phrase is no part of a longer name: not "York" in "New York"."""
    start, end = span
    if start > 0 and text.capital[start - 1] and not text.function[start - 1] and text.capital[start]:
        return False
    if end < len(text.folded):
        if text.capital[end - 1]:
            return not text.capital[end] or text.function[end]
        return text.function[end]
    return start == 0 or text.function[start - 1] or text.capital[start - 1] != text.capital[start]


def terms(text: Words, spans: Sequence[Span]) -> frozenset[str]:
    """The index terms of the words outside of some spans."""
    outside = (
        word for i, word in enumerate(text.folded) if not any(start <= i < end for start, end in spans)
    )
    return frozenset(term for word in outside for term in tokens(word))
