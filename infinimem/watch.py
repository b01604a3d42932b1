"""Watch a library: report what changes, sign what people typed once it is quiet, keep the index ready.

An editor that saves in several steps is not signed halfway. In people's own notes nothing is written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from infinimem.memory import Memory
from infinimem.model import BUFFERS
from infinimem.store.folders import Stamp
from infinimem.store.spec import TOPICS

QUIET = 1.0  # seconds without a change of a document after which what was typed there is signed
PATIENCE = 1.0  # seconds between two looks where the system tells of no change
GATHER = 0.05  # seconds after a change was told: a rename or a save by renaming comes in several steps


@dataclass(frozen=True)
class DocumentChange:
    """What became of a document, with its name before if it was renamed, the receipt if it was stamped."""

    event: Literal["saved", "created", "deleted", "renamed", "stamped"]
    doc_id: str
    was: str = ""
    receipt: str = ""


def watch(memory: Memory, clock: Callable[[], float] = time.monotonic) -> Iterator[DocumentChange]:
    """Report what changes from now on, as it happens; what people typed is signed.
    LibraryError if the folder cannot be read any more, or the library not be written."""
    return _watch(memory, _stamps(memory), clock)  # taken now, not at the first `next`


def _watch(
    memory: Memory, before: Mapping[str, Stamp], clock: Callable[[], float]
) -> Iterator[DocumentChange]:
    fresh = memory.library.fresh
    unsettled: float | None = clock()  # somebody may have typed before anybody watched
    try:
        while True:
            left = PATIENCE if unsettled is None else unsettled + QUIET - clock()
            fresh.watcher.wait(max(0.0, min(PATIENCE, left)))
            time.sleep(GATHER)
            now = _stamps(memory)
            changes, at = list(_differences(before, now)), clock()
            before = now
            if any(change.doc_id.startswith((*BUFFERS, TOPICS)) for change in changes):
                unsettled = at
            yield from changes
            if unsettled is not None and at - unsettled >= QUIET:
                unsettled = None
                receipt = memory.library.adopt_edits()
                memory.tools.search("any", k=1)  # any search first updates the index
                if receipt is not None:
                    for doc_id in sorted({row.now for row in receipt.rows if row.why == "stamped"}):
                        yield DocumentChange("stamped", doc_id, receipt=receipt.id)
    finally:
        fresh.watcher.stop()


def _stamps(memory: Memory) -> Mapping[str, Stamp]:
    stored = memory.view.stored
    return stored.stamps if stored is not None else {}


def _differences(before: Mapping[str, Stamp], now: Mapping[str, Stamp]) -> Iterator[DocumentChange]:
    """Yield changes by id. A name that went and one that came with the same file are one document."""
    if before is now:
        return
    gone = {stamp: doc_id for doc_id, stamp in before.items() if doc_id not in now}
    for doc_id in sorted(doc_id for doc_id, stamp in now.items() if before.get(doc_id) != stamp):
        if doc_id in before:
            yield DocumentChange("saved", doc_id)
        elif (was := gone.pop(now[doc_id], None)) is not None:
            yield DocumentChange("renamed", doc_id, was=was)
        else:
            yield DocumentChange("created", doc_id)
    yield from (DocumentChange("deleted", doc_id) for doc_id in sorted(gone.values()))
