"""Data sets that ask for one ability each and mostly need no judge: MemoryAgentBench, PersonaMem and
PrecisionMemBench."""

from __future__ import annotations

import ast
import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

from infinimem.errors import UsageError
from infinimem.evaluation import metrics
from infinimem.evaluation.datasets.dialogues import ABSTENTION, KINDS
from infinimem.evaluation.datasets.reading import (
    as_text,
    by_session,
    by_words,
    entries,
    file_name,
    files_of,
    turns,
)
from infinimem.evaluation.model import Case, Found, Question, Quota
from infinimem.importers.exports import MEMORYAGENTBENCH
from infinimem.importers.fields import Json, moment, role_of, rows
from infinimem.model import Turn

# ── MemoryAgentBench ────────────────────────────────────────────────────────────────────────────

_SOURCES = {
    r"ruler_qa1_\w+": ("SH-QA", "match"),
    r"ruler_qa2_\w+": ("MH-QA", "match"),
    r"eventqa_\w+": ("EventQA", "events"),
    r"longmemeval_s\*?": ("LongMemEval(S*)", "judge"),
    r"icl_(\w+?)_\d+shot\w*": ("MCC", "label"),
    r"recsys_\w+": ("recommendation", "Recall@5"),
    r"infbench_sum\w*": ("summary", "points"),
    r"detective_qa": ("DetQA", "exact"),
    r"factconsolidation_sh_(\w+)": ("single-hop", "match"),
    r"factconsolidation_mh_(\w+)": ("multi-hop", "match"),
}
"""By `metadata.source`: the category of its questions, and how they are scored."""
_KIND = {"match": "plain", "points": "summary"}
_LABEL = re.compile(r"(?m)^(label: *\S+)[^\S\n]*$")
_MOVIE = re.compile(r"^.*/|\([^()]*\)|[>_-]|[\"*]")
_LISTED = re.compile(r"(?:^|\s)\d{1,2}[.)]\s+")


def memoryagentbench(path: Path, quota: Quota, only: str = "") -> Iterator[Case]:
    """The abilities of agents' memories (MemoryAgentBench, 2025), scored by `metadata.source`.

    One of the official files, parquet or JSON, or their folder; recommendations want entity2id.json beside
    them or in the folder above. `only`: how the sources begin that are read; another one is an error.
    """
    times: Counter[str] = Counter()
    folder = path if path.is_dir() else path.parent
    named = [file for file in sorted(folder.glob("*.parquet")) if path.is_dir()] or [path]
    for file in named:
        for record in entries(file, ("context", "questions", "answers"), "MemoryAgentBench"):
            if not MEMORYAGENTBENCH.matches(record):
                raise UsageError(f"{file.name} is not as MemoryAgentBench has it: no text and questions")
            (source,) = MEMORYAGENTBENCH.names(record, "")
            match = next((known for one in _SOURCES if (known := re.fullmatch(one, source))), None)
            if match is None or not source.startswith(only):
                known = ", ".join(
                    (only and f"{only}_…") or one.split("\\")[0].split("(")[0] for one in _SOURCES
                )
                raise UsageError(
                    f"{file.name} has the source {source!r}, which is not scored here: {known} are"
                )
            times[source] += 1
            name = file_name(source if times[source] == 1 else f"{source}-{times[source]}")
            said = turns(_contexts(record, name), file)
            if questions := quota.take(_tasks(record, name, match, said, file)):
                yield Case(name, said, questions)


def _contexts(record: Json, name: str) -> Iterator[Turn]:
    if not name.startswith("longmemeval"):
        text = _LABEL.sub(r"\1\n", record["context"])  # each example a block of its own
        yield from MEMORYAGENTBENCH.turns({**record, "context": text}, name, Counter())
        return
    try:  # times and lists of messages by turns
        parts = rows(ast.literal_eval(record["context"]))
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise UsageError(f"{name} is not as MemoryAgentBench has it: no list of sessions") from error
    for number, (time, messages) in enumerate(zip(parts[::2], parts[1::2], strict=False), 1):
        said, session = moment(str(time).removeprefix("Chat Time:").strip()), f"s{number:03}"
        for position, message in enumerate(rows(messages), 1):
            role, speaker = role_of(message.get("role"))
            yield Turn(str(message.get("content", "")), role, speaker, said, session, f"{session}_{position}")


def _tasks(
    record: Json, name: str, match: re.Match[str], said: Sequence[Turn], path: Path
) -> Iterator[Question]:
    label, measure = _SOURCES[match.re.pattern]
    about, asked = record.get("metadata") or {}, record["questions"]
    answers = rows(record["answers"])
    if len(asked) != len(answers):
        raise UsageError(
            f"{name} in {path.name} is not as MemoryAgentBench has it: not an answer for each question"
        )
    movies = _movies(path) if measure == "Recall@5" else {}
    histories = rows(about.get("haystack_sessions"))
    marked = (
        [_marked(one) for one in histories]
        if len(histories) == len(asked)
        else [frozenset[str]()] * len(asked)
    )
    listed = {
        key: rows(about.get(key)) or [""] * len(asked)
        for key in ("question_types", "question_dates", "question_ids")
    }
    for number, (text, found) in enumerate(zip(asked, answers, strict=True)):
        expected = tuple(map(as_text, found if isinstance(found, list) else [found]))
        if movies:
            expected = tuple(movies[key] for key in expected if key in movies)
        kind, day, known = (listed[key][number] for key in listed)
        category = " ".join([label, *(one for one in match.groups() if one), *([kind] if kind else [])])
        never = str(known).endswith("_abs")
        gold = [turn for turn in said if turn.text in marked[number]]
        yield Question(
            id=f"{name}-q{number}",
            text=str(text),
            category=f"{label} {ABSTENTION}" if never else category,
            expected=expected,
            turns=frozenset(turn.turn for turn in gold if turn.turn),
            sessions=frozenset(turn.session for turn in gold if turn.session),
            asked=moment(day),
            answerable=not never,
            scored=not never and any(turn.role == "user" for turn in gold),
            rubric=tuple(map(as_text, rows(about.get("keypoints")))) if measure == "points" else (),
            kind=KINDS.get(kind, "plain") if measure == "judge" else _KIND.get(measure, ""),
            about={"measure": measure, "movies": tuple(movies.values())},
        )


def _marked(history: Any) -> frozenset[str]:
    """The texts of the messages that hold an answer, however deep the lists that they stand in."""
    if isinstance(history, dict):
        return frozenset({str(history.get("content"))} if history.get("has_answer") else ())
    return frozenset().union(*map(_marked, rows(history)))


def _movies(path: Path) -> dict[str, str]:
    """Names of movies by their ids in the answers."""
    places = [folder / "entity2id.json" for folder in (path.parent, path.parent.parent)]
    file = next((place for place in places if place.is_file()), None)
    if file is None:
        raise UsageError(f"{path.name} has recommendations: put the official entity2id.json beside it")
    ((*pairs,),) = (record.items() for record in entries(file, (), "MemoryAgentBench"))
    return {as_text(number): " ".join(_MOVIE.sub(" ", name).split()) for name, number in pairs}


def found_answers(case: Case, question: Question, found: Sequence[Found]) -> Mapping[str, float]:
    """Whether an expected answer stands in one of the first k texts: "answer@1" and so on; of LongMemEval(S*)
    the measures of LongMemEval."""
    if question.about["measure"] == "judge":
        return by_session(case, question, found)
    if question.about["measure"] != "match":
        return {}
    ranks = (rank for rank, item in enumerate(found) if metrics.holds(item.text, question.expected))
    first = next(ranks, inf)
    return {f"answer@{k}": float(first < k) for k in (1, 5, 10, 50)}


def task_words(question: Question, answer: str) -> Mapping[str, float]:
    """The measure of the question's source; of what a judge grades the measures of words."""
    measure = question.about["measure"]
    return _MEASURES[measure](question, answer) if measure in _MEASURES else by_words(question, answer)


def _match(question: Question, answer: str) -> dict[str, float]:
    """Substring match, and token F1."""
    f1 = metrics.best(metrics.token_f1, answer, question.expected)
    return {"match": float(metrics.holds(answer, question.expected)), "F1": f1}


def _exact(question: Question, answer: str) -> dict[str, float]:
    """Whether the answer is an expected one, or the letter of it, without a "label:" before it."""
    told = answer.lower().strip().removeprefix("label:").removeprefix("answer:")
    wanted = {metrics.normal(one) for one in question.expected}
    letters = {one[0].lower() for one in question.expected if re.match(r"[A-Za-z][.)]", one)}
    return {"exact": float(metrics.normal(told) in wanted or told.strip(" .()") in letters)}


def _recommended(question: Question, answer: str) -> dict[str, float]:
    """Of the movies wanted the share among the first five named, each taken for the nearest known by edits."""
    from nltk.metrics.distance import edit_distance

    split = (
        _LISTED.split(answer)
        if _LISTED.search(answer)
        else re.split("\n" if "\n" in answer.strip() else ",", answer)
    )
    named = [name for part in split if (name := " ".join(_MOVIE.sub(" ", part).split()).lower())]
    known = {movie.lower(): movie for movie in question.about["movies"]}
    taken = set()
    for name in named[:5]:
        best, least = name if name in known else "", inf if name not in known else 0
        for other in sorted(known, key=lambda movie: abs(len(movie) - len(name))):
            if abs(len(other) - len(name)) >= least:
                break
            if (distance := edit_distance(name, other)) < least:
                best, least = other, distance
        taken.add(known[best])
    return {"Recall@5": sum(movie in taken for movie in question.expected) / max(len(question.expected), 1)}


_MEASURES: Mapping[str, Callable[[Question, str], dict[str, float]]] = {
    "match": _match,
    "events": lambda question, answer: {
        "match": float(all(one.lower() in answer.lower() for one in question.expected))
    },
    "label": _exact,
    "exact": _exact,
    "Recall@5": _recommended,
}

# ── PersonaMem ──────────────────────────────────────────────────────────────────────────────────

_SPOKEN = re.compile(r"\n*(?=^\[(?:SYSTEM|USER|ASSISTANT)\] )", re.MULTILINE)
_NAMED = re.compile(r"(?:User|Assistant|System): ?")
_CHOICE = re.compile(r"(?m)^(?=\([a-z]\) )")
_WHO = re.compile(r"\AUser: [^\n]*\n\n")


def personamem(path: Path, quota: Quota) -> Iterator[Case]:
    """What a person told of themselves, and which of four replies suits them (Jiang and others, 2025).

    questions_SIZE.csv beside shared_contexts_SIZE.jsonl, or one JSON file of `documents` and `queries`.
    Memory is asked what the user says, without the replies.
    """
    for name, spoken, asked in (_persona_files if path.suffix == ".csv" else _persona_packed)(path):
        if questions := quota.take(asked):
            yield Case(file_name(name), turns(_persona_turns(spoken), path), questions)


def _persona_packed(path: Path) -> Iterator[tuple[str, list[tuple[str, str]], list[Question]]]:
    for record in entries(path, ("documents", "queries"), "PersonaMem"):
        for user in dict.fromkeys(one["user_id"] for one in record["documents"]):
            texts = [one["content"] for one in record["documents"] if one["user_id"] == user]
            blocks = [block for text in texts for block in _SPOKEN.split(text) if block.strip()]
            spoken = [(role, text) for role, _, text in (block[1:].partition("] ") for block in blocks)]
            asked = []
            for row in record["queries"]:
                if row["user_id"] == user:
                    text, *choices = _CHOICE.split(row["query"])
                    letter = as_text(row["gold_answers"][-1])
                    asked.append(_reply(row["id"], row["meta"]["question_type"], text, choices, letter))
            yield user[:12], spoken, asked


def _persona_files(path: Path) -> Iterator[tuple[str, list[tuple[str, str]], list[Question]]]:
    (contexts,) = files_of(path, path.name.replace("questions", "shared_contexts").replace(".csv", ".jsonl"))
    whole = {key: rows(said) for one in entries(contexts, (), "PersonaMem") for key, said in one.items()}
    asked: dict[tuple[str, int], list[Question]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            try:
                place = row["shared_context_id"], int(row["end_index_in_shared_context"])
                choices, letter = ast.literal_eval(row["all_options"]), row["correct_answer"].strip("() ")
                text = row["user_question_or_message"]
                one = _reply(row["question_id"], row["question_type"], text, choices, letter)
                asked.setdefault(place, []).append(one)
                whole[place[0]]
            except (KeyError, ValueError, SyntaxError) as error:
                raise UsageError(
                    f"{path.name} is not as PersonaMem has it ({error}): give the official file"
                ) from error
    for (context, end), questions in asked.items():
        spoken = [(as_text(one.get("role")), str(one.get("content"))) for one in whole[context][:end]]
        yield f"{context[:12]}-{end}", spoken, questions


def _reply(name: str, kind: str, text: str, choices: Iterable[str], letter: str) -> Question:
    told = tuple(as_text(one) for one in choices)
    right = next((one for one in told if one.startswith(f"({letter})")), "")
    said = _NAMED.sub("", _WHO.sub("", text), count=1).strip()
    return Question(name, said, kind.replace("_", " "), (letter, right), scored=False, kind="", choices=told)


def _persona_turns(spoken: Iterable[tuple[str, str]]) -> Iterator[Turn]:
    """Each session begins with what the assistant knows of the person."""
    session = 0
    for number, (named, text) in enumerate(spoken):
        role, _ = role_of(named)
        session += role == "system" or not number
        yield Turn(_NAMED.sub("", text, count=1), role, session=f"s{session:03}", turn=f"{number}")


# ── PrecisionMemBench ───────────────────────────────────────────────────────────────────────────

_USER, _CAP = "test-user", 20
Belief = Mapping[str, Any]


def precisionmembench(path: Path, quota: Quota) -> Iterator[Case]:
    """What a memory must find, and what it must not (PrecisionMemBench, 2026): the folder fixtures/ of its
    repository, or one JSON file of `beliefs`, `cases` and `session_cases`.

    Every turn of a session is asked of the beliefs as they are then: some are made or changed on the way.
    """
    if path.is_dir():
        names = ("beliefs.seed.json", "retrieval.cases.json", "session-retrieval.cases.json")
        beliefs, cases, sessions = (
            list(entries(file, (), "PrecisionMemBench")) for file in files_of(path, *names)
        )
    else:
        (whole,) = entries(path, ("beliefs", "cases", "session_cases"), "PrecisionMemBench")
        beliefs, cases, sessions = whole["beliefs"], whole["cases"], whole["session_cases"]
    known = {one["_id"]: one for one in beliefs}
    for user in dict.fromkeys(one.get("userId", _USER) for one in cases):
        some = [one for one in cases if one.get("userId", _USER) == user]
        yield from _state(
            known,
            user,
            user,
            [(one["caseId"], one["category"], one["query"], one) for one in some],
            quota,
            path,
        )
    asked: list[tuple[str, str, str, Json]] = []
    for session in sessions:
        for turn in session["turns"]:
            asked.append((f"{session['caseId']}-{turn['turnIndex']}", "session", turn["userMessage"], turn))
            made, update = turn.get("createBeliefAtTurn"), turn.get("updateBeliefAtTurn")
            if made or update or turn is sessions[-1]["turns"][-1]:
                yield from _state(known, _USER, asked[0][0], asked, quota, path)
                asked = []
            if made:
                known[made["_id"]] = made
            if update:
                old = known[update["beliefId"]]
                known[old["_id"]] = {**old, "aliases": [*old["aliases"], *update.get("addAliases", ())]}


def _state(
    known: Mapping[str, Belief],
    user: str,
    name: str,
    asked: Iterable[tuple[str, str, str, Json]],
    quota: Quota,
    path: Path,
) -> Iterator[Case]:
    mine = {key: one for key, one in known.items() if one["user_id"] == user}
    said = [
        Turn(
            " ".join([one["canonical_name"], *one["aliases"], one["content"], one["why_it_matters"]]),
            time=one["created_at"][:10],
            session=key,
            turn=key,
        )
        for key, one in mine.items()
    ]
    questions = quota.take(
        Question(key, query, category, (), scored=False, kind="", about={"row": row, "beliefs": mine})
        for key, category, query, row in asked
    )
    if questions:
        yield Case(file_name(name), turns(said, path) if said else (), questions)


def precise(case: Case, question: Question, found: Sequence[Found]) -> dict[str, float]:
    """Score what was found as the data set's adapter and runner do: pinned beliefs and open questions come
    from its own list, relations bring their participants, and the budget cuts.

    "pass": whether all holds that the case asks for; "active pass": of those that want something found;
    "precision"; "drift": of a session's turn the share that it does not want.
    """
    row, mine = question.about["row"], question.about["beliefs"]
    scope, cap = set(row["scope"]), row.get("budget", {}).get("maxBeliefs", _CAP)
    live = [
        one for one in mine.values() if one["pinned"] and not one["resolved_at"] and scope & set(one["scope"])
    ]
    asking = {one["_id"] for one in live if one["type"] == "open_question"}
    pinned = [one["_id"] for one in live if one["_id"] not in asking and not one["superseded_by"]]
    hits = dict.fromkeys(turn for item in found for turn in item.turns if turn in mine and turn not in pinned)
    shown = list(hits)[:cap] if question.text.strip() else []
    more = [key for hit in shown for key in mine[hit].get("participants") or () if key in mine]
    more = [key for key in more if key not in (*shown, *pinned) and scope & set(mine[key]["scope"])]
    pinned = pinned[:cap]
    relevant = set([*shown, *more][: cap - len(pinned)])
    told = {"relevantBeliefs": {*relevant, *pinned}, "pinnedFacts": {*pinned}, "openQuestions": asking}
    wanted = row["expect"]
    only = wanted.get("relevantBeliefs", {}).get("shouldOnlyInclude")
    passed = only is None or relevant == set(only)
    passed &= not told["relevantBeliefs"] & {*wanted.get("noiseCheck", {}).get("mustNotSurface", ())}
    for part, keys in told.items():
        passed &= {*wanted.get(part, {}).get("mustInclude", ())} <= keys
        passed &= not {*wanted.get(part, {}).get("mustExclude", ())} & keys
    scores = {"pass": float(passed)}
    if relevant or only:
        scores["precision"] = len(relevant & set(only or ())) / max(len(relevant), 1)
    if only:
        scores["active pass"] = float(passed)
    if question.category == "session":
        right = len((relevant | {*pinned}) & set(only or ()))
        scores["drift"] = 1 - right / len(relevant) if relevant else 0.0
    return scores
