"""Data sets of conversations, read as their official files are: LoCoMo, LongMemEval and others."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.resources import files
from math import inf
from pathlib import Path
from typing import Any

from infinimem.errors import ImportFormatError, UsageError
from infinimem.evaluation import metrics
from infinimem.evaluation.model import Case, Found, Question
from infinimem.importers.exports import LOCOMO, LONGMEMEVAL, MEMORYAGENTBENCH
from infinimem.importers.fields import Format, Json, moment, role_of, rows, text_of
from infinimem.importers.read import keyed
from infinimem.importers.reading import opened, records
from infinimem.model import Turn
from infinimem.terms import STOP_WORDS

_UNFIT = re.compile(r"[^\w.-]+")


def entries(path: Path, fields: Collection[str], what: str) -> Iterator[Json]:
    """Yield the records of a JSON list or of JSON lines, plain or packed (.gz, .xz), one in memory at a time.

    UsageError if the file cannot be read, or a record lacks one of the `fields`; `what` names the data set.
    """
    count = 0
    try:
        with opened(path) as sources:
            for source in sources:
                for record in records(source, path.name):
                    count += 1
                    is_object = isinstance(record, dict)
                    missing = [name for name in fields if name not in record] if is_object else []
                    if missing or not is_object:
                        why = f"it has no {missing[0]!r}" if missing else "it is no object"
                        where = f"record {count} of {path.name}"
                        raise UsageError(f"{where} is not as {what} has it ({why}): give the official file")
                    yield record
    except ImportFormatError as error:
        raise UsageError(str(error)) from error
    if not count:
        raise UsageError(f"{path.name} holds no record: give the official file of {what}")


def turns(found: Iterable[Turn], path: Path) -> tuple[Turn, ...]:
    """Return a case's turns under the ids that an imported library carries, or numbered."""
    try:
        whole = keyed(iter(found), path, Counter())
        return tuple(
            turn if turn.turn is not None else replace(turn, turn=str(number))
            for number, turn in enumerate(whole, 1)
        )
    except ImportFormatError as error:
        raise UsageError(str(error)) from error


def as_text(value: Any) -> str:
    return " ".join(str(value).split())


def file_name(name: str) -> str:
    return _UNFIT.sub("_", name).strip(".") or "_"


class Quota:
    """Takes the first questions of each category, all where no limit is set."""

    def __init__(self, limit: int | None) -> None:
        self._left = defaultdict[str, float](lambda: inf if limit is None else limit)

    def take(self, questions: Iterable[Question]) -> tuple[Question, ...]:
        taken = []
        for question in questions:
            self._left[question.category] -= 1
            taken += [question] if self._left[question.category] >= 0 else []
        return tuple(taken)


def by_turn(question: Question, found: Sequence[Found], budgets: Iterable[int]) -> dict[str, float]:
    """Measures of the turns that were found, by rank and as they are read; none without evidence.

    "tokens to words" and "blocks to words": what is read until each telling word of the expected answer was
    seen; of the first pieces the shares that hold one of them, two, and more. Source: xMemory (arXiv
    2602.02007), section 5.2 (evidence density and coverage).
    """
    if not question.scored:
        return {}
    scores = metrics.measures([turn for item in found for turn in item.turns], question.turns)
    scores |= read_within(found, question.turns, budgets)
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


def read_within(
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
        return {"F1": float(metrics.says_nothing(answer))}
    measures = {"F1": f1, "BLEU-1": metrics.bleu1, "ROUGE-L": metrics.rouge_l}
    return {name: metrics.best(of, answer, question.expected) for name, of in measures.items()}


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
        return by_turn(question, found, (512, 1024, 2048))

    def answered(self, question: Question, answer: str) -> Mapping[str, float]:
        return by_words(question, answer, partial(metrics.locomo_f1, category=question.category))


def _parts(expected: str) -> tuple[str, ...]:
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
    """Name sessions "s001", … by date: "answer_…", as the files call some, would tell a model too much."""
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
    """Facts of which the newest counts, without evidence of where it is (MemoryAgentBench, 2025)."""

    name = "factconsolidation"
    importer, what, fields = MEMORYAGENTBENCH, "FactConsolidation", ("context", "questions", "answers")
    lacks = "no text and questions"

    def questions(self, record: Json, name: str, said: Sequence[Turn], path: Path) -> Iterator[Question]:
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
        return {
            "match": float(metrics.holds(answer, question.expected)),
            "F1": metrics.best(metrics.token_f1, answer, question.expected),
        }


# ── BEAM ────────────────────────────────────────────────────────────────────────────────────────

_CHATS = ("chat_trunecated.json", "chat.json")
"""A shortened one goes first, as in the data set's own program; the spelling is theirs."""
_QUESTIONS = "probing_questions.json"
_ANSWERS = ("answer", "ideal_answer", "ideal_response", "ideal_summary", "expected_compliance")
_LABEL = re.compile(r"\s*->->[^\n]*\Z")
"""Of the message in the plan that the conversation was made from, such as "->-> 1,1"; nobody said it."""
_PLAN = "plan-"


class Beam:
    """Conversations of 128K to 10M tokens with questions of ten abilities, each with a rubric (Tavakoli and
    others, 2025, "Beyond a Million Tokens").

    The official folders, `chats/TIER/N` with chat.json and probing_questions.json, any number of them below
    the one that is named; or one file with a record a conversation: chat_id, size, chat, probing_questions.
    """

    name = "beam"

    def cases(self, path: Path, limit: int | None = None) -> Iterator[Case]:
        quota = Quota(limit)
        for record in _records(path):
            name = file_name(f"{as_text(record.get('size', ''))}-{as_text(record.get('chat_id', ''))}")
            said = turns(_turns(record["chat"]), path)
            questions = quota.take(_questions(record["probing_questions"], name, said, path))
            if questions:
                yield Case(name, said, questions)

    def retrieval(self, case: Case, question: Question, found: Sequence[Found]) -> Mapping[str, float]:
        return by_turn(question, found, (1024, 2048, 4096, 8192))

    def answered(self, question: Question, answer: str) -> Mapping[str, float]:
        """Nothing: the measure is a judge's verdict on each item of the rubric."""
        return {}


def _records(path: Path) -> Iterator[Json]:
    if path.is_file():
        yield from entries(path, ("chat", "probing_questions"), "BEAM")
        return
    folders = {found.parent for name in _CHATS for found in path.rglob(name)}
    if not folders:
        raise UsageError(f"{path} holds no {_CHATS[-1]}: give the folder of BEAM's chats, or one of them")
    for folder in sorted(folders, key=lambda each: (str(each.parent), len(each.name), each.name)):
        whole = folder.resolve()  # "." has no name
        chat = next(folder / name for name in _CHATS if (folder / name).is_file())
        beside = (folder / _QUESTIONS, folder / _QUESTIONS.partition(".")[0] / _QUESTIONS)
        asked = next((file for file in beside if file.is_file()), None)
        if asked is None:
            raise UsageError(f"{folder} holds a conversation of BEAM without its {_QUESTIONS}")
        (questions,) = list(entries(asked, (), "BEAM"))[:1]
        yield {
            "chat_id": whole.name,
            "size": whole.parent.name,
            "chat": list(entries(chat, (), "BEAM")),
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
                raise UsageError(f"{where} is not as BEAM has it: no text, or no rubric")
            gold = frozenset(map(as_text, _flat(row.get("source_chat_ids")))) & session_of.keys()
            yield Question(
                id=f"{name}-{ability}-{number}",
                text=as_text(row["question"]),
                category=ability.replace("_", " "),
                expected=tuple(as_text(row[key]) for key in _ANSWERS if key in row),
                turns=gold,
                sessions=frozenset(session for turn in gold if (session := session_of[turn])),
                answerable=ability != _ABSTENTION,
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
