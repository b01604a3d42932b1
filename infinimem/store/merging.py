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
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import reduce
from itertools import chain

import re2

from infinimem.errors import LibraryError
from infinimem.markdown.document import Document, heading_title, is_signed
from infinimem.markdown.header import flow
from infinimem.markdown.signature import forgotten_in
from infinimem.model import BUFFERS, ReceiptRow
from infinimem.spec import folders
from infinimem.store.line_map import MARK
from infinimem.store.plans import LOG_LENGTH, Rendered
from infinimem.store.receipts import DOUBLED
from infinimem.store.spec import JOURNAL, TOPICS
from infinimem.store.view import View

_COPY = re.compile(
    r"(?:\.sync-conflict-[\w-]+| \([^()/]*(?:conflicted copy|[Cc]ase [Cc]onflict|SFConflict)[^()/]*\)"
    r"|_conflict-[0-9][\w.-]*|( \([0-9]{1,3}\)| [0-9]{1,3}))\Z"
)
"""What Syncthing, Dropbox, Nextcloud, ownCloud put behind a name; a number counts if the header agrees."""
_KEY = re.compile(r"[\w-]+:")
_LATIN = re2.Options()
_LATIN.encoding = re2.Options.Encoding.LATIN1
_HUNK = re2.compile(
    rb"(?ms)^<{7,} [^\n]*\n(.*?)(^\|{7,} [^\n]*\n(.*?))?^={7,}[^\n]*\n(.*?)^>{7,} [^\n]*\n?",
    options=_LATIN,
)
"""What git leaves of two sides: ours, perhaps the base, theirs."""
_MARK = re.compile(rb"(?m)^(?:<{7,}|\|{7,}|>{7,}) ")
DERIVED = {"token_count", "aux", "see_also"}
"""What a topic is told anew at its next change. Until then its summary is said to describe no line."""


def merged(doc_id: str, base: bytes, ours: bytes, theirs: bytes) -> bytes:
    """Return what two versions of a document are merged to; `base` is what both come from, b"" if unknown."""
    if ours == theirs or theirs == base:
        return ours
    if ours == base:
        return theirs
    one, other = sorted((ours, theirs))
    if doc_id.startswith(folders().records):
        return other  # derived, whole: whichever it is, `rebuild` tells it anew
    before, first, second = (Document.parse(doc_id, data) for data in (base, one, other))
    if doc_id.startswith(JOURNAL):
        return Document(doc_id, tuple(_receipt(first.lines, second.lines))).to_bytes()
    lines = (*_header(before, first, second), *_body(before, first, second))
    done = Document(doc_id, lines, first.bom)
    was, mine, yours, now = ({place.seq for place in one.entries} for one in (before, first, second, done))
    if lost := (mine & yours | (mine ^ yours) - was) - now:
        raise LibraryError(f"line {min(lost)} of {doc_id} would be lost by merging; merge it by hand")
    return done.to_bytes()


def _receipt(one: Sequence[str], other: Sequence[str]) -> Iterator[str]:
    """Give the lines of a receipt without what a `forget` took out of it on either side."""

    def is_forgotten(line: str) -> bool:
        return forgotten_in(line) is not None or line.endswith(MARK) or "| ?" in line or line[1:2] == "@"

    for _, i1, i2, j1, j2 in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        mine, yours = one[i1:i2], other[j1:j2]
        if len(mine) == len(yours):
            yield from (
                there if is_forgotten(there) else here for here, there in zip(mine, yours, strict=True)
            )
        else:
            yield from min(mine, yours, key=len)


def _header(base: Document, one: Document, other: Document) -> Sequence[str]:
    """Return the header: of a key that one side changed, what it says; of one that both did, `_either`."""
    old, mine, yours = (document.lines[: document.header_end] for document in (base, one, other))
    if old == yours or mine == yours:
        return mine
    if old == mine or not (one.header.editable and other.header.editable):
        return yours
    was, ours, theirs = (
        {key[0].partition(":")[0]: key for key in _keys(head)} for head in (old, mine, yours)
    )
    lines = [mine[0]]
    for key in dict.fromkeys([*ours, *theirs]):
        then, here, there = (keys.get(key) for keys in (was, ours, theirs))
        if here == then:
            here = there
        elif there not in (then, here):
            here = _either(key, one, other, [rows for rows in (here, there) if rows])
        lines += here if here and not (one.id.startswith(TOPICS) and key in DERIVED) else ()
    return [*lines, mine[-1]]


def _keys(head: Sequence[str]) -> list[list[str]]:
    """Part the lines of a header by its keys; rows of a list that a merge moved stand with theirs."""
    keys: list[list[str]] = []
    for line in head[1:-1]:
        if not keys or _KEY.match(line):
            keys.append([])
        listed = (key for key in reversed(keys) if line.startswith("  - ") and key and key[0].endswith(":"))
        next(listed, keys[-1]).append(line)
    return keys


def _either(key: str, one: Document, other: Document, both: Sequence[list[str]]) -> list[str]:
    """Return what a key says that both sides changed: all that lists have, of the rest one side by a rule."""
    if key == "id":
        return [f"id: {one.id}"]
    if key == "update_log":
        return [both[0][0], *sorted({row for rows in both for row in rows[1:]})[-LOG_LENGTH:]]
    listed = [document.header.values.get(key, []) for document in (one, other)]
    if all(isinstance(item, str) for some in listed for item in (some if isinstance(some, list) else (0,))):
        return [f"{key}: {flow(list(dict.fromkeys(item for some in listed for item in some)))}"]
    rule = min if key in ("created_time", "date") else max
    return rule(both, key=lambda rows: (len(rows[0]), rows))


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


def sides(document: Document) -> tuple[bytes, bytes, bytes] | None:
    """Return base (b"" where that is not there), ours and theirs of a file with conflict markers; None if it
    has none, or they are not as git wrote them."""
    data = document.to_bytes()
    if not _MARK.search(data):
        return _doubled(document)
    base, ours, theirs = (_HUNK.sub(side, data) for side in (rb"\3", rb"\1", rb"\4"))
    has_base = all(hunk[2] for hunk in _HUNK.finditer(data))
    return None if any(map(_MARK.search, (base, ours, theirs))) else (base * has_base, ours, theirs)


def _doubled(document: Document) -> tuple[bytes, bytes, bytes] | None:
    """Return the two versions of a file that has keys of its header twice, perhaps at its end and once more
    below it, for somebody kept both sides of it."""
    if f"id: {document.id}" not in document.lines[:2]:
        return None
    head, rest = document.lines[: document.header_end], document.lines[document.header_end :]
    start = end = rest.index("---") if "---" in rest else 0
    while start and (_KEY.match(rest[start - 1]) or rest[start - 1].startswith("  - ")):
        start -= 1
    if {line.partition(":")[0] for line in rest[start:end]}.isdisjoint((*DERIVED, "current_epoch")):
        start = end = len(rest)  # prose of a person's, above a rule
    keys = [(lines[0].partition(":")[0], lines) for lines in _keys((*head[:-1], *rest[start:end], "---"))]
    theirs = dict(keys)
    ours = theirs | dict(reversed(keys))
    body = ("---", *rest[:start], *rest[end + 1 :], "")
    one, other = (
        "\n".join(("---", *chain.from_iterable(version.values()), *body)).encode("utf-8", "surrogateescape")
        for version in (ours, theirs)
    )
    is_read = all(Document.parse(document.id, data).header.problem is None for data in (one, other))
    return (b"", one, other) if is_read and len(keys) > len(theirs) else None


def original(doc_id: str, view: View) -> str:
    """Return the document of the program's that one is a conflict copy of, by its name and its header; its
    own id if it is none."""
    match = _COPY.search(doc_id)
    name = doc_id[: match.start()] if match else doc_id
    if match is None or name not in view or not (name in BUFFERS or name.startswith(folders().owned)):
        return doc_id
    named = view.document(doc_id).header.values.get("id", doc_id if match[1] else name)
    return name if named == name else doc_id


def conflicts(view: View) -> list[str]:
    """Return the documents that other programs left to be merged."""

    def is_left(doc_id: str) -> bool:
        marked = is_signed(doc_id) and sides(view.document(doc_id)) is not None
        return marked or original(doc_id, view) != doc_id

    ours = (*BUFFERS, *folders().owned)
    return [doc_id for doc_id in view.lines.suspects if doc_id.startswith(ours) and is_left(doc_id)]


def mend(view: View, doc_ids: Iterable[str]) -> Rendered:
    """Merge what other programs left in these documents: conflict markers, and conflict copies."""
    done, versions = Rendered(), dict[str, dict[str, bytes]]()
    for document in map(view.document, doc_ids):
        name, parts = original(document.id, view), sides(document)
        some = versions.setdefault(name, {name: view.document(name).to_bytes()})
        some[document.id] = merged(name, *parts) if parts else document.to_bytes()
        done.documents[document.id] = None
    for name, some in versions.items():
        data = reduce(lambda one, other: merged(name, b"", one, other), sorted({*some.values()}))
        done.documents[name] = Document.parse(name, data)
    done.permit(view)
    before, after = done.sides(view)
    readings = Counter(seq for seq, _ in before.keys() | after.keys())
    both = sorted(line for line in (before & after).elements() if readings[line[0]] > 1)
    done.removed += both  # of what reads in two ways the receipt has all in full
    done.added += both
    stood = {
        place.seq: name for name in done.documents if name in view for place in view.document(name).entries
    }
    stands = {place.seq: one.id for one in done.documents.values() if one for place in one.entries}
    for seq in sorted({seq for seq, _ in (*done.removed, *done.added)}):
        places = view.lines.all("select d.name from line join document d on d.id = doc where seq = ?", seq)
        moved = (name for (name,) in places if name not in done.documents)  # else the other side took it out
        now = stands.get(seq) or next(moved, "-")
        done.rows.append(ReceiptRow(seq, stands.get(seq) or stood[seq], now, DOUBLED))
    return done
