"""What a question tells beside its words: whose words it asks for, of what day, that it wants no question.

Each prior changes a score by at most `GAIN` of it, so it decides between pieces of like wording and hides
none. Where a question names nobody, or the rows carry no such attribute, nothing changes.

Source: the same priors, stronger, were in the best pipeline without vectors that was measured on LoCoMo. The
two constants were chosen on LoCoMo's development conversations and checked on questions of LongMemEval.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from infinimem.retrieval.named_dates import nearness, read_dates
from infinimem.retrieval.named_people import asked_of
from infinimem.settings import SearchSettings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

GAIN = 0.3
"""What a prior adds to a score or takes from it, as a share."""

STATED = 100
"""Characters beside its questions from which on a text states something; a greeting has fewer."""

_LOOKED_AT = 2000
"""Characters of a text that are looked at for questions."""

_SENTENCE = re.compile(r"""\S.*?(?:[.!?]++["')\]*_”’]*(?=\s|$)|[。！？؟]++|$)""", re.MULTILINE)
_QUESTION = re.compile(r"""[?？؟][!?.]*["')\]*_”’]*$""")


@dataclass(frozen=True)
class Attributes:
    """What the priors look at, for each candidate.

    Args:
        speakers: name of who said it; None for nobody or several.
        personal: whether its source is "user" or "human", not an AI or a tool.
        days: its time as yyyymmdd, with zeros for what the time leaves out.
        asking: how far it only asks (`asking`).
    """

    speakers: Sequence[str | None]
    personal: NDArray[np.bool_]
    days: NDArray[np.integer[Any]]
    asking: NDArray[np.floating[Any]]


def asking(text: str) -> float:
    """How far a text only asks: 1 if it is all questions, less the more it states, 0 from `STATED` on."""
    if not any(mark in text for mark in "?？؟"):
        return 0.0
    sentences = [found[0] for found in _SENTENCE.finditer(text[:_LOOKED_AT])]
    stated = [sentence for sentence in sentences if not _QUESTION.search(sentence)]
    if len(stated) == len(sentences):
        return 0.0
    return max(1 - sum(map(len, stated)) / STATED, 0.0)


def factors(question: str, rows: Attributes, settings: SearchSettings) -> NDArray[np.float64]:
    """What the score of each candidate is multiplied by, 1 - GAIN or more.

    Args:
        question: as it was asked.
        rows: of the candidates.
        settings: which priors count.
    """
    import numpy as np

    found = np.ones(len(rows.speakers))
    dates, rest = read_dates(question)
    if settings.people:
        asked = asked_of(rest, {name for name in rows.speakers if name})
        if asked.speakers:
            found *= 1 + GAIN * np.array([name in asked.speakers for name in rows.speakers])
        if asked.oneself:
            found *= 1 + GAIN * rows.personal
    if settings.dates and dates:
        found *= 1 + GAIN * nearness(dates, rows.days)
    if settings.statements:
        found *= 1 - GAIN * rows.asking.astype(np.float64)
    return found
