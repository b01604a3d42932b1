"""Which remembered lines a prompt deserves, and how they are put before a model. Most prompts are about work
and deserve none; silence is better than noise.

A line counts by the telling words of the prompt that it holds, and by words of the same matter
("indentation", "tabs"; index/kin.txt). Of what was said in the prompt's own project one is enough; of the
rest it takes two, or a code ("GL-0417"), or a rare one where somebody asks briefly for themselves. What was
said in another project counts for nothing, unless it is about the person who said it; neither does what an
assistant said. Of lines that hold the same words only the newest is shown, and all of them between marks,
so that importers leave them out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path, PurePath
from typing import Any

from infinimem.errors import InfinimemError
from infinimem.grounding.sentences import common_terms
from infinimem.hooks.answer import Event
from infinimem.importers.fields import BEGIN, END, without_recalled
from infinimem.index.questions import kin, related
from infinimem.index.search import searcher
from infinimem.markdown.characters import name
from infinimem.model import Retrieved
from infinimem.reader import Reader
from infinimem.store.sources import folders_of
from infinimem.store.view import View
from infinimem.terms import DAYS, MONTHS, Analyzer, analyzer, tokens
from infinimem.tokens import estimate
from infinimem.tools.tool import LABEL, closest, fenced, shown

NEEDED, ONE = 1.1, 1.0
"""Weight that a line needs, more than one word has; and where the person asks briefly: one rare word."""
BRIEF = 2  # telling words of a brief prompt at most: in its project one word of everyday work is enough
RARE, RARE_SHARE = 10, 0.02
"""Lines, evidence too, or their share of all, up to which a word that so many hold is rare."""
KIN, WEAK, WORK, DAY = 0.7, 0.4, 0.5, 0.3
"""Weights of words: of the same matter; not rare, or in what is pasted below the prompt's first line; of
everyday work; a day of the week. A rare word weighs 1, and in its own project any."""
SEVERAL = 2  # words of one matter that count beside each other

_WORK = Path(__file__).with_name("work.txt").read_text(encoding="utf-8")
_DAYS = " ".join(DAYS)
_MONTHS = " ".join(MONTHS)
_PERSONAL = re.compile(r"\b(?:I|I['’]\w+|i|i['’]m|my|mine|me)\b|\A\s*(?i:which|where|when|who|whose)\b")
_ON_TEXT = re.compile(
    r"\s*(?:please |can you |could you )?"
    r"(?:summari[sz]e|translate|proofread|rephrase|paraphrase|shorten|explain|tl;?dr)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r'"[^"\n]*"|“[^”\n]*”|`[^`\n]*`')
_CODE = re.compile(r"\b[A-Za-z]{1,5}-\d{2,}\b")
ENOUGH = 2.0  # the score beyond which more words of a long prompt tell nothing more
LINES = 6  # lines of each part at most
SESSIONS = 64  # sessions of which it is known what they were shown
CANDIDATES = 2000  # tokens of lines that are looked at


_ONESELF = re.compile(r"\b(?:I|I['’]\w+|my|mine|me)\b")
_HERE = re.compile(r"\b(?:this|the|our) (?:project|repo\w*|code\w*|branch|app|site|shop)\b|\bhere\b", re.I)


@cache
def _terms(words: str) -> frozenset[str]:
    return frozenset(term for word in words.split() for term in tokens(word))


@cache
def _common() -> frozenset[str]:
    """What tells nothing: function words and common words, but not the names of days and months."""
    return common_terms() - _terms(_DAYS) - _terms(_MONTHS)


@dataclass(frozen=True)
class Asked:
    """The words of a prompt that can tell something, with their worth; codes such as GL-0417, as terms with a
    space between; whether the person asks for themselves, or says nothing but what to look for."""

    terms: Mapping[str, float]
    codes: frozenset[str] = frozenset()
    personal: bool = False

    def needed(self, here: bool) -> float:
        """Return the weight that a line needs; `here` if it was said in the prompt's project."""
        brief = len(self.terms) <= BRIEF
        if here:
            return WORK if brief else KIN
        if not (self.personal and brief):
            return NEEDED
        return KIN if len(self.terms) == 1 else ONE


def read(prompt: str, cwd: str, words: Analyzer) -> Asked:
    """Return what a prompt in a folder is about; if it orders work on a text, without that text."""
    codes = frozenset(" ".join(words.tokens(spaced(code))) for code in _CODE.findall(prompt))
    first, _, given = spaced(prompt).strip().partition("\n")
    if _ON_TEXT.match(first):
        first, given = _QUOTED.sub(" ", first), ""
    pasted = {*words.query_terms(given)} - {*words.tokens(cwd)}  # paths of the folder tell nothing
    asked, ordinary = words.query_terms(first), _common()
    if "May" not in first:
        ordinary |= _terms("may")
    terms = dict.fromkeys(sorted(pasted), WEAK) | dict.fromkeys(asked, 1.0)
    # A word of one or two letters tells nothing in an alphabet, nor does a short number.
    terms = {
        term: worth
        for term, worth in terms.items()
        if term not in ordinary and (not term.isascii() or len(term) > 2 + term.isdigit())
    }
    if not terms:  # "what should I not eat?": an everyday word that others belong to
        terms = dict.fromkeys(sorted(kin().keys() & set(asked) - _terms(_WORK)), 1.0)
    bare = terms.keys() == {*words.tokens(prompt)}  # nothing but words to look for
    return Asked(terms, codes, bare or _PERSONAL.search(first) is not None)


def spaced(text: str) -> str:
    """Set joined words apart."""
    return text.replace("-", " ").replace("_", " ")


def score(
    asked: Asked, line: Sequence[str], here: bool, rare: Callable[[str], bool]
) -> tuple[float, list[str]]:
    """Return how much a line, given by its terms, has to do with a prompt, as a share of what it needs, and
    the words that count; `here`: said in the prompt's project, `rare`: whether few lines hold a term."""
    whole = f" {' '.join(line)} "
    counted = dict.fromkeys(sorted(code for code in asked.codes if f" {code} " in whole))
    weight = NEEDED * len(counted)
    work, passed_over = _terms(_WORK), frozenset[str]() if here else _common()
    for term, worth in asked.terms.items():
        if term in line and term not in passed_over and (here or term not in work):
            weight += worth * _weight(term, here or rare(term))
            counted[term] = None
        elif term not in work:
            told = kin().get(term, frozenset()).intersection(line) - work - passed_over
            found = sorted(told - counted.keys())[: SEVERAL if here else 1]
            weight += worth * KIN * len(found)
            counted.update(dict.fromkeys(found))
    return weight / asked.needed(here), [*counted]


def _weight(term: str, telling: bool) -> float:
    if term in _terms(_DAYS):
        return DAY
    if term in _terms(_WORK):
        return WORK
    return 1.0 if telling or term in _terms(_MONTHS) else WEAK


@dataclass(frozen=True)
class Hit:
    """A line that came near, its rank, its words of the prompt, and why it is not shown ("" if it is)."""

    where: str
    text: str
    score: float
    words: tuple[str, ...] = ()
    why: str = ""


class Recall:
    """What is shown of a memory to the sessions that ask; no line twice to the same session."""

    def __init__(self, memory: Reader) -> None:
        self._memory = memory
        self._shown: dict[str, set[str]] = {}
        self._owed: set[str] = set()  # sessions whose start did not arrive

    def text(self, event: Event) -> str:
        """Return what an event is shown; a start that came too late comes with the session's next prompt."""
        try:
            wanted = self._memory.view.settings.hooks.recall
            if wanted == "off":
                return ""
            if event.name == "SessionStart":
                self._owed.add(event.session)
                return self.start(event.session, event.cwd)
            start = self.start(event.session, event.cwd) if event.session in self._owed else ""
            prompt = self.prompt(event.session, event.prompt, event.cwd) if wanted == "prompt" else ""
            return "\n".join(filter(None, (start, prompt)))
        except (InfinimemError, OSError):  # a library that is being changed, or harmed: next time
            return ""

    def preview(self, prompt: str, cwd: str) -> dict[str, Any]:
        """Return what hooks show of a prompt, or without one of a session's start, and what came near."""
        if prompt:
            event, hits = Event("UserPromptSubmit", cwd=cwd, prompt=prompt), self.near(said(prompt), cwd)
        else:
            of, newest = self.opening(cwd)
            event, hits = Event("SessionStart", cwd=cwd), of + newest
        return {"text": self.text(event), "lines": [asdict(hit) for hit in hits]}

    def arrived(self, event: Event) -> None:
        """The text was taken: with it the session's start."""
        self._owed.discard(event.session)

    def missed(self, event: Event) -> None:
        """The text did not arrive, so it will be shown again."""
        self._shown.pop(event.session, None)

    def start(self, session: str, cwd: str) -> str:
        """Return what is of a new session's folder, and what is newest."""
        self._shown.pop(session, None)
        of, newest = self.opening(cwd)
        return self._marked(session, {f"of {name(PurePath(cwd).name)}": of, "newest": newest})

    def prompt(self, session: str, prompt: str, cwd: str = "") -> str:
        """Return the lines that a prompt deserves, for a model to read."""
        return self._marked(session, {"closest to the prompt": self.near(said(prompt), cwd)})

    def near(self, prompt: str, cwd: str) -> list[Hit]:
        """Return the lines that a prompt in a folder deserves, the best first, and those that came near."""
        view = self._memory.view
        asked = read(prompt, cwd, analyzer(view.settings.search.language))
        if not asked.terms and not asked.codes:
            return []
        query = " ".join((*asked.terms, *sorted(asked.codes), *related(asked.terms)))
        found = self._memory.retrieve(query, CANDIDATES).items
        items = sorted(found, key=lambda item: (item.time or "", item.doc_id, item.start_line), reverse=True)
        counts, lines = searcher(view).frequencies(asked.terms)

        def rare(term: str) -> bool:
            return counts.get(term, 0) <= max(RARE, RARE_SHARE * lines)

        hits = [_hit(view, item, asked, cwd, rare) for item in items]
        hits.sort(key=lambda hit: -hit.score)  # of equal ones the newest stays first
        best, held = 0.0, set[str]()
        for at, hit in enumerate(hits):  # the best, and others as good only for a word that none before holds
            if not hit.why:
                best = best or hit.score
                if hit.score < best or held.issuperset(hit.words):
                    hits[at] = replace(hit, why="another line tells more")
                else:
                    held.update(hit.words)
        return _fitting(hits, view)

    def opening(self, cwd: str) -> tuple[list[Hit], list[Hit]]:
        """Return what was said in a folder or names it, and what is newest; nothing of other projects."""
        view = self._memory.view
        words = analyzer(view.settings.search.language)
        here = {*words.tokens(spaced(PurePath(cwd).name))}
        of, newest = list[Hit](), list[Hit]()
        places = [*view.entries()] or view.entries("evidence")  # of a strategy that keeps records
        for place in sorted(places, key=lambda place: -place.seq):
            entry, folders = place.entry, folders_of(view, place.entry)
            if entry.text.rstrip().endswith("?"):
                continue
            if is_of(folders, cwd) or (here and not folders and here.issubset(words.tokens(entry.text))):
                part = of
            elif not folders or about_oneself(entry.text):
                part = newest
            else:
                continue
            if len(part) < LINES:
                row = _row(entry.text, entry.time, entry.source, entry.fields.get("speaker"))
                part.append(Hit(f"{place.doc_id}:{place.start_line}", row, 0.0))
            if len(of) == len(newest) == LINES:
                break
        return _fitting(of, view), _fitting(newest, view)

    def _marked(self, session: str, parts: Mapping[str, Iterable[Hit]]) -> str:
        known = self._shown.setdefault(session, set())
        for oldest in list(self._shown)[:-SESSIONS]:
            del self._shown[oldest]
        lines: list[str] = []
        for title, hits in parts.items():
            rows = [row for hit in hits if not hit.why and (row := f"{hit.where} {hit.text}") not in known]
            known.update(rows)
            lines += [f"[{title}]", *rows] if rows else []
        return "\n".join((BEGIN, LABEL, fenced(lines), END)) if lines else ""


def _hit(view: View, item: Retrieved, asked: Asked, cwd: str, rare: Callable[[str], bool]) -> Hit:
    turns = filter(None, map(view.entry, item.origin))
    folders = {folder for place in turns for folder in folders_of(view, place.entry)}
    here = is_of(folders, cwd)
    words = analyzer(view.settings.search.language)
    points, counted = score(asked, words.tokens(item.text), here, rare)
    why = ""
    if folders and not here and not about_oneself(item.text):
        why = "said in another project"
    elif view.group(item.doc_id) == "archive":
        why = "superseded"
    elif item.source == "AI":
        why = "an assistant said it"
    elif item.text.rstrip().endswith("?"):
        why = "it only asks"
    elif points < 1:
        why = "too few telling words"
    at = closest(item.text, item.text, frozenset(asked.terms), words)
    row = _row(item.text, item.time, item.source, item.speaker, at=at)
    return Hit(f"{item.doc_id}:{item.start_line}", row, round(min(points, ENOUGH), 2), tuple(counted), why)


def _fitting(hits: Iterable[Hit], view: View) -> list[Hit]:
    """Mark as left out what the budget has no room for."""
    left, room, found = view.settings.hooks.budget, LINES, []
    for hit in hits:
        if not hit.why:
            left, room = left - estimate(f"{hit.where} {hit.text}"), room - 1
            hit = replace(hit, why="over budget") if left < 0 or room < 0 else hit
        found.append(hit)
    return found


def is_of(folders: Iterable[str], cwd: str) -> bool:
    """Return whether one of the folders is of the same project: it lies in `cwd`, or around it."""
    here = PurePath(cwd)
    return any(one.is_relative_to(here) or here.is_relative_to(one) for one in map(PurePath, folders))


def about_oneself(text: str) -> bool:
    """Return whether a line tells of the person who said it, and not of the place."""
    return bool(_ONESELF.search(text)) and not _HERE.search(text)


def said(prompt: str) -> str:
    """Return what a prompt asks for; a command asks for nothing."""
    text, _ = without_recalled(prompt)
    return "" if text.lstrip().startswith("/") else text


def _row(text: str, *about: str | None, at: int = 0) -> str:
    """One line, however many the text has: no line of it can pose as a mark."""
    return f"({', '.join(map(name, filter(None, about)))}) {' '.join(shown(text, at).split())}"
