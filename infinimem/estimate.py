"""How many tokens a model will take, roughly, before it is asked.

The sizes of turns and questions are known, the rest are the shapes of the prompts: figures below were read
off their templates, and models differ in how much they say.
"""

from __future__ import annotations

from collections.abc import Iterable

from infinimem import tokens
from infinimem.model import Usage
from infinimem.settings import Settings
from infinimem.store.view import View

PROMPT = 350
"""Instructions of one call."""
REPLY = 60
"""An answer or a verdict."""
_SUMMARY = 60
"""One document of a catalog: its id and summary."""
_TOPIC = 2000
"""Lines of a document, where nothing is known of it."""
_TOOLS, _RESULT, _ROUNDS = 600, 800, 4
"""Of the search agent: descriptions of its tools, what one round shows it, rounds of an ordinary question."""
_CATALOG, _OFFERED = 50, 200
_PLANNED = 10
"""Units of which one is split, merged or updated."""


def for_turns(view: View, texts: Iterable[str] = (), anew: bool = False) -> int:
    """Tokens in and out for turns that are pending, and for more.

    Args:
        view: the library.
        texts: of turns that are to be observed.
        anew: as if all turns that were ever recorded were pending.
    """
    said = view.entries("evidence") if anew else view.uncited()
    sizes = [tokens.estimate(text) for text in (*(place.text for place in said), *texts)]
    return _sum(making(sum(sizes), len(sizes), view.settings, view.spec.name))


def for_question(view: View, question: str, reader: str) -> int:
    """Tokens in and out for an answer, by a reader of that name."""
    size = sum(tokens.estimate(place.text) for place in view.entries("evidence"))
    shown = min(size, view.settings.reader.evidence_budget)
    return _sum(answering(shown, tokens.estimate(question)) + reading(size, reader, view.settings))


def _sum(usage: Usage) -> int:
    return usage.tokens_in + usage.tokens_out


def making(size: int, turns: int, settings: Settings, strategy: str) -> Usage:
    """Of what a strategy derives from turns, drawn from and sorted.

    Args:
        size: tokens of the turns together.
        turns: how many they are.
        settings: of the library.
        strategy: its name.
    """
    if not turns:
        return Usage()
    return _units(size, turns, settings) if strategy == "allmem" else _topics(size, settings)


def _topics(size: int, settings: Settings) -> Usage:
    """Turns are drawn from once; each line is then read three times (grouped, routed, laid out) beside what
    stands where it goes."""
    given = settings.infini
    chunks = -(-size // max(given.chunk_tokens, 1))
    flushes = -(-size // max(given.current_threshold, 1))
    laid_out = 2 * size + flushes * _TOPIC if given.maintenance else 0
    calls = chunks + flushes * (6 if given.maintenance else 1)
    return Usage(calls, calls * PROMPT + 2 * size + laid_out, size + size // 3)


def _units(size: int, turns: int, settings: Settings) -> Usage:
    """Each turn is described, then looked at beside its neighbours, and some are planned for."""
    planned = -(-turns // _PLANNED)
    calls = 2 * turns + planned
    shown = 2 * size + turns * settings.allmem.online_anchors * _SUMMARY + 2 * size // _PLANNED
    return Usage(calls, calls * PROMPT + shown, calls * REPLY)


def reading(size: int, reader: str | None, settings: Settings) -> Usage:
    """Of the evidence for one question.

    Args:
        size: tokens of all that was said.
        reader: its name; None for one that calls no model.
        settings: of the library.
    """
    docs = size // _TOPIC + 1
    if reader in ("hybrid", "summary"):
        return Usage(1, PROMPT + min(docs, _OFFERED) * _SUMMARY, REPLY)
    if reader != "agent":
        return Usage()
    rounds = min(settings.reader.max_iterations, _ROUNDS)
    each = PROMPT + _TOOLS + min(docs, _CATALOG) * _SUMMARY
    return Usage(rounds, rounds * each + _RESULT * rounds * (rounds - 1) // 2, rounds * 2 * REPLY)


def answering(shown: int, question: int) -> Usage:
    """Of one answer.

    Args:
        shown: tokens of the evidence; ids and times double what its lines take.
        question: tokens of the question.
    """
    return Usage(1, PROMPT + question + 2 * shown, REPLY)
