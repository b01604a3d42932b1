"""import: interrupted it goes on, repeated it adds nothing, and it says what was left out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from cli_runner import Shell

from infinimem.importers import read
from infinimem.memory import Memory
from infinimem.model import Located, Turn


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    return initialised(tmp_path, monkeypatch)


def initialised(home: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    home.mkdir(exist_ok=True)
    shell = Shell(home, monkeypatch)
    assert shell("init", ".").code == 0
    return shell


def conversation(number: int) -> dict[str, Any]:
    """Two messages and a system prompt, as ChatGPT exports them."""
    nodes: dict[str, Any] = {}
    last = None
    for name, role, text in (
        ("s", "system", "be brief"),
        ("a", "user", f"My plant number {number} is a fern."),
        ("b", "assistant", f"Number {number} likes shade."),
    ):
        ident = f"{number}-{name}"
        message = {
            "id": ident,
            "author": {"role": role},
            "create_time": 1_700_000_000 + number * 100,
            "content": {"content_type": "text", "parts": [text]},
        }
        nodes[ident] = {"id": ident, "parent": last, "children": [], "message": message}
        last = ident
    return {"title": "Plants", "id": f"{number:08d}", "mapping": nodes, "current_node": last}


@pytest.fixture
def export(tmp_path: Path) -> str:
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([conversation(number) for number in range(10)]))
    return str(path)


def evidence(shell: Shell) -> dict[str, str]:
    """What was said, file by file, without the seqs."""
    folder = shell.library / "evidence"
    return {
        path.name: re.sub(r"(?m)^- <seq=\d+", "", path.read_text()) for path in sorted(folder.glob("*.md"))
    }


@pytest.mark.parametrize("record", [True, False])
def test_twice_interrupted_it_goes_on_and_repeated_it_adds_nothing(
    library: Shell, export: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record: bool
) -> None:
    args = ("import", export, "--json", *(["--record"] if record else []))
    monkeypatch.setattr(read, "BATCH_TURNS", 3)
    plainly, calls = Memory.record, 0

    def interrupted(memory: Memory, turns: Iterable[Turn]) -> tuple[Located, ...]:
        nonlocal calls
        calls += 1
        if calls in (3, 7):
            raise KeyboardInterrupt
        return plainly(memory, turns)

    monkeypatch.setattr(Memory, "record", interrupted)
    assert [library(*args).code for _ in range(2)] == [130, 130]
    told = library(*args).json
    assert (told["turns"], told["recorded"]) == (20, 20 - 9)
    assert told["skipped_why"] == {"system prompts": 10}
    assert bool(told["entries"]) is not record
    again = library(*args).json
    assert (again["recorded"], again["entries"]) == (0, 0)
    broken = evidence(library)
    whole = initialised(tmp_path / "whole", monkeypatch)
    assert whole(*args).json["recorded"] == 20
    assert evidence(whole) == broken


def test_an_interrupted_import_says_how_far_it_came(
    library: Shell, export: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Memory, "draw", stopped)
    assert "interrupted: 20 turns recorded" in library("import", export).err
    monkeypatch.undo()


def test_what_is_only_recorded_is_found_and_drawn_from_later(library: Shell, export: str) -> None:
    done = library("import", export, "--record")
    assert "20 turns, 0 entries" in done.out
    assert "recorded only" in done.err
    assert library("status", "--json").json["pending"] == 20
    assert library("import", export, "--json").json["entries"] > 0
    assert library("status", "--json").json["pending"] == 0


def test_an_export_that_grew_adds_what_is_new(library: Shell, export: str) -> None:
    library("import", export)
    Path(export).write_text(json.dumps([conversation(number) for number in range(12)]))
    assert [library("import", export, "--json").json["recorded"] for _ in range(2)] == [4, 0]
    assert len(evidence(library)) == 12


def test_what_one_log_holds_twice_is_recorded_once(library: Shell, tmp_path: Path) -> None:
    line = {"type": "user", "sessionId": "s", "uuid": "u", "message": {"role": "user", "content": "hm"}}
    fork = {**line, "sessionId": "s2", "uuid": "u2", "forkedFrom": {"sessionId": "s", "messageUuid": "u"}}
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in (line, fork, line)))
    told = library("import", str(path), "--json").json
    assert (told["format"], told["turns"], told["recorded"]) == ("claude-code", 3, 1)


def test_a_folder_tells_the_files_that_it_passed_over(library: Shell, export: str) -> None:
    folder = Path(export).parent / "downloads"
    folder.mkdir()
    Path(export).rename(folder / "conversations.json")
    for number in range(10):
        (folder / f"bad{number}.json").write_text("{")
    done = library("import", str(folder))
    assert "chatgpt: 10 sessions, 20 turns" in done.out
    assert "skipped bad0.json: bad0.json is damaged JSON" in done.err
    assert "skipped 2 more files, --json names all" in done.err
    assert len(library("import", str(folder), "--json").json["left_out"]) == 10


def test_a_file_that_changes_under_the_import_is_told(
    library: Shell, export: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plainly = read.Survey.batches

    def cut(found: read.Survey) -> Any:
        Path(export).write_text(Path(export).read_text()[:-5])
        return plainly(found)

    monkeypatch.setattr(read.Survey, "batches", cut)
    library("-q", "import", export).failed(1, "damaged JSON")
