"""Answering without a model: the lines that come closest are quoted, and that is said.

Of lines that say the same of the same thing but for one place ("lives in Lisbon", "lives in Porto") the
newest is quoted and the older ones are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from infinimem.grounding.duplicates import number
from infinimem.grounding.sentences import split_speaker, strip_ordinal
from infinimem.llm.offline.relevance import Match, Question
from infinimem.terms import fold, tokens

QUOTED = "No model was asked; what memory holds closest to the question, quoted:"
NOTHING = (
    "Memory holds nothing about this (no model was asked; no line shares a telling word with the question)."
)
LINES = 3
FLOOR = 0.5
"""Of the best line's score, what another one needs to be quoted."""
SHARED = 3
"""Words that two lines must have in common to be about the same thing."""

_HEADING = re.compile(r"#{1,6} ")
_WORD = re.compile(r"\w+(?:['’.-]\w+)*")


@dataclass(frozen=True)
class _Line:
    id: str
    time: str
    text: str
    match: Match
    rank: int

    @property
    def age(self) -> tuple[str, tuple[int, str]]:
        """Grows with recency."""
        return self.time, number(self.id)


def answer(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `answer`."""
    rows = [
        line for doc in variables["evidence"] for line in doc["lines"] if not _HEADING.match(line["text"])
    ]
    question = Question(variables["question"], (row["text"] for row in rows))
    lines = [_line(row, rank, question) for rank, row in enumerate(rows)]
    lines = [line for line in lines if question.telling(line.match.terms)]
    lines.sort(key=lambda line: (-line.match.score, line.rank))
    best = _current(lines)
    if not best:
        return {"answer": NOTHING, "cites": []}
    quoted = [line for line in best if line.match.score >= FLOOR * best[0].match.score][:LINES]
    told = "\n".join(f"- {line.text}{f' ({line.time})' if line.time else ''}" for line in quoted)
    return {"answer": f"{QUOTED}\n{told}", "cites": [line.id for line in quoted]}


def _line(row: Mapping[str, Any], rank: int, question: Question) -> _Line:
    text, time = row["text"], row.get("time") or ""
    return _Line(row["id"], time, text, question.match(strip_ordinal(text), time), rank)


def _current(lines: Sequence[_Line]) -> list[_Line]:
    """The lines with every group of rivals replaced by its newest, at the place of its best."""
    current: list[_Line] = []
    for line in lines:
        rivals = [i for i, other in enumerate(current) if _rivals(line, other)]
        if not rivals:
            current.append(line)
        elif line.age > current[rivals[0]].age:
            current[rivals[0]] = line
    return current


def _rivals(one: _Line, other: _Line) -> bool:
    """Whether two lines differ in one place only, and that place is what the question asks for."""
    if one.match.terms != other.match.terms:
        return False
    (speaker, a), (other_speaker, b) = split_speaker(one.text), split_speaker(other.text)
    if speaker != other_speaker:
        return False
    first, second = _words(a), _words(b)
    head = _common(first, second)
    tail = _common(first[head:][::-1], second[head:][::-1])
    if head + tail < SHARED:
        return False
    shared = {*first[:head], *first[len(first) - tail :]}
    terms = {term for word in shared for term in tokens(word)}
    return sum(term in terms for term in one.match.terms) > len(one.match.terms) / 2


def _words(text: str) -> list[str]:
    return _WORD.findall(fold(strip_ordinal(text)))


def _common(one: Iterable[str], other: Iterable[str]) -> int:
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count
