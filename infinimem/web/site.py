"""What a page is made of: the library that is shown, the templates, the links between pages.

In: what was asked. Out: HTML, or the mapping behind it. Promise: all text of a memory is escaped, and what
hides, turns or steers in it is shown as an escape.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from infinimem.errors import UsageError
from infinimem.markdown.characters import visible
from infinimem.markdown.document import Document
from infinimem.model import CURRENT, Receipt
from infinimem.operations.provenance import REPLACED, recorded
from infinimem.results import counted, reasons
from infinimem.store.spec import ARCHIVE, EVIDENCE, TOPICS
from infinimem.terms import MONTHS

if TYPE_CHECKING:
    from jinja2 import Environment

    from infinimem.memory import Memory
    from infinimem.reader import Reader
    from infinimem.store.view import View

UNSORTED = "Not sorted into topics yet"
NEEDS_LIBRARY = ("timeline", "review", "conversations", "map")
"""Pages that have nothing to show of a folder of notes."""

OF_A_MOMENT = ("/topics", "/doc/", "/fact/", "/search", "/timeline", "/conversations")
"""Pages that show the library as it stood: a link to one of them from a page of the past stays there."""

_HEIR = re.compile(rf"(?i)(?:{'|'.join(f'(?<={words} )' for words in REPLACED)})([1-9][0-9]{{0,17}})\b")


@dataclass(frozen=True)
class Page:
    """A page, and its JSON twin, which gives the data (keys of the command line, docs/CLI.md); what is shown
    besides is for the template alone."""

    template: str
    data: Mapping[str, Any]
    shown: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Moved:
    """Where to go after a form: a path of the site."""

    path: str
    query: Mapping[str, object] = field(default_factory=dict)
    anchor: str = ""


@dataclass(eq=False)
class Site:
    """A library as pages; `csrf` is what each form carries, "" if nothing may be written or spent."""

    memory: Memory
    csrf: str = ""

    @property
    def forms(self) -> bool:
        return bool(self.csrf)

    @property
    def menu(self) -> list[tuple[str, str]]:
        """Return the pages that every page names."""
        pages = ("topics", "ask", "timeline", "review", "conversations", "map", "recall")
        initialised = self.memory.library.initialised
        names = {} if initialised else {"topics": "Notes"}
        left = () if initialised else NEEDS_LIBRARY
        return [(f"/{name}", names.get(name, name.capitalize())) for name in pages if name not in left]

    @property
    def name(self) -> str:
        return self.memory.library.root.resolve().name

    @lru_cache(maxsize=2)  # noqa: B019 - a site lives as long as its server
    def _past(self, view: View, moment: str) -> Reader:
        return self.memory.at(moment)

    def reader(self, moment: str) -> Reader:
        """Return the library as it is, or as it stood."""
        return self._past(self.memory.view, moment) if moment else self.memory

    def html(self, page: Page, asked: Asked) -> str:
        """Write the page."""

        def to(path: str, anchor: str = "", **query: object) -> str:
            past: dict[str, object] = {"as-of": asked.moment} if path.startswith(OF_A_MOMENT) else {}
            return served(path, anchor, past | query)

        name_of = cache(lambda doc_id: titled(asked.reader.view, doc_id))
        shown = {**page.data, **page.shown, "site": self, "asked": asked, "to": to, "name_of": name_of}
        shown["parts"] = self._templates.get_template("parts.html").make_module(shown)
        return self._templates.get_template(page.template).render(shown)

    @cached_property
    def _templates(self) -> Environment:
        from jinja2 import Environment, PackageLoader, StrictUndefined

        made = Environment(
            loader=PackageLoader("infinimem.web"),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=_shown,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        made.globals["counted"] = counted
        made.filters |= {"did": did, "day": day, "clock": clock, "span": span, "lines": str.splitlines}
        return made


@dataclass(frozen=True)
class Asked:
    """What a page was asked for: its address, with the parts of its path and query, and the form."""

    site: Site
    address: str
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] = field(default_factory=dict)

    @property
    def memory(self) -> Memory:
        return self.site.memory

    @property
    def is_live(self) -> bool:
        """Return whether the page follows what changes: not if it answers a form, nor one of a moment."""
        return not (self.form or self.moment)

    @property
    def now(self) -> str:
        """Return the address of the same as it is now."""
        return self._with({"as-of": ""})

    def narrowed(self, name: str, value: str) -> str:
        """Return the address with one facet set, or freed if it is set so; without a name all are freed."""
        if not name:
            return self._with({one: "" for one in self.query if one not in ("q", "scope", "as-of", "why")})
        return self._with({name: "" if self.query.get(name) == value else value})

    def _with(self, changes: Mapping[str, str]) -> str:
        return served(self.address, "", {**self.query, **changes})

    @cached_property
    def reader(self) -> Reader:
        return self.site.reader(self.moment)

    def lines_in(self, words: str) -> Iterator[tuple[str, bool]]:
        """Yield why a line is where it is, in pieces, and whether each is the number of a line."""
        view = self.reader.view
        for at, piece in enumerate(_HEIR.split(words)):
            yield piece, at % 2 == 1 and bool(view.entry(int(piece)) or recorded(view).steps(int(piece)))

    @property
    def moment(self) -> str:
        """Return as of when; "" for now."""
        return self.query.get("as-of", "").strip()

    @property
    def start(self) -> int:
        """Return the number from which a list is shown, 1 for the first."""
        return max(number(self.query.get("from", ""), 1), 1)


def number(text: str, default: int) -> int:
    """Return a whole number from 0; the default if it is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else default


def seq_of(text: str) -> int:
    """Return the number of a line; UsageError if it is none."""
    if not (seq := number(text, 0)):
        raise UsageError("say which line: a number")
    return seq


def served(path: str, anchor: str, query: Mapping[str, object]) -> str:
    """Return a link within the server: ids are quoted, so that none leaves it."""
    asked = urlencode({name: value for name, value in query.items() if value != ""})
    return quote(path) + (f"?{asked}" if asked else "") + (f"#{quote(anchor)}" if anchor else "")


def _shown(value: Any) -> Any:
    """Put out a value of a template: text of anyone's cannot hide or turn what stands around it."""
    return visible(value, turned=False) if type(value) is str else value


def titled(view: View, doc_id: str) -> str:
    """Return what a document is called: by its header, a note also by its first heading, else by its file."""
    topic = doc_id.replace(ARCHIVE, TOPICS, 1) if doc_id.startswith(ARCHIVE) else doc_id
    document = view.document(topic) if topic in view else Document.empty(topic)
    first = [one.title for one in document.headings[:1] if one.level == 1]
    title = document.title or "".join(first) or (UNSORTED if topic == CURRENT else topic.rpartition("/")[2])
    if doc_id.startswith(EVIDENCE) and (said := day(str(document.header.values.get("date", "")))):
        return f"Conversation of {said}"
    return f"{title} (no longer holds)" if topic != doc_id else title


WORDS = {
    "moved": "sorted",
    "superseded": "replaced",
    "duplicate": "said twice",
    "stamped": "written by hand",
    "deleted": "taken out by hand",
    "undone": "put back",
    "removed": "taken out",
}
"""What a receipt did to a line, as people say it."""


def did(one: Receipt) -> str:
    """Return what a receipt did, in half a line: "30 facts sorted, 8 facts replaced"."""
    rows = [f"{counted(times, 'fact')} {WORDS.get(why, why)}" for why, times in reasons(one).items()]
    told = ", ".join(rows) or f"no fact moved, {counted(len(one.files), 'file')} changed"
    return "; ".join((told, *one.notes[:1]))


def day(time: str | None) -> str:
    """ "2025-03-09T09:17:37" as "9 March 2025", "2025-03" as "March 2025"; what is no date as it is."""
    parts = (time or "")[:10].split("-")
    if not all(part.isascii() and part.isdigit() for part in parts):
        return time or ""
    year, month, date = (*map(int, parts), 0, 0)[:3]
    if not 1 <= month <= 12:
        return time or ""
    return f"{date or ''} {MONTHS[month - 1]} {year}".strip()


def span(when: str) -> str:
    """ "2025-03-01/2025-03-07" as "1 March 2025 to 7 March 2025"."""
    return " to ".join(map(day, when.split("/")))


def clock(time: str | None) -> str:
    """ "2025-03-09T09:17:37" as "09:17"; "" where it is a day alone."""
    return time[11:16] if time and len(time) > 15 and time[10] == "T" else ""
