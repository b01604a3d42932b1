"""A question is shown what its kind needs: a course in order of time, both sides of an experience, later
values of a number, whole lists; tools page, and take one speaker's lines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cli_runner import Shell

from infinimem import Memory, Turn, open_memory
from infinimem.testing import ScriptedLLM

CODE = "```python\n" + "\n".join(f"lantern_{number} = build({number})" for number in range(40)) + "\n```"
PLAN = """Here is the order of work:
1. Sand the lantern frame
2. Paint it twice
3. Hang the glass panes
4. Test the lamp"""
SAID = [
    (
        "2024-01-03",
        "user",
        f"I began the lantern project and drew a plan.\n{CODE}\nThe wick does not fit yet.",
    ),
    ("2024-01-03", "assistant", PLAN),
    ("2024-02-10", "user", "The lantern frame is sanded now. I own 12 brass screws for it."),
    ("2024-02-10", "user", "I have never soldered any brass for the lantern."),
    ("2024-02-11", "user", "My neighbour grows tomatoes behind the shed."),
    ("2024-03-20", "user", "For the lantern I soldered the brass hinges yesterday, which was fun."),
    ("2024-03-21", "user", "I counted again, of brass screws I own 30 now, for the lantern and the gate."),
    ("2024-04-01", "user", "The lantern hangs in the porch, finished at last."),
]


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    memory = open_memory(tmp_path / "notes", model="offline", create=True)
    turns = [Turn(text, role=role, time=day, session=day) for day, role, text in SAID]
    memory.observe(turns)
    memory.consolidate()
    return memory


@pytest.mark.parametrize("asked", ["Summarize how my lantern project developed.", "lantern project"])
def test_a_course_tells_all_sessions_in_order_of_time(memory: Memory, asked: str) -> None:
    items = memory.retrieve(asked, budget=2000, arc=not asked.startswith("Sum")).items
    days = [item.time for item in items if item.origin]
    assert days == sorted(days, key=str)
    assert {"2024-01-03", "2024-02-10", "2024-03-20", "2024-04-01"} <= {str(day)[:10] for day in days}
    text = "\n".join(item.text for item in items)
    assert "The wick does not fit yet." in text, "what was said behind the code"
    assert "build(" not in text, "and not the code"
    assert "tomatoes" not in text


def test_the_command_and_the_tool_give_the_same_course(memory: Memory, shell: Shell, tmp_path: Path) -> None:
    shown = shell("--library", str(tmp_path / "notes"), "retrieve", "lantern project", "--arc", "--json")
    texts = [item["text"] for item in shown.json["items"]]
    assert texts == [item.text for item in memory.retrieve("lantern project", arc=True).items]
    rows = memory.tools.search("lantern project", arc=True)["rows"]
    assert [row for row in rows if "porch" in row], rows
    assert rows.index(next(row for row in rows if "drew a plan" in row)) < len(rows) - 1
    assert "porch" in memory.tools.text("search", {"query": "lantern project", "arc": True})


def test_an_experience_is_shown_from_both_sides(memory: Memory) -> None:
    for number in range(30):
        memory.observe([Turn(f"Brass for the lantern, part {number}, is polished.", time="2024-04-02")])
    texts = " ".join(item.text for item in memory.read("Have I ever soldered brass for the lantern?").items)
    assert "never soldered" in texts
    assert "soldered the brass hinges" in texts


def test_a_value_brings_the_later_one_of_its_kind(memory: Memory) -> None:
    texts = " ".join(item.text for item in memory.read("How many brass screws do I own?").items)
    assert "12 brass screws" in texts
    assert "30 now" in texts


def test_a_hit_on_an_item_shows_its_list(memory: Memory) -> None:
    items = memory.read("What comes after sanding the frame, painting it?").items
    whole = [item.text for item in items if "1. Sand" in item.text]
    assert whole and all(part in whole[0] for part in ("order of work", "2. Paint", "3. Hang", "4. Test"))


def test_tools_page_and_take_one_speakers_lines(memory: Memory) -> None:
    first, second = (memory.tools.search("lantern", k=1, offset=offset)["hits"] for offset in (0, 1))
    assert first != second
    assert first + second == memory.tools.search("lantern", k=2)["hits"]
    pages = [memory.tools.grep("lantern", limit=2, offset=offset, scope="evidence") for offset in (0, 2)]
    places = [(match["doc_id"], match["line"]) for page in pages for match in page["matches"]]
    assert len(set(places)) == 4
    assert pages[0]["truncated"]
    said = memory.tools.grep("lantern", scope="evidence", by="AI")["matches"]
    assert said
    assert all("Sand" in match["text"] for match in said)
    assert "Sand the lantern" not in str(memory.tools.search("lantern frame", by="user", full=True))


@pytest.mark.parametrize(("more", "sources"), [({"by": "AI"}, {"AI"}), ({"offset": 100}, set[str]())])
def test_an_answerers_search_takes_one_speakers_lines_alone_and_pages(
    memory: Memory, tmp_path: Path, more: dict[str, Any], sources: set[str]
) -> None:
    shown: list[dict[str, str]] = []

    def answer(variables: Mapping[str, Any]) -> dict[str, Any]:
        lines = (line for rows in variables["evidence"] for line in rows["lines"] if "source" in line)
        shown.append({line["id"]: line["source"] for line in lines})
        call = {"name": "search", "arguments": {"query": "lantern frame", **more}}
        return {"answer": "" if len(shown) == 1 else "None.", "cites": [], "calls": [call]}

    open_memory(tmp_path / "notes", model=ScriptedLLM({"answer": answer})).ask("Who grows tomatoes?")
    assert {shown[-1][name] for name in shown[-1].keys() - shown[0].keys()} == sources


def test_an_answerer_asks_for_a_course_and_sees_again_what_it_needs(memory: Memory, tmp_path: Path) -> None:
    shown: list[str] = []

    def answer(variables: Mapping[str, Any]) -> dict[str, Any]:
        shown.append(json.dumps(variables["evidence"]))
        if len(shown) == 1:
            first = next(line["id"] for rows in variables["evidence"] for line in rows["lines"])
            call = {"name": "search", "arguments": {"query": "lantern project", "arc": True}}
            return {"answer": "", "cites": [first], "calls": [call]}
        return {"answer": "It took until April.", "cites": [], "calls": []}

    asking = open_memory(tmp_path / "notes", model=ScriptedLLM({"answer": answer}))
    assert asking.ask("What about the brass screws?").text == "It took until April."
    first, second = shown
    assert "drew a plan" not in first
    assert "drew a plan" in second
    assert second.index("drew a plan") < second.index("finished at last"), "in order of time"
    ids = {line["id"] for rows in json.loads(first) for line in rows["lines"]}
    assert len(ids & {line["id"] for rows in json.loads(second) for line in rows["lines"]}) == 1 < len(ids)
