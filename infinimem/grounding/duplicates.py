"""Facts that say the same as another one. Only what the law would let pass is claimed, and less than that."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from infinimem.grounding.claims import is_duplicate
from infinimem.grounding.sentences import common_terms
from infinimem.markdown.characters import normalised
from infinimem.model import SOURCES
from infinimem.terms import tokens

Fact = Mapping[str, Any]

TODAY = re.compile(
    r"\b(?:today|yesterday|tomorrow|tonight|now|just|last|next|this|ago|recently|currently|again|already|still"
    r"|morning|evening|afternoon)\b",
    re.IGNORECASE,
)
"""Words by which the same sentence means something else on another day."""


def find_duplicates(facts: Iterable[Fact]) -> list[dict[str, str]]:
    """Pairs {"discarded", "kept"} for every fact that repeats another.

    Of a group the most trusted stays, then the one with the highest id.
    """
    equal: dict[tuple[str, ...], list[Fact]] = {}
    for fact in facts:
        equal.setdefault(_said(fact), []).append(fact)
    near: dict[tuple[str, ...], list[list[Fact]]] = {}
    for group in equal.values():
        rivals = near.setdefault(_key(group[0]["text"]), [])
        for rival in rivals:
            if _same(group[0], rival[0]):
                rival += group
                break
        else:
            rivals.append(group)
    pairs = []
    for group in (group for rivals in near.values() for group in rivals):
        *rest, kept = sorted(group, key=_rank)
        pairs += [{"discarded": fact["id"], "kept": kept["id"]} for fact in rest]
    return pairs


def number(fact_id: str) -> tuple[int, str]:
    """Sort key of an id: seqs as numbers, whatever else by its text."""
    return (int(fact_id), "") if fact_id.isdecimal() else (-1, fact_id)


def _key(text: str) -> tuple[str, ...]:
    """The telling terms in their order: near duplicates share them all, "A beat B" and "B beat A" do not."""
    terms: Sequence[str] = tokens(text)
    return tuple(term for term in terms if term not in common_terms()) or tuple(terms) or (text,)


def _said(fact: Fact) -> tuple[str, ...]:
    """Equal for facts of the same words, the same person and, where the words depend on it, the same time."""
    text = fact["text"]
    when = str(fact.get("time")) if TODAY.search(text) else ""
    return normalised(text) or text, str(fact.get("speaker")), when


def _same(one: Fact, other: Fact) -> bool:
    """Whether two facts differ in wording only."""
    return _said(one)[1:] == _said(other)[1:] and is_duplicate(one["text"], other["text"])


def _rank(fact: Fact) -> tuple[int, tuple[int, str]]:
    source = fact.get("source", "user")
    return (SOURCES.index(source) if source in SOURCES else 0, number(fact["id"]))
