"""What a snapshot's searcher finds, where it says that it stands, and in which order."""

from __future__ import annotations

from in_memory import LISBON, view_of

from infinimem.model import Retrieved
from infinimem.retrieval.searcher import searcher
from infinimem.store.sources import only


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
