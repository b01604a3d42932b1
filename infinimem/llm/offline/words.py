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
    """A word that tells something, as it is written, and the telling word right before it."""

    term: str
    surface: str
    named: bool
    """Capitalised inside a sentence."""
    noun: bool
    before: str


@lru_cache(maxsize=1 << 13)
def content_words(text: str) -> tuple[Word, ...]:
    """The words that say what a text is about, in its order; numbers and common words are none of them."""
    found = [*_WORD.finditer(text)]
    terms = [_term(match.group()) for match in found]
    words = []
    for at, (match, term) in enumerate(zip(found, terms, strict=True)):
        if term:
            left = found[at - 1].group() if at and text[found[at - 1].end() : match.start()] == " " else ""
            right = (
                found[at + 1].group()
                if at + 1 < len(found) and text[match.end() : found[at + 1].start()] == " "
                else ""
            )
            leads = right and fold(right) not in STOP_WORDS and fold(right) not in listed("before verbs")
            surface = re.sub(r"['’]s\Z", "", match.group())
            named = surface[0].isupper() and (bool(left) or surface.isupper())
            noun = named or not leads and _is_noun(fold(surface), fold(left))
            words.append(Word(term, surface, named, noun, left if at and terms[at - 1] else ""))
    return tuple(words)


def _is_noun(form: str, before: str) -> bool:
    if _NOUN.match(form) or (form.endswith("ing") and (not before or before in listed("before nouns"))):
        return True
    return not _NO_NOUN.search(form) and before not in listed("before verbs")


@lru_cache(maxsize=1 << 14)
def _term(word: str) -> str:
    bare = re.sub(r"['’]s\Z", "", word)
    telling = (term for term in tokens(bare) if term not in common_terms() and not term[0].isdigit())
    return "-".join(term for term in telling if len(term) > 2 or not term.isascii())


def content_terms(text: str) -> list[str]:
    """The terms of `content_words`, with repeats."""
    return [term for match in _WORD.finditer(text) if (term := _term(match.group()))]


def fact_text(text: str) -> str:
    """What a line says itself, without asides in brackets such as a picture's caption."""
    said = _ASIDE.sub(lambda aside: "" if " " in aside[0] else aside[0], text)
    return said if said.strip() else text


@lru_cache(maxsize=64)
def short_names(names: frozenset[str]) -> frozenset[str]:
    """How people may be called: their names, and short forms from three letters on."""
    parts = [part for name in names for part in fold(name).split()]
    return frozenset(part[:end] for part in parts for end in range(min(3, len(part)), len(part) + 1))
