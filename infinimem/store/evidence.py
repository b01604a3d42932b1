"""Turns to evidence lines: which file each goes to and how it is written. Pure; the library appends.

One file a session, one a day where there is no session. A file that has grown large is followed by a
second part, so that no file of ours outgrows what tools read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import accumulate
from typing import Any

from infinimem.errors import LibraryError, UsageError
from infinimem.markdown.characters import clean_text
from infinimem.markdown.document import Document
from infinimem.markdown.header import flow, quote
from infinimem.markdown.signature import format_entry
from infinimem.model import Located, Source, Turn
from infinimem.store.files import Files
from infinimem.store.lines import ID, Mark, block_of, fold, marks_of, plain
from infinimem.store.spec import EVIDENCE, WAITING, slug
from infinimem.store.view import View

PART_BYTES = 2 * 1024 * 1024
"""Beyond this size a session goes on in a new file."""

_ROLES: Mapping[str, Source] = {
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "ai", "model"), "AI"),
    **dict.fromkeys(("tool", "function", "system", "developer"), "tool"),
}
_TIME = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?\Z", re.ASCII
)
_FIELDS = ("speaker", "turn", "key", "cwd", "branch", "note")
SESSION_LENGTH = 1000
"""Characters; a session's name stands in the header of its file, which is bounded."""
PARTICIPANTS_LENGTH = 4000
"""Characters of names that a header lists; every line has its own speaker."""


@dataclass
class EvidencePart:
    """What is to be appended to one evidence file; `header` only if the file is new."""

    doc_id: str
    header: str = ""
    lines: list[str] = field(default_factory=list)
    size: int = 0

    @cached_property
    def tail(self) -> Document:
        text = self.header + "".join(f"{line}\n" for line in self.lines)
        return Document.parse(self.doc_id, text.encode("utf-8", "surrogateescape"))


def check_turn(turn: Turn) -> None:
    """Raise a UsageError if a turn cannot be recorded: for its type, text, role, time or session's name."""
    if not isinstance(turn, Turn):
        raise UsageError(f"a Turn is wanted, not {type(turn).__name__}; write Turn(role=…, text=…)")
    if not turn.text.strip():
        raise UsageError("the text is empty; say what is to be remembered")
    if turn.role.casefold() not in _ROLES:
        raise UsageError(f"role {turn.role[:40]!r} is unknown; write user, assistant or tool")
    is_time = turn.time is None
    if turn.time is not None:
        with suppress(ValueError):
            is_time = bool(datetime.fromisoformat(turn.time)) and _TIME.match(turn.time) is not None
    if not is_time:
        when = str(turn.time)[:40]
        raise UsageError(f"time {when!r} is not ISO 8601; write 2025-03-03 or 2025-03-03T14:05:00")
    if turn.session is not None and len(turn.session) > SESSION_LENGTH:
        raise UsageError(
            f"session {turn.session[:40]!r}… is too long for a name; use {SESSION_LENGTH} characters"
        )


def unrecorded(turns: Sequence[Turn], view: View, doubtful: Callable[[], Collection[int]]) -> Sequence[Turn]:
    """Return the turns that are not in the log yet, or cut short, as `doubtful` seqs may be; each once."""
    if not any(marks_of(turn.key, turn.session, turn.turn) for turn in turns):
        return turns
    lines, unsure, fresh = view.lines, doubtful(), []
    taken: set[Mark] = set()

    def is_whole(turn: Turn, recorded: Located) -> bool:
        text, left = clean_text(turn.text), recorded.text.rstrip("\0").rstrip()
        return recorded.seq not in unsure or len(left) >= len(text) or not text.startswith(left)

    for turn in turns:
        own = marks_of(turn.key, turn.session, turn.turn)
        there = filter(None, map(lines.marked, own))
        recorded = (view.document(doc_id).entry(seq) for doc_id, seq in there)
        if taken.isdisjoint(own) and not any(place and is_whole(turn, place) for place in recorded):
            taken.update(own)
            fresh.append(turn)
    return fresh


def parts(turns: Sequence[Turn], view: View, first_seq: int, now: str) -> list[EvidencePart]:
    """Lay out checked turns as lines of evidence files, with seqs from the first on; `now` is in UTC. A file
    that a copy of the library makes has the copy's block in its name, so that no other copy makes it too."""
    block = block_of(first_seq)
    suffix = f"-{block}" if block else ""
    homes: dict[str, str] = {}  # of sessions that are new
    speakers: dict[str | None, dict[str, None]] = {}
    for turn in turns:
        if turn.speaker:
            speakers.setdefault(turn.session, {})[plain(turn.speaker)] = None
    open_parts: dict[str, EvidencePart] = {}
    for seq, turn in enumerate(turns, first_seq):
        source = _ROLES[turn.role.casefold()]
        marked: dict[str, Any] = {name: getattr(turn, name) for name in _FIELDS}
        marked["role"] = None if source != "tool" or turn.role == "tool" else turn.role
        marked["observed"] = None if turn.time else now
        fields = {name: plain(value) for name, value in marked.items() if value}
        time = turn.time.replace(" ", "T") if turn.time else None
        line = format_entry(seq, clean_text(turn.text), time=time, source=source, fields=fields)
        home = _home(turn, homes, view, now, suffix)
        part = _with_room(home, len(line.encode("utf-8", "replace")), open_parts, view)
        if turn.session:
            homes.setdefault(plain(turn.session), home)
        if not part.lines and part.doc_id not in view:
            part.header = _header(part.doc_id, turn, time or now, speakers.get(turn.session, ()))
        part.lines.append(line)
    return list(open_parts.values())


def placed(part: EvidencePart, view: View) -> list[Located]:
    """Return the new lines where they stand once the part is written."""
    before = len(view.document(part.doc_id).lines) if part.doc_id in view else 0
    return [
        replace(place, start_line=place.start_line + before, end_line=place.end_line + before)
        for place in part.tail.entries
    ]


def _home(turn: Turn, new: Mapping[str, str], view: View, now: str, suffix: str) -> str:
    day, folder = (turn.time or now)[:10], WAITING if view.settings.write.approve else EVIDENCE
    if not turn.session:
        return f"{folder}{day}{suffix}"
    session = plain(turn.session)
    if home := new.get(session) or view.lines.session(session, folder):
        return home
    stem = f"{folder}{day}-{slug(session)[:60] or 'session'}{suffix}"
    taken = {fold(home) for home in new.values()}
    home, number = stem, 2
    while fold(home) in taken or view.lines.named(ID, fold(home)):
        home, number = f"{stem}-{number}", number + 1
    return home


def _with_room(home: str, size: int, open_parts: dict[str, EvidencePart], view: View) -> EvidencePart:
    number, doc_id = 1, home
    while True:
        part = open_parts.get(doc_id)
        if part is None:
            there = view.stored.stamps[doc_id].size if doc_id in view and view.stored else 0
            part = EvidencePart(doc_id, size=there)
        if part.size == 0 or part.size + size <= PART_BYTES:
            part.size += size + 1
            return open_parts.setdefault(doc_id, part)
        number += 1
        doc_id = f"{home}-part{number}"


def _header(doc_id: str, turn: Turn, date: str, speakers: Collection[str]) -> str:
    lines = ["---", f"id: {quote(doc_id)}", "kind: evidence"]
    if turn.session:
        lines.append(f"session: {quote(plain(turn.session))}")
    lines.append(f"date: {date}")
    ends = accumulate(len(quote(speaker, flow=True)) for speaker in speakers)
    if listed := [speaker for speaker, end in zip(speakers, ends, strict=True) if end <= PARTICIPANTS_LENGTH]:
        lines.append(f"participants: {flow(listed)}")
    return "\n".join([*lines, "---", ""])


def write(files: Files, parts: Sequence[EvidencePart], append: Callable[[Document], None]) -> None:
    """Write all or none; `append` adds to a document that is there."""
    before: list[tuple[str, int]] = []
    try:
        for part in parts:
            path = f"{part.doc_id}.md"
            if part.header:
                files.must_be_free(path)
            if part is not parts[-1]:
                before.append((path, files.size(path)))
            if part.header:  # at once, so that no half a header can stay
                files.replace(path, part.tail.to_bytes())
            else:
                append(part.tail)
    except LibraryError:
        for path, size in before:
            files.cut(path, size)
        raise
