"""A model that knows one thing: of two units that begin with the same words the newer replaces the older."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest


def begins(text: str) -> list[str]:
    """The first words of what a unit says, whoever says it."""
    return text.rpartition(": ")[2].split()[:3]


def diagnose(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `diagnose`."""
    target = variables["target"]
    own = target.get("number") or target["id"]
    tasks = []
    for anchor in variables["anchors"]:
        if begins(anchor["summary"] or "") == begins(target["text"]):
            older, newer = sorted([(own, target["id"]), (anchor["id"], anchor["id"])])
            tasks.append(
                {"current_id": newer[1], "superseded_id": older[1], "confidence": 0.95, "reason": "newer"}
            )
    return {"split_tasks": [], "merge_tasks": [], "update_tasks": tasks[:1]}


@pytest.fixture
def updates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the offline client answer `diagnose` so."""
    monkeypatch.setattr("infinimem.llm.offline.tell.diagnose", diagnose)
