"""What a sentence claims, whether its origin bears it out, and which sentences say the same. Pure.

Negations are compared by the clauses of English sentences and the words that they share: no grammar is known
here, no synonyms, and nothing of who is spoken of; where it cannot be told, nothing is lost.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from infinimem.grounding.sentences import (
    ENGLISH,
    common_terms,
    listed,
    split_speaker,
    tells_of_past,
)
from infinimem.markdown.characters import normalised
from infinimem.model import SOURCES, Entry
from infinimem.terms import fold, tokens

NEAR_DUPLICATE = 0.85
"""Share of words that two texts must have in common (Jaccard) to be one fact said twice."""
MOST = 100
"""Clauses of a retelling that are looked at: each is compared with all that was said."""

_WORD = re.compile(r"\w+(?:['’]\w+)?")
_NUMBER = re.compile(r"\d+(?:[.,:/]\d+)*")
_QUOTED = re.compile(r'"([^"\n]{2,200})"|“([^”\n]{2,200})”')


# ── what is claimed ──────────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=4096)  # a topic's lines are looked at each time that it is summed up
def claims(text: str) -> Mapping[str, frozenset[str]]:
    """What in a sentence can be wrong: its numbers, names, quotations and whether it negates."""
    opening = {match[1] for match in ENGLISH["opening"].finditer(text)}
    names = (word for word in _WORD.findall(text) if word[0].isupper() and word not in opening)
    return {
        "number": frozenset(_NUMBER.findall(fold(text))),
        "name": frozenset(fold(word).removesuffix("'s") for word in names) - listed("no names"),
        "quotation": frozenset(normalised(a or b) for a, b in _QUOTED.findall(text)),
        "negation": frozenset({"not"} if ENGLISH["outright"].search(fold(text)) else ()),
    }


@lru_cache(maxsize=4096)
def _words(text: str) -> frozenset[str]:
    words = _WORD.findall(fold(text))
    return frozenset(words) | {word.removesuffix("'s") for word in words}


def unsupported(text: str, origins: Iterable[str]) -> list[str]:
    """Return what a model's sentence claims that its origins (with speakers' names) do not hold: 'number
    14'."""
    origins = list(origins)
    missing = []
    for kind, items in claims(text).items():
        items = items.difference(*(claims(origin)[kind] for origin in origins)) if items else items
        if items and kind == "name":
            items = items.difference(*map(_words, origins))
        elif items and kind == "quotation":  # it may run over several origins
            whole = normalised("\n".join(origins))
            items = frozenset(item for item in items if item not in whole)
        missing += [f"{kind} {item}" for item in sorted(items)]
    return [*missing, "negation lost"] if _loses_negation(text, origins) else missing


# ── what is denied ───────────────────────────────────────────────────────────────────────────────


class _Clause(NamedTuple):
    text: str
    words: frozenset[str]
    """Terms of its content words."""
    denied: str
    """The one that its negation is about; "" where it denies nothing."""


def _loses_negation(text: str, origins: Sequence[str]) -> bool:
    """Tell whether a retelling says plainly what its origin denies.

    It does where all clauses of the origin that share most words with one of its clauses negate some of these
    words, and nothing in the retelling that draws on them negates.
    """
    parts = [split_speaker(origin) for origin in origins]
    said = {clause.text: clause for _, part in parts for clause in _clauses(part)}
    denials = {clause.denied for clause in said.values()}
    names = frozenset(term for name, _ in parts for term in _content(name))
    ours = [(clause.text, clause.words - names) for clause in _clauses(text)[:MOST]]
    denied: set[_Clause] = set()
    for clause, words in ours:
        # A clause that the origin has too is nearest to itself, and so not denied.
        if clause not in said and not denials.isdisjoint(words):
            nearest = _nearest(words, said.values())
            denied.update(nearest if all(one.denied in words for one in nearest) else ())
    for clause, words in ours if denied else ():
        nearest = _nearest(words, said.values())
        bears = _bearing(clause)
        if any(ENGLISH["negation"].search(clause) or bears - _bearing(one.text) for one in nearest):
            denied.difference_update(nearest)
    return bool(denied)


def _nearest(words: frozenset[str], clauses: Collection[_Clause]) -> list[_Clause]:
    """The clauses that share most of these words, if any does."""
    shared = [len(words & clause.words) for clause in clauses]
    most = max(shared, default=0)
    return [clause for clause, count in zip(clauses, shared, strict=True) if most and count == most]


@lru_cache(maxsize=4096)
def _clauses(text: str) -> Sequence[_Clause]:
    return [
        _Clause(part, words, _denied(part, sentence.endswith("?")))
        for sentence in ENGLISH["sentence end"].split(fold(text))
        for part in ENGLISH["clause end"].split(" ".join(sentence.split()))
        if (words := frozenset(_content(part)))
    ]


def _denied(part: str, asked: bool) -> str:
    """The content word after a clause's negation; what comes later may be the circumstances."""
    part = ENGLISH["only sounds"].sub(" ", part) if ENGLISH["negation"].search(part) else ""
    negations = [*ENGLISH["negation"].finditer(part)]
    if len(negations) % 2 == 0 or ENGLISH["terms"].search(part) or (asked and ENGLISH["asked"].match(part)):
        return ""
    return (_content(part[negations[0].end() :]) or [""])[0]


def _governed(text: str) -> list[str]:
    """The next content word of each negation, sorted: texts that differ in it do not say the same."""
    return sorted((_content(part) or [""])[0] for part in ENGLISH["negation"].split(fold(text))[1:])


def _content(text: str) -> list[str]:
    """The terms of the content words, in their order; those that say little only if there is nothing else."""
    terms = [term for term in tokens(ENGLISH["negation"].sub(" ", text)) if term not in _terms_of("empty")]
    return [term for term in terms if term not in _terms_of("little")] or terms


def _bearing(text: str) -> frozenset[str]:
    return frozenset(tokens(" ".join(ENGLISH["bears"].findall(text))))


@cache
def _terms_of(name: str) -> frozenset[str]:
    return frozenset(term for word in listed(name) for term in tokens(word))


# ── what says the same ───────────────────────────────────────────────────────────────────────────


def is_duplicate(one: str, other: str) -> bool:
    """Whether two lines say the same: equal, or nearly so with equal numbers, names and negations."""
    if normalised(one) == normalised(other):
        return True
    a, b = set(normalised(one).split()), set(normalised(other).split())
    if len(a & b) < NEAR_DUPLICATE * len(a | b):
        return False
    return claims(one) == claims(other) and _governed(one) == _governed(other)


def lasts(text: str) -> bool:
    """Tell whether a text states, in English, what is so on one day as on another: "My bike is red"."""
    passes = ENGLISH["passes"].search(text) or tells_of_past(text)
    return not passes and ENGLISH["lasts"].search(text) is not None


def is_repetition(one: Entry, other: Entry) -> bool:
    """Tell whether two lines say the same, of the same day unless it lasts; none has no day."""
    same_day = bool(one.time and other.time) and str(one.time)[:10] == str(other.time)[:10]
    return is_duplicate(one.text, other.text) and (same_day or (lasts(one.text) and lasts(other.text)))


def find_duplicates(entries: Iterable[Entry]) -> list[tuple[int, int]]:
    """Return for every line that repeats another its seq, and that of the most trusted and newest of them."""
    rivals: dict[tuple[object, ...], list[list[Entry]]] = {}
    for entry in entries:
        groups = rivals.setdefault(_alike(entry), [])
        group = next((group for group in groups if is_repetition(entry, group[0])), None)
        if group is None:
            groups.append([entry])
        else:
            group.append(entry)
    pairs = []
    for group in (group for groups in rivals.values() for group in groups):
        *rest, kept = sorted(group, key=lambda entry: (SOURCES.index(entry.source), entry.seq))
        pairs += [(entry.seq, kept.seq) for entry in rest]
    return pairs


def _alike(entry: Entry) -> tuple[object, ...]:
    """Return what is equal for lines that may repeat each other; "A beat B" and "B beat A" do not."""
    terms = tokens(entry.text)
    day = "" if lasts(entry.text) else entry.time[:10] if entry.time else entry.seq
    telling = tuple(term for term in terms if term not in common_terms()) or tuple(terms) or entry.text
    return entry.fields.get("speaker"), day, telling
