"""Stage II: which episodes a question is shown beside facts, and which of them with their messages.

Source: xMemory, section 3.3; where the text gives no number, the values of the published code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from infinimem.llm.base import LLM, Reply
from infinimem.strategies.records.asking import bare
from infinimem.strategies.records.record import Record
from infinimem.strategies.xmemory.spec import XmemorySettings
from infinimem.strategies.xmemory.tasks import GATE
from infinimem.terms import query_terms
from infinimem.terms import tokens as terms_of

EARLY = 3
"""Probes of which none may fail; of all of them one may."""
FALLBACK = 3
"""Episodes that are shown where a model's choice could not be read."""

Records = Sequence[Record]
Probe = tuple[float, bool, bool]
"""What an episode would add: its gain, whether it is shown for that, and whether its messages are."""


class Admitted(NamedTuple):
    """What is shown, and why.

    Args:
        shown: episodes by their places, each with whether its messages are shown too.
        gains: of the episodes that were probed, in order.
        stop: why no more were.
        failure: why the model's choice could not be read.
    """

    shown: Sequence[tuple[int, bool]]
    gains: Sequence[float] = ()
    stop: str = ""
    failure: str = ""


def admitted(probes: Iterable[Probe]) -> Admitted:
    """Episodes, the likeliest first, until one of the first three adds too little, or a second one does; at
    least the first. No probe is made that is not needed."""
    shown, gains, stop = list[tuple[int, bool]](), list[float](), ""
    for number, (gain, enough, messages) in enumerate(probes, 1):
        gains.append(round(gain, 6))
        if enough:
            shown.append((number - 1, messages))
        elif number <= EARLY or number - len(shown) > 1:
            stop = f"probe {number} adds too little"
            break
    return Admitted(shown or [(0, False) for _ in gains[:1]], gains, stop)


def choose(
    llm: LLM, own: XmemorySettings, question: str, facts: Records, episodes: Records, said: Sequence[str]
) -> Admitted:
    """The episodes that are shown, by the gate that the settings name.

    Args:
        llm: asked by the gate `batch`.
        own: the settings.
        question: in plain words.
        facts: that are shown.
        episodes: the likeliest first.
        said: their messages.

    Raises:
        ModelUnavailable: the model does not answer.
    """
    if own.gate == "none" or not episodes:
        return Admitted([(at, True) for at in range(len(episodes))])
    if own.gate == "batch":
        names = [f"e{at}" for at, _ in enumerate(episodes, 1)]
        told = zip(names, episodes, strict=True)
        rows = [{"id": name, "time": one.time, "title": one.summary} for name, one in told]
        return _by_call(
            llm.complete(GATE, {"question": question, "facts": _rows(facts), "episodes": rows}), names
        )
    return admitted(_by_words(question, facts, episodes, said))


def _rows(records: Records) -> list[dict[str, str | None]]:
    return [
        {"id": str(at), "time": one.time, "text": one.prose or one.summary}
        for at, one in enumerate(records, 1)
    ]


def _by_words(question: str, facts: Records, episodes: Records, said: Sequence[str]) -> Iterator[Probe]:
    """Episodes while they add a word of the question; with messages where these add one."""
    left = set(query_terms(question)).difference(*(terms_of(fact.summary) for fact in facts))
    for episode, messages in zip(episodes, said, strict=True):
        told = left.intersection(terms_of(f"{episode.summary}\n{episode.prose}"))
        more = left.intersection(terms_of(messages)) - told
        left -= told | more
        yield float(len(told | more)), bool(told or more), bool(more)


def _by_call(reply: Reply, names: Sequence[str]) -> Admitted:
    """What one call said; names that are made up are dropped."""
    if reply.data is None:
        return Admitted([(at, False) for at, _ in enumerate(names[:FALLBACK])], failure=reply.failure or "")
    whole = {*map(bare, reply.data["messages"])}
    chosen = dict.fromkeys(name for name in map(bare, reply.data["episodes"]) if name in names)
    stop = "done" if reply.data["sufficient"] else ""
    return Admitted([(names.index(name), name in whole) for name in chosen], stop=stop)
