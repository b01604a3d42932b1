"""Give a document of the program another name, in receipts too: what `forget` reports and does not change.

Lines, notes and what people wrote stay as they are; what still holds the old name is reported.
Source: docs/FORMAT.md, Rename.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from infinimem.errors import DocumentNotFound, LibraryError, UsageError
from infinimem.markdown.characters import clean_text, one_line
from infinimem.markdown.document import Document
from infinimem.markdown.header import flow, quote
from infinimem.markdown.scan import heading_title
from infinimem.model import CURRENT, Receipt
from infinimem.operations.forget import machine_state
from infinimem.operations.forget.choice import readings
from infinimem.operations.forget.forget import looked, retried
from infinimem.operations.forget.machine_state import Residue, git_advice
from infinimem.operations.forget.words import Texts
from infinimem.operations.provenance import recorded
from infinimem.spec import record_folders
from infinimem.store.commit.transaction import recover
from infinimem.store.files import digest
from infinimem.store.library import Library
from infinimem.store.lines import fold
from infinimem.store.names import aliases_of, by_id
from infinimem.store.plans import violations
from infinimem.store.receipts import RENAME, Checksums, cells_of, file_cells, file_of, next_number, row_of
from infinimem.store.render import Rendered, headed
from infinimem.store.spec import ARCHIVE, EVIDENCE, JOURNAL, MEMORIES, TOPICS, slug, unlawful
from infinimem.store.state import last_seen, withheld
from infinimem.store.view import View

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}-")


@dataclass(frozen=True)
class Renamed:
    """What came of it.

    Args:
        receipt: of the renaming.
        was, now: ids of the document.
        left: what still holds the old name.
        history: what to do about git; "" without a repository.
    """

    receipt: Receipt
    was: str
    now: str
    left: tuple[Residue, ...]
    history: str


def rename(library: Library, name: str, new: str) -> Renamed:
    """As `Memory.rename`."""
    library.demand_initialised()
    return retried(library, lambda: _rename(library, name, one_line(clean_text(new)).strip()))


def _rename(library: Library, name: str, new: str) -> Renamed:
    view, known = looked(library), library.seen_lines()
    was = _resolved(view, name)
    now = _target(view, was, new)
    names = {was: now}
    if was.startswith((TOPICS, ARCHIVE)):  # a topic and its archive have one name
        names = {folder + was.split("/", 1)[1]: folder + now.split("/", 1)[1] for folder in (TOPICS, ARCHIVE)}
    old = next((view.document(one) for one in names if one in view), Document.empty(was))
    stem = was.rpartition("/")[2]
    if was.startswith(EVIDENCE):
        stem = _DATE.sub("", stem)
    elif was.startswith(MEMORIES):
        stem = PurePosixPath(stem).stem
    session = str(old.header.values.get("session", ""))
    called = {stem, stem.replace("-", " "), old.title, session} - {""}
    done = _rendered(view, _Naming(names, called, new))
    if wrong := violations(view, done):
        raise LibraryError(f"the document cannot be renamed ({wrong[0].code}); run infinimem doctor")
    concerned = {(one.receipt, one.move.seq) for one in library.proposals() if one.move.to in names}
    withheld.drop(library.files, concerned)
    machine_state.begin(library.files)
    notice: last_seen.Changes = {
        seq: replace(line, doc_id=names[line.doc_id]) for seq, line in known.items() if line.doc_id in names
    }
    receipt = library.commit(done, view, library.of_people(RENAME), (), notice)
    recover(library.files)
    machine_state.finish(library.files)
    view = looked(library)
    texts = Texts((), called - {new, new.casefold()}, None, readings(view, library.seen_lines()), True)
    left = machine_state.left(library.files, view, texts)
    held = [f"{doc_id}.md" for doc_id in (*names, *done.documents)]
    return Renamed(receipt, was, now, left, git_advice(library.root.absolute(), {*held}))


def _resolved(view: View, name: str) -> str:
    """The id of a document, also of one that only receipts know."""
    told = {file[0] for receipt in recorded(view).receipts for file in receipt.files}
    told |= {row.was for receipt in recorded(view).receipts for row in receipt.rows}
    bare = name.strip().removesuffix(".md")
    try:
        found = view.resolve(name)
    except DocumentNotFound:
        if bare not in told:
            raise
        found = bare
    if found.startswith((TOPICS, ARCHIVE, EVIDENCE, MEMORIES)) and view.initialised:
        return found
    if view.is_note(found):
        raise UsageError(f"{found} is a person's note: rename the file itself")
    raise UsageError(f"{found} cannot be renamed: only topics, sessions and a model's own files have names")


def _target(view: View, was: str, new: str) -> str:
    """The id that it gets."""
    above, _, stem = was.rpartition("/")
    own = slug(new)
    if not own:
        raise UsageError(f"{new!r} is no name; it needs a letter or digit")
    if was.startswith(EVIDENCE) and (date := _DATE.match(stem)):
        own = date[0] + own
    elif was.startswith(MEMORIES):
        own += PurePosixPath(stem).suffix
    now = f"{above}/{own}"
    others = {TOPICS: ARCHIVE, ARCHIVE: TOPICS}
    twin = others.get(f"{above}/", f"{above}/") + own
    there = {doc_id for one in (now, twin) for doc_id in view.derived(by_id).get(fold(one), ())}
    if taken := [one for one in sorted(there) if now != was and fold(one.split("/", 1)[1]) != fold(stem)]:
        raise UsageError(f"there is {taken[0]} already; give another name")
    if why := unlawful(now):
        raise UsageError(f"{now} is no name for a file: {why}")
    return now


def _rendered(view: View, naming: _Naming) -> Rendered:
    """The documents that change."""
    names, sums = naming.names, Checksums(next_number(view))
    done = Rendered(names=names, sums=sums.known, reverse_diffs=[])
    for doc_id in view.ids("all"):
        old = view.document(doc_id)
        if doc_id.startswith(JOURNAL):
            lines = tuple(naming.row(line, sums) for line in old.lines)
        elif doc_id in names and doc_id.startswith(MEMORIES):
            lines = old.lines
        elif doc_id in names or doc_id.startswith((CURRENT, TOPICS, *record_folders())):
            lines = naming.lines(old)
        else:
            continue
        if doc_id in names:
            new = replace(old, id=names[doc_id], lines=lines, cache=None)
            if doc_id.startswith(TOPICS):
                left = [one for one in aliases_of(new) if not naming.is_called(one)]
                changes = {"aliases": flow(left) if left else None} if left != aliases_of(new) else {}
                new = headed(new, {**changes, "title": quote(naming.new)})
            done.documents |= {doc_id: None, new.id: new}
        elif lines != old.lines:
            done.documents[doc_id] = replace(old, lines=lines, cache=None)
    for doc_id in filter(view.__contains__, done.documents):
        sums.of(digest(view.document(doc_id).to_bytes()))
    return done


class _Naming:
    """The new name in place of the old one.

    Args:
        names: ids of documents, old and new.
        called: what the document was called.
        new: what it is called from now on.
    """

    def __init__(self, names: dict[str, str], called: Iterable[str], new: str) -> None:
        self.names, self.new = names, new
        self._called = {one.casefold() for one in called}
        self._ids = re.compile("|".join(rf"(?<![\w-]){re.escape(was)}(?![\w/-])" for was in names))

    def is_called(self, name: str) -> bool:
        """Whether it is the old name."""
        return name.strip().strip("\"'").casefold() in self._called

    def lines(self, document: Document) -> tuple[str, ...]:
        """The lines of a document: header and headings name it anew; of another one only what is its id."""
        own, end = document.id in self.names or document.id == CURRENT, document.header.end
        return tuple(
            self._line(line, own) if n <= end or (own and line.startswith("#")) else line
            for n, line in enumerate(document.lines, 1)
        )

    def row(self, line: str, sums: Checksums) -> str:
        """A line of a receipt."""
        mark = line[:2] if line[:2] in ("+>", "->") else ""
        if line[len(mark) :].startswith("- <"):
            return line
        new = mark + self._line(line[len(mark) :], bool(mark))
        file = file_of(cells_of(new)) if new != line and new.startswith("| ") else None
        return row_of(file_cells(file[0], *map(sums.of, file[1:]))) if file else new

    def _line(self, line: str, own: bool) -> str:
        line = self._ids.sub(lambda found: self.names[found[0]], line)
        title, (key, _, value) = heading_title(line.removesuffix("\r")), line.partition(": ")
        if own and title and self.is_called(title[1]):
            return f"{'#' * title[0]} {self.new}"
        is_name = key == "session" or (own and key in ("title", "summary"))
        return f"{key}: {quote(self.new)}" if is_name and self.is_called(value) else line
