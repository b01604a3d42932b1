"""What each tool gives: keys, limits, order, scopes."""

from __future__ import annotations

import pytest
from in_memory import LISBON, view_of
from infinimem.tools import Toolbox

TOOLS = Toolbox(lambda: view_of(LISBON))


def test_grep_gives_places_with_lines_around() -> None:
    result = TOOLS.grep(pattern="^# ", context_lines=1)
    assert (result["total_matches"], result["truncated"]) == (4, False)
    assert [(match["doc_id"], match["line"]) for match in result["matches"]] == [
        ("CURRENT", 5),
        ("notes/todo", 1),
        ("topics/home", 5),
        ("topics/home", 10),
    ]
    first = result["matches"][1]
    assert (first["text"], first["before"], first["after"]) == ("# Todo", [], [""])


def test_grep_counts_all_and_shows_thirty() -> None:
    tools = Toolbox(lambda: view_of({"a": "word\n" * 100}))
    result = tools.grep(pattern="w", context_lines=0)
    assert (len(result["matches"]), result["total_matches"], result["truncated"]) == (30, 100, True)
    assert len(tools.grep_doc(doc_id="a", pattern="w")["matches"]) == 100


def test_a_result_is_bounded_whatever_the_lines() -> None:
    tools = Toolbox(lambda: view_of({"a": ("w" * 2000 + "\n") * 200}))
    found = tools.grep(pattern="w")
    lines = [
        line for match in found["matches"] for line in (match["text"], *match["before"], *match["after"])
    ]
    assert 16_000 <= sum(map(len, lines)) < 20_000
    assert (found["total_matches"], found["truncated"]) == (200, True)
    read = tools.read_lines(doc_id="a")
    assert sum(len(line["text"]) for line in read["lines"]) <= 16_000
    assert read["notes"] == ["the rest would be too much at once; go on at line 33"]
    assert len(tools.search(query="w" * 100_000, limit=50)["hits"]) <= 50


def test_grep_says_when_a_pattern_is_not_one() -> None:
    result = TOOLS.grep(pattern="Dr. Vu(", scope="evidence")
    assert result["matches"] == []
    assert "searched for literally" in result["notes"][0]


def test_grep_says_when_it_searched_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("infinimem.retrieval.grep.MAX_STEPS", 1)
    result = TOOLS.grep(pattern="(Lisbon|Porto|trams){200}")
    assert (result["matches"], result["total_matches"], result["truncated"]) == ([], 0, True)
    assert "a part was searched" in result["notes"][0]


def test_scopes() -> None:
    assert TOOLS.grep(pattern="Porto")["matches"] == []
    assert TOOLS.grep(pattern="Porto", scope="archive")["matches"][0]["doc_id"] == "archive/home"
    assert TOOLS.grep(pattern="Dr. Vu", scope="evidence")["total_matches"] == 1
    assert TOOLS.search(query="Porto", scope="archive")["hits"][0]["seqs"] == [11]
    assert TOOLS.list_docs(scope="all")["total"] == 6
    assert TOOLS.read_lines(doc_id="archive/home", start=5)["lines"][0]["text"].endswith("Ana lives in Porto")


def test_list_docs_pages_and_counts_the_archived() -> None:
    result = TOOLS.list_docs(limit=2, offset=1)
    assert [doc["id"] for doc in result["docs"]] == ["notes/todo", "topics/home"]
    assert (result["total"], result["has_more"]) == (3, False)
    assert result["docs"][1]["summary"] == "where Ana lives"
    assert result["docs"][1]["archived"] == 1
    assert result["docs"][1]["tokens"] > 0
    assert TOOLS.list_docs(limit=1)["has_more"] is True
    assert TOOLS.list_docs(offset=99) == {"docs": [], "total": 3, "has_more": False}


def test_a_note_is_listed_by_its_title_too() -> None:
    tools = Toolbox(
        lambda: view_of({"notes/a": "---\ntitle: Trip to Åland\n---\n# Ferry\n", "notes/b": "# B\n"})
    )
    assert [doc["title"] for doc in tools.list_docs()["docs"]] == ["Trip to Åland", ""]
    rows = next(tool for tool in tools if tool.name == "list_docs").rows(tools.list_docs())
    assert next(iter(rows)).endswith(" tokens) Trip to Åland: Ferry")


def test_read_lines_numbers_as_an_editor() -> None:
    result = TOOLS.read_lines(doc_id="home", start=5, end=7)
    assert (result["doc_id"], result["total_lines"]) == ("topics/home", 12)
    assert [line["line"] for line in result["lines"]] == [5, 6, 7]
    assert result["lines"][0]["text"] == "# Moves"


def test_read_lines_is_bounded_and_says_so() -> None:
    tools = Toolbox(lambda: view_of({"a": "x\n" * 500}))
    assert len(tools.read_lines(doc_id="a")["lines"]) == 100
    assert tools.read_lines(doc_id="a", start=450)["lines"][-1]["line"] == 500
    clamped = tools.read_lines(doc_id="a", start=1, end=400)
    assert (len(clamped["lines"]), clamped["notes"]) == (100, ["at most 100 lines at a time"])
    assert tools.read_lines(doc_id="a", start=9, end=3)["notes"] == [
        "end 3 is before start 9; one line is shown"
    ]
    assert tools.read_lines(doc_id="a", start=600)["notes"] == ["the document has 500 lines"]


def test_search_gives_the_lines_around_the_best_one() -> None:
    body = "".join(f"Filler sentence number {n} about nothing in particular.\n" for n in range(30))
    view = view_of({"n": f"# Long\n{body}The zeppelin landed.\n{body}"})
    hit = Toolbox(lambda: view).search(query="zeppelin")["hits"][0]
    assert hit["start_line"] < 32 < hit["end_line"]
    assert hit["end_line"] - hit["start_line"] < 30, "about 200 tokens"
    assert hit["snippet"].count("\n") == hit["end_line"] - hit["start_line"]
    assert "The zeppelin landed." in hit["snippet"]


def test_a_hit_names_the_entries_whose_beginning_it_shows() -> None:
    filler = "".join(f"  filler sentence number {n} about nothing in particular\n" for n in range(40))
    text = f"# Long\n- <seq=1,source=user> it begins\n{filler}  the zeppelin landed\n{filler}"
    view = view_of({"evidence/s": f"{text}- <seq=2,source=user> a zeppelin again\n"})
    hit = Toolbox(lambda: view).search(query="zeppelin landed", scope="evidence")["hits"][0]
    assert "the zeppelin landed" in hit["snippet"] and "it begins" not in hit["snippet"]
    assert hit["seqs"] == []


def test_search_hits_have_heading_score_and_seqs() -> None:
    hit = TOOLS.search(query="Lisbon trams")["hits"][0]
    assert (hit["doc_id"], hit["heading"], hit["seqs"]) == ("topics/home", "Moves", [13, 14])
    assert hit["score"] > 0
    assert TOOLS.search(query="zzz")["hits"] == []
    assert "\n1 section\n" in TOOLS.text("search", {"query": "Lisbon trams", "limit": 1})


def test_text_of_grep_shows_each_line_once() -> None:
    text = TOOLS.text("grep", {"pattern": "Lisbon", "context_lines": 2})
    assert text.count("I moved to Lisbon last month.") == 1
    assert "topics/home:7 - <seq=13" in text
    assert "topics/home-5 # Moves" in text
    assert "2 of 2 matches" in text
