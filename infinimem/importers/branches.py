"""Which messages of a conversation are the open branch, where prompts were edited or answers asked for anew.

A message that was edited stays beside the one that took its place: both answer the same one. What its reader
sees leads from the first message to the one that the program names, or to the newest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from infinimem.importers.fields import Skipped, as_name, first, iso

EDITED = "messages of branches that were edited away"

_IDS = ("uuid", "id", "messageId", "message_id")
_PARENTS = ("parent_message_uuid", "parentMessageId", "parent_message_id")
_TIMES = ("created_at", "createdAt", "create_time", "timestamp")


def branch(parents: Mapping[str, object], times: Mapping[str, object], leaf: object) -> list[str]:
    """Ids of messages from the first to `leaf`, or to the newest where that is none of them.

    Args:
        parents: id of each message -> id of the one that it answers.
        times: when each was written, as `iso` reads it; of equal ones the last is the newest.
        leaf: id of the message that the program shows last.
    """
    if not (isinstance(leaf, str) and leaf in parents):
        dated = ((iso(times.get(ident)) or "", at, ident) for at, ident in enumerate(parents))
        leaf = max(dated, default=("", 0, None))[2]
    path: dict[str, None] = {}
    while isinstance(leaf, str) and leaf in parents and leaf not in path:
        path[leaf] = None
        leaf = parents[leaf]
    return list(reversed(path))


def open_branch(messages: Sequence[Any], leaf: object, skipped: Skipped) -> Sequence[Any]:
    """The messages of the open branch; all of them where each answers the one before or none says whom.

    A message that names no parent, or one that the export does not hold, answers the one before it.
    """
    named = {
        as_name(first(one, *_IDS)) or f"#{at}": one
        for at, one in enumerate(messages)
        if isinstance(one, dict)
    }
    if len(named) < len(messages):
        return messages  # ids that stand twice, or records of another shape: no tree to go by
    parents: dict[str, str | None] = {}
    before = root = None
    for ident, one in named.items():
        given = next((as_name(one[field]) for field in _PARENTS if field in one), before)
        root = root if parents else given
        parents[ident] = given if given in named or given in (None, root) else before
        before = ident
    if (
        not any(parent in named for parent in parents.values())
        or list(parents.values())[1:] == list(named)[:-1]
    ):
        return messages
    path = branch(parents, {ident: first(one, *_TIMES) for ident, one in named.items()}, leaf)
    skipped[EDITED] += len(named) - len(path)
    return [named[ident] for ident in path]
