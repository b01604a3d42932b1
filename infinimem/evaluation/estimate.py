"""What a run will take, roughly, before it takes it: tokens by method and phase.

The sizes of turns and questions are known, the rest are the shapes of the prompts: figures below were read
off their templates, and models differ in how much they say.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from infinimem import tokens
from infinimem.estimate import answering, making, reading
from infinimem.evaluation.methods.spec import Spec
from infinimem.evaluation.model import Case, Question
from infinimem.evaluation.spending import EMBEDDING
from infinimem.model import Usage
from infinimem.spec import PROMPT, REPLY

_TEXTS = 256
"""That are embedded with one call."""


@dataclass(frozen=True)
class Row:
    """One phase of one method: "making", "embedding", "reading", "answering" or "judging"."""

    method: str
    phase: str
    usage: Usage


@dataclass(frozen=True)
class Models:
    """Which models are real: an offline one takes no tokens."""

    keeper: bool
    answerer: bool
    judge: bool


@dataclass
class Estimate:
    """Sums up cases as they come.

    Args:
        models: which of them are real.
        budget: tokens of evidence of an answer.
        retrieval_only: nothing is answered or judged.
        embeds: texts of the methods whose vectors take tokens.
    """

    models: Models
    budget: int
    retrieval_only: bool
    embeds: Collection[str] = ()
    questions: int = 0
    """Still to be asked, over all methods."""
    cases: int = 0
    """Still to be taken in, over all methods."""
    _rows: dict[tuple[str, str], Usage] = field(default_factory=dict)

    def add(self, case: Case, asked: Iterable[tuple[Spec, Sequence[Question], bool]]) -> None:
        """Count one case.

        Args:
            case: its turns are what is read.
            asked: for each method the questions still to be asked, and whether its library is still to be
                made.
        """
        size = sum(tokens.estimate(f"{turn.speaker or ''}: {turn.text}") for turn in case.turns)
        made: set[str] = set()
        for spec, questions, is_new in asked:
            self.cases += 1
            self.questions += len(questions)
            sizes = [tokens.estimate(question.text) for question in questions]
            if spec.way is not None:
                key = spec.library
                is_made = not is_new or key in made  # methods that are made alike share a library
                if spec.draws and self.models.keeper and not is_made:
                    made.add(key)
                    self._count(spec, "making", making(size, len(case.turns), spec.parsed, spec.way.strategy))
                for _ in sizes if self.models.answerer else ():
                    self._count(spec, "reading", reading(size, spec.way.answered_by, spec.parsed))
            if spec.text in self.embeds:
                self._embed(spec, size, len(case.turns), sizes, is_new, made)
            if self.retrieval_only:
                continue
            for question, length in zip(questions, sizes, strict=True):
                if self.models.answerer:
                    self._count(spec, "answering", self._answer(size, length, spec))
                if self.models.judge:
                    self._count(spec, "judging", _judging(question, length))

    @property
    def rows(self) -> list[Row]:
        """By method and phase."""
        return [Row(method, phase, usage) for (method, phase), usage in self._rows.items()]

    @property
    def total(self) -> Usage:
        return sum(self._rows.values(), Usage())

    def __str__(self) -> str:
        total = self.total
        if not total.calls:
            return "no tokens: no model is asked"
        phases: dict[str, int] = {}
        for row in self.rows:
            phases[row.phase] = phases.get(row.phase, 0) + row.usage.tokens_in + row.usage.tokens_out
        parts = ", ".join(f"{phase} {count:,}" for phase, count in phases.items())
        size = f"{total.tokens_in:,} tokens in and {total.tokens_out:,} out"
        return f"about {total.calls:,} calls, {size} ({parts})"

    def _embed(
        self, spec: Spec, size: int, turns: int, sizes: Sequence[int], is_new: bool, made: set[str]
    ) -> None:
        """Baselines share vectors, and make them at each start; a library keeps its own."""
        is_library = spec.way is not None
        key = f"{spec.embedder} {spec.library}" if is_library else f"{spec.embedder}"
        if f"{EMBEDDING} {key}" not in made and (is_new or not is_library):
            made.add(f"{EMBEDDING} {key}")
            times = 2 if is_library and spec.draws else 1  # what was drawn is about as long as what was said
            self._count(spec, EMBEDDING, Usage(-(-times * turns // _TEXTS), times * size, 0))
        self._count(spec, EMBEDDING, Usage(len(sizes), sum(sizes), 0))

    def _answer(self, size: int, question: int, spec: Spec) -> Usage:
        shown = size if spec.name == "full" else 0 if spec.name == "none" else min(size, self.budget)
        return answering(shown, question)

    def _count(self, spec: Spec, phase: str, usage: Usage) -> None:
        key = spec.text, phase
        self._rows[key] = self._rows.get(key, Usage()) + usage


def _judging(question: Question, length: int) -> Usage:
    """Two rules are asked, or once for all items of a rubric, each of which has a verdict of its own."""
    if not question.rubric:
        return Usage(2, 2 * (PROMPT + length + 2 * REPLY), 2 * REPLY)
    items = sum(map(tokens.estimate, question.rubric))
    return Usage(1, PROMPT + length + items + REPLY, len(question.rubric) * REPLY)
