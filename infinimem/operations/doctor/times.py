"""Times without a zone beside times with one: which of two came first is then a guess."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from infinimem.model import CURRENT, Finding, Located
from infinimem.operations.doctor.inspection import Shelf
from infinimem.store.spec import TOPICS
from infinimem.store.view import EVIDENCE

_ZONE = re.compile(r"(?:Z|[+-]\d{2}:?\d{2})\Z")


def mixed(shelf: Shelf) -> Iterator[Finding]:
    """One note a document of entries, and one a session, however many files it has. Days have no zone."""
    together: dict[str, list[Located]] = defaultdict(list)
    for document in shelf.own(CURRENT, TOPICS, EVIDENCE):
        session = document.header.values.get("session")
        name = f"session {session}" if session else document.id
        together[name] += (place for place in document.entries if "T" in (place.entry.time or ""))
    for _, places in sorted(together.items()):
        naive = [place for place in places if not _ZONE.search(place.entry.time or "")]
        if naive and len(naive) < len(places):
            zoned = len(places) - len(naive)
            what = f"{len(naive)} times without a zone beside {zoned} with one"
            advice = "give turns times with a zone when they are recorded; here which is older is a guess"
            yield Finding("note", what, f"{naive[0].doc_id}:{naive[0].start_line}", advice)
