"""Appends that were cut short, taken back: nobody was told that they are there.

    .infinimem/append   what is being appended to which file; says nothing once that is done

After a kill, or a disk that refused even to cut back, the note tells what to take out. It is not synced: a
loss of power may take it. But an append ends with a newline, and is acknowledged when that is durable. So
after a boot, what stands behind the last newline of CURRENT or of evidence was torn, unless a person typed
it, or it is known from before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from infinimem.errors import LibraryError
from infinimem.markdown.document import Document
from infinimem.markdown.signature import format_seqs, looks_signed, parse_seqs
from infinimem.model import CURRENT
from infinimem.store import disk
from infinimem.store.commit.install import CONFLICTS
from infinimem.store.files import MAX_OWNED, Files
from infinimem.store.listing import state_of
from infinimem.store.state.last_seen import SeenLine
from infinimem.store.view import View, whole

INTENT = ".infinimem/append"
DOUBTFUL = ".infinimem/doubtful"
_SIGNED = "- <seq="
_DONE = b"-\n"


@contextmanager
def noted(files: Files, path: str, data: bytes) -> Iterator[None]:
    """Say what is about to be appended while it is. The caller holds the lock."""
    head = f"{disk.boot()}\n{path}\n{files.size(path)} {len(data)}\n".encode("utf-8", "surrogateescape")
    files.overwrite(INTENT, head + data)
    yield
    with suppress(LibraryError):  # it is there whole: the next look at the note finds that
        files.overwrite(INTENT, _DONE.ljust(len(head) + len(data)))


def waiting(files: Files) -> bool:
    """Whether an append did not come to its end."""
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
    """Cut torn tails off; what is cut is kept aside. The caller holds the lock.

    Args:
        view: the library as it lies there.
        known: lines that were seen.
    """
    had = {*view.cited, *(view.drawn or ()), *known}
    ends = [place.seq for doc_id in view.ids("evidence") for place in view.document(doc_id).entries[-1:]]
    if last := sorted(set(ends) - had):
        files.stage(DOUBTFUL, f"{format_seqs(last)}\n".encode(), durable=False)  # else it is done again
    for doc_id in (CURRENT, *view.ids("evidence")):
        path = f"{doc_id}.md"
        data = files.read(path, MAX_OWNED) or b""
        if data and not data.endswith(b"\n"):
            start = _torn(Document.parse(doc_id, data), had)
            if start is not None:
                files.append(f"{CONFLICTS}/torn-{path.replace('/', '-')}", data[start:])
                files.cut(path, start, data[start:])


def doubtful(files: Files) -> tuple[int, ...]:
    """Seqs of evidence that was the last of its file at a boot, and may have been cut at a line's end."""
    with suppress(ValueError):
        return parse_seqs((files.read(DOUBTFUL, MAX_OWNED) or b"").decode("ascii", "replace").strip())
    return ()


def _torn(document: Document, had: frozenset[int] | set[int]) -> int | None:
    """The offset of a torn tail; None where the last line is whole, or a person's."""
    entries = [place for place in document.entries if place.end_line == len(document.lines)]
    line = entries[0].start_line if entries else len(document.lines)
    text = document.lines[line - 1] if document.lines else ""
    begun = looks_signed(text) or (text and _SIGNED.startswith(text)) or "\0" in document.lines[-1]
    if not begun or (entries and entries[0].seq in had):
        return None
    head = "\n".join([*document.lines[: line - 1], ""])
    return len(head.encode("utf-8", "surrogateescape")) + 3 * document.bom
