"""The memory tool as Anthropic documents it, through their SDK's tool runner, with a scripted model."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest
from memory_tool import Command, Play, Told, played, played_async

from infinimem.adapters.anthropic import MemoryTool
from infinimem.memory import Memory, open_memory


@pytest.fixture(params=[played, played_async], ids=["sync", "async"])
def play(request: pytest.FixtureRequest) -> Play:
    chosen: Play = request.param
    return chosen


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return open_memory(tmp_path / "m", model="offline", create=True)


def create(path: str, text: str = "words\n") -> Command:
    return {"command": "create", "path": path, "file_text": text}


def view(path: str, *lines: int) -> Command:
    return {"command": "view", "path": path, **({"view_range": list(lines)} if lines else {})}


def replace(path: str, old: str, new: str) -> Command:
    return {"command": "str_replace", "path": path, "old_str": old, "new_str": new}


def insert(path: str, line: int, text: str) -> Command:
    return {"command": "insert", "path": path, "insert_line": line, "insert_text": text}


def delete(path: str) -> Command:
    return {"command": "delete", "path": path}


def rename(old: str, new: str) -> Command:
    return {"command": "rename", "old_path": old, "new_path": new}


def good(text: str) -> Told:
    return False, text


def bad(text: str) -> Told:
    return True, text


@pytest.mark.sample(1)
def test_the_tool_is_declared_as_documented(play: Play, memory: Memory) -> None:
    (request,) = play(memory).requests
    assert request["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    cached = MemoryTool(memory, cache_control={"type": "ephemeral"})
    assert cached.to_dict()["cache_control"] == {"type": "ephemeral"}


HEAD = "Here're the files and directories up to 2 levels deep in"


@pytest.mark.sample(1)
def test_view_of_a_directory(play: Play, memory: Memory) -> None:
    api = play(
        memory,
        view("/memories"),
        create("/memories/b.txt", "x" * 1536),
        create("/memories/a/one.md", "12345"),
        create("/memories/a/deep/er/two.md", ""),
        view("/memories"),
        view("/memories/a/"),
        view("/memories/none"),
    )
    assert api.told[0] == good(f"{HEAD} /memories, excluding hidden items:\n0B\t/memories")
    assert api.told[4] == good(
        f"{HEAD} /memories, excluding hidden items:\n1.5K\t/memories\n"
        "5B\t/memories/a/\n0B\t/memories/a/deep/\n5B\t/memories/a/one.md\n1.5K\t/memories/b.txt"
    )
    assert api.told[5] == good(
        f"{HEAD} /memories/a, excluding hidden items:\n5B\t/memories/a\n"
        "0B\t/memories/a/deep/\n0B\t/memories/a/deep/er/\n5B\t/memories/a/one.md"
    )
    assert api.told[6] == bad("The path /memories/none does not exist. Please provide a valid path.")


@pytest.mark.sample(1)
def test_view_of_a_file(play: Play, memory: Memory) -> None:
    shown = "Here's the content of /memories/n.txt with line numbers:\n"
    api = play(
        memory,
        create("/memories/n.txt", "one\ntwo\nthree"),
        view("/memories/n.txt"),
        view("/memories/n.txt", 2, 3),
        view("/memories/n.txt", 2, -1),
        view("/memories/n.txt", 3, 9),
        view("/memories/n.txt", 4, 5),
        view("/memories/n.txt", 1),
    )
    assert api.told[1:5] == [
        good(f"{shown}     1\tone\n     2\ttwo\n     3\tthree"),
        good(f"{shown}     2\ttwo\n     3\tthree"),
        good(f"{shown}     2\ttwo\n     3\tthree"),
        good(f"{shown}     3\tthree"),
    ]
    assert api.told[5] == bad("Invalid `view_range`: [4, 5]. The file has 3 lines.")
    assert api.told[6][0]


@pytest.mark.sample(1)
def test_create(play: Play, memory: Memory) -> None:
    api = play(
        memory,
        create("/memories/a.txt", "one"),
        create("/memories/a.txt", "two"),
        create("/memories/d/b.md"),
        create("/memories/d"),
        create("/memories"),
        create("/memories/a.txt/c.txt"),
        create("/memories/A.TXT"),
    )
    assert api.told == [
        good("File created successfully at: /memories/a.txt"),
        bad("File /memories/a.txt already exists"),
        good("File created successfully at: /memories/d/b.md"),
        bad("File /memories/d already exists"),
        bad("File /memories already exists"),
        bad("/memories/a.txt is a file, not a directory"),
        bad("/memories/A.TXT is too like a name that is there (memories/a.txt); choose another name"),
    ]
    assert (memory.library.root / "memories/a.txt.md").read_bytes() == b"one"
    assert (memory.library.root / "memories/d/b.md").read_bytes() == b"words\n"


@pytest.mark.sample(1)
def test_str_replace(play: Play, memory: Memory) -> None:
    api = play(
        memory,
        create("/memories/a.txt", "1\n2\n3\nfour\n5\n6\n7\n"),
        replace("/memories/a.txt", "four", "4\n4½"),
        create("/memories/t.txt", "tea\nno tea, tea\naaa"),
        replace("/memories/t.txt", "tea", "x"),
        replace("/memories/t.txt", "aa", "x"),
        replace("/memories/t.txt", "coffee", "x"),
        replace("/memories/t.txt", "", "x"),
        replace("/memories/none.txt", "a", "b"),
        replace("/memories", "a", "b"),
    )
    assert api.told[1] == good(
        "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
        "     2\t2\n     3\t3\n     4\t4\n     5\t4½\n     6\t5"
    )
    several = "No replacement was performed. Multiple occurrences of old_str"
    none = "No replacement was performed, old_str"
    assert api.told[3:] == [
        bad(f"{several} `tea` in lines: 1, 2. Please ensure it is unique"),
        bad(f"{several} `aa` in lines: 3. Please ensure it is unique"),
        bad(f"{none} `coffee` did not appear verbatim in /memories/t.txt."),
        bad(f"{none} `` did not appear verbatim in /memories/t.txt."),
        bad("The path /memories/none.txt does not exist. Please provide a valid path."),
        bad("The path /memories is not a file."),
    ]
    assert (memory.library.root / "memories/a.txt.md").read_text() == "1\n2\n3\n4\n4½\n5\n6\n7\n"
    assert (memory.library.root / "memories/t.txt.md").read_text() == "tea\nno tea, tea\naaa"


@pytest.mark.sample(1)
def test_insert(play: Play, memory: Memory) -> None:
    api = play(
        memory,
        create("/memories/a.txt", "one\ntwo"),
        insert("/memories/a.txt", 0, "zero\n"),
        insert("/memories/a.txt", 3, "three"),
        insert("/memories/a.txt", 5, "far"),
        insert("/memories/a.txt", -1, "far"),
        insert("/memories/none.txt", 0, "x"),
        insert("/memories", 0, "x"),
    )
    edited = "The file /memories/a.txt has been edited."
    outside = "It should be within the range of lines of the file: [0, 4]"
    assert api.told[1:] == [
        good(edited),
        good(edited),
        bad(f"Invalid `insert_line` parameter: 5. {outside}"),
        bad(f"Invalid `insert_line` parameter: -1. {outside}"),
        bad("The path /memories/none.txt does not exist. Please provide a valid path."),
        bad("The path /memories is not a file."),
    ]
    assert (memory.library.root / "memories/a.txt.md").read_bytes() == b"zero\none\ntwo\nthree\n"


@pytest.mark.sample(1)
def test_delete(play: Play, memory: Memory) -> None:
    api = play(
        memory,
        create("/memories/a.txt"),
        create("/memories/d/b.txt"),
        create("/memories/d/e/c.txt"),
        delete("/memories/a.txt"),
        delete("/memories/d"),
        delete("/memories/d"),
        delete("/memories"),
        view("/memories"),
    )
    assert api.told[3:7] == [
        good("Successfully deleted /memories/a.txt"),
        good("Successfully deleted /memories/d"),
        bad("The path /memories/d does not exist"),
        bad("Cannot delete the /memories directory itself"),
    ]
    assert api.told[7][1].endswith("\n0B\t/memories")


@pytest.mark.sample(1)
def test_rename(play: Play, memory: Memory) -> None:
    api = play(
        memory,
        create("/memories/a.txt", "a"),
        create("/memories/d/b.md", "b"),
        create("/memories/d/e/c.json", "c"),
        rename("/memories/a.txt", "/memories/x/y.md"),
        rename("/memories/d", "/memories/x/d"),
        rename("/memories/d", "/memories/q"),
        rename("/memories/x/y.md", "/memories/x/d/b.md"),
        rename("/memories/x", "/memories/x/x"),
        rename("/memories", "/memories/x"),
        rename("/memories/x", "/memories"),
    )
    assert api.told[3:] == [
        good("Successfully renamed /memories/a.txt to /memories/x/y.md"),
        good("Successfully renamed /memories/d to /memories/x/d"),
        bad("The path /memories/d does not exist"),
        bad("The destination /memories/x/d/b.md already exists"),
        bad("The destination /memories/x/x lies in /memories/x itself"),
        bad("Cannot rename the /memories directory itself"),
        bad("The destination /memories already exists"),
    ]
    found = {p.relative_to(memory.library.root / "memories").as_posix(): p.read_text() for p in files(memory)}
    assert found == {"x/y.md": "a", "x/d/b.md": "b", "x/d/e/c.json.md": "c"}


def files(memory: Memory) -> list[Path]:
    return sorted((memory.library.root / "memories").rglob("*.md"))


ODD: tuple[Any, ...] = (
    {"command": "purge", "path": "/memories"},
    {"path": "/memories"},
    {},
    {"command": "view"},
    {"command": "view", "path": 7},
    {"command": "create", "path": "/memories/a.txt"},
    {"command": "create", "path": "/memories/a.txt", "file_text": ["x"]},
    {"command": "create", "path": "/memories/a.txt", "file_text": "half \ud83d"},
    {"command": "insert", "path": "/memories/a.txt", "insert_line": "one", "insert_text": "x"},
    {"command": "rename", "old_path": "/memories/a.txt"},
)


@pytest.mark.sample(1)
def test_calls_that_a_model_got_wrong(play: Play, memory: Memory) -> None:
    api = play(memory, create("/memories/a.txt"), *ODD)
    assert all(is_error and "\n" not in text and len(text) < 200 for is_error, text in api.told[1:])
    assert [path.name for path in files(memory)] == ["a.txt.md"]


def test_without_the_sdk_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anthropic.lib.tools", None)
    monkeypatch.delitem(sys.modules, "infinimem.adapters.anthropic")
    with pytest.raises(ImportError, match=r"pip install 'infinimem\[anthropic\]'"):
        importlib.import_module("infinimem.adapters.anthropic")
