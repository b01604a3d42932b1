"""Where a statement ends in what it says of its subject: the lead of "The capital of Chad is N'Djamena." is
"The capital of Chad is".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from infinimem.grounding.sentences import sentences, split_speaker
from infinimem.terms import STOP_WORDS, fold

LONGEST = 40
"""Words of a statement that are looked at."""
WORDS = 25
"""Longer texts tell more than one thing."""

_WORD = re.compile(r"\w+(?:['’&./-]\w+)*\.?")
_ENDING = re.compile(r"(?:['’]s)?\.?\Z")
_JOINING = frozenset("of the de del von van du da di la le al and & for in to at on a an von der den".split())
"""Words that may stand inside a name, between capitalised ones."""

_PRONOUNS = (
    "me my mine you your yours we us our ours it its they them their theirs he him his she her hers "
    "this these those here there"
).split()
_POINTING = re.compile(
    rf"\b(?:{'|'.join(_PRONOUNS)})\b|(?:\A|: )(?:{'|'.join(map(str.capitalize, _PRONOUNS))})\b"
    r"|(?:\A|: |\b[a-z]\w*[,;]? )I\b"
)
"""Inside a sentence a capital makes a title of it: "The author of It"; "Ardashir I"."""


def lead(text: str) -> str:
    """A statement without what it ends in, a name or the words after its last function word.

    "The capital of Chad is"; without a speaker before it.
    """
    said = split_speaker(text)[1]
    found = [*islice(_WORD.finditer(said), LONGEST)]
    words = [_ENDING.sub("", match[0]) for match in found]
    for at in range(len(words) - 1, -1, -1):
        if _is_function_word(words, at) and not _inside_name(words, at):
            return said[: found[at].start() + len(words[at])]
    return ""


def _is_function_word(words: Sequence[str], at: int) -> bool:
    """Whether a word is a function word, written small (or first)."""
    return fold(words[at]) in STOP_WORDS and (at == 0 or not _is_capital(words[at]))


def _is_capital(word: str) -> bool:
    return word[:1].isupper() or word[:1].isdigit()


def _inside_name(words: Sequence[str], at: int) -> bool:
    """Whether small words join two capitalised ones: "University of the Arts"."""
    before = after = at
    while before >= 0 and fold(words[before]) in _JOINING and _is_function_word(words, before):
        before -= 1
    while after < len(words) and fold(words[after]) in _JOINING and _is_function_word(words, after):
        after += 1
    return 0 <= before < at < after < len(words) and _is_capital(words[before]) and _is_capital(words[after])


def stands_alone(text: str) -> bool:
    """Whether a line is one statement and needs no other: no question, no second sentence, no "I" or "it"."""
    said = text.strip()
    if said.count(" ") >= WORDS or said.endswith(("?", "!")) or said.startswith("#"):
        return False
    return not (_POINTING.search(said) or sum(1 for _ in sentences(said)) > 1)
