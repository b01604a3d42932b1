"""What a set of facts is about: weights of terms, titles, keywords, the most central lines.

Works on texts alone; everything that it writes is made of words that stand in them. A summary passes over
talk (greetings, questions, what is said about the other one) and names who said a sentence, for "I" means
nothing in a catalog.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from infinimem import tokens
from infinimem.grounding.sentences import sentences
from infinimem.llm.offline.lexicon import (
    Word,
    called,
    content_terms,
    content_words,
    fact_text,
    is_filler,
    short_names,
    vocatives,
)
from infinimem.terms import fold

Weights = Mapping[str, float]

REMEMBERED = 1 << 13
"""Texts whose reading is kept: a topic's facts are read again each time that it is summed up."""

_EVERYWHERE = 0.3
"""A term in more than this share of the facts (the speakers' names, mostly) titles none of their topics."""


_VERBAL = re.compile(r"(?<![aeo]e)(?<=...)(?:ed|ing)\Z", re.IGNORECASE)
_PARTICIPLE = re.compile(r"(?<=..)(?<!e)ed\Z")
_GERUND = re.compile(r"(?<=...)ing\Z")
_ADJECTIVE = re.compile(r"(?<=..)(?:ful|ous|ive|able|ible|ical|less|iest|ish|ar[iy]an|ual|ier)\Z")
_NOUNS = frozenset(
    "family supply reply assembly butterfly jelly belly lily fly monopoly anomaly italy hundred breed "
    "wedding building meeting evening morning ceiling clothing string spring thing ring king wing earring "
    "painting training hiking camping swimming running cycling climbing gardening cooking baking fishing "
    "counseling counselling parking housing heating lighting pudding seed speed weed shed sled "
    "archive olive detective native executive motive table cable vegetable stable fish dish radish polish "
    "vegetarian librarian manual frontier soldier carrier pier".split()
)
"""Nouns that look like something else."""
_NO_TITLES = frozenset(
    "woohoo kudos hooray hurray yippee phew aha wowza congratulations congrats cheers however therefore "
    "furthermore meanwhile nevertheless otherwise thus hence every each either neither per via among "
    "noted earned kept such whose whichever someone awesome epic lots".split()
)


@dataclass
class Corpus:
    """All facts of a task, against which the facts of one topic stand out."""

    texts: Sequence[str]
    names: Collection[str] = ()
    """Of those who speak; they are no topic of what they say."""
    words: list[list[Word]] = field(init=False)
    terms: list[list[str]] = field(init=False)
    """Those of each text, each once, in its order: sums of weights must not depend on the order of sets."""
    spread: Counter[str] = field(init=False)
    """Term: in how many facts it stands."""

    def __post_init__(self) -> None:
        words, calls = zip(*map(_read, self.texts), strict=True) if self.texts else ((), ())
        spread = Counter(term for found in words for term in _distinct(found))
        called = Counter(term for terms in calls for term in terms)
        people = {term for term, times in called.items() if times > 1 and times > spread[term] / 4}
        speakers = short_names(self.names)
        self.words = [
            [
                word
                for word in found
                if word.term not in people
                and not (word.surface[0].isupper() and fold(word.surface) in speakers)
            ]
            for found in words
        ]
        self.terms = [_distinct(found) for found in self.words]
        self.spread = Counter(term for terms in self.terms for term in terms)

    def idf(self, term: str) -> float:
        """How much a term tells: rare ones more, those of one fact like those of two."""
        return math.log(1 + len(self.texts) / max(2, self.spread[term]))

    def vector(self, members: Iterable[int]) -> dict[str, float]:
        """The terms of some facts, each with its weight; of length one."""
        counts = Counter(term for i in members for term in self.terms[i])
        weights = {term: (1 + math.log(count)) * self.idf(term) for term, count in counts.items()}
        length = math.sqrt(sum(weight * weight for weight in weights.values())) or 1.0
        return {term: weight / length for term, weight in weights.items()}

    def phrases(self, members: Sequence[int], limit: int) -> list[str]:
        """The most telling nouns of some facts, shared or not; where there are none, their rarest words."""
        if found := self.nouns(members, limit):
            return found
        surfaces = _Surfaces(self.words[i] for i in members)
        inside = Counter(term for i in members for term in self.terms[i])
        rarest = sorted(inside, key=lambda term: (-inside[term] * self.idf(term), term))
        return [surfaces.phrase((term,)) for term in rarest[:limit]]

    def telling(self, terms: Iterable[str], share: float) -> bool:
        """Whether one of the terms stands in few facts: half a dozen, or up to this share."""
        return any(self.spread[term] <= max(6, share * len(self.texts)) for term in terms)

    def thread(self, members: Sequence[int], limit: int = 2) -> list[str]:
        """The nouns that run through some facts, what most share first.

        Each stands in two of them and in half as many as the most frequent one.
        """
        found = self._nouns(members, 2)
        needed = max((count for _, count in found), default=0) / 2
        return [phrase for phrase, count in found if count >= needed][:limit]

    def nouns(self, members: Sequence[int], limit: int) -> list[str]:
        """The most telling nouns of some facts, shared or not."""
        return [phrase for phrase, _ in self._nouns(members, 1, limit)]

    def _nouns(self, members: Sequence[int], needed: int, limit: int | None = None) -> list[tuple[str, int]]:
        """Nouns and pairs that end in one, with the number of facts that hold them, best first."""
        surfaces = _Surfaces(self.words[i] for i in members)
        inside = Counter(term for i in members for term in self.terms[i])
        common = _EVERYWHERE * len(self.texts) if len(members) < len(self.texts) / 2 else math.inf
        telling = {
            term: count
            for term, count in inside.items()
            if count >= needed and self.spread[term] <= max(common, 2)
        }
        pairs: dict[tuple[str, ...], int] = {
            pair: count
            for pair, count in self._pairs(members).items()
            if count >= max(2, needed)
            and all(term in telling for term in pair)
            and surfaces.is_noun(pair[1])
            and not surfaces.is_adverb(pair[0])
        }
        tied = Counter[str]()
        for pair, count in pairs.items():
            for term in pair:
                tied[term] = max(tied[term], count)
        counts: dict[tuple[str, ...], int] = {(term,): count for term, count in telling.items()}
        # A word that mostly stands in a pair is no phrase of its own ("guinea" of "guinea pig").
        counts = {
            terms: count
            for terms, count in counts.items()
            if surfaces.is_noun(terms[0]) and tied[terms[0]] < 0.6 * count
        }
        counts |= pairs
        scores = {
            terms: count**1.5 * max(self.idf(term) * surfaces.nounish(term) for term in terms) * len(terms)
            for terms, count in counts.items()
        }
        chosen: list[tuple[str, int]] = []
        used: set[str] = set()
        for terms in sorted(scores, key=lambda terms: (-scores[terms], terms)):
            if len(chosen) == limit:
                break
            if used.isdisjoint(terms):
                chosen.append((surfaces.phrase(terms), counts[terms]))
                used.update(terms)
        return chosen

    def _pairs(self, members: Iterable[int]) -> Counter[tuple[str, str]]:
        """Content words that stand side by side ("adoption agencies")."""
        found: Counter[tuple[str, str]] = Counter()
        for i in members:
            found.update(
                {
                    (one.term, two.term)
                    for one, two in zip(self.words[i], self.words[i][1:], strict=False)
                    if two.start == one.start + len(one.surface) + 1 and one.term != two.term
                }
            )
        return found

    def shares(self) -> list[float]:
        """How much of the whole each text says; of two that say as much the shorter has more."""
        whole = self.vector(range(len(self.texts)))
        return [sum(whole[term] for term in terms) / (6 + len(terms)) ** 0.7 for terms in self.terms]


@lru_cache(maxsize=REMEMBERED)
def _read(text: str) -> tuple[tuple[Word, ...], tuple[str, ...]]:
    """What a fact says itself, and the terms of those whom it calls by name."""
    names = tuple(word.term for name in vocatives(text) for word in content_words(name))
    return content_words(fact_text(text)), names


def _distinct(words: Iterable[Word]) -> list[str]:
    return list(dict.fromkeys(word.term for word in words))


class _Surfaces:
    """How each term is written: its most frequent form, lower-cased unless it is a name."""

    def __init__(self, texts: Iterable[Sequence[Word]]) -> None:
        self._forms: dict[str, Counter[str]] = {}
        self._named: Counter[str] = Counter()
        self._seen: Counter[str] = Counter()
        self._nounish: dict[str, list[float]] = {}
        self._chosen: dict[str, str] = {}
        for words in texts:
            for word in words:
                self._forms.setdefault(word.term, Counter())[word.surface] += 1
                self._named[word.term] += word.named
                self._seen[word.term] += word.surface[0].islower()
                self._nounish.setdefault(word.term, []).append(word.nounish)

    def nounish(self, term: str) -> float:
        """How far a term is used as a noun, from 0.1 to 1."""
        seen = self._nounish[term]
        return 0.1 + 0.9 * sum(seen) / len(seen)

    def is_noun(self, term: str) -> bool:
        """Whether a term may title a topic: a name, or not formed as a participle, adverb or adjective."""
        form = self._best(term).lower()
        if form in _NO_TITLES or (len(form) < 3 and form.isascii()):
            return False
        if self._named[term] > self._seen[term]:
            return True
        if self.is_adverb(term) or (_PARTICIPLE.search(form) and form not in _NOUNS):
            return False
        if _GERUND.search(form) and form not in _NOUNS:
            return self.nounish(term) >= 0.7
        return not (_ADJECTIVE.search(form) and form not in _NOUNS) and self.nounish(term) >= 0.3

    def is_adverb(self, term: str) -> bool:
        """Whether a term only tells how or where, and belongs to no title."""
        form = self._best(term).lower()
        if self._named[term] > self._seen[term]:
            return False
        return form in _NO_TITLES or (form.endswith("ly") and form not in _NOUNS)

    def phrase(self, terms: Iterable[str]) -> str:
        return " ".join(self._form(term) for term in terms)

    def _best(self, term: str) -> str:
        """The most frequent form; a participle only where there is no other."""
        if term not in self._chosen:
            forms = self._forms[term]
            self._chosen[term] = min(forms, key=lambda form: (bool(_VERBAL.search(form)), -forms[form], form))
        return self._chosen[term]

    def _form(self, term: str) -> str:
        best = self._best(term)
        if self._named[term] > self._seen[term] or best.isupper():
            return best
        return best.lower()


def title(phrases: Sequence[str]) -> str:
    """ "Adoption agencies, family and school"."""
    if not phrases:
        return ""
    joined = phrases[0] if len(phrases) == 1 else f"{', '.join(phrases[:-1])} and {phrases[-1]}"
    return joined[0].upper() + joined[1:]


def similarity(one: Weights, other: Weights) -> float:
    """Cosine of two vectors of length one."""
    if len(other) < len(one):
        one, other = other, one
    return sum(weight * other[term] for term, weight in one.items() if term in other)


WORDS = 60
"""Of a whole summary."""
KEYWORDS = 6
SHORTEST = 5
"""Words of a sentence that states something."""

_OPENING = re.compile(r"\s*([^\W\d_]+(?:['’][^\W\d_]+)?)(?:\s*[,!.…–—-]+\s*)")
_OPENERS = frozenset(
    "absolutely actually agreed ah anyway aw aww btw congrats cool definitely exactly haha hello hey hi hmm "
    "lol nah no oh ok okay oof really right so sure thankfully thanks totally true well whoa wow ya yay yeah "
    "yep yes yup".split()
)
_TALK = re.compile(
    r"\b(?:you|your|you['’]\w+|yours|ya|thanks|thank|thankful|grateful|appreciate|btw|hope|congrats)\b",
    re.IGNORECASE,
)
_POINTS = re.compile(
    r"(?:and |but |so )?(?:that|it|this|these|those|they|there|such|glad|can|let)\b", re.IGNORECASE
)


def summary(facts: Sequence[Mapping[str, Any]], limit: int) -> str:
    """What some facts state, the most central first.

    Args:
        facts: with "text" and, where it is known, "speaker".
        limit: tokens; there are at most some `WORDS` words too.
    """
    names = tuple(sorted({fact["speaker"] for fact in facts if fact.get("speaker")}))
    said = [(fact.get("speaker"), sentence) for fact in facts for sentence in _said(fact["text"], names)]
    said = (
        [(speaker, sentence) for speaker, sentence in said if states(sentence)]
        or said
        or [(fact.get("speaker"), " ".join(fact_text(fact["text"]).split())) for fact in facts]
    )
    text = ", ".join(Corpus([fact["text"] for fact in facts], names).phrases(range(len(facts)), KEYWORDS))
    while tokens.count(text) > limit and "," in text:
        text = text.rpartition(",")[0]
    glue = "; "
    for i in central([sentence for _, sentence in said], names):
        speaker, sentence = said[i]
        line = f"{speaker}: {sentence}" if speaker else sentence
        longer = f"{text}{glue}{line}" if text else line
        if line not in text and len(longer.split()) <= WORDS and tokens.count(longer) <= limit:
            text, glue = longer, " / "
    return text if tokens.count(text) <= limit else ""


@lru_cache(maxsize=REMEMBERED)
def _said(text: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The sentences that are neither question nor greeting, without "Wow, Caroline!" before them."""
    bare = (_without_opening(sentence, names) for sentence in sentences(" ".join(fact_text(text).split())))
    return tuple(
        one for one in bare if one and not one.rstrip("\"'”’)").endswith("?") and not is_filler(one, names)
    )


@lru_cache(maxsize=REMEMBERED)
def states(sentence: str) -> bool:
    """Whether a sentence says something by itself."""
    return len(sentence.split()) >= SHORTEST and len(set(content_terms(sentence))) > 1


def _without_opening(sentence: str, names: Collection[str]) -> str:
    known = called(names) | _OPENERS
    while (match := _OPENING.match(sentence)) and fold(match[1]) in known:
        sentence = sentence[match.end() :]
    return sentence


def central(said: Sequence[str], names: Collection[str]) -> list[int]:
    """Sentences in the order of how much of the whole each one says; what points or replies says less."""
    shares = Corpus(said, names).shares()
    for i, sentence in enumerate(said):
        shares[i] *= (0.4 if _TALK.search(sentence) else 1) * (0.6 if _POINTS.match(sentence) else 1)
        shares[i] *= 0.8 if sentence.endswith("!") else 1
    return sorted(range(len(said)), key=lambda i: (-round(shares[i], 9), i))[:50]
