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


class Episode(NamedTuple):
    """An episode that may be shown: its name, title and time, what it tells, and its messages."""

    id: str
    title: str
    time: str | None
    told: str
    messages: str


Facts = Sequence[Record]


class Probe(NamedTuple):
    """What an episode would add: its gain, and whether it or even its messages are shown for it."""

    gain: float
    shown: bool
    messages: bool


class Admitted(NamedTuple):
    """What is shown, and why.

    Args:
        shown: episodes by their places, each with whether its messages are shown too.
        gains: of the episodes that were probed, in order.
        stop: why no more were.
        failure: why another gate decided than the one that was asked for.
        before: H without any episode, where it is known.
    """

    shown: list[tuple[int, bool]]
    gains: list[float]
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
    """Episodes, the likeliest first, until one of the first three adds too little, or a second one does.

    Args:
        probes: of the episodes; none is made that is not needed.

    Returns:
        At least the first.
    """
    found = Admitted([], [])
    failures, stop = 0, ""
    for number, probe in enumerate(probes, 1):
        found.gains.append(round(probe.gain, 6))
        if probe.shown:
            found.shown.append((number - 1, probe.messages))
            continue
        failures += 1
        if number <= EARLY or failures > 1:
            stop = f"probe {number} adds too little"
            break
    if found.gains and not found.shown:
        found.shown.append((0, False))
    return found._replace(stop=stop)


def choose(
    llm: LLM, own: XmemorySettings, question: str, facts: Facts, episodes: Sequence[Episode]
) -> Admitted:
    """The episodes that are shown, by the gate that the settings name.

    Args:
        llm: asked by the gates `batch` and `loss`.
        own: the settings.
        question: in plain words.
        facts: that are shown.
        episodes: the likeliest first.

    Raises:
        ModelUnavailable: the model does not answer.
    """
    if own.gate == "none":
        return Admitted([(at, True) for at in range(len(episodes))], [])
    if own.gate == "batch":
        return _by_call(llm, question, facts, episodes)
    if own.gate == "loss" and episodes:
        before = uncertainty(_guess(llm, question, facts, ()))
        if before is not None:
            found = admitted(_by_loss(llm, own, question, facts, episodes, before))
            return found._replace(before=round(before, 6))
        return by_words(question, facts, episodes)._replace(failure="the model tells no log probabilities")
    return by_words(question, facts, episodes)


def by_words(question: str, facts: Facts, episodes: Sequence[Episode]) -> Admitted:
    """Episodes while they add a word of the question; with messages where these add one. Asks no model."""
    return admitted(_by_words(question, facts, episodes))


def _by_words(question: str, facts: Facts, episodes: Sequence[Episode]) -> Iterator[Probe]:
    left = set(query_terms(question)).difference(*(terms_of(fact.summary) for fact in facts))
    for episode in episodes:
        told = left.intersection(terms_of(f"{episode.title}\n{episode.told}"))
        said = left.intersection(terms_of(episode.messages)) - told
        left -= told | said
        yield Probe(float(len(told | said)), bool(told or said), bool(said))


def _by_loss(
    llm: LLM,
    own: XmemorySettings,
    question: str,
    facts: Facts,
    episodes: Sequence[Episode],
    before: float,
) -> Iterator[Probe]:
    """IG(e) = H(facts) - H(facts + e), each episode by itself."""
    for episode in episodes:
        after = uncertainty(_guess(llm, question, facts, (episode,)))
        gain = before - after if after is not None else 0.0
        yield Probe(gain, gain > -own.loss_max, gain > own.gain_messages)


def _guess(llm: LLM, question: str, facts: Facts, episodes: Sequence[Episode]) -> Reply:
    rows = [{"id": one.id, "time": one.time, "text": one.told or one.title} for one in episodes]
    return llm.complete(GUESS, {"question": question, "facts": _rows(facts), "episodes": rows})


def _rows(facts: Facts) -> list[dict[str, str | None]]:
    return [{"id": str(at), "time": one.time, "text": one.summary} for at, one in enumerate(facts, 1)]


def _by_call(llm: LLM, question: str, facts: Facts, episodes: Sequence[Episode]) -> Admitted:
    """One call says which; names that are made up are dropped."""
    if not episodes:
        return Admitted([], [])
    names = {f"e{at}": at - 1 for at in range(1, len(episodes) + 1)}
    offered = [
        {"id": name, "time": episodes[at].time, "title": episodes[at].title} for name, at in names.items()
    ]
    asked = {"question": question, "facts": _rows(facts), "episodes": offered}
    reply = llm.complete(GATE, asked)
    if reply.data is None:
        return Admitted(
            [(at, False) for at in range(min(FALLBACK, len(episodes)))], [], failure=reply.failure or ""
        )
    whole = {names[name] for name in map(bare, reply.data["messages"]) if name in names}
    chosen = [names[name] for name in map(bare, reply.data["episodes"]) if name in names]
    shown = [(at, at in whole) for at in dict.fromkeys(chosen)]
    return Admitted(shown, [], "done" if reply.data["sufficient"] else "")
