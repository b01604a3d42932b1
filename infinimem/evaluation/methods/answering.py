"""What all methods share: how what was found is told, and how it becomes an answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from infinimem import answer as answering
from infinimem import tokens
from infinimem.evaluation.methods.embedding import Embedders
from infinimem.evaluation.model import Case, Drawn, Found, Question
from infinimem.evaluation.spending import Spending
from infinimem.llm.base import LLM, Reply, Task, Wrapper
from infinimem.model import Evidence, Retrieved
from infinimem.strategies.readers.collect import Search

ALL = 1 << 30
"""Tokens: more than any history has."""


@dataclass(frozen=True)
class Means:
    """What methods work with.

    Args:
        work: folder of the libraries that are made.
        keeper: the model that keeps memories.
        answerer: the model that reads them and answers, for all methods the same.
        judge: the model that grades.
        embedders: connects to them.
        spending: of the run.
    """

    work: Path
    keeper: LLM
    answerer: LLM
    judge: LLM
    embedders: Embedders
    spending: Spending


def found_of(items: Iterable[Retrieved], turn_of: Mapping[int, str]) -> tuple[Found, ...]:
    """Pieces of evidence as they are scored: by the turns that they hold or cite."""
    return tuple(
        Found(
            item.text,
            tuple(dict.fromkeys(turn_of[seq] for seq in item.origin if seq in turn_of)),
            tokens.count(item.text),
        )
        for item in items
    )


def drawn(
    llm: LLM,
    question: Question,
    now: str,
    evidence: Evidence,
    turn_of: Mapping[int, str],
    budget: int,
    search: Search | None = None,
) -> Drawn:
    """An answer from evidence.

    Args:
        llm: the answerer.
        question: what is asked.
        now: the date of the question.
        evidence: best first.
        turn_of: the turn's id of each seq.
        budget: tokens of evidence that are shown.
        search: shows the answerer more where it asks for it.
    """
    heard = _Heard(llm)
    answered = answering.answer(heard, question.text, evidence, now, budget, search)
    cited = {"cited": [citation.text for citation in answered.citations]}
    steps = (*map(asdict, answered.evidence.trace), cited)
    return Drawn(found_of(answered.evidence.items, turn_of), answered.text, steps, heard.failed)


def failure_of(reply: Reply) -> str | None:
    """Why a reply to the task `answer` is no answer; None where it is one."""
    if reply.data is None:
        return reply.failure or "EMPTY"
    return None if str(reply.data["answer"]).strip() else "EMPTY"


class _Heard(Wrapper):
    """The answerer, heard out: where its reply is unusable, `answer` quotes a line, and that may be right."""

    failed: str | None = None

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        """See `LLM.complete`."""
        reply = self._llm.complete(task, variables)
        self.failed = failure_of(reply)
        return reply


def now_of(case: Case, question: Question) -> str:
    """The date of a question; where it has none, that of the last turn."""
    times = (turn.time for turn in reversed(case.turns) if turn.time)
    return (question.asked or next(times, ""))[:10]
