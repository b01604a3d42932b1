"""Which words of a text say what it is about, and which of them are nouns.

The words by which English is known stand in grounding/english.txt; elsewhere they match nothing and do no
harm. A noun is told by what stands before and behind it, and by how it ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from infinimem.grounding.sentences import any_of, common_terms, listed
from infinimem.terms import STOP_WORDS, fold, tokens

CONTINUES = re.compile(
    r"\W*(?:(?:and|but|so|yes|yeah|no|well|also|plus|oh|wow)\W+)?(?:it|its|that|this|these|those|they|them|their|he|him"
    r"|his|she|her|there|then|here|such|same|you|your)(?:['’]\w+)?\b",
    re.IGNORECASE,
)
"""How a sentence begins that replies to the one before or points at it."""
REPLIES = re.compile(rf"\W*{any_of('openings')}\b|{CONTINUES.pattern}", re.IGNORECASE)
"""How a message begins that replies to the one before, or points at it."""
_WORD = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*")
_ASIDE = re.compile(r"(?<!\[)\[[^\[\]\n]*+\](?![\](])")
_NO_NOUN = re.compile(
    rf"\A{any_of('no nouns')}\Z|(?:ly|ed|ing|ful|ous|ive|[ai]ble|ical|[st]ic|less|iest|ish|n't|'\w+)\Z"
)
_NOUN = re.compile(rf"\A{any_of('nouns')}s?\Z")


class Word(NamedTuple):
    """A word that tells something: how it is written, how like a noun it is, its telling neighbours."""

    term: str
    surface: str
    named: bool
    """Capitalised inside a sentence."""
    noun: float
    before: str
    after: str


@lru_cache(maxsize=1 << 13)
def content_words(text: str) -> tuple[Word, ...]:
    """The words that say what a text is about, in its order; numbers and common words are none of them."""
    found = [*_WORD.finditer(text)]
    raw = ["", *(match.group() for match in found), ""]
    plain, terms = ["", *map(fold, raw)], list(map(_term, raw))
    words = []
    for at, match in enumerate(found, 1):
        if terms[at]:
            left = at > 1 and text[found[at - 2].end() : match.start()] == " "
            right = at < len(found) and text[match.end() : found[at].start()] == " "
            surface = _bare(raw[at])
            named = surface[0].isupper() and (left or surface.isupper())
            noun = (
                1.0
                if named
                else _looks(plain[at + 1], plain[at - 1 : at + 1], plain[at + 2] if right else "")
            )
            before = raw[at - 1] if left and terms[at - 1] else ""
            after = raw[at + 1] if right and terms[at + 1] else ""
            words.append(Word(terms[at], surface, named, noun, before, after))
    return tuple(words)


def _looks(form: str, before: Iterable[str], after: str) -> float:
    """How much a word looks like a noun, from 0 to 1, by two words before it and one behind."""
    if _NOUN.match(form):
        return 1.0
    *_, last = before
    if _NO_NOUN.search(form) or last in listed("before verbs"):
        return 0.0
    ends = not after or after in STOP_WORDS or after in listed("before verbs")
    return (1.0 if ends else 0.4) * (0.6 if listed("before nouns").isdisjoint(before) else 1.0)


@lru_cache(maxsize=1 << 14)
def _term(word: str) -> str:
    telling = (term for term in tokens(_bare(word)) if term not in common_terms() and not term[0].isdigit())
    return "-".join(term for term in telling if len(term) > 2 or not term.isascii())


def _bare(word: str) -> str:
    return re.sub(r"['’]s\Z", "", word)


def content_terms(text: str) -> list[str]:
    """The terms of `content_words`, with repeats."""
    return [term for match in _WORD.finditer(text) if (term := _term(match.group()))]


def fact_text(text: str) -> str:
    """What a line says itself, without asides in brackets such as a picture's caption."""
    said = _ASIDE.sub(lambda aside: "" if " " in aside[0] else aside[0], text)
    return said if said.strip() else text


def short_names(names: Iterable[str]) -> frozenset[str]:
    """How people may be called: their names, and short forms from three letters on."""
    return _short_names(frozenset(names))


@lru_cache(maxsize=64)
def _short_names(names: frozenset[str]) -> frozenset[str]:
    parts = [part for name in names for part in fold(name).split()]
    return frozenset(part[:end] for part in parts for end in range(min(3, len(part)), len(part) + 1))
