"""mcp on the command line: what it is told before it serves."""

from __future__ import annotations

from typing import Any

import pytest
from cli_runner import Shell

from infinimem.errors import ModelUnavailable
from infinimem.memory import Memory

pytest.importorskip("mcp", reason="the MCP SDK is not installed (pip install 'infinimem[mcp]')")


def test_a_cap_holds_as_long_as_it_serves(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shell("init").code == 0
    served: list[Memory] = []

    def serve(serving: Any) -> None:
        (memory,) = served
        with pytest.raises(ModelUnavailable, match="cap is spent"):
            memory.ask("Where?", "hybrid")

    monkeypatch.setattr(
        "infinimem.mcp.server.make_server", lambda memory, trust, project, begin: served.append(memory)
    )
    monkeypatch.setattr("infinimem.mcp.server.serve_stdio", serve)
    assert shell("mcp", "--max-tokens", "0").code == 0
    assert len(served) == 1


def test_remote_alone_is_refused(shell: Shell) -> None:
    shell("mcp", "--remote").failed(2, "give both")
