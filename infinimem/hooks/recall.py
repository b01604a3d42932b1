"""What of a memory is put before a model, and how it is marked.

As data, and so that it never comes in again: importers leave out what stands between these marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import PurePath

from infinimem import tokens
from infinimem.errors import InfinimemError
from infinimem.hooks.event import Event
from infinimem.importers.recalled import BEGIN, END, without_recalled
from infinimem.reader import Reader
from infinimem.terms import analyzer
from infinimem.tools.tool import LABEL, fenced, shown

BUDGET = 300
"""Tokens of each part: what is closest to a project or a prompt, and what is newest."""
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


class Recall:
    """What is shown of a memory to the sessions that ask; no line twice to the same session."""

    def __init__(self, memory: Reader) -> None:
        self._memory = memory
        self._shown: dict[str, set[str]] = {}
        self._owed: dict[str, str] = {}  # folders of sessions whose start came too late, by session

    def text(self, event: Event) -> str:
        """What an event is shown; a start that came too late is shown with the session's next prompt."""
        try:
            if event.name == "SessionStart":
                return self.start(event.session, event.cwd)
            owed = self._owed.pop(event.session, None)
            start = "" if owed is None else self.start(event.session, owed)
            return "\n".join(filter(None, (start, self.prompt(event.session, event.prompt))))
        except (InfinimemError, OSError):  # a library that is being changed, or harmed: next time
            return ""

    def missed(self, event: Event) -> None:
        """The text did not arrive, so it will be shown again."""
        self._shown.pop(event.session, None)
        if event.name == "SessionStart":
            self._owed[event.session] = event.cwd

    def start(self, session: str, cwd: str) -> str:
        """For a session whose context is new: what is closest to its folder, and what is newest."""
        self._shown.pop(session, None)
        project = PurePath(cwd).name
        return self._marked(
            session, {f"closest to {shown(project)}": self._close(project), "newest": self._newest()}
        )

    def prompt(self, session: str, prompt: str) -> str:
        """For a prompt: the lines that share words with it."""
        said, _ = without_recalled(prompt)
        if said.lstrip().startswith("/"):  # a command
            return ""
        return self._marked(session, {"closest to the prompt": self._close(said)})

    def _close(self, text: str) -> list[str]:
        """The best lines that share enough words with a text; ranking alone always finds some."""
        words = analyzer(self._memory.view.settings.search.language)
        # A word of one or two letters tells nothing in an alphabet, and all in other scripts.
        terms = {*words.query_terms(f"{_spaced(text)} {ANCHOR}")} - {ANCHOR}
        wanted = {term for term in terms if len(term) >= TELLING or not term.isascii()}
        if not wanted:
            return []
        items = self._memory.retrieve(_spaced(text), 2 * BUDGET).items
        shared = [wanted.intersection(words.tokens(" ".join((*item.headings, item.text)))) for item in items]
        known = set().union(*shared)
        enough = min(MOST, max(1, (len(known) + 1) // 2))
        found = (item for item, of in zip(items, shared, strict=True) if len(of) >= enough)
        return [
            _row(item.doc_id, item.start_line, item.text, item.time, item.source, item.speaker)
            for item in found
        ]

    def _newest(self) -> Iterator[str]:
        for place in sorted(self._memory.view.entries(), key=lambda place: -place.entry.seq)[:LINES]:
            entry = place.entry
            about = (entry.time, entry.source, entry.fields.get("speaker"))
            yield _row(place.doc_id, place.start_line, entry.text, *about)

    def _marked(self, session: str, parts: Mapping[str, Iterable[str]]) -> str:
        known = self._shown.setdefault(session, set())
        for oldest in list(self._shown)[:-SESSIONS]:
            del self._shown[oldest]
        lines: list[str] = []
        for title, items in parts.items():
            rows = list(_fitting(row for row in items if row not in known))
            known.update(rows)
            lines += [f"[{title}]", *rows] if rows else []
        return "\n".join((BEGIN, LABEL, fenced(lines), END)) if lines else ""


def _row(doc_id: str, line: int, text: str, *about: str | None) -> str:
    """One line, however many the text has: no line of it can pose as a mark."""
    return f"{doc_id}:{line} ({', '.join(filter(None, about))}) {shown(' '.join(text.split()))}"


def _fitting(rows: Iterable[str]) -> Iterator[str]:
    left = BUDGET
    for row in islice(dict.fromkeys(rows), LINES):
        left -= tokens.estimate(row)
        if left < 0:
            return
        yield row


def _spaced(text: str) -> str:
    return text.replace("-", " ").replace("_", " ")
