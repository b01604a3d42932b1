"""Which words of a text say what it is about, and how they looked where they stood.

Terms come from the one tokenizer (terms.py); this part knows English words that tell
nothing about a topic, and which words are names. It knows no facts and no documents.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from typing import NamedTuple

from infinimem.grounding.common_words import common_terms
from infinimem.grounding.sentences import strip_ordinal
from infinimem.terms import fold, tokens

_WORD = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*")
MONTHS = "January February March April May June July August September October November December".split()
_BEFORE_NOUNS = frozenset(
    "a an the my your his her its our their this that these those some any no each every of for in on at "
    "with about from by new local first own another more many few two three and or".split()
)
_BEFORE_VERBS = frozenset(
    "to i you we they he she it i'm i've i'll i'd we're we've we'll you're you've they're it's who not never "
    "always just can could will would should must may might am is are was were be been being have has had do "
    "does did gonna really so very".split()
)
_SENTENCE_START = re.compile(r"(?:^|[.!?:;…\"“(\[*–—-])\s*$")


class Word(NamedTuple):
    """A content word: its term, and how it was written."""

    term: str
    surface: str
    start: int
    named: bool
    """Capitalised where the language would not do it: inside a sentence."""
    nounish: float
    """1 after an article or a preposition, 0 after a pronoun or "to", 0.5 else."""


@lru_cache(maxsize=1 << 13)
def content_words(text: str) -> tuple[Word, ...]:
    """The words that say what a text is about, in its order. Numbers are none of them."""
    words = []
    before = ""
    matches = [*_WORD.finditer(text)]
    for match, following in zip(matches, [*matches[1:], None], strict=False):
        surface = match.group()
        parts = [term for term in tokens(surface) if term not in common_terms() and _telling(term)]
        if parts:
            term = "-".join(parts) if "-" in surface else parts[0]
            named = surface[0].isupper() and (_is_inside(text, match.start()) or _leads(match, following))
            words.append(Word(term, _bare(surface), match.start(), named, _nounish(before)))
        before = fold(surface)
    return tuple(words)


def _is_inside(text: str, start: int) -> bool:
    return not _SENTENCE_START.search(text, max(0, start - 8), start)


def _leads(match: re.Match[str], following: re.Match[str] | None) -> bool:
    """Whether a second capitalised word follows at once: "Andy Warhol died"."""
    return following is not None and following.start() == match.end() + 1 and following.group()[0].isupper()


def _nounish(before: str) -> float:
    return 1.0 if before in _BEFORE_NOUNS else 0.0 if before in _BEFORE_VERBS else 0.5


def content_terms(text: str) -> list[str]:
    """The terms of `content_words`, with repeats."""
    return [word.term for word in content_words(text)]


def fact_text(text: str) -> str:
    """What a fact says itself: no number before it and no aside in brackets, such as a picture's caption."""
    bare = strip_ordinal(text)
    said = _ASIDE.sub(lambda aside: "" if " " in aside[0] else aside[0], bare)
    return said if said.strip() else bare


def short_names(names: Collection[str]) -> frozenset[str]:
    """How people may be called: their names, and short forms from three letters on."""
    parts = [part for name in names for part in fold(name).split()]
    return frozenset(part[:end] for part in parts for end in range(min(3, len(part)), len(part) + 1))


_NAME = re.compile(r"(?<=[\w,;]\s)[A-ZÀ-ÖØ-Þ][\w'’.]*")
_POSSESSIVE = re.compile(r"(?:['’]s)?[.'’]*$")
_ASIDE = re.compile(r"(?<!\[)\[[^\[\]\n]*+\](?![\](])")
_CALLED = re.compile(
    r"(?:\A|(?<=[,.!?;]))\s*(?:(?:hey|hi|hello|oh|thanks|wow)\s+)?([A-Z][\w'’]+)\s*(?=[,.!?;]|\Z)"
)


def names(question: str) -> list[str]:
    """Capitalised words inside a question."""
    return [_POSSESSIVE.sub("", name) for name in _NAME.findall(question)]


def vocatives(text: str) -> list[str]:
    """Words that stand where a message calls somebody by name ("Thanks, Caroline!"); not all are names."""
    return _CALLED.findall(text)


def _telling(term: str) -> bool:
    return not term[0].isdigit() and (len(term) > 2 or not term.isascii())


def _bare(surface: str) -> str:
    surface = surface.replace("’", "'")
    return surface[:-2] if fold(surface).endswith("'s") else surface
