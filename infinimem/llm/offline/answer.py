"""Answering without a model: the lines that share most with the question are quoted, and that is said."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from datetime import date
from heapq import nlargest
from typing import Any, NamedTuple

from infinimem.grounding.sentences import common_terms
from infinimem.index.questions import kin
from infinimem.spec import folders
from infinimem.terms import MONTHS, query_terms, tokens

CLOSEST = "Memory may hold no answer to this (no model was asked); what comes closest, quoted:"
QUOTED = "No model was asked; what memory holds closest to the question, quoted:"
NOTHING = "Memory holds nothing about this (no model was asked; no line shares a word with the question)."
LINES, FLOOR = 5, 0.5
"""Lines that are quoted, and what of the best one's score each needs."""
LITTLE = 0.3
"""What a common word counts, a person's name, and a word that only the title or a kin word has."""

_NAME = re.compile(r"(?<=[\w,;]\s)[A-ZÀ-ÖØ-Þ][\w'’.]*")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s")


class _Line(NamedTuple):
    """What may be quoted, and the name of its document in words, with the heading that it stands under."""

    id: str
    time: str
    text: str
    title: str


def answer(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `answer`; more is never asked for."""
    question = variables["question"]
    searching: dict[str, Any] = {"calls": []} if "calls" in variables else {}
    asked = query_terms(question)
    names = {term for name in _NAME.findall(question) for term in tokens(name.removesuffix("'s"))}
    telling = set(asked) - common_terms() - names
    docs = (doc for kind in ("evidence", "episodes", "facts") for doc in variables.get(kind, ()))
    lines = [line for doc in docs for line in _lines(doc)]
    own = [frozenset(tokens(f"{line.text} {_date(line.time)}")) for line in lines]
    shown = [terms | _beside(line, terms) for line, terms in zip(lines, own, strict=True)]
    spread = Counter(term for terms in own for term in terms)
    weight = {
        term: math.log(1 + (len(lines) + 1) / (1 + spread[term])) * (1 if term in telling else LITTLE)
        for term in asked
    }
    scores = [
        sum(weight[t] * (1 if t in mine else LITTLE) for t in asked if t in terms)
        for mine, terms in zip(own, shown, strict=True)
    ]
    newest = [int(line.id) if line.id.isdecimal() else -1 for line in lines]
    close = (at for at, score in enumerate(scores) if score)
    ranked = nlargest(LINES, close, key=lambda at: (scores[at], lines[at].time, newest[at], -at))
    if not ranked:
        return {"answer": NOTHING, "cites": [], **searching}
    near = [lines[at] for at in ranked if scores[at] >= FLOOR * scores[ranked[0]]]
    quoted = [f"- {line.text}{f' ({line.time})' if line.time else ''}" for line in near]
    tells = not telling or not telling.isdisjoint(shown[ranked[0]])
    text = "\n".join([QUOTED if tells else CLOSEST, *quoted])
    return {"answer": text, "cites": [line.id for line in near], **searching}


def _beside(line: _Line, own: frozenset[str]) -> frozenset[str]:
    """The terms that a line's title has, or that are kin to its own."""
    title = frozenset(tokens(line.title)) - common_terms()
    return title.union(*(kin().get(term, ()) for term in own))


def _date(time: str) -> str:
    """A date as people ask for it: its year, month and day."""
    try:
        return f"{MONTHS[date.fromisoformat(time[:10]).month - 1]} {time[:10]}"
    except ValueError:
        return ""


def _lines(doc: Mapping[str, Any]) -> list[_Line]:
    title = re.sub(rf"(.*/)?(?:{folders().names}\Z)?", "", doc.get("doc_id") or "", count=1).replace("-", " ")
    lines, after, heading = list[_Line](), "", ""
    for row in doc["lines"]:
        if "text" not in row:
            heading = row["heading"]
            continue
        note, _, number = row["id"].rpartition(":")
        if note and row["id"] == after and not _ITEM.match(row["text"]):
            lines[-1] = lines[-1]._replace(text=f"{lines[-1].text} {row['text']}")
        else:
            who = row.get("speaker") or (title if note else "")
            text = _ITEM.sub("", row["text"], count=1) if note else row["text"]
            text = f"{who}: {text}" if who else text
            lines.append(_Line(row["id"], row.get("time") or "", text, f"{title} {heading}"))
        after = f"{note}:{int(number) + 1}" if number.isdecimal() else ""
    return lines
