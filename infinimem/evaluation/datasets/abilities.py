"""Data sets that ask for one ability each and mostly need no judge: MemoryAgentBench, PersonaMem,
PrecisionMemBench, and our questions (notes.jsonl) about two public collections of hand-kept notes, each with
the sections that answer it. docs/BENCHMARKS.md says where the notes are, and how the questions were made.
"""

from __future__ import annotations

import ast
import json
import re
import tarfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from lzma import LZMAError
from math import inf
from pathlib import Path
from typing import Any

from infinimem.errors import UsageError
from infinimem.evaluation import metrics
from infinimem.evaluation.datasets.dialogues import (
    ABSTENTION,
    TOLD,
    as_text,
    entries,
    evidence,
    files_of,
    history,
    numbered,
    turns,
)
from infinimem.evaluation.model import Case, Found, Question
from infinimem.importers.exports import FORMATS
from infinimem.importers.fields import Json, moment, role_of, rows
from infinimem.markdown.document import Document
from infinimem.markdown.sections import partitions
from infinimem.model import Turn
from infinimem.store.folders import is_inside

# ── MemoryAgentBench ────────────────────────────────────────────────────────────────────────────

_LABEL = re.compile(r"(?m)^(label: *\S+)[^\S\n]*$")
_BESIDE = re.compile(r"^.*/|\([^()]*\)|[>_-]|[\"*]")
"""Of a movie's name what does not count."""
_LISTED = re.compile(r"(?:^|\s)\d{1,2}[.)]\s+")


def memoryagentbench(path: Path, only: str = "") -> Iterator[Case]:
    """Abilities of agents' memories (MemoryAgentBench, 2025), scored by `metadata.source`: an official file,
    parquet or JSON, or their folder. `only`: how the sources begin that are read; another one is an error."""
    times: Counter[str] = Counter()
    for file in sorted(path.glob("*.parquet")) if path.is_dir() else [path]:
        for record in entries(file, ("context", "questions", "answers")):
            if not FORMATS["memoryagentbench"].matches(record):
                raise ValueError(f"{file.name} has no text and questions")
            (source,) = FORMATS["memoryagentbench"].names(record, "")
            match = next((known for one in TOLD["sources"] if (known := re.fullmatch(one, source))), None)
            if match is None or not source.startswith(only):
                there = only or ", ".join(re.split(r"\\|\(", one)[0] for one in TOLD["sources"])
                raise UsageError(
                    f"{file.name} has the source {source!r}, which is not scored here: {there} is"
                )
            times[source] += 1
            name = source.replace("*", "_") + (f"-{times[source]}" if times[source] > 1 else "")
            if source.startswith("longmemeval"):
                parts = ast.literal_eval(record["context"])  # "Chat Time: …" and messages by turns
                dates = [str(time).removeprefix("Chat Time: ") for time in parts[::2]]
                chats = {"haystack_sessions": parts[1::2], "haystack_dates": dates}
                chats["haystack_session_ids"] = [str(number) for number in range(len(dates))]
                said = history("longmemeval", numbered(chats), name, file, "no list of sessions")
            else:
                text = _LABEL.sub(r"\1\n", record["context"])  # each example a block of its own
                said = history("memoryagentbench", {**record, "context": text}, name, file, "no text")
            yield Case(name, said, tuple(_tasks(record, name, match, said, file)))


def _tasks(
    record: Json, name: str, match: re.Match[str], said: Sequence[Turn], path: Path
) -> Iterator[Question]:
    label, measure, graded = TOLD["sources"][match.re.pattern]
    about, asked, answers = record.get("metadata") or {}, record["questions"], rows(record["answers"])
    movies = _movies(path) if measure == "Recall@5" else {}
    known_movies = frozenset(movies.values())
    keys = ("question_types", "question_dates", "question_ids", "haystack_sessions")
    lists = (rows(about.get(key)) for key in keys)
    beside = (found if len(found) == len(asked) else [None] * len(asked) for found in lists)
    for number, (text, found, kind, day, known, chats) in enumerate(
        zip(asked, answers, *beside, strict=True)
    ):
        never, marked = str(known).endswith("_abs"), _marked(chats)
        gold = [turn for turn in said if turn.text in marked]
        expected = map(as_text, found if isinstance(found, list) else [found])
        yield Question(
            id=f"{name}-q{number}",
            text=str(text),
            category=" ".join(filter(None, (label, *match.groups(), ABSTENTION if never else kind))),
            expected=tuple(movies.get(one, "") if movies else one for one in expected),
            asked=moment(day),
            answerable=not never,
            rubric=tuple(map(as_text, rows(about.get("keypoints")))) if measure == "points" else (),
            kind=TOLD["kinds"].get(kind, graded) if measure == "judge" else graded,
            about={"measure": measure, "movies": known_movies},
            **{
                **evidence({turn.turn or "" for turn in gold}, gold),
                "scored": "user" in {turn.role for turn in gold},
            },
        )


def _marked(history: Any) -> frozenset[str]:
    """The texts of the messages that hold an answer, however deep the lists that they stand in."""
    if isinstance(history, dict):
        return frozenset({str(history.get("content"))} if history.get("has_answer") else ())
    return frozenset().union(*map(_marked, rows(history)))


def _movies(path: Path) -> dict[str, str]:
    """Names of movies by the ids that answers hold."""
    for folder in path.absolute().parents[:2]:
        if (file := folder / "entity2id.json").is_file():
            (known,) = entries(file)
            return {as_text(number): _movie(name) for name, number in known.items()}
    raise UsageError(f"{path.name} has recommendations: put the official entity2id.json beside it")


def _movie(name: str) -> str:
    return " ".join(_BESIDE.sub(" ", name).lower().split())


def found_answers(case: Case, question: Question, found: Sequence[Found]) -> Mapping[str, float]:
    """Whether an expected answer stands in one of the first k texts: "answer@1" and so on; of LongMemEval(S*)
    the measures of LongMemEval."""
    if question.about["measure"] != "match":
        return metrics.by_session(case, question, found)
    ranks = (rank for rank, item in enumerate(found) if metrics.holds(item.text, question.expected))
    first = next(ranks, inf)
    return {f"answer@{k}": float(first < k) for k in (1, 5, 10, 50)}


def task_words(question: Question, answer: str) -> Mapping[str, float]:
    """The measure of the question's source; of what a judge grades the measures of words.

    "match": an expected answer is a part of the answer (of EventQA all are, letter by letter); "exact": the
    answer is an expected one or the letter of it; "Recall@5": of the movies wanted the share among the first
    five named, each taken for the known one that is nearest by edits.
    """
    expected, measure = question.expected, question.about["measure"]
    if measure == "match":
        f1 = metrics.best(metrics.token_f1, answer, expected)
        return {"match": float(metrics.holds(answer, expected)), "F1": f1}
    if measure == "events":
        return {"match": float(all(one.lower() in answer.lower() for one in expected))}
    if measure == "exact":
        told = answer.lower().strip().removeprefix("label:").removeprefix("answer:").strip(" .()")
        letters = [one[0].lower() for one in expected if re.match(r"[A-Za-z][.)]", one)]
        return {"exact": float(told in letters or metrics.normal(told) in map(metrics.normal, expected))}
    if measure == "Recall@5":
        numbered, mark = _LISTED.search(answer), "\n" if "\n" in answer.strip() else ","
        named = filter(None, map(_movie, _LISTED.split(answer) if numbered else answer.split(mark)))
        taken = {_nearest(name, question.about["movies"]) for name, _ in zip(named, range(5), strict=False)}
        return {"Recall@5": len(taken.intersection(expected)) / max(len(expected), 1)}
    return metrics.by_words(question, answer)


@lru_cache(maxsize=1 << 12)
def _nearest(name: str, known: frozenset[str]) -> str:
    distance = metrics.package("nltk.metrics.distance").edit_distance
    return name if name in known else min(known, key=lambda one: (distance(name, one), one))


# ── PersonaMem ──────────────────────────────────────────────────────────────────────────────────

_BLOCK = re.compile(r"\n*^\[(SYSTEM|USER|ASSISTANT)\] ", re.MULTILINE)
_SPEAKER = re.compile(r"\A(?:User: [^\n]*\n\n|(?:User|Assistant|System): ?)")
_CHOICE = re.compile(r"(?m)^(?=\([a-z]\) )")


def personamem(path: Path) -> Iterator[Case]:
    """What a person told of themselves, and which of four replies suits them (Jiang and others, 2025):
    questions_SIZE.csv beside shared_contexts_SIZE.jsonl, or one JSON file of `documents` and `queries`.

    Memory is asked what the user says, without the replies. A session begins with what the assistant is told.
    """
    for name, messages, asked in (_persona_files if path.suffix == ".csv" else _persona_packed)(path):
        said, session = [], 0
        for number, (role, text) in enumerate(messages):
            session += role == "system" or not number
            said.append(Turn(_SPEAKER.sub("", text), role, session=f"s{session:03}", turn=f"{number}"))
        yield Case(name, turns(said, path), tuple(asked))


_Persona = Iterator[tuple[str, Iterable[tuple[str, str]], Sequence[Question]]]


def _persona_packed(path: Path) -> _Persona:
    for record in entries(path, ("documents", "queries")):
        asked = defaultdict[str, list[Question]](list)
        for row in record["queries"]:
            text, *choices = _CHOICE.split(row["query"])
            kind, letter = row["meta"]["question_type"], as_text(row["gold_answers"][-1])
            asked[row["user_id"]].append(_reply(row["id"], kind, text, choices, letter))
        for user, questions in asked.items():
            texts = (one["content"] for one in record["documents"] if one["user_id"] == user)
            blocks = [part for text in texts for part in _BLOCK.split(text)[1:]]
            yield user[:12], zip(map(str.lower, blocks[::2]), blocks[1::2], strict=True), questions


def _persona_files(path: Path) -> _Persona:
    (contexts,) = files_of(path, path.name.replace("questions", "shared_contexts").replace(".csv", ".jsonl"))
    whole = {key: rows(said) for one in entries(contexts) for key, said in one.items()}
    asked = defaultdict[tuple[str, int], list[Question]](list)
    for row in entries(path, ("user_question_or_message",)):
        text, letter = row["user_question_or_message"], row["correct_answer"].strip("() ")
        choices = ast.literal_eval(row["all_options"])
        one = _reply(row["question_id"], row["question_type"], text, choices, letter)
        asked[row["shared_context_id"], int(row["end_index_in_shared_context"])].append(one)
    for (context, end), questions in asked.items():
        said = [(role_of(one["role"])[0], one["content"]) for one in whole[context][:end]]
        yield f"{context[:12]}-{end}", said, questions


def _reply(name: str, kind: str, text: str, choices: Iterable[str], letter: str) -> Question:
    told = tuple(map(as_text, choices))
    right = next((one for one in told if one.startswith(f"({letter})")), "")
    said, kind = _SPEAKER.sub("", text).strip(), kind.replace("_", " ")
    return Question(name, said, kind, (letter, right), scored=False, kind="", choices=told)


# ── PrecisionMemBench ───────────────────────────────────────────────────────────────────────────

_FIXTURES = ("beliefs.seed.json", "retrieval.cases.json", "session-retrieval.cases.json")
_USER, _CAP = "test-user", 20


def precisionmembench(path: Path) -> Iterator[Case]:
    """What a memory must find, and what it must not (PrecisionMemBench, 2026): the folder fixtures/ of its
    repository, or one JSON file of `beliefs`, `cases` and `session_cases`.

    Every turn of a session is asked of the beliefs as they are then: some are made or changed on the way.
    """
    if path.is_dir():
        parts = [list(entries(file)) for file in files_of(path, *_FIXTURES)]
    else:
        fields = ("beliefs", "cases", "session_cases")
        parts = [one[field] for one in entries(path, fields) for field in fields]
    known: dict[str, Json] = {one["_id"]: one for one in parts[0]}
    by_user = defaultdict[str, list[Json]](list)
    for row in parts[1]:
        by_user[row.get("userId", _USER)].append(row)
    for user, some in by_user.items():
        yield _beliefs(known, user, some, path)
    some = []
    for name, row in [(one["caseId"], row) for one in parts[2] for row in one["turns"]]:
        told = {"caseId": f"{name}-{row['turnIndex']}", "category": "session", "query": row["userMessage"]}
        some.append({**told, **row})
        made, update = row.get("createBeliefAtTurn"), row.get("updateBeliefAtTurn")
        if made or update:
            yield _beliefs(known, _USER, some, path)
            some = []
        if made:
            known[made["_id"]] = made
        if update:
            old = known[update["beliefId"]]
            known[old["_id"]] = {**old, "aliases": [*old["aliases"], *update.get("addAliases", ())]}
    if some:
        yield _beliefs(known, _USER, some, path)


def _beliefs(known: Mapping[str, Json], user: str, asked: Sequence[Json], path: Path) -> Case:
    mine = {key: one for key, one in known.items() if one["user_id"] == user}
    texts = {
        key: " ".join([one["canonical_name"], *one["aliases"], one["content"], one["why_it_matters"]])
        for key, one in mine.items()
    }
    said = [
        Turn(text, time=mine[key]["created_at"][:10], session=key, turn=key) for key, text in texts.items()
    ]
    questions = tuple(
        Question(row["caseId"], row["query"], row["category"], (), kind="", about={**row, "beliefs": mine})
        for row in asked
    )
    return Case(questions[0].id, turns(said, path) if said else (), questions)


def precise(case: Case, question: Question, found: Sequence[Found]) -> dict[str, float]:
    """Score what was found as the data set's adapter and runner do: pinned beliefs and open questions come
    from its own list, relations bring their participants, and the budget cuts.

    "pass": whether all holds that the case asks for; "active pass": of those that want something found;
    "precision"; "drift": of a session's turn the share that it does not want.
    """
    row, mine = question.about, question.about["beliefs"]
    scope, cap = set(row["scope"]), row.get("budget", {}).get("maxBeliefs", _CAP)
    near = {key: one for key, one in mine.items() if scope & set(one["scope"])}
    live = {key: one for key, one in near.items() if one["pinned"] and not one["resolved_at"]}
    asking = {key for key, one in live.items() if one["type"] == "open_question"}
    pinned = [key for key, one in live.items() if key not in asking and not one["superseded_by"]]
    hits = dict.fromkeys(turn for item in found for turn in item.turns if turn in mine and turn not in pinned)
    shown = list(hits)[:cap] if question.text.strip() else []
    more = [key for hit in shown for key in mine[hit].get("participants") or () if key in near]
    more = [key for key in more if key not in (*shown, *pinned)]
    pinned = pinned[:cap]
    relevant = set([*shown, *more][: cap - len(pinned)])
    wanted = row["expect"]
    only = wanted.get("relevantBeliefs", {}).get("shouldOnlyInclude")
    passed = only is None or relevant == set(only)
    passed &= not {*relevant, *pinned} & {*wanted.get("noiseCheck", {}).get("mustNotSurface", ())}
    told = {"relevantBeliefs": {*relevant, *pinned}, "pinnedFacts": {*pinned}, "openQuestions": asking}
    for part, keys in told.items():
        passed &= {*wanted.get(part, {}).get("mustInclude", ())} <= keys
        passed &= not {*wanted.get(part, {}).get("mustExclude", ())} & keys
    right, scores = relevant & set(only or ()), {"pass": float(passed)}
    if relevant or only:
        scores["precision"] = len(right) / max(len(relevant), 1)
    if only:
        scores["active pass"] = float(passed)
    if question.category == "session":
        right |= {*pinned} & set(only or ())
        scores["drift"] = 1 - len(right) / len(relevant) if relevant else 0.0
    return scores


# ── notes ───────────────────────────────────────────────────────────────────────────────────────

COLLECTIONS = ("til", "EIPs")
CUTS = (5, 10)


def notes(path: Path, split: str) -> Iterator[Case]:
    """Yield a case for each collection: of an archive, or a folder of archives (notes_til.tar.xz) or of what
    they hold (til/), in the half "dev", or "held" for the questions that no choice may be made by. A turn is
    a block of a note; its id says where that is. UsageError if there are no notes, or one lacks a section of
    a label."""
    asked, found = note_questions(), 0
    for name in COLLECTIONS:
        held = read_notes(path, name)
        found += len(held)
        rows = [row for row in asked if row["split"] == split and row["gold"][0][0].startswith(f"{name}/")]
        if held:
            blocks = (turn for doc, data in held.items() for turn in _blocks(doc, data))
            questions = []
            for row in rows:
                gold = frozenset(_section(held, *label) for label in row["gold"])
                docs = frozenset(place_of(section)[0] for section in gold)
                questions.append(Question(row["id"], row["question"], row["group"], (), gold, docs))
            yield Case(name, tuple(blocks), tuple(questions), held)
    if not found:
        raise UsageError(f"no notes at {path}: give notes_til.tar.xz, notes_EIPs.tar.xz or their folder")


def by_section(case: Case, question: Question, found: Sequence[Found]) -> Mapping[str, float]:
    """Measures by section and by document ("doc …").

    A hit has the sections that its block touches; one without a gold section, or with one that an earlier
    hit had, still takes a place. Documents are ranked by their best hit.
    """
    gold = {section: place_of(section) for section in question.turns}
    ranked: list[str] = []
    docs: list[str] = []
    for rank, item in enumerate(found[: metrics.CUTS[-1]]):
        for doc, lines in map(place_of, item.turns):
            touched = [
                section
                for section, (other, part) in gold.items()
                if other == doc and lines.start < part.stop and part.start < lines.stop
            ]
            ranked += [section for section in touched if section not in ranked] or [f"{rank}"]
            docs.append(doc)
    return {
        **metrics.measures(ranked, question.turns, CUTS),
        "MRR": metrics.reciprocal_rank(ranked, question.turns),
        **metrics.measures(docs, question.sessions, CUTS, "doc "),
        "doc MRR": metrics.reciprocal_rank(dict.fromkeys(docs), question.sessions),
    }


def note_questions() -> list[Mapping[str, Any]]:
    """Return rows with id, split, group, question, gold: path, heading and, of several, which, from 1."""
    text = files(__package__).joinpath("notes.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def read_notes(path: Path, name: str) -> dict[str, bytes]:
    """Return the notes of a collection by path; UsageError if its archive is damaged or leads elsewhere."""
    archive = path if path.is_file() else path / f"notes_{name}.tar.xz"
    found: dict[str, bytes] = {}
    if not archive.is_file():
        below = {file.relative_to(path).as_posix(): file for file in (path / name).rglob("*.md")}
        return {doc: below[doc].read_bytes() for doc in sorted(below)}
    try:
        with tarfile.open(archive, "r:xz") as tar:
            for member in tar:
                if not is_inside(member.name):
                    raise UsageError(f"{archive.name} names a file outside its folder: {member.name!r}")
                if member.isfile() and member.name.endswith(".md") and (file := tar.extractfile(member)):
                    found[member.name] = file.read()
    except (OSError, EOFError, LZMAError, tarfile.TarError) as error:
        raise UsageError(f"{archive.name} is no archive that can be read: {error}") from error
    return {doc: found[doc] for doc in sorted(found) if doc.startswith(f"{name}/")}


def _section(notes: Mapping[str, bytes], doc: str, title: str, ordinal: int = 1) -> str:
    """The lines of a section with those of the sections in it."""
    document = Document.parse(doc, notes.get(doc, b""))
    named = [heading for heading in document.headings if heading.title == title]
    if len(named) < ordinal:
        raise UsageError(f"{doc} has no section {title!r}: the questions are about other notes")
    head = named[ordinal - 1]
    below = (other for other in document.headings if other.line > head.line)
    after = (other.line for other in below if other.level <= head.level)
    return _id(doc, head.line, next(after, len(document.lines) + 1) - 1)


def _blocks(doc: str, data: bytes) -> Iterator[Turn]:
    """The note's path stands where a speaker does, so that baselines know it too."""
    document = Document.parse(doc.removesuffix(".md"), data)
    header = [(1, document.header.end)] if document.header.end else []
    for first, last in (*header, *((part.start_line, part.end_line) for part in partitions(document))):
        text = document.text(first, last)
        yield Turn(text, speaker=document.id, session=doc, turn=_id(doc, first, last))


def _id(doc: str, first: int, last: int) -> str:
    return f"{doc}:{first}-{last}"


def place_of(section: str) -> tuple[str, range]:
    """Return the document and the lines of an id that `_id` made."""
    doc, _, lines = section.rpartition(":")
    first, _, last = lines.partition("-")
    return doc, range(int(first), int(last) + 1)
