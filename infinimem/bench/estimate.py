"""What a run will take, roughly, before it takes it: tokens by method and phase.

The sizes of turns and questions are known, the rest are the shapes of the prompts: figures below were read
off their templates, and models differ in how much they say.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from infinimem import tokens
from infinimem.bench.methods.spec import OWN, Spec
from infinimem.bench.model import Case
from infinimem.bench.spending import EMBEDDING
from infinimem.model import Usage
from infinimem.settings import AllmemSettings, InfiniSettings, ReaderSettings

_PROMPT = 350
"""Instructions of one call."""
_REPLY = 60
"""An answer or a verdict."""
_SUMMARY = 60
"""One document of a catalog: its id and summary."""
_TOPIC = 2000
"""Lines of a document, where nothing is known of it."""
_TOOLS, _RESULT, _ROUNDS = 600, 800, 4
"""Of the search agent: descriptions of its tools, what one round shows it, rounds of an ordinary question."""
_CATALOG, _OFFERED = 50, 200
_TEXTS = 256
"""That are embedded with one call."""
_PLANNED = 10
"""Units of which one is split, merged or updated."""


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

    def add(self, case: Case, asked: Iterable[tuple[Spec, Sequence[int], bool]]) -> None:
        """Count one case.

        Args:
            case: its turns are what is read.
            asked: for each method the sizes of the questions still to be asked, and whether its library is
                still to be made.
        """
        size = sum(tokens.estimate(f"{turn.speaker or ''}: {turn.text}") for turn in case.turns)
        made: set[str] = set()
        for spec, sizes, is_new in asked:
            self.cases += 1
            self.questions += len(sizes)
            if spec.way is not None and self.models.keeper:
                key = spec.library
                if spec.draws and is_new and key not in made:  # methods that are made alike share a library
                    made.add(key)
                    of_units = spec.way.strategy == "allmem"
                    made_by = units(size, len(case.turns), spec) if of_units else making(size, spec)
                    self._count(spec, "making", made_by)
                for _ in sizes:
                    self._count(spec, "reading", reading(size, spec))
            if spec.text in self.embeds:
                self._embed(spec, size, len(case.turns), sizes, is_new, made)
            if self.retrieval_only:
                continue
            for question in sizes:
                if self.models.answerer:
                    self._count(spec, "answering", self._answer(size, question, spec))
                if self.models.judge:
                    self._count(spec, "judging", Usage(2, 2 * (_PROMPT + question + 2 * _REPLY), 2 * _REPLY))

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
        return Usage(1, _PROMPT + question + 2 * shown, _REPLY)  # ids and times double what lines take

    def _count(self, spec: Spec, phase: str, usage: Usage) -> None:
        key = spec.text, phase
        self._rows[key] = self._rows.get(key, Usage()) + usage


def making(size: int, spec: Spec) -> Usage:
    """Of a library from turns of so many tokens: they are drawn from once, and each line is then read three
    times (grouped, routed, laid out) beside what stands where it goes."""
    defaults = InfiniSettings()
    given = spec.settings.get("infini", {})
    chunk = int(given.get("chunk_tokens", defaults.chunk_tokens))
    threshold = int(given.get("current_threshold", defaults.current_threshold))
    free = given.get("rewrite", defaults.rewrite) == "free"
    chunks = -(-size // chunk)
    flushes = -(-size // max(threshold, 1))
    plain = given.get("maintenance", defaults.maintenance) is False
    laid_out = 0 if plain else 2 * size + flushes * _TOPIC
    calls = chunks + flushes * (1 if plain else 6)
    return Usage(calls, calls * _PROMPT + 2 * size + laid_out, size + (size if free else size // 3))


def units(size: int, turns: int, spec: Spec) -> Usage:
    """Of a library of units, from turns of so many tokens together: each turn is described, then looked
    at beside its neighbours, and some are planned for."""
    near = int(spec.settings.get("allmem", {}).get("online_anchors", AllmemSettings.online_anchors))
    planned = -(-turns // _PLANNED)
    calls = 2 * turns + planned
    shown = 2 * size + turns * near * _SUMMARY + 2 * size // _PLANNED
    return Usage(calls, calls * _PROMPT + shown, calls * _REPLY)


def reading(size: int, spec: Spec) -> Usage:
    """Of the evidence for one question."""
    reader = OWN[spec.name].answered_by
    docs = size // _TOPIC + 1
    if reader in ("hybrid", "summary"):
        return Usage(1, _PROMPT + min(docs, _OFFERED) * _SUMMARY, _REPLY)
    if reader != "agent":
        return Usage()
    most = int(spec.settings.get("reader", {}).get("max_iterations", ReaderSettings.max_iterations))
    rounds = min(most, _ROUNDS)
    each = _PROMPT + _TOOLS + min(docs, _CATALOG) * _SUMMARY
    return Usage(rounds, rounds * each + _RESULT * rounds * (rounds - 1) // 2, rounds * 2 * _REPLY)
