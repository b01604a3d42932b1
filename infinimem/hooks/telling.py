"""Which remembered lines a prompt deserves. Most prompts are about work and deserve none; silence is better
than noise.

A line counts by the telling words of the prompt that it holds, and by words of the same matter
("indentation", "tabs"; retrieval/kin.txt). Of what was said in the prompt's own project one is enough, and
words of everyday work count for half. Of the rest it takes a rare word where the person asks for themselves
or for somebody by name, else two. What was said in another project counts for nothing, unless it is about the
person who said it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache

from infinimem.grounding.sentences import common_terms
from infinimem.retrieval.priors import kin
from infinimem.terms import MONTHS, Analyzer, tokens

NEEDED, NEEDED_HERE, MORE = 1.0, 0.6, 0.5
"""Weight that a line needs; one of the prompt's own project, or any where the person asks briefly (of a brief
prompt in its project one word of work is enough); and what it needs besides for a long prompt, for one about
work, and where nobody asks for themselves or by a name."""
BRIEF, LONG = 2, 3
"""Telling words of a brief prompt, at most; of one that is not long."""
ABOUT_WORK = 2
"""Words of everyday work in a prompt that is about work."""
RARE, RARE_SHARE = 10, 0.02
"""Lines, evidence too, or their share of all, up to which a word that so many hold is rare."""
FREQUENT, KIN, GIVEN, WORK, DAY, AGAIN = 0.6, 0.6, 0.6, 0.5, 0.3, 1.5
"""Weights of words: not rare, or a name; of the same matter; in what is pasted below the prompt's first line;
of everyday work; a day of the week; said more than once. A rare word weighs 1, and in its own project any."""
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
_ORDER = re.compile(r"\b(?:tell|show|give|help|let|find|ask|for) me\b", re.IGNORECASE)
_ON_TEXT = re.compile(
    r"\s*(?:please |can you |could you )?(?:summari[sz]e|translate|proofread|rephrase|paraphrase|shorten)\b",
    re.IGNORECASE,
)
_GENERAL = re.compile(
    r"\s*(?:what(?:['’]s| is| are| does| do)?|who|define|explain|how many|how much|write|when did|why do)\b",
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
        general: whether it asks for what everybody knows.
    """

    terms: Mapping[str, float]
    names: frozenset[str] = frozenset()
    personal: bool = False
    general: bool = False

    def needed(self, words: Collection[str], here: bool) -> float:
        """The weight that a line needs.

        Args:
            words: that the line shares with the prompt.
            here: whether it was said in the prompt's project.
        """
        brief = len(self.terms) <= BRIEF
        if here or (self.personal and brief):
            return WORK if here and brief else NEEDED_HERE
        somebody = self.personal or not self.names.isdisjoint(words)
        work = len(_terms(_WORK).intersection(self.terms)) >= ABOUT_WORK
        return NEEDED + MORE * ((len(self.terms) > LONG or work) + (not somebody) * (1 + self.general))


def read(prompt: str, cwd: str, words: Analyzer) -> Asked:
    """What a prompt in a folder is about; of an order to work on a text that follows, nothing."""
    if _ON_TEXT.match(prompt):
        return Asked({})
    first, _, given = prompt.strip().partition("\n")
    asked, ordinary = words.query_terms(first), _common()
    pasted = set(words.query_terms(given)) - {*words.tokens(cwd)}  # paths of the folder tell nothing
    terms = dict.fromkeys(sorted(pasted), GIVEN) | dict.fromkeys(asked, 1.0)
    repeated = {term for term, times in Counter(words.tokens(prompt)).items() if times > 1}
    terms |= dict.fromkeys((terms.keys() & repeated) - _terms(_WORK), AGAIN)
    terms = {term: weight for term, weight in terms.items() if term not in ordinary and _tells(term)}
    if not terms:  # "what should I not eat?": an everyday word that others belong to
        terms = dict.fromkeys(kin().keys() & set(asked) - _terms(_WORK), 1.0)
    names = frozenset(term for name in _NAME.findall(prompt) for term in words.tokens(name))
    names -= ordinary | _terms(_DAYS) | _terms(_MONTHS)
    bare = terms.keys() == {*words.tokens(prompt)}  # nothing but words to look for
    personal = bare or _PERSONAL.search(_ORDER.sub("", first)) is not None
    return Asked(terms, names, personal, _GENERAL.match(first) is not None)


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
            weight += min(worth, 1.0) * KIN * len(found)
            counted.update(dict.fromkeys(found))
    return weight / asked.needed(counted, here), [*counted]


def _weight(term: str, telling: bool) -> float:
    if term in _terms(_DAYS):
        return DAY
    if term in _terms(_WORK):
        return WORK
    return 1.0 if telling or term in _terms(_MONTHS) else FREQUENT
