"""A unit's descriptor: a summary and keywords, cleaned and within bounds, and whether the evidence bears it.

Source: All-Mem, Appendix B.5 (present and within length limits) and C.3.1 (keyword normalisation).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from infinimem.grounding.claims import unsupported
from infinimem.markdown.characters import clean_text, one_line
from infinimem.strategies.records.record import Quote

SUMMARY = 600
"""Characters of a summary."""
KEYWORDS = 12
KEYWORD = 60
"""Characters of a keyword."""
UNDESCRIBED = 200
"""Characters of the evidence that stand in where a model gave no descriptor."""


@dataclass(frozen=True)
class Descriptor:
    """What a unit is found by; regenerable."""

    summary: str
    keywords: tuple[str, ...]

    @property
    def fault(self) -> str | None:
        """Why it may not be applied: "EMPTY" or "TOO_LONG"; None where it may."""
        if not self.summary or not self.keywords:
            return "EMPTY"
        long = len(self.summary) > SUMMARY or any(len(word) > KEYWORD for word in self.keywords)
        return "TOO_LONG" if long or len(self.keywords) > KEYWORDS else None

    def cut(self) -> Descriptor:
        """Within bounds."""
        words = dict.fromkeys(word[:KEYWORD].rstrip() for word in self.keywords)
        return Descriptor(self.summary[:SUMMARY].rstrip(), tuple(words)[:KEYWORDS])


def descriptor(summary: str, keywords: Iterable[str]) -> Descriptor:
    """What a model gave, each part on one line; blank keywords and repetitions, but for case, go."""
    words: dict[str, str] = {}
    for word in map(_clean, keywords):
        if word:
            words.setdefault(word.casefold(), word)
    return Descriptor(_clean(summary), tuple(words.values()))


def _clean(text: str) -> str:
    return " ".join(one_line(clean_text(text)).split())


def undescribed(text: str) -> Descriptor:
    """What stands in where a model left a turn out: its beginning."""
    return Descriptor(_clean(text[: 2 * UNDESCRIBED])[:UNDESCRIBED].rstrip(), ())


def unverified(found: Descriptor, quotes: Iterable[Quote]) -> bool:
    """Whether it claims a name, a number, a quotation or a negation that its evidence does not hold."""
    origins = [part for said in quotes for part in (said.text, said.speaker or "", said.time or "") if part]
    return bool(unsupported("\n".join((found.summary, *found.keywords)), origins))
