"""Names of speakers, sessions and folders are shown as text, whatever their characters."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from cli_runner import Shell
from mcp_client import drive, texts

from infinimem import Turn, open_memory
from infinimem.memory import Memory

HOSTILE = "Eve\x1b[2J\x9b31m\u200b\u2028Ops"
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028\u2029\u202e\ufeff]")
LINE = "My heron port on staging is 8417."


@pytest.fixture
def memory(shell: Shell) -> Iterator[Memory]:
    """A library in which somebody with such a name said a line."""
    with open_memory(str(shell.library), model="offline", create=True) as made:
        made.observe([{"role": "user", "content": LINE, "time": "2025-05-01", "speaker": HOSTILE}])
        yield made


def served(memory: Memory) -> Any:
    pytest.importorskip("mcp", reason="the MCP SDK is not installed (pip install 'infinimem[mcp]')")
    from infinimem.mcp.server import make_server

    return make_server(memory)


def test_names_in_recalled_text_are_text(shell: Shell, memory: Memory) -> None:
    """What hooks put before a model holds no control or invisible character of a name, or of a folder."""
    folder = shell.home / "heron\x1b\u200b"
    folder.mkdir()
    memory.observe([Turn("Never restart it by day.", speaker=HOSTILE, cwd=str(folder))])
    for prompt, wanted in (("Where is heron on staging?", "8417"), ("hello", "by day")):
        given = ("--json", "--library", str(shell.library), "recall", prompt, "--cwd", str(folder))
        text = shell(*given).json["text"]
        assert wanted in text
        assert "Eve\\x1b[2J\\x9b31m\\u200b" in text
        assert not STEERING.search(text)
    assert "[standing in heron\\x1b\\u200b]" in text


def test_names_in_the_text_of_tools_are_text(memory: Memory) -> None:
    """The text of every tool shows such a name as visible escapes."""
    for name, given in (
        ("search", {"query": "heron port"}),
        ("grep", {"pattern": "8417"}),
        ("grep_doc", {"doc_id": "CURRENT", "pattern": "8417"}),
        ("read_lines", {"doc_id": "CURRENT"}),
    ):
        text = memory.tools.text(name, given)
        assert "8417" in text and "Eve\\x1b[2J" in text
        assert not STEERING.search(text.replace("\n", ""))


def test_names_over_mcp_are_text(memory: Memory) -> None:
    """An MCP client gets no such character from search, read_lines or ask."""

    async def work(client: Any) -> None:
        for name, given in (
            ("search", {"query": "heron port"}),
            ("read_lines", {"doc_id": "CURRENT"}),
            ("ask", {"question": "Which port has heron on staging?"}),
        ):
            text = texts(await client.call_tool(name, given))
            assert "8417" in text and not STEERING.search(text.replace("\n", ""))

    drive(served(memory), work)


def test_one_grep_keeps_no_other_client_waiting(tmp_path: Path) -> None:
    """While one client's grep runs to its limit, another's search is answered."""
    source = random.Random(5)
    (tmp_path / "big.md").write_text("\n".join("".join(source.choices("ab ", k=20_000)) for _ in range(120)))
    (tmp_path / "heron.md").write_text(f"# Heron\n\n{LINE}\n")
    waited: list[float] = []

    with open_memory(str(tmp_path), model="offline") as memory:
        memory.tools.search("heron")

        async def work(client: Any) -> None:
            over = anyio.Event()

            async def costly() -> None:
                told = await client.call_tool("grep", {"pattern": "a[ab ]{300}a[ab ]{300}#"})
                assert told.is_error and "more than 2 s" in texts(told)
                over.set()

            async with anyio.create_task_group() as group:
                group.start_soon(costly)
                while not over.is_set():
                    began = time.monotonic()
                    await client.call_tool("search", {"query": "heron port"})
                    waited.append(time.monotonic() - began)

        drive(served(memory), work)
    assert len(waited) > 3 and max(waited) < 1.5
