"""A model that plays a script of commands, behind the client and the tool runner of Anthropic's SDK."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from infinimem.memory import Memory

pytest.importorskip("anthropic", reason="needs the extra: pip install 'infinimem[anthropic]'")

import httpx2
from anthropic import Anthropic, AsyncAnthropic

from infinimem.adapters.anthropic import AsyncMemoryTool, MemoryTool

Command = Mapping[str, Any]
Told = tuple[bool, str]
"""Whether a result is an error, and its text."""


class Played:
    """The API: answers each request with the next command, and the last one with words."""

    def __init__(self, script: Sequence[Command]) -> None:
        self.script = script
        self.requests: list[dict[str, Any]] = []

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(json.loads(request.content))
        step = len(self.requests) - 1
        content: list[dict[str, Any]] = [{"type": "text", "text": "Done."}]
        if step < len(self.script):
            use = {"type": "tool_use", "id": f"call-{step}", "name": "memory", "input": self.script[step]}
            content = [use]
        body = {
            "id": f"msg-{step}",
            "type": "message",
            "role": "assistant",
            "model": "scripted",
            "content": content,
            "stop_reason": "tool_use" if step < len(self.script) else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        headers = {"content-type": "application/json"}
        return httpx2.Response(200, content=json.dumps(body).encode(), headers=headers)

    @property
    def told(self) -> list[Told]:
        results = [request["messages"][-1]["content"][0] for request in self.requests[1:]]
        return [(bool(result.get("is_error")), result["content"]) for result in results]


ASKED: dict[str, Any] = {
    "model": "scripted",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "Remember."}],
}


def played(memory: Memory, *script: Command) -> Played:
    """The script run through `Anthropic` and its tool runner."""
    api = Played(script)
    with httpx2.Client(transport=httpx2.MockTransport(api.answer)) as http:
        client = Anthropic(api_key="none", http_client=http, max_retries=0)
        last = client.beta.messages.tool_runner(tools=[MemoryTool(memory)], **ASKED).until_done()
    assert last.stop_reason == "end_turn"
    return api


def played_async(memory: Memory, *script: Command) -> Played:
    """The same through `AsyncAnthropic`."""
    api = Played(script)

    async def answer(request: httpx2.Request) -> httpx2.Response:
        return api.answer(request)

    async def run() -> None:
        async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as http:
            client = AsyncAnthropic(api_key="none", http_client=http, max_retries=0)
            runner = client.beta.messages.tool_runner(tools=[AsyncMemoryTool(memory)], **ASKED)
            last = await runner.until_done()
        assert last.stop_reason == "end_turn"

    asyncio.run(run())
    return api


Play = Callable[..., Played]
