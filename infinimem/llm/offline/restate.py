"""Descriptors of what was put in order: of units that say the same, of a unit that replaces another.

Both quote: the newest member for what holds, the others for what they add or no longer are. A unit that
something else says is of several topics is left whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from infinimem.grounding.sentences import Said
from infinimem.grounding.values import values
from infinimem.llm.offline.describe import KEYWORDS, keywords, said_by, summary
from infinimem.markdown.characters import normalised

MERGED_KEYWORDS = 8
"""Of a merge: its members may name the same thing in different words."""


def split_unit(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `split_unit`: no rule tells where a text turns to something else."""
    unit = variables["unit"]
    words = keywords([said_by(unit)])
    whole = {
        "segment_text": unit.get("text") or "",
        "segment_summary": summary(said_by(unit)),
        "segment_keywords": words,
        "topic_label": ", ".join(words[:2]),
    }
    return {"do_split": False, "segments": [whole], "split_rationale": "rules cut no text"}


def merge_units(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `merge_units`: the newest speaks for all, the others' wordings are salient points."""
    said = [said_by(unit) for unit in variables["units"]]
    texts: dict[str, Said] = {}
    for item in reversed(said):
        texts.setdefault(normalised(item.line), item)
    newest, *others = texts.values() or [Said("", "")]
    return {
        "summary": summary(newest),
        "keywords": keywords([newest, *others], MERGED_KEYWORDS),
        "salient_points": [summary(item) for item in reversed(others)],
    }


def update_unit(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `update_unit`: the current unit in its own words, the other one as outdated."""
    current, old = said_by(variables["current"]), said_by(variables["superseded"])
    gone = _replaced(current, old)
    return {
        "updated_summary": summary(current),
        "updated_keywords": keywords([current], KEYWORDS),
        "deprecations": [summary(old)] if old.text else [],
        "alignment_note": f"{gone[1]}, no longer {gone[0]}"
        if gone
        else "the newer statement replaces the older",
    }


def _replaced(current: Said, old: Said) -> tuple[str, str] | None:
    """The value that no longer holds and the one that does, where the two tell them."""
    before = {value.of: value for value in values(old)}
    for value in values(current):
        other = before.get(value.of)
        if other is not None and value.differs(other):
            return other.text, value.text
    return None
