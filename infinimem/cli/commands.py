"""Every command, and the module of this package that holds it (`module:attribute` where the names differ)."""

from __future__ import annotations

from collections.abc import Mapping

COMMANDS: Mapping[str, str] = {
    "init": "writing",
    "demo": "demo",
    "add": "writing",
    "import": "writing:import_",
    "consolidate": "writing",
    "rebuild": "writing",
    "ask": "reading",
    "retrieve": "reading",
    "search": "lookup",
    "grep": "lookup",
    "ls": "lookup",
    "read": "lookup",
    "graph": "topology",
    "replay": "topology",
    "history": "history",
    "blame": "history",
    "log": "history",
    "undo": "history",
    "review": "review",
    "forget": "forgetting",
    "watch": "watching",
    "mcp": "mcp",
    "hook": "hook",
    "status": "care",
    "doctor": "care",
    "config": "trusting",
    "trust": "trusting",
    "lint": "care",
    "completion": "completion",
    "bench": "bench",
}
