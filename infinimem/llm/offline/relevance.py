"""How well a line answers a question, by the words that they share: one measure to search and to answer."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from functools import cache, lru_cache

from infinimem.grounding.sentences import split_speaker
from infinimem.llm.offline.lexicon import vocatives
from infinimem.retrieval.synonyms import kin
from infinimem.terms import STOP_WORDS, fold, query_terms, tokens

_MONTHS = "January February March April May June July August September October November December".split()
_NAME = re.compile(r"(?<=[\w,;]\s)[A-ZÀ-ÖØ-Þ][\w'’.]*")
_POSSESSIVE = re.compile(r"(?:['’]s)?[.'’]*$")
_SOUND, _ALIKE, _RELATED = 1.0, 0.7, 0.35
_BESIDE, _CALLED = 1.0, 0.1
"""Shares of a term's weight: found itself, as a longer or shorter form, as a kin word; found in the line's
speaker or date, as a name that the line only calls out."""
_QUESTION = 0.8
"""A line that asks is worth less than one that tells."""


@dataclass(frozen=True)
class Match:
    """What a line has of a question. `share` is the weight of the terms found, of 1; `terms` those found."""

    score: float
    share: float
    terms: frozenset[str]


class Question:
    """A question, its terms weighed by how rare they are among some lines.

    Args:
        text: in plain words.
        lines: those that compete for the answer.
    """

    def __init__(self, text: str, lines: Iterable[str]) -> None:
        self.text = text
        self.terms = query_terms(text)
        self.names = frozenset(term for name in names(text) for term in tokens(name))
        spread: Counter[str] = Counter()
        count = 0
        for line in lines:
            count += 1
            spread.update(set(_terms(line)))
        self._weights = {term: math.log(1 + (count + 1) / (1 + spread[term])) for term in self.terms}
        self._whole = sum(self._weights.values()) or 1.0

    def match(self, line: str, time: str = "") -> Match:
        """Compare with one line and its date."""
        speaker, said = split_speaker(line)
        said_terms = frozenset(_terms(said))
        beside = frozenset(tokens(speaker)) | _date_terms(time[:10])
        called = frozenset(term for name in vocatives(said) for term in tokens(name))
        found: dict[str, float] = {}
        for term in self.terms:
            share = self._share(term, said_terms, beside, called)
            if share:
                found[term] = share * self._weights[term]
        if not found:
            return Match(0.0, 0.0, frozenset())
        total = sum(found.values())
        length = sum(1 for term in said_terms if term not in _stop_terms())
        # Of two lines with the same words the one that says less besides is closer.
        score = total / self._whole * (1 + 0.15 * len(found) / (len(found) + length))
        if said.rstrip().endswith("?"):
            score *= _QUESTION
        return Match(score, total / self._whole, frozenset(found))

    def telling(self, terms: Iterable[str]) -> bool:
        """Whether more than people's names is among these terms of the question."""
        found = set(terms)
        return bool(found - self.names) or (bool(found) and self.names >= set(self.terms))

    def _share(
        self, term: str, said: frozenset[str], beside: frozenset[str], called: frozenset[str]
    ) -> float:
        if term in said:
            return _CALLED if term in called and term in self.names else _SOUND
        if term in beside:
            return _BESIDE
        if len(term) > 4 and any(_forms(term, other) for other in said):
            return _ALIKE
        return _RELATED if said & kin().get(term, frozenset()) else 0.0


def names(question: str) -> list[str]:
    """Capitalised words inside a question."""
    return [_POSSESSIVE.sub("", name) for name in _NAME.findall(question)]


def _forms(one: str, other: str) -> bool:
    """ "citizen" and "citizenship": the shorter begins the longer."""
    return len(other) > 4 and (one.startswith(other) or other.startswith(one))


@lru_cache(maxsize=1024)
def _date_terms(day: str) -> frozenset[str]:
    """A date as people ask for it: its year, month and day."""
    try:
        return frozenset(tokens(f"{_MONTHS[date.fromisoformat(day).month - 1]} {day}"))
    except ValueError:
        return frozenset()


@lru_cache(maxsize=4096)
def _terms(line: str) -> tuple[str, ...]:
    return tuple(tokens(line))


@cache
def _stop_terms() -> frozenset[str]:
    return frozenset(term for word in STOP_WORDS for term in tokens(fold(word)))
