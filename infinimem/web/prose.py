"""A document as blocks to read: headings, facts with the lines that they superseded, what people wrote.

In: a document and a range of its lines. Out: blocks in order. Promise: every line of the range that says
something stands in one of them, as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from infinimem.markdown.document import Document
from infinimem.markdown.signature import text_start
from infinimem.model import Located
from infinimem.operations.provenance import ByLine, drawn, session_of
from infinimem.store.spec import EVIDENCE
from infinimem.store.view import View

PAGE = 400  # lines of a document on a page
AROUND = 3  # turns before and after one that are shown with it
_FENCE = re.compile(r" {0,3}(```|~~~)")
_ITEM = re.compile(r"( *)(?:[-*+>|]|\d+[.)])(?: |$)")
"""What begins a line of its own: an item, a quotation, a row of a table."""


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
    """What stands together.

    Args:
        kind: "heading", "facts", "text", "item" or "code".
        level: of a heading on the page, whose title is 1; of an item, how deep it is.
        lines: number and text of each, of all but facts.
    """

    kind: str
    lines: tuple[tuple[int, str], ...] = ()
    level: int = 2
    facts: tuple[Fact, ...] = ()


_NOTHING: ByLine = {}


def fact(place: Located, former: ByLine = _NOTHING, drawn: ByLine = _NOTHING) -> Fact:
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
        tuple(map(fact, drawn.get(place.seq, ()))),
    )


def _before(place: Located, former: ByLine) -> list[Located]:
    """Return what a line superseded, and what that had; a person may have written a circle."""
    found, ahead = {place.seq: place}, [place.seq]
    while ahead:
        older = [one for one in former.get(ahead.pop(), ()) if one.seq not in found]
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
    run: list[tuple[int, str]] = []
    fence, inside = "", 0  # the last line of the fact that is being passed

    def close(kind: str = "text") -> None:
        if run:
            found.append(Block(kind, tuple(run)))
            run.clear()

    for number in range(max(start, document.header_end + 1), end + 1):
        text = document.text_line(number)
        opens = _FENCE.match(text)
        if number <= inside:
            continue
        if fence:
            run.append((number, text))
            if opens and opens[1] == fence and text.strip().strip(fence[0]) == "":
                fence = ""
                close("code")
        elif one := facts.get(number):
            close()
            inside = number + one.text.count("\n")
            before = found.pop().facts if found and found[-1].kind == "facts" else ()
            found.append(Block("facts", facts=(*before, one)))
        elif heading := headings.get(number):
            close()
            found.append(Block("heading", ((number, heading.title),), min(heading.level + 1, 6)))
        elif opens:
            close()
            fence = opens[1]
            run.append((number, text))
        elif not text.strip():
            close()
        elif item := _ITEM.match(text):
            close()
            depth = min(len(item[1]) // 2, 3)
            found.append(Block("item", ((number, text),), depth))
        elif not run and found and found[-1].kind == "item" and found[-1].lines[-1][0] == number - 1:
            last = found.pop()  # it goes on
            found.append(Block("item", (*last.lines, (number, text)), last.level))
        else:
            run.append((number, text))
    close("code" if fence else "text")
    return found


def around(view: View, seq: int) -> tuple[Fact, ...]:
    """Return a turn with those before and after it in its document."""
    place = view.entry(seq)
    if place is None:
        return ()
    turns = view.document(place.doc_id).entries
    at = next(n for n, one in enumerate(turns) if one.seq == seq)
    marks = view.derived(drawn)
    return tuple(fact(one, drawn=marks) for one in turns[max(0, at - AROUND) : at + AROUND + 1])


def sessions(view: View, ids: Sequence[str]) -> Iterator[dict[str, object]]:
    """Yield conversations, each with who spoke, when, and how many of its turns were drawn from."""
    marks = view.derived(drawn)
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
            "drawn": sum(one.seq in marks for one in turns),
        }
