"""Where English sentences negate, what their "not" governs, and whether a retelling dropped it.

Pure functions over text. Words are compared by rough stems, sentences by their clauses: it knows no grammar,
no synonyms, and nothing of who is spoken of; where it cannot tell, nothing is lost. Other languages pass.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from typing import NamedTuple

from infinimem.grounding.sentences import any_of, listed
from infinimem.markdown.characters import normalize

GOVERNED = 2
"""So many content words after a "not" are what it is about; what comes later may be the circumstances."""
COMMONPLACE = 200
"""A word in more clauses of the origin than this tells none of them from another."""

_CONTRACTED = r"(?:do|does|did|is|are|was|were|ha(?:s|ve|d)|ca|wo|could|should|would|must|need|ai)n'?t"
_SAID = rf"\b(?:no|not|never|none|nobody|nothing|nowhere|nor|neither|without|cannot|{_CONTRACTED})\b"
_GAVE_UP = r"\b(?:quit|(?:gave|given|giving) up|(?:stopp?(?:ed|ing)?|ceased)(?= \w+ing\b))\b"
_SELDOM = r"\b(?:hardly|rarely|scarcely|seldom)\b"
_NEGATION = re.compile(f"{_SAID}|{_GAVE_UP}|{_SELDOM}")
_OUTRIGHT = re.compile(rf"{_SAID}|\b(?:stopped|quit)\b")

_NOT = rf"\b(?:not|never|cannot|{_CONTRACTED})"
_CANNOT = r"\b(?:cannot|can not|(?:ca|could)n'?t)"
_HARMLESS = re.compile(any_of("harmless").replace("CANNOT", _CANNOT).replace("NOT", _NOT))
"""What only sounds like a negation of what follows."""
_TERMS = re.compile(r"\b(?:until|till|unless|except|if|whether|in case|lest|wish(?:e[sd])?)\b")
"""A clause with one of these says under which terms something is so; what holds otherwise is left open."""
_ASKED = re.compile(rf"(?:(?:and|but|so|well|oh|hey|how|what|who|where|when) )?{_CONTRACTED}\b")
"""How a negative question begins."""

_WORD = re.compile(r"\w+(?:'\w+)?")
_NEGATION_OR_WORD = re.compile(rf"({_SAID}|{_GAVE_UP}|{_SELDOM})|\w+(?:'\w+)?")
_SPACE = re.compile(r"[^\S\n]+")
_LINE_END = re.compile(r" ?\n[ \n]*")
_LABEL = re.compile(r"[^\s:]+(?: [^\s:]+){0,3}: ")
"""Who said an origin."""
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s|\n|[。！？]")
_AND = r"(?:and|but|because|so|although|though|while|whereas|yet|however|since)"
_LIST = r"(?=(?: [\w'-]+){1,2}(?:,(?: [\w'-]+){1,2}){0,20},? (?:or|nor) )"
_CLAUSE_END, _CLAUSE_END_WITHOUT_OR = (
    re.compile(rf"[;:()–—，]| -+ |{comma}| {_AND}\b(?! [\w'-]+(?:[.!,;]|$))")
    for comma in (f",(?!{_LIST})", ",")
)
"""Where a clause ends; "meat, fish or eggs" and "meat and fish." stay in one. Without "or" no comma is looked
at twice."""
_OR = re.compile(r" n?or ")

_EMPTY = listed("empty")
_BEARS = re.compile(rf"\b{any_of('bearing')}\b")
"""Other words that can bear a negation: who does not eat meat avoids it, or is a vegetarian."""
_PREFIX = re.compile(r"^(?:un|dis|non|in|im|ir|il|mis)-?(?=\w{3})")


@dataclass(eq=False)
class _Clause:
    text: str
    words: frozenset[str]
    """Stems of its content words."""
    asked: bool
    """Whether it stands in a question."""

    @cached_property
    def governed(self) -> frozenset[str]:
        """The words that its negation is about; none where it does not negate."""
        return frozenset(_denied(self.text.strip(), self.asked))


class _Said(NamedTuple):
    """What was said, clause by clause."""

    clauses: Sequence[_Clause]
    texts: Set[str]
    places: Mapping[str, Sequence[int]]
    """In which clauses each of their words stands."""


def negates(text: str) -> bool:
    """Whether a text holds a plain word of negation, whatever that does there."""
    return _OUTRIGHT.search(_plain(text)) is not None


@lru_cache(maxsize=4096)
def governed(text: str) -> tuple[str, ...]:
    """The next content word of each negation, sorted: texts that differ in it do not say the same."""
    found: list[str] = []
    waiting = 0
    for match in _NEGATION_OR_WORD.finditer(_plain(text)):
        if match[1]:
            waiting += 1
        elif stem := _stem(match[0]):
            found += [stem] * waiting
            waiting = 0
    return tuple(sorted([*found, *[""] * waiting]))


def lost(text: str, origins: Iterable[str]) -> bool:
    """Whether a retelling says plainly what its origin denies.

    It does where all clauses of the origin that share most words with one of its clauses negate some of these
    words, and nothing in the retelling that draws on them negates.

    Args:
        text: a sentence that a model phrased.
        origins: what was said, each perhaps after "Name: ".
    """
    origins = list(origins)
    denials = frozenset(word for origin in origins for word in _denials(origin))
    ours = list(_clauses(_plain(text)))
    if all(denials.isdisjoint(clause.words) for clause in ours):  # most often: the rest takes far longer
        return False
    names = {name for origin in origins for name in _stems(_parted(origin)[0])}
    said = _said(origins[0]) if len(origins) == 1 else _united(map(_said, origins), ours)
    denied: set[int] = set()
    borne: set[int] = set()
    for clause in ours:
        words = clause.words - names
        # A clause that the origin has too is nearest to itself, and so not denied.
        if clause.text not in said.texts and not denials.isdisjoint(words - _LIGHT or words):
            best = _nearest(words, said.places)
            if all((words - _LIGHT or words) & said.clauses[number].governed for number in best):
                denied |= best
    for clause in ours if denied else ():
        best = _nearest(clause.words - names, said.places)
        if _bears(clause.text, (said.clauses[number] for number in best)):
            borne |= best
    return bool(denied - borne)


@lru_cache(maxsize=16)  # one long text is the origin of many sentences
def _denials(origin: str) -> frozenset[str]:
    """The words that negations of an origin govern."""
    if not _NEGATION.search(_plain(origin)):
        return frozenset()
    return frozenset(word for clause in _said(origin).clauses for word in clause.governed)


@lru_cache(maxsize=16)
def _said(origin: str) -> _Said:
    """The clauses of an origin, to be looked up."""
    clauses = tuple(_clauses(_parted(origin)[1]))
    places: dict[str, list[int]] = {}
    for number, clause in enumerate(clauses):
        for word in clause.words:
            places.setdefault(word, []).append(number)
    return _Said(clauses, frozenset(clause.text for clause in clauses), places)


def _united(those: Iterable[_Said], ours: Sequence[_Clause]) -> _Said:
    """Several origins as one, as far as these clauses can be told by them."""
    clauses: list[_Clause] = []
    texts: set[str] = set()
    places: dict[str, list[int]] = {word: [] for clause in ours for word in clause.words}
    for said in those:
        for word in places.keys() & said.places.keys():
            places[word] += [len(clauses) + number for number in said.places[word]]
        clauses += said.clauses
        texts |= said.texts & {clause.text for clause in ours}
    return _Said(clauses, texts, places)


@lru_cache(maxsize=16)
def _parted(origin: str) -> tuple[str, str]:
    """Who said an origin, and what was said, for comparing."""
    plain = _plain(origin)
    label = _LABEL.match(plain)
    end = label.end() if label else 0
    return plain[:end], plain[end:]


def _nearest(words: frozenset[str], places: Mapping[str, Sequence[int]]) -> set[int]:
    """The clauses that share most of these words; light ones decide where the others do not."""
    rare = [word for word in words if len(places.get(word, ())) <= COMMONPLACE]
    shared = Counter(chain.from_iterable(places.get(word, ()) for word in rare if word not in _LIGHT))
    light = Counter(chain.from_iterable(places.get(word, ()) for word in rare if word in _LIGHT))
    if not words <= _LIGHT:
        light = Counter({number: light[number] for number in _top(shared)})
    return _top(light)


def _top(counts: Counter[int]) -> set[int]:
    most = max(counts.values(), default=0)
    return {number for number, count in counts.items() if count == most}


def _bears(text: str, origins: Iterable[_Clause]) -> bool:
    """Whether a clause holds a negation, or another word that bears the one of some origin."""
    if _NEGATION.search(text):
        return any(True for _ in origins)
    bearing = {*map(_stem, _BEARS.findall(text))}
    opposites = {_stem(_PREFIX.sub("", word)) for word in _WORD.findall(text) if _PREFIX.match(word)}
    return bool(bearing or opposites) and any(
        bearing - {*map(_stem, _BEARS.findall(origin.text))} or not opposites.isdisjoint(origin.words)
        for origin in origins
    )


def _plain(text: str) -> str:
    """Text for comparing; line breaks stay, other white space is one blank."""
    if text.isascii() and text.isprintable() and "  " not in text:
        return text.lower()
    text = normalize("NFKC", text).casefold().replace("’", "'")
    return _LINE_END.sub("\n", _SPACE.sub(" ", text))


def _clauses(text: str) -> Iterator[_Clause]:
    for sentence in _SENTENCE_END.split(text):
        asked = sentence.endswith("?")
        ends = _CLAUSE_END if _OR.search(sentence) else _CLAUSE_END_WITHOUT_OR
        for part in ends.split(sentence):
            if words := frozenset(_stems(part)):
                yield _Clause(part, words, asked)


def _denied(part: str, asked: bool) -> Iterator[str]:
    """The content words that a clause's negation governs; none where it denies nothing after all."""
    if not _NEGATION.search(part):  # nor would there be any once what is harmless is out
        return
    part = _HARMLESS.sub(" ", part)
    found = list(_NEGATION.finditer(part))
    if len(found) % 2 == 0 or _TERMS.search(part) or (asked and _ASKED.match(part)):
        return
    room = GOVERNED
    for stem in _stems(part[found[0].end() :]):
        yield stem
        room -= stem not in _LIGHT
        if not room:
            return


def _stems(text: str) -> Iterator[str]:
    """Stems of the content words, in their order."""
    return filter(None, map(_stem, _WORD.findall(text)))


@lru_cache(maxsize=16384)
def _stem(word: str) -> str:
    """A word without its commonest endings: "eats", "eating" and "eat" are one; "" if it says nothing."""
    word = word.removesuffix("'s")
    if word in _EMPTY or _NEGATION.fullmatch(word):
        return ""
    for ending, short in (("ies", "y"), ("ied", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)] + short
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
        word = word[:-1]
    return word.removesuffix("e") if len(word) > 3 else word


_LIGHT = frozenset(map(_stem, listed("little")))
"""Stems that say little unless nothing else is said."""
