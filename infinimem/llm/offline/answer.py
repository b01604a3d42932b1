"""Answering without a model: the lines that come closest are quoted, and that is said.

Lines are compared with the question by the words that they share, rare ones first. Of lines that say the same
of the same thing but for one place ("lives in Lisbon", "lives in Porto") the newest is quoted and the older
ones are not.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Any

from infinimem.grounding.sentences import common_terms, split_speaker, strip_ordinal
from infinimem.llm.offline.lexicon import names, vocatives
from infinimem.retrieval.priors import kin
from infinimem.terms import MONTHS, STOP_WORDS, fold, query_terms, tokens

CLOSEST = "Memory may hold no answer to this (no model was asked); what comes closest, quoted:"
QUOTED = "No model was asked; what memory holds closest to the question, quoted:"
NOTHING = (
    "Memory holds nothing about this (no model was asked; no line shares a telling word with the question)."
)
LINES, LISTED = 3, 8
"""Lines that are quoted; where the question asks for a list."""
FLOOR, LIST_FLOOR = 0.5, 0.35
"""Of the best line's score, what another one needs to be quoted."""
SURE = 0.8
"""Of the question's words, common ones too, how many the best line must hold to count as an answer."""
COMMON, PEOPLE, TITLE = 0.3, 0.5, 0.4
"""What a common word and a person's name weigh; how much a word of the document's name counts."""
FITS = 1.5
"""What a line gains that has what the question asks for: a reason, a number, a date."""
SHARED = 3
"""Words that two lines must have in common to be about the same thing."""
ALIKE, RELATED, CALLED = 0.7, 0.35, 0.1
"""Shares of a term's weight: found as a longer or shorter form, as a kin word, as a name that is called."""
ASKING = 0.8
"""A line that asks, or that an assistant said, is worth less than one that tells."""

_LIST = re.compile(
    r"\b(?:which|what) (?:are|were|all|other|kinds?|(?:\w+ )?\w{2,}[^s\W]s\b)"
    r"|\b(?:list|all the|everything|every)\b|\ballerg\w+ to\b|\bwas planned\b",
    re.IGNORECASE,
)
_ASKED = (
    (
        re.compile(r"why\b|where did .* come from", re.I),
        re.compile(r"\b(?:because|since|so that|reason|due to)\b", re.I),
    ),
    (re.compile(r"how (?:much|many|old|long|far|big)\b", re.I), re.compile(r"\d")),
    (
        re.compile(r"when\b|on which day|.*\band when\b", re.I),
        re.compile(r"\b\d{1,2}(?:st|nd|rd|th)?\b|" + "|".join(MONTHS)),
    ),
    (re.compile(r"what .*\b(?:time|address|number|ip)\b|\S+ ip\b", re.I), re.compile(r"\d[:.]\d")),
)
"""Kinds of questions, and what their answers hold."""

_NOW = re.compile(
    r"\b(?:now|nowadays|these days|at the moment|currently|still|today|any ?more|at present)\b", re.IGNORECASE
)
_WHO, _NAME = re.compile(r"who\b", re.IGNORECASE), re.compile(r"\b[A-Z]\w+")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s")
_LINK = re.compile(r"\[[^\]\n]*\]\([^)\n]*\)|\[\[[^\]\n]*\]\]|https?://\S+")
_WORD = re.compile(r"\w+(?:['’.-]\w+)*")


@dataclass(frozen=True)
class _Line:
    id: str
    time: str
    text: str
    title: str = ""
    """Of its document."""
    by_assistant: bool = False

    @property
    def age(self) -> tuple[str, tuple[int, str]]:
        """Grows with recency."""
        return self.time, ((int(self.id), "") if self.id.isdecimal() else (-1, self.id))

    @property
    def parts(self) -> tuple[str, str]:
        """Who says it, and what is said; the title before a note's line is nobody."""
        name = f"{self.title}: "
        if self.title and self.text.startswith(name):
            return "", self.text.removeprefix(name)
        return split_speaker(strip_ordinal(self.text))

    @property
    def said(self) -> str:
        return self.parts[1]


@dataclass(frozen=True)
class _Asked:
    text: str
    weights: Mapping[str, float]
    """How much each of its terms tells: a rare one more, a common word and a name little."""
    people: frozenset[str]
    """Those that are of names."""
    wanted: Sequence[re.Pattern[str]]
    """What an answer to it holds."""


def answer(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `answer`; more is never asked for."""
    searching: dict[str, Any] = {"calls": []} if "calls" in variables else {}
    lines = [line for doc in variables["evidence"] for line in _lines(doc)]
    asked = _asked(variables["question"], lines)
    wants_list, ranked = _LIST.search(asked.text), _ranked(asked, lines)
    found = [(line, score) for line, score, _ in ranked] if wants_list else _current(ranked)
    if not found:
        return {"answer": NOTHING, "cites": [], **searching}
    floor, most = (LIST_FLOOR, LISTED) if wants_list else (FLOOR, LINES)
    quoted = [line for line, score in found if score >= floor * found[0][1]][:most]
    if _NOW.search(asked.text):
        quoted.sort(key=lambda line: line.age, reverse=True)
    lead = QUOTED if _is_sure(asked, quoted[0]) else CLOSEST
    told = "\n".join(f"- {line.text}{f' ({line.time})' if line.time else ''}" for line in quoted)
    return {"answer": f"{lead}\n{told}", "cites": [line.id for line in quoted], **searching}


def _lines(doc: Mapping[str, Any]) -> Iterator[_Line]:
    """The lines of a document; those of a note by paragraph and item, but no lists of links."""
    title = (doc.get("doc_id") or "").rpartition("/")[2].replace("-", " ")
    last, note = "", list[str]()
    for row in (*(row for row in doc["lines"] if "text" in row), {"id": "", "text": ""}):
        where, _, number = row["id"].rpartition(":")
        where = where if number.isdecimal() else ""
        goes_on = where and last == f"{where}:{int(number) - 1}" and not _ITEM.match(row["text"])
        if note and not goes_on:
            if 2 * sum(map(len, _LINK.findall(text := " ".join(note[1:])))) < len(text):
                yield _Line(note[0], "", f"{title}: {text}" if title else text, title)
            note = []
        if where:
            note += [row["text"]] if note else [row["id"], row["text"]]
        elif row["id"]:
            said = ": ".join(filter(None, (row.get("speaker"), row["text"])))
            yield _Line(row["id"], row.get("time") or "", said, title, row.get("source") == "AI")
        last = row["id"]


# ── how close a line is ─────────────────────────────────────────────────────────────────────────

Ranked = list[tuple[_Line, float, frozenset[str]]]
"""Lines with their scores and the question's terms that they hold, the closest first."""


def _asked(question: str, lines: Sequence[_Line]) -> _Asked:
    people = frozenset(term for name in names(question) for term in tokens(name))
    spread = Counter(term for line in lines for term in set(tokens(strip_ordinal(line.text))))
    weights = {
        term: math.log(1 + (len(lines) + 1) / (1 + spread[term]))
        * (PEOPLE if term in people else COMMON if term in common_terms() else 1)
        for term in query_terms(question)
    }
    return _Asked(question, weights, people, [holds for kind, holds in _ASKED if kind.match(question)])


def _ranked(asked: _Asked, lines: Iterable[_Line]) -> Ranked:
    """The lines that share more with a question than people's names, unless it holds nothing else."""
    ranked: Ranked = []
    for line in lines:
        found = {term: share * asked.weights[term] for term, share in _shares(line, asked).items()}
        if found.keys() - asked.people or (found and asked.weights.keys() <= asked.people | common_terms()):
            length = sum(1 for term in set(tokens(line.said)) if term not in _stop_terms())
            # Of two lines with the same words the one that says less besides is closer.
            score = sum(found.values()) * (1 + 0.15 * len(found) / (len(found) + length))
            if line.said.rstrip().endswith("?") or line.by_assistant:
                score *= ASKING
            if any(holds.search(line.said) for holds in asked.wanted):
                score *= FITS
            ranked.append((line, score, frozenset(found)))
    return sorted(ranked, key=lambda item: (item[1], item[0].age), reverse=True)  # of equal ones the newest


def _is_sure(asked: _Asked, line: _Line) -> bool:
    """Whether a line holds enough of a question to count as its answer, what is asked for, and nobody is
    missing. Who it is may be the speaker."""
    if not all(holds.search(line.text) for holds in asked.wanted):
        return False
    said = line.text if re.search(r"\bI\b", line.said) else line.said
    known = {*_NAME.findall(asked.text), *MONTHS}
    if _WHO.match(asked.text) and known.issuperset(_NAME.findall(said)):
        return False
    shares = _shares(line, asked)
    return asked.people <= shares.keys() and sum(shares.values()) >= SURE * len(asked.weights)


def _shares(line: _Line, asked: _Asked) -> dict[str, float]:
    """How well each of the question's terms is found in a line, its speaker's name or its date."""
    said = frozenset(tokens(line.said))
    beside = frozenset(tokens(line.parts[0] + " " + _date(line.time[:10])))
    title = frozenset(tokens(line.title)) - common_terms()
    called = asked.people.intersection(term for name in vocatives(line.said) for term in tokens(name))
    kept: dict[str, float] = {}
    for term in asked.weights:
        if term in said or term in beside:
            kept[term] = CALLED if term in called and term in said else 1.0
        elif len(term) > 4 and any(_is_form(term, other) for other in said):
            kept[term] = ALIKE
        elif said & kin().get(term, frozenset()):
            kept[term] = RELATED
        elif term in title:
            kept[term] = TITLE
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
