"""What `doctor` checks, one function per rule of docs/FORMAT.md, over one inspection of the library."""

from __future__ import annotations

import os
import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

from infinimem.errors import DocumentNotFound, LibraryError, LockTimeout
from infinimem.grounding.sentences import day_of, is_outdated
from infinimem.markdown.document import Document, fences
from infinimem.markdown.header import quote
from infinimem.markdown.signature import format_seqs
from infinimem.model import BUFFERS, Finding, Level, Located
from infinimem.operations.git import uncommitted
from infinimem.operations.provenance import at, recorded, successor
from infinimem.operations.review import CODES, awaiting
from infinimem.settings import SETTINGS, shown
from infinimem.spec import broken, folders
from infinimem.store import sequence, state
from infinimem.store.commit import CONFLICTS, FOLDER
from infinimem.store.external_edits import ExternalEdits, find_edits, position
from infinimem.store.files import digest
from infinimem.store.library import Library
from infinimem.store.lines import fold
from infinimem.store.merging import conflicts, original
from infinimem.store.plans import also_called, former_name, headed
from infinimem.store.sequence import MARK
from infinimem.store.spec import ARCHIVE, EVIDENCE, JOURNAL, TOPICS
from infinimem.store.view import View

LISTED = 20
"""Seqs that one finding lists."""
RENAMED = "write the file's id there, and keep the old name as an alias"
SIGNED = "sign them"
RENUMBERED = "give all but one a new seq"
MERGED = "merge both sides"
ONCE = "keep it where the latest receipt put it"
RAISED = "raise the mark"
FINISHED = "finish it, or drop it if nothing was done yet"
REBUILT = "give numbers in a block of its own from here on"
UNDATED = "take `when` out; the receipt quotes the line, undo puts it back"

BUSY = Finding("note", "a write is under way; look again when it is done", FOLDER)
_SAVED = (
    "text that someone saved while the program wrote this document, and that could not be merged: take over"
    " what you want, then delete this file"
)
_CONFLICT = ("<<<<<<< ", ">>>>>>> ")
_UNDECODED = re.compile("[\ud800-\udfff]")
_ID_OR_ALIAS = re.compile(r"id: \S+\s*\Z|aliases: *(?:\[.*\])?\s*\Z| *- ")
"""Header lines that `mended` may replace: it writes again what they say."""

# Of links. Bounded and without nested repetition: notes are anybody's text.
_WIKI = re.compile(r"\[\[([^\[\]\n]{1,300})\]\]")
_INLINE = re.compile(r"\]\(\s{0,3}(?:<([^<>\n]{1,300})>|([^()<>\s]{1,300}))")
_CODE = re.compile(r"(?<!`)(`{1,3})(?!`)[^`\n]{0,2000}(?<!`)\1(?!`)")
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]{1,30}:")
_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,8}\Z")


def listed(seqs: Sequence[int]) -> str:
    """Return `12-15+19`, cut after LISTED seqs."""
    return format_seqs(seqs[:LISTED]) + "…" * (len(seqs) > LISTED)


@dataclass(frozen=True)
class Inspection:
    """What all checks of one run share; `opened` is the library, None where only a view is at hand."""

    view: View
    documents: Mapping[str, Document]
    unreadable: Mapping[str, str]
    opened: Library | None = None

    @classmethod
    def of(cls, view: View, opened: Library | None = None) -> Inspection:
        documents, unreadable = {}, {}
        for doc_id in view.ids("all"):
            try:
                documents[doc_id] = view.document(doc_id)
            except LibraryError as error:
                unreadable[doc_id] = str(error)
        return cls(view, documents, unreadable, opened)

    @property
    def library(self) -> Library:
        if self.opened is None:
            raise LibraryError("this check needs the library itself, not a view of it")
        return self.opened

    def own(self, *folders: str) -> Iterator[Document]:
        """Yield the program's documents in these folders; by default all but receipts and records."""
        for folder in folders or (EVIDENCE, ARCHIVE, *BUFFERS, TOPICS):
            for doc_id, document in self.documents.items():
                if doc_id.startswith(folder) and not self.view.is_note(doc_id):
                    yield document

    def entries(self, *folders: str) -> Iterator[Located]:
        return (place for document in self.own(*folders) for place in document.entries)

    @cached_property
    def places(self) -> Mapping[int, Sequence[Located]]:
        """Where each seq stands: first where it belongs, then its copies."""
        places: dict[int, list[Located]] = {}
        for place in self.entries():
            places.setdefault(place.seq, []).append(place)
        return places

    @cached_property
    def complete(self) -> bool:
        """Whether every document of the program could be read."""
        return all(map(self.view.is_note, self.unreadable))

    @cached_property
    def external(self) -> ExternalEdits:
        """What people and merges did since; nothing where not every document can be read."""
        return find_edits(self.view, self.library.seen_lines()) if self.complete else ExternalEdits()


def documents(inspection: Inspection) -> Iterator[Finding]:
    for doc_id, why in inspection.unreadable.items():
        yield Finding("error", why, doc_id)
    for same in inspection.view.lines.clashes():
        what = f"some file systems treat these names as the same; rename all but one: {', '.join(same)}"
        yield Finding("error", what, same[0])
    left = {*conflicts(inspection.view)} if inspection.view.initialised else set()
    for doc_id in left:
        name = original(doc_id, inspection.view)
        what = f"a second version of {name}, which another program left"
        what = what if name != doc_id else "both versions of it, which a merge left"
        yield Finding("error", what, doc_id, MERGED)
    for document in inspection.documents.values():
        note = inspection.view.is_note(document.id)
        level: Level = "note" if note else "error"
        if document.header.problem:
            yield Finding(level, f"header: {document.header.problem}", f"{document.id}:1")
        nul = undecoded = 0
        for number, line in enumerate(document.lines, 1):
            nul = nul or number * ("\x00" in line)
            undecoded = undecoded or number * bool(not line.isascii() and _UNDECODED.search(line))
            if line.startswith(_CONFLICT):
                advice = "" if document.id in left else "; keep what you want, delete the markers"
                yield Finding(level, f"a git conflict marker ({line[:7]}){advice}", f"{document.id}:{number}")
        if nul:
            yield Finding("note", "contains NUL characters; save it as UTF-8 text", f"{document.id}:{nul}")
        if undecoded:
            what = "contains bytes that are not UTF-8; save it as UTF-8 text"
            yield Finding("note", what, f"{document.id}:{undecoded}")
        named = None if note else _other_id(document)
        if named:
            fix = RENAMED if mended(document, inspection.view) else ""
            advice = "" if fix else "; write the name of the file there, or rename the file"
            yield Finding("note", f"the header says id {named}{advice}", f"{document.id}:1", fix)


def _other_id(document: Document) -> str | None:
    named = document.header.values.get("id")
    return named if isinstance(named, str) and named != document.id else None


def mended(document: Document, view: View) -> Document | None:
    """Return a document that a person renamed, under the id of its file; a topic keeps its old name as alias.
    None where nothing is to be mended, or the header is a person's: evidence, receipts, comments."""
    named = _other_id(document)
    if named is None or not (
        document.id in BUFFERS or document.id.startswith((TOPICS, ARCHIVE, *folders().records))
    ):
        return None
    new = headed(document, {"id": quote(document.id)})
    if document.id.startswith(TOPICS) and (former := former_name(document, view)):
        new = also_called(new, [former])
    lost = Counter(document.lines) - Counter(new.lines)
    return new if lost and all("#" not in line and _ID_OR_ALIAS.match(line) for line in lost) else None


def links(inspection: Inspection) -> Iterator[Finding]:
    """Find `[[names]]` and relative links to Markdown files that lead nowhere, in live documents and notes.
    Not looked at: evidence, also where a record quotes it, code, URLs, anchors, files of other kinds."""
    view = inspection.view
    # Logseq writes a/b as a___b, and what no file system takes as %3F.
    names = (name for doc_id in view.ids("all") for name in (doc_id, unquote(doc_id.replace("___", "/"))))
    paths = [fold(name).split("/") for name in names]
    ends = {"/".join(parts[start:]) for parts in paths for start in range(len(parts))}
    for doc_id in view.ids():
        document = inspection.documents.get(doc_id)
        if document is None or (doc_id.startswith(folders().ledgers) and not view.is_note(doc_id)):
            continue
        start, end = document.header.end, 0
        closed = fences(document.lines, start, indented=True)
        for number, line in enumerate(document.lines[start:], start + 1):
            end = max(end, closed.get(number, 0))
            if number <= end or not ("](" in line or "[[" in line):
                continue
            for target in _targets(document.text_line(number), doc_id):
                if fold(target.strip("/")) in ends:
                    continue
                try:
                    view.resolve(target)
                except DocumentNotFound:
                    what = f"links to {target}, which does not exist"
                    yield Finding("note", what, f"{doc_id}:{number}")


def _targets(line: str, doc_id: str) -> Iterator[str]:
    """Yield names, or paths from the root without `.md`."""
    line = _CODE.sub("", line)
    for match in _WIKI.finditer(line):
        name = re.split(r"[|#^\\]", match[1], maxsplit=1)[0].strip()
        if name and not _SCHEME.match(name) and (name.endswith(".md") or not _SUFFIX.search(name)):
            yield name.removesuffix(".md")
    for match in _INLINE.finditer(line):
        path = unquote((match[1] or match[2]).split("#", 1)[0])
        if path.endswith(".md") and not _SCHEME.match(path):
            base = "" if path.startswith("/") else posixpath.dirname(doc_id)
            full = posixpath.normpath(posixpath.join(base, path.lstrip("/")))
            if not full.startswith("../"):  # outside the folder is not ours to say
                yield full.removesuffix(".md")


def lines(inspection: Inspection) -> Iterator[Finding]:
    edits = inspection.external
    for document in inspection.own():
        for number in document.malformed:
            what = (
                "signature cannot be parsed; write `- <seq=N,source=human> text`, or `- text` for a new seq"
            )
            yield Finding("error", what, f"{document.id}:{number}")
    for document in inspection.own(*BUFFERS, TOPICS):
        if typed := document.unsigned:
            what = f"{len(typed)} line{'s' * (len(typed) > 1)} typed by hand and not signed yet"
            yield Finding("note", what, f"{document.id}:{typed[0].line}", SIGNED)
    yield from _seqs(inspection, edits)
    for place in inspection.entries(ARCHIVE):
        heir = successor(place.headings[-1]) if place.headings else None
        if not place.headings:
            what = "archived without a reason; add a heading above it that gives one"
            yield Finding("error", what, at(place))
        elif heir and heir[1] not in inspection.places and inspection.complete:
            yield Finding("note", f"its successor {heir[1]} is no longer in the library", at(place))
    if inspection.complete:
        yield from _origins(inspection)


def _seqs(inspection: Inspection, edits: ExternalEdits) -> Iterator[Finding]:
    high_water = sequence.high_water(inspection.library.files)
    left = {place.seq for place in edits.left}
    doubled: dict[tuple[str, ...], list[int]] = defaultdict(list)  # by what is done, and where they stand
    for seq, places in sorted(inspection.places.items()):
        if len(places) > 1:
            is_copy = not edits.renumbered.isdisjoint(map(position, places))
            fix = RENUMBERED if is_copy else ONCE if seq in left else ""
            doubled[fix, *(place.doc_id for place in places)].append(seq)
    for (fix, *_), seqs in sorted(doubled.items()):
        places = sorted(inspection.places[seqs[0]], key=lambda place: position(place) in edits.renumbered)
        advice = "; repair the unreadable document first" * (not inspection.complete)
        advice = advice or "; delete one of the two" * (not fix)
        stand = "stands" if len(seqs) == 1 else "stand"
        times = "twice" if len(places) == 2 else f"{len(places)} times"
        names = " and ".join(dict.fromkeys(place.doc_id for place in places))
        where = ", ".join(map(at, places)) if len(seqs) == 1 else names
        what = f"seq {listed(seqs)} {stand} {times}: {where}{advice}"
        yield Finding("error", what, at(places[-1]), fix)
    highest = inspection.view.lines.highest(inspection.view.own or 0)
    if high_water is not None and highest > high_water:
        what = f"seq {highest} is above the high-water mark {high_water} ({MARK})"
        yield Finding("error", what, at(inspection.places[highest][0]), RAISED)


def _origins(inspection: Inspection) -> Iterator[Finding]:
    drawn = inspection.view.drawn or frozenset()
    rows = (row for receipt in recorded(inspection.view).receipts for row in receipt.rows)
    deleted = {row.seq for row in rows if row.why.startswith(("deleted", "removed"))}  # by a person
    for place in inspection.entries(ARCHIVE, *BUFFERS, TOPICS):
        missing = {seq for seq in place.entry.origin if seq not in inspection.places} - deleted
        if missing:
            # Origins that an entry was drawn from did exist: a person deleted them. Typed ones may not.
            existed = missing <= drawn or place.entry.source == "human"
            what = (
                f"its origin {listed(sorted(missing))} is {'no longer' if existed else 'not'} in the library"
            )
            yield Finding("note" if existed else "error", what, at(place))
        for other in (one for seq in place.entry.origin for one in inspection.places.get(seq, ())[:1]):
            if other.text != place.text and {*other.entry.origin} & {*place.entry.origin}:
                yield Finding("note", f"says otherwise what {other.seq} ({at(other)}) says", at(place))


def misdated(inspection: Inspection) -> Iterator[Finding]:
    edited = {place.seq for place, _ in inspection.external.edited}
    for line in outdated(inspection.entries(*BUFFERS, TOPICS, ARCHIVE)):
        if line.seq not in edited:
            what = f"an older version's rule derived when={line.entry.fields['when']}; the words do not tell"
            yield Finding("note", what, at(line), UNDATED)


def outdated(places: Iterable[Located]) -> Iterator[Located]:
    """Yield the lines of `misdated`; never one in a model's words or of a person."""
    for place in places:
        entry, when = place.entry, place.entry.fields.get("when")
        ours = when and entry.source != "human" and "by" not in entry.fields
        if ours and is_outdated(when or "", entry.text, day_of(entry.time)):
            yield place


def stale(inspection: Inspection) -> Iterator[Finding]:
    for one in recorded(inspection.view).stale() if inspection.complete else ():
        what = "the summary describes" if one.seq is None else "was drawn from"
        yield Finding("note", f"{what} line {one.on}, which line {one.by} superseded", one.where)


def receipts(inspection: Inspection) -> Iterator[Finding]:
    """Find lines that receipts name and that stand nowhere; receipts that documents call alike.

    A line missing from a file that is as the program left it (its sha256) is an error; once a person changed
    the file, what they took out is theirs to take out: a note.
    """
    if not inspection.complete:
        return
    records, by_label = recorded(inspection.view), defaultdict[str, list[str]](list)
    for receipt in records.receipts:
        by_label[f"{receipt.number}{receipt.suffix[:7]}"].append(receipt.id)
    for label, same in by_label.items():
        if len(same) > 1 and label != "0":
            yield Finding("note", f"several receipts are called {label}: {', '.join(same)}", same[1])
    last: dict[int, tuple[str, str]] = {}
    for receipt in records.receipts:
        last.update((row.seq, (row.now, receipt.id)) for row in receipt.rows)
    in_notes = {place.seq for document in inspection.documents.values() for place in document.entries}
    missing: dict[tuple[str, str], list[int]] = defaultdict(list)
    for seq, (now, receipt_id) in sorted(last.items()):
        if seq not in inspection.places and seq not in in_notes and now not in ("", "-"):
            missing[now, receipt_id].append(seq)
    for (doc_id, receipt_id), seqs in sorted(missing.items()):
        which = f"{'line' if len(seqs) == 1 else 'lines'} {listed(seqs)}"
        lost = f"{receipt_id} put {which} here, and it is lost; restore it from a backup or from git"
        taken = f"{which}, put here by {receipt_id}, went when the file was changed by hand"
        ours = _is_ours(inspection, doc_id, receipt_id)
        yield Finding("error", lost, doc_id) if ours else Finding("note", taken, doc_id)


def _is_ours(inspection: Inspection, doc_id: str, receipt_id: str) -> bool:
    """Tell whether only the program changed a file since a receipt that names it."""
    steps = recorded(inspection.view).changes(doc_id)
    since = next((n for n, (named, *_) in enumerate(steps) if named == receipt_id), len(steps))
    steps = steps[since:]
    if not steps or any(one[2] != then[1] for one, then in pairwise(steps)):
        return False
    document = inspection.documents.get(doc_id)
    present = digest(document.to_bytes() if document else None)
    newest, before, after = steps[-1]
    if present == after:
        return True
    # As it was before the newest receipt, and untouched since: what that says was never done. A checkout of
    # an old version would have touched the file.
    return (
        document is not None
        and present == before
        and _changed(inspection, doc_id) < _changed(inspection, newest)
    )


def _changed(inspection: Inspection, doc_id: str) -> int:
    """Return when a file's bytes, or its name, last changed: nanoseconds."""
    info = (inspection.library.root / f"{doc_id}.md").stat(follow_symlinks=False)
    return max(info.st_mtime_ns, info.st_ctime_ns)


def passed_over(inspection: Inspection) -> Iterator[Finding]:
    """Find what does not count: settings, broken packages, and files that may be meant as notes."""
    library = inspection.library
    if not library.initialised and os.path.lexists(library.root / SETTINGS):
        what = "is a link or no file, so this counts as a folder of notes; put the settings themselves there"
        yield Finding("error", what, SETTINGS)
    for path, why in library.fresh.passed_over().items():
        yield Finding("note", f"passed over: {why}", path)
    for name, value in library.configuration.suspended.items():
        what = f"{name} = {shown(name, value)} has no effect: the library is not trusted (infinimem trust)"
        yield Finding("note", what, SETTINGS)
    for name, why in broken().items():
        yield Finding("note", why, f"strategy {name}")


def machine_state(inspection: Inspection) -> Iterator[Finding]:
    root = inspection.library.root
    left = _entries(root / FOLDER)
    try:
        with inspection.library.files.exclusive(1.0) if left else nullcontext():
            left = _entries(root / FOLDER)  # what stays then is no writer's
    except LockTimeout:
        yield BUSY
        return
    except LibraryError:  # a folder that may only be read
        pass
    for path in left:
        yield Finding("error", "a transaction did not finish", f"{FOLDER}/{path.name}", FINISHED)
    for path in _entries(root / CONFLICTS):
        yield Finding("note", _SAVED, f"{CONFLICTS}/{path.name}")
    # A clone has none, a copy another's: they need none before they give a number.
    mark = inspection.library.files.read(MARK)
    if mark is not None and not mark[:1].isdigit() and inspection.places:
        yield Finding("note", "the high-water mark of seqs is lost", MARK, REBUILT)


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def waiting(inspection: Inspection) -> Iterator[Finding]:
    """Find what waits: for approval, for a usable answer of a model, for a commit."""
    library = inspection.library
    for row in awaiting(library) if inspection.complete else ():
        if row.code in CODES and not row.void:
            words = "outdated by" if row.why == "superseded" else "a duplicate of"
            what = f"line {row.seq} may be {words} {row.by}; archiving it awaits review ({CODES[row.code]})"
            yield Finding("note", what, row.was)
    if failed := inspection.view.unanswered():
        what = f"{state.unanswered_message(failed)}; turns {listed(sorted(failed))}"
        yield Finding("note", what, state.PATH)
    git = uncommitted(library.files, inspection.view) if library.settings.git else None
    if git and git.why:
        count = len(git.receipts)
        what = f"{count} receipt{'s' * (count != 1)} not committed: {git.why}" if count else git.why
        yield Finding("note", f"git = true: {what}", git.receipts[0] if count else JOURNAL)
