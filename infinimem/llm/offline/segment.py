"""Where a conversation turns to something else, by rules: a pause, an announcement, or no word in common."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from infinimem.llm.offline.lexicon import content_terms, short_names
from infinimem.llm.offline.topics import continues

NEAR, FAR = 1, 3
"""Turns on each side that are compared; more of them where only another subject is to be found."""

_ANNOUNCED = re.compile(
    r"\W*(?:(?:oh|so|and|but|well|okay|ok|hey)\W+)?(?:by the way|btw|anyways?|on an?(?:other| different) note"
    r"|changing (?:the )?(?:subject|topics?)|to change the (?:subject|topic)|speaking of|quick question"
    r"|another (?:thing|question)|something else|different topic|unrelated)\b",
    re.IGNORECASE,
)


def segment(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `segment`."""
    turns: Sequence[Mapping[str, Any]] = variables["turns"]
    paused = {pause["before"] for pause in variables["pauses"]}
    names = short_names(turn["speaker"] for turn in turns if turn.get("speaker"))
    words = [frozenset(content_terms(turn["text"])) - names for turn in turns]
    cuts, begin = list[dict[str, str]](), 0
    for at in range(1, len(turns)):
        if reason := _reason(turns, words, begin, at, paused, FAR if variables["strict"] else NEAR):
            cuts.append({"before": turns[at]["id"], "reason": reason})
            begin = at
    return {"cuts": cuts}


def _reason(
    turns: Sequence[Mapping[str, Any]],
    words: Sequence[frozenset[str]],
    begin: int,
    at: int,
    paused: Collection[str],
    side: int,
) -> str:
    """Why a topic begins with a turn; nothing where it does not. What replies begins none."""
    text = turns[at]["text"]
    if turns[at]["id"] in paused:
        return "pause"
    if _ANNOUNCED.match(text):
        return "announced"
    if not words[at] or continues(text) or "?" in turns[at - 1]["text"]:
        return ""
    before = frozenset[str]().union(*words[max(begin, at - side) : at])
    after = frozenset[str]().union(*words[at : at + side])
    return "" if before & after else "no word in common"
