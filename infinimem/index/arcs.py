"""What is shown of what was found: a course in order of time, sides of an experience, later values, lists.

In: a view and a question. Out: pieces in place of hits, or beside them. Promise: each has the document's own
words, and "…" where some are left out; no model is called.

What an AI wrote at length, and code, says little of a course: of each turn its sentences are shown that hold
most of the question's words, without the code between them, and what people said goes first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from textwrap import wrap

from infinimem import tokens
from infinimem.grounding.sentences import asks, claims, common_terms, tells_of_past, without_code
from infinimem.index.search import searcher
from infinimem.model import Retrieved
from infinimem.store.view import View
from infinimem.terms import analyzer

ROOM, PART = 400, 160
"""Characters that are shown of a text, about, and of a part of a sentence that is chosen or left out."""
CANDIDATES, NEAR = 2000, 200
"""Lines that are looked at for a course; for the other side of a hit, or a later value."""
FLOOR = 0.15
"""Of the best turn's score; with less a turn is in a course only if it has a word of the question."""
REPLIES = 4
"""One part of so many of a course is what an AI said, unless the user's own words are asked for."""
EACH = 2
"""Lines of each side of an experience, and later values of each hit."""
LIST = 1200
"""Characters of a list that is shown whole."""

_CLAUSE = re.compile(r"(?<=[.!?:;])\s+|\n+|(?<=,)\s+(?=(?:and|but|so|because|while|since|which)\b)")
_ITEM = re.compile(r"\s*(?:[-*+•‣◦]|\(?\d{1,3}[.)])\s+(?=\S)")
_VALUE = re.compile(r"([$€£]?)(\d[\d,.:]*\d|\d)[ -]?(%|[^\W\d_]+)?")
PEOPLE = ("user", "human")


def telling(question: str, text: str, room: int = ROOM, language: str = "english", opens: bool = True) -> str:
    """Return the parts of a long text that hold most of a question's words, in order; if it `opens` with
    what it is about, the first counts more."""
    said = " ".join(without_code(text, " … ").split()) if len(text) > room else text
    if len(said) <= room:
        return said
    words = analyzer(language)
    clauses = _CLAUSE.split(without_code(text, " … "))
    parts = [part for clause in clauses for part in wrap(clause, PART)]
    held = words.held("\n".join(parts), frozenset(words.query_terms(question)))
    held[0] += opens
    chosen, left = set[int](), room
    for at in sorted(range(len(parts)), key=lambda at: (-held[at], at)):
        if not chosen or len(parts[at]) <= left:
            left -= len(parts[at])
            chosen.add(parts.index(parts[at]))
    shown = [parts[at] if at in chosen else "…" for at in range(len(parts))]
    return " ".join(part for before, part in pairwise(["", *shown]) if part != "…" or before != "…")


def shortened(view: View, question: str, items: Iterable[Retrieved]) -> list[Retrieved]:
    """Return entries with their long texts cut to what is telling; of a list's items, the list once."""
    shown: dict[str, Retrieved] = {}
    for item in items:
        text = item.text
        if not item.physical:
            language = view.settings.search.language
            text = _list_of(view, item) or telling(question, text, language=language)
        shown.setdefault(text, replace(item, text=text))
    return [*shown.values()]


# ── a course ────────────────────────────────────────────────────────────────────────────────────


def course(view: View, question: str, budget: int) -> list[Retrieved]:
    """Return what was said about something, from all sessions and in order of time, within a budget of
    tokens: turns and what stands unsigned, the user's own words first."""
    search = searcher(view)
    lines = search.entries(question, CANDIDATES, "evidence")
    unsaid = (item for item in search.entries(question, CANDIDATES) if not item.origin)
    found = sorted([*lines, *unsaid], key=lambda item: -item.score)
    best: dict[tuple[str, int], Retrieved] = {}
    words = analyzer(view.settings.search.language)
    wanted = frozenset(words.query_terms(question))
    for item in found:
        if item.score >= FLOOR * found[0].score or not wanted.isdisjoint(words.tokens(item.text)):
            best.setdefault((item.doc_id, item.start_line), item)
    own = [item for item in best.values() if item.source in PEOPLE]
    others = [item for item in best.values() if item.source not in PEOPLE]
    if own and asks("my words", question):
        others = []
    share = budget - budget // REPLIES if own and others else budget
    shown = _fitting(view, question, own or others, share)
    if own:
        shown += _fitting(view, question, others, budget - sum(tokens.count(item.text) for item in shown))
    return sorted(shown, key=lambda item: (item.time or "~", item.seqs, item.doc_id, item.start_line))


def _fitting(view: View, question: str, items: Sequence[Retrieved], budget: int) -> list[Retrieved]:
    """Return the best items that fit, told the longer the fewer they are."""
    is_own = any(item.source in PEOPLE for item in items)
    room = min(max(5 * budget // max(len(items), 1), PART), 2 * ROOM) if is_own else ROOM
    shown, language = list[Retrieved](), view.settings.search.language
    for item in items:
        turn = view.entry(item.seqs[0]) if len(item.seqs) == 1 else None
        text = telling(question, turn.text, room, language, is_own) if turn else item.text
        budget -= tokens.count(text)
        if budget < 0:
            break
        shown.append(replace(item, text=text))
    return shown


# ── what else was said about the same ───────────────────────────────────────────────────────────


def beside(view: View, question: str, hits: Sequence[Retrieved]) -> list[Retrieved]:
    """Return what is needed beside the best hits, and is not among them: of an experience what affirms and
    what denies it; of a value the later ones of the same kind."""
    if asks("ever", question):
        return _sides(view, question, searcher(view).entries(question, NEAR))
    hits = [hit for hit in hits if _values(view, hit.text)]
    near = searcher(view).entries(question, NEAR) if hits else []
    return [later for hit in hits for later in _later(view, question, hit, near)]


def _sides(view: View, question: str, near: Sequence[Retrieved]) -> list[Retrieved]:
    """Return of each side the lines with most of the question's words in one place."""
    words = analyzer(view.settings.search.language)
    wanted = frozenset(words.query_terms(question))
    sides: dict[bool, list[tuple[int, int, Retrieved]]] = {True: [], False: []}
    for rank, item in enumerate(near):
        core = telling(question, item.text, PART, opens=False)
        denies, held = bool(claims(core)["negation"]), len(wanted.intersection(words.tokens(core)))
        if item.source in PEOPLE and (denies or tells_of_past(core)):
            text = telling(question, item.text, 2 * PART, opens=False)
            sides[denies].append((-held, rank, replace(item, text=text)))
    return [item for side in sides.values() for *_, item in sorted(side, key=lambda row: row[:2])[:EACH]]


def _later(view: View, question: str, hit: Retrieved, near: Sequence[Retrieved]) -> list[Retrieved]:
    """Return the newest lines that share a question's words with a hit and tell another number of a kind."""
    values, wanted = _values(view, hit.text), _telling_terms(view, question)
    shared = wanted.intersection(_telling_terms(view, hit.text))
    newer = [
        item
        for item in near
        if (item.time or "", item.seqs) > (hit.time or "", hit.seqs)
        and item.source in PEOPLE
        and any(values.get(kind, number) != number for kind, number in _values(view, item.text).items())
        and len(shared.intersection(_telling_terms(view, item.text))) * 2 > len(shared)
    ]
    newest = sorted(newer, key=lambda item: (item.time or "", item.seqs), reverse=True)
    return shortened(view, question, newest[:EACH])


def _values(view: View, text: str) -> dict[str, str]:
    """Return the numbers of a text by what they count: "12 books", "$50", "78%", "250ms"."""
    words = analyzer(view.settings.search.language)
    found = ((match[1] or match[3] or "", match[2]) for match in _VALUE.finditer(text))
    return {" ".join(words.tokens(kind)) or kind: number for kind, number in found if kind}


def _telling_terms(view: View, text: str) -> frozenset[str]:
    return frozenset(analyzer(view.settings.search.language).query_terms(text)) - common_terms()


# ── lists ───────────────────────────────────────────────────────────────────────────────────────


def _list_of(view: View, item: Retrieved) -> str:
    """Return the list of the turn that an entry repeats an item of, below what leads in to it; or ""."""
    turn = view.entry(item.origin[0]) if len(item.origin) == 1 and len(item.text) < ROOM else None
    rows = without_code(turn.text, " … ").split("\n") if turn else []
    said = " ".join(item.text.split())
    at = next((at for at, row in enumerate(rows) if _ITEM.match(row) and said in " ".join(row.split())), None)
    if at is None:
        return ""
    first, last = _end(rows, at, -1), _end(rows, at, 1)
    items = [" ".join(row.split()) for row in rows[first : last + 1] if row.strip()]
    lead = next((row.strip() for row in reversed(rows[:first]) if row.strip()), "")
    text = " ".join([lead, *items]).strip()
    return text if len(items) > 2 and len(text) <= LIST else ""


def _end(rows: Sequence[str], at: int, step: int) -> int:
    """Return the last row of a list in a direction: items, and what is indented below them."""
    end = at
    while 0 <= at < len(rows) and (not rows[at].strip() or _ITEM.match(rows[at]) or rows[at][0].isspace()):
        end = at if rows[at].strip() else end
        at += step
    return end
