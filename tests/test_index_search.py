"""What a snapshot's searcher finds, where it says that it stands, and in which order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import each
from in_memory import LISBON, view_of

from infinimem.embedders.base import unit
from infinimem.errors import ModelUnavailable
from infinimem.index import vectors
from infinimem.index.search import searcher
from infinimem.model import Retrieved
from infinimem.settings import SearchSettings, Settings
from infinimem.store.library import Library
from infinimem.store.view import Scope, View, only


def seqs(items: list[Retrieved]) -> list[tuple[int, ...]]:
    return [item.seqs for item in items]


def test_an_entry_says_where_it_stands_and_where_it_came_from() -> None:
    best = searcher(view_of(LISBON)).entries("Where did Ana move to, Lisbon?")[0]
    assert (best.doc_id, best.start_line, best.end_line) == ("topics/home", 7, 7)
    assert (best.seqs, best.origin, best.headings) == ((13,), (4,), ("Moves",))
    assert (best.text, best.time, best.source, best.speaker) == (
        *("I moved to Lisbon last month.", "2023-05-08", "user"),
        "Ana",
    )
    assert best.score > 0


def test_an_entry_is_found_by_the_turns_around_its_evidence() -> None:
    best = searcher(view_of(LISBON, drawn=frozenset({1, 3}))).entries("the old easel")[0]
    assert best.seqs == (12,), "it says only 'I gave it away'"


def test_speaker_date_and_refers_are_searched() -> None:
    view = view_of(
        {
            "CURRENT": "- <seq=1,time=2023-05-08,source=user,speaker=Zoe> Likes tea\n"
            "- <seq=2,time=2024-01-02,source=user,refers=Rosinante> She won the race\n"
            "- <seq=3,source=user> Nothing of note\n"
        }
    )
    assert searcher(view).entries("what does Zoe like")[0].seqs == (1,)
    assert searcher(view).entries("8 May")[0].seqs == (1,)
    assert searcher(view).entries("January 2024")[0].seqs == (2,)
    assert searcher(view).entries("Rosinante")[0].seqs == (2,)


def test_default_scope_holds_uncited_evidence_and_notes_but_no_archive() -> None:
    view = view_of(LISBON)
    assert searcher(view).entries("dentist")[0].seqs == (7,)
    note = searcher(view).entries("violin")[0]
    assert (note.doc_id, note.source, note.start_line) == ("notes/todo", "human", 1)
    assert all(item.doc_id != "archive/home" for item in searcher(view).entries("Porto"))
    assert seqs(searcher(view).entries("Porto", scope="archive")) == [(11,)]
    assert searcher(view).entries("dentist", scope="evidence")[0].origin == (7,)


def test_sources_can_be_left_out() -> None:
    view = view_of(LISBON)
    assert (14,) in seqs(searcher(view).entries("Lisbon trams"))
    assert (14,) not in seqs(searcher(only(view, ["user", "human"])).entries("Lisbon trams"))


def test_what_a_person_wrote_between_entries_is_found_with_its_lines() -> None:
    view = view_of(
        {
            "topics/pets": "# Cats\n- <seq=1,source=user> Tom is grey\n- hates the vacuum\n  cleaner\n\n"
            "Some prose about\nzeppelins.\n\n## Dogs\n* barks\n"
        }
    )
    vacuum = searcher(view).entries("vacuum")[0]
    assert (vacuum.start_line, vacuum.end_line, vacuum.source) == (3, 4, "human")
    zeppelin = searcher(view).entries("zeppelins")[0]
    assert (zeppelin.start_line, zeppelin.end_line, zeppelin.headings) == (6, 7, ("Cats",))
    bark = searcher(view).entries("barks")[0]
    assert (bark.text, bark.headings) == ("* barks", ("Cats", "Dogs"))


def test_a_models_wording_is_found_by_what_was_said_and_leads_to_it() -> None:
    view = view_of(
        {
            "evidence/s": "- <seq=1,source=user> I flew to Porto\n- <seq=2,source=user> With my aunt Berta\n",
            "topics/travel": "- <seq=9,source=user,origin=8,by=model> The user travelled\n",
            "archive/travel": "- <seq=8,source=user,origin=1-2> Travelled to Porto\n",
        }
    )
    best = searcher(view).entries("aunt Berta")[0]
    assert (best.seqs, best.origin) == ((9,), (1, 2)), "followed through the entry that it replaced"


def test_blocks_hold_raw_lines_and_are_not_found_by_their_signatures() -> None:
    view = view_of(LISBON)
    block = searcher(view).blocks("Lisbon trams")[0]
    assert (block.doc_id, block.start_line, block.end_line) == ("topics/home", 5, 8)
    assert block.text.startswith("# Moves")
    assert "<seq=13," in block.text
    assert (block.seqs, block.origin, block.source) == ((13, 14), (4, 5), None)
    assert searcher(view).blocks("seq source origin") == []


def test_kin_words_help_where_a_question_s_own_find_nothing() -> None:
    files = {"topics/a": "- <seq=1> I moved to Porto.\n- <seq=2> I keep a cat.\n"}
    assert seqs(searcher(view_of(files)).entries("Where does she live?")) == [(1,)]
    files["topics/b"] = "- <seq=3> Rita lives in Faro.\n"
    assert seqs(searcher(view_of(files)).entries("Where does she live?")) == [(3,)]
    assert seqs(searcher(view_of(files)).entries("quantum chromodynamics")) == []


# ── the order ────────────────────────────────────────────────────────────────────────────────────────


def test_ties_go_by_document_and_line() -> None:
    view = view_of({"d": "one\n", "b": "one\n", "c": "# x\none\n\n# y\none\n", "a": "two\n"})
    best = searcher(view).blocks("one", 10)
    assert [(item.doc_id, item.start_line) for item in best] == [("b", 1), ("d", 1), ("c", 1), ("c", 4)]
    assert len({item.score for item in best}) == 2


@pytest.mark.parametrize(("newest", "expected"), [(True, [3, 4, 2, 1]), (False, [1, 2, 3, 4])])
def test_of_equal_scores_the_newer_goes_first(newest: bool, expected: list[int]) -> None:
    lines = ("1,time=2023-01-02", "2,time=2024-01-02", "3,time=2024-05-01", "4,time=2024-03-04")
    text = "".join(f"- <seq={line},source=user> Likes tea\n" for line in lines)
    view = view_of({"CURRENT": text}, Settings(search=SearchSettings(newest=newest, dates=False)))
    assert [seq for _, seq, _ in searcher(view).scores("tea", 9)] == expected


def test_nothing_to_rank() -> None:
    assert searcher(view_of({})).entries("a", 5, "all") == []
    assert searcher(view_of({"a": ""})).blocks("a", 5) == []
    assert searcher(view_of({"a": "a\n"})).blocks("", 5) == []


def test_a_term_in_every_piece_still_counts_for_something() -> None:
    best = searcher(view_of({"a": "Ana moved\n", "b": "Ana\n"})).blocks("ana", 5)
    assert len(best) == 2
    assert all(item.score > 0 for item in best)


# ── nearness in meaning ──────────────────────────────────────────────────────────────────────────────


MEANINGS = ("move moved settled lives", "gift gave give present", "violin fiddle", "tea coffee latte drink")


class Meanings:
    """Knows a few words that mean the same, and keeps what it was asked."""

    semantic = True
    size = len(MEANINGS)

    def __init__(self, name: str = "meanings", order: int = 1) -> None:
        self.name = name
        self.asked: list[str] = []
        self._axes = {word: at for at, words in enumerate(MEANINGS[::order]) for word in words.split()}

    def embed(self, texts: Sequence[str], kind: str = "passage") -> Any:
        self.asked += texts
        rows = np.zeros((len(texts), self.size), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in re.findall(r"\w+", text.casefold()):
                if word in self._axes:
                    row[self._axes[word]] += 1
        return unit(rows)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def lisbon(embedder: Meanings, **search: Any) -> View:
    return view_of(LISBON, Settings(search=SearchSettings(**search)), embedder=lambda: embedder)


def found(view: View, query: str, scope: Scope = "default") -> list[int]:
    """Seqs of the entries found; 0 for a passage."""
    return [seq for _, seq, _ in searcher(view).scores(query, 50, scope)]


def test_what_shares_no_word_with_a_query_is_found_by_its_meaning() -> None:
    view = lisbon(Meanings())
    assert found(view, "settled")[0] == 13
    assert found(view, "present")[0] == 12
    assert searcher(view).blocks("fiddle")[0].doc_id == "notes/todo"


def test_texts_that_are_gone_take_no_place_among_the_nearest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "NEAREST", 4)
    monkeypatch.setattr(vectors, "GONE", 2)
    library = Library(tmp_path, embedder=Meanings())
    (tmp_path / "a.md").write_text("a fiddle, tea\n")
    for number in range(9):
        (tmp_path / "b.md").write_text(f"fiddle {number}\n")
        assert {item.doc_id for item in searcher(library.view()).blocks("violin")} == {"a", "b"}


@each(("scope", "seqs"), [("archive", {11}), ("evidence", {2, 4, 6}), ("all", {2, 4, 6, 11, 12, 13, 15})])
def test_each_scope_has_its_own(scope: Scope, seqs: set[int]) -> None:
    assert set(found(lisbon(Meanings()), "settled, a present, coffee", scope)) >= seqs
    live = found(lisbon(Meanings()), "settled, a present, coffee")
    assert not {2, 4, 6, 11} & set(live)


def test_a_server_that_does_not_answer_leaves_words(caplog: pytest.LogCaptureFixture) -> None:
    class Down(Meanings):
        def embed(self, texts: Sequence[str], kind: str = "passage") -> Any:
            raise ModelUnavailable("no answer; try later")

    assert searcher(lisbon(Down())).entries("Lisbon", 9) == searcher(view_of(LISBON)).entries("Lisbon", 9)
    assert "ranked by words alone: no answer; try later" in caplog.text
