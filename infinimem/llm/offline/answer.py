"""Answering without a model: the lines that come closest are quoted, and that is said.

Lines are compared with the question by the words that they share, rare ones first. Of lines that say the same
of the same thing but for one place ("lives in Lisbon", "lives in Porto") the newest is quoted and the older
ones are not.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Any

from infinimem.grounding.sentences import split_speaker, strip_ordinal
from infinimem.llm.offline.lexicon import names, vocatives
from infinimem.retrieval.priors import kin
from infinimem.terms import MONTHS, STOP_WORDS, fold, query_terms, tokens

QUOTED = "No model was asked; what memory holds closest to the question, quoted:"
CLOSEST = "xxxx"
NOTHING = (
    "Memory holds nothing about this (no model was asked; no line shares a telling word with the question)."
)
LINES = 3
FLOOR = 0.5
"""Of the best line's score, what another one needs to be quoted."""
SHARED = 3
"""Words that two lines must have in common to be about the same thing."""
ALIKE, RELATED, CALLED = 0.7, 0.35, 0.1
"""Shares of a term's weight: found as a longer or shorter form, as a kin word, as a name that is called."""
ASKING = 0.8
"""A line that asks is worth less than one that tells."""

_WORD = re.compile(r"\w+(?:['’.-]\w+)*")


@dataclass(frozen=True)
class _Line:
    id: str
    time: str
    text: str

    @property
    def age(self) -> tuple[str, tuple[int, str]]:
        """Grows with recency."""
        return self.time, ((int(self.id), "") if self.id.isdecimal() else (-1, self.id))

    @property
    def said(self) -> str:
        return split_speaker(strip_ordinal(self.text))[1]


def answer(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `answer`; more is never asked for."""
    searching: dict[str, Any] = {"calls": []} if "calls" in variables else {}
    rows = (row for doc in variables["evidence"] for row in doc["lines"])
    lines = [
        _Line(row["id"], row.get("time") or "", ": ".join(filter(None, (row.get("speaker"), row["text"]))))
        for row in rows
        if "text" in row
    ]
    found = _current(_ranked(variables["question"], lines))
    if not found:
        return {"answer": NOTHING, "cites": [], **searching}
    quoted = [line for line, score in found if score >= FLOOR * found[0][1]][:LINES]
    told = "\n".join(f"- {line.text}{f' ({line.time})' if line.time else ''}" for line in quoted)
    return {"answer": f"{QUOTED}\n{told}", "cites": [line.id for line in quoted], **searching}


# ── how close a line is ─────────────────────────────────────────────────────────────────────────

Ranked = list[tuple[_Line, float, frozenset[str]]]
"""Lines with their scores and the question's terms that they hold, the closest first."""


def _ranked(question: str, lines: Sequence[_Line]) -> Ranked:
    """The lines that share more with a question than people's names, unless it holds nothing else."""
    terms = query_terms(question)
    people = frozenset(term for name in names(question) for term in tokens(name))
    spread = Counter(term for line in lines for term in set(tokens(strip_ordinal(line.text))))
    weights = {term: math.log(1 + (len(lines) + 1) / (1 + spread[term])) for term in terms}
    ranked: Ranked = []
    for line in lines:
        found = {term: share * weights[term] for term, share in _shares(line, terms, people).items()}
        if found.keys() - people or (found and people >= set(terms)):
            length = sum(1 for term in set(tokens(line.said)) if term not in _stop_terms())
            # Of two lines with the same words the one that says less besides is closer.
            score = sum(found.values()) * (1 + 0.15 * len(found) / (len(found) + length))
            asks = line.said.rstrip().endswith("?")
            ranked.append((line, score * (ASKING if asks else 1), frozenset(found)))
    return sorted(ranked, key=lambda item: -item[1])


def _shares(line: _Line, terms: Iterable[str], people: frozenset[str]) -> dict[str, float]:
    """How well each of the question's terms is found in a line, its speaker's name or its date."""
    said = frozenset(tokens(line.said))
    beside = frozenset(tokens(split_speaker(strip_ordinal(line.text))[0] + " " + _date(line.time[:10])))
    called = people.intersection(term for name in vocatives(line.said) for term in tokens(name))
    kept: dict[str, float] = {}
    for term in terms:
        if term in said or term in beside:
            kept[term] = CALLED if term in called and term in said else 1.0
        elif len(term) > 4 and any(_is_form(term, other) for other in said):
            kept[term] = ALIKE
        elif said & kin().get(term, frozenset()):
            kept[term] = RELATED
    return kept


def _is_form(one: str, other: str) -> bool:
    """ "citizen" and "citizenship": the shorter begins the longer."""
    return len(other) > 4 and (one.startswith(other) or other.startswith(one))


def _date(day: str) -> str:
    """A date as people ask for it: its year, month and day."""
    try:
        return f"{MONTHS[date.fromisoformat(day).month - 1]} {day}"
    except ValueError:
        return ""


@cache
def _stop_terms() -> frozenset[str]:
    return frozenset(term for word in STOP_WORDS for term in tokens(fold(word)))


# ── what holds now ──────────────────────────────────────────────────────────────────────────────


def _current(ranked: Ranked) -> list[tuple[_Line, float]]:
    """The lines with every group of rivals replaced by its newest, at the place of its best."""
    current: Ranked = []
    for line, score, terms in ranked:
        rivals = (i for i, (other, _, held) in enumerate(current) if _rivals(line, other, terms, held))
        same = next(rivals, None)
        if same is None:
            current.append((line, score, terms))
        elif line.age > current[same][0].age:
            current[same] = (line, score, terms)
    return [(line, score) for line, score, _ in current]


def _rivals(one: _Line, other: _Line, terms: frozenset[str], held: frozenset[str]) -> bool:
    """Whether two lines differ in one place only, and that place is what the question asks for."""
    if terms != held or split_speaker(one.text)[0] != split_speaker(other.text)[0]:
        return False
    first, second = _words(one), _words(other)
    head = _common(first, second)
    tail = _common(first[head:][::-1], second[head:][::-1])
    if head + tail < SHARED:
        return False
    shared = {term for word in {*first[:head], *first[len(first) - tail :]} for term in tokens(word)}
    return 2 * len(terms & shared) > len(terms)


def _words(line: _Line) -> list[str]:
    return _WORD.findall(fold(strip_ordinal(split_speaker(line.text)[1])))


def _common(one: Iterable[str], other: Iterable[str]) -> int:
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count
