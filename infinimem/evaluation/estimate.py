"""What a run will take, roughly, before it takes it: tokens by method and phase.

The sizes of turns and questions are known, the rest are the shapes of the prompts (infinimem/estimate.py),
and models differ in how much they say.
"""

from __future__ import annotations

from collections import Counter
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


@dataclass
class Estimate:
    """Sums up cases as they come.

    Args:
        paid: which of "keeper", "answerer" and "judge" take tokens.
        budget: tokens of evidence of an answer.
        retrieval_only: nothing is answered or judged.
        embeds: texts of the methods whose vectors take tokens.
        questions: still to be asked, over all methods.
        cases: still to be taken in, over all methods.
        usage: by method and phase: "making", "embedding", "reading", "answering" or "judging".
    """

    paid: Collection[str]
    budget: int
    retrieval_only: bool
    embeds: Collection[str] = ()
    questions: int = 0
    cases: int = 0
    usage: dict[tuple[str, str], Usage] = field(default_factory=dict)

    def add(
        self,
        case: Case,
        left: Iterable[tuple[Spec, Sequence[Question]]],
        taken_in: Collection[tuple[str, str]],
    ) -> None:
        """Count one case.

        Args:
            case: its turns are what is read.
            left: for each method the questions still to be asked.
            taken_in: the methods and cases whose libraries are made.
        """
        size = sum(tokens.estimate(f"{turn.speaker or ''}: {turn.text}") for turn in case.turns)
        made: set[str] = set()
        for spec, questions in left:
            is_new = (spec.text, case.name) not in taken_in
            self.cases += 1
            self.questions += len(questions)
            sizes = [tokens.estimate(question.text) for question in questions]
            if spec.way is not None:
                if spec.draws and "keeper" in self.paid and is_new and spec.library not in made:
                    made.add(spec.library)  # methods that are made alike share a library
                    self._count(spec, "making", making(size, len(case.turns), spec.parsed, spec.way.strategy))
                for _ in sizes if "answerer" in self.paid else ():
                    self._count(spec, "reading", reading(size, spec.way.answered_by, spec.parsed))
            if spec.text in self.embeds:
                self._embed(spec, size, len(case.turns), sizes, is_new, made)
            shown = {"full": size, "none": 0}.get(spec.name, min(size, self.budget))
            for question, length in zip(() if self.retrieval_only else questions, sizes, strict=False):
                if "answerer" in self.paid:
                    self._count(spec, "answering", answering(shown, length))
                if "judge" in self.paid:
                    self._count(spec, "judging", _judging(question, length))

    @property
    def total(self) -> Usage:
        return sum(self.usage.values(), Usage())

    def __str__(self) -> str:
        total = self.total
        if not total.calls:
            return "no tokens: no model is asked"
        phases: Counter[str] = Counter()
        for (_, phase), usage in self.usage.items():
            phases[phase] += usage.tokens_in + usage.tokens_out
        parts = ", ".join(f"{phase} {count:,}" for phase, count in phases.items())
        size = f"{total.tokens_in:,} tokens in and {total.tokens_out:,} out"
        return f"about {total.calls:,} calls, {size} ({parts})"

    def _embed(
        self, spec: Spec, size: int, turns: int, sizes: Sequence[int], is_new: bool, made: set[str]
    ) -> None:
        """Baselines share vectors, and make them at each start; a library keeps its own."""
        is_library = spec.way is not None
        key = f"{EMBEDDING} {spec.embedder}" + (f" {spec.library}" if is_library else "")
        if key not in made and (is_new or not is_library):
            made.add(key)
            times = 2 if is_library and spec.draws else 1  # what was drawn is about as long as what was said
            self._count(spec, EMBEDDING, Usage(-(-times * turns // _TEXTS), times * size, 0))
        self._count(spec, EMBEDDING, Usage(len(sizes), sum(sizes), 0))

    def _count(self, spec: Spec, phase: str, usage: Usage) -> None:
        key = spec.text, phase
        self.usage[key] = self.usage.get(key, Usage()) + usage


def _judging(question: Question, length: int) -> Usage:
    """Two rules are asked, or once for all items of a rubric, each of which has a verdict of its own."""
    if not question.rubric:
        return Usage(2, 2 * (PROMPT + length + 2 * REPLY), 2 * REPLY)
    items = sum(map(tokens.estimate, question.rubric))
    return Usage(1, PROMPT + length + items + REPLY, len(question.rubric) * REPLY)
