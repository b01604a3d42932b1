"""A search before anything was remembered does no harm to those after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp_client import drive, texts

from infinimem import open_memory
from infinimem.spec import strategies


@pytest.mark.parametrize("strategy", sorted(strategies()))
def test_what_is_remembered_after_an_empty_search_is_found(tmp_path: Path, strategy: str) -> None:
    """Search, remember, search again in one process finds what was remembered, with every strategy."""
    with open_memory(tmp_path / "m", model="offline", strategy=strategy, create=True) as memory:
        assert memory.tools.search(query="What does Ilse keep in the cellar?")["hits"] == []
        assert memory.retrieve("cellar").items == ()
        memory.observe([{"role": "user", "content": "Ilse keeps quince jelly in the cellar."}])
        hits = memory.tools.search(query="What does Ilse keep in the cellar?")["hits"]
        assert any("quince jelly" in hit["snippet"] for hit in hits)
        assert any("quince jelly" in item.text for item in memory.retrieve("quince jelly").items)


@pytest.mark.parametrize("initialised", [True, False])
def test_notes_added_to_an_empty_folder_are_found(tmp_path: Path, initialised: bool) -> None:
    """Notes that come into an empty folder after a search are found by the next one, the best first."""
    folder = tmp_path / "notes"
    folder.mkdir()
    with open_memory(folder, create=initialised) as memory:
        assert memory.tools.search(query="lathe")["hits"] == []
        (folder / "shop.md").write_text("# Shop\n\nThe lathe stands by the window, the lathe hums.\n")
        (folder / "long.md").write_text("# Long\n\n" + "Nothing of note. " * 60 + "Once a lathe.\n")
        hits = memory.tools.search(query="lathe")["hits"]
        assert [hit["doc_id"] for hit in hits] == ["shop", "long"]
        assert memory.retrieve("lathe").items


def test_search_remember_search_over_mcp(tmp_path: Path) -> None:
    """The natural first session over MCP works: search, remember, search."""
    pytest.importorskip("mcp", reason="the MCP SDK is not installed (pip install 'infinimem[mcp]')")
    from infinimem.mcp.server import make_server

    async def work(client: Any) -> None:
        await client.call_tool("search", {"query": "cellar"})
        await client.call_tool("remember", {"text": "Ilse keeps quince jelly in the cellar."})
        found = await client.call_tool("search", {"query": "cellar"})
        assert not found.is_error and "quince jelly" in texts(found)

    memory = open_memory(tmp_path / "m", model="offline", create=True)
    drive(make_server(memory), work)
