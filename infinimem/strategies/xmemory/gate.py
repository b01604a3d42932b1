"""Stage II: which episodes a question is shown beside facts, and which of them with their messages.

Source: xMemory, section 3.3; where the text gives no number, the values of the published code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from infinimem.llm.base import LLM, Reply
from infinimem.strategies.records.asking import bare
from infinimem.strategies.records.record import Record
from infinimem.strategies.xmemory.spec import XmemorySettings
from infinimem.strategies.xmemory.tasks import GATE, GUESS
from infinimem.terms import query_terms
from infinimem.terms import tokens as terms_of

EARLY = 3
"""Probes of which none may fail; of all of them one may."""
FALLBACK = 3
"""Episodes that are shown where a model's choice could not be read."""

_ANSWER = re.compile(r'"answer"\s*:\s*"(.*)"', re.DOTALL)

Records = Sequence[Record]
Probe = tuple[float, bool, bool]
"""What an episode would add: its gain, whether it is shown for that, and whether its messages are."""


class Admitted(NamedTuple):
    """What is shown, and why.

    Args:
        shown: episodes by their places, each with whether its messages are shown too.
        gains: of the episodes that were probed, in order.
        stop: why no more were.
        failure: why another gate decided than the one that was asked for.
        before: H without any episode, where it is known.
    """

    shown: Sequence[tuple[int, bool]]
    gains: Sequence[float] = ()
    stop: str = ""
    failure: str = ""
    before: float | None = None


def uncertainty(reply: Reply) -> float | None:
    """H, the mean of -log p over the tokens of an answer; None where the model does not tell them."""
    text = "".join(token for token, _ in reply.logprobs)
    answer = _ANSWER.search(text)
    start, end = answer.span(1) if answer else (0, len(text))
    losses, at = list[float](), 0
    for token, logprob in reply.logprobs:
        if at < end and at + len(token) > start:
            losses.append(-logprob)
        at += len(token)
    return sum(losses) / len(losses) if losses else None


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
        llm: asked by the gates `batch` and `loss`.
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
    asked, failure = {"question": question, "facts": _rows(facts)}, ""
    if own.gate == "batch":
        names = [f"e{at}" for at, _ in enumerate(episodes, 1)]
        told = zip(names, episodes, strict=True)
        rows = [{"id": name, "time": one.time, "title": one.summary} for name, one in told]
        return _by_call(llm.complete(GATE, {**asked, "episodes": rows}), names)
    if own.gate == "loss":
        before = uncertainty(llm.complete(GUESS, {**asked, "episodes": []}))
        if before is not None:
            replies = (llm.complete(GUESS, {**asked, "episodes": _rows([one])}) for one in episodes)
            return admitted(_by_loss(own, before, replies))._replace(before=round(before, 6))
        failure = "the model tells no log probabilities"
    return admitted(_by_words(question, facts, episodes, said))._replace(failure=failure)


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


def _by_loss(own: XmemorySettings, before: float, replies: Iterable[Reply]) -> Iterator[Probe]:
    """IG(e) = H(facts) - H(facts + e), each episode by itself."""
    for reply in replies:
        after = uncertainty(reply)
        gain = before - after if after is not None else 0.0
        yield gain, gain > -own.loss_max, gain > own.gain_messages


def _by_call(reply: Reply, names: Sequence[str]) -> Admitted:
    """What one call said; names that are made up are dropped."""
    if reply.data is None:
        return Admitted([(at, False) for at, _ in enumerate(names[:FALLBACK])], failure=reply.failure or "")
    whole = {*map(bare, reply.data["messages"])}
    chosen = dict.fromkeys(name for name in map(bare, reply.data["episodes"]) if name in names)
    stop = "done" if reply.data["sufficient"] else ""
    return Admitted([(names.index(name), name in whole) for name in chosen], stop=stop)
