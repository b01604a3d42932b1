"""Which remembered lines a prompt deserves. Most prompts are about work and deserve none; silence is better
than noise.

A line counts by the telling words of the prompt that it holds, and by words of the same matter
("indentation", "tabs"; retrieval/kin.txt). Of what was said in the prompt's own project one is enough; of the
rest it takes two, or a code ("GL-0417"), or a rare one where somebody asks briefly for themselves. What was
said in another project counts for nothing, unless it is about the person who said it; neither does what an
assistant said. Of lines that hold the same words only the newest is shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from infinimem.grounding.sentences import common_terms
from infinimem.retrieval.priors import kin
from infinimem.terms import DAYS, MONTHS, Analyzer, tokens

NEEDED, ONE = 1.1, 1.0
"""Weight that a line needs, more than one word has; and where the person asks briefly: one rare word."""
BRIEF = 2
"""Telling words of a brief prompt at most: in its project one word of everyday work is enough."""
RARE, RARE_SHARE = 10, 0.02
"""Lines, evidence too, or their share of all, up to which a word that so many hold is rare."""
KIN, WEAK, WORK, DAY = 0.7, 0.4, 0.5, 0.3
"""Weights of words: of the same matter; not rare, or in what is pasted below the prompt's first line; of
everyday work; a day of the week. A rare word weighs 1, and in its own project any."""
SEVERAL = 2
"""Words of one matter that count beside each other."""

_WORK = """
add api app argument assert branch bug build call case check class client code column command commit config
copy create data default delete dependency directory document edit empty error example exception fail field
file fix folder format function host import index input install issue item json key library line list log loop
machine merge method migration module name null number object open option output package page param
parameter parse path pipeline print project prompt property pull push query refactor release remove rename
replace report repo repository request response return review row run schema script server service setting
setup show source spec sql start state string syntax table task test text tool trace traceback type update
use user utf value variable version view warning web website write
"""
_DAYS = " ".join(DAYS)
_MONTHS = " ".join(MONTHS)
_PERSONAL = re.compile(r"\b(?:I|I['’]\w+|i|i['’]m|my|mine|me)\b|\A\s*(?i:which|where|when|who|whose)\b")
_ON_TEXT = re.compile(
    r"\s*(?:please |can you |could you )?"
    r"(?:summari[sz]e|translate|proofread|rephrase|paraphrase|shorten|explain|tl;?dr)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r'"[^"\n]*"|“[^”\n]*”|`[^`\n]*`')
_CODE = re.compile(r"\b[A-Za-z]{1,5}-\d{2,}\b")


@cache
def _terms(words: str) -> frozenset[str]:
    return frozenset(term for word in words.split() for term in tokens(word))


@cache
def _common() -> frozenset[str]:
    """What tells nothing: function words and common words, but not the names of days and months."""
    return common_terms() - _terms(_DAYS) - _terms(_MONTHS)


@dataclass(frozen=True)
class Asked:
    """What a prompt is about.

    Args:
        terms: its words that can tell something, and how much they are worth.
        codes: such as GL-0417, as terms with a space between.
        personal: whether the person asks for themselves, or says nothing but what to look for.
    """

    terms: Mapping[str, float]
    codes: frozenset[str] = frozenset()
    personal: bool = False

    def needed(self, here: bool) -> float:
        """The weight that a line needs.

        Args:
            here: whether it was said in the prompt's project.
        """
        brief = len(self.terms) <= BRIEF
        if here:
            return WORK if brief else KIN
        if not (self.personal and brief):
            return NEEDED
        return KIN if len(self.terms) == 1 else ONE


def read(prompt: str, cwd: str, words: Analyzer) -> Asked:
    """What a prompt in a folder is about; where it orders work on a text, without that text."""
    codes = frozenset(" ".join(words.tokens(spaced(code))) for code in _CODE.findall(prompt))
    first, _, given = spaced(prompt).strip().partition("\n")
    if _ON_TEXT.match(first):
        first, given = _QUOTED.sub(" ", first), ""
    pasted = {*words.query_terms(given)} - {*words.tokens(cwd)}  # paths of the folder tell nothing
    asked, ordinary = words.query_terms(first), _common()
    if "May" not in first:
        ordinary |= _terms("may")
    terms = dict.fromkeys(sorted(pasted), WEAK) | dict.fromkeys(asked, 1.0)
    terms = {term: worth for term, worth in terms.items() if term not in ordinary and _tells(term)}
    if not terms:  # "what should I not eat?": an everyday word that others belong to
        terms = dict.fromkeys(sorted(kin().keys() & set(asked) - _terms(_WORK)), 1.0)
    bare = terms.keys() == {*words.tokens(prompt)}  # nothing but words to look for
    return Asked(terms, codes, bare or _PERSONAL.search(first) is not None)


def spaced(text: str) -> str:
    """A text whose joined words stand apart."""
    return text.replace("-", " ").replace("_", " ")


def _tells(term: str) -> bool:
    """A word of one or two letters tells nothing in an alphabet, nor does a short number."""
    return not term.isascii() or len(term) > 3 or (len(term) == 3 and not term.isdigit())


def score(
    asked: Asked, line: Sequence[str], here: bool, rare: Callable[[str], bool]
) -> tuple[float, list[str]]:
    """How much a line has to do with a prompt, as a share of what it needs, and the words of it that count.

    Args:
        asked: the prompt.
        line: the terms of the line, in its order.
        here: whether it was said in the prompt's project.
        rare: whether few lines hold a term.
    """
    whole = f" {' '.join(line)} "
    counted = dict.fromkeys(sorted(code for code in asked.codes if f" {code} " in whole))
    weight = NEEDED * len(counted)
    work, passed_over = _terms(_WORK), frozenset[str]() if here else _common()
    for term, worth in asked.terms.items():
        if term in line and term not in passed_over and (here or term not in work):
            weight += worth * _weight(term, here or rare(term))
            counted[term] = None
        elif term not in work:
            told = kin().get(term, frozenset()).intersection(line) - work - passed_over
            found = sorted(told - counted.keys())[: SEVERAL if here else 1]
            weight += worth * KIN * len(found)
            counted.update(dict.fromkeys(found))
    return weight / asked.needed(here), [*counted]


def _weight(term: str, telling: bool) -> float:
    if term in _terms(_DAYS):
        return DAY
    if term in _terms(_WORK):
        return WORK
    return 1.0 if telling or term in _terms(_MONTHS) else WEAK
