"""Projects: turns of agent programs' sessions keep where they were said, and reading can be kept to one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from infinimem import Memory, Turn, open_memory
from infinimem.importers import survey
from infinimem.mcp.offers import offers
from infinimem.spec import strategies

SAID = {
    "/home/ann/heron": "The port is 8443, and heron uses tabs.",
    "/home/ann/heron/web": "The web page of the port overview is heron.html.",
    "/home/ann/teal": "The port is 9000 in teal.",
}


def remembered(library: Path, **more: Any) -> Memory:
    memory = open_memory(library, model="offline", create=True, **more)
    memory.observe([Turn(text, session=cwd, cwd=cwd, branch="main") for cwd, text in SAID.items()])
    memory.observe([Turn("The port wine is from Douro.", session="s")])
    return memory


def log(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def test_logs_tell_folder_and_branch(tmp_path: Path) -> None:
    said = {"type": "user", "sessionId": "s", "uuid": "u", "message": {"role": "user", "content": "Hi there"}}
    claude = log(tmp_path / "c.jsonl", [{**said, "cwd": "/w/heron", "gitBranch": "fix"}])
    payload = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "Name it Karla."}],
    }
    codex = log(
        tmp_path / "x.jsonl",
        [
            {"type": "session_meta", "payload": {"id": "s", "cwd": "/w/teal", "git": {"branch": "main"}}},
            {"type": "response_item", "payload": payload},
            {"type": "turn_context", "payload": {"cwd": "/w/teal/web"}},
            {"type": "response_item", "payload": payload},
        ],
    )
    found = [turn for path in (claude, codex) for batch in survey(path).batches() for turn in batch]
    assert [(turn.cwd, turn.branch) for turn in found] == [
        ("/w/heron", "fix"),
        ("/w/teal", "main"),
        ("/w/teal/web", "main"),
    ]
    memory = open_memory(tmp_path / "library", model="offline", create=True)
    (first, *_) = memory.record(found)
    assert (first.entry.fields["cwd"], first.entry.fields["branch"]) == ("/w/heron", "fix")


@pytest.mark.sample(2)
@pytest.mark.parametrize("project", ["/home/ann/heron", "heron", "Heron"])
def test_reading_can_be_kept_to_a_project(tmp_path: Path, project: str) -> None:
    memory = remembered(tmp_path / "library")
    memory.consolidate()
    heron = memory.within(project)
    told = heron.ask("What is the port?").text
    assert "8443" in told
    assert "9000" not in told
    assert "Douro" not in told
    assert {item.text for item in heron.retrieve("port").items} == {*list(SAID.values())[:2]}
    assert heron.tools.grep(pattern="port")["total_matches"] == 2
    assert {offer.tool.name for offer in offers(memory, heron).values()} >= {"search", "remember"}
    assert offers(memory, heron)["grep"].tool.run({"pattern": "9000"})["total_matches"] == 0
    memory.observe([Turn("The port of heron's test is 1234.", session="new", cwd="/home/ann/heron")])
    assert "1234" in heron.tools.search(query="port of the test")["hits"][0]["snippet"]
    assert not memory.within("/home/ann/her").retrieve("port").items


@pytest.mark.sample(2)
@pytest.mark.parametrize("strategy", strategies())
def test_every_strategy_can(tmp_path: Path, strategy: str) -> None:
    memory = remembered(tmp_path / "library", strategy=strategy)
    memory.consolidate()
    found = [item.text for item in memory.within("teal").retrieve("Which port?").items]
    assert found
    assert not any("8443" in text or "Douro" in text for text in found)
