"""The recipes of the pages run, against a fake server."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from fake_server import FakeServer, Say, serve

from infinimem import Turn, open_memory

pytest.importorskip("anthropic", reason="needs the extra: pip install 'infinimem[anthropic]'")

DOCS = Path(__file__).parents[1] / "docs"


def run(page: str, block: int) -> dict[str, Any]:
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(), flags=re.M | re.S)
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(blocks[block], page, "exec"), names)
    return names


def message(*content: dict[str, Any]) -> Say:
    """An answer of Anthropic's API."""
    calls = any(block["type"] == "tool_use" for block in content)
    body = {
        "id": "msg",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": list(content),
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    return Say(body=json.dumps(body))


def use(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": "call-1", "name": name, "input": arguments}


SAID = message({"type": "text", "text": "She lives in Lisbon."})


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    open_memory("notes", model="offline", create=True).observe([Turn("I moved to Lisbon.", session="s1")])
    return tmp_path


def at(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url.removesuffix("/v1"))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test")


def test_the_loop_with_the_tools(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with serve(message(use("search", query="Lisbon")), SAID) as server:
        at(server, monkeypatch)
        run("AGENT_LOOPS.md", 0)
    assert "She lives in Lisbon." in capsys.readouterr().out
    assert [tool["name"] for tool in server.requests[0]["tools"]][:1] == ["grep"]
    (result,) = server.requests[1]["messages"][-1]["content"]
    assert result["type"] == "tool_result" and "I moved to Lisbon." in result["content"]


def test_plain_functions_as_tools() -> None:
    search, read = run("AGENT_LOOPS.md", 1)["functions"]
    assert "I moved to Lisbon." in search("Lisbon")
    assert "I moved to Lisbon." in read("CURRENT", 1, 9)

    from anthropic import beta_tool

    assert [beta_tool(function).to_dict()["name"] for function in (search, read)] == [
        "search_memory",
        "read_memory",
    ]


def test_the_memory_tool(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    create = use("memory", command="create", path="/memories/train.md", file_text="8:14\n")
    with serve(message(create), SAID) as server:
        at(server, monkeypatch)
        run("MEMORY_TOOL.md", 0)
    assert "She lives in Lisbon." in capsys.readouterr().out
    assert (home / "notes/memories/train.md").read_text() == "8:14\n"
