"""A data set of two short histories with questions, and runs over it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from infinimem.evaluation.model import Case, Found, Question
from infinimem.evaluation.runner import FILE, Request
from infinimem.llm.offline import OfflineClient
from infinimem.model import Turn, Usage

SAID = (
    ("Ann", "I moved to Lisbon with my cat Olive in March."),
    ("Ben", "My sister Rita visits me on 14 June with her children."),
    ("Ann", "I am allergic to peanuts, so no satay for me."),
    ("Ben", "I run ten kilometres every Sunday along the river."),
    ("Ann", "The balcony of the flat has tomatoes on it."),
    ("Ben", "My running shoes are worn out."),
)
ASKED = (
    ("Where did Ann move?", "Lisbon", 0),
    ("Who visits Ben in June?", "Rita", 1),
    ("What is Ann allergic to?", "peanuts", 2),
    ("How far does Ben run on Sunday?", "ten kilometres", 3),
)


def case(name: str, asked: int = len(ASKED)) -> Case:
    turns = tuple(
        Turn(
            text,
            speaker=speaker,
            time=f"2024-05-0{1 + at // 3}",
            session=f"{name}-s{at // 3}",
            turn=f"D:{at}",
        )
        for at, (speaker, text) in enumerate(SAID)
    )
    questions = tuple(
        Question(f"{name}-q{number}", text, "single-hop", (answer,), frozenset({f"D:{at}"}))
        for number, (text, answer, at) in enumerate(ASKED[:asked])
    )
    return Case(name, turns, questions)


class Small:
    """A benchmark (evaluation/model.py) of two cases; its file's content does not matter."""

    name = "small"

    def __init__(self, cases: Sequence[Case] | None = None) -> None:
        self._cases = cases if cases is not None else (case("one"), case("two"))

    def cases(self, path: Path, limit: int | None = None) -> Iterator[Case]:
        yield from self._cases

    def retrieval(self, case: Case, question: Question, found: Sequence[Found]) -> Mapping[str, float]:
        ranked = list(dict.fromkeys(turn for item in found for turn in item.turns))
        return {"R@5": len(question.turns & set(ranked[:5])) / len(question.turns)}

    def answered(self, question: Question, answer: str) -> Mapping[str, float]:
        return {"exact": float(any(expected in answer for expected in question.expected))}


def request(folder: Path, *methods: str, **more: Any) -> Request:
    """What to run in a folder; offline if nothing else is said."""
    data = folder / "small.json"
    data.write_text("[]")
    offline = OfflineClient()
    given = {"keeper": offline, "answerer": offline, "judge": offline, **more}
    return Request(data, methods, folder / "out", **given)


def results(out: Path) -> list[Any]:
    """All results of a run, by method and question: its rows, with what belongs to each."""
    with closing(sqlite3.connect(out / FILE)) as rows:
        rows.row_factory = sqlite3.Row
        found = [dict(row) for row in rows.execute("SELECT * FROM result ORDER BY method, history, question")]
        for row in found:
            row |= json.loads(row["record"])
            scores = rows.execute("SELECT measure, value FROM score WHERE result = ?", (row["id"],))
            row["scores"] = dict(tuple(score) for score in scores)
            key = (row["method"], row["history"], row["question"])
            spent = "SELECT * FROM spent WHERE (method, history, question) = (?, ?, ?)"
            row["usage"] = {one["phase"]: Usage(*tuple(one)[4:]) for one in rows.execute(spent, key)}
            row["found"] = [Found(**piece) for piece in row["found"]]
    return [SimpleNamespace(**row) for row in found]


def locomo_file(path: Path) -> Path:
    """The same histories as LoCoMo's official file has them, with a question of the fifth category."""
    talks = []
    for name in ("conv-1", "conv-2"):
        sessions: dict[str, Any] = {"speaker_a": "Ann", "speaker_b": "Ben"}
        for number in (1, 2):
            part = SAID[3 * number - 3 : 3 * number]
            sessions[f"session_{number}_date_time"] = f"1:56 pm on {number} May, 2024"
            sessions[f"session_{number}"] = [
                {"speaker": speaker, "dia_id": f"D{number}:{at}", "text": text}
                for at, (speaker, text) in enumerate(part, 1)
            ]
        asked: list[dict[str, Any]] = [
            {"question": text, "answer": answer, "evidence": [f"D{1 + at // 3}:{1 + at % 3}"], "category": 4}
            for text, answer, at in ASKED
        ]
        asked.append(
            {
                "question": "What is Ben allergic to?",
                "evidence": ["D1:3"],
                "category": 5,
                "adversarial_answer": "peanuts",
            }
        )
        talks.append({"sample_id": name, "conversation": sessions, "qa": asked})
    path.write_text(json.dumps(talks))
    return path
