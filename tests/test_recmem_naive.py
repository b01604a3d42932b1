"""RecMem beside a second implementation of it: its steps 1 and 2, as plainly as possible.

Written from sections 0.1, 4.1, 4.3 and 5a of the design and from sections 3.2 and 3.3 of the paper; facts
(REFINE) are left out. Where those are silent, it was read like this:

* A threshold is met by a cosine that equals it once both are rounded to six digits.
* Of equally near episodes, as of equally near raw units, the earlier one counts as nearer.
* Only the episode nearest to the unit is put to MERGE. After a "no" no second one is tried.
* A unit looks only at units heard before it, and only at raw ones: in no episode, not left out by EPISODES.
* What EPISODES says about units that it was not shown counts for nothing, nor does a unit's second mention.
* An episode's vector is that of its text as given, even where an earlier episode took some of its units.
* Only episodes that are made are numbered, so the numbers have no gap. Units of an episode stand by time,
  and a merged unit, being the latest, comes last.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from recmem_library import exchange, held, model

from infinimem import open_memory

Vector = Sequence[float]


def cosine(one: Vector, other: Vector) -> float:
    """The cosine of two unit vectors, rounded so that equal ones compare as equal."""
    return round(sum(a * b for a, b in zip(one, other, strict=True)), 6)


@dataclass
class Unit:
    """An exchange that was heard."""

    name: str
    vector: Vector


@dataclass
class Episode:
    """A narrative and the units that it tells of."""

    name: str
    units: list[str]
    vector: Vector


class Naive:
    """Takes ended exchanges one by one: merges each into an episode, or counts what recurs with it."""

    def __init__(
        self,
        theta_sim: float,
        theta_count: int,
        merge: Callable[[str, str], Vector | None],
        make: Callable[[tuple[str, ...]], list[tuple[tuple[str, ...], Vector]]],
    ) -> None:
        self.theta_sim = round(theta_sim, 6)
        self.theta_count = theta_count
        self.merge = merge
        self.make = make
        self.log: list[tuple[str, ...]] = []
        self.episodes: list[Episode] = []
        self.unheard: list[str] = []
        self.raw: list[Unit] = []

    def hear(self, name: str, vector: Vector) -> None:
        """Take one ended exchange through both steps."""
        unit = Unit(name, vector)
        if self._merged(unit):
            return
        recurring = self._recurring(unit)
        self.raw.append(unit)
        if len(recurring) + 1 >= self.theta_count:
            self._consolidate(unit, recurring)

    def _merged(self, unit: Unit) -> bool:
        """Step 1: whether the nearest episode, if it is near enough, takes the unit."""
        nearest: Episode | None = None
        for episode in self.episodes:
            if nearest is None or cosine(unit.vector, episode.vector) > cosine(unit.vector, nearest.vector):
                nearest = episode
        if nearest is None or cosine(unit.vector, nearest.vector) < self.theta_sim:
            return False
        self.log.append(("merge", nearest.name, unit.name))
        merged = self.merge(nearest.name, unit.name)
        if merged is None:
            return False
        nearest.vector = merged
        nearest.units.append(unit.name)
        return True

    def _recurring(self, unit: Unit) -> list[Unit]:
        """Step 2: of the nearest raw units, twice as many as must recur, those that are near enough."""
        # Sorting keeps the order of equals, and raw units stand in the order in which they were heard.
        by_nearness = sorted(self.raw, key=lambda other: -cosine(unit.vector, other.vector))
        nearest = by_nearness[: 2 * self.theta_count]
        return [other for other in nearest if cosine(unit.vector, other.vector) >= self.theta_sim]

    def _consolidate(self, unit: Unit, recurring: list[Unit]) -> None:
        """Make episodes of the unit and what recurs with it; none of these is raw afterwards."""
        names = [other.name for other in [*recurring, unit]]
        cluster = [other.name for other in self.raw if other.name in names]
        self.log.append(("episodes", *cluster))
        taken: list[str] = []
        made = 0
        for named, vector in self.make(tuple(cluster)):
            units = [name for name in cluster if name in named and name not in taken]
            if not units:
                continue
            made += 1
            taken.extend(units)
            self.episodes.append(Episode(f"{unit.name}-{made}", units, vector))
        self.unheard.extend(name for name in cluster if name not in taken)
        self.raw = [other for other in self.raw if other.name not in cluster]


# ── beside ours ─────────────────────────────────────────────────────────────────────────────────────

SIZE = 4
EXCHANGES = 30


class Table:
    """An embedder of numbered vectors: a text lies where the last "#n" in it says."""

    name = f"table {SIZE}"
    size = SIZE
    semantic = False

    def __init__(self, rows: NDArray[np.float32]) -> None:
        self._rows = rows

    def embed(self, texts: Sequence[str], kind: str = "passage") -> NDArray[np.float32]:
        last = [re.findall(r"#(\d+)", text)[-1:] for text in texts]
        rows = [self._rows[int(found[0])] if found else np.zeros(SIZE) for found in last]
        return np.array(rows, np.float32).reshape(len(texts), SIZE)


class Stream:
    """Exchanges, and replies that hang on their names alone."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        chance = np.random.default_rng(seed)
        centres = chance.normal(size=(4, SIZE))
        rows = centres[chance.integers(0, 4, 4 * EXCHANGES)] + 0.5 * chance.normal(size=(4 * EXCHANGES, SIZE))
        self.rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        self.theta = float(chance.uniform(0.7, 0.95))
        self.count = int(chance.integers(2, 6))

    def vector(self, number: int) -> Vector:
        return [float(value) for value in self.rows[number].astype(np.float64)]

    def _chance(self, *names: object) -> random.Random:
        return random.Random(f"{self._seed}:{names}")

    def merged(self, episode: str, unit: str) -> int | None:
        """Where the merged text lies, if it is one."""
        chance = self._chance(episode, unit)
        return chance.randrange(len(self.rows)) if chance.random() < 0.6 else None

    def made(self, cluster: Sequence[str]) -> list[tuple[tuple[str, ...], int]]:
        """Up to three episodes, which may name an exchange twice or leave one out."""
        chance = self._chance(*cluster)
        return [
            (tuple(unit for unit in cluster if chance.random() < 0.6), chance.randrange(len(self.rows)))
            for _ in range(chance.randrange(4))
        ]


def naive(stream: Stream) -> Naive:
    def merge(episode: str, unit: str) -> Vector | None:
        where = stream.merged(episode, unit)
        return None if where is None else stream.vector(where)

    def make(cluster: tuple[str, ...]) -> list[tuple[tuple[str, ...], Vector]]:
        return [(units, stream.vector(where)) for units, where in stream.made(cluster)]

    found = Naive(stream.theta, stream.count, merge, make)
    for number in range(EXCHANGES):
        found.hear(f"u{number}", stream.vector(number))
    return found


def told(turns: Sequence[Mapping[str, Any]]) -> list[str]:
    """The exchanges that a call shows, by the numbers of their vectors."""
    return [f"u{match[1]}" for turn in turns if (match := re.search(r"#(\d+)", turn["text"]))]


def ours(stream: Stream, root: Path) -> tuple[list[tuple[str, ...]], dict[str, list[str]]]:
    """What was asked, and the exchanges of each episode; "" stands for all that none tells."""
    log: list[tuple[str, ...]] = []

    def merge(variables: Mapping[str, Any]) -> Any:
        episode = re.findall(r"episode (u\d+-\d+)", variables["episode"])[0]
        (unit,) = told(variables["turns"])
        log.append(("merge", episode, unit))
        where = stream.merged(episode, unit)
        return {
            "should_merge": where is not None,
            "merged": f"{variables['episode']} Now it lies at #{where}.",
        }

    def make(variables: Mapping[str, Any]) -> Any:
        cluster = told(variables["turns"])
        ids = dict(zip(cluster, (turn["id"] for turn in variables["turns"][::2]), strict=True))
        log.append(("episodes", *cluster))
        left, rows = set(cluster), []
        for units, where in stream.made(cluster):
            if fresh := left.intersection(units):
                rows.append((fresh, f"episode {cluster[-1]}-{len(rows) + 1} lies at #{where}", units))
                left -= fresh
        return {
            "episodes": [{"text": text, "from": [ids[unit] for unit in units]} for _, text, units in rows]
        }

    toml = f"[recmem]\ntheta_sim = {stream.theta}\ntheta_count = {stream.count}\n"
    root.mkdir()
    (root / "infinimem.toml").write_text(toml)
    llm = model(episodes=make, merge_episodes=merge)
    memory = open_memory(root, model=llm, strategy="recmem", create=True, embedder=Table(stream.rows))
    memory.observe([turn for n in range(EXCHANGES) for turn in exchange(f"#{n}", reply="I see.")])
    memory.observe(exchange("So.", "after"))
    assert memory.consolidate() is None  # nothing is raw that could recur
    episodes: dict[str, list[str]] = {}
    for name, seqs in held(memory).items():
        path = next((root / "recmem").rglob(f"{name}.md")).read_text()
        called = re.findall(r"episode (u\d+-\d+)", path)
        episodes.setdefault(called[0] if called else "", []).extend(f"u{(seq - 1) // 2}" for seq in seqs[::2])
    return log, {name: sorted(units) for name, units in episodes.items()}


def same(seed: int, root: Path) -> int:
    """Compare a stream; how often a model was asked of it."""
    stream = Stream(seed)
    expected = naive(stream)
    log, episodes = ours(stream, root)
    assert log == expected.log, seed
    found = {one.name: sorted(one.units) for one in expected.episodes}
    assert episodes == (found | {"": sorted(expected.unheard)} if expected.unheard else found), seed
    return len(log)


def over(seeds: Sequence[int], root: Path) -> int:
    return sum(same(seed, root / str(seed)) for seed in seeds)


def test_the_same_triggers_clusters_and_merges(tmp_path: Path) -> None:
    assert over(range(6), tmp_path) > 12


@pytest.mark.soak
def test_the_same_over_many_streams(tmp_path: Path) -> None:
    assert over(range(500), tmp_path) > 1000
