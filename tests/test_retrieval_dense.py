"""Nearness in meaning joins the ranking, in every scope; a text is embedded once."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from disk_library import SAMPLE, assert_same, write_note
from in_memory import LISBON, view_of

from infinimem.embedders.base import unit
from infinimem.errors import ModelUnavailable
from infinimem.memory import Memory, open_memory
from infinimem.retrieval import cache
from infinimem.retrieval.dense import BESIDE_WEIGHT, Dense
from infinimem.retrieval.disk import in_memory
from infinimem.retrieval.priors import nameless
from infinimem.retrieval.rows import SAID, Kind
from infinimem.retrieval.scoring import MEANING_WEIGHT, Ranking
from infinimem.retrieval.searcher import ranking, searcher
from infinimem.retrieval.vectors import Held, Vectors
from infinimem.settings import SearchSettings, Settings
from infinimem.store.sources import only
from infinimem.store.view import Scope, View
from infinimem.terms import query_terms

MEANINGS = ("move moved settled lives", "gift gave give present", "violin fiddle", "tea coffee latte drink")


class Meanings:
    """Knows a few words that mean the same, and keeps what it was asked."""

    semantic = True
    size = len(MEANINGS)

    def __init__(self, name: str = "meanings", order: int = 1) -> None:
        self.name = name
        self.asked: list[str] = []
        self._axes = {word: at for at, words in enumerate(MEANINGS[::order]) for word in words.split()}

    def embed(self, texts: Sequence[str]) -> Any:
        self.asked += texts
        rows = np.zeros((len(texts), self.size), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in re.findall(r"\w+", text.casefold()):
                if word in self._axes:
                    row[self._axes[word]] += 1
        return unit(rows)


class Words(Meanings):
    """One that knows no more than words."""

    semantic = False


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A library whose index lies in the cache directory."""
    shutil.copytree(SAMPLE, tmp_path / "library")
    for number in range(8):
        write_note(tmp_path / "library", number, f"replication lag {number}\n\n# Tea\n\nviolin and tea\n")
    return tmp_path / "library"


def lisbon(embedder: Meanings, **search: Any) -> View:
    return view_of(LISBON, Settings(search=SearchSettings(**search)), embedder=lambda: embedder)


def found(view: View, query: str, scope: Scope = "default") -> list[int]:
    """Seqs of the entries found; 0 for a passage."""
    return [row.seq for row, _ in in_memory(view).best("entries", query, [], scope, 50)]


def test_what_shares_no_word_with_a_query_is_found_by_its_meaning() -> None:
    view = lisbon(Meanings())
    assert found(view, "settled")[0] == 13
    assert found(view, "present")[0] == 12
    assert searcher(view).blocks("fiddle")[0].doc_id == "notes/todo"


@pytest.mark.parametrize(
    ("scope", "seqs"), [("archive", {11}), ("evidence", {2, 4, 6}), ("all", {2, 4, 6, 11, 12, 13, 15})]
)
def test_each_scope_has_its_own(scope: Scope, seqs: set[int]) -> None:
    assert set(found(lisbon(Meanings()), "settled, a present, coffee", scope)) >= seqs
    live = found(lisbon(Meanings()), "settled, a present, coffee")
    assert not {2, 4, 6, 11} & set(live)


def test_evidence_that_is_not_drawn_from_yet_is_found_by_meaning() -> None:
    said = LISBON["evidence/2023-07-01-s02"].replace("My dentist is Dr. Vu.", "My fiddle is old.")
    view = view_of({**LISBON, "evidence/2023-07-01-s02": said}, embedder=Meanings)
    assert found(view, "violins, or a violin")[:2] == [0, 7]


def test_an_embedder_that_knows_words_alone_is_not_asked() -> None:
    embedder = Words()
    view = lisbon(embedder)
    assert in_memory(view).best("entries", "Lisbon", query_terms("Lisbon"), "default", 9)
    assert not embedder.asked
    assert found(view, "settled") == []


def test_vectors_can_be_switched_off() -> None:
    embedder = Meanings()
    assert found(lisbon(embedder, vectors=False), "settled") == []
    assert not embedder.asked


def test_without_vectors_scores_are_those_of_words() -> None:
    scores = [
        in_memory(lisbon(embedder)).best("entries", "moved to Lisbon", ["move", "lisbon"], "default", 9)
        for embedder in (Words(), Meanings())
    ]
    assert scores[0] == in_memory(view_of(LISBON)).best(
        "entries", "moved to Lisbon", ["move", "lisbon"], "default", 9
    )
    assert scores[0] != scores[1]


def dense(index: Ranking, kind: Kind) -> Dense:
    return Dense(index.view, index.tables, kind, (), ())


def test_nearness_by_hand() -> None:
    """The text's own cosine, and that of the turns beside the one that it was drawn from."""
    view = lisbon(Meanings())
    index = in_memory(view)
    near = dense(index, "entries").near("present", frozenset({SAID}), ())
    table = index.tables.table("entries")
    rows = {row.seq: row for row in index.tables.rows(table, table.all()) if row.group == SAID}
    similarity = {seq: near.similarity([row.number])[0] for seq, row in rows.items()}
    assert similarity[2] == pytest.approx(1.0)  # nothing alike beside it
    assert similarity[3] == pytest.approx(BESIDE_WEIGHT / 2)  # one of two
    assert similarity[1] == pytest.approx(BESIDE_WEIGHT)  # the only one
    assert similarity[7] == 0.0
    near = dense(index, "entries").near("Lisbon, a present", frozenset({0}), ())
    (cited,) = (row.number for row in index.tables.rows(table, table.all()) if row.seq == 12)
    assert near.similarity([cited]) == pytest.approx([1.0])
    near = dense(index, "blocks").near("fiddle", frozenset({0}), ())
    assert max(near.similarity(near.numbers)) == pytest.approx(1 + BESIDE_WEIGHT)  # none beside


def test_the_nearest_gets_a_share_of_what_the_best_words_get() -> None:
    files = {"notes/a": "an easel and oils\n", "notes/b": "a fiddle\n", "notes/c": "fog\n"}
    view = view_of(files, initialised=False, embedder=Meanings)
    places = in_memory(view).best("blocks", "easel violin", query_terms("easel violin"), "default", 9)
    assert [row.doc_id for row, _ in places] == ["notes/a", "notes/b"]
    assert places[1][1] == pytest.approx(MEANING_WEIGHT * places[0][1], abs=1e-4)


def test_a_small_ranking_in_figures() -> None:
    """As in test_retrieval_searcher.py, with meanings."""
    found = searcher(lisbon(Meanings())).entries("When did Ana move to Lisbon in May 2023?", 6, "all")
    assert [(item.seqs[0], item.score) for item in found] == [
        (13, 23.7271),
        (4, 22.2425),
        (11, 14.905),
        (14, 13.7747),
        (5, 13.3561),
        (3, 9.2598),
    ]


def test_what_is_beside_an_index_is_near_too(root: Path) -> None:
    memory = open_memory(root, model="offline", embedder=Meanings())
    assert_same(memory.view)
    write_note(root, 3, "a fiddle instead\n")
    write_note(root, 40, "a second fiddle\n")
    (root / "notes" / "n4.md").unlink()
    assert_same(memory.view)
    assert searcher(memory.view).blocks("fiddle")[0].doc_id in ("notes/n3", "notes/n40")


def ask(memory: Memory) -> None:
    searcher(memory.view).entries("Which fiddle do I play?")
    searcher(memory.view).blocks("Which fiddle do I play?")


def test_a_change_embeds_only_what_is_new(root: Path) -> None:
    embedder = Meanings()
    memory = open_memory(root, model="offline", embedder=embedder)
    ask(memory)
    assert len(set(embedder.asked)) > 20
    embedder.asked.clear()
    ask(memory)
    assert not embedder.asked  # not even the question, of the same library
    write_note(root, 3, "replication lag 3\n\n# Tea\n\na fiddle instead\n")
    embedder.asked.clear()
    ask(memory)
    assert [text for text in embedder.asked if "instead" in text] != []
    assert len(set(embedder.asked)) == 2
    again = Meanings()
    ask(open_memory(root, model="offline", embedder=again))
    assert set(again.asked) == {"Which fiddle do I play?"}


def test_what_a_part_of_a_library_says_is_not_embedded_again(root: Path) -> None:
    embedder = Meanings()
    memory = open_memory(root, model="offline", embedder=embedder)
    searcher(memory.view).entries("Which fiddle do I play?")
    embedder.asked.clear()
    searcher(only(memory.view, ["user"])).entries("Which fiddle do I play?")
    assert embedder.asked == ["Which fiddle do I play?"]
    folder = cache.cache_folder(str(memory.library.files.root), "vectors")
    assert folder
    before = {path: path.stat().st_size for path in folder.rglob("*")}
    searcher(only(memory.view, ["user"])).blocks("Which fiddle do I play?")
    assert len(embedder.asked) > 3  # sections without what others said: used, and not kept
    assert before == {path: path.stat().st_size for path in folder.rglob("*")}


def test_vectors_of_two_embedders_are_never_mixed(root: Path) -> None:
    answers = []
    for name, order in (("one", 1), ("other", -1), ("one", 1)):
        embedder = Meanings(name, order)
        view = open_memory(root, model="offline", embedder=embedder).view
        answers.append(ranking(view).best("blocks", "fiddle", [], "default", 9))
        assert (len(embedder.asked) > 1) == (len(answers) < 3)
    assert answers[0] == answers[1] == answers[2] != []


def test_a_server_that_does_not_answer_leaves_words(caplog: pytest.LogCaptureFixture) -> None:
    class Down(Meanings):
        def embed(self, texts: Sequence[str]) -> Any:
            raise ModelUnavailable("no answer; try later")

    places = in_memory(lisbon(Down())).best("entries", "Lisbon", ["lisbon"], "default", 9)
    assert places == in_memory(view_of(LISBON)).best("entries", "Lisbon", ["lisbon"], "default", 9)
    assert "ranked by words alone: no answer; try later" in caplog.text


@pytest.mark.parametrize(
    ("question", "left"),
    [
        ("What does Caroline paint?", "What does   paint?"),
        ("What is caroline's job, Mel?", "What is   job,  ?"),
        ("Will Dr. Vu come?", "Will Dr.   come?"),
        ("Caroline?", "Caroline?"),
        ("\u4eac\u592a\u306f\u4f55\u3092", " \u306f\u4f55\u3092"),
        ("", ""),
    ],
)
def test_names_of_speakers_are_left_out_of_a_question(question: str, left: str) -> None:
    assert nameless(question, ["Caroline", "Mel", "Will", "Dr. Vu", "\u4eac\u592a"]) == left


def test_names_are_not_embedded() -> None:
    embedder = Meanings()
    found(lisbon(embedder), "Where has Ana settled?")
    assert "Where has   settled?" in embedder.asked


def test_where_all_vectors_are_gone_words_alone_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may `forget` between a snapshot and the reading of its vectors."""
    nothing = Held({}, np.zeros((0, 2), dtype=np.uint64), np.zeros((0, Meanings.size), dtype=np.float32))
    monkeypatch.setattr(Vectors, "add", lambda *_: nothing)
    index, words = in_memory(lisbon(Meanings())), in_memory(view_of(LISBON))
    found = index.best("entries", "Lisbon", ["lisbon"], "default", 9)
    assert found == words.best("entries", "Lisbon", ["lisbon"], "default", 9) != []
