"""How many tokens a model will take, roughly, before it is asked.

Figures were read off the templates of prompts, and models differ in how much they say.
"""

from __future__ import annotations

from collections.abc import Iterable

from infinimem import tokens
from infinimem.model import Usage
from infinimem.settings import Settings
from infinimem.spec import PROMPT, REPLY, SUMMARY, TOPIC, spec_of
from infinimem.store.view import View

_TOOLS, _ROUND = 300, 768
"""Of the agent: descriptions of its tools, and what it is shown at first; an ordinary question takes two
requests, of which one is the answer."""
_TURN = 40  # tokens of a turn
_OFFERED, _SUMMARIES, _SEARCHES = 200, 50, 4
"""Documents of which a model is told to select, and to search; requests of a search that answers nothing."""


def for_turns(view: View, texts: Iterable[str] = (), anew: bool = False) -> Usage:
    """Return the usage of pending turns and `texts`; `anew`: of all that was ever recorded."""
    turns = view.entries("evidence") if anew else view.uncited()
    sizes = [tokens.estimate(text) for text in (*(place.text for place in turns), *texts)]
    return making(sum(sizes), len(sizes), view.settings, view.spec.name)


def tokens_a_turn(view: View) -> int:
    """Return what a strategy takes of each turn of a usual conversation, roughly."""
    return making(100 * _TURN, 100, view.settings, view.spec.name).tokens // 100


def for_question(view: View, question: str, reader: str) -> int:
    """Return tokens in and out for an answer, by a reader of that name."""
    size = sum(tokens.estimate(place.text) for place in view.entries("evidence"))
    shown = min(size, view.settings.reader.evidence_budget)
    return (answering(shown, tokens.estimate(question)) + reading(size, reader, view.settings)).tokens


def making(size: int, turns: int, settings: Settings, strategy: str) -> Usage:
    """Return the usage of what a strategy of this name derives from turns, `size` tokens together."""
    spec = spec_of(strategy)
    if not turns or not spec.estimate:
        return Usage()
    return Usage(*spec.estimate(size, turns, settings.of(spec.settings or object)))


def reading(size: int, reader: str | None, settings: Settings) -> Usage:
    """Return the usage of the evidence for one question; `size` is of all turns, None calls no model."""
    docs = size // TOPIC + 1
    if reader in ("hybrid", "summary"):
        return Usage(1, PROMPT + min(docs, _OFFERED) * SUMMARY, REPLY)
    if reader != "agent":
        return Usage()
    if settings.reader.agent == "paper":
        each = PROMPT + _TOOLS + min(docs, _SUMMARIES) * SUMMARY + _SEARCHES * _ROUND // 2
        return Usage(_SEARCHES, _SEARCHES * each, _SEARCHES * REPLY)
    return Usage(1, PROMPT + _TOOLS + 2 * min(size, _ROUND), REPLY)


def answering(shown: int, question: int) -> Usage:
    """Return the usage of one answer; ids and times double the tokens that the evidence takes."""
    return Usage(1, PROMPT + question + 2 * shown, REPLY)
