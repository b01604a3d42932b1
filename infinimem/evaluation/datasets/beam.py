"""BEAM: conversations of 128K to 10M tokens with questions of ten abilities, each with a rubric (Tavakoli and
others, 2025, "Beyond a Million Tokens").

The official folders, `chats/TIER/N` with chat.json and probing_questions.json, any number of them below the
folder that is named; or one file with a record a conversation: chat_id, size, chat, probing_questions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from infinimem.errors import UsageError
from infinimem.evaluation.datasets.reading import Quota, as_text, by_turn, entries, file_name, turns
from infinimem.evaluation.model import Case, Found, Question
from infinimem.importers.fields import Json, moment, role_of, rows, text_of
from infinimem.model import Turn

ABSTENTION = "abstention"
BUDGETS = (1024, 2048, 4096, 8192)

_WHAT = "BEAM"
_CHATS = ("chat_trunecated.json", "chat.json")
"""A shortened one goes first, as in the data set's own program; the spelling is theirs."""
_QUESTIONS = "probing_questions.json"
_ANSWERS = ("answer", "ideal_answer", "ideal_response", "ideal_summary", "expected_compliance")
_LABEL = re.compile(r"\s*->->[^\n]*\Z")
"""Of the message in the plan that the conversation was made from, such as "->-> 1,1"; nobody said it."""
_PLAN = "plan-"


class Beam:
    """The data set (evaluation/model.py: Benchmark)."""

    name = "beam"

    def cases(self, path: Path, limit: int | None = None) -> Iterator[Case]:
        """A case for each conversation, one at a time in memory."""
        quota = Quota(limit)
        for record in _records(path):
            name = file_name(f"{as_text(record.get('size', ''))}-{as_text(record.get('chat_id', ''))}")
            said = turns(_turns(record["chat"]), path)
            questions = quota.take(_questions(record["probing_questions"], name, said, path))
            if questions:
                yield Case(name, said, questions)

    def retrieval(self, case: Case, question: Question, found: Sequence[Found]) -> Mapping[str, float]:
        """By message; none for a question that names no message, as all of abstention."""
        return by_turn(question, found, BUDGETS)

    def answered(self, question: Question, answer: str) -> Mapping[str, float]:
        """Nothing: the measure is a judge's verdict on each item of the rubric."""
        return {}


def _records(path: Path) -> Iterator[Json]:
    if path.is_file():
        yield from entries(path, ("chat", "probing_questions"), _WHAT)
        return
    folders = {found.parent for name in _CHATS for found in path.rglob(name)}
    if not folders:
        raise UsageError(f"{path} holds no {_CHATS[-1]}: give the folder of {_WHAT}'s chats, or one of them")
    for folder in sorted(folders, key=lambda each: (str(each.parent), len(each.name), each.name)):
        whole = folder.resolve()  # "." has no name
        chat = next(folder / name for name in _CHATS if (folder / name).is_file())
        beside = (folder / _QUESTIONS, folder / _QUESTIONS.partition(".")[0] / _QUESTIONS)
        asked = next((file for file in beside if file.is_file()), None)
        if asked is None:
            raise UsageError(f"{folder} holds a conversation of {_WHAT} without its {_QUESTIONS}")
        (questions,) = list(entries(asked, (), _WHAT))[:1]
        yield {
            "chat_id": whole.name,
            "size": whole.parent.name,
            "chat": list(entries(chat, (), _WHAT)),
            "probing_questions": questions,
        }


def _turns(chat: Any) -> Iterator[Turn]:
    """The messages; a batch is a session. The 10M tier has plans of batches, whose ids may begin anew."""
    parts = [part for part in rows(chat) if isinstance(part, dict)]
    named = [("", batch) for batch in parts if "turns" in batch]
    plans = [(key, value) for part in parts for key, value in part.items() if key.startswith(_PLAN)]
    named += [(f"{plan}:", batch) for plan, value in plans for batch in rows(value)]
    batches = [(plan, batch) for plan, batch in named if isinstance(batch, dict)]
    times: Counter[str] = Counter(as_text(message.get("id")) for _, one in batches for message in _said(one))
    time: str | None = None
    for number, (plan, batch) in enumerate(batches, 1):
        time = (moment(batch.get("time_anchor")) or "")[:10] or time
        for message in _said(batch):
            time = (moment(message.get("time_anchor")) or "")[:10] or time
            role, speaker = role_of(message.get("role"))
            name = as_text(message.get("id"))
            yield Turn(
                text=_LABEL.sub("", text_of(message.get("content"), Counter())),
                role=role,
                speaker=speaker,
                time=time,
                session=f"{plan}s{number:03}",
                turn=name if times[name] == 1 else f"{plan}{name}",
            )


def _said(batch: Json) -> Iterator[Json]:
    """A batch has turns, and a turn a list of messages."""
    for turn in rows(batch.get("turns")):
        for message in turn if isinstance(turn, list) else [turn]:
            if isinstance(message, dict):
                yield message


def _questions(asked: Any, name: str, said: Sequence[Turn], path: Path) -> Iterator[Question]:
    session_of = {turn.turn: turn.session for turn in said if turn.turn}
    for ability, found in asked.items() if isinstance(asked, dict) else ():
        for number, row in enumerate(rows(found)):
            rubric = rows(row.get("rubric")) if isinstance(row, dict) else ()
            if not rubric or not as_text(row.get("question") or ""):
                where = f"{ability} {number} of {name} in {path.name}"
                raise UsageError(f"{where} is not as {_WHAT} has it: no text, or no rubric")
            gold = frozenset(map(as_text, _flat(row.get("source_chat_ids")))) & session_of.keys()
            yield Question(
                id=f"{name}-{ability}-{number}",
                text=as_text(row["question"]),
                category=ability.replace("_", " "),
                expected=tuple(as_text(row[key]) for key in _ANSWERS if key in row),
                turns=gold,
                sessions=frozenset(session for turn in gold if (session := session_of[turn])),
                answerable=ability != ABSTENTION,
                scored=bool(gold),
                rubric=tuple(map(as_text, rubric)),
            )


def _flat(ids: Any) -> Iterator[Any]:
    """Ids, or lists of them by what they tell ("first_statement")."""
    if isinstance(ids, dict | list):
        for each in ids.values() if isinstance(ids, dict) else ids:
            yield from _flat(each)
    elif ids is not None:
        yield ids
