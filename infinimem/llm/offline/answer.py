"""Answering without a model: the lines that share most with the question are quoted, and that is said."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from infinimem.grounding.sentences import common_terms, split_speaker
from infinimem.grounding.when import day_of
from infinimem.retrieval.priors import kin
from infinimem.terms import MONTHS, query_terms, tokens

CLOSEST = "Memory may hold no answer to this (no model was asked); what comes closest, quoted:"
QUOTED = "No model was asked; what memory holds closest to the question, quoted:"
NOTHING = "Memory holds nothing about this (no model was asked; no line shares a word with the question)."
LINES, FLOOR = 5, 0.5
"""Lines that are quoted, and what of the best one's score each needs."""
COMMON, PEOPLE = 0.3, 0.5
"""What a common word and a person's name weigh."""
BESIDE = 0.4
"""What a word counts of which only the document's name or a kin word is there."""
ASKING = 0.8
"""A line that asks, or that an assistant said, is worth less than one that tells."""

_NAME = re.compile(r"(?<=[\w,;]\s)[A-ZÀ-ÖØ-Þ][\w'’.]*")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s")


class _Line(NamedTuple):
    """What may be quoted, and the name of its document in words."""

    id: str
    time: str
    text: str
    title: str
    by_assistant: bool

    @property
    def age(self) -> tuple[str, int, str]:
        """Grows with recency."""
        return self.time, int(self.id) if self.id.isdecimal() else -1, self.id


def answer(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `answer`; more is never asked for."""
    question = variables["question"]
    people = {term for name in _NAME.findall(question) for term in tokens(name.removesuffix("'s"))}
    lines = [line for doc in variables["evidence"] for line in _lines(doc)]
    searching: dict[str, Any] = {"calls": []} if "calls" in variables else {}
    ranked = _ranked(query_terms(question), people, lines)
    if not ranked:
        return {"answer": NOTHING, "cites": [], **searching}
    best, _, held = ranked[0]
    near = [line for score, line, _ in ranked[:LINES] if score >= FLOOR * best]
    telling = set(query_terms(question)) - common_terms() - people
    quoted = "\n".join(f"- {line.text}{f' ({line.time})' if line.time else ''}" for line in near)
    return {
        "answer": f"{CLOSEST if telling and telling.isdisjoint(held) else QUOTED}\n{quoted}",
        "cites": [line.id for line in near],
        **searching,
    }


def _lines(doc: Mapping[str, Any]) -> Iterator[_Line]:
    """The lines of a document; those of a note by paragraph and item."""
    title = (doc.get("doc_id") or "").rpartition("/")[2].replace("-", " ")
    paragraph, last = None, ""
    for row in doc["lines"]:
        if "text" not in row:
            continue
        note, _, number = row["id"].rpartition(":")
        if (
            paragraph
            and last == f"{note}:{int(number) - 1 if number.isdecimal() else ''}"
            and not _ITEM.match(row["text"])
        ):
            paragraph = paragraph._replace(text=f"{paragraph.text} {row['text']}")
        else:
            if paragraph:
                yield paragraph
            who = row.get("speaker") or (title if note else "")
            text = f"{who}: {row['text']}" if who else row["text"]
            paragraph = _Line(row["id"], row.get("time") or "", text, title, row.get("source") == "AI")
        last = row["id"]
    if paragraph:
        yield paragraph


def _ranked(
    asked: Sequence[str], people: set[str], lines: Sequence[_Line]
) -> list[tuple[float, _Line, frozenset[str]]]:
    """The lines that share a word with a question, the closest first, of equal ones the newest; each with its
    score and the words."""
    own = [frozenset(tokens(f"{line.text} {_date(line.time)}")) for line in lines]
    spread = Counter(term for terms in own for term in terms)
    weights = {
        term: math.log(1 + (len(lines) + 1) / (1 + spread[term]))
        * (PEOPLE if term in people else COMMON if term in common_terms() else 1)
        for term in asked
    }
    ranked = []
    for line, terms in zip(lines, own, strict=True):
        title = frozenset(tokens(line.title)) - common_terms()
        shares = {
            term: 1.0 if term in terms else BESIDE
            for term in weights
            if term in terms or term in title or terms & kin().get(term, frozenset())
        }
        if shares:
            said = split_speaker(line.text)[1]
            score = sum(share * weights[term] for term, share in shares.items())
            # Of two lines with the same words the one that says less besides is closer.
            score *= 1 + 0.15 * len(shares) / (len(shares) + len(set(said.split())))
            score *= ASKING if line.by_assistant or said.rstrip().endswith("?") else 1
            ranked.append((score, line, frozenset(shares)))
    return sorted(ranked, key=lambda row: (row[0], row[1].age), reverse=True)


def _date(time: str) -> str:
    """A date as people ask for it: its year, month and day."""
    day = day_of(time)
    return f"{MONTHS[day.month - 1]} {day}" if day else ""
