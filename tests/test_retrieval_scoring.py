"""Lexical indexes and the one scorer, computed by hand on a tiny corpus."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infinimem.retrieval.lexical import LexicalIndex, MemoryIndex
from infinimem.retrieval.scoring import AROUND_WEIGHT, K1, WHOLE_WEIGHT, Bags, Field, Ranking

Build = Callable[[Sequence[Sequence[str]]], LexicalIndex]


class LexicalIndexContract:
    """What every engine must do; a new one gets a subclass with its own `build`."""

    def build(self, bags: Sequence[Sequence[str]]) -> LexicalIndex:
        raise NotImplementedError

    def test_empty(self) -> None:
        index = self.build([])
        assert len(index) == 0
        assert index.candidates(["a"], 5) == []

    def test_pieces_without_terms(self) -> None:
        index = self.build([[], []])
        assert len(index) == 2
        assert index.candidates(["a"], 1) == []

    def test_one_piece(self) -> None:
        assert self.build([["a", "b"]]).candidates(["b"], 5) == [0]

    def test_only_pieces_that_hold_a_term_by_position(self) -> None:
        index = self.build([["a"], ["b", "a"], ["c"], ["b"]])
        assert index.candidates(["b", "x", "a", "b"], 10) == [0, 1, 3]
        assert index.candidates([], 10) == []
        assert index.candidates(["x"], 10) == []

    def test_the_likeliest_when_there_are_too_many(self) -> None:
        index = self.build([["a"], ["a", "b"], ["a"], ["b", "a"], ["c"]])
        assert index.candidates(["a", "b"], 2) == [1, 3]

    def test_ties_go_to_the_lower_position(self) -> None:
        index = self.build([["a"]] * 5 + [["b"]] * 5)
        assert index.candidates(["a"], 3) == [0, 1, 2]

    @given(st.lists(st.lists(st.sampled_from("abcd"), max_size=6), max_size=12), st.integers(1, 12))
    def test_candidates_hold_a_term_and_none_is_forgotten(self, bags: list[list[str]], limit: int) -> None:
        holders = [at for at, bag in enumerate(bags) if {"a", "b"} & set(bag)]
        found = self.build(bags).candidates(["a", "b"], limit)
        assert set(found) <= set(holders)
        assert found == sorted(found)
        assert len(found) == min(limit, len(holders))


class TestMemoryIndex(LexicalIndexContract):
    def build(self, bags: Sequence[Sequence[str]]) -> LexicalIndex:
        return MemoryIndex(bags)


def test_bm25_by_hand() -> None:
    field = Field([["cat", "cat", "dog"], ["dog"]], b=0.5)
    # mean length 2; "cat" is in one of two bags, "dog" in both.
    cat, dog = math.log(1 + 1.5 / 1.5), math.log(1 + 0.5 / 2.5)
    norm = K1 * (0.5 + 0.5 * 3 / 2)
    expected = cat * 2 * (K1 + 1) / (2 + norm) + dog * 1 * (K1 + 1) / (1 + norm)
    assert field.score(["cat", "dog", "bird"], 0) == pytest.approx(expected)
    assert field.score(["cat"], 1) == 0
    assert field.score(["dog"], 1) == pytest.approx(dog * (K1 + 1) / (1 + K1 * (0.5 + 0.5 / 2)))


def test_a_score_adds_what_is_around_and_the_whole() -> None:
    pieces = [Bags(("easel",), ("paint",), "s1"), Bags(("tram",), (), "s2")]
    ranking = Ranking(pieces, {"s1": ["easel", "paint"], "s2": ["tram"]})
    own = math.log(1 + 1.5 / 1.5) * (K1 + 1) / (1 + K1)
    around = math.log(1 + 1.5 / 1.5) * (K1 + 1) / (1 + K1 * (0.5 + 0.5 * 1 / 0.5))
    whole = math.log(1 + 1.5 / 1.5) * (K1 + 1) / (1 + K1 * (0.5 + 0.5 * 2 / 1.5))
    ((position, score),) = ranking.best(["easel"])
    assert position == 0
    assert score == pytest.approx(own + WHOLE_WEIGHT * whole, abs=1e-4)
    ((position, score),) = ranking.best(["paint"])
    assert position == 0
    assert score == pytest.approx(AROUND_WEIGHT * around + WHOLE_WEIGHT * whole, abs=1e-4)


def test_ties_keep_the_order_of_positions() -> None:
    ranking = Ranking([Bags(("a",)), Bags(("b",)), Bags(("a",))])
    assert [position for position, _ in ranking.best(["a"])] == [0, 2]


def test_nothing_to_rank() -> None:
    assert Ranking([]).best(["a"]) == []
    assert Ranking([Bags(())]).best(["a"]) == []
    assert Ranking([Bags(("a",))]).best([]) == []


def test_a_term_in_every_piece_still_counts_for_something() -> None:
    ranking = Ranking([Bags(("ana", "moved")), Bags(("ana",))])
    assert all(score > 0 for _, score in ranking.best(["ana"]))
