"""The recipes of the pages run, against a fake server."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_server import FakeServer, Say, chat, serve
from infinimem.tools.tool import LABEL

from infinimem import Turn, open_memory

DOCS = Path(__file__).parents[1] / "docs"


def run(page: str, heading: str, needs: str = "anthropic") -> None:
    """Run the block below a heading, as it stands."""
    extra = "anthropic" if needs == "anthropic" else "recipes"
    pytest.importorskip(needs, reason=f"needs the extra: pip install 'infinimem[{extra}]'")
    section = (DOCS / page).read_text().split(f"# {heading}\n", 1)[1].split("\n## ", 1)[0]
    (block,) = re.findall(r"^```python\n(.*?)^```", section, flags=re.M | re.S)
    exec(compile(block, page, "exec"), {"__name__": "page"})


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
        run("AGENT_LOOPS.md", "Anthropic, with the tools")
    assert "She lives in Lisbon." in capsys.readouterr().out
    assert [tool["name"] for tool in server.requests[0]["tools"]][:1] == ["grep"]
    (result,) = server.requests[1]["messages"][-1]["content"]
    assert result["type"] == "tool_result" and "I moved to Lisbon." in result["content"]


def test_the_memory_tool(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    create = use("memory", command="create", path="/memories/train.md", file_text="8:14\n")
    with serve(message(create), SAID) as server:
        at(server, monkeypatch)
        run("MEMORY_TOOL.md", "Anthropic's memory tool")
    assert "She lives in Lisbon." in capsys.readouterr().out
    assert (home / "notes/memories/train.md").read_text() == "8:14\n"


# ── frameworks, against a server that speaks OpenAI's API ───────────────────────────────────────

ANSWER = "She lives in Lisbon."
CALL = {
    "id": "call-1",
    "type": "function",
    "function": {"name": "search", "arguments": '{"query": "Lisbon"}'},
}


def reply(asked: dict[str, Any]) -> Say:
    """A call of a tool, then an answer, in the form of the API that was asked."""
    if "input" in asked:
        return responded(asked)
    calls = asked["messages"][-1]["role"] == "user"
    message = {"tool_calls": [CALL]} if calls else {}
    text, finish = (None, "tool_calls") if calls else (ANSWER, "stop")
    return chat(text, finish, **message)


def responded(asked: dict[str, Any]) -> Say:
    """The same in the form of the Responses API."""
    found = isinstance(asked["input"], list) and asked["input"][-1].get("type") == "function_call_output"
    call = {
        "type": "function_call",
        "id": "fc-1",
        "call_id": "call-1",
        "status": "completed",
        **CALL["function"],
    }
    text = {"type": "output_text", "text": ANSWER, "annotations": []}
    said = {"type": "message", "id": "m-1", "role": "assistant", "status": "completed", "content": [text]}
    body = {
        "id": "r-1",
        "object": "response",
        "created_at": 0,
        "model": "m",
        "status": "completed",
        "output": [said if found else call],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
    }
    return Say(body=json.dumps(body))


@pytest.fixture
def loop() -> Iterator[None]:
    """The thread's own, which a framework would make and leave open."""
    made = asyncio.new_event_loop()
    asyncio.set_event_loop(made)
    yield
    asyncio.set_event_loop(None)
    made.close()


FIVE = ["grep", "grep_doc", "search", "list_docs", "read_lines"]


@pytest.mark.sample(2)
@pytest.mark.usefixtures("loop")
@pytest.mark.filterwarnings("ignore")  # what a framework warns of is its own
@pytest.mark.parametrize(
    ("heading", "package"),
    [("LangChain", "langchain_openai"), ("OpenAI Agents SDK", "agents"), ("pydantic-ai", "pydantic_ai")],
)
def test_the_recipe_of_a_framework_runs(
    heading: str, package: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")  # it would report to its maker
    with serve(reply) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        run("AGENT_LOOPS.md", heading, package)
    assert ANSWER in capsys.readouterr().out
    assert [tool.get("function", tool)["name"] for tool in server.requests[0]["tools"]] == FIVE
    found = json.dumps(server.requests[1])
    assert LABEL in found and "I moved to Lisbon." in found


@pytest.mark.filterwarnings("ignore")
def test_the_recipe_of_llamaindex_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """With its own mock model: its OpenAI client cannot be installed beside the newest `openai`."""
    pytest.importorskip("llama_index.core", reason="needs the extra: pip install 'infinimem[recipes]'")
    from llama_index.core import Settings
    from llama_index.core.base.llms.types import ToolCallBlock
    from llama_index.core.llms import ChatMessage, MockFunctionCallingLLM

    seen: list[str] = []

    def said(messages: list[ChatMessage], **asked: Any) -> ChatMessage:
        seen.append(f"{[tool.metadata.name for tool in asked['tools']]} {messages[-1].content}")
        call = ToolCallBlock(tool_name="search", tool_kwargs={"query": "Lisbon"}, tool_call_id="call-1")
        blocks = {"blocks": [call]} if len(seen) == 1 else {"content": ANSWER}
        return ChatMessage(role="assistant", **blocks)

    Settings.llm = MockFunctionCallingLLM(response_generator=said)
    run("AGENT_LOOPS.md", "LlamaIndex", "llama_index.core")
    assert ANSWER in capsys.readouterr().out
    assert seen[0].startswith(str(FIVE))
    assert LABEL in seen[1] and "I moved to Lisbon." in seen[1]
