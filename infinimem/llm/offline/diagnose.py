"""What a unit and its neighbours need, by rules that would rather miss: most units need nothing.

An update where two units give different values to what has one (grounding/values.py); never a split or a
merge, for what is said twice may have happened twice. Confidences are those of the shape of the sentences:
below 0.9 it may be otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from infinimem import chronology
from infinimem.grounding.sentences import Said, split_speaker
from infinimem.grounding.values import values
from infinimem.llm.offline.describe import said_by
from infinimem.model import Entry
from infinimem.terms import fold

Unit = Mapping[str, Any]

_NUMBER = re.compile(r"\d+")


def diagnose(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `diagnose`."""
    updates = _updates(variables["target"], variables["anchors"])
    return {"split_tasks": [], "merge_tasks": [], "update_tasks": list(updates)}


# ── updates ─────────────────────────────────────────────────────────────────────────────────────


def _updates(target: Unit, anchors: Sequence[Unit]) -> Iterator[dict[str, Any]]:
    said = said_by(target)
    ours = values(said)
    for anchor in anchors if ours else ():
        shown = _shown(anchor)
        theirs = {value.of: value for value in values(shown)} if _one_speaker(said, shown) else {}
        for value in ours:
            other = theirs.get(value.of)
            if other is None or not value.differs(other):
                continue
            newer = _is_newer(target, anchor)
            current, old = (value, other) if newer else (other, value)
            yield {
                "current_id": (target if newer else anchor)["id"],
                "superseded_id": (anchor if newer else target)["id"],
                "confidence": current.sure,
                "reason": f"{current.text[:80]}, no longer {old.text[:80]}",
            }
            break


def _is_newer(target: Unit, anchor: Unit) -> bool:
    """Whether the target is newer: by time, then by number. The target is called TARGET, and its id stands
    beside."""
    new, old = (
        Entry(_number(unit.get("number") or unit["id"]), "", "", unit.get("time") or None)
        for unit in (target, anchor)
    )
    return chronology.is_newer(new, old)


def _number(unit_id: str) -> int:
    found = _NUMBER.search(unit_id)
    return int(found[0][:18]) if found else 10**18


def _shown(anchor: Unit) -> Said:
    """What a neighbour's summary quotes, as far as it is the offline client's."""
    return Said(*split_speaker(" ".join((anchor.get("summary") or "").split())))


def _one_speaker(one: Said, other: Said) -> bool:
    """What one person says neither repeats nor replaces what another one says."""
    return fold(one.speaker) == fold(other.speaker)
