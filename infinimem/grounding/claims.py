"""What a sentence claims, and whether what it was drawn from bears it out. Pure.

unsupported      what a model's sentence claims that its origin does not hold, or denies
is_duplicate     whether two lines say the same
is_repetition    whether one of them may go for the other: what happens on two days is two things
find_duplicates  lines that say the same as another; only what the law would let pass, and less than that
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from infinimem.grounding import negation
from infinimem.grounding.sentences import any_of, common_terms, listed
from infinimem.grounding.when import tells_of_past
from infinimem.markdown.characters import normalised, normalize
from infinimem.model import SOURCES, Entry
from infinimem.terms import tokens

NEAR_DUPLICATE = 0.85
"""Share of words that two texts must have in common (Jaccard) to be one fact said twice."""

_WORD = re.compile(r"\w+(?:['’]\w+)?")
_NUMBER = re.compile(r"\d+(?:[.,:/]\d+)*")
_QUOTED = re.compile(r'"([^"\n]{2,200})"|“([^”\n]{2,200})”')
_OPENING = re.compile(r"(?:^|[.!?:;]\s+)([A-Z]\w*(?:s|ed|ing))\b(?!')")
"""A capitalised verb at the head of a sentence: "Lives in …", "Moved to …", and, alas, Paris."""
_NOT_NAMES = listed("no names")


def is_duplicate(one: str, other: str) -> bool:
    """Whether two lines say the same: equal, or nearly so with equal numbers, names and negations."""
    if normalised(one) == normalised(other):
        return True
    a, b = set(normalised(one).split()), set(normalised(other).split())
    if len(a & b) < NEAR_DUPLICATE * len(a | b):
        return False
    return claims(one) == claims(other) and negation.governed(one) == negation.governed(other)


@lru_cache(maxsize=4096)
def claims(text: str) -> Mapping[str, frozenset[str]]:
    """What in a sentence can be wrong: its numbers, names, quotations and whether it negates."""
    text = normalize("NFKC", text).replace("’", "'")
    words = _WORD.findall(text)
    opening = {match[1] for match in _OPENING.finditer(text)}
    names = frozenset(
        word.removesuffix("'s").casefold()
        for word in words
        if word[0].isupper() and word.removesuffix("'s").casefold() not in _NOT_NAMES and word not in opening
    )
    return {
        "number": frozenset(_NUMBER.findall(text)),
        "name": names,
        "quotation": frozenset(normalised(a or b) for a, b in _QUOTED.findall(text)),
        "negation": frozenset({"not"} if negation.negates(text) else ()),
    }


def unsupported(text: str, origins: Iterable[str]) -> list[str]:
    """What `text` claims that its origins do not hold, or deny (docs/FORMAT.md, One law).

    Args:
        text: a sentence that a model phrased.
        origins: what was said, with the names of those who said it.

    Returns:
        Lines such as 'number 14'; empty when all is borne out.
    """
    origins = list(origins)
    claimed = claims(text)
    held, said, whole = _held("\n".join(_telling(origins, claimed)))
    missing = []
    for kind, found in claimed.items():
        for item in sorted(found - held[kind]):
            if kind == "name" and item in said:
                continue
            if kind == "quotation" and item in whole:
                continue
            missing.append(f"{kind} {item}")
    if negation.lost(text, origins):
        missing.append("negation lost")
    return missing


def _telling(origins: Sequence[str], claimed: Mapping[str, frozenset[str]]) -> Sequence[str]:
    """The origins that may hold any of what is claimed: a topic has thousands, and its summary a few words.

    A quotation may run over several, so all are looked at for one.
    """
    items = claimed["number"] | claimed["name"]
    if len(origins) < 2 or claimed["quotation"]:
        return origins
    return [
        origin
        for origin in origins
        if any(map(_folded(origin).__contains__, items)) or (claimed["negation"] and negation.negates(origin))
    ]


@lru_cache(maxsize=4096)  # a topic's lines are looked at each time that it is summed up
def _folded(text: str) -> str:
    return normalize("NFKC", text).replace("’", "'").casefold()


@lru_cache(maxsize=4)  # one long text is the origin of many sentences, and may be a megabyte
def _held(origin: str) -> tuple[Mapping[str, frozenset[str]], frozenset[str], str]:
    """What an origin claims, its words, and all of it for comparing."""
    words = _WORD.findall(normalize("NFKC", origin).casefold().replace("’", "'"))
    said = frozenset(words) | {word.removesuffix("'s") for word in words}
    return claims.__wrapped__(origin), said, normalised.__wrapped__(origin)


TODAY = re.compile(rf"\b{any_of('today')}\b", re.IGNORECASE)
"""Words by which the same sentence means something else on another day."""
_LASTING = re.compile(rf"\b{any_of('lasting')}\b|['’](?:m|re|s|ve)\b", re.IGNORECASE)
"""Words of what is so and stays so; where there is none, it may be an event in any language."""
_PASSING = re.compile(rf"[\d?]|\b{any_of('passing')}\b|['’](?:m|re|s) (?:\w+ )?\w+ing\b|['’](?:ll|d)\b", re.I)
"""Numbers, and words of events and of what passes."""


def lasts(text: str) -> bool:
    """Whether a text states, in English, what is so on one day as on another: "My bike is red".

    What is dated or measured, and any event, is not; in doubt nothing is.
    """
    passes = TODAY.search(text) or _PASSING.search(text) or tells_of_past(text)
    return not passes and _LASTING.search(text) is not None


def is_repetition(one: Entry, other: Entry) -> bool:
    """Whether two lines say the same, of the same day where it is not of what lasts. One thing that is said
    twice on a day, or a turn that was imported twice, is; what has no time may be of another day."""
    same_day = bool(one.time and other.time) and str(one.time)[:10] == str(other.time)[:10]
    return is_duplicate(one.text, other.text) and (same_day or (lasts(one.text) and lasts(other.text)))


def find_duplicates(entries: Iterable[Entry]) -> list[tuple[int, int]]:
    """For every line that repeats another its seq, and that of the one which stays.

    Of a group the most trusted stays, then the one with the highest seq.
    """
    equal: dict[tuple[str, ...], list[Entry]] = {}
    for entry in entries:
        equal.setdefault(_said(entry), []).append(entry)
    near: dict[tuple[str, ...], list[list[Entry]]] = {}
    for group in equal.values():
        rivals = near.setdefault(_key(group[0].text), [])
        for rival in rivals:
            if _same(group[0], rival[0]):
                rival += group
                break
        else:
            rivals.append(group)
    pairs = []
    for group in (group for rivals in near.values() for group in rivals):
        *rest, kept = sorted(group, key=lambda entry: (SOURCES.index(entry.source), entry.seq))
        pairs += [(entry.seq, kept.seq) for entry in rest]
    return pairs


def _key(text: str) -> tuple[str, ...]:
    """The telling terms in their order: near duplicates share them all, "A beat B" and "B beat A" do not."""
    terms: Sequence[str] = tokens(text)
    return tuple(term for term in terms if term not in common_terms()) or tuple(terms) or (text,)


def _said(entry: Entry) -> tuple[str, ...]:
    """Equal for lines of the same words, the same person and, where the words depend on it, the same time."""
    text, time = entry.text, entry.time or f"of {entry.seq}"
    when = "" if lasts(text) else time if TODAY.search(text) else time[:10] if entry.time else time
    return normalised(text) or text, str(entry.fields.get("speaker")), when


def _same(one: Entry, other: Entry) -> bool:
    """Whether two lines differ in wording only."""
    return _said(one)[1:] == _said(other)[1:] and is_duplicate(one.text, other.text)
