"""A unit's text as its parts: cut where it turns to something unrelated, byte for byte."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from infinimem.llm.offline.describe import keywords, said_by, summary
from infinimem.llm.offline.salience import title
from infinimem.llm.offline.shifts import parts


def split_unit(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `split_unit`; the reason is looked for in the text again, not believed."""
    unit = variables["unit"]
    found = parts(unit.get("text") or "")
    told = f"{len(found)} parts that share no telling word" if len(found) > 1 else "one topic"
    return {
        "do_split": len(found) > 1,
        "segments": [_segment(unit, part) for part in found],
        "split_rationale": told,
    }


def _segment(unit: Mapping[str, Any], part: str) -> dict[str, Any]:
    said = said_by({**unit, "text": part})
    words = keywords([said])
    topic = [word for word in words if word != said.speaker][:2]
    return {
        "segment_text": part,
        "segment_summary": summary(said),
        "segment_keywords": words,
        "topic_label": title(topic or words[:1]),
    }
