"""A document as blocks to read: headings, facts with the lines that they superseded, what people wrote.

In: a document and a range of its lines. Out: blocks in order. Promise: every line of the range that says
something stands in one of them. What people wrote is set as Markdown; HTML, links and images in it are text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from markdown_it import MarkdownIt
from markdown_it.token import Token

from infinimem.markdown.characters import visible
from infinimem.markdown.document import Document
from infinimem.markdown.signature import text_start
from infinimem.model import Located
from infinimem.operations.provenance import recorded, session_of
from infinimem.store.spec import EVIDENCE
from infinimem.store.view import View

PAGE = 400  # lines of a document on a page
AROUND = 3  # turns before and after one that are shown with it
_LONGEST = 50_000  # characters that are set as Markdown at once: a table of 400 kB takes seconds
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")
_MARKDOWN.disable(["html_block", "html_inline", "link", "image", "autolink", "reference", "entity"])
_MARKDOWN.disable(["heading", "lheading"])  # they are blocks of their own


@dataclass(frozen=True)
class Fact:
    """A signed line, with what it superseded and what that had superseded (the newest first), and of a turn
    the lines that were drawn from it."""

    seq: int
    text: str
    doc_id: str
    line: int
    time: str
    when: str
    speaker: str
    source: str
    role: str
    signature: str
    former: tuple[Fact, ...] = ()
    drawn: tuple[Fact, ...] = ()


@dataclass(frozen=True)
class Block:
    """What stands together: a heading, whose level on the page is below that of its title, 1; or facts; or
    what people wrote, as HTML."""

    line: int = 0
    title: str = ""
    level: int = 2
    facts: tuple[Fact, ...] = ()
    html: str = ""


LinesOf = Callable[[int], Sequence[Located]]
"""Gives lines by one that they were drawn from, or that stands for them."""


def none(_: int) -> Sequence[Located]:
    """Give no line."""
    return ()


def fact(place: Located, former: LinesOf = none, drawn: LinesOf = none) -> Fact:
    """Show a line; `former` and `drawn` are what provenance's `superseded` and `drawn` give."""
    entry = place.entry
    first = entry.line.partition("\n")[0]
    return Fact(
        entry.seq,
        entry.text,
        place.doc_id,
        place.start_line,
        entry.time or "",
        entry.fields.get("when", ""),
        entry.fields.get("speaker", ""),
        entry.source,
        entry.role,
        first[: text_start(first)].strip(),
        tuple(map(fact, _before(place, former))),
        tuple(map(fact, drawn(place.seq))),
    )


def _before(place: Located, former: LinesOf) -> list[Located]:
    """Return what a line superseded, and what that had; a person may have written a circle."""
    found, ahead = {place.seq: place}, [place.seq]
    while ahead:
        older = [one for one in former(ahead.pop()) if one.seq not in found]
        found |= {one.seq: one for one in older}
        ahead += [one.seq for one in older]
    del found[place.seq]
    return sorted(found.values(), key=lambda one: -one.seq)


def blocks(document: Document, start: int, facts: Mapping[int, Fact]) -> list[Block]:
    """Return the blocks of a page of a document that begins at line `start`; `facts` are its signed lines, by
    the number of their first one."""
    headings = {heading.line: heading for heading in document.headings}
    end = min(start + PAGE - 1, len(document.lines))
    found: list[Block] = []
    run: list[str] = []
    inside = 0  # the last line of the fact or heading that is being passed

    def close(after: int) -> None:
        if any(run):
            found.append(Block(html=_html(run, after - len(run))))
        run.clear()

    for number in range(max(start, document.header_end + 1), end + 1):
        if number <= inside:
            continue
        if one := facts.get(number):
            close(number)
            inside = number + one.text.count("\n")
            before = found.pop().facts if found and found[-1].facts else ()
            found.append(Block(facts=(*before, one)))
        elif heading := headings.get(number):
            close(number)
            inside = number + heading.rows - 1
            found.append(Block(number, heading.title, min(heading.level + 1, 6)))
        else:
            run.append(visible(document.text_line(number), turned=False))
    close(end + 1)
    return found


def _html(lines: Sequence[str], first: int) -> str:
    """Set lines as Markdown, or as they are where Markdown leaves out some of their words (a cell too many);
    what begins at a line, the first of which is given, is called after it."""
    text = "\n".join(lines)
    tokens = _MARKDOWN.parse(text) if len(text) <= _LONGEST else []
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
    return tuple(
        fact(one, drawn=recorded(view).drawn) for one in turns[max(0, at - AROUND) : at + AROUND + 1]
    )


def sessions(view: View, ids: Sequence[str]) -> Iterator[dict[str, object]]:
    """Yield conversations, each with who spoke, when, and how many of its turns were drawn from."""
    records = recorded(view)
    for doc_id in ids:
        turns = view.document(doc_id).entries
        speakers = dict.fromkeys(one.entry.fields.get("speaker") or one.entry.source for one in turns)
        yield {
            "id": doc_id,
            "session": (session_of(turns[0], view) if turns else "") or doc_id.removeprefix(EVIDENCE),
            "time": turns[0].entry.time if turns else "",
            "first": turns[0].text if turns else "",
            "speakers": list(speakers),
            "turns": len(turns),
            "drawn": sum(bool(records.drawn(one.seq)) for one in turns),
        }
