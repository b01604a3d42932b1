"""What of a memory is put before a model, and how it is marked.

As data, and so that it never comes in again: importers leave out what stands between these marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath

from infinimem import tokens
from infinimem.errors import InfinimemError
from infinimem.hooks.event import Event
from infinimem.importers.recalled import BEGIN, END, without_recalled
from infinimem.reader import Reader
from infinimem.settings import HookSettings
from infinimem.terms import analyzer
from infinimem.tools.tool import LABEL, fenced, shown

LINES = 6
"""Lines of each part at most."""
SESSIONS = 64
"""Sessions of which it is known what they were shown."""
TELLING = 3
"""Letters of a word that can tell what a prompt is about."""
ANCHOR = "zqxv"
"""No word: beside it, a prompt of stop words alone ("yes, go on") asks for nothing."""
MOST = 3
"""Words that a line must share with a prompt, however long the prompt is."""


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

    @property
    def _settings(self) -> HookSettings:
        return self._memory.view.settings.hooks

    def text(self, event: Event) -> str:
        """What an event is shown; a start that came too late is shown with the session's next prompt."""
        try:
            wanted = self._settings.recall
            if wanted == "off":
                return ""
            if event.name == "SessionStart":
                self._owed.add(event.session)
                return self.start(event.session, event.cwd)
            start = self.start(event.session, event.cwd) if event.session in self._owed else ""
            prompt = self.prompt(event.session, event.prompt) if wanted == "prompt" else ""
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
        """For a session whose context is new: what is closest to its folder, and what is newest."""
        self._shown.pop(session, None)
        project = PurePath(cwd).name
        return self._marked(
            session, {f"closest to {shown(project)}": self.near(project), "newest": self.newest()}
        )

    def prompt(self, session: str, prompt: str) -> str:
        """For a prompt: the lines that share words with it."""
        return self._marked(session, {"closest to the prompt": self.near(said(prompt))})

    def near(self, text: str) -> list[Hit]:
        """The lines that share enough words with a text, the best first; ranking alone always finds some."""
        words = analyzer(self._memory.view.settings.search.language)
        # A word of one or two letters tells nothing in an alphabet, and all in other scripts.
        terms = {*words.query_terms(f"{_spaced(text)} {ANCHOR}")} - {ANCHOR}
        wanted = {term for term in terms if len(term) >= TELLING or not term.isascii()}
        if not wanted:
            return []
        items = self._memory.retrieve(_spaced(text), 2 * self._settings.budget).items
        shared = [wanted.intersection(words.tokens(" ".join((*item.headings, item.text)))) for item in items]
        known = set().union(*shared)
        enough = min(MOST, max(1, (len(known) + 1) // 2))
        return self._fitting(
            Hit(
                f"{item.doc_id}:{item.start_line}",
                _row(item.text, item.time, item.source, item.speaker),
                item.score,
                tuple(sorted(of)),
                "" if len(of) >= enough else f"{len(of)} of {enough} words",
            )
            for item, of in zip(items, shared, strict=True)
        )

    def newest(self) -> list[Hit]:
        """The newest lines."""
        places = sorted(self._memory.view.entries(), key=lambda place: -place.entry.seq)[:LINES]
        about = (
            (place.entry.time, place.entry.source, place.entry.fields.get("speaker")) for place in places
        )
        return self._fitting(
            Hit(f"{place.doc_id}:{place.start_line}", _row(place.text, *of), 0.0)
            for place, of in zip(places, about, strict=True)
        )

    def _fitting(self, hits: Iterable[Hit]) -> list[Hit]:
        """What is to be shown of them, as far as the budget goes."""
        left, room, found = self._settings.budget, LINES, []
        for hit in hits:
            if not hit.why:
                left, room = left - tokens.estimate(f"{hit.where} {hit.text}"), room - 1
                hit = replace(hit, why="over budget") if left < 0 or room < 0 else hit
            found.append(hit)
        return found

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


def said(prompt: str) -> str:
    """What a prompt asks for; a command asks for nothing."""
    text, _ = without_recalled(prompt)
    return "" if text.lstrip().startswith("/") else text


def _row(text: str, *about: str | None) -> str:
    """One line, however many the text has: no line of it can pose as a mark."""
    return f"({', '.join(filter(None, about))}) {shown(' '.join(text.split()))}"


def _spaced(text: str) -> str:
    return text.replace("-", " ").replace("_", " ")
