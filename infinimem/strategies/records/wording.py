"""How much the texts of some records have in common, each word by how few of them hold it: a name that most
hold tells nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from math import log

from infinimem.terms import query_terms


class Wording:
    """Compares some texts.

    Args:
        texts: by the names of their records.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._terms = {name: frozenset(query_terms(text)) for name, text in texts.items()}
        held = Counter(term for terms in self._terms.values() for term in terms)
        self._weights = {term: log(len(texts) / count) for term, count in held.items()}

    def __contains__(self, name: str) -> bool:
        return name in self._terms

    def shared(self, one: str, other: str) -> float:
        """The share that they have in common of what the one that says less says; 0 to 1."""
        least = min(self._weight(self._terms[one]), self._weight(self._terms[other]))
        return self._weight(self._terms[one] & self._terms[other]) / least if least else 0.0

    def _weight(self, terms: Set[str]) -> float:
        return sum(self._weights[term] for term in sorted(terms))
