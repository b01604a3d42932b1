"""A short conversation with a real, tiny model behind a real endpoint: it answers nonsense, the law holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from server import HastyClient

from infinimem import Turn, open_memory

pytestmark = pytest.mark.server

TALK = (
    ("user", "I moved to Lisbon in March and I am allergic to peanuts."),
    ("assistant", "Good to know: no peanuts for you in Lisbon."),
    ("user", "My sister Rita visits on 14 June with her two children."),
    ("user", "I run ten kilometres every Sunday along the river."),
)


def test_a_conversation_through_a_model_that_talks_nonsense(tmp_path: Path, model_url: str) -> None:
    root = tmp_path / "m"
    open_memory(root, model="offline", create=True)
    (root / "infinimem.toml").write_text("[infini]\nplan_retries = 1\n[reader]\nmax_iterations = 2\n")
    client = HastyClient("smollm2", model_url, api_key="none", timeout=120, retries=0)
    memory = open_memory(root, model=client)
    memory.observe(
        [Turn(text, role, session="s1", time=f"2025-05-0{n}") for n, (role, text) in enumerate(TALK, 1)]
    )
    view = memory.view
    assert len(list(view.entries("evidence"))) == len(TALK)
    assert view.uncited() == ()
    before = {place.entry.seq: place.entry.line for place in view.buffer.entries}

    memory.consolidate()
    view = memory.view
    after = {place.entry.seq: place.entry.line for s in ("default", "archive") for place in view.entries(s)}  # type: ignore[arg-type]
    assert after == before
    assert view.buffer.entries == ()
    assert memory.doctor() == []

    answer = memory.ask("Who visits in June?")
    assert answer.text
    assert answer.citations
    assert {"extract", "rewrite", "plan", "layout", "step", "answer"} <= set(client.usage)
