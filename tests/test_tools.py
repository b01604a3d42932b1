"""The five tools: arguments mended or refused in one line, fences that hold, limits, order, scopes."""

from __future__ import annotations

import inspect
import json
import random
from typing import Any

import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st
from in_memory import LISBON, view_of
from infinimem.tools import Toolbox
from infinimem.tools.tool import shown

from infinimem.markdown.characters import fenced

VIEW = view_of(LISBON)
TOOLS = Toolbox(lambda: VIEW)
NAMES = ["grep", "grep_doc", "search", "list_docs", "read_lines"]


def test_five_tools_by_iteration_attribute_and_name() -> None:
    assert [tool.name for tool in TOOLS] == NAMES
    assert all(getattr(TOOLS, name).__name__ == name for name in NAMES)
    assert TOOLS.call("list_docs", {}) == TOOLS.list_docs()


def test_schemas_say_what_the_functions_take() -> None:
    for tool in TOOLS:
        assert set(tool.parameters["required"]) <= set(tool.parameters["properties"])
        assert all("description" in rule for rule in tool.parameters["properties"].values())
        assert list(inspect.signature(getattr(TOOLS, tool.name)).parameters) == [
            *tool.parameters["properties"]
        ]
    for tool, one, other in zip(TOOLS, TOOLS.openai(), TOOLS.anthropic(), strict=True):
        assert (one["function"]["name"], other["name"]) == (tool.name, tool.name)
        assert one["function"]["parameters"] == other["input_schema"] == tool.parameters
    assert json.dumps(TOOLS.openai())


@each(
    ("name", "arguments", "part"),
    [
        ("grap", {}, "there is no tool 'grap'"),
        ("grep", "{", "not a JSON object"),
        ("grep", "[1]", "not a JSON object"),
        pytest.param("grep", "[" * 100_000, "not a JSON object", id="nested"),
        ("grep", {}, "'pattern' is missing"),
        ("grep", {"pattern": ""}, "'pattern' is empty"),
        ("grep", {"pattern": ["x"]}, "a string is wanted"),
        ("grep", {"pattern": "x", "limit": "many"}, "a whole number is wanted"),
        ("grep", {"pattern": "x", "limit": 1.5}, "a whole number is wanted"),
        ("grep", {"pattern": "x", "limit": True}, "a whole number is wanted"),
        ("grep", {"pattern": "x", "limit": float("inf")}, "a whole number is wanted"),
        ("grep", {"pattern": "x", "ignore_case": "perhaps"}, "true or false is wanted"),
        (
            "search",
            {"query": "x", "scope": "everything"},
            "choose one of default, archive, evidence, journal, all",
        ),
        ("read_lines", {"doc_id": "topics/hame"}, "near it: "),
        ("read_lines", {"doc_id": "../../etc/passwd"}, "no document is called"),
        ("grep_doc", {"doc_id": "nope", "pattern": "x"}, "no document is called"),
        ("read_lines", {"doc_id": "\x00"}, "no document is called"),
        pytest.param("read_lines", {"doc_id": "x" * 1001}, "'doc_id' is too long", id="long"),
    ],
)
def test_a_wrong_call_gives_one_line_that_helps(name: str, arguments: Any, part: str) -> None:
    result = TOOLS.call(name, arguments)
    assert list(result) == ["error"]
    assert part in result["error"]
    assert "\n" not in result["error"]
    assert part in TOOLS.text(name, arguments)


def test_what_can_be_mended_is_mended_and_told() -> None:
    result = TOOLS.call("grep", '{"pattern": "Lisbon", "limit": "99", "context": 2, "ignore_case": "true"}')
    assert [match["line"] for match in result["matches"]] == [7, 8]
    assert result["notes"] == [
        "there is no argument 'context', it was ignored; did you mean 'context_lines'?",
        "limit = 99 is out of range, 30 was used",
    ]
    assert "(limit = 99 is out of range, 30 was used)" in TOOLS.text(
        "grep", {"pattern": "Lisbon", "limit": 99}
    )
    told = TOOLS.grep("Vu(", 99)["notes"]
    assert "30 was used" in told[0] and "searched for literally" in told[1]
    assert TOOLS.call("read_lines", {"doc_id": "home", "start": 2.0, "end": None})["lines"][0]["line"] == 2
    first = TOOLS.call("read_lines", {"doc_id": "home", "start": -3, "offset": -1})
    assert first["lines"][0]["line"] == 1 and "start = -3 is out of range, 1 was used" in first["notes"]
    assert TOOLS.call("search", {"query": 2023})["hits"]


@given(st.text(alphabet="`~\n a", max_size=60))
def test_no_stored_text_ends_the_fence(text: str) -> None:
    opening, *inside, closing = fenced(text, "memory").split("\n")
    fence = opening.removesuffix("memory")
    assert closing == fence
    assert set(fence) == {"`"}
    assert not any(fence in line for line in inside)
    assert inside == text.split("\n")


def test_lines_are_cut_and_control_characters_made_visible() -> None:
    assert shown("a\x1b[31mred\x07\tb\x7f") == "a\\x1b[31mred\\x07\tb\\x7f"
    assert shown("a\u202eb") == "a\\u202eb"
    assert shown("x" * 501) == "x" * 500 + " […read on at offset 500 of 501]"
    assert shown("x" * 501 + "y" * 200, 640) == "[201…] " + "x" * 300 + "y" * 200
    assert shown("x" * 500) == "x" * 500


@given(
    st.sampled_from([*NAMES, "other"]),
    st.dictionaries(
        st.sampled_from(
            ["pattern", "query", "doc_id", "start", "end", "limit", "offset", "scope", "context_lines"]
        ),
        st.none() | st.integers() | st.floats() | st.text(max_size=8) | st.lists(st.integers(), max_size=2),
    ),
)
def test_no_call_raises(name: str, arguments: dict[str, Any]) -> None:
    json.dumps(TOOLS.call(name, arguments))
    TOOLS.text(name, arguments)


@each("name", ["self", "view", "arguments"])
def test_no_name_of_an_argument_is_special(name: str) -> None:
    found = TOOLS.call("search", {"query": "Lisbon", name: 1})
    assert found["hits"] and name in found["notes"][0]
    assert TOOLS.text("search", {"query": "Lisbon", name: 1}).startswith("search: recorded text")


# ── what each gives ──────────────────────────────────────────────────────────────────────────────────


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
    assert (hit["start_line"], hit["end_line"], hit["ranges"]) == (31, 33, [[31, 33]])
    assert hit["snippet"].split("\n")[1] == "The zeppelin landed."


def rows_of(text: str) -> list[str]:
    """Rows of a result as a model is shown it, without label and fence."""
    return text.split("\n")[2:-1]


@each(("arguments", "least", "most"), [({}, 30, 41), ({"k": 30}, 80, 121), ({"full": True}, 150, 400)])
def test_search_shows_the_best_lines_of_many_sections(
    arguments: dict[str, Any], least: int, most: int
) -> None:
    """Some 40 rows by default, each with its number in the document, "…" where lines are left out."""
    source, seen = random.Random(7), ("a heron", "a zeppelin", "nothing", "a heron beside a zeppelin")
    notes = {
        f"n{n}": "# Log\n\n" + "".join(
            f"{source.choice(seen)} on day {day}\n" + "\n" * source.randint(0, 1) for day in range(30)
        )
        for n in range(40)
    }  # fmt: skip
    tools = Toolbox(lambda: view_of(notes))
    *rows, total = rows_of(tools.text("search", {"query": "zeppelin heron", **arguments}))
    assert total == f"{arguments.get('k', 10)} sections"
    assert least <= len(rows) <= most
    lines: list[str] = []
    last, gap = 0, False
    for row in rows:
        if not row.startswith("  "):
            lines, last, gap = notes[row.split()[0]].split("\n"), 0, False
        elif row == "  …":
            gap = True
        else:
            number, _, words = row.strip().partition(" ")
            assert lines[int(number) - 1] == words
            between = [line for line in lines[last : int(number) - 1] if line]
            assert not last or gap == bool(between)
            last, gap = int(number), False
    hits = tools.search("zeppelin heron")["hits"]
    assert "beside" in hits[0]["snippet"]
    for hit in hits:
        assert [hit["start_line"], hit["end_line"]] == [hit["ranges"][0][0], hit["ranges"][-1][1]]


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
