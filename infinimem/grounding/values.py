"""What has one value at a time, and which value a statement gives it.

"The capital of Chad is N'Djamena." gives one to the capital of Chad; Ana's "I moved to Porto." one to where
Ana lives. Only shapes of sentences are known, English ones, in which a second value makes the first untrue:
whoever is in a list of singers may be in another, whoever is married to somebody is not to somebody else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from infinimem.grounding.sentences import Said, sentences, strip_ordinal
from infinimem.grounding.statements import lead, stands_alone
from infinimem.terms import STOP_WORDS, fold, tokens

SURE, LIKELY, OPEN = 0.95, 0.9, 0.7
"""That another value replaces this one: the words have room for one, they mostly have, they may have two."""
LONGEST = 2000
"""Characters of a text that is looked at; one that sets a value is short."""

_PLACE = r"(?: the [a-z]+ of)?"
_WAS = r"(?:is|was|are|were)"
_IS = r"(?:is|are)"
_TAILS = (
    (
        SURE,
        rf"{_WAS} born (?:in|on){_PLACE}|died (?:in|on){_PLACE}|{_IS} married to|plays the position of"
        rf"|{_IS} (?:located|based|headquartered|situated) in{_PLACE}|{_IS} led by"
        rf"|{_IS} (?:affiliated|associated) with the (?:religion|sport) of"
        rf"|{_WAS} (?:founded|created|made|established|formed|written) in{_PLACE}",
    ),
    (
        LIKELY,
        rf"{_IS} a citizen of|speaks the language of|{_IS} (?:employed|owned) by"
        rf"|{_WAS} (?:founded|created|developed|performed|produced|written|directed) by",
    ),
    (OPEN, rf"work(?:s|ed) in{_PLACE}|{_IS} famous for|child {_IS}"),
)
"""How the part of a statement before its value ends. "Was married to" leaves room for another one."""
_DEFINITE = re.compile(
    rf"(?:the|[^\W\d_][\w .&'’-]*(?:'s|’s)) (?P<what>[\w -]+?)(?: (?:of|that|where|in|for) .+)? {_IS}"
)
"""The author of Emma is, Kenya's capital is; the value is a name."""
_KINDS = frozenset(
    "language sport religion position type kind genre colour color status job title occupation profession "
    "currency".split()
)
"""What may have a value that is written small."""
_MANY = frozenset("child son daughter sibling brother sister friend member one best problem reason".split())
"""Of which there may be two."""
_OWN = re.compile(
    r"""my\ (?:new\ |current\ )?(?P<what>
      favou?rite\ [a-z]+ | (?:phone\ |cell\ |home\ |work\ |e-?mail\ |office\ |street\ )?(?:number|address)
    | e-?mail | (?:first\ |last\ |full\ |middle\ )?name | birthday | age | job\ title | employer | boss
    | manager | doctor | dentist | therapist | landlord | major | hometown)\ is(?:\ now)?""",
    re.VERBOSE,
)

_NAME = r"[A-Z][\w'’-]*(?: (?:of |de |the )?[A-Z][\w'’-]*){0,3}"
_SINCE = (
    r"(?=\s*$|[.!,;]|\s(?:now|last|this|yesterday|today|recently|and|with|for good|a (?:week|month|year)"
    r"|(?:two|three|four|\d+) (?:days|weeks|months|years) ago|in (?:\d{4}|[A-Z]))\b)"
)
"""What may follow: not "for a week", not "when I was small"."""
_OPENERS = r"(?:(?:[Ss]o|[Ww]ell|[Aa]nd|[Oo]h|[Yy]es|[Yy]eah|[Bb]y the way|[Bb]tw|[Gg]uess what)[,!:]? )*"
_HAS = (
    r"(?:['’](?:ve|m|s)| have| has| am| is)?"
    r"(?: been| just| recently| finally| now| currently| actually| also)*"
)
_WHO = rf"{_OPENERS}(?P<who>I|[A-Z][\w'’-]*){_HAS}"
_LIVES = re.compile(
    rf"{_WHO} (?:lives? in|living in|moved (?:back )?to|relocated to) (?P<value>{_NAME}){_SINCE}"
)
_WORKS = re.compile(
    rf"{_WHO} (?:works? (?:at|for)|working (?:at|for)"
    rf"|started (?:working |a new job |(?:my|his|her) new job )(?:at|for|with)) (?P<value>{_NAME}){_SINCE}"
)
_CHANGED = re.compile(r"\b(?:just|now|finally|recently|currently|moved|relocated|started)\b")
"""Words that tell that it was otherwise before."""


class Value(NamedTuple):
    """A value that a text gives to something.

    `of` says to what, equal in all wordings that are known; `sure` how surely another value replaces it.
    """

    of: tuple[str, ...]
    text: str
    sure: float

    def differs(self, other: Value) -> bool:
        """Whether both cannot be true: "Boston" and "Boston, Massachusetts" can."""
        one, two = frozenset(tokens(self.text)), frozenset(tokens(other.text))
        return self.of == other.of and not one <= two and not two <= one


def values(said: Said) -> list[Value]:
    """The values that a text gives."""
    if len(said.text) > LONGEST:
        return []
    return [*_stated(said), *_told(said)]


def _stated(said: Said) -> Iterator[Value]:
    """What a text states that is one statement about somebody or something else."""
    text = strip_ordinal(said.text)
    if not stands_alone(text):
        return
    before = lead(text)
    value = text[len(before) :].strip().rstrip(".").strip()
    if not before or not _tells(value):
        return
    folded = fold(before)
    sure = next((sure for sure, tail in _tails() if tail.search(folded)), None)
    if sure is None and (found := _DEFINITE.fullmatch(folded)):
        what = found["what"].split()
        named = value[0].isupper()  # a number may have been measured on its day
        if not _MANY.intersection(what) and (named or _KINDS.intersection(what)):
            sure = SURE
    if sure is not None:
        yield Value(("states", *folded.split()), value, sure)


def _told(said: Said) -> Iterator[Value]:
    """What somebody tells of where they live, where they work, and what is theirs."""
    for sentence in sentences(said.text):
        if sentence.endswith("?"):
            continue
        for what, pattern in (("home", _LIVES), ("work", _WORKS)):
            if found := pattern.match(sentence):
                sure = LIKELY if _CHANGED.search(sentence, 0, found.end() + len(" now")) else OPEN
                who = fold(said.speaker if found["who"] == "I" else found["who"])
                yield Value((what, who), found["value"], sure)
        if not fold(sentence[:3]).startswith("my"):
            continue
        before = lead(sentence)
        if own := _OWN.fullmatch(fold(before)):
            value = sentence[len(before) :].strip(" .!")
            if _tells(value) and (value[0].isupper() or value[0].isdigit()):
                yield Value(("own", fold(said.speaker), own["what"]), value, LIKELY)


def _tells(value: str) -> bool:
    return bool(value) and any(fold(word) not in STOP_WORDS for word in value.split()) and bool(tokens(value))


@cache
def _tails() -> tuple[tuple[float, re.Pattern[str]], ...]:
    return tuple((sure, re.compile(rf"(?:\A|.*[^\w])(?:{tail})\Z")) for sure, tail in _TAILS)
