"""Which remembered lines a prompt deserves. Most prompts are about work and deserve none; silence is better
than noise.

A line counts by the telling words of the prompt that it holds, and by words of the same matter
("indentation", "tabs"; retrieval/kin.txt). Of what was said in the prompt's own project one is enough, and
words of everyday work count for half. Of the rest it takes a rare word where the person asks for themselves
or for somebody by name, else two. What was said in another project counts for nothing, unless it is about the
person who said it. Of lines that hold the same words only the newest is shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache

from infinimem.grounding.sentences import common_terms
from infinimem.retrieval.priors import kin
from infinimem.terms import MONTHS, Analyzer, tokens

NEEDED, LITTLE, MORE = 1.0, 0.6, 0.5
"""Weight that a line needs; one of the prompt's own project, or any where the person asks briefly (of a brief
prompt in its project one word of work is enough); and what it needs besides for a long prompt, and where
nobody asks for themselves or by a name."""
BRIEF = 2.5
"""Telling words of a brief prompt at most, where a day of the week counts as much as it weighs."""
RARE, RARE_SHARE = 10, 0.02
"""Lines, evidence too, or their share of all, up to which a word that so many hold is rare."""
WEAK, WORK, DAY = 0.6, 0.5, 0.3
"""Weights of words: not rare, a name, of the same matter, or in what is pasted below the prompt's first line;
of everyday work; a day of the week. A rare word weighs 1, and in its own project any."""
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
_DAYS = "monday tuesday wednesday thursday friday saturday sunday"
_MONTHS = " ".join(MONTHS)
_PERSONAL = re.compile(r"\b(?:I|I['’]\w+|i|i['’]m|my|mine|me)\b|\A\s*(?i:which|where|when|whose)\b")
_ON_TEXT = re.compile(
    r"\s*(?:please |can you |could you )?(?:summari[sz]e|translate|proofread|rephrase|paraphrase|shorten)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<=[\w,;:] )[A-Z][a-z]\w*")


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
        names: those that are written as names.
        personal: whether the person asks for themselves, or says nothing but what to look for.
    """

    terms: Mapping[str, float]
    names: frozenset[str] = frozenset()
    personal: bool = False

    def needed(self, words: Collection[str], here: bool) -> float:
        """The weight that a line needs.

        Args:
            words: that the line shares with the prompt.
            here: whether it was said in the prompt's project.
        """
        long = sum(DAY if term in _terms(_DAYS) else 1 for term in self.terms) > BRIEF
        if here:
            return LITTLE if long else WORK
        if self.personal:
            return NEEDED + MORE if long else LITTLE
        return NEEDED + MORE * (long + self.names.isdisjoint(words))


def read(prompt: str, cwd: str, words: Analyzer) -> Asked:
    """What a prompt in a folder is about; where it orders work on a text that follows, without that text."""
    first, _, given = prompt.strip().partition("\n")
    pasted = set() if _ON_TEXT.match(first) else set(words.query_terms(given))
    pasted -= {*words.tokens(cwd)}  # paths of the folder tell nothing
    asked, ordinary = words.query_terms(first), _common()
    if "May" not in first:
        ordinary |= _terms("may")
    terms = dict.fromkeys(sorted(pasted), WEAK) | dict.fromkeys(asked, 1.0)
    terms = {term: worth for term, worth in terms.items() if term not in ordinary and _tells(term)}
    if not terms:  # "what should I not eat?": an everyday word that others belong to
        terms = dict.fromkeys(kin().keys() & set(asked) - _terms(_WORK), 1.0)
    names = frozenset(term for name in _NAME.findall(prompt) for term in words.tokens(name))
    names -= ordinary | _terms(_DAYS) | _terms(_MONTHS)
    bare = terms.keys() == {*words.tokens(prompt)}  # nothing but words to look for
    return Asked(terms, names, bare or _PERSONAL.search(first) is not None)


def _tells(term: str) -> bool:
    """A word of one or two letters tells nothing in an alphabet, nor does a short number."""
    return not term.isascii() or len(term) > 3 or (len(term) == 3 and not term.isdigit())


def score(
    asked: Asked, line: Collection[str], here: bool, rare: Callable[[str], bool]
) -> tuple[float, list[str]]:
    """How much a line has to do with a prompt, as a share of what it needs, and the words of it that count.

    Args:
        asked: the prompt.
        line: the terms of the line.
        here: whether it was said in the prompt's project.
        rare: whether few lines hold a term.
    """
    weight, counted = 0.0, dict[str, None]()
    work, passed_over = _terms(_WORK), frozenset[str]() if here else _common()
    for term, worth in asked.terms.items():
        if term in line and term not in passed_over and (here or term not in work):
            weight += worth * _weight(term, here or (term not in asked.names and rare(term)))
            counted[term] = None
        elif term not in work:
            told = kin().get(term, frozenset()).intersection(line) - work - passed_over
            found = sorted(told - counted.keys())[:SEVERAL]
            weight += worth * WEAK * len(found)
            counted.update(dict.fromkeys(found))
    return weight / asked.needed(counted, here), [*counted]


def _weight(term: str, telling: bool) -> float:
    if term in _terms(_DAYS):
        return DAY
    if term in _terms(_WORK):
        return WORK
    return 1.0 if telling or term in _terms(_MONTHS) else WEAK
