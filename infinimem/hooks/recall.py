"""What of a memory is put before a model, and how it is marked.

As data, and so that it never comes in again: importers leave out what stands between these marks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath

from infinimem import tokens
from infinimem.errors import InfinimemError
from infinimem.hooks.event import Event
from infinimem.hooks.telling import RARE, RARE_SHARE, Asked, read, score, spaced
from infinimem.importers.fields import BEGIN, END, without_recalled
from infinimem.markdown.characters import name
from infinimem.model import Retrieved
from infinimem.reader import Reader
from infinimem.retrieval.priors import related
from infinimem.retrieval.searcher import searcher
from infinimem.store.sources import folders_of
from infinimem.store.view import View
from infinimem.terms import analyzer
from infinimem.tools.tool import LABEL, closest, fenced, shown

ENOUGH = 2.0
"""The score beyond which more words of a long prompt tell nothing more."""
LINES = 6
"""Lines of each part at most."""
SESSIONS = 64
"""Sessions of which it is known what they were shown."""
CANDIDATES = 2000
"""Tokens of lines that are looked at."""


_ONESELF = re.compile(r"\b(?:I|I['’]\w+|my|mine|me)\b")
_HERE = re.compile(r"\b(?:this|the|our) (?:project|repo\w*|code\w*|branch|app|site|shop)\b|\bhere\b", re.I)


@dataclass(frozen=True)
class Hit:
    """A line that came near, and what speaks for it.

    Args:
        where: "topics/home:13".
        text: the line as it is shown.
        score: what it is ranked by.
        words: of the prompt that it holds.
        why: it is not shown; "" where it is.
    """

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
        """What an event is shown; a start that came too late is shown with the session's next prompt."""
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

    def arrived(self, event: Event) -> None:
        """The text was taken: with it the session's start."""
        self._owed.discard(event.session)

    def missed(self, event: Event) -> None:
        """The text did not arrive, so it will be shown again."""
        self._shown.pop(event.session, None)

    def start(self, session: str, cwd: str) -> str:
        """For a session whose context is new: what is of its folder, and what is newest."""
        self._shown.pop(session, None)
        of, newest = self.opening(cwd)
        return self._marked(session, {f"of {name(PurePath(cwd).name)}": of, "newest": newest})

    def prompt(self, session: str, prompt: str, cwd: str = "") -> str:
        """For a prompt: the lines that it deserves."""
        return self._marked(session, {"closest to the prompt": self.near(said(prompt), cwd)})

    def near(self, prompt: str, cwd: str) -> list[Hit]:
        """The lines that a prompt in a folder deserves, the best first, and those that came near."""
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
        return _fitting(_apart(hits), view)

    def opening(self, cwd: str) -> tuple[list[Hit], list[Hit]]:
        """What was said in a folder or names it, and what is newest; of other projects nothing."""
        view = self._memory.view
        words = analyzer(view.settings.search.language)
        here = {*words.tokens(spaced(PurePath(cwd).name))}
        of, newest = list[Hit](), list[Hit]()
        places = [*view.entries()] or view.entries("evidence")  # of a strategy that keeps records
        for place in sorted(places, key=lambda place: -place.seq):
            entry, folders = place.entry, folders_of(view, place.entry)
            if asks(entry.text):
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
    """How near a line comes to a prompt."""
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
    elif asks(item.text):
        why = "it only asks"
    elif points < 1:
        why = "too few telling words"
    at = closest(item.text, item.text, frozenset(asked.terms), words)
    row = _row(item.text, item.time, item.source, item.speaker, at=at)
    return Hit(f"{item.doc_id}:{item.start_line}", row, round(min(points, ENOUGH), 2), tuple(counted), why)


def _apart(hits: Iterable[Hit]) -> Iterator[Hit]:
    """Of those that could be shown the best, and others as good only for a word that none before holds."""
    best, told = 0.0, set[str]()
    for hit in hits:
        if not hit.why:
            best = best or hit.score
            if hit.score < best or told.issuperset(hit.words):
                hit = replace(hit, why="another line tells more")
            else:
                told.update(hit.words)
        yield hit


def _fitting(hits: Iterable[Hit], view: View) -> list[Hit]:
    """What is to be shown of them, as far as the budget goes."""
    left, room, found = view.settings.hooks.budget, LINES, []
    for hit in hits:
        if not hit.why:
            left, room = left - tokens.estimate(f"{hit.where} {hit.text}"), room - 1
            hit = replace(hit, why="over budget") if left < 0 or room < 0 else hit
        found.append(hit)
    return found


def is_of(folders: Iterable[str], cwd: str) -> bool:
    """Whether one of some folders is of the same project as another: one of the two lies in the other."""
    here = PurePath(cwd)
    return any(one.is_relative_to(here) or here.is_relative_to(one) for one in map(PurePath, folders))


def about_oneself(text: str) -> bool:
    """Whether a line tells of the person who said it, and not of the place."""
    return bool(_ONESELF.search(text)) and not _HERE.search(text)


def asks(text: str) -> bool:
    """Whether a line is a question, and tells nothing."""
    return text.rstrip().endswith("?")


def said(prompt: str) -> str:
    """What a prompt asks for; a command asks for nothing."""
    text, _ = without_recalled(prompt)
    return "" if text.lstrip().startswith("/") else text


def _row(text: str, *about: str | None, at: int = 0) -> str:
    """One line, however many the text has: no line of it can pose as a mark."""
    return f"({', '.join(map(name, filter(None, about)))}) {' '.join(shown(text, at).split())}"
