"""The one ranking, computed by hand on a tiny corpus."""

from __future__ import annotations

import math

import pytest
from in_memory import view_of

from infinimem.retrieval.disk import in_memory
from infinimem.retrieval.scoring import WEIGHTS, WHOLE_WEIGHT, Ranking
from infinimem.retrieval.tables import AROUND, OWN, PADDING, WHOLE
from infinimem.retrieval.tantivy_index import saturated
from infinimem.retrieval.term_counts import Postings
from infinimem.settings import SearchSettings, Settings

RARE = math.log(1 + 2.5 / 1.5)
"""What a term tells that one of three rows holds."""


def part(length: int, mean: float, padding: int) -> float:
    """What of a term's weight a field gets that holds it once."""
    return saturated(1, length + padding, mean + padding)


def test_a_score_adds_what_is_around_and_the_whole() -> None:
    """Three blocks of two notes; "a" and the headings are around the blocks of each."""
    view = view_of({"a": "# paint\neasel\n# tram\npaint\n", "b": "## fog\nsea\n"}, initialised=False)
    index = in_memory(view)
    found = {row.number: score for row, score in index.best("blocks", "fog", ["fog"], "all", 9)}
    own, around = PADDING["blocks"][OWN], PADDING["blocks"][AROUND]
    assert list(found.values()) == pytest.approx(
        [
            RARE * part(2, 2, own)
            + WEIGHTS[AROUND] * RARE * part(2, 2, around)
            + WHOLE_WEIGHT * RARE * part(2, 3, PADDING["documents"][WHOLE])
        ],
        abs=1e-3,
    )
    tram = index.best("blocks", "tram", ["tram"], "all", 9)
    assert [row.start for row, _ in tram] == [3], "no other block says it or stands below it"


def test_what_is_beside_an_index_scores_as_in_it() -> None:
    """A document that the index does not hold yet; terms in as many rows as before."""
    texts = {f"topics/{n}": f"# T{n}\n- <seq={n},source=user> tea {'and more ' * n}\n" for n in range(1, 60)}
    view = view_of(texts)
    index = in_memory(view)
    changed = {doc_id: index.pieces.read(view.document(doc_id), 99) for doc_id in list(texts)[7:9]}
    reads = {doc_id: one for doc_id, one in changed.items() if one}
    beside = Ranking(view, index.tables, index.lines, frozenset(reads), reads)
    for kind in ("entries", "blocks"):
        wanted = index.best(kind, "tea", ["tea"], "all", 99)  # type: ignore[arg-type]
        found = beside.best(kind, "tea", ["tea"], "all", 99)  # type: ignore[arg-type]
        assert [row.doc_id for row, _ in found] == [row.doc_id for row, _ in wanted]
        rate = found[0][1] / wanted[0][1]  # those two count twice in how rare a term is
        assert [score for _, score in found] == pytest.approx([rate * score for _, score in wanted], rel=0.02)


def test_a_few_texts_are_compared_with_each_other() -> None:
    postings = Postings()
    texts = [postings.add(text.split()) for text in ("tea boat", "oak elm", "tea ash ash elm", "")]
    scores = postings.scores(texts, ["tea", "ash"])
    assert scores[2] > scores[0] > 0
    assert scores[1] == scores[3] == 0, "they hold neither term"
    assert postings.scores([], ["tea"]) == []
    assert postings.scores(texts, ["gone"]) == postings.scores(texts, []) == [0, 0, 0, 0]
    assert postings.scores(texts[3:], ["tea"]) == [0], "nothing is divided by nothing"
    others = [texts[0], texts[2], texts[3]]
    assert postings.only(others).scores([0, 1, 2], ["tea", "ash"]) == postings.scores(others, ["tea", "ash"])


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
