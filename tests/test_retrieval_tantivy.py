"""A table of tantivy's: what it holds a term of, and that it scores by the formula that we use beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infinimem.retrieval.tantivy_index import Table, padded, rarity, saturated


def table_of(*bags: Sequence[str], folder: Path | None = None, padding: int = 0) -> Table:
    """A table of rows with numbers from 0 on."""
    table = Table(("own",), ("row", "group"), folder)
    for row, bag in enumerate(bags):
        table.add({"own": padded(" ".join(bag), padding), "row": row, "group": row % 2})
    table.commit()
    return table


def ask(table: Table, weights: Mapping[str, float], limit: int | None = None) -> dict[int, float]:
    """Scores by row, best first."""
    query = table.words({"own": 1.0}, weights)
    hits = table.find(query, limit) if query else []
    rows = table.values("row", [address for _, address in hits])
    return {row: score for row, (score, _) in zip(rows, hits, strict=True)}


def test_only_rows_that_hold_a_term() -> None:
    table = table_of(["a"], ["b", "a"], ["c"], ["b"], [])
    assert sorted(ask(table, {"b": 1.0, "x": 1.0, "a": 1.0})) == [0, 1, 3]
    assert ask(table, {}) == ask(table, {"x": 1.0}) == ask(table_of(), {"a": 1.0}) == {}
    assert (len(table), table.frequency("own", "a"), table.frequency("own", "x")) == (5, 2, 0)


def test_the_best_when_there_are_too_many_and_ties_in_the_order_of_adding() -> None:
    assert list(ask(table_of(["a"], ["a", "b"], ["a"], ["b", "a"]), {"a": 1.0, "b": 1.0}, 2)) == [1, 3]
    assert list(ask(table_of(*[["a"]] * 5, *[["b"]] * 5), {"a": 1.0}, 3)) == [0, 1, 2]


def test_terms_of_any_script_and_form() -> None:
    table = table_of(["京都", "zoë", "2023-05-08", "c++"], ["it's"])
    for term in ("京都", "zoë", "2023-05-08", "c++"):
        assert list(ask(table, {term: 1.0})) == [0]
    assert list(ask(table, {"it's": 1.0})) == [1]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 400)), min_size=1, max_size=8),
    st.integers(0, 600),
    st.floats(0.1, 9),
)
def test_scores_are_those_of_the_formula(rows: list[tuple[int, int]], padding: int, weight: float) -> None:
    """A boost replaces how rare a term is in the field; padding makes length count less."""
    table = table_of(*(["a"] * often + ["b"] * rest for often, rest in rows), padding=padding)
    mean = sum(map(sum, rows)) / len(rows) + padding
    wanted = {
        row: weight * saturated(often, often + rest + padding, mean)
        for row, (often, rest) in enumerate(rows)
        if often
    }
    assert ask(table, {"a": weight}) == pytest.approx(wanted, rel=1e-4)


def test_rarity_by_hand() -> None:
    assert [rarity(2, often) for often in (1, 2, 0)] == pytest.approx(
        [0.693147, 0.182322, 1.791759], abs=1e-6
    )
    assert rarity(2, 5) > 0, "deleted rows count until they are merged away"


def test_rows_are_deleted_by_any_number_and_a_reader_keeps_what_it_opened(tmp_path: Path) -> None:
    big = (1 << 64) - 1
    table = Table(("own",), ("row", "doc"), tmp_path)
    for row, doc in enumerate((1, 2, big, 2)):
        table.add({"own": "a", "row": row, "doc": doc})
    table.commit()
    other = Table(("own",), ("row", "doc"), tmp_path)
    other.delete("doc", [2, big])
    other.delete("doc", [])
    assert len(other) == 4, "before the commit"
    other.commit()
    assert list(ask(other, {"a": 1.0})) == [0]
    assert sorted(ask(table, {"a": 1.0})) == [0, 1, 2, 3]


def test_a_number_may_be_several() -> None:
    table = Table(("own",), ("row", "cites"))
    table.add({"own": "", "row": 1, "cites": [7, 9]})
    table.add({"own": "", "row": 2, "cites": []})
    table.commit()
    found = [address for _, address in table.find(table.any_of("cites", [9, 5]))]
    assert table.values("row", found) == [1]
    assert table.several("cites", found[0]) == (7, 9)
    assert table.values("cites", table.all()) == [7, None]


def test_what_a_writer_did_not_commit_is_gone(tmp_path: Path) -> None:
    Table(("own",), ("row",), tmp_path).add({"own": "a", "row": 0})
    assert len(Table(("own",), ("row",), tmp_path)) == 0
