"""Where a statement ends in what it says of its subject: the lead of "The capital of Chad is N'Djamena." is
"The capital of Chad is".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from infinimem.grounding.sentences import sentences, split_speaker
from infinimem.terms import STOP_WORDS, fold

Span = tuple[int, int]
LONGEST = 40
"""Words of a statement that are looked at."""

_WORD = re.compile(r"\w+(?:['’&./-]\w+)*\.?")
_JOINING = frozenset("of the de del von van du da di la le al and & for in to at on a an von der den".split())
"""Words that may stand inside a name, between capitalised ones."""
WORDS = 25
"""Longer texts tell more than one thing."""
_CLITIC = re.compile(r"['’]s\Z")

_PRONOUNS = (
    "me my mine you your yours we us our ours it its they them their theirs he him his she her hers "
    "this these those here there"
).split()
_POINTING = re.compile(
    rf"\b(?:{'|'.join(_PRONOUNS)})\b|(?:\A|: )(?:{'|'.join(map(str.capitalize, _PRONOUNS))})\b"
    r"|(?:\A|: |\b[a-z]\w*[,;]? )I\b"
)
"""Inside a sentence a capital makes a title of it: "The author of It"; "Ardashir I"."""


@dataclass(frozen=True)
class Words:
    """A text as its words."""

    folded: tuple[str, ...]
    capital: tuple[bool, ...]
    function: tuple[bool, ...]
    """Whether a word is a function word, written small (or first)."""
    places: tuple[Span, ...]
    """Where each word stands in the text."""


@lru_cache(maxsize=8192)
def words(text: str) -> Words:
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
        if len(folded) == LONGEST:
            break
    function = tuple(word in STOP_WORDS and (not capital[i] or i == 0) for i, word in enumerate(folded))
    return Words(tuple(folded), tuple(capital), function, tuple(places))


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


def stands_alone(text: str) -> bool:
    """Whether a line is one statement and needs no other: no question, no second sentence, no "I" or "it"."""
    said = text.strip()
    if said.count(" ") >= WORDS or said.endswith(("?", "!")) or said.startswith("#"):
        return False
    return not (_POINTING.search(said) or sum(1 for _ in sentences(said)) > 1)
