"""The one person whose words a question asks for: a speaker that it names, or oneself.

Names are those of the entries' speakers. A question that names two of them prefers nobody.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from infinimem.terms import STOP_WORDS, fold

_ONESELF = frozenset({"i", "me", "my", "mine", "myself"})
_ADDRESSED = frozenset({"you", "your", "yours", "yourself", "yourselves"})
_TO_ME = re.compile(r"\b(?:tell|show|give|remind|help|let|ask) me\b")
_TITLES = frozenset({"dr", "mr", "mrs", "ms", "miss", "prof", "sir"})
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_SPACELESS = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u3041-\u30ff\u3400-\u9fff\uac00-\ud7af]")


@dataclass(frozen=True)
class Asked:
    """Whose words a question asks for.

    Args:
        speakers: the names of the one person (several where people share the name that was used).
        oneself: whether it speaks of the asker and names nobody; never with `speakers`.
    """

    speakers: frozenset[str] = frozenset()
    oneself: bool = False


def asked_of(question: str, speakers: Collection[str]) -> Asked:
    """Whose words a question asks for.

    Args:
        question: any text; a name in it counts as a whole word, in any case, possessives too.
        speakers: names of those who may have said the answer, as their entries give them.
    """
    words = [_bare(word) for word in _WORD.findall(fold(question))]
    named = _named(fold(question), words, speakers)
    said = set(_WORD.findall(_TO_ME.sub(" ", " ".join(words))))
    oneself = bool(said & _ONESELF) and not said & _ADDRESSED
    if len(named) == 1 and not oneself:
        return Asked(speakers=named[0])
    return Asked(oneself=oneself and not named)


def nameless(question: str, speakers: Collection[str]) -> str:
    """A question without the names of speakers; all of it where nothing else is said.

    A name is rarely in what its bearer says, so that a vector of it leads away from that.

    Args:
        question: any text.
        speakers: names, as entries give them; their words count whole, in any case, possessives too.
    """
    names: set[str] = set()
    rest = question
    for words, spaceless in map(_name, speakers):
        names.update(set(words) - _TITLES - STOP_WORDS)
        if spaceless:
            rest = rest.replace(spaceless, " ")
    rest = _WORD.sub(lambda word: " " if _bare(fold(word[0])) in names else word[0], rest)
    return rest if _WORD.search(rest) else question


def _named(question: str, words: Sequence[str], speakers: Collection[str]) -> list[frozenset[str]]:
    """The speakers named, a set for each distinct name; whole names go before first names."""
    whole: dict[tuple[str, ...], set[str]] = {}
    first: dict[tuple[str, ...], set[str]] = {}
    found: list[frozenset[str]] = []
    present = set(words)
    for speaker in sorted(speakers):
        name, spaceless = _name(speaker)
        if spaceless:
            found += [frozenset({speaker})] * (spaceless in question)
        elif name[:1] and name[0] in present:
            whole.setdefault(name, set()).add(speaker)
            if len(name) > 1 and name[0] not in _TITLES | STOP_WORDS:
                first.setdefault(name[:1], set()).add(speaker)
    used: set[int] = set()
    for names in (whole, first):
        for name in sorted(names, key=lambda name: (-len(name), name)):
            places = {range(at, at + len(name)) for at in _places(name, words)}
            free = [place for place in places if not used.intersection(place)]
            if free:
                used.update(*free)
                found.append(frozenset(names[name]))
    return list(dict.fromkeys(found))


def _places(name: Sequence[str], words: Sequence[str]) -> Iterator[int]:
    if len(name) == 1 and name[0] in STOP_WORDS:
        return iter(())  # "Will she come?" names nobody called Will
    return (at for at in range(len(words)) if tuple(words[at : at + len(name)]) == tuple(name))


@lru_cache(maxsize=1 << 14)
def _name(speaker: str) -> tuple[tuple[str, ...], str]:
    """The words of a name; or the whole of it where its script has no spaces."""
    folded = fold(speaker)
    return ((), folded) if _SPACELESS.search(speaker) else (tuple(_WORD.findall(folded)), "")


def _bare(word: str) -> str:
    return re.sub(r"'(?:s|m|ve|d|ll|re)?$", "", word)
