"""Topics and their relations by rules: the sentences that tell most, as they were said; and words in common.

No relation is claimed but likeness in meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from infinimem.llm.offline import describe, episodes
from infinimem.llm.offline.lexicon import content_terms

SENTENCES, KEYWORDS = 4, 12
"""Of a topic; with 2 and 8 fewer of its turns are found by it."""
ENOUGH = 8
"""Telling words in common by which it is certain that two topics have to do with each other."""


def topic(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `topic`; where nothing is told, the first words stand."""
    turns = variables["turns"]
    said = [describe.said_by(turn) for turn in turns]
    lines = episodes.lines(turns, SENTENCES) or [describe.summary(one) for one in said[:1]]
    return {"keywords": describe.keywords(said, KEYWORDS), "summary": " ".join(lines)}


def relate(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `relate`."""
    own, rows = _words(variables["topic"]), list[dict[str, Any]]()
    for other in variables["others"]:
        shared = len(own & _words(other))
        confidence = min(shared / ENOUGH, 1.0)
        rows.append(
            {"id": other["id"], "relation": "semantic" if shared else "unrelated", "confidence": confidence}
        )
    return {"relations": rows}


def _words(shown: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(content_terms(" ".join([shown.get("summary", ""), *shown.get("keywords", ())])))
