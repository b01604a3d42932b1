"""Data sets whose files importers read, too: LoCoMo, LongMemEval and FactConsolidation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.resources import files
from math import inf
from pathlib import Path

from infinimem.errors import UsageError
from infinimem.evaluation import metrics
from infinimem.evaluation.datasets.reading import (
    Quota,
    as_text,
    by_turn,
    by_words,
    entries,
    file_name,
    read_within,
    turns,
)
from infinimem.evaluation.model import Case, Found, Question
from infinimem.importers.exports import LOCOMO, LONGMEMEVAL, MEMORYAGENTBENCH
from infinimem.importers.fields import Format, Json, moment, rows
from infinimem.model import Turn


class _Exported:
    """A data set whose records, a history and its questions each, an importer reads."""

    importer: Format
    what: str
    fields: Collection[str]
    lacks: str
    """What a record is without that has the fields and is none."""

    def cases(self, path: Path, limit: int | None = None) -> Iterator[Case]:
        """Yield a case for each record; one that no question is taken from is left out."""
        quota = Quota(limit)
        for record in entries(path, self.fields, self.what):
            if not self.importer.matches(record):
                raise UsageError(f"{path.name} is not as {self.what} has it: {self.lacks}")
            (name,) = self.importer.names(record, path.stem)
            said = turns(self.importer.turns(record, path.stem, Counter()), path)
            if questions := quota.take(self.questions(record, name, said, path)):
                yield Case(file_name(name), said, questions)

    def questions(self, record: Json, name: str, said: Sequence[Turn], path: Path) -> Iterator[Question]:
        """Yield the questions of a record; UsageError if they are not as the official file has them."""
        raise NotImplementedError


# ── LoCoMo ──────────────────────────────────────────────────────────────────────────────────────

CATEGORIES: Mapping[int, str] = {
    1: "multi-hop",
    2: "temporal",
    3: "open-domain",
    4: "single-hop",
    5: "adversarial",
}
ADVERSARIAL = CATEGORIES[5]
ANSWERED = "adversarial, answered"
"""Questions of the fifth category that the conversation does answer: locomo_answered.txt lists their ids."""
NOT_MENTIONED = "Not mentioned in the conversation"
"""What is expected of a question about something that was never said."""

_CATEGORY = {str(number): name for number, name in CATEGORIES.items()}
_ID = re.compile(r"D(\d+):(\d+)")
_BETWEEN = re.compile(r",\s*(?:and\s+)?(?!\s*\d{4}\b)")
"""The parts of a list; a year belongs to its day."""


def gold_turns(evidence: Iterable[object], known: Collection[str]) -> list[str]:
    """The turn ids of a question: glued ones taken apart ("D8:6; D9:17"), those that name no turn dropped."""
    found = _ID.findall(" ".join(str(item) for item in evidence))
    ids = [f"D{int(session)}:{int(turn)}" for session, turn in found]
    return [turn for turn in dict.fromkeys(ids) if turn in known]


class LoCoMo(_Exported):
    """Ten long conversations of two people, with questions about them (Maharana and others, 2024).

    locomo10.json, or a part of it; labels are mended as docs/BENCHMARKS.md tells, and by a published audit's
    file: a list of objects with `question`, `golden_answer`, `correct_answer`, `correct_evidence`.
    """

    name = "locomo"
    importer, what, fields = LOCOMO, "LoCoMo", ("conversation", "qa")
    lacks = "a conversation without sessions"

    def __init__(self, corrections: Path | None = None) -> None:
        fields = ("question", "golden_answer", "correct_answer", "correct_evidence")
        rows = entries(corrections, fields, "an audit of LoCoMo") if corrections else ()
        self._corrections = {(as_text(row["question"]), as_text(row["golden_answer"])): row for row in rows}

    def questions(self, record: Json, name: str, said: Sequence[Turn], path: Path) -> Iterator[Question]:
        """See `_Exported.questions`."""
        asked = record["qa"]
        if not isinstance(asked, list) or not all(isinstance(row, dict) for row in asked):
            raise UsageError(f"{path.name} is not as LoCoMo has it: 'qa' is no list of objects")
        session_of = {turn.turn: turn.session for turn in said if turn.turn}
        answered = files(__package__).joinpath("locomo_answered.txt").read_text(encoding="utf-8").split()
        for number, row in enumerate(asked):
            text, category = row.get("question"), _CATEGORY.get(str(row.get("category")))
            if not isinstance(text, str) or category is None:
                raise UsageError(
                    f"question {number} of {name} in {path.name} has no text or no category 1 to 5"
                )
            right = self._corrections.get((as_text(text), as_text(row.get("answer", ""))), {})
            evidence = right.get("correct_evidence", row.get("evidence"))
            gold = frozenset(gold_turns(evidence if isinstance(evidence, list) else [], session_of))
            expected = as_text(right.get("correct_answer", row.get("answer", "")))
            counted, named = category != ADVERSARIAL, f"{name}-q{number}"
            if not counted and named in answered:
                category, expected = ANSWERED, as_text(row["adversarial_answer"])
            adversarial = category == ADVERSARIAL
            yield Question(
                id=named,
                text=text,
                category=category,
                expected=(NOT_MENTIONED,) if adversarial else (expected,),
                turns=gold,
                sessions=frozenset(session for turn in gold if (session := session_of[turn])),
                counted=counted,
                answerable=not adversarial,
                scored=bool(gold),
                parts=_parts(expected) if category == CATEGORIES[1] else (),
            )

    def retrieval(self, case: Case, question: Question, found: Sequence[Found]) -> Mapping[str, float]:
        """Turn level; none for a question without evidence."""
        return by_turn(question, found, (512, 1024, 2048))

    def answered(self, question: Question, answer: str) -> Mapping[str, float]:
        """Token F1 by the rule of the category; BLEU-1 and ROUGE-L where there is an answer."""
        return by_words(question, answer, partial(metrics.locomo_f1, category=question.category))


def _parts(expected: str) -> tuple[str, ...]:
    """Of an answer that is a list; none of any other."""
    found = tuple(filter(None, (part.strip() for part in _BETWEEN.split(expected))))
    return found if len(found) > 1 else ()


# ── LongMemEval ─────────────────────────────────────────────────────────────────────────────────

_ABSTENTION = "abstention"
_FIELDS = ("question_id", "question_type", "question", "answer", "question_date", "haystack_sessions")


class LongMemEval:
    """A question with the chat sessions of its history (Wu and others, 2025): the official files, also
    packed, and longmemeval-mix, a stand-in of the same shape as JSON lines."""

    def __init__(self, name: str = "longmemeval") -> None:
        self.name = name

    def cases(self, path: Path, limit: int | None = None) -> Iterator[Case]:
        quota = Quota(limit)
        for record in entries(path, _FIELDS, "LongMemEval"):
            name = as_text(record["question_id"])
            if not LONGMEMEVAL.matches(record):
                raise UsageError(f"{name} in {path.name} is not as LongMemEval has it: no list of sessions")
            category = _ABSTENTION if name.endswith("_abs") else as_text(record["question_type"])
            if quota.take((Question(name, "", category, ()),)):  # else it is not read either
                record = _numbered(record)
                said = turns(LONGMEMEVAL.turns(record, file_name(name), Counter()), path)
                yield Case(file_name(name), said, (_longmemeval_question(record, name, category, said),))

    def retrieval(self, case: Case, question: Question, found: Sequence[Found]) -> Mapping[str, float]:
        """Return measures of a ranking; none for questions about what was never said.

        "R@k" and so on: sessions, whoever spoke, gold as the file names it. "own R@k": sessions as the data
        set's own scorer sees them: what the user said, gold only with a label on it; "own turn R@k": turns
        likewise. "turns in 1024" and so on: of all labelled turns, how many are read.
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
            scores |= read_within(found, question.turns, (1024, 2048, 4096), "turns")
        return scores

    def answered(self, question: Question, answer: str) -> Mapping[str, float]:
        """Measures of words. The data set's own is a judge; preferences (a rubric is expected) fit none."""
        return by_words(question, answer)


def _numbered(record: Json) -> Json:
    """The record with its sessions named "s001", "s002", … in the order of their dates.

    The official files call a session that holds the answer "answer_…", and models are shown the names.
    """
    names, dates = (rows(record.get(field)) for field in ("haystack_session_ids", "haystack_dates"))
    times = [moment(date) or "" for date in dates]
    times += [""] * (len(names) - len(times))
    said = sorted(range(len(names)), key=lambda at: (times[at], at))
    new: dict[str, str] = {}
    for at in said:
        new.setdefault(as_text(names[at]), f"s{len(new) + 1:03}")
    gold = map(as_text, rows(record.get("answer_session_ids")))
    return {
        **record,
        "haystack_session_ids": [new[as_text(name)] for name in names],
        "answer_session_ids": [new[name] for name in gold if name in new],
    }


def _longmemeval_question(record: Json, name: str, category: str, said: Sequence[Turn]) -> Question:
    sessions = zip(rows(record.get("haystack_session_ids")), record["haystack_sessions"], strict=False)
    marked = frozenset(
        f"{as_text(session)}_{position}"
        for session, messages in sessions
        for position, message in enumerate(rows(messages), 1)
        if isinstance(message, dict) and message.get("has_answer")
    )
    labelled = marked & {turn.turn for turn in said if turn.turn}
    users = {turn.turn for turn in said if turn.role == "user"}
    gold = frozenset(map(as_text, rows(record.get("answer_session_ids"))))
    return Question(
        id=name,
        text=str(record["question"]),
        category=category,
        expected=(as_text(record["answer"]),),
        turns=labelled,
        sessions=gold & {turn.session for turn in said if turn.session},
        asked=moment(record["question_date"]),
        answerable=category != _ABSTENTION,
        scored=category != _ABSTENTION and bool(labelled & users),
    )


# ── FactConsolidation ───────────────────────────────────────────────────────────────────────────

_SOURCE = re.compile(r"factconsolidation_(sh|mh)_(\w+)")
_HOPS = {"sh": "single-hop", "mh": "multi-hop"}


class FactConsolidation(_Exported):
    """Facts that contradict each other, of which the newest counts (MemoryAgentBench, 2025).

    It names no evidence: what is found is scored by whether it holds an expected answer.
    """

    name = "factconsolidation"
    importer, what, fields = MEMORYAGENTBENCH, "FactConsolidation", ("context", "questions", "answers")
    lacks = "no text and questions"

    def questions(self, record: Json, name: str, said: Sequence[Turn], path: Path) -> Iterator[Question]:
        """See `_Exported.questions`."""
        asked, expected = record["questions"], record["answers"]
        if not isinstance(expected, list) or len(asked) != len(expected):
            raise UsageError(
                f"{name} in {path.name} is not as FactConsolidation has it: not an answer for each question"
            )
        match = _SOURCE.fullmatch(name)
        category = f"{_HOPS[match[1]]} {match[2]}" if match else name
        for number, (text, found) in enumerate(zip(asked, expected, strict=True)):
            yield Question(
                id=f"{name}-q{number}",
                text=str(text),
                category=category,
                expected=tuple(as_text(answer) for answer in (found if isinstance(found, list) else [found])),
                scored=False,
            )

    def retrieval(self, case: Case, question: Question, found: Sequence[Found]) -> Mapping[str, float]:
        """Whether an expected answer stands in one of the first k texts: "answer@1" and so on."""
        ranks = (rank for rank, item in enumerate(found) if metrics.holds(item.text, question.expected))
        first = next(ranks, inf)
        return {f"answer@{k}": float(first < k) for k in (1, 5, 10, 50)}

    def answered(self, question: Question, answer: str) -> Mapping[str, float]:
        """Substring match ("match"), which is the data set's own measure, and token F1."""
        return {
            "match": float(metrics.holds(answer, question.expected)),
            "F1": metrics.best(metrics.token_f1, answer, question.expected),
        }
