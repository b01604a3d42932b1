"""The limits of size that docs/MCP.md names: one line that says what to do, and nothing is half done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp_client import drive, make_library, texts

pytest.importorskip("mcp", reason="the MCP SDK is not installed (pip install 'infinimem[mcp]')")

from mcp import MCPError
from mcp_serving import serve

from infinimem.mcp.server import make_server


def test_no_result_is_larger_than_its_limit(tmp_path: Path) -> None:
    """A result holds 16,000 characters of stored text; a resource 400,000; a remembered text 50,000."""
    memory = make_library(tmp_path)
    root = memory.library.root
    (root / "long.md").write_text("# Long\n" + "word " * 100_000)
    (root / "many.md").write_text("# Many\n" + "a word of many\n" * 5_000)
    (root / "whole.md").write_text("x" * 400_000)
    evidence = [path.read_bytes() for path in root.glob("evidence/*.md")]

    async def work(client: Any) -> None:
        for name, arguments in (
            ("read_lines", {"doc_id": "long"}),
            ("read_lines", {"doc_id": "many"}),
            ("read_lines", {"doc_id": "long", "start": 2, "offset": 250_000}),
            ("grep", {"pattern": "word", "context_lines": 5}),
            ("grep_doc", {"doc_id": "many", "pattern": "word"}),
            ("search", {"query": "word", "k": 10}),
        ):
            done = await client.call_tool(name, arguments)
            assert not done.is_error and "word" in texts(done), name
            assert len(texts(done)) < 18_000, name  # labels, numbers and marks included
        for uri, name in (("infinimem://doc/long", "read_lines"), (f"infinimem://doc/{'x' * 4000}", "")):
            with pytest.raises(MCPError) as refused:
                await client.read_resource(uri)
            assert name in str(refused.value) and len(str(refused.value).splitlines()) == 1
        (content,) = (await client.read_resource("infinimem://doc/whole")).contents
        assert len(content.text) == 400_000
        done = await client.call_tool("remember", {"text": "x" * 50_001})
        assert done.is_error and len(texts(done).splitlines()) == 1
        assert [path.read_bytes() for path in root.glob("evidence/*.md")] == evidence
        done = await client.call_tool("remember", {"text": "x" * 50_000})
        assert done.structured_content["recorded"] is True

    drive(make_server(memory), work)


def test_a_request_over_a_megabyte_is_refused(tmp_path: Path) -> None:
    """Over HTTP it is refused by its announced length, before it is read; the server goes on."""
    with serve(tmp_path) as serving:
        padded = {"X-Pad": "x", "Content-Length": str(2**20 + 1)}
        assert serving.post(Authorization=serving.bearer, **padded)[0] == 413
        assert serving.post(Authorization=serving.bearer)[0] == 200
