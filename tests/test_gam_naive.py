"""GAM beside a second implementation of it, which knows lists and loops alone (naive_gam.py)."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gam_library import model, store, topics
from naive_gam import RELATIONS, Naive, Vector, cosine, score

from infinimem import Turn, open_memory, tokens
from infinimem.memory import Memory

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

    def embed(self, texts: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
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
    found, graph = topics(memory), store(memory).graph
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
    assert sum(same(seed, tmp_path / str(seed)) for seed in range(12)) > 60


@pytest.mark.soak
def test_the_same_over_many_streams(tmp_path: Path) -> None:
    assert sum(same(seed, tmp_path / str(seed)) for seed in range(500)) > 2000
