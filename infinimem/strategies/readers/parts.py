"""Questions that ask for several things: taken apart by the model, and their rankings joined."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import zip_longest

from infinimem.llm import tasks
from infinimem.llm.base import LLM
from infinimem.model import Retrieved
from infinimem.settings import ReaderSettings

PARTS = 4
LONG = 30
"""Words from which a question may ask for several things whatever its words are."""
PART_LENGTH = 400

_SEVERAL = re.compile(
    r"\b(?:and|or|both|either|neither|than|versus|vs|between|compared|respectively)\b", re.IGNORECASE
)


def parts_of(llm: LLM, question: str, settings: ReaderSettings) -> list[str]:
    """The parts of a question; none where it asks for one thing.

    The model is asked only if `settings.decompose` says so and the question has a word that joins or
    compares, or is long: on LoCoMo taking apart changed no recall beyond chance, and it costs a call.

    Raises:
        ModelUnavailable: the model does not answer.
    """
    if not settings.decompose or not (_SEVERAL.search(question) or question.count(" ") >= LONG):
        return []
    reply = llm.complete(tasks.DECOMPOSE, {"question": question, "limit": str(PARTS)})
    if reply.data is None:
        return []
    stated = (" ".join(part.split())[:PART_LENGTH] for part in reply.data["parts"])
    found = [part for part in dict.fromkeys(stated) if part][:PARTS]
    return found if len(found) > 1 else []


def interleaved(rankings: Iterable[Sequence[Retrieved]]) -> list[Retrieved]:
    """The best of each ranking, then the second of each, and so on; each place once."""
    found: dict[tuple[str, int], Retrieved] = {}
    for row in zip_longest(*rankings):
        for item in row:
            if item:
                found.setdefault((item.doc_id, item.start_line), item)
    return list(found.values())
