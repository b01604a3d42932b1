"""LongMemEval: a question with the chat sessions of its history (Wu and others, 2025).

The official files longmemeval_s.json, longmemeval_m.json and longmemeval_oracle.json, also packed; and
longmemeval-mix, a stand-in of the same shape as JSON lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from infinimem.errors import UsageError
from infinimem.evaluation import metrics
from infinimem.evaluation.datasets.reading import (
    Quota,
    as_text,
    by_words,
    entries,
    file_name,
    read_within,
    turns,
)
from infinimem.evaluation.model import Case, Found, Question
from infinimem.importers.exports import LONGMEMEVAL
from infinimem.importers.fields import Json, moment, rows
from infinimem.model import Turn

ABSTENTION = "abstention"
BUDGETS = (1024, 2048, 4096)

_WHAT = "LongMemEval"
_FIELDS = ("question_id", "question_type", "question", "answer", "question_date", "haystack_sessions")


class LongMemEval:
    """The data set (evaluation/model.py: Benchmark).

    Args:
        name: "longmemeval" or "longmemeval-mix".
    """

    def __init__(self, name: str = "longmemeval") -> None:
        self.name = name

    def cases(self, path: Path, limit: int | None = None) -> Iterator[Case]:
        """A case for each question, one at a time in memory.

        Raises:
            UsageError: the file cannot be read or is not as it should be.
        """
        quota = Quota(limit)
        for record in entries(path, _FIELDS, _WHAT):
            name = as_text(record["question_id"])
            if not LONGMEMEVAL.matches(record):
                raise UsageError(f"{name} in {path.name} is not as {_WHAT} has it: no list of sessions")
            category = ABSTENTION if name.endswith("_abs") else as_text(record["question_type"])
            if quota.take((Question(name, "", category, ()),)):  # else it is not read either
                record = _numbered(record)
                said = turns(LONGMEMEVAL.turns(record, file_name(name), Counter()), path)
                yield Case(file_name(name), said, (_question(record, name, category, said),))

    def retrieval(self, case: Case, question: Question, found: Sequence[Found]) -> Mapping[str, float]:
        """Measures of a ranking; none for questions about what was never said.

        Returns:
            "R@k" and so on: sessions, whoever spoke, gold as the file names it. "own R@k": sessions as the
            data set's own scorer sees them: what the user said, gold only with a label on it; "own turn
            R@k": turns likewise. "turns in 1024" and so on: of all labelled turns, how many are read.
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
            scores |= read_within(found, question.turns, BUDGETS, "turns")
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


def _question(record: Json, name: str, category: str, said: Sequence[Turn]) -> Question:
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
        answerable=category != ABSTENTION,
        scored=category != ABSTENTION and bool(labelled & users),
    )
