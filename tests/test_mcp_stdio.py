"""The installed server in a process of its own, driven by the official client over its standard streams."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp_client import SECRET, command, drive, environment, hostile, make_library, texts

pytest.importorskip("mcp", reason="the MCP SDK is not installed (pip install 'infinimem[mcp]')")

from mcp import MCPError, StdioServerParameters

from infinimem import open_memory


def test_a_client_lists_searches_remembers_asks_and_reads(tmp_path: Path) -> None:
    memory = make_library(tmp_path)
    line = command(memory)
    server = StdioServerParameters(command=line[0], args=line[1:], env=environment(tmp_path))

    async def work(client: Any) -> None:
        assert client.server_info.name == "infinimem"
        assert len((await client.list_tools()).tools) == 8
        found = await client.call_tool("search", {"query": "tomatoes"})
        assert [hit["doc_id"] for hit in found.structured_content["hits"]] == ["garden"]
        kept = await client.call_tool("remember", {"text": "Miso is allergic to fish.", "time": "2025-05-01"})
        assert kept.structured_content["source"] == "AI"
        asked = await client.call_tool("ask", {"question": "What is Miso allergic to?"})
        assert "fish" in asked.structured_content["answer"]
        await _refuses(client, hostile())

    drive(server, work)
    fresh = open_memory(memory.library.root, model="offline")
    assert not [finding for finding in fresh.doctor() if finding.level == "error"]


def test_the_default_library_is_made_where_a_server_starts(tmp_path: Path) -> None:
    line = [sys.executable, "-m", "infinimem", "mcp"]
    home = {**environment(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}
    server = StdioServerParameters(command=line[0], args=line[1:], env=home, cwd=tmp_path)

    async def work(client: Any) -> None:
        assert len((await client.list_tools()).tools) == 8
        assert not (await client.call_tool("search", {"query": "cat"})).structured_content["hits"]
        kept = await client.call_tool("remember", {"text": "Miso is allergic to fish."})
        assert kept.structured_content["seq"] == 1
        assert (tmp_path / "data/infinimem/default/infinimem.toml").is_file()
        assert "fish" in texts(await client.call_tool("search", {"query": "allergic"}))

    drive(server, work)


def test_over_a_folder_of_notes_only_what_works_is_offered_and_named(tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    (vault / ".obsidian").mkdir(parents=True)
    (vault / "tea.md").write_text("# Tea\n\nSteep it for three minutes.\n")
    line = [sys.executable, "-m", "infinimem", "--library", str(vault)]
    done = subprocess.run(
        [*line, "trust", "--yes"], env=environment(tmp_path), capture_output=True, text=True, check=True
    )
    assert "write" not in done.stdout + done.stderr
    server = StdioServerParameters(command=line[0], args=[*line[1:], "mcp"], env=environment(tmp_path))

    async def work(client: Any) -> None:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert {"search", "ask"} < names
        assert "remember" not in names
        for word in ("remember", "archive", "evidence", "forget"):
            assert word not in client.instructions, word
        assert "three minutes" in texts(await client.call_tool("search", {"query": "steep tea"}))

    drive(server, work)


async def _refuses(client: Any, names: list[str]) -> None:
    """No name leads to what lies beside the library: as a document, and every fifth as a resource."""
    assert len(names) >= 200
    for number, name in enumerate(names):
        done = await client.call_tool("read_lines", {"doc_id": name})
        assert done.is_error, name
        assert SECRET not in texts(done)
        if number % 5 == 0:
            with pytest.raises(MCPError) as refused:
                await client.read_resource(f"infinimem://doc/{name}")
            assert SECRET not in str(refused.value)
    found = await client.call_tool("grep", {"pattern": SECRET, "scope": "all"})
    assert found.structured_content["total_matches"] == 0


def test_a_client_that_is_killed_harms_nothing(tmp_path: Path) -> None:
    """It goes in the middle of its calls: the server ends by itself, what it wrote is whole."""
    memory = make_library(tmp_path)
    process = subprocess.Popen(
        command(memory), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(tmp_path)
    )
    assert process.stdin
    assert process.stdout

    def send(method: str, **rest: Any) -> None:
        assert process.stdin
        process.stdin.write(json.dumps({"jsonrpc": "2.0", "method": method, **rest}).encode() + b"\n")
        process.stdin.flush()

    client = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    send("initialize", id=0, params=client)
    assert b'"protocolVersion":"2025-11-25"' in process.stdout.readline()
    send("notifications/initialized")
    for number in range(1, 16):
        fact = {"text": f"Friend {number} has {number} apples.", "key": f"k{number}"}
        send("tools/call", id=number, params={"name": "remember", "arguments": fact})
    assert process.stdout.readline()  # one is done, others are under way
    process.stdout.close()
    process.stdin.close()
    process.wait(30)

    fresh = open_memory(memory.library.root, model="offline")
    said = [place.entry.text for place in fresh.view.entries("evidence")][1:]
    assert said
    assert len(said) == len(set(said))
    fresh.observe(())
    assert not fresh.view.uncited()
    assert not [finding for finding in fresh.doctor() if finding.level == "error"]
    drawn = [place.entry.text for place in fresh.view.entries() if place.entry.text.startswith("Friend")]
    assert sorted(drawn) == sorted(said)
