"""What a page is made of: the library that is shown, the templates, the links between pages, and what they
show of documents: blocks to read, facts, cards, conversations.

In: what was asked. Out: HTML, or the mapping behind it. Promise: all text of a memory is escaped, and what
hides, turns or steers in it is shown as an escape. Every line of a document that says something stands in a
block; in what people wrote, HTML and images are text, and so are links that lead out of the library.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, cached_property, lru_cache
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlencode

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from infinimem.errors import UsageError
from infinimem.grounding.sentences import sentences
from infinimem.markdown.characters import visible
from infinimem.markdown.document import Document
from infinimem.markdown.signature import text_start
from infinimem.model import CURRENT, Located, Receipt
from infinimem.operations.provenance import REPLACED, recorded, session_of
from infinimem.results import counted, reasons
from infinimem.store.lines import ALIAS, ID, STEM, fold
from infinimem.store.spec import ARCHIVE, EVIDENCE, TOPICS
from infinimem.store.view import View, whole
from infinimem.terms import MONTHS

if TYPE_CHECKING:
    from jinja2 import Environment

    from infinimem.memory import Memory
    from infinimem.reader import Reader

UNSORTED = "Not sorted into topics yet"
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
    _seen: tuple[View | None, int] = None, 0

    @property
    def forms(self) -> bool:
        return bool(self.csrf)

    @property
    def menu(self) -> list[tuple[str, str]]:
        if not self.memory.library.initialised:  # notes fill no other page
            return [("/topics", "Notes"), ("/ask", "Ask")]
        pages = ("topics", "ask", "timeline", "review", "conversations", "map")
        return [(f"/{name}", name.capitalize()) for name in pages]

    @property
    def name(self) -> str:
        return self.memory.library.root.resolve().name

    @lru_cache(maxsize=2)  # noqa: B019 - a site lives as long as its server
    def _past(self, view: View, moment: str) -> Reader:
        return self.memory.at(moment)

    def reader(self, moment: str) -> Reader:
        return self._past(self.memory.view, moment) if moment else self.memory

    def version(self) -> str:
        """Return what is another text once anything in the library has changed."""
        if self._seen[0] is not (view := self.memory.view):
            self._seen = view, self._seen[1] + 1
        return str(self._seen[1])

    def html(self, page: Page, asked: Asked, version: str) -> str:
        """Write the page, which shows this version or a later one."""

        def to(path: str, anchor: str = "", **query: object) -> str:
            past: dict[str, object] = {"as-of": asked.moment} if path.startswith(OF_A_MOMENT) else {}
            return served(path, anchor, past | query)

        name_of = cache(lambda doc_id: titled(asked.reader.view, doc_id))
        shown = {**page.data, **page.shown, "site": self, "asked": asked, "to": to, "name_of": name_of}
        shown["version"] = version
        shown["parts"] = self._templates.get_template("parts.html").make_module(shown)
        return self._templates.get_template(page.template).render(shown)

    @cached_property
    def _templates(self) -> Environment:
        from jinja2 import Environment, PackageLoader, StrictUndefined

        made = Environment(
            loader=PackageLoader("infinimem.web"),
            autoescape=True,
            undefined=StrictUndefined,
            # text of anyone's cannot hide or turn what stands around it
            finalize=lambda value: visible(value, turned=False) if type(value) is str else value,
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

    def narrowed(self, name: str, value: str) -> str:
        """Return the address with one facet set, or freed if it is set so; without a name all are freed."""
        changes = {name: "" if self.query.get(name) == value else value}
        if not name:
            changes = {one: "" for one in self.query if one not in ("q", "scope", "as-of")}
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
        is_past = self.address.startswith((*OF_A_MOMENT, "/ask"))
        return self.query.get("as-of", "").strip() if is_past else ""

    @property
    def start(self) -> int:
        """Return the number from which a list is shown, 1 for the first."""
        return max(whole(self.query.get("from")) or 1, 1)


def seq_of(text: str) -> int:
    """Return the number of a line; UsageError if it is none."""
    if not (seq := whole(text)):
        raise UsageError("say which line: a number")
    return seq


def served(path: str, anchor: str, query: Mapping[str, object]) -> str:
    """Return a link within the server: ids are quoted, so that none leaves it."""
    asked = urlencode({name: value for name, value in query.items() if value != ""})
    return quote(path) + (f"?{asked}" if asked else "") + (f"#{quote(anchor)}" if anchor else "")


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


PAGE = 400  # lines of a document on a page
AROUND = 3  # turns before and after one that are shown with it
_LONGEST = 50_000  # characters that are set as Markdown at once: a table of 400 kB takes seconds
_WIKI = re.compile(r"!?\[\[([^\[\]|#\n]*)(?:#([^\[\]|\n]*))?(?:\|([^\[\]\n]+))?\]\]")
_LINKS = re.compile(r"!?\[\[(?:[^\[\]|]*\|)?([^\[\]]*)\]\]|!?\[([^\[\]]*)\]\([^()]*\)")


def _wiki_link(state: StateInline, silent: bool) -> bool:
    match = _WIKI.match(state.src, state.pos)
    if match is None:
        return False
    if not silent:
        name, title, words = (part or "" for part in match.groups())
        address, shown = state.env["link"](name, title), words or " › ".join(filter(None, (name, title)))
        told = f'<a href="{escape(address)}">{escape(shown)}</a>' if address else escape(match[0])
        state.push("html_inline", "", 0).content = told
    state.pos = match.end()
    return True


_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")
_MARKDOWN.inline.ruler.before("link", "wiki", _wiki_link)
_MARKDOWN.disable(["html_block", "html_inline", "image", "autolink", "reference", "entity"])
_MARKDOWN.disable(["heading", "lheading"])  # they are blocks of their own


Fact = Mapping[str, Any]  # a signed line as a page shows it (`fact`)


@dataclass(frozen=True)
class Block:
    """What stands together: a heading, whose level on the page is below that of its title, 1; or facts; or
    what people wrote, as HTML."""

    line: int = 0
    title: str = ""
    level: int = 2
    facts: tuple[Fact, ...] = ()
    html: str = ""


def fact(view: View, place: Located, former: bool = False, drawn: bool = False) -> Fact:
    """Show a line; if asked for with what it superseded and what that had superseded (the newest first), and
    with what was drawn from it. One that `stands` can be edited."""
    entry, records = place.entry, recorded(view)
    first = entry.line.partition("\n")[0]
    return {
        "seq": entry.seq,
        "text": entry.text,
        "doc_id": place.doc_id,
        "line": place.start_line,
        "time": entry.known_time,
        "when": entry.fields.get("when", ""),
        "speaker": entry.fields.get("speaker", ""),
        "source": entry.source,
        "role": entry.role,
        "signature": first[: text_start(first)].strip(),
        "pinned": entry.pinned,
        "stands": place.doc_id.startswith((CURRENT, TOPICS)),
        "former": [fact(view, one) for one in _before(place, records.superseded)] if former else (),
        "drawn": [fact(view, one) for one in records.drawn(place.seq)] if drawn else (),
    }


def _before(place: Located, former: Callable[[int], Sequence[Located]]) -> list[Located]:
    """Return what a line superseded, and what that had; a person may have written a circle."""
    found, ahead = {place.seq: place}, [place.seq]
    while ahead:
        older = [one for one in former(ahead.pop()) if one.seq not in found]
        found |= {one.seq: one for one in older}
        ahead += [one.seq for one in older]
    del found[place.seq]
    return sorted(found.values(), key=lambda one: -one.seq)


LinkTo = Callable[..., str]
"""Gives the address of what a link names, and of a heading there; "" if it is nothing of the library's. With
True for a third argument the name is a path from the document."""


def blocks(document: Document, start: int, facts: Mapping[int, Fact], link: LinkTo) -> list[Block]:
    """Return the blocks of a page of a document that begins at line `start`; `facts` are its signed lines, by
    the number of their first one."""
    headings = {heading.line: heading for heading in document.headings}
    end = min(start + PAGE - 1, len(document.lines))
    found: list[Block] = []
    run: list[str] = []
    inside = 0  # the last line of the fact or heading that is being passed

    def close(after: int) -> None:
        if any(run):
            found.append(Block(html=set_markdown(run, after - len(run), link)))
        run.clear()

    for at in range(max(start, document.header_end + 1), end + 1):
        if at <= inside:
            continue
        if one := facts.get(at):
            close(at)
            inside = at + one["text"].count("\n")
            before = found.pop().facts if found and found[-1].facts else ()
            found.append(Block(facts=(*before, one)))
        elif heading := headings.get(at):
            close(at)
            inside = at + heading.rows - 1
            found.append(Block(at, heading.title, min(heading.level + 1, 6)))
        else:
            run.append(visible(document.text_line(at), turned=False))
    close(end + 1)
    return found


def set_markdown(lines: Sequence[str], first: int, link: LinkTo) -> str:
    """Set lines as Markdown, or as they are where Markdown leaves out some of their words (a cell too many);
    what begins at a line, the first of which is given, is called after it."""
    text = "\n".join(lines)
    tokens = _MARKDOWN.parse(text, {"link": link}) if len(text) <= _LONGEST else []
    begins: dict[int, Token] = {}
    for token in tokens:
        token.attrs.pop("style", None)  # the pages' policy allows none
        if token.type == "fence":
            token.content, token.info = f"{token.info.strip()}\n{token.content}".lstrip("\n"), ""
        line = first + token.map[0] if token.map else 0
        if line and token.type != "inline":
            token.attrSet("dir", "auto")
            begins.setdefault(line, token).attrSet("id", f"L{line}")
        for child in token.children or ():
            if child.type in ("softbreak", "hardbreak"):
                line += 1
                ends = "<br>" if child.type == "hardbreak" else ""
                child.type, child.content = "html_inline", f'{ends}\n<span id="L{line}"></span>'
            elif child.type == "link_open":  # one that leads out only tells where to
                href = str(child.attrGet("href"))
                path, _, anchor = unquote(href).partition("#")
                address = link(path, anchor, True) if path else ""
                child.attrs = {"href": address} if address else {"title": href}
    shown = "".join(token.content + token.info * (token.type == "list_item_open") for token in tokens)
    if not tokens or [*filter(str.isalnum, shown)] != [*filter(str.isalnum, text)]:
        return f'<pre dir="auto" id="L{first}">{escape(text)}</pre>'
    return str(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {}))


def around(view: View, seq: int) -> tuple[Fact, ...]:
    """Return a turn with those before and after it in its document."""
    place = view.entry(seq)
    if place is None:
        return ()
    turns = view.document(place.doc_id).entries
    at = next(n for n, one in enumerate(turns) if one.seq == seq)
    return tuple(fact(view, one, drawn=True) for one in turns[max(0, at - AROUND) : at + AROUND + 1])


def sessions(view: View, ids: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield conversations, each with who spoke, when, how many of its turns were drawn from, and where that
    went."""
    records = recorded(view)
    for doc_id in ids:
        turns = view.document(doc_id).entries
        speakers = dict.fromkeys(one.entry.fields.get("speaker") or one.entry.source for one in turns)
        drawn = [one.doc_id for turn in turns for one in records.drawn(turn.seq)]
        session = (session_of(turns[0], view) if turns else "") or doc_id.removeprefix(EVIDENCE)
        yield {
            "id": doc_id,
            "session": session,
            "time": turns[0].entry.time if turns else "",
            "title": next(sentences(turns[0].text), "") if turns else session,
            "speakers": list(speakers),
            "turns": len(turns),
            "kept": len(drawn),
            "places": [one for one, _ in Counter(drawn).most_common(5) if not one.startswith(ARCHIVE)],
        }


def card(view: View, doc_id: str) -> dict[str, Any]:
    """Return a document in short: title, a sentence, how many facts, the newest day."""
    document = view.document(doc_id)
    parts = (part.splitlines() for part in document.body.split("\n\n"))
    prose = (" ".join(line for line in part if line.lstrip()[:1] not in "#`|<>!-*+=_") for part in parts)
    newest = "".join(place.text for place in document.entries[-1:])
    told = document.summary or next(filter(None, prose), newest)
    who, _, rest = told.partition(": ")
    told = rest if who in {place.entry.fields.get("speaker") for place in document.entries} else told
    told = _LINKS.sub(r"\1\2", told).replace("`", "").replace("**", "")
    shown = {"id": doc_id, "title": titled(view, doc_id), "sentence": next(sentences(told), told)}
    return shown | {"facts": len(document.entries), "day": newest_day(view, doc_id)}


def newest_day(view: View, doc_id: str) -> str:
    """Return the newest day of a document's lines; of a note that on which it was saved."""
    if not view.is_note(doc_id):
        return max((place.entry.known_time for place in view.document(doc_id).entries), default="")[:10]
    at = view.stored.stamps[doc_id].mtime_ns / 1e9 if view.stored else 0
    return datetime.fromtimestamp(at, UTC).date().isoformat() if at else ""


def named_in(view: View, name: str, is_path: bool) -> str:
    """Return the document that a link names; "" if there is none. (View.resolve looks for one near it.)"""
    exact = name.strip().strip("/").removesuffix(".md")
    last = "" if is_path else fold(exact.rpartition("/")[2])
    named = ((ID, fold(exact)), (STEM, last), (ALIAS, last))
    ids = (exact, *(doc_id for kind, key in named if key for doc_id in view.lines.named(kind, key)))
    return next((doc_id for doc_id in ids if doc_id in view), "")
