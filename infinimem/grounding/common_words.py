"""Words that tell nothing about a topic: common_words.txt."""

from __future__ import annotations

from functools import cache
from importlib import resources

from infinimem.terms import STOP_WORDS, tokens


@cache
def common_terms() -> frozenset[str]:
    """Terms that tell nothing about a topic: function words and common words, stemmed."""
    text = (resources.files("infinimem.grounding") / "common_words.txt").read_text(encoding="utf-8")
    words = [*STOP_WORDS, *text.split()]
    return frozenset(term for word in words for term in tokens(word))
