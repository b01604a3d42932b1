"""GAM beside a second implementation of it: its triggers, cuts, relations and score, as plainly as possible.

Written from sections 0.1, 5.1, 5.3 and 5a of the design and sections 3.3 and 3.4 and appendix A of the paper.
Readings chosen where those are silent:

* A session ends when a turn of another one arrives, and a pause when the turn after it does: both are dealt
  with before that turn is active. Overflow (more tokens than the limit) is looked at once it is.
* SEGMENT is asked whenever there are active turns, even a single one. A window starts 55 turns after the one
  before, and the last reaches the end. Cuts of all windows count, but none before a window's first turn and
  none before a turn that it does not show.
* Where overflow ends the tail as well, only the tail's topic is forced: the others end at cuts.
* The neighbour of a forced cut is the topic that the very next turn begins, if its session is the same. The
  forced topic comes last among its candidates, as a sixth, unless it is one of the five nearest anyhow.
* Segments become topics one after the other, so the earlier ones of a trigger are candidates for the later.
  Of equally near topics the older one is nearer. A topic without candidates is not related.
* RELATE's first word on a candidate counts. Unknown candidates and relations are dropped as "unrelated" is.
* An edge's weight is the confidence as given. With fewer than ten events c_10 is the lowest cosine.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gam_library import model, store, topics

from infinimem import Turn, open_memory, tokens
from infinimem.memory import Memory

Vector = Sequence[float]

WINDOW, SHARED, NEAREST = 60, 5, 5
RELATIONS = ("support", "contradict", "causal", "coreference", "semantic")


def cosine(one: Vector, other: Vector) -> float:
    """The cosine of two unit vectors, rounded so that equal ones compare as equal."""
    return round(sum(a * b for a, b in zip(one, other, strict=True)), 6)


def score(
    cosines: Sequence[float],
    time: Sequence[bool],
    role: Sequence[bool],
    verified: Sequence[bool],
    betas: tuple[float, float, float] = (1.4, 1.4, 1.2),
) -> list[float]:
    """Eq. 11: how near each event is, times a factor for each of time, role and confidence that holds."""
    best = sorted(cosines, reverse=True)[:10]
    scores = []
    for i, nearness in enumerate(cosines):
        likely = 1 / (1 + exp(-(nearness - best[-1]) / 0.05))
        scores.append(likely * betas[0] ** time[i] * betas[1] ** role[i] * betas[2] ** verified[i])
    return scores


@dataclass
class Heard:
    """A turn that is in no topic yet."""

    name: str
    session: str
    minute: float
    tokens: int


class Naive:
    """Keeps turns active until a trigger makes topics of them."""

    def __init__(
        self,
        limit: int,
        gap_minutes: float,
        cut: Callable[[list[str]], list[str]],
        tau: float = 0.5,
        *,
        relate: Callable[[str, list[str]], list[tuple[str, str, float]]],
        vector: Callable[[tuple[str, ...]], Vector],
    ) -> None:
        self.limit, self.gap_minutes, self.tau = limit, gap_minutes, tau
        self.cut, self.relate, self.vector = cut, relate, vector
        self.turns: list[Heard] = []
        self.topics: dict[str, list[str]] = {}  # by age
        self.vectors: dict[str, Vector] = {}
        self.forced: set[str] = set()
        self.edges: set[tuple[str, str, str, float]] = set()
        self.log: list[tuple[object, ...]] = []
        self.broken_off: Heard | None = None  # first turn of a forced topic, until another topic follows

    @property
    def active(self) -> list[str]:
        """Names of the turns that are in no topic yet."""
        return [turn.name for turn in self.turns]

    def hear(self, name: str, session: str, minute: float, tokens: int) -> None:
        """Take one turn, and deal with whatever it ends."""
        if self.turns and self.turns[-1].session != session:
            self.end()
        if self.turns and minute - self.turns[-1].minute >= self.gap_minutes:
            self._take(self._segments(), tail_stays=True)
        self.turns.append(Heard(name, session, minute, tokens))
        if sum(turn.tokens for turn in self.turns) > self.limit:
            segments = self._segments()
            tail = segments[-1]
            forced = len(segments) == 1 or sum(turn.tokens for turn in tail) > self.limit
            self._take(segments, tail_stays=not forced)
            if forced:
                self.forced.add(tail[0].name)
                self.broken_off = tail[0]

    def end(self) -> None:
        """Make topics of all that is active."""
        if self.turns:
            self._take(self._segments(), tail_stays=False)

    def _segments(self) -> list[list[Heard]]:
        """The active turns, cut where SEGMENT says that a subject ends."""
        names = self.active
        cuts: set[str] = set()
        # A window that would show shared turns alone is not opened.
        for start in range(0, max(len(names) - SHARED, 1), WINDOW - SHARED):
            shown = names[start : start + WINDOW]
            self.log.append(("cut", *shown))
            cuts.update(name for name in self.cut(shown) if name in shown[1:])
        segments: list[list[Heard]] = [[]]
        for turn in self.turns:
            if turn.name in cuts:
                segments.append([])
            segments[-1].append(turn)
        return segments

    def _take(self, segments: list[list[Heard]], tail_stays: bool) -> None:
        """Make topics of the segments; the last may stay active instead."""
        self.turns = segments.pop() if tail_stays else []
        for segment in segments:
            self._topic(segment)

    def _topic(self, segment: list[Heard]) -> None:
        """Make a topic of the turns and relate it to older ones."""
        new, names = segment[0].name, [turn.name for turn in segment]
        vector = self.vector(tuple(names))
        candidates = sorted(self.topics, key=lambda old: -cosine(vector, self.vectors[old]))[:NEAREST]
        before, self.broken_off = self.broken_off, None
        if before and before.session == segment[0].session and before.name not in candidates:
            candidates.append(before.name)
        self.topics[new], self.vectors[new] = names, vector
        if not candidates:
            return
        self.log.append(("relate", new, *candidates))
        answered: set[str] = set()
        for old, relation, confidence in self.relate(new, list(candidates)):
            if old in candidates and old not in answered and relation in RELATIONS and confidence > self.tau:
                self.edges.add((new, old, relation, confidence))
            answered.add(old)


# ── beside ours ─────────────────────────────────────────────────────────────────────────────────────

SIZE = 4
TURNS = 60
START = 10 * 60
"""Minute of the day on which the first turn is said."""


class Said:
    """An embedder of random vectors: where a text lies hangs on the names ("#n") in it."""

    name = f"said {SIZE}"
    size = SIZE
    semantic = False

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def vector(self, names: tuple[str, ...]) -> Vector:
        chance = random.Random(f"{self._seed}:{names}")
        row = np.array([chance.gauss(0, 1) for _ in range(SIZE)])
        return [float(value) for value in (row / np.linalg.norm(row)).astype(np.float32)]

    def embed(self, texts: Sequence[str], kind: str = "passage") -> np.ndarray[Any, np.dtype[np.float32]]:
        rows = [self.vector(tuple(re.findall(r"#\d+", text))) for text in texts]
        return np.array(rows, np.float32).reshape(len(texts), SIZE)


class Stream:
    """Turns of sessions, and replies that hang on the names of turns alone."""

    def __init__(self, seed: int) -> None:
        chance = random.Random(seed)
        self.seed = seed
        self.limit = chance.randrange(40, 400)
        self.gap = chance.choice((10, 30))
        self.tau = chance.choice((0.3, 0.5, 0.7))
        self.cutting = chance.uniform(0.05, 0.4)
        self.turns: list[tuple[str, int, str]] = []
        session, minute = 0, START
        for number in range(TURNS):
            session += chance.random() < 0.08
            minute += chance.choice((0, 1, 2, 9, 10, 29, 30, 31)) if chance.random() < 0.3 else 0
            words = "word " * (chance.randrange(3, 60) if chance.random() < 0.95 else 500)
            when = "on 3 May 2023 " if chance.random() < 0.3 else ""
            self.turns.append((f"s{session}", minute, f"#{number} {when}{words}".strip()))

    def chance(self, *names: object) -> random.Random:
        return random.Random(f"{self.seed}:{names}")

    def cut(self, shown: Sequence[str]) -> list[str]:
        """Some of the names, the first among them, which cuts nothing, and one that is made up."""
        return [name for name in shown if self.chance("cut", name).random() < self.cutting] + ["#999"]

    def relate(self, new: str, others: Sequence[str]) -> list[tuple[str, str, float]]:
        chance = self.chance("relate", new)
        words = (*RELATIONS, "unrelated", "loves")
        rows = [(other, chance.choice(words), round(chance.random(), 2)) for other in others]
        return [*rows, *rows[:1], ("#999", "causal", 1.0)] if chance.random() < 0.8 else rows[1:]


def naive(stream: Stream) -> Naive:
    found = Naive(
        stream.limit,
        stream.gap,
        stream.cut,
        stream.tau,
        relate=stream.relate,
        vector=Said(stream.seed).vector,
    )
    for number, (session, minute, text) in enumerate(stream.turns):
        found.hear(f"#{number}", session, minute, tokens.count(text))
    return found


def name_of(turn: Mapping[str, Any]) -> str:
    return re.findall(r"#\d+", turn["text"])[0]


def ours(stream: Stream, root: Path) -> tuple[Memory, list[tuple[str, ...]]]:
    """The library of a stream, and what was asked for it."""
    log: list[tuple[str, ...]] = []

    def segment(variables: Mapping[str, Any]) -> Any:
        ids = {name_of(turn): turn["id"] for turn in variables["turns"]}
        log.append(("cut", *ids))
        return {"cuts": [{"before": ids.get(name, "0"), "reason": ""} for name in stream.cut(list(ids))]}

    def tell(variables: Mapping[str, Any]) -> Any:
        return {"keywords": [], "summary": " ".join(map(name_of, variables["turns"]))}

    def relate(variables: Mapping[str, Any]) -> Any:
        (new, *_), ids = variables["topic"]["summary"].split(), {}
        for other in variables["others"]:
            ids[other["summary"].split()[0]] = other["id"]
        log.append(("relate", new, *ids))
        rows = stream.relate(new, list(ids))
        return {
            "relations": [
                {"id": ids.get(name, "99"), "relation": word, "confidence": sure} for name, word, sure in rows
            ]
        }

    values = {"active_tokens": stream.limit, "gap_minutes": stream.gap, "tau": stream.tau, "workers": 1}
    toml = '[gam]\nrerank = "cosine"\n' + "".join(f"{key} = {value}\n" for key, value in values.items())
    root.mkdir()
    (root / "infinimem.toml").write_text(toml)
    llm = model(segment=segment, topic=tell, relate=relate)
    memory = open_memory(root, model=llm, strategy="gam", create=True, embedder=Said(stream.seed))
    memory.observe(
        [
            Turn(text, speaker=speaker, session=session, time=f"2025-01-04T{at // 60:02d}:{at % 60:02d}:00")
            for speaker, (session, at, text) in zip(cycle(("Ann", "Rob")), stream.turns)
        ]
    )
    return memory, log


def same(seed: int, root: Path) -> int:
    """Compare a stream; how many relations there are in it."""
    stream = Stream(seed)
    expected = naive(stream)
    memory, log = ours(stream, root)
    # a turn by itself is cut nowhere, so ours asks nothing of it
    assert log == [call for call in expected.log if call[0] != "cut" or len(call) > 2], seed
    found, graph = topics(memory), store(memory)
    called = {name: f"#{topic.refs[0].seq - 1}" for name, topic in found.items()}
    assert {
        called[name]: [f"#{ref.seq - 1}" for ref in topic.refs] for name, topic in found.items()
    } == expected.topics, seed
    forced = {called[name] for name, topic in found.items() if ("forced", "true") in topic.aux}
    assert forced == expected.forced, seed
    edges = {
        (called[name], called[link.to], link.kind, link.weight)
        for name in found
        for link in graph.links(name)
    }
    assert edges == expected.edges, seed
    assert memory.status()["active"]["turns"] == len(expected.active), seed
    scored(memory, stream)
    return len(edges)


def scored(memory: Memory, stream: Stream) -> None:
    """Compare the scores of all turns for a question."""
    number = stream.chance("question").randrange(TURNS)
    steps = {step.stage: step.found for step in memory.retrieve(f"#{number} When did Rob do it?").trace}
    found, vector = steps["turns"], Said(stream.seed).vector
    asked, at = vector((f"#{number}",)), [int(one.id) - 1 for one in found]
    expected = score(
        [cosine(asked, vector((f"#{one}",))) for one in at],
        ["3 May" in stream.turns[one][2] for one in at],
        [one % 2 == 1 for one in at],
        [True for _ in at],
    )
    scores = [one.score for one in found]
    assert scores == pytest.approx(expected, abs=2e-6), stream.seed
    assert scores == sorted(scores, reverse=True) and len(found) > 9


def test_the_same_topics_relations_and_scores(tmp_path: Path) -> None:
    assert sum(same(seed, tmp_path / str(seed)) for seed in range(4)) > 15


@pytest.mark.soak
def test_the_same_over_many_streams(tmp_path: Path) -> None:
    assert sum(same(seed, tmp_path / str(seed)) for seed in range(500)) > 2000
