"""The nouns of a run: what is asked, what was found, what each was worth; and methods as people name them:
`infini-h:markdown_length=1000:feed=turn`."""

from __future__ import annotations

import csv
import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

from infinimem.errors import ImportFormatError, SettingsError, UsageError
from infinimem.model import Turn, Usage
from infinimem.settings import Settings, defaults, parse_settings
from infinimem.spec import Way, spec_of, strategies


@dataclass(frozen=True)
class Question:
    """A question with what is known to answer it.

    Args:
        category: by which results are grouped; `counted`: whether it is in the means over all of them.
        expected: answers, any of which counts; `parts`: of one that is a list.
        turns: ids of the turns that hold the evidence; `sessions`: of their sessions. Both where known.
        asked: ISO date.
        answerable: whether the memory holds an answer.
        scored: whether the data set's own scorer looks at its retrieval.
        rubric: what a good answer says or does, where answers are graded item by item.
        kind: how a judge reads it (prompts/judge_strict.md, judge_rubric.md); "" where none is asked.
        choices: of which the answerer is to name one, each behind its letter; no memory is asked for them.
        about: what else its data set scores it by.
    """

    id: str
    text: str
    category: str
    expected: tuple[str, ...]
    turns: frozenset[str] = frozenset()
    sessions: frozenset[str] = frozenset()
    asked: str | None = None
    counted: bool = True
    answerable: bool = True
    scored: bool = True
    rubric: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    kind: str = "plain"
    choices: tuple[str, ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """A history, as it was said, and the questions to it; of `notes`, by path, `turns` are the blocks."""

    name: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]
    notes: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Found:
    """A piece that a method found, as an answerer is shown it, and the turns that it holds or cites."""

    text: str
    turns: tuple[str, ...]
    tokens: int


@dataclass(frozen=True)
class Ingested:
    """What making a case's library cost and left: tokens of each document, bytes, `written` (methods.py)."""

    method: str
    case: str
    usage: Mapping[str, Usage] = field(default_factory=dict)
    seconds: float = 0.0
    sizes: tuple[int, ...] = ()
    written: Mapping[str, Any] = field(default_factory=dict)
    turns: int = 0
    disk: int = 0


@dataclass(frozen=True)
class Drawn:
    """What a method made of a question, best first, and what that is worth.

    Args:
        answer: None where none was asked for.
        steps: of the reader, as its trace tells them; the last one of an answer names the lines cited.
        failed: why the answerer's reply could not be used (llm/base.py: Failure); it is scored 0.
        scores: by measure, 0 to 1; "tokens to all" counts tokens and is missing where evidence was.
        verdicts: of the judge, raw: {"strict": {"correct": …, "text": …}, …}.
        seconds: of finding and answering, without the judge.
    """

    found: tuple[Found, ...]
    answer: str | None = None
    steps: tuple[Mapping[str, Any], ...] = ()
    failed: str | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    verdicts: Mapping[str, Any] = field(default_factory=dict)
    usage: Mapping[str, Usage] = field(default_factory=dict)
    seconds: float = 0.0


_MISSHAPEN = (
    *(AttributeError, EOFError, LookupError, MemoryError, RecursionError, SyntaxError, TypeError, ValueError),
    *(UnpicklingError, csv.Error),
)
"""What reading a file of another shape comes to."""

Load = Callable[[Path], Iterator[Case]]
Retrieval = Callable[[Case, Question, Sequence[Found]], Mapping[str, float]]
Answered = Callable[[Question, str], Mapping[str, float]]


@dataclass(frozen=True)
class DataSet:
    """A data set with its own rules of scoring.

    Args:
        load: yields the cases of the official file.
        retrieval: returns measures of a ranking, by name ("R@5"); none for a question without known evidence.
        answered: returns measures of an answer that need no judge.
    """

    name: str
    load: Load
    retrieval: Retrieval
    answered: Answered

    def cases(self, path: Path, limit: int | None = None) -> Iterator[Case]:
        """Yield the cases of the official file that have questions among the first `limit` of each category.

        UsageError, in one line, if it is another file."""
        asked = Counter[str]()
        try:
            for case in self.load(path):
                taken = []
                for question in case.questions:
                    asked[question.category] += 1
                    if limit is None or asked[question.category] <= limit:
                        taken.append(question)
                if taken:
                    name = re.sub(r"[^\w.-]+", "_", case.name).strip(".") or "_"
                    yield replace(case, name=name, questions=tuple(taken))
        except ImportFormatError as error:
            raise UsageError(str(error)) from error
        except _MISSHAPEN as error:
            why = str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}"
            told = f"{path.name} is not as {self.name} has it ({why}): give the official file"
            raise UsageError(told) from error


# ── methods ───────────────────────────────────────────────────────────────────────────────────────────


_OURS = tomllib.loads(files("infinimem.strategies").joinpath("bench.toml").read_text("utf-8"))
OWN = {name: Way(**row) for name, row in _OURS["methods"].items()}
OWN |= {name: way for spec in strategies().values() for name, way in spec.methods.items()}
"""The project's own methods, and those of strategies that packages add."""
SHOWS = tomllib.loads(files("infinimem.evaluation").joinpath("measures.toml").read_text("utf-8"))
"""What a report shows of a run's measures."""
BASELINES: Mapping[str, Collection[str]] = SHOWS["baselines"]
"""What they are compared with, each with the settings that it takes."""
NAMES = (*OWN, *BASELINES)

GROUPS: dict[str, Sequence[str]] = _OURS["groups"]
"""Methods that are asked for in one word; strategies that packages add may add to each."""
for _groups in (spec.groups for spec in strategies().values()):
    for _name, _those in _groups.items():
        GROUPS[_name] = (*GROUPS.get(_name, ()), *_those)

_TAKEN = frozenset({"reader.name", "reader.evidence_budget", "reader.retrieve_budget"})
"""What the name of a method says already, and what is the same for all methods of a run."""
_KNOWN = ", ".join((*NAMES, *GROUPS))
LENGTHS = ("answer_words", "answer_sentences")
"""What the answers of any method may be held to; prompts/answer.md says how."""

Groups = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Spec:
    """A method with its settings by group; `embedder` None is the run's, `counts` are what no file says."""

    text: str
    name: str
    settings: Groups
    embedder: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def way(self) -> Way | None:
        return OWN.get(self.name)

    @property
    def draws(self) -> bool:
        return self.way is not None and self.way.draws

    @property
    def linked_by(self) -> str | None:
        """The embedder that the library is made with, where it hangs on one and the method names it."""
        return self.embedder if self.way is not None and spec_of(self.way.strategy).near else None

    @property
    def library(self) -> str:
        """A name that methods with the same library share, fit for a file's."""
        assert self.way is not None
        made = self._making.items()
        settings = (f"{group}.{key}={value}" for group, values in made for key, value in values.items())
        linked = () if self.linked_by is None else (f"embedder={self.linked_by}",)
        first = self.way.strategy if self.draws else self.name
        return re.sub(r"[^\w.=,-]+", "_", ":".join((first, *settings, *linked)))

    @property
    def parsed(self) -> Settings:
        return parse_settings(self.toml().encode(), f"method {self.name}")

    def toml(self, building: bool = False) -> str:
        """An infinimem.toml with the settings, or with those alone under which the library is made."""
        toml = partial(json.dumps, ensure_ascii=False)  # of a number, a truth value and a text the same
        lines = [] if self.way is None else [f"strategy = {toml(self.way.strategy)}"]
        for group, values in (self._making if building else self.settings).items():
            lines += [f"[{group}]", *(f"{key} = {toml(value)}" for key, value in values.items())]
        return "\n".join([*lines, ""])

    @property
    def _making(self) -> Groups:
        made: Groups = {}
        for group, values in sorted(self.settings.items()):
            for key, value in sorted(values.items()):
                own = group in strategies() and key not in strategies()[group].reads
                if own or (group, key) == ("search", "language"):
                    made.setdefault(group, {})[key] = value
        return made


def parse(text: str) -> Spec:
    """Return a method and its settings: a name, and `:key=value` for each; a key is that of infinimem.toml,
    as `group.key` where two groups have it. UsageError, with what there is, if one is unknown."""
    name, *parts = (part.strip() for part in text.strip().split(":"))
    if name not in NAMES:
        raise UsageError(f"no method is called {name!r}; there are {_KNOWN}")
    given: dict[str, str] = {}
    for key, equals, value in (part.partition("=") for part in parts):
        if not (key and equals and value):
            raise UsageError(f"method {text!r}: a setting is written key=value, for example {name}:key=1")
        if key in given:
            raise UsageError(f"method {text!r} has {key} twice; give it once")
        given[key] = value
    way = OWN.get(name)
    preset = spec_of(way.strategy).presets[way.preset] if way and way.preset else {}
    numbers = LENGTHS if name != "dense" else (*LENGTHS, "chunk", "top", "prune")
    counts = {key: _value(given.pop(key)) for key in numbers if key in given}
    if wrong := [key for key, count in counts.items() if type(count) is not int or count < 1]:
        raise UsageError(f"method {text!r}: a number of 1 or more is wanted for {wrong[0]}")
    embedder = given.pop("embedder", None) if way or "embedder" in BASELINES[name] else None
    settings = {group: dict(values) for group, values in preset.items()}
    spec = Spec(":".join((name, *parts)), name, settings, embedder, counts)
    for key, value in given.items():
        group, setting = _place(name, key)
        spec.settings.setdefault(group, {})[setting] = _value(value)
    try:
        spec.parsed  # noqa: B018 - to be told now what does not fit
    except SettingsError as error:
        raise UsageError(str(error)) from error
    return spec


def parse_all(texts: Sequence[str]) -> tuple[Spec, ...]:
    """Return several methods, or for each group the methods that it stands for, its settings behind theirs;
    UsageError for none at all, or one of them twice."""
    found: list[str] = []
    for method in texts:
        name, *settings = method.strip().split(":")
        if name not in GROUPS:
            found.append(method)
            continue
        for member in GROUPS[name]:
            own = {part.partition("=")[0] for part in member.split(":")}
            parts = [*member.split(":"), *(one for one in settings if one.partition("=")[0] not in own)]
            if all(set(parts) != set(other.split(":")) for other in found):
                found.append(":".join(parts))
    specs = tuple(parse(text) for text in found if text.strip())
    if not specs:
        raise UsageError(f"no method is named; there are {_KNOWN}")
    for text, count in Counter(spec.text for spec in specs).items():
        if count > 1:
            raise UsageError(f"method {text!r} is named twice; name it once")
    return specs


def _place(name: str, key: str) -> tuple[str, str]:
    if name not in OWN:
        if key in BASELINES[name]:
            return "search", key
        known = ", ".join(BASELINES[name]) or "it takes none"
        raise UsageError(f"method {name!r} has no setting {key!r}; known here: {known}")
    groups = tuple(f"{group}." for group in (OWN[name].strategy, *spec_of(OWN[name].strategy).takes))
    places = [long.split(".") for long in defaults() if long.startswith(groups) and long not in _TAKEN]
    found = [(group, setting) for group, setting in places if key in (f"{group}.{setting}", setting)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"setting {key!r} is in several groups; write {' or '.join(map('.'.join, found))}")
    known = ", ".join(["embedder", *dict.fromkeys(setting for _, setting in places)])
    raise UsageError(f"method {name!r} has no setting {key!r}; known here: {known}")


def _value(text: str) -> Any:
    try:
        found = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    return found if isinstance(found, bool | int | float) else text
