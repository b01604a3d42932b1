"""What every append rests on: seqs that are given once, and tails that a crash tore, taken back.

    .infinimem/seq          every seq up to this one may have been given, and by whom; durable before one is
    .infinimem/seq.given    the last that was given, and during which boot; never synced
    .infinimem/append       what is being appended to which file; says nothing once that is done

Syncing each seq would double what a short remark costs, so the durable mark runs ahead by a block. Unsynced
bytes outlive a killed process but not the machine: after a boot the rest of the block is left out.

The library counts from 1 where it was made; every copy, which finds no mark or one of another place, in a
block of its own that it draws once (docs/FORMAT.md, Two machines).

After a kill, or a disk that refused even to cut back, the note of an append tells what to take out: nobody
was told that it is there. A loss of power may take the note. But an append ends with a newline, and is
acknowledged when that is durable. So after a boot, what stands behind the last newline of CURRENT or of
evidence was torn, unless a person typed it, or it is known from before.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from infinimem.errors import LibraryError
from infinimem.markdown.document import Document
from infinimem.markdown.signature import format_seqs, looks_signed, parse_seqs
from infinimem.model import BUFFERS
from infinimem.store import disk
from infinimem.store.commit import CONFLICTS
from infinimem.store.files import MAX_OWNED, Files
from infinimem.store.folders import state_of
from infinimem.store.lines import SIZE, block_of
from infinimem.store.spec import EVIDENCE, JOURNAL
from infinimem.store.state import SeenLine, is_here, owner
from infinimem.store.view import View, whole

MARK, GIVEN = ".infinimem/seq", ".infinimem/seq.given"
BLOCK = 64
BLOCKS = range(10**5, 10**6)
"""Blocks of copies: their seqs have twelve digits, so that nobody takes one for a line's place."""
WIDTH = 63
"""Bytes of the hint: it is written over, for cutting a file first costs as much as a sync."""
INTENT = ".infinimem/append"
DOUBTFUL = ".infinimem/doubtful"
_SIGNED = "- <seq="
_DONE = b"-\n"


def high_water(files: Files) -> int | None:
    """Return the durable mark; None if the machine state is lost or garbled, or is that of another place.

    A mark that names nobody (an earlier version's, a fleet's, a rehearsal's) is of whoever has the folder.
    """
    mark, _, whose = (files.read(MARK) or b"").decode("ascii", "replace").strip().partition(" ")
    return whole(mark) if not whose or is_here(files, whose) else None


def begin(files: Files, mark: int) -> None:
    """Write the mark, as this machine's in this place. The caller holds the lock."""
    files.replace(MARK, f"{mark} {owner(files)}\n".encode())


def last(files: Files) -> int | None:
    """Return the last seq that was given, as far as the machine knows that gave it; else the mark."""
    given, during = _given(files)  # without a name for this boot nothing tells whether it outlived that
    is_sure = given is not None and during and during == disk.boot()
    return given if is_sure else high_water(files)


def rebooted(files: Files) -> bool:
    """Return whether the machine may have gone down since the last seq was given: appends may be torn."""
    return files.read(MARK) is not None and _given(files)[1] != (disk.boot() or "unknown")


def settle(files: Files) -> None:
    if mark := high_water(files):
        _hint(files, mark)


def _given(files: Files) -> tuple[int | None, str]:
    given, _, during = (files.read(GIVEN) or b"").decode("ascii", "replace").strip().partition(" ")
    return whole(given), during


def _hint(files: Files, seq: int) -> None:
    if boot := disk.boot():
        files.overwrite(GIVEN, f"{seq} {boot}".ljust(WIDTH).encode() + b"\n")


def allocate(files: Files, count: int, view: View) -> int:
    """Give `count` seqs above those on disk, under the lock; return the first."""
    mark = high_water(files)
    if mark is not None:
        highest = last(files) or 0
    else:  # others may count too: a mark or lines of theirs are there, or it lies in a repository
        in_git = any((folder / ".git").exists() for folder in (files.root, *files.root.parents))
        is_copy = in_git or files.exists(MARK) or view.max_seq or view.below(JOURNAL)
        highest = SIZE * _draw(block_of(view.max_seq)) if is_copy else 0
    block = block_of(highest)
    first = max(highest, view.lines.highest(block)) + 1
    end = first + count - 1
    if block_of(end) != block and count < SIZE:  # it is full, or a person typed its last number
        files.remove(MARK)
        return allocate(files, count, view)
    if mark is None or end > mark:
        begin(files, end + (BLOCK if disk.boot() else 0))
    _hint(files, end)
    return first


def _draw(above: int) -> int:
    """Return a block above those that are in use, so that the order of seqs stays that of recording, and far
    enough somewhere that no two copies will draw one."""
    first = max(above + 1, BLOCKS.start)
    if first + BLOCK > BLOCKS.stop:
        return secrets.choice(BLOCKS)
    return first + secrets.randbelow((BLOCKS.stop - first) // 10)


@contextmanager
def noted(files: Files, path: str, data: bytes) -> Iterator[None]:
    """Say what is about to be appended while it is. The caller holds the lock."""
    head = f"{disk.boot()}\n{path}\n{files.size(path)} {len(data)}\n".encode("utf-8", "surrogateescape")
    files.overwrite(INTENT, head + data)
    yield
    with suppress(LibraryError):  # it is there whole: the next look at the note finds that
        files.overwrite(INTENT, _DONE.ljust(len(head) + len(data)))


def waiting(files: Files) -> bool:
    """Return whether an append did not come to its end."""
    return not (files.read(INTENT, MAX_OWNED) or _DONE).startswith(_DONE)


def undo(files: Files) -> None:
    """Take out what an append left that did not come to its end. The caller holds the lock.

    A note from before a boot may be an old one whose end was lost: it says nothing.
    """
    note = files.read(INTENT, MAX_OWNED) or b""
    boot, name, sizes, data = [*note.split(b"\n", 3), b"", b"", b""][:4]
    before, _, after = sizes.decode("ascii", "replace").partition(" ")
    size, length, path = whole(before), whole(after), name.decode("utf-8", "surrogateescape")
    if boot and boot == disk.boot().encode() and size is not None and length is not None:
        tail = (files.read(path, MAX_OWNED) or b"")[size:] if state_of(files.root, path) else b""
        meant = (b"\n" if tail[:1] == b"\n" else b"") + data[:length]
        if tail and tail != meant and meant.startswith(tail):
            files.cut(path, size, tail)
    files.overwrite(INTENT, _DONE.ljust(len(note)))


def mend(files: Files, view: View, known: Mapping[int, SeenLine]) -> None:
    """Cut torn tails off, but for known lines, and keep what is cut for people. The caller holds the lock."""
    had = {*view.cited, *(view.drawn or ()), *known}
    said = view.owned(EVIDENCE)
    ends = [place.seq for doc_id in said for place in view.document(doc_id).entries[-1:]]
    if unknown := sorted(set(ends) - had):
        files.stage(DOUBTFUL, f"{format_seqs(unknown)}\n".encode(), durable=False)  # else it is done again
    for doc_id in (*BUFFERS, *said):
        path = f"{doc_id}.md"
        data = files.read(path, MAX_OWNED) or b""
        if data and not data.endswith(b"\n"):
            start = _torn(Document.parse(doc_id, data), had)
            if start is not None:
                files.append(f"{CONFLICTS}/torn-{path.replace('/', '-')}", data[start:])
                files.cut(path, start, data[start:])


def doubtful(files: Files) -> tuple[int, ...]:
    """Return seqs of evidence that was the last of its file at a boot: it may be cut at a line's end."""
    with suppress(ValueError):
        return parse_seqs((files.read(DOUBTFUL, MAX_OWNED) or b"").decode("ascii", "replace").strip())
    return ()


def _torn(document: Document, had: set[int]) -> int | None:
    """Return the offset of a torn tail; None if the last line is whole, or a person's."""
    entries = [place for place in document.entries if place.end_line == len(document.lines)]
    line = entries[0].start_line if entries else len(document.lines)
    text = document.lines[line - 1] if document.lines else ""
    begun = looks_signed(text) or (text and _SIGNED.startswith(text)) or "\0" in document.lines[-1]
    if not begun or (entries and entries[0].seq in had):
        return None
    head = "\n".join([*document.lines[: line - 1], ""])
    return len(head.encode("utf-8", "surrogateescape")) + 3 * document.bom
