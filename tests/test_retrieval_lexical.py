"""Both lexical indexes keep one contract."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from infinimem.retrieval.lexical import LexicalIndex, MemoryIndex, key
from infinimem.retrieval.tantivy_index import TantivyIndex

SHELVES = ("both/live", "both/archive")


class LexicalIndexContract:
    """What every engine must do; a new one gets a subclass with its own `build`."""

    def build(self, rows: Sequence[tuple[str, int, Sequence[str]]]) -> LexicalIndex:
        raise NotImplementedError

    def of(self, *bags: Sequence[str]) -> LexicalIndex:
        """An index of rows with keys from 0 on, all of one shelf."""
        return self.build([("both/live", at, bag) for at, bag in enumerate(bags)])

    def ask(self, index: LexicalIndex, terms: Sequence[str], limit: int = 10) -> list[int]:
        return index.candidates(terms, limit, ["both/live"])

    def test_empty(self) -> None:
        assert self.ask(self.of(), ["a"]) == []

    def test_rows_without_terms(self) -> None:
        assert self.ask(self.of([], []), ["a"], 1) == []

    def test_one_row(self) -> None:
        assert self.ask(self.of(["a", "b"]), ["b"]) == [0]

    def test_only_rows_that_hold_a_term_by_key(self) -> None:
        index = self.of(["a"], ["b", "a"], ["c"], ["b"])
        assert self.ask(index, ["b", "x", "a", "b"]) == [0, 1, 3]
        assert self.ask(index, []) == []
        assert self.ask(index, ["x"]) == []
        assert self.ask(index, ["a"], 0) == []

    def test_the_likeliest_when_there_are_too_many(self) -> None:
        assert self.ask(self.of(["a"], ["a", "b"], ["a"], ["b", "a"], ["c"]), ["a", "b"], 2) == [1, 3]

    def test_ties_go_to_the_lower_key(self) -> None:
        assert self.ask(self.of(*[["a"]] * 5, *[["b"]] * 5), ["a"], 3) == [0, 1, 2]

    def test_shelves_are_kept_apart(self) -> None:
        index = self.build([("both/live", 3, ["a"]), ("both/archive", 5, ["a"]), ("both/live", 8, ["a"])])
        assert index.candidates(["a"], 9, ["both/archive"]) == [5]
        assert index.candidates(["a"], 9, SHELVES) == [3, 5, 8]
        assert index.candidates(["a"], 9, []) == []

    def test_terms_of_any_script_and_form(self) -> None:
        index = self.of(["京都", "zoë", "2023-05-08", "c++"], ["it's"])
        for term in ("京都", "zoë", "2023-05-08", "c++"):
            assert self.ask(index, [term]) == [0]
        assert self.ask(index, ["it's"]) == [1]


class TestMemoryIndex(LexicalIndexContract):
    def build(self, rows: Sequence[tuple[str, int, Sequence[str]]]) -> LexicalIndex:
        index = MemoryIndex()
        for row in rows:
            index.add(*row)
        return index


class TestTantivyIndex(LexicalIndexContract):
    def build(self, rows: Sequence[tuple[str, int, Sequence[str]]]) -> LexicalIndex:
        folder = Path(tempfile.mkdtemp())
        writer = TantivyIndex(folder).write()
        for row in rows:
            writer.add(*row)
        writer.commit()
        index = TantivyIndex(folder)
        weakref.finalize(index, shutil.rmtree, folder)
        return index


@pytest.mark.parametrize("engine", [TestMemoryIndex(), TestTantivyIndex()], ids=["memory", "tantivy"])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.lists(st.sampled_from("abcd"), max_size=6), max_size=12), st.integers(1, 12))
def test_candidates_hold_a_term_and_none_is_forgotten(
    engine: LexicalIndexContract, bags: list[list[str]], limit: int
) -> None:
    holders = [at for at, bag in enumerate(bags) if {"a", "b"} & set(bag)]
    found = engine.ask(engine.of(*bags), ["a", "b"], limit)
    assert set(found) <= set(holders)
    assert found == sorted(found)
    assert len(found) == min(limit, len(holders))


def test_a_key_says_the_part_and_the_row() -> None:
    assert key(3, 7) == (3 << 24) + 7


def test_parts_are_deleted_whole_and_readers_keep_what_they_opened(tmp_path: Path) -> None:
    writer = TantivyIndex(tmp_path).write()
    for uid in (1, 2, 3):
        for ordinal in (0, 1):
            writer.add("both/live", key(uid, ordinal), ["a"])
    writer.commit()
    reader = TantivyIndex(tmp_path)
    writer = TantivyIndex(tmp_path).write()
    writer.delete([2])
    writer.commit()
    assert len(reader.candidates(["a"], 10, SHELVES)) == 6
    left = TantivyIndex(tmp_path).candidates(["a"], 10, SHELVES)
    assert left == [key(1, 0), key(1, 1), key(3, 0), key(3, 1)]
    writer = TantivyIndex(tmp_path).write()
    writer.delete_from(3)
    writer.commit()
    assert TantivyIndex(tmp_path).candidates(["a"], 10, SHELVES) == [key(1, 0), key(1, 1)]


def test_what_a_writer_did_not_commit_is_gone(tmp_path: Path) -> None:
    TantivyIndex(tmp_path).write().add("both/live", key(1, 0), ["a"])
    assert TantivyIndex(tmp_path).candidates(["a"], 10, SHELVES) == []


@pytest.mark.parametrize("terms", [["a"] * 3, ["a", "b", "a"]])
def test_a_term_asked_twice_counts_once(tmp_path: Path, terms: list[str]) -> None:
    writer = TantivyIndex(tmp_path).write()
    writer.add("both/live", 0, ["a"])
    writer.commit()
    assert TantivyIndex(tmp_path).candidates(terms, 5, SHELVES) == [0]
