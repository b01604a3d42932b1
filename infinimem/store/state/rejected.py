"""Replies of a model that were not taken as they came, kept for people in `.infinimem/rejected/`.

They are no record: the newest hundred stay, nothing is synced, and a disk that refuses them stops nothing.
No tool reads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress

from infinimem.errors import LibraryError
from infinimem.markdown.characters import one_line
from infinimem.model import Plan, RejectedReply
from infinimem.store.files import Files
from infinimem.store.outcome import Outcome, Rejected
from infinimem.store.view import whole

FOLDER = ".infinimem/rejected"
KEPT = 100
MAX_BYTES = 64 * 1024
"""Of one file; of a longer reply the beginning is kept."""
_SHOWN = 500


def keep(files: Files, replies: Iterable[RejectedReply], when: str) -> None:
    """Write each reply into a file of its own, `000123-extract.txt`, and drop the oldest beyond a hundred.

    Call it under the lock, so that no two take the same number.

    Args:
        files: of the library.
        replies: what was refused, in order.
        when: the time that the files name.
    """
    with suppress(LibraryError):
        there: list[str] = []
        for reply in replies:
            there = there or _numbered(files)
            number = 1 + (whole(there[-1].partition("-")[0]) or 0) if there else 1
            there.append(f"{number:06d}-{_name(reply.task)}.txt")
            files.stage(f"{FOLDER}/{there[-1]}", _text(reply, when), durable=False)
        for name in there[:-KEPT]:
            files.remove(f"{FOLDER}/{name}", durable=False)


def refusals(plan: Plan, outcome: Outcome) -> list[RejectedReply]:
    """The reasons why a plan itself was refused."""
    if isinstance(outcome, Rejected):
        return [RejectedReply(plan.op, "", tuple(map(str, outcome.reasons)))]
    return []


def _numbered(files: Files) -> list[str]:
    """The names that begin with a number, by that number."""
    found = [(whole(name.partition("-")[0]), name) for name in files.names(FOLDER)]
    return [name for _, name in sorted((number, name) for number, name in found if number is not None)]


def _name(task: str) -> str:
    return re.sub("[^a-zA-Z0-9_]", "", task)[:40] or "reply"


def _text(reply: RejectedReply, when: str) -> bytes:
    reasons = "".join(f"reason: {one_line(reason)[:_SHOWN]}\n" for reason in reply.reasons[:100])
    text = f"time: {when}\ntask: {one_line(reply.task)}\n{reasons}\n{reply.text[:MAX_BYTES]}\n"
    return text.encode("utf-8", "backslashreplace")[:MAX_BYTES]
