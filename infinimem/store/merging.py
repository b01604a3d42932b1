"""Two versions of one file made into one: signed lines are a set by seq, and the rest is woven line by line.

In: bytes of both sides, and of what both come from where that is known. Out: what both are merged to, the
same whichever side is named first. Promise: a line that one side wrote, edited or archived is there; of one
that both edited both versions are. Used where git merges (`infinimem merge-file`, `infinimem sync`), and for
what other programs leave in the program's own files: conflict markers, copies beside the file. Pure.
Source: docs/FORMAT.md, Two machines.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from difflib import SequenceMatcher
from functools import reduce
from itertools import chain
from typing import Any, NamedTuple

from infinimem.errors import LibraryError
from infinimem.markdown.document import Document, heading_title, is_signed
from infinimem.markdown.header import flow, key_lines
from infinimem.model import BUFFERS, ReceiptRow
from infinimem.spec import folders
from infinimem.store.external_edits import DOUBLED
from infinimem.store.plans import LOG_LENGTH, Rendered
from infinimem.store.spec import TOPICS
from infinimem.store.view import View

_COPY = re.compile(
    r"(?:\.sync-conflict-[\w-]+| \([^()/]*(?:conflicted copy|[Cc]ase [Cc]onflict|SFConflict)[^()/]*\)"
    r"|_conflict-[0-9][\w.-]*|( \([0-9]{1,3}\)| [0-9]{1,3}))\Z"
)
"""What Syncthing, Dropbox, Nextcloud, ownCloud put behind a name; a number counts if the header agrees."""
_KEY = re.compile(r"[\w-]+:")
_MARKS = ("<<<<<<< ", "||||||| ", "=======", ">>>>>>> ")
_OUTSIDE, _BASE, _OURS, _THEIRS = -1, 0, 1, 2
_NEXT = {
    (_OUTSIDE, 0): _OURS,
    (_OURS, 1): _BASE,
    (_OURS, 2): _THEIRS,
    (_BASE, 2): _THEIRS,
    (_THEIRS, 3): _OUTSIDE,
}
"""Where the lines after a marker belong, by where those above do."""
DERIVED = {"token_count", "aux", "see_also"}
"""What a topic is told anew at its next change. Until then its summary is said to describe no line."""


def merged(doc_id: str, base: bytes | None, ours: bytes, theirs: bytes) -> bytes:
    """Return what two versions of a document are merged to; `base` is what both come from."""
    if ours == theirs or theirs == base:
        return ours
    if ours == base:
        return theirs
    one, other = sorted((ours, theirs))
    if doc_id.startswith(folders().records):
        return other  # derived, whole: whichever it is, `rebuild` tells it anew
    before, first, second = (Document.parse(doc_id, data) for data in (base or b"", one, other))
    lines = (*_header(before, first, second), *_body(before, first, second))
    done = Document(doc_id, lines, first.bom)
    was, mine, yours, now = ({place.seq for place in one.entries} for one in (before, first, second, done))
    if lost := (mine & yours | (mine ^ yours) - was) - now:
        raise LibraryError(f"line {min(lost)} of {doc_id} would be lost by merging; merge it by hand")
    return done.to_bytes()


# ── the header ──────────────────────────────────────────────────────────────────────────────────


def _header(base: Document, one: Document, other: Document) -> Sequence[str]:
    """Return the header: of a key that one side changed, what it says; of one that both did, `_either`."""
    old, mine, yours = (document.lines[: document.header_end] for document in (base, one, other))
    if old == yours or mine == yours:
        return mine
    if old == mine or not (one.header.editable and other.header.editable):
        return yours
    was, ours, theirs = (key_lines(head) for head in (old if base.header.editable else (), mine, yours))
    changes: dict[str, str | None] = {}
    for key in dict.fromkeys([*ours, *theirs]):
        then, here, there = (keys.get(key) for keys in (was, ours, theirs))
        if there not in (then, here):
            values = [document.header.values.get(key, "") for document in (one, other)]
            changes[key] = there if here == then else _either(key, values, here, there)
    if one.id.startswith(TOPICS):
        changes |= dict.fromkeys(DERIVED & ours.keys())
    with suppress(ValueError):  # no room for what both say
        now = one.with_header(changes)
        return now.lines[: now.header_end]
    return yours


def _either(key: str, values: Sequence[Any], here: str | None, there: str | None) -> str | None:
    """Return what a key says that both sides changed: all that lists have, of the rest one side by a rule."""
    both = [text for text in (here, there) if text is not None]
    if key == "update_log":
        return "\n".join(["", *sorted({row for text in both for row in text.split("\n")[1:]})[-LOG_LENGTH:]])
    if all(isinstance(one, str) for value in values for one in (value if isinstance(value, list) else (0,))):
        return flow(list(dict.fromkeys(one for value in values for one in value)))
    if key in ("created_time", "date"):
        return min(both)
    return max(both, key=lambda text: (len(text) if key == "current_epoch" else 0, text))


# ── what stands below it ────────────────────────────────────────────────────────────────────────

Row = tuple[int, str]
"""An entry with its seq, or another line with 0."""


def _rows(document: Document) -> list[Row]:
    rows, at = list[Row](), document.header_end
    for place in document.entries:
        rows += [(0, line) for line in document.lines[at : place.start_line - 1]]
        rows.append((place.seq, "\n".join(document.lines[place.start_line - 1 : place.end_line])))
        at = place.end_line
    return [*rows, *((0, line) for line in document.lines[at:])]


def _at_heading(rows: Sequence[Row]) -> tuple[Sequence[Row], Sequence[Row]]:
    """Part rows at the first heading: what stands above it is of a section that begins further up."""
    at = next((n for n, (seq, line) in enumerate(rows) if not seq and heading_title(line)), len(rows))
    while at and not rows[at - 1][1].strip():
        at -= 1
    return rows[:at], rows[at:]


def _body(base: Document, one: Document, other: Document) -> list[str]:
    """Return the lines of both sides, each in its order. What one side took out is gone, unless the other
    edited it; of a line that one side edited the edited version stands."""
    old, first, second = map(_rows, (base, one, other))
    counts, before = [Counter(first), Counter(second)], Counter(old)
    told: list[str] = []
    written = set[Row]()

    def tell(rows: Sequence[Row], side: int, common: bool) -> None:
        for row in rows:
            here, there = counts[side][row], counts[1 - side][row]
            if row[0]:
                stays = row not in written and bool(there or not before[row])
            elif not row[1].strip():
                stays = common or bool(told and told[-1].strip())
            else:  # what the other side took out is gone; what it has elsewhere stands there
                stays = common or (there >= before[row] and (not side or here > there))
            if stays:
                written.add(row)
                told.extend(row[1].split("\n"))

    ours, theirs = ([(seq, "" if seq else line) for seq, line in rows] for rows in (first, second))
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if kind == "equal":
            for row, same in zip(first[i1:i2], second[j1:j2], strict=True):
                tell([row], 0, True)
                tell([same] * (row != same), 1, True)
            continue
        (mine, rest), (yours, more) = map(_at_heading, (first[i1:i2], second[j1:j2]))
        for rows, side in ((mine, 0), (yours, 1), (rest, 0), (more, 1)):
            tell(rows, side, False)
    while told and not told[-1].strip():
        told.pop()
    return told


# ── what other programs leave ───────────────────────────────────────────────────────────────────


class Versions(NamedTuple):
    """Two versions of a file, and what both come from, where that is known."""

    base: bytes | None
    ours: bytes
    theirs: bytes


def sides(document: Document) -> Versions | None:
    """Return base (where that stands there too), ours and theirs of a file with conflict markers; None if it
    has none, or they are not as git wrote them."""
    parts: tuple[list[str], ...] = ([], [], [])
    side, began, has_base = _OUTSIDE, False, True
    for line in document.lines:
        mark = next((at for at, mark in enumerate(_MARKS) if line.startswith(mark)), -1)
        if (side, mark) in _NEXT:
            has_base = has_base and not (side == _OURS and mark == 2)
            side, began = _NEXT[side, mark], True
        elif mark == 0:
            return None
        else:
            for at, part in enumerate(parts):
                part += [line] * (side in (_OUTSIDE, at))
    if not began:
        return _doubled(document)
    if side != _OUTSIDE:
        return None
    texts = ("".join(f"{line}\n" for line in part) for part in parts)
    base, ours, theirs = (text.encode("utf-8", "surrogateescape") for text in texts)
    return Versions(base if has_base else None, ours, theirs)


def _doubled(document: Document) -> Versions | None:
    """Return the two versions of a file whose header has keys twice, for somebody kept both sides of it."""
    if document.header.problem is None or f"id: {document.id}" not in document.lines[:2]:
        return None
    keys: list[list[str]] = []
    for line in document.lines[1 : document.header_end - 1]:
        if not keys or _KEY.match(line):
            keys.append([])
        listed = (key for key in reversed(keys) if line.startswith("  - ") and key and key[0].endswith(":"))
        next(listed, keys[-1]).append(line)
    heads = [{lines[0].partition(":")[0]: lines for lines in each} for each in (keys[::-1], keys)]
    rest = document.lines[document.header_end - 1 :]
    texts = ["\n".join(("---", *chain.from_iterable(head.values()), *rest, "")) for head in heads]
    ours, theirs = (text.encode("utf-8", "surrogateescape") for text in texts)
    is_read = all(Document.parse(document.id, data).header.problem is None for data in (ours, theirs))
    return Versions(None, ours, theirs) if is_read and len(keys) > len(heads[0]) else None


def original(document: Document, view: View) -> str:
    """Return the document of the program's that this is a conflict copy of, by its name and its header; its
    own id if it is none."""
    match = _COPY.search(document.id)
    name = document.id[: match.start()] if match else document.id
    if match is None or name not in view or not (name in BUFFERS or name.startswith(folders().owned)):
        return document.id
    named = document.header.values.get("id", document.id if match[1] else name)
    return name if named == name else document.id


def conflicts(view: View, doc_ids: Iterable[str]) -> list[str]:
    """Return which of these documents other programs left to be merged."""

    def is_left(document: Document) -> bool:
        marked = is_signed(document.id) and sides(document) is not None
        return marked or original(document, view) != document.id

    return [doc_id for doc_id in doc_ids if is_left(view.document(doc_id))]


def mend(view: View, doc_ids: Iterable[str]) -> Rendered:
    """Merge what other programs left in these documents: conflict markers, and conflict copies."""
    done, versions = Rendered(), dict[str, dict[str, bytes]]()
    for document in map(view.document, doc_ids):
        name, parts = original(document, view), sides(document)
        some = versions.setdefault(name, {name: view.document(name).to_bytes()})
        some[document.id] = merged(name, *parts) if parts else document.to_bytes()
        done.documents[document.id] = None
    for name, some in versions.items():
        data = reduce(lambda one, other: merged(name, None, one, other), sorted({*some.values()}))
        done.documents[name] = Document.parse(name, data)
    before = [view.document(doc_id) for doc_id in done.documents if doc_id in view]
    after = [one for one in done.documents.values() if one]
    had, has = (
        Counter((place.seq, place.entry.line) for one in documents for place in one.entries)
        for documents in (before, after)
    )
    done.removed += sorted((had - has).elements())
    done.added += sorted((has - had).elements())
    stood = {place.seq: one.id for one in before for place in one.entries}
    stands = {place.seq: one.id for one in after for place in one.entries}
    for seq in sorted({seq for seq, _ in (*done.removed, *done.added)}):
        elsewhere = view.entry(seq)  # the other side moved it there, or took it out
        now = stands.get(seq) or (
            elsewhere.doc_id if elsewhere and elsewhere.doc_id not in done.documents else "-"
        )
        done.rows.append(ReceiptRow(seq, stood.get(seq, now), now, DOUBLED))
    return done
