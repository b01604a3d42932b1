"""Taking a question apart by rules: at names that stand in a row, at comparisons, at a second question.

The parts are made of the question's own words; what a rule leaves out of a part are the other names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from infinimem.terms import STOP_WORDS, fold

SHORTEST = 1
"""Telling words of a part."""

LONGEST = 600
"""Characters of a question that is taken apart: somebody may paste a book."""

_NAME = r"[A-ZÀ-ÖØ-Þ][\w'’.-]*(?: (?:of |the |de |von )?[A-ZÀ-ÖØ-Þ][\w'’.-]*)*"
_ROW = re.compile(rf"(?<=[\w,:;] )({_NAME}(?:, {_NAME})*),? (?:and|or|than|vs\.?|versus) ({_NAME})")
_SPLIT = re.compile(r", (?:and |or )?| (?:and|or|than|versus|vs\.?) ")
_THAN = re.compile(rf"\bthan ({_NAME})")
_FIRST_NAME = re.compile(rf"(?<=[\w,:;] ){_NAME}")
_SECOND = re.compile(
    r"(?:[,;]? and|[?])\s+(?=(?:who|whose|whom|what|which|when|where|why|how|did|does|do)\b)", re.IGNORECASE
)
_CHOICE = re.compile(r"^(.*?)[,:;]\s*(.+?),? or (.+?)\s*\??$", re.DOTALL)
_TOGETHER = re.compile(r"\b(?:both|either|neither|together|in common)\b\s*", re.IGNORECASE)
_OWNER = re.compile(r"['’]s?\Z")
_QUOTED = re.compile(r"[\"“][^\"”]*[\"”]")
_WORD = re.compile(r"\w+(?:['’-]\w+)*")


def decompose(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `decompose`."""
    return {"parts": parts(variables["question"], int(variables["limit"]))}


def parts(question: str, limit: int = 4) -> list[str]:
    """The parts of a question; itself alone where no rule finds several."""
    if len(question) > LONGEST:
        return [question]
    whole = " ".join(question.split())
    hidden = _QUOTED.findall(whole)
    masked = _QUOTED.sub("\x00", whole)
    for rule in (_questions, _names, _comparison, _choices):
        found = list(dict.fromkeys(_restored(part, hidden, masked) for part in rule(masked)))
        if 1 < len(found) <= limit and all(_says(part) for part in found):
            return found
    return [whole]


def _questions(question: str) -> Iterator[str]:
    """ "Where does Ann live, and what does she do?": the second is told who is meant by the first's name."""
    said = [part.strip() for part in _SECOND.split(question.rstrip("?")) if part.strip()]
    if len(said) < 2:
        return
    name = _FIRST_NAME.search(said[0])
    for part in said:
        yield part if not name or _FIRST_NAME.search(part) else f"{part} {_OWNER.sub('', name[0])}"


def _names(question: str) -> Iterator[str]:
    """ "What do Ann and Bob both like?": one for each."""
    row = _ROW.search(question)
    if not row:
        return
    for name in _SPLIT.split(row[0]):
        if name.strip():
            rest = f"{question[: row.start()]}{name.strip()}{question[row.end() :]}"
            yield _TOGETHER.sub("", rest)


def _comparison(question: str) -> Iterator[str]:
    """ "Is Ann older than Bob?": one for Ann, one for Bob."""
    other = _THAN.search(question)
    first = _FIRST_NAME.search(question)
    if not other or not first or first.start() >= other.start():
        return
    without = f"{question[: other.start()].rstrip()}{question[other.end() :]}"
    yield without
    yield f"{without[: first.start()]}{other[1]}{without[first.end() :]}"


def _choices(question: str) -> Iterator[str]:
    """ "Which came first, the trip to Bath or the new job?": one for each."""
    choice = _CHOICE.match(question)
    if choice:
        for one in choice.groups()[1:]:
            yield f"{choice[1]} {one}"


def _restored(part: str, hidden: list[str], masked: str) -> str:
    """A part with the quotations that were taken out of the question, each where it stood."""
    places = [match.start() for match in re.finditer("\x00", masked)]
    if part.count("\x00") == len(places):
        for text in hidden:
            part = part.replace("\x00", text, 1)
    return part.replace("\x00", "").replace(" ?", "?").strip(" ,;")


def _says(part: str) -> bool:
    return sum(fold(word) not in STOP_WORDS for word in _WORD.findall(part)) >= SHORTEST
