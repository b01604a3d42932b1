"""The one scorer, computed by hand on a tiny corpus."""

from __future__ import annotations

import math

import numpy as np
import pytest
from in_memory import view_of

from infinimem.retrieval.columns import Builder
from infinimem.retrieval.index import in_memory
from infinimem.retrieval.rows import Rows
from infinimem.retrieval.scoring import (
    AROUND_WEIGHT,
    CONTEXT_B,
    K1,
    OWN_B,
    WHOLE_WEIGHT,
    bm25,
    compared,
    rarity,
    score,
)
from infinimem.settings import SearchSettings, Settings


def test_rarity_by_hand() -> None:
    found = rarity(2, np.array([1.0, 2.0, 0.0]))
    assert found == pytest.approx([math.log(1 + 1.5 / 1.5), math.log(1 + 0.5 / 2.5), math.log(1 + 2.5 / 0.5)])


def test_bm25_by_hand() -> None:
    # Two texts, "cat cat dog" and "dog": mean length 2.
    weights = np.array([0.7, 0.2])
    found = bm25(np.array([[2.0, 1.0], [0.0, 1.0]]), np.array([3.0, 1.0]), 2.0, weights, b=0.5)
    norm = K1 * (0.5 + 0.5 * 3 / 2)
    assert found[0] == pytest.approx(0.7 * 2 * (K1 + 1) / (2 + norm) + 0.2 * (K1 + 1) / (1 + norm))
    assert found[1] == pytest.approx(0.2 * (K1 + 1) / (1 + K1 * (0.5 + 0.5 * 1 / 2)))


def test_a_score_adds_what_is_around_and_the_whole() -> None:
    builder = Builder("entries/live")
    builder.part(1, "a", (0, 0, 0))
    builder.row((1, 1), ["easel"], ["paint"])
    builder.row((2, 2), ["paint"], [])
    builder.part(2, "b", (0, 0, 0))
    builder.row((1, 1), ["tram"], ["paint"])
    rows = Rows([builder.build()], [()])
    every = np.arange(3)
    known = rows.statistics("entries", ["live"], np.zeros(0, dtype=np.int64), ["easel"])
    assert (known.count, known.frequency.tolist()) == (3, [1.0])
    assert (known.own_length, known.around_length, known.whole_length) == (1.0, 2 / 3, 1.5)
    rare = math.log(1 + 2.5 / 1.5)
    own = rare * (K1 + 1) / (1 + K1)
    whole = rare * (K1 + 1) / (1 + K1 * (1 - CONTEXT_B + CONTEXT_B * 2 / 1.5))
    positions, scores, *_ = score(rows, "entries", every, "easel", ["easel"], known, SearchSettings())
    assert positions.tolist() == [0], "no other row says it or stands beside it"
    assert scores.tolist() == pytest.approx([own + WHOLE_WEIGHT * whole], abs=1e-4)

    known = rows.statistics("entries", ["live"], np.zeros(0, dtype=np.int64), ["paint"])
    around = rare * (K1 + 1) / (1 + K1 * (1 - CONTEXT_B + CONTEXT_B * 1 / (2 / 3)))
    positions, scores, *_ = score(rows, "entries", every, "paint", ["paint"], known, SearchSettings())
    assert positions.tolist() == [0, 1, 2]
    assert scores.tolist() == pytest.approx(
        [AROUND_WEIGHT * around + WHOLE_WEIGHT * whole, own + WHOLE_WEIGHT * whole, AROUND_WEIGHT * around],
        abs=1e-4,
    )


def test_a_few_texts_are_compared_with_each_other() -> None:
    scores = compared([[1, 0], [0, 0], [1, 2]], [2, 2, 4])
    assert scores[2] > scores[0] > scores[1] == 0
    assert compared([], []) == []
    assert compared([[], []], [3, 4]) == [0.0, 0.0]
    assert OWN_B < 1


def test_ties_go_by_document_and_line() -> None:
    view = view_of({"b": "one\n", "a": "x\n\n# One\none\n\n# Two\none\n", "c": "two\n"})
    best = in_memory(view).best("blocks", "one", ["one"], "default", 10, 10)
    tied = [place[:2] for place, value in best if value == best[-1][1]]
    assert tied == sorted(tied)


@pytest.mark.parametrize(("newest", "expected"), [(True, [3, 4, 2, 1]), (False, [1, 2, 3, 4])])
def test_of_equal_scores_the_newer_goes_first(newest: bool, expected: list[int]) -> None:
    lines = ("1,time=2023-01-02", "2,time=2024-01-02", "3,time=2024-05-01", "4,time=2024-03-04")
    text = "".join(f"- <seq={line},source=user> Likes tea\n" for line in lines)
    view = view_of({"CURRENT": text}, Settings(search=SearchSettings(newest=newest, dates=False)))
    best = in_memory(view).best("entries", "tea", ["tea"], "default", 9, 9)
    assert [place.seq for place, _ in best] == expected


def test_nothing_to_rank() -> None:
    assert in_memory(view_of({})).best("entries", "a", ["a"], "all", 5, 5) == []
    assert in_memory(view_of({"a": ""})).best("blocks", "a", ["a"], "default", 5, 5) == []
    assert in_memory(view_of({"a": "a\n"})).best("blocks", "", [], "default", 5, 5) == []


def test_a_term_in_every_piece_still_counts_for_something() -> None:
    best = in_memory(view_of({"a": "Ana moved\n", "b": "Ana\n"})).best(
        "blocks", "ana", ["ana"], "default", 5, 5
    )
    assert len(best) == 2
    assert all(value > 0 for _, value in best)
