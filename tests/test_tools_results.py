"""What each tool gives: keys, limits, order, scopes."""

from __future__ import annotations

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


def test_scopes() -> None:
    assert TOOLS.grep(pattern="Porto")["matches"] == []
    assert TOOLS.grep(pattern="Porto", scope="archive")["matches"][0]["doc_id"] == "archive/home"
    assert TOOLS.grep(pattern="Dr. Vu", scope="evidence")["total_matches"] == 1
    assert TOOLS.search(query="Porto", scope="archive")["hits"][0]["seqs"] == [11]
    assert TOOLS.list_docs(scope="all")["total"] == 4
    found = TOOLS.grep(pattern="Lisbon|Porto", scope="all")["matches"]
    assert {match["doc_id"] for match in found} == {"topics/home", "archive/home"}
    assert TOOLS.read_lines(doc_id="archive/home", start=5)["lines"][0]["text"].endswith("Ana lives in Porto")


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


LEDGER = """---
id: topics/tea
update_log:
  - {time: 2026-01-09T10:00:00Z, op: create, receipt: 1, added: 2, archived: 0}
aux: {from: 2026}
---
# Tea
- <seq=2026,time=2026-02-01,source=AI,origin=1,when=2026-03> Ana: the tea
- <seq=2027,time=2026-02-01,source=AI,origin=1> Bob: I hate tea
"""


def test_what_the_program_notes_of_a_document_is_neither_found_nor_shown() -> None:
    files = {"topics/tea": LEDGER, "journal/0001-consolidate": "tea\n", "notes/n": "---\na: 2026\n---\nx\n"}
    tools = Toolbox(lambda: view_of(files))
    found = tools.grep(pattern="2026|tea", scope="all")
    assert [(match["doc_id"], match["line"]) for match in found["matches"]] == [
        ("notes/n", 2),
        ("topics/tea", 7),
        ("topics/tea", 8),
        ("topics/tea", 9),
    ], "a note's header is its owner's"
    assert (found["total_matches"], found["matches"][1]["before"]) == (4, [])
    assert tools.grep_doc(doc_id="tea", pattern="2026")["total_matches"] == 2
    assert tools.grep(pattern="tea", scope="journal")["total_matches"] == 1
    text = tools.text("read_lines", {"doc_id": "tea", "start": 2})
    assert (
        text.split("memory\n", 1)[1]
        == """7 # Tea
8 2026-02-01 (AI): Ana: the tea (when 2026-03)
9 - Bob: I hate tea
all of 9 lines
```"""
    )
    assert tools.read_lines(doc_id="tea")["lines"][1] == {"line": 2, "text": "id: topics/tea"}
    assert "topics/tea, no lines of 9" in tools.text("read_lines", {"doc_id": "tea", "start": 1, "end": 6})
