"""What a unit and its neighbours need, by rules that would rather miss: most units need nothing.

An update where two units give different values to what has one (grounding/values.py), a merge where two say
the same in all but small words, of what does not change; never a split. Confidences are those of the shape of
the sentences: below 0.9 it may be otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from infinimem import chronology
from infinimem.grounding.claims import TODAY, is_duplicate
from infinimem.grounding.sentences import Said, split_speaker, strip_ordinal
from infinimem.grounding.values import LIKELY, SURE, values
from infinimem.llm.offline.describe import GAP, said_by
from infinimem.llm.offline.salience import states
from infinimem.markdown.characters import normalised
from infinimem.model import Entry
from infinimem.terms import STOP_WORDS, fold, tokens

Unit = Mapping[str, Any]

MOST = 4
"""Units of a merge."""
LONGEST = 1000
"""Characters of what is merged; one fact is shorter."""

_PASSING = re.compile(
    r"\b(?:(?:i|we|you|he|she|they)(?:['’](?:m|re|ve|ll|d|s)|\s(?:am|are|was|were|feel|felt|want|wanted|need|plan"
    r"|hope|think|thought|will|would|should|went|got|had|have|live|lives|work|works|moved|started|try|tried|saw"
    r"|made|did|do|can|could|may|might|must))|going|gonna|will|planning|trying|feeling|working|living|currently"
    r"|soon|these days|at the moment|lately|price|weather|mood|health|score|status)\b",
    re.IGNORECASE,
)
"""Words of states and single events: said twice, they may be two."""
_NUMBER = re.compile(r"\d+")


def diagnose(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `diagnose`."""
    target, anchors = variables["target"], variables["anchors"]
    updates = list(_updates(target, anchors))
    return {
        "split_tasks": [],
        # What is settled between two values is not merged in the same breath.
        "merge_tasks": [] if updates else list(_merges(target, anchors)),
        "update_tasks": updates,
    }


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


# ── merges ──────────────────────────────────────────────────────────────────────────────────────


def _merges(target: Unit, anchors: Sequence[Unit]) -> Iterator[dict[str, Any]]:
    said = said_by(target)
    if not _lasts(said):
        return
    same = [anchor for anchor in anchors if _same(said, _shown(anchor))]
    same = same[: MOST - 1]
    if same and all(_same(_shown(one), _shown(two)) for one, two in combinations(same, 2)):
        exact = all(normalised(_shown(anchor).text) == normalised(said.text) for anchor in same)
        yield {
            "node_ids": [target["id"], *(anchor["id"] for anchor in same)],
            "confidence": SURE if exact else LIKELY,
            "reason": "the same fact of the same speaker, " + ("word for word" if exact else "worded alike"),
        }


def _shown(anchor: Unit) -> Said:
    """What a neighbour's summary quotes, as far as it is the offline client's."""
    return Said(*split_speaker(" ".join((anchor.get("summary") or "").split())))


def _lasts(said: Said) -> bool:
    """Whether a text states one thing that was so before and will be."""
    text = strip_ordinal(said.text)
    return (
        len(text) <= LONGEST
        and "?" not in text
        and states(text)
        and not (TODAY.search(text) or _PASSING.search(text))
    )


def _same(one: Said, other: Said) -> bool:
    """Whether two texts differ in small words only, by what the law lets pass and more strictly."""
    if not _one_speaker(one, other) or GAP.strip() in other.text:
        return False
    a, b = strip_ordinal(one.text), strip_ordinal(other.text)
    return is_duplicate(a, b) and _words(a) == _words(b)


def _one_speaker(one: Said, other: Said) -> bool:
    """What one person says neither repeats nor replaces what another one says."""
    return fold(one.speaker) == fold(other.speaker)


def _words(text: str) -> list[str]:
    """All words that are no function words, in their order."""
    return [term for word in text.split() if fold(word) not in STOP_WORDS for term in tokens(word)]
