"""What a snapshot's searcher finds, where it says that it stands, and in which order."""

from __future__ import annotations

import pytest
from in_memory import LISBON, view_of

from infinimem.model import Retrieved
from infinimem.retrieval import searcher as searching
from infinimem.retrieval.origins import KnownLines, Origins
from infinimem.retrieval.pieces import Pieces
from infinimem.retrieval.rows import doc_hash
from infinimem.retrieval.scoring import Ranking
from infinimem.retrieval.searcher import searcher
from infinimem.store.sources import only
from infinimem.store.view import View
from infinimem.strategies.readers.budget import FIRST, MOST, ROOM, best_that_fit, pack


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


def test_a_small_ranking_in_figures() -> None:
    """Whoever changes a constant of the ranking changes these and docs/SEARCH.md too."""
    found = searcher(view_of(LISBON)).entries("When did Ana move to Lisbon in May 2023?", scope="all")
    assert [(item.seqs[0], item.score) for item in found] == [
        (13, 13.1817),
        (4, 11.6972),
        (12, 8.6488),
        (2, 8.6488),
        (14, 7.6908),
        (5, 7.2722),
        (11, 6.7932),
        (3, 6.2179),
        (1, 3.2598),
        (15, 1.2326),
        (6, 1.2326),
        (7, 0.4458),
    ]


def test_an_entry_is_found_by_the_turns_around_its_evidence() -> None:
    best = searcher(view_of(LISBON, drawn=frozenset({1, 3}))).entries("the old easel")[0]
    assert best.seqs == (12,), "it says only 'I gave it away'"


def test_around_an_entry_stands_what_others_said_not_itself() -> None:
    view = view_of(LISBON)
    pieces = Pieces(view, Origins(view, KnownLines(view.entries("all"))))
    read = pieces.read(view.document("topics/home"), 1)
    assert read
    (found,) = (found for found in read.entries if found.row.seq == 12)
    around = found.around.split()
    assert {"easel", "lucki", "lisbon", "thing"} <= set(around), "two turns on each side, and the heading"
    assert "sister" not in around
    assert found.row.whole == doc_hash("evidence/2023-05-08-s01")


def test_of_a_doubled_line_the_live_one_counts_for_where_another_came_from() -> None:
    said = "- <seq=1,source=user> I saw a zeppelin\n- <seq=2,source=user> I saw a kite\n"
    view = view_of(
        {
            "evidence/s": said,
            "CURRENT": "- <seq=20,source=user,origin=1> Saw something\n",
            "archive/x": "- <seq=20,source=user,origin=2> Saw something\n",
            "topics/x": "- <seq=21,source=AI,origin=20> Likes the sky\n",
        }
    )
    assert searcher(view).entries("sky")[0].origin == (1,)


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


def test_origins_in_a_circle_end() -> None:
    view = view_of({"topics/a": "- <seq=1,source=user,origin=2> x\n- <seq=2,source=user,origin=1> y\n"})
    assert searcher(view).entries("x")[0].origin == ()


def test_ties_go_by_document_and_line() -> None:
    line = "- <seq={},source=user> the same words\n"
    view = view_of({"topics/b": line.format(1), "topics/a": line.format(2) + line.format(3)})
    assert seqs(searcher(view).entries("same words")) == [(3,), (2,), (1,)], "the newer first"


def test_one_document_and_empty_libraries() -> None:
    assert searcher(view_of({})).entries("anything") == []
    assert searcher(view_of({})).blocks("anything") == []
    assert searcher(view_of({})).documents("anything") == []
    assert searcher(view_of({"CURRENT": ""})).entries("anything") == []
    one = view_of({"topics/a": "- <seq=1,source=user> alone\n"})
    assert seqs(searcher(one).entries("alone")) == [(1,)]
    assert searcher(one).entries("") == []
    assert searcher(one).entries("absent") == []
    assert searcher(one).entries("alone", limit=0) == []


def test_blocks_hold_raw_lines_and_are_not_found_by_their_signatures() -> None:
    view = view_of(LISBON)
    block = searcher(view).blocks("Lisbon trams")[0]
    assert (block.doc_id, block.start_line, block.end_line) == ("topics/home", 5, 8)
    assert block.text.startswith("# Moves")
    assert "<seq=13," in block.text
    assert (block.seqs, block.origin, block.source) == ((13, 14), (4, 5), None)
    assert searcher(view).blocks("seq source origin") == []


def test_documents_puts_the_nearest_first_and_loses_none() -> None:
    view = view_of(LISBON)
    assert searcher(view).documents("the plumber and the violin")[0] == "notes/todo"
    assert sorted(searcher(view).documents("zzz")) == ["CURRENT", "notes/todo", "topics/home"]
    assert searcher(view).documents("zzz") == ["CURRENT", "notes/todo", "topics/home"], "ties by id"
    assert searcher(view).documents("latte", 1) == ["CURRENT"]
    assert searcher(view).documents("latte", ids=["topics/home"]) == ["topics/home"]


def test_pieces_compared_with_each_other() -> None:
    view = view_of(LISBON)
    blocks = searcher(view).blocks_at("topics/home", 1, 99)
    assert [block.start_line for block in searcher(view).order("sister", blocks)] == [10, 5]
    assert [block.start_line for block in searcher(view).order("zzz", blocks)] == [5, 10]


def test_lines_are_cut_to_the_body() -> None:
    view = view_of(LISBON)
    piece = searcher(view).lines_at("topics/home", -5, 999)
    assert (piece.start_line, piece.end_line, piece.seqs) == (5, 12, (13, 14, 12))
    assert searcher(view_of({"a": ""})).lines_at("a", 1, 9).text == ""


def test_a_snapshot_is_ranked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[View] = []
    rank = searching.ranking

    def ranking(view: View) -> Ranking:
        made.append(view)
        return rank(view)

    monkeypatch.setattr(searching, "ranking", ranking)
    views = [view_of(LISBON), view_of(LISBON)]
    for view in [*views, *views]:
        assert searcher(view).entries("Lisbon")
    assert made == views


def test_undecodable_text_is_found() -> None:
    view = view_of({"a": b"caf\xe9 noir\n\xff\xfe\n"})
    assert searcher(view).entries("noir")[0].text.startswith("caf\ufffd noir")


def test_packing_keeps_the_order_skips_what_does_not_fit_and_what_is_shown_already() -> None:
    def item(start: int, end: int, text: str) -> Retrieved:
        return Retrieved("a", start, end, text, 1.0)

    block, inside, long, small = item(1, 9, "bb"), item(3, 3, "i"), item(20, 20, "l" * 50), item(30, 30, "s")
    assert pack([block, inside, long, small], 10, len) == [block, small]
    assert pack([block], 1, len) == []
    assert pack([], 10, len) == []


def test_more_is_ranked_until_the_budget_is_spent() -> None:
    asked: list[int] = []

    def ranked(limit: int) -> list[Retrieved]:
        asked.append(limit)
        return [Retrieved("a", line, line, "x" * 10, 1.0) for line in range(min(limit, there))]

    there = 1000
    assert len(best_that_fit(ranked, 10 * FIRST + ROOM - 1, len)) == FIRST
    assert asked == [FIRST]
    assert len(best_that_fit(ranked, 10 * FIRST + 30, len)) == FIRST + 3
    assert len(best_that_fit(ranked, 1 << 30, len)) == MOST
    there, asked[:] = 7, []
    assert len(best_that_fit(ranked, 1 << 30, len)) == 7
    assert asked == [FIRST]


def test_kin_words_help_where_a_question_s_own_find_nothing() -> None:
    files = {"topics/a": "- <seq=1> I moved to Porto.\n- <seq=2> I keep a cat.\n"}
    assert seqs(searcher(view_of(files)).entries("Where does she live?")) == [(1,)]
    files["topics/b"] = "- <seq=3> Rita lives in Faro.\n"
    assert seqs(searcher(view_of(files)).entries("Where does she live?")) == [(3,)]
    assert seqs(searcher(view_of(files)).entries("quantum chromodynamics")) == []
