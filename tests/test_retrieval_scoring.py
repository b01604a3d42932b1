"""The one ranking, computed by hand on a tiny corpus."""

from __future__ import annotations

import pytest
from in_memory import view_of

from infinimem.retrieval.disk import in_memory
from infinimem.settings import SearchSettings, Settings


def test_ties_go_by_document_and_line() -> None:
    view = view_of({"b": "one\n", "a": "x\n\n# One\none\n\n# Two\none\n", "c": "two\n"})
    best = in_memory(view).best("blocks", "one", ["one"], "default", 10)
    tied = [(row.doc_id, row.start) for row, value in best if value == best[-1][1]]
    assert tied == sorted(tied)


@pytest.mark.parametrize(("newest", "expected"), [(True, [3, 4, 2, 1]), (False, [1, 2, 3, 4])])
def test_of_equal_scores_the_newer_goes_first(newest: bool, expected: list[int]) -> None:
    lines = ("1,time=2023-01-02", "2,time=2024-01-02", "3,time=2024-05-01", "4,time=2024-03-04")
    text = "".join(f"- <seq={line},source=user> Likes tea\n" for line in lines)
    view = view_of({"CURRENT": text}, Settings(search=SearchSettings(newest=newest, dates=False)))
    best = in_memory(view).best("entries", "tea", ["tea"], "default", 9)
    assert [row.seq for row, _ in best] == expected


def test_nothing_to_rank() -> None:
    assert in_memory(view_of({})).best("entries", "a", ["a"], "all", 5) == []
    assert in_memory(view_of({"a": ""})).best("blocks", "a", ["a"], "default", 5) == []
    assert in_memory(view_of({"a": "a\n"})).best("blocks", "", [], "default", 5) == []


def test_a_term_in_every_piece_still_counts_for_something() -> None:
    best = in_memory(view_of({"a": "Ana moved\n", "b": "Ana\n"})).best("blocks", "ana", ["ana"], "default", 5)
    assert len(best) == 2
    assert all(value > 0 for _, value in best)
