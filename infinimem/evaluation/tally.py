"""What a run found, read from its files and added up by method. Texts are not held, so that long runs fit."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from math import inf
from pathlib import Path
from typing import Any

from infinimem.errors import UsageError
from infinimem.evaluation.book import ingested, results
from infinimem.evaluation.methods.spec import OWN
from infinimem.evaluation.metrics.statistics import Difference, macro, mean, paired_differences, percentile
from infinimem.evaluation.model import Ingested
from infinimem.model import Usage

UNTIL, WORDS = "tokens to all", "tokens to words"
"""The scores that are no shares; missing where not all evidence, or words of the answer, were found."""
GRADES = ("judge strict", "judge lenient")
"""Of the judge; missing where its reply could not be read."""
RUBRIC = "judge rubric"
"""Its grade of an answer that has a rubric, instead of those."""
BASELINES = ("bm25", "dense")
"""Methods that others are compared with, question by question, beside the first of the run."""


@dataclass(frozen=True)
class Asked:
    """A Result without its texts.

    Args:
        answered: whether it had an answer.
        context: tokens of what was found.
        failed: as the Result's.
    """

    case: str
    question: str
    category: str
    counted: bool
    scores: Mapping[str, float]
    usage: Mapping[str, Usage]
    seconds: float
    answered: bool
    context: int
    failed: str | None = None


@dataclass
class Tally:
    """All that one method did.

    Args:
        name: of the method, as it was asked for.
        asked: its questions.
        ingested: its cases.
        unseen: turns that hold evidence, of each case, that nothing cites and no question was shown.
    """

    name: str
    asked: list[Asked] = field(default_factory=list)
    ingested: list[Ingested] = field(default_factory=list)
    unseen: dict[str, set[str]] = field(default_factory=dict)
    _differences: dict[str, Mapping[str, Difference]] = field(default_factory=dict)

    @property
    def base(self) -> str:
        """The name without settings."""
        return self.name.partition(":")[0]

    @cached_property
    def counted(self) -> list[Asked]:
        """The questions that the means over all categories take in."""
        return [item for item in self.asked if item.counted]

    @cached_property
    def categories(self) -> Mapping[str, list[Asked]]:
        """All questions by category."""
        found: defaultdict[str, list[Asked]] = defaultdict(list)
        for item in self.asked:
            found[item.category].append(item)
        return found

    def mean(self, measure: str, category: str | None = None) -> float | None:
        """The mean over questions, of one category or of all that count; None where no question has it."""
        values = self.values(measure, category)
        return mean(values) if values else None

    def values(self, measure: str, category: str | None = None) -> list[float]:
        """The scores of the questions that have it, of one category or of all that count."""
        asked = self.counted if category is None else self.categories.get(category, ())
        return [item.scores[measure] for item in asked if measure in item.scores]

    def macro(self, measure: str) -> float | None:
        """The mean of the means of the categories that count."""
        groups: defaultdict[str, list[float]] = defaultdict(list)
        for item in self.counted:
            if measure in item.scores:
                groups[item.category].append(item.scores[measure])
        return macro(groups) if groups else None

    def until_all(self, measure: str = UNTIL) -> list[float]:
        """Tokens until all evidence was read, or with `WORDS` all words of the answer, of each question with
        known evidence; endless if never."""
        return [
            item.scores.get(measure, inf)
            for item in self.counted
            if any(" in " in name for name in item.scores)
        ]

    def ungraded(self) -> int:
        """Answers for which a grade is missing."""
        return sum(
            item.answered and RUBRIC not in item.scores and any(grade not in item.scores for grade in GRADES)
            for item in self.asked
        )

    @property
    def grades(self) -> list[float]:
        """The judge's strict ones, or by rubric, of questions that count; an answer that failed has none."""
        asked = [item.scores for item in self.counted if not item.failed]
        return [scores[name] for scores in asked for name in (GRADES[0], RUBRIC) if name in scores]

    @property
    def failed(self) -> Mapping[str, int]:
        """Answers that the answerer failed to give, by what was wrong with its reply."""
        counts = Counter(item.failed for item in self.asked if item.failed)
        return dict(sorted(counts.items()))

    def differences(self, other: Tally) -> Mapping[str, Difference]:
        """To another method, by measure, over the questions that both answered."""
        if other.name not in self._differences:
            theirs = {(item.case, item.question): item.scores for item in other.counted}
            pairs: defaultdict[str, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
            for item in self.counted:
                known = theirs.get((item.case, item.question), {})
                for measure in item.scores.keys() & known.keys() - {UNTIL, WORDS}:
                    pairs[measure][0].append(item.scores[measure])
                    pairs[measure][1].append(known[measure])
            self._differences[other.name] = paired_differences(pairs)
        return self._differences[other.name]

    @cached_property
    def construction(self) -> dict[str, Usage]:
        """What writing took, by phase, over all cases."""
        return _added(item.usage for item in self.ingested)

    @cached_property
    def querying(self) -> dict[str, Usage]:
        """What finding and answering took, by phase, over all questions."""
        return _added(item.usage for item in self.asked)

    def seconds(self, share: float) -> float:
        """Of a question: this share of them took no longer."""
        return percentile([item.seconds for item in self.asked], share)

    @cached_property
    def sizes(self) -> list[int]:
        """Tokens of the documents that were made, over all cases."""
        return sorted(size for item in self.ingested for size in item.sizes)


@dataclass(frozen=True)
class Tallies:
    """A run.

    Args:
        config: what was asked for.
        methods: in the order in which they were asked for.
    """

    config: Mapping[str, Any]
    methods: tuple[Tally, ...]

    @cached_property
    def measures(self) -> list[str]:
        """The names of all scores but those that are no shares, in the order in which they come."""
        names = {name: None for method in self.methods for item in method.asked for name in item.scores}
        return [name for name in names if name not in (UNTIL, WORDS)]

    @cached_property
    def categories(self) -> list[tuple[str, bool]]:
        """Every category and whether it counts; those that do first, then by name."""
        found = {item.category: item.counted for method in self.methods for item in method.asked}
        return sorted(found.items(), key=lambda pair: (not pair[1], pair[0]))

    @cached_property
    def baselines(self) -> list[Tally]:
        """The methods of this run that others are compared with: the first, then the usual ones, then our own
        that make nothing of what was said."""
        usual = [method for name in BASELINES for method in self.methods if method.base == name]
        usual += [method for method in self.methods if method.base in OWN and not OWN[method.base].draws]
        return [*self.methods[:1], *(method for method in usual if method is not self.methods[0])]


def read(folder: Path) -> Tallies:
    """Read a run's files.

    Args:
        folder: with config.json, raw/ and cases/.

    Raises:
        UsageError: it is no run's folder, or nothing was asked yet.
    """
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{folder} holds no run that can be read: name the folder of one") from error
    if not isinstance(config, dict):
        raise UsageError(f"{folder} holds no run that can be read: its config.json is no object")
    tallies = {str(name): Tally(str(name)) for name in config.get("methods", ())}
    for made in chain.from_iterable(map(ingested, sorted((folder / "cases").glob("*.jsonl")))):
        tally = tallies.setdefault(made.method, Tally(made.method))
        tally.ingested.append(made)
        tally.unseen[made.case] = set(made.written.get("uncited", ()))
    seen = set()
    for result in chain.from_iterable(map(results, sorted((folder / "raw").glob("*.jsonl")))):
        key = (result.method, result.case, result.question)
        if key not in seen:
            seen.add(key)
            asked = Asked(
                result.case,
                result.question,
                result.category,
                result.counted,
                result.scores,
                result.usage,
                result.seconds,
                result.answer is not None,
                sum(item.tokens for item in result.found),
                result.failed,
            )
            tally = tallies.setdefault(result.method, Tally(result.method))
            tally.asked.append(asked)
            tally.unseen.get(result.case, set()).difference_update(*(item.turns for item in result.found))
    if not seen:
        raise UsageError(f"{folder} holds no results yet: start the run first")
    methods = tuple(tally for tally in tallies.values() if tally.asked)
    return Tallies(config, methods)


def _added(usages: Iterable[Mapping[str, Usage]]) -> dict[str, Usage]:
    found: dict[str, Usage] = {}
    for usage in usages:
        for phase, spent in usage.items():
            found[phase] = found.get(phase, Usage()) + spent
    return found
