"""Words of everyday questions whose answers use another one: "Where does she live?" - "I moved to Lisbon."

A short list by hand, in English; it helps where a question's own words find nothing, and never outranks them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from infinimem.terms import tokens

_GROUPS = """
live move home house address reside settle based
job work employ employer career company profession occupation
like love enjoy favorite favourite prefer fan
born birth birthday
marry married wife husband spouse wedding partner
child kid son daughter
name call
buy purchase get bought
drink coffee tea
eat food meal dish
trip travel visit vacation holiday went
start begin began join
hobby free pastime
read book author
allergic allergy
"""


@cache
def kin() -> Mapping[str, frozenset[str]]:
    """Each term of everyday questions with those that answers use in its place."""
    groups = [
        frozenset(term for word in row.split() for term in tokens(word)) for row in _GROUPS.split("\n") if row
    ]
    return {
        term: frozenset().union(*(g for g in groups if term in g)) - {term}
        for group in groups
        for term in group
    }


def related(terms: Iterable[str]) -> list[str]:
    """The kin of some terms, sorted; empty where they have none."""
    return sorted({other for term in terms for other in kin().get(term, ())})
