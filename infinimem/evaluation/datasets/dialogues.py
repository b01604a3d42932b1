"""How data sets are read, as their official files are; and those of conversations: LoCoMo, LoCoMo-Plus,
LongMemEval, BEAM, PerLTQA and DialSim."""

from __future__ import annotations

import csv
import pickle
import random
import re
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from importlib.resources import files
from itertools import zip_longest
from pathlib import Path
from typing import Any

from infinimem.errors import UsageError
from infinimem.evaluation import metrics
from infinimem.evaluation.model import Case, Question
from infinimem.importers.exports import FORMATS
from infinimem.importers.fields import Json, moment, role_of, rows, text_of
from infinimem.importers.read import keyed
from infinimem.importers.reading import opened, records
from infinimem.model import Turn

# ── what data sets share ──────────────────────────────────────────────────────────────────────────

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
    for count, record in enumerate(_records(path), 1):
        is_object = isinstance(record, dict)
        missing = [name for name in fields if name not in record] if is_object else []
        if missing or not is_object:
            why = f"it has no {missing[0]!r}" if missing else "it is no object"
            raise ValueError(f"record {count} of {path.name}: {why}")
        yield record
    if not count:
        raise ValueError(f"{path.name} holds no record")


def _records(path: Path) -> Iterator[Any]:
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as file:
            yield from csv.DictReader(file)
    elif path.suffix == ".parquet":
        reader = metrics.package("pyarrow.parquet").ParquetFile
        try:
            for batch in reader(path).iter_batches(1):
                yield from batch.to_pylist()
        except (OSError, ValueError) as error:  # pyarrow's own are of these
            why = str(error).splitlines()[0]
            raise UsageError(f"{path.name} cannot be read as parquet: {why}") from error
    else:
        with opened(path) as sources:
            for source in sources:
                yield from records(source, path.name)


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


# ── LoCoMo ──────────────────────────────────────────────────────────────────────────────────────

CATEGORIES = dict(enumerate(("multi-hop", "temporal", "open-domain", "single-hop", "adversarial"), 1))
ADVERSARIAL = CATEGORIES[5]
ANSWERED = "adversarial, answered"
"""Questions of the fifth category that the conversation does answer: locomo_answered.txt lists their ids."""
NOT_MENTIONED = "Not mentioned in the conversation"
"""What is expected of a question about something that was never said."""

_ID = re.compile(r"D(\d+):(\d+)")
_BETWEEN = re.compile(r",\s*(?:and\s+)?(?!\s*\d{4}\b)")
"""The parts of a list; a year belongs to its day."""


def gold_turns(evidence: Iterable[object], known: Collection[str]) -> list[str]:
    """The turn ids of a question: glued ones taken apart ("D8:6; D9:17"), those that name no turn dropped."""
    found = _ID.findall(" ".join(str(item) for item in evidence))
    ids = [f"D{int(session)}:{int(turn)}" for session, turn in found]
    return [turn for turn in dict.fromkeys(ids) if turn in known]


def locomo(path: Path, corrections: Path | None = None) -> Iterator[Case]:
    """Ten long conversations of two people, with questions about them (Maharana and others, 2024).

    locomo10.json, or a part of it; labels are mended as docs/BENCHMARKS.md tells, and by a published audit's
    file: a list of objects with `question`, `golden_answer`, `correct_answer`, `correct_evidence`.
    """
    fields = ("question", "golden_answer", "correct_answer", "correct_evidence")
    audit = entries(corrections, fields) if corrections else ()
    mended = {(as_text(row["question"]), as_text(row["golden_answer"])): row for row in audit}
    for record in entries(path, ("conversation", "qa")):
        said = history("locomo", record, path.stem, path, "a conversation without sessions")
        (name,) = FORMATS["locomo"].names(record, path.stem)
        yield Case(name, said, tuple(_locomo_questions(record, name, said, mended)))


def _locomo_questions(
    record: Json, name: str, said: Sequence[Turn], mended: Mapping[tuple[str, str], Json]
) -> Iterator[Question]:
    known = {turn.turn for turn in said if turn.turn}
    answered = files(__package__).joinpath("locomo_answered.txt").read_text(encoding="utf-8").split()
    for number, row in enumerate(record["qa"]):
        text, category = str(row["question"]), CATEGORIES[int(row["category"])]
        right = mended.get((as_text(text), as_text(row.get("answer", ""))), {})
        gold = gold_turns(rows(right.get("correct_evidence", row.get("evidence"))), known)
        expected = as_text(right.get("correct_answer", row.get("answer", "")))
        counted, named = category != ADVERSARIAL, f"{name}-q{number}"
        if not counted and named in answered:
            category, expected = ANSWERED, as_text(row["adversarial_answer"])
        adversarial = category == ADVERSARIAL
        parts = tuple(filter(None, map(str.strip, _BETWEEN.split(expected))))
        yield Question(
            id=named,
            text=text,
            category=category,
            expected=(NOT_MENTIONED,) if adversarial else (expected,),
            counted=counted,
            answerable=not adversarial,
            parts=parts if category == CATEGORIES[1] and parts[1:] else (),
            **evidence(gold, said),
        )


# ── LoCoMo-Plus ─────────────────────────────────────────────────────────────────────────────────

_COUNTS = {"an": 1, "a": 1} | {
    word: count
    for count, word in enumerate("one two three four five six seven eight nine ten eleven twelve".split(), 1)
}
_GAP = re.compile(rf"\b(\d+|{'|'.join(_COUNTS)})\s+(week|month|year)")
_DAYS = {"week": 7, "month": 30, "year": 365}
_SPOKEN = re.compile(r"(?m)^\s*([AB]):\s*(.*\S)")


def locomo_plus(path: Path) -> Iterator[Case]:
    """Remarks that a later one calls for without naming them (LoCoMo-Plus, 2026): locomo_plus.json beside
    locomo10.json. Each is put into a conversation of LoCoMo, as far back as `time_gap` says."""
    plus, whole = files_of(path, "locomo_plus*.json*", "locomo10*.json*")
    talks = [
        (record["conversation"], history("locomo", record, whole.stem, whole, "no sessions"))
        for record in entries(whole, ("conversation",))
    ]
    fields = ("relation_type", "cue_dialogue", "trigger_query", "time_gap")
    for number, row in enumerate(entries(plus, fields)):
        name, (talk, said) = f"plus-{number}", talks[number % len(talks)]
        now = datetime.fromisoformat(max(turn.time or "1970-01-01" for turn in said)) + timedelta(days=7)
        count, unit = next(iter(_GAP.findall(str(row["time_gap"]).lower())), ("0", "week"))
        days = int(_COUNTS.get(count, count)) * _DAYS[unit]
        then = (now - timedelta(days=days)).isoformat()
        cue = [
            Turn(text, "user", talk.get(f"speaker_{who.lower()}"), then, name, f"{name}:{at}")
            for at, (who, text) in enumerate(_SPOKEN.findall(row["cue_dialogue"]))
        ]
        before = [turn for turn in said if (turn.time or "") <= then]
        asked = Question(
            id=name,
            text=" ".join(text for _, text in _SPOKEN.findall(row["trigger_query"])),
            category=as_text(row["relation_type"]),
            expected=(as_text(row["cue_dialogue"]),),
            asked=now.isoformat(),
            kind="preference",
            **evidence({f"{name}:{at}" for at in range(len(cue))}, cue),
        )
        yield Case(name, (*before, *turns(cue, plus), *said[len(before) :]), (asked,))


# ── LongMemEval ─────────────────────────────────────────────────────────────────────────────────

ABSTENTION = "abstention"
_FIELDS = ("question_id", "question_type", "question", "answer", "question_date", "haystack_sessions")


def longmemeval(path: Path) -> Iterator[Case]:
    """A question with the chat sessions of its history (Wu and others, 2025): the official files, also
    packed, and longmemeval-mix, a stand-in of the same shape as JSON lines."""
    for record in entries(path, _FIELDS):
        name, record = as_text(record["question_id"]), numbered(record)
        said = history("longmemeval", record, name, path, "no list of sessions")
        category = ABSTENTION if name.endswith("_abs") else as_text(record["question_type"])
        sessions = zip(rows(record.get("haystack_session_ids")), record["haystack_sessions"], strict=False)
        marked = frozenset(
            f"{session}_{position}"
            for session, messages in sessions
            for position, message in enumerate(messages, 1)
            if message.get("has_answer")
        )
        labelled = marked & {turn.turn for turn in said if turn.turn}
        users = {turn.turn for turn in said if turn.role == "user"}
        gold = frozenset(map(as_text, rows(record.get("answer_session_ids"))))
        asked = Question(
            id=name,
            text=str(record["question"]),
            category=category,
            expected=(as_text(record["answer"]),),
            turns=labelled,
            sessions=gold & {turn.session for turn in said if turn.session},
            asked=moment(record["question_date"]),
            answerable=category != ABSTENTION,
            scored=category != ABSTENTION and bool(labelled & users),
            kind=TOLD["kinds"].get(category, "plain"),
        )
        yield Case(name, said, (asked,))


def numbered(record: Json) -> Json:
    """The record with its sessions named "s001", "s002", … in the order of their dates.

    The official files call a session that holds the answer "answer_…", and models are shown the names.
    """
    names, dates = (rows(record.get(field)) for field in ("haystack_session_ids", "haystack_dates"))
    dated = sorted(zip_longest(map(moment, dates), names), key=lambda pair: pair[0] or "")
    old = dict.fromkeys(as_text(name) for _, name in dated if name is not None)
    new = {name: f"s{number:03}" for number, name in enumerate(old, 1)}
    gold = map(as_text, rows(record.get("answer_session_ids")))
    return {
        **record,
        "haystack_session_ids": [new[as_text(name)] for name in names],
        "answer_session_ids": [new[name] for name in gold if name in new],
    }


# ── BEAM ────────────────────────────────────────────────────────────────────────────────────────

_CHATS = ("chat_trunecated.json", "chat.json")
"""A shortened one goes first, as in the data set's own program; the spelling is theirs."""
_QUESTIONS = "probing_questions.json"
_ANSWERS = ("answer", "ideal_answer", "ideal_response", "ideal_summary", "expected_compliance")
_LABEL = re.compile(r"\s*->->[^\n]*\Z")
"""Of the message in the plan that the conversation was made from, such as "->-> 1,1"; nobody said it."""


def beam(path: Path) -> Iterator[Case]:
    """Conversations of 128K to 10M tokens with questions of ten abilities, each with a rubric (Tavakoli and
    others, 2025, "Beyond a Million Tokens"), one at a time in memory.

    The official folders, `chats/TIER/N` with chat.json and probing_questions.json, any number of them below
    the one that is named; or one file with a record a conversation: chat_id, size, chat, probing_questions.
    """
    for record in _beam_records(path):
        name = f"{as_text(record.get('size', ''))}-{as_text(record.get('chat_id', ''))}"
        said = turns(_beam_turns(record["chat"]), path)
        yield Case(name, said, tuple(_beam_questions(record["probing_questions"], name, said, path)))


def _beam_records(path: Path) -> Iterator[Json]:
    if path.is_file():
        yield from entries(path, ("chat", "probing_questions"))
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
        (questions,) = list(entries(asked))[:1]
        yield {
            "chat_id": whole.name,
            "size": whole.parent.name,
            "chat": list(entries(chat)),
            "probing_questions": questions,
        }


def _beam_turns(chat: Any) -> Iterator[Turn]:
    """The messages; a batch is a session. The 10M tier has plans of batches, whose ids may begin anew."""
    batches = [("", batch) for batch in chat if "turns" in batch]
    plans = [(key, value) for part in chat for key, value in part.items() if key.startswith("plan-")]
    batches += [(f"{plan}:", batch) for plan, value in plans for batch in rows(value)]
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
    for turn in batch["turns"]:
        yield from turn if isinstance(turn, list) else [turn]


def _beam_questions(asked: Any, name: str, said: Sequence[Turn], path: Path) -> Iterator[Question]:
    for ability, found in asked.items():
        for number, row in enumerate(found):
            rubric = rows(row.get("rubric"))
            if not rubric or not row.get("question"):
                raise ValueError(f"{ability} {number} of {name}: no text, or no rubric")
            yield Question(
                id=f"{name}-{ability}-{number}",
                text=as_text(row["question"]),
                category=ability.replace("_", " "),
                expected=tuple(as_text(row[key]) for key in _ANSWERS if key in row),
                answerable=ability != ABSTENTION,
                rubric=tuple(map(as_text, rubric)),
                kind="order" if ability == "event_ordering" else "plain",
                **evidence(set(map(as_text, _flat(row.get("source_chat_ids")))), said),
            )


def _flat(ids: Any) -> Iterator[Any]:
    """Ids, or lists of them by what they tell ("first_statement")."""
    if isinstance(ids, dict | list):
        for each in ids.values() if isinstance(ids, dict) else ids:
            yield from _flat(each)
    elif ids is not None:
        yield ids


# ── PerLTQA ─────────────────────────────────────────────────────────────────────────────────────


def perltqa(path: Path) -> Iterator[Case]:
    """Memories of invented people and questions about one of them each (Du and others, 2024): perltmem*.json
    beside perltqa*.json. A field of the profile, a relationship, an event and a dialogue are a session each,
    under the id by which a question names it; relevant is the session."""
    asked, known = files_of(path, "perltqa*.json*", "perltmem*.json*")
    memories: dict[str, Json] = {}
    for record in entries(known):
        memories |= {record["profile"]["Protagonist"]: record} if "profile" in record else record
    for record in entries(asked):
        for name, by_kind in record.items():
            said = turns(_perltqa_turns(memories[name]), known)
            yield Case(name, said, tuple(_perltqa_questions(by_kind, name)))


def _perltqa_turns(memory: Json) -> Iterator[Turn]:
    for name, value in memory.get("profile", {}).items():
        yield Turn(f"{name}: {value}", session=name, turn=name)
    for name, one in memory.get("social_relationship", {}).items():
        text = f"{one.get('Supporting Characters')} ({one.get('Relationship')}): {one.get('Description')}"
        yield Turn(text, session=name, turn=name)
    for name, one in memory.get("events", {}).items():
        text, day = f"{one.get('summary')}: {one.get('content')}", _day(one.get("Creation Time"))
        yield Turn(text, time=day, session=name, turn=name)
    for name, one in memory.get("dialogues", {}).items():
        spoken = [(time, text) for time, texts in one.get("contents", {}).items() for text in texts]
        for number, (time, text) in enumerate(spoken):
            who, _, words = text.rpartition(": ") if text.count(": ") == 1 else text.partition(": ")
            yield Turn(words, "user", who, moment(time), name, f"{name}:{number}")


def _day(text: object) -> str | None:
    return (moment(text) or "")[:10] or None


def _perltqa_questions(by_kind: Json, name: str) -> Iterator[Question]:
    """Those about the profile stand in a list, all others below the id of their memory."""
    for kind, found in by_kind.items():
        pairs = [(one.get("Reference Memory"), one) for one in found if "Question" in one]
        below = [pair for one in found if "Question" not in one for pair in one.items()]
        for number, (key, row) in enumerate([*pairs, *((key, row) for key, some in below for row in some)]):
            yield Question(
                id=f"{name}-{kind}-{number}",
                text=as_text(row["Question"]),
                category=kind.replace("_", " "),
                expected=(as_text(row["Answer"]),),
                sessions=frozenset({as_text(key)}),
                scored=False,
            )


# ── DialSim ─────────────────────────────────────────────────────────────────────────────────────

_SHARE = 0.7
"""Of questions from the shows' relations, the rest are fans' quizzes: as DialSim's own program draws them."""


class _Plain(pickle.Unpickler):
    """Reads lists, dicts, texts and numbers; whatever would run code is refused."""

    def find_class(self, module: str, name: str) -> Any:
        raise UsageError(f"the file would load {module}.{name}: give DialSim's own, which holds plain values")


def dialsim(path: Path) -> Iterator[Case]:
    """Scripts of three shows, each scene with questions of five choices (LongDialQA, Kim and others, 2024):
    friends_dialsim.pickle and the like, or the same as JSON. In each scene one question is asked about all
    that was said until its end, drawn as the data set's program draws, but by the scene's name."""
    if path.suffix == ".pickle":
        with path.open("rb") as file:
            episodes = _Plain(file).load()
    else:
        (episodes,) = entries(path)
    said: list[Turn] = []
    for episode, scenes in rows([*episodes.items()] if isinstance(episodes, dict) else None):
        for number, scene in scenes.items():
            name = f"{episode.removesuffix('.txt')}-{number}"
            day = _day(scene["date"])
            spoken = filter(None, re.split(r"\n(?=[^\n:]{1,40}:)", scene["script"].strip()))
            for at, text in enumerate(spoken):
                who, _, words = text.partition(":")  # a line that names nobody goes on with the one before
                said.append(Turn(words.strip() or who, "user", who, day, name, f"{name}:{at}"))
            yield Case(name, tuple(said), tuple(_scene_questions(scene, name)))


def _scene_questions(scene: Json, name: str) -> Iterator[Question]:
    pools = {
        f"{label} {kind}": [*(found.values() if isinstance(found, dict) else found)]
        for label in ("hard", "easy")
        for kind, found in scene.get(f"{label}_q", {}).items()
        if found
    }
    draw = random.Random(name)
    label = "hard" if draw.random() < _SHARE else "easy"
    for category in draw.sample(
        [kind for kind in pools if kind.startswith(label)] or [*pools], min(len(pools), 1)
    ):
        row = draw.choice(pools[category])
        options = [as_text(one) for one in row["options"]]
        asked, right = row["questions"], options.index(as_text(row["answer"]))
        choices = tuple(f"({letter}) {text}" for letter, text in zip("abcde", options, strict=False))
        yield Question(
            id=name,
            text=as_text(asked.get("default") or next(iter(asked.values()))),
            category=category,
            expected=("abcde"[right], options[right]),
            asked=_day(scene["date"]),
            scored=False,
            kind="",
            choices=choices,
        )
