"""Checks of documents and of the lines in them, one function a rule of docs/FORMAT.md. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

from infinimem.markdown.document import Document
from infinimem.model import CURRENT, Finding, Level, Located
from infinimem.operations.doctor.inspection import ROOM, Shelf, listed
from infinimem.operations.doctor.renamed import mended, said_id
from infinimem.store.clone_merge import Position, position
from infinimem.store.external_edits import ExternalEdits
from infinimem.store.spec import ARCHIVE, TOPICS
from infinimem.store.state.sequence import MARK, MAX_SEQ
from infinimem.store.view import drawn_from, fold, former

_WHY = re.compile(r"^(?:Superseded by|Duplicate of|Rewritten as) ([1-9][0-9]{0,17}) ")
_CONFLICT = ("<<<<<<< ", ">>>>>>> ")
_UNDECODED = re.compile("[\ud800-\udfff]")

RENAMED = "write the id of the file there, keep the old name as an alias"
SIGNED = "sign them"
RENUMBERED = "give all but one a new seq"
LED = "cite those that it may come from"
RAISED = "raise the mark"


def documents(shelf: Shelf) -> Iterator[Finding]:
    """Names, headers and characters of all documents, people's notes included."""
    for doc_id, why in shelf.unreadable.items():
        yield Finding("error", why, doc_id)
    names: dict[str, list[str]] = defaultdict(list)
    for doc_id in shelf.view.ids("all"):
        names[fold(doc_id)].append(doc_id)
    for same in names.values():
        if len(same) > 1:
            what = f"some file systems take these names for one, rename all but one: {', '.join(same)}"
            yield Finding("error", what, same[0])
    for document in shelf.documents.values():
        note = shelf.view.is_note(document.id)
        if document.header.problem:
            yield Finding(
                "note" if note else "error", f"header: {document.header.problem}", f"{document.id}:1"
            )
        yield from _characters(document, note)
        yield from _conflicts(document, "note" if note else "error")
        if not note:
            yield from _id(document, shelf)


def _id(document: Document, shelf: Shelf) -> Iterator[Finding]:
    if named := said_id(document):
        fix = RENAMED if mended(document, shelf.view) else ""
        advice = "" if fix else "; write the name of the file there, or rename the file"
        yield Finding("note", f"the header says id {named}{advice}", f"{document.id}:1", fix)


def _characters(document: Document, note: bool) -> Iterator[Finding]:
    lines = document.lines
    nul = [number for number, line in enumerate(lines, 1) if "\x00" in line]
    undecoded = [n for n, line in enumerate(lines, 1) if not line.isascii() and _UNDECODED.search(line)]
    if nul:
        yield Finding("note", "holds NUL characters; save it as UTF-8 text", f"{document.id}:{nul[0]}")
    if undecoded:
        where = f"{document.id}:{undecoded[0]}"
        yield Finding("note", "holds bytes that are no UTF-8; save it as UTF-8 text", where)
    if note:
        return
    if document.bom:
        yield Finding("note", "begins with a byte-order mark; it is kept, nothing needs it", document.id)
    ended = lines if document.final_newline else lines[:-1]
    crlf = sum(line.endswith("\r") for line in ended)
    if 0 < crlf < len(ended):
        yield Finding("note", f"mixes line ends: CRLF in {crlf} of {len(ended)} lines", document.id)


def _conflicts(document: Document, level: Level) -> Iterator[Finding]:
    for number, line in enumerate(document.lines, 1):
        if line.startswith(_CONFLICT):
            what = f"a git conflict marker ({line[:7]}); keep what you want, delete the markers"
            yield Finding(level, what, f"{document.id}:{number}")


def lines(shelf: Shelf, high_water: int | None, edits: ExternalEdits) -> Iterator[Finding]:
    """Entries of the program's documents: signatures, seqs, reasons of the archive, origins.

    Args:
        shelf: the documents.
        high_water: the highest seq that was given; None where that is lost.
        edits: what `adopt_edits` would take in.
    """
    for document in shelf.own():
        for number in document.malformed:
            what = (
                "its signature does not parse; write `- <seq=N,source=human> text`, or `- text` for a new seq"
            )
            yield Finding("error", what, f"{document.id}:{number}")
    for document in shelf.own(CURRENT, TOPICS):
        if typed := document.unsigned:
            what = f"{_lines(len(typed))} typed by hand without a signature so far"
            fix = "" if shelf.crowded else SIGNED
            yield Finding("note", what, f"{document.id}:{typed[0].line}", fix)
    yield from _seqs(shelf, high_water, edits.renumbered)
    if not (edits.renumbered or shelf.crowded):
        yield from _misled(edits)
    yield from _archive(shelf)
    if shelf.whole:
        yield from _origins(shelf)


def _lines(count: int) -> str:
    return f"{count} line{'' if count == 1 else 's'}"


def _seqs(shelf: Shelf, high_water: int | None, renumbered: Collection[Position]) -> Iterator[Finding]:
    highest = max(shelf.places, default=0)
    doubled: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for seq, places in sorted(shelf.places.items()):
        if len(places) > 1:
            doubled[tuple(place.doc_id for place in places)].append(seq)
    for _, seqs in sorted(doubled.items()):
        places = sorted(shelf.places[seqs[0]], key=lambda place: position(place) in renumbered)
        advice = "" if shelf.whole else "; mend the document that cannot be read first"
        fix = "" if shelf.crowded or not shelf.whole else RENUMBERED
        yield Finding("error", f"{_doubled(seqs, places)}{advice}", _at(places[-1]), fix)
    if shelf.crowded:
        what = (
            f"seq {highest} leaves no room for new ones; give the line a lower one, {_below(shelf)} is free"
        )
        yield Finding("error", what, _at(shelf.places[highest][0]))
    elif high_water is not None and highest > high_water:
        what = f"seq {highest} is above the high-water mark {high_water} ({MARK})"
        yield Finding("error", what, _at(shelf.places[highest][0]), RAISED)


def _below(shelf: Shelf) -> int:
    return 1 + max((seq for seq in shelf.places if seq <= MAX_SEQ - ROOM), default=0)


def _doubled(seqs: Sequence[int], places: Sequence[Located]) -> str:
    """All seqs that are doubled in the same documents."""
    stand = "stands" if len(seqs) == 1 else "stand"
    times = "twice" if len(places) == 2 else f"{len(places)} times"
    if len(seqs) == 1:
        named = ", ".join(map(_at, places))
    else:
        named = " and ".join(dict.fromkeys(place.doc_id for place in places))
    return f"seq {listed(seqs)} {stand} {times}: {named}"


def _misled(edits: ExternalEdits) -> Iterator[Finding]:
    for one in edits.ambiguous:
        others = listed([line.seq for line in one.resolved(())[0]])
        what = f"cites {one.seq}, which another line had before a merge; it may come from {others}"
        yield Finding("note", what, _at(one.by), LED)


def _at(place: Located) -> str:
    return f"{place.doc_id}:{place.start_line}"


def _archive(shelf: Shelf) -> Iterator[Finding]:
    for document in shelf.own(ARCHIVE):
        for place in document.entries:
            why = _WHY.match(place.headings[-1]) if place.headings else None
            if not place.headings:
                what = "an archived line without a reason; put a heading above it that says why it is there"
                yield Finding("error", what, _at(place))
            elif why is not None and int(why[1]) not in shelf.places and shelf.whole:
                yield Finding("note", f"its successor {why[1]} is not in the library any more", _at(place))


def _origins(shelf: Shelf) -> Iterator[Finding]:
    drawn = shelf.view.drawn or frozenset()
    for document in shelf.own(ARCHIVE, CURRENT, TOPICS):
        for place in document.entries:
            missing = {seq for seq in place.entry.origin if seq not in shelf.places} - shelf.deleted
            if missing:
                # What was drawn from was there: a person deleted it. Nobody vouches for what they typed.
                told = missing <= drawn or place.entry.source == "human"
                what = f"its origin {listed(sorted(missing))} is not in the library{' any more' * told}"
                yield Finding("note" if told else "error", what, _at(place))
            yield from _merged(shelf, place)


def _merged(shelf: Shelf, place: Located) -> Iterator[Finding]:
    """Lines that cite all that had one number before a merge: a person may know which it was."""
    cited = drawn_from(place.entry)
    for line in (line for seq in cited for line in shelf.places.get(seq, ())[:1]):
        if same := set(former(line.entry)) & set(cited):
            both = f"{listed(sorted(same))} and {line.seq}"
            what = f"cites {both}, which had one number before a merge; take out of `origin` what is wrong"
            yield Finding("note", what, _at(place))
