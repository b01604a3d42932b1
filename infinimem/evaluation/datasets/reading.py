"""What data sets share: records of official files, turns, and measures of rankings and answers."""

from __future__ import annotations

import csv
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from infinimem.errors import UsageError
from infinimem.evaluation import metrics
from infinimem.evaluation.model import Case, Found, Question, Retrieval
from infinimem.importers.exports import FORMATS
from infinimem.importers.fields import Json
from infinimem.importers.read import keyed
from infinimem.importers.reading import opened, records
from infinimem.llm.offline.tell import says_nothing
from infinimem.model import Turn
from infinimem.terms import STOP_WORDS

TOLD: Mapping[str, Mapping[str, Any]] = tomllib.loads(
    files(__package__).joinpath("sources.toml").read_text("utf-8")
)
"""What data sets tell of themselves by a word: how it is scored, and judged."""


def entries(path: Path, fields: Collection[str] = ()) -> Iterator[Json]:
    """Yield the records of a JSON list or of JSON lines, plain or packed (.gz, .xz), of a parquet file or of
    CSV, one in memory at a time.

    A UsageError or ValueError if the file cannot be read, or a record lacks one of the `fields`.
    """
    count = 0
    for record in {".parquet": _parquet, ".csv": _csv}.get(path.suffix, _json)(path):
        count += 1
        is_object = isinstance(record, dict)
        missing = [name for name in fields if name not in record] if is_object else []
        if missing or not is_object:
            why = f"it has no {missing[0]!r}" if missing else "it is no object"
            raise ValueError(f"record {count} of {path.name}: {why}")
        yield record
    if not count:
        raise ValueError(f"{path.name} holds no record")


def _json(path: Path) -> Iterator[Any]:
    with opened(path) as sources:
        for source in sources:
            yield from records(source, path.name)


def _csv(path: Path) -> Iterator[Any]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def _parquet(path: Path) -> Iterator[Any]:
    reader = metrics.package("pyarrow.parquet").ParquetFile
    try:
        for batch in reader(path).iter_batches(1):
            yield from batch.to_pylist()
    except (OSError, ValueError) as error:  # pyarrow's own are of these
        raise UsageError(f"{path.name} cannot be read as parquet: {str(error).splitlines()[0]}") from error


def files_of(path: Path, *names: str) -> list[Path]:
    """Return the one file for each pattern, in a folder or beside a file that is named.

    UsageError if one is missing."""
    folder = path if path.is_dir() else path.parent
    known = [next(iter(sorted(folder.glob(name))), None) for name in names]
    if missing := [name for name, file in zip(names, known, strict=True) if file is None]:
        raise UsageError(f"{path} has no {missing[0]} beside it: give the folder of the official files")
    return [file for file in known if file]


def turns(found: Iterable[Turn], path: Path) -> tuple[Turn, ...]:
    """Return a case's turns under the ids that an imported library carries, or numbered."""
    return tuple(
        turn if turn.turn is not None else replace(turn, turn=str(number))
        for number, turn in enumerate(keyed(iter(found), path, Counter()), 1)
    )


def history(kind: str, record: Json, name: str, path: Path, lacks: str) -> tuple[Turn, ...]:
    """Return the turns of a record as it would be imported; ValueError if it is of another shape."""
    if not FORMATS[kind].matches(record):
        raise ValueError(f"{name}: {lacks}")
    return turns(FORMATS[kind].turns(record, name, Counter()), path)


def evidence(gold: Collection[str], said: Iterable[Turn]) -> dict[str, Any]:
    """Return the fields of a question that name its evidence; ids that name no turn are dropped."""
    known = {turn.turn: turn.session for turn in said if turn.turn in gold}
    sessions = frozenset(session for session in known.values() if session)
    return {"turns": frozenset(known), "sessions": sessions, "scored": bool(known)}


def as_text(value: Any) -> str:
    """An expected answer: some files hold numbers and booleans."""
    return " ".join(str(value).split())


# ── measures ────────────────────────────────────────────────────────────────────────────────────


def by_turn(*budgets: int) -> Retrieval:
    """Measures of the turns that were found, by rank and as they are read; none without evidence.

    "tokens to words" and "blocks to words": what is read until each telling word of the expected answer was
    seen; of the first pieces the shares that hold one of them, two, and more. Source: xMemory (arXiv
    2602.02007), section 5.2 (evidence density and coverage).
    """

    def measure(case: Case, question: Question, found: Sequence[Found]) -> dict[str, float]:
        if not question.scored:
            return {}
        scores = metrics.measures([turn for item in found for turn in item.turns], question.turns)
        scores |= _read_within(found, question.turns, budgets)
        words = {word for answer in question.expected[:1] for word in metrics.stems(answer)}
        telling = words.difference(*(metrics.stems(word) for word in STOP_WORDS))
        if not telling:
            return scores
        hits = [telling.intersection(metrics.stems(item.text)) for item in found]
        tokens = [item.tokens for item in found]
        for unit, sizes in (("tokens", tokens), ("blocks", [1] * len(found))):
            needed = metrics.tokens_until(zip(hits, sizes, strict=True), telling)
            scores |= {} if needed is None else {f"{unit} to words": float(needed)}
        counts = Counter(min(len(words), len(metrics.HITS)) for words in hits[: metrics.FIRST])
        return scores | {name: counts[at] / max(counts.total(), 1) for at, name in enumerate(metrics.HITS, 1)}

    return measure


def by_session(case: Case, question: Question, found: Sequence[Found]) -> dict[str, float]:
    """Return measures of a ranking; none for questions about what was never said.

    "R@k" and so on: sessions, whoever spoke, gold as the file names it. "own R@k": sessions as LongMemEval's
    own scorer sees them: what the user said, gold only with a label on it; "own turn R@k": turns likewise.
    "turns in 1024" and so on: of all labelled turns, how many are read.
    """
    if not question.answerable or not question.sessions:
        return {}
    turn_of = {turn.turn: turn for turn in case.turns}
    ranked = [turn_of[name] for item in found for name in item.turns if name in turn_of]
    scores = metrics.measures([turn.session for turn in ranked], question.sessions)
    if question.scored:
        users = [turn for turn in ranked if turn.role == "user"]
        gold = frozenset(name for name in question.turns if turn_of[name].role == "user")
        sessions = frozenset(turn_of[name].session for name in gold)
        scores |= metrics.measures([turn.session for turn in users], sessions, label="own ")
        scores |= metrics.measures([turn.turn for turn in users], gold, label="own turn ")
    if question.turns:
        scores |= _read_within(found, question.turns, (1024, 2048, 4096), "turns")
    return scores


def _read_within(
    found: Sequence[Found], gold: frozenset[str], budgets: Iterable[int], label: str = "R"
) -> dict[str, float]:
    """Measures of what a reader has read: "R in 512", …, and "tokens to all" where all of `gold` is found."""
    pieces = [(item.turns, item.tokens) for item in found]
    scores = {f"{label} in {budget}": metrics.within(pieces, gold, budget) for budget in budgets}
    needed = metrics.tokens_until(pieces, gold)
    return scores if needed is None else {**scores, "tokens to all": float(needed)}


def by_words(
    question: Question, answer: str, f1: Callable[[str, str], float] = metrics.token_f1
) -> dict[str, float]:
    """Measures of an answer's words; of a question about what was never said, whether the answer says so."""
    if not question.answerable:
        return {"F1": float(says_nothing(answer))}
    measures = {"F1": f1, "BLEU-1": metrics.bleu1, "ROUGE-L": metrics.rouge_l}
    return {name: metrics.best(of, answer, question.expected) for name, of in measures.items()}


def by_choice(question: Question, answer: str) -> Mapping[str, float]:
    """Whether the answer names the letter that comes first in `expected`, or repeats its choice."""
    named = re.match(r"\W*([a-z])(?:[).:]|\W*$)", answer.lower()) or re.search(r"\(([a-z])\)", answer.lower())
    letter = named[1] if named else ""
    return {"choice": float(letter == question.expected[0] or metrics.holds(answer, question.expected[1:]))}


def unscored(*_: object) -> dict[str, float]:
    """Nothing: the data set names no evidence, or the measure is a judge's, or one of the ranking alone."""
    return {}
