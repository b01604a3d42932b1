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
from functools import cached_property
from typing import Any

from infinimem.grounding.sentences import common_terms, split_speaker, strip_ordinal
from infinimem.retrieval.priors import kin
from infinimem.terms import DAYS, MONTHS, fold, query_terms, tokens

CLOSEST = "Memory may hold no answer to this (no model was asked); what comes closest, quoted:"
QUOTED = "No model was asked; what memory holds closest to the question, quoted:"
NOTHING = "Memory holds nothing about this (no model was asked; no line shares a word with the question)."
LINES, LISTED = 3, 8
"""Lines that are quoted; where the question asks for a list."""
FLOOR, LIST_FLOOR = 0.5, 0.35
"""Of the best line's score, what another one needs to be quoted."""
COMMON, PEOPLE, TITLE = 0.3, 0.5, 0.4
"""What a common word and a person's name weigh; how much a word of the document's name counts."""
FITS = 1.5
"""What a line gains that has what the question asks for: a reason, a number, a date."""
ALIKE, RELATED = 0.7, 0.35
"""Shares of a term's weight: found as a longer or shorter form, as a kin word."""
ASKING = 0.8
"""A line that asks, or that an assistant said, is worth less than one that tells."""
SAME = 3
"""Words that two lines must have in common to be about the same thing."""

_LIST = re.compile(
    r"\b(?:which|what) (?:are|were|all|other|kinds?|(?:\w+ )?\w{2,}[^s\W]s\b)"
    r"|\b(?:list|all the|everything|every)\b|\ballerg\w+ to\b|\bwas planned\b",
    re.IGNORECASE,
)
_DATED = re.compile(rf"\d|\b(?:{'|'.join((*MONTHS, *DAYS))}|yesterday|tomorrow|last|next|ago)\b")
_WANTED = (
    (
        re.compile(r"why\b|where did .* come from", re.I),
        re.compile(r"\b(?:because|since|so that|reason|due to)\b", re.I),
    ),
    (re.compile(r"how (?:much|many|old|long|far|big)\b", re.I), re.compile(r"\d")),
    (re.compile(r"when\b|on which day|.*\band when\b", re.I), _DATED),
    (re.compile(r"what .*\b(?:time|address|number|ip)\b|\S+ ip\b", re.I), re.compile(r"\d[:.]\d")),
)
"""Kinds of questions, and what their answers hold."""
_NOW = re.compile(
    r"\b(?:now|nowadays|these days|at the moment|currently|still|today|any ?more|at present)\b", re.IGNORECASE
)
_NAME = re.compile(r"(?<=[\w,;]\s)[A-ZÀ-ÖØ-Þ][\w'’.]*")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s")
_LINK = re.compile(r"\[[^\]\n]*\]\([^)\n]*\)|\[\[[^\]\n]*\]\]|https?://\S+")
_WORD = re.compile(r"\w+(?:['’.-]\w+)*")


@dataclass(frozen=True)
class _Line:
    """A line that may be quoted; `title` is its document's."""

    id: str
    time: str
    text: str
    title: str = ""
    by_assistant: bool = False

    @property
    def age(self) -> tuple[str, tuple[int, str]]:
        """Grows with recency."""
        return self.time, ((int(self.id), "") if self.id.isdecimal() else (-1, self.id))

    @cached_property
    def parts(self) -> tuple[str, str]:
        """Who says it, and what; the title before a note's line is nobody."""
        name = f"{self.title}: "
        if self.title and self.text.startswith(name):
            return "", self.text.removeprefix(name)
        return split_speaker(strip_ordinal(self.text))

    @property
    def words(self) -> list[str]:
        return _WORD.findall(fold(strip_ordinal(self.parts[1])))


@dataclass(frozen=True)
class _Close:
    """A line with its score, and the question's terms that it holds."""

    line: _Line
    score: float
    held: frozenset[str]


def answer(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `answer`; more is never asked for."""
    searching: dict[str, Any] = {"calls": []} if "calls" in variables else {}
    question = variables["question"]
    lines = [line for doc in variables["evidence"] for line in _lines(doc)]
    wants_list = _LIST.search(question)
    ranked = _ranked(question, lines)
    ranked = ranked if wants_list else _current(ranked)
    if not ranked:
        return {"answer": NOTHING, "cites": [], **searching}
    floor, most = (LIST_FLOOR, LISTED) if wants_list else (FLOOR, LINES)
    near = [close for close in ranked if close.score >= floor * ranked[0].score][:most]
    if _NOW.search(question):
        near.sort(key=lambda close: close.line.age, reverse=True)
    telling = frozenset(query_terms(question)) - common_terms() - _people(question)
    tells = not telling or not ranked[0].held.isdisjoint(telling)
    quoted = "\n".join(f"- {c.line.text}{f' ({c.line.time})' if c.line.time else ''}" for c in near)
    return {
        "answer": f"{QUOTED if tells else CLOSEST}\n{quoted}",
        "cites": [c.line.id for c in near],
        **searching,
    }


def _lines(doc: Mapping[str, Any]) -> Iterator[_Line]:
    """The lines of a document; those of a note by paragraph and item, but no lists of links."""
    title = (doc.get("doc_id") or "").rpartition("/")[2].replace("-", " ")
    last, note, time = "", list[str](), ""
    for row in (*(row for row in doc["lines"] if "text" in row), {"id": "", "text": ""}):
        where, _, number = row["id"].rpartition(":")
        where = where if number.isdecimal() else ""
        goes_on = where and last == f"{where}:{int(number) - 1}" and not _ITEM.match(row["text"])
        if note and not goes_on:
            if 2 * sum(map(len, _LINK.findall(text := " ".join(note[1:])))) < len(text):
                yield _Line(note[0], time, f"{title}: {text}" if title else text, title)
            note = []
        if where:
            time = time if note else row.get("time") or ""
            note += [row["text"]] if note else [row["id"], row["text"]]
        elif row["id"]:
            said = ": ".join(filter(None, (row.get("speaker"), row["text"])))
            yield _Line(row["id"], row.get("time") or "", said, title, row.get("source") == "AI")
        last = row["id"]


def _people(question: str) -> frozenset[str]:
    """The terms of names in a question."""
    return frozenset(term for name in _NAME.findall(question) for term in tokens(name.removesuffix("'s")))


def _ranked(question: str, lines: Sequence[_Line]) -> list[_Close]:
    """The lines that share a word with a question, the closest first, of equal ones the newest."""
    people, common = _people(question), common_terms()
    spread = Counter(term for line in lines for term in set(tokens(strip_ordinal(line.text))))
    weights = {
        term: math.log(1 + (len(lines) + 1) / (1 + spread[term]))
        * (PEOPLE if term in people else COMMON if term in common else 1)
        for term in query_terms(question)
    }
    wanted = [holds for kind, holds in _WANTED if kind.match(question)]
    ranked = []
    for line in lines:
        shares = _shares(line, weights)
        if not shares:
            continue
        said = line.parts[1]
        length = len(set(line.words))
        # Of two lines with the same words the one that says less besides is closer.
        score = sum(share * weights[term] for term, share in shares.items()) * (
            1 + 0.15 * len(shares) / (len(shares) + length)
        )
        score *= ASKING if line.by_assistant or said.rstrip().endswith("?") else 1
        score *= FITS if any(holds.search(said) for holds in wanted) else 1
        ranked.append(_Close(line, score, frozenset(shares)))
    return sorted(ranked, key=lambda close: (close.score, close.line.age), reverse=True)


def _shares(line: _Line, terms: Iterable[str]) -> dict[str, float]:
    """How well each of a question's terms is found in a line, its speaker's name, its date or its title."""
    speaker, said = line.parts
    own = frozenset(tokens(said))
    beside = frozenset(tokens(f"{speaker} {_date(line.time[:10])}"))
    title = frozenset(tokens(line.title)) - common_terms()
    shares: dict[str, float] = {}
    for term in terms:
        if term in own or term in beside:
            shares[term] = 1.0
        elif len(term) > 4 and any(
            len(one) > 4 and (one.startswith(term) or term.startswith(one)) for one in own
        ):
            shares[term] = ALIKE  # "citizen" and "citizenship"
        elif term in title:
            shares[term] = TITLE
        elif own & kin().get(term, frozenset()):
            shares[term] = RELATED
    return shares


def _date(day: str) -> str:
    """A date as people ask for it: its year, month and day."""
    try:
        return f"{MONTHS[date.fromisoformat(day).month - 1]} {day}"
    except ValueError:
        return ""


def _current(ranked: Iterable[_Close]) -> list[_Close]:
    """The lines with every group of rivals replaced by its newest, at the place of its best."""
    current: list[_Close] = []
    for close in ranked:
        same = next((at for at, other in enumerate(current) if _rivals(close, other)), None)
        if same is None:
            current.append(close)
        elif close.line.age > current[same].line.age:
            current[same] = _Close(close.line, current[same].score, close.held)
    return current


def _rivals(one: _Close, other: _Close) -> bool:
    """Whether two lines differ in one place only, and that place is what the question asks for."""
    if one.held != other.held or one.line.parts[0] != other.line.parts[0]:
        return False
    first, second = one.line.words, other.line.words
    head = _alike(first, second)
    tail = _alike(first[head:][::-1], second[head:][::-1])
    shared = {term for word in {*first[:head], *first[len(first) - tail :]} for term in tokens(word)}
    return head + tail >= SAME and 2 * len(one.held & shared) > len(one.held)


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    """How many words two rows begin with in common."""
    return next(
        (at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]),
        min(len(one), len(other)),
    )
