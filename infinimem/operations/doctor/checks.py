"""Checks of documents and of the lines in them, one function per rule of docs/FORMAT.md."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

from infinimem.grounding.when import day_of, is_outdated
from infinimem.markdown.document import Document
from infinimem.markdown.header import flow, quote
from infinimem.model import CURRENT, Finding, Level, Located
from infinimem.operations.doctor.inspection import ROOM, Inspection, listed
from infinimem.operations.provenance import at as _at
from infinimem.operations.provenance import successor
from infinimem.spec import record_folders
from infinimem.store.external_edits import ExternalEdits, Position, position
from infinimem.store.lines import drawn_from, former
from infinimem.store.spec import ARCHIVE, TOPICS
from infinimem.store.state import sequence
from infinimem.store.state.sequence import MARK, MAX_SEQ
from infinimem.store.view import View, aliases_of, by_id

_CONFLICT = ("<<<<<<< ", ">>>>>>> ")
_UNDECODED = re.compile("[\ud800-\udfff]")
_ID_OR_ALIAS = re.compile(r"id: \S+\s*\Z|aliases: *(?:\[.*\])?\s*\Z| *- ")
"""Header lines that `mended` may replace: it writes again what they say."""

RENAMED = "write the file's id there, and keep the old name as an alias"
SIGNED = "sign them"
RENUMBERED = "give all but one a new seq"
LED = "cite those that it may come from"
RAISED = "raise the mark"
FINISHED = "finish it, or drop it if nothing was done yet"
REBUILT = "rebuild it from lines and receipts"
UNDATED = "take `when` out; the receipt quotes the line, undo puts it back"


def documents(inspection: Inspection) -> Iterator[Finding]:
    """Names, headers and characters of all documents, people's notes included."""
    for doc_id, why in inspection.unreadable.items():
        yield Finding("error", why, doc_id)
    for same in inspection.view.derived(by_id).values():
        if len(same) > 1:
            what = f"some file systems treat these names as the same; rename all but one: {', '.join(same)}"
            yield Finding("error", what, same[0])
    for document in inspection.documents.values():
        note = inspection.view.is_note(document.id)
        level: Level = "note" if note else "error"
        if document.header.problem:
            yield Finding(level, f"header: {document.header.problem}", f"{document.id}:1")
        yield from _characters(document)
        yield from _conflicts(document, level)
        if not note:
            yield from _id(document, inspection)


def _id(document: Document, inspection: Inspection) -> Iterator[Finding]:
    if named := said_id(document):
        fix = RENAMED if mended(document, inspection.view) else ""
        advice = "" if fix else "; write the name of the file there, or rename the file"
        yield Finding("note", f"the header says id {named}{advice}", f"{document.id}:1", fix)


def said_id(document: Document) -> str | None:
    """The id in the header, where it differs from the file's."""
    named = document.header.values.get("id")
    return named if isinstance(named, str) and named != document.id else None


def mended(document: Document, view: View) -> Document | None:
    """A document that a person renamed, under the id of its file; a topic keeps its old name as an alias.

    None where nothing is to be mended, or the header is a person's: evidence, receipts, comments.
    """
    named = said_id(document)
    if named is None or not (
        document.id == CURRENT or document.id.startswith((TOPICS, ARCHIVE, *record_folders()))
    ):
        return None
    changes: dict[str, str | None] = {"id": quote(document.id)}
    if document.id.startswith(TOPICS) and named.startswith(TOPICS) and named not in view:
        names = dict.fromkeys([*aliases_of(document), named.rsplit("/", 1)[-1]])
        changes["aliases"] = flow(list(names))
    try:
        new = document.with_header(changes)
    except ValueError:
        return None
    lost = Counter(document.lines) - Counter(new.lines)
    return new if all("#" not in line and _ID_OR_ALIAS.match(line) for line in lost) else None


def _characters(document: Document) -> Iterator[Finding]:
    lines = document.lines
    nul = [number for number, line in enumerate(lines, 1) if "\x00" in line]
    undecoded = [n for n, line in enumerate(lines, 1) if not line.isascii() and _UNDECODED.search(line)]
    if nul:
        yield Finding("note", "contains NUL characters; save it as UTF-8 text", f"{document.id}:{nul[0]}")
    if undecoded:
        where = f"{document.id}:{undecoded[0]}"
        yield Finding("note", "contains bytes that are not UTF-8; save it as UTF-8 text", where)


def _conflicts(document: Document, level: Level) -> Iterator[Finding]:
    for number, line in enumerate(document.lines, 1):
        if line.startswith(_CONFLICT):
            what = f"a git conflict marker ({line[:7]}); keep what you want, delete the markers"
            yield Finding(level, what, f"{document.id}:{number}")


def lines(inspection: Inspection) -> Iterator[Finding]:
    """Entries of the program's documents: signatures, seqs, reasons of the archive, origins."""
    edits = inspection.external
    for document in inspection.own():
        for number in document.malformed:
            what = (
                "signature cannot be parsed; write `- <seq=N,source=human> text`, or `- text` for a new seq"
            )
            yield Finding("error", what, f"{document.id}:{number}")
    for document in inspection.own(CURRENT, TOPICS):
        if typed := document.unsigned:
            what = f"{len(typed)} line{'s' * (len(typed) > 1)} typed by hand and not signed yet"
            fix = "" if inspection.crowded else SIGNED
            yield Finding("note", what, f"{document.id}:{typed[0].line}", fix)
    yield from _seqs(inspection, edits.renumbered)
    if not (edits.renumbered or inspection.crowded):
        yield from _misled(edits)
    yield from _archive(inspection)
    if inspection.complete:
        yield from _origins(inspection)


def _seqs(inspection: Inspection, renumbered: Collection[Position]) -> Iterator[Finding]:
    high_water = sequence.high_water(inspection.library.files)
    highest = max(inspection.places, default=0)
    doubled: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for seq, places in sorted(inspection.places.items()):
        if len(places) > 1:
            doubled[tuple(place.doc_id for place in places)].append(seq)
    for _, seqs in sorted(doubled.items()):
        places = sorted(inspection.places[seqs[0]], key=lambda place: position(place) in renumbered)
        advice = "" if inspection.complete else "; repair the unreadable document first"
        fix = "" if inspection.crowded or not inspection.complete else RENUMBERED
        yield Finding("error", f"{_doubled(seqs, places)}{advice}", _at(places[-1]), fix)
    if inspection.crowded:
        free = 1 + max((seq for seq in inspection.places if seq <= MAX_SEQ - ROOM), default=0)
        what = f"seq {highest} leaves no room for new ones; give the line a lower one, {free} is free"
        yield Finding("error", what, _at(inspection.places[highest][0]))
    elif high_water is not None and highest > high_water:
        what = f"seq {highest} is above the high-water mark {high_water} ({MARK})"
        yield Finding("error", what, _at(inspection.places[highest][0]), RAISED)


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
        others = listed([line.seq for line in one.others()])
        what = f"cites {one.seq}, which another line had before a merge; it may come from {others}"
        yield Finding("note", what, _at(one.by), LED)


def _archive(inspection: Inspection) -> Iterator[Finding]:
    for document in inspection.own(ARCHIVE):
        for place in document.entries:
            heir = successor(place.headings[-1]) if place.headings else None
            if not place.headings:
                what = "archived without a reason; add a heading above it that gives one"
                yield Finding("error", what, _at(place))
            elif heir and heir[1] not in inspection.places and inspection.complete:
                yield Finding("note", f"its successor {heir[1]} is no longer in the library", _at(place))


def _origins(inspection: Inspection) -> Iterator[Finding]:
    drawn = inspection.view.drawn or frozenset()
    for document in inspection.own(ARCHIVE, CURRENT, TOPICS):
        for place in document.entries:
            missing = {seq for seq in place.entry.origin if seq not in inspection.places} - inspection.deleted
            if missing:
                # Origins that an entry was drawn from did exist: a person deleted them. Typed ones may not.
                told = missing <= drawn or place.entry.source == "human"
                absent = "no longer" if told else "not"
                what = f"its origin {listed(sorted(missing))} is {absent} in the library"
                yield Finding("note" if told else "error", what, _at(place))
            yield from _merged(inspection, place)


def _merged(inspection: Inspection, place: Located) -> Iterator[Finding]:
    """Lines that cite all that had one number before a merge: a person may know which it was."""
    cited = drawn_from(place.entry)
    for line in (line for seq in cited for line in inspection.places.get(seq, ())[:1]):
        if same := set(former(line.entry)) & set(cited):
            both = f"{listed(sorted(same))} and {line.seq}"
            what = f"cites {both}, which had one number before a merge; take out of `origin` what is wrong"
            yield Finding("note", what, _at(place))


def misdated(inspection: Inspection) -> Iterator[Finding]:
    """Entries with a `when` that an older version's rule derived, and of which their words do not tell."""
    edited = {place.seq for place, _ in inspection.external.edited}
    for line in outdated(inspection.own(CURRENT, TOPICS, ARCHIVE)):
        if line.seq not in edited:
            what = f"an older version's rule derived when={line.entry.fields['when']}; the words do not tell"
            yield Finding("note", what, _at(line), UNDATED)


def outdated(documents: Iterable[Document]) -> Iterator[Located]:
    """The lines of `misdated`; never one in a model's words or of a person."""
    for place in (place for document in documents for place in document.entries):
        entry, when = place.entry, place.entry.fields.get("when")
        ours = when and entry.source != "human" and "by" not in entry.fields
        if ours and is_outdated(when or "", entry.text, day_of(entry.time)):
            yield place
