"""Where a text turns to something unrelated. In doubt it does not: a story or an argument stays whole.

A turn is one only where the writer says so ("By the way, …") or begins a new paragraph, and where what comes
before and after has no telling word in common, nor words that are kin, nor a pronoun that points back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import islice, pairwise

from infinimem.grounding.sentences import sentences
from infinimem.llm.offline.lexicon import content_terms, fact_text
from infinimem.llm.offline.summary import states
from infinimem.llm.offline.topics import continues
from infinimem.retrieval.synonyms import kin
from infinimem.terms import STOP_WORDS, tokens

WORDS, TERMS = 10, 3
"""Of a part that could stand alone, where the writer announces the turn: words, and telling ones of them."""
PARAGRAPH_WORDS, PARAGRAPH_TERMS = 30, 8
"""The same for paragraphs, whose break alone announces nothing."""
LONGEST = 20_000
"""Characters; in longer texts a turn is not looked for."""
MOST = 4
"""Parts of a text."""
PLACES = 40
"""Where a turn is looked for; a text with more of them is a list of something."""
COVERED = 0.8
"""Of a text, what its parts hold at least; else it is mostly white space."""

_ANNOUNCED = re.compile(
    r"""(?:oh|and|also|so|ok|okay|anyway|well)?[,!….\ ]*(?:and\ )?
    (?:by\ the\ way | btw | incidentally | in\ other\ news
    | (?:to\ change|changing)\ (?:the\ )?(?:subject|topics?) | switching\ (?:topics?|gears)
    | on\ (?:another|an?\ (?:\w+\ )?(?:different|unrelated|separate|other))\ (?:note|topic|subject|matter)
    )\b[\W_]*""",
    re.IGNORECASE | re.VERBOSE,
)
_POINTS = re.compile(
    r"\b(?:it|its|that|this|these|those|they|them|their|there|he|him|his|she|her|hers|one|ones|another|also"
    r"|too|as well|same|such|speaking of|then|which)\b",
    re.IGNORECASE,
)
_GOES_ON = re.compile(
    r"(?:after|before|later|next|then|finally|when|while|once|as|so|but|and|or|however|still|meanwhile|first"
    r"|second|third|also|in|on|at|by|the|because|since|for|if|overall|another|other|what|why|how)\b",
    re.IGNORECASE,
)
"""How a paragraph begins that goes on with the one before."""
_SAYING_LITTLE = """
advice best big check come consider day definitely excite excited feel felt find found give go going good
got great heard help helpful idea keep know lately like little look looking lot love made make month much
need new plan planning really recently recommend recommendation recommendations said say see start started
suggestion suggestions sure take tell thank thanks thing things think thinking thought time times tip tips
today tomorrow took tried try trying use using want wanted way week well went wonder wondering work year
yesterday
"""
"""Words that two parts may share and be about different things."""
_MARKUP = re.compile(r"^[ \t]*(?:[-*+•>|#]|\d+[.)]|```)|\*\*|:[ \t]*$", re.MULTILINE)
"""Lists, tables, headings: parts of a whole whatever their words."""
_BREAK = re.compile(r"\n\s*\n\s*")


def parts(text: str) -> list[str]:
    """A text cut where it turns to something unrelated.

    Returns:
        Pieces of the text in their order, without the white space around them; the whole text alone if it
        stays together.
    """
    cuts = [0, *_cuts(text), len(text)]
    found = [text[start:end].strip() for start, end in pairwise(cuts)]
    return found if len(found) > 1 and sum(map(len, found)) >= COVERED * len(text) else [text]


def announced(part: str) -> bool:
    """Whether a part begins with words that announce a turn."""
    return _ANNOUNCED.match(part) is not None


def _cuts(text: str) -> Iterator[int]:
    if len(text) > LONGEST or _MARKUP.search(text):
        return
    last, count = 0, 1
    for at in islice(_places(text), PLACES):
        if count < MOST and _turns(text[last:at], text[at:]):
            yield at
            last, count = at, count + 1


def _places(text: str) -> Iterator[int]:
    """Where a turn is possible."""
    at = 0
    for paragraph in _BREAK.split(text):
        for number, sentence in enumerate(sentences(paragraph)):
            start = text.index(sentence, at)
            if at and (not number or announced(sentence)):
                yield start
            at = start + len(sentence)


def _turns(before: str, after: str) -> bool:
    """Whether what comes after is about something else."""
    before, after = fact_text(before).strip(), fact_text(after).strip()
    opening = _ANNOUNCED.match(after)
    rest = after[opening.end() :] if opening else after
    told = [sentence for sentence in sentences(rest) if not sentence.endswith("?")]
    if not told or not any(states(sentence) for sentence in told):
        return False
    first = next(sentences(rest))
    if _POINTS.search(first) or continues(first) or (not opening and _GOES_ON.match(first)):
        return False
    words, terms = (WORDS, TERMS) if opening else (PARAGRAPH_WORDS, PARAGRAPH_TERMS)
    one, two = set(content_terms(before)), set(content_terms(rest))
    if min(len(before.split()), len(rest.split())) < words or min(len(one), len(two)) < terms:
        return False
    if _told(before) & _told(rest):
        return False
    return not any(_akin(a, b) for a in one for b in two)


def _told(text: str) -> set[str]:
    """All terms but those that say next to nothing: what titles no topic may still tie two parts."""
    return set(tokens(text)) - _little()


@cache
def _little() -> frozenset[str]:
    return frozenset(term for word in [*STOP_WORDS, *_SAYING_LITTLE.split()] for term in tokens(word))


def _akin(one: str, other: str) -> bool:
    """Whether two terms are forms of a word, or words of one thing."""
    if one == other or other in kin().get(one, ()) or one in kin().get(other, ()):
        return True
    short, long = sorted((one, other), key=len)
    return len(short) > 3 and long.startswith(short)
