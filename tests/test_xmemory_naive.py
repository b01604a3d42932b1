"""xMemory's themes and choices beside a second implementation, of lists and loops (naive_xmemory.py)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from naive_xmemory import Naive
from naive_xmemory import objective as naive_objective
from naive_xmemory import pick as naive_pick
from numpy.typing import NDArray

from infinimem.strategies.xmemory.partition import Change, Memo, Theme, ThemePartition, objective
from infinimem.strategies.xmemory.read import pick
from infinimem.strategies.xmemory.spec import XmemorySettings

CLOSE = 3e-6
"""Of figures that both round to six digits."""


class Stream:
    """Blocks of facts, some of them near to each other, and the thresholds of a run."""

    def __init__(self, seed: int) -> None:
        chance = np.random.default_rng(seed)
        size = int(chance.integers(2, 9))
        centres = chance.normal(size=(int(chance.integers(1, 6)), size))
        count = int(chance.integers(8, 45))
        rows = centres[chance.integers(0, len(centres), count)]
        rows = rows + float(chance.uniform(0.2, 1.2)) * chance.normal(size=(count, size))
        self.rows: NDArray[np.float64] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        attach = float(chance.uniform(0.3, 0.9))
        self.own = XmemorySettings(
            attach=attach,
            attach_room=attach * float(chance.uniform(0.6, 1.0)),
            purity=float(chance.uniform(0.3, 0.95)),
            edge=float(chance.uniform(0.4, 0.95)),
            merge_min=float(chance.uniform(0.4, 0.95)),
            tiny_min=float(chance.uniform(0.2, 0.8)),
            theme_max=int(chance.integers(2, 13)),
            context=int(chance.integers(0, 11)),
        )
        cuts = sorted(chance.choice(range(1, count), min(count - 1, 6), replace=False).tolist())
        names = [f"f{at:02d}" for at in range(count)]
        self.blocks = [names[a:b] for a, b in zip([0, *cuts], [*cuts, count], strict=True)]

    def row(self, name: str) -> NDArray[np.float64]:
        return self.rows[int(name[1:])]


class Ours:
    """Our partition, whose themes are as old as they were made, as those of the other one."""

    def __init__(self, stream: Stream) -> None:
        self.made: dict[str, int] = {}
        self.changes: list[Change] = []
        self.themes: dict[str, Sequence[str]] = {}
        self._stream, self._memo = stream, Memo()

    def _name(self, fact: str) -> str:
        names = (f"T{fact}" if count == 1 else f"T{fact}-{count}" for count in range(1, 1000))
        found = next(name for name in names if name not in self.made)
        self.made[found] = len(self.made)
        return found

    def _older(self, name: str) -> tuple[object, ...]:
        return self.made.get(name, -1), name

    def close(self, block: Iterable[str]) -> None:
        stream = self._stream
        partition = ThemePartition(
            self.themes, stream.row, self._name, self._older, stream.own, (), self._memo
        )
        for fact in block:
            partition.attach(fact)
        partition.split()
        partition.merge()
        self.themes, self.changes = partition.themes, [*self.changes, *partition.changes]

    @property
    def named(self) -> dict[str, Sequence[str]]:
        """The themes by the names that the other one gives them."""
        return {name[1:]: facts for name, facts in self.themes.items()}

    @property
    def log(self) -> list[tuple[Any, ...]]:
        """The changes in the other one's words."""
        return [
            (one.op, one.before[0][1:], len(one.after), one.f_before, one.f_after)
            if one.op == "split"
            else (one.op, *(name[1:] for name in one.before), one.f_after - one.f_before)
            for one in self.changes
        ]


def same(seed: int) -> int:
    """Compare a stream after each of its blocks; how many splits and merges there were."""
    stream = Stream(seed)
    ours, own = Ours(stream), stream.own
    naive = Naive(
        own.attach,
        own.attach_room,
        own.theme_max,
        own.purity,
        own.merge_min,
        own.tiny_min,
        own.context,
        own.edge,
    )
    for block in stream.blocks:
        ours.close(block)
        naive.close([(name, [float(one) for one in stream.row(name)]) for name in block])
        assert ours.named == naive.themes, seed
        rows = [[stream.row(name) for name in facts] for facts in naive.themes.values()]
        f = objective(Theme.of(np.stack(one)) for one in rows)
        assert f == pytest.approx(naive_objective(rows), abs=CLOSE), seed
    expected: list[tuple[Any, ...]] = [
        (op, one, len(parts), *rest) if op == "split" else (op, one, parts, *rest)
        for op, one, parts, *rest in naive.log
    ]
    assert len(ours.log) == len(expected)
    for mine, theirs in zip(ours.log, expected, strict=True):
        assert mine[:3] == theirs[:3] and mine[3:] == pytest.approx(theirs[3:], abs=CLOSE), seed
    return len(expected)


def covered(rows: NDArray[np.float64], knn: int) -> list[dict[int, float]]:
    """What each candidate covers, as reading has it from the index."""
    cosines = np.round(rows @ rows.T, 6)
    found = []
    for at, row in enumerate(cosines):
        others = sorted((one for one in range(len(rows)) if one != at), key=lambda one: (-row[one], one))
        found.append({at: 1.0} | {one: float(row[one]) for one in others[:knn] if row[one] > 0})
    return found


def selected(seed: int) -> Sequence[int]:
    """Compare a choice."""
    chance = np.random.default_rng(seed)
    rows = Stream(seed).rows
    relevance = chance.choice([0.1, 0.2, 0.5, float(chance.random())], len(rows)).tolist()
    budget, knn = int(chance.integers(1, 12)), int(chance.integers(0, 12))
    alpha = float(chance.random())
    kind = "max" if seed % 2 else "total"
    found = pick(relevance, covered(rows, knn), budget, alpha, kind)
    vectors = [[float(one) for one in row] for row in rows]
    assert found == naive_pick(relevance, vectors, budget, alpha, knn, kind), seed
    return found


def test_the_same_themes_splits_and_merges() -> None:
    assert sum(map(same, range(12))) > 12


def test_the_same_choices() -> None:
    assert sum(len(selected(seed)) for seed in range(40)) > 40


@pytest.mark.soak
def test_the_same_over_many_streams() -> None:
    assert sum(map(same, range(500))) > 500
    assert all(map(selected, range(500)))
