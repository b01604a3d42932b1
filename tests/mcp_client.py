"""What the tests of the MCP server share: libraries with a secret beside them, clients, hostile names."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from infinimem import open_memory
from infinimem.memory import Memory
from infinimem.model import Turn

SECRET = "the combination is 4711"
"""Stands in files beside the library, and behind its symbolic links."""

Drive = Callable[[Any], Awaitable[None]]


def make_library(folder: Path) -> Memory:
    """A library with two notes, a turn, and links that lead out of it."""
    outside = folder / "outside"
    outside.mkdir(parents=True)
    (outside / "secret.md").write_text(f"- {SECRET}\n")
    root = folder / "library"
    memory = open_memory(root, model="offline", create=True)
    (root / "garden.md").write_text("---\nsummary: what grows\n---\n# Garden\n\nTomatoes need sun.\n")
    (root / "trip to Évora.md").write_text("# Évora\n\nThe train leaves at nine.\n")
    (root / "link.md").symlink_to(outside / "secret.md")
    (root / "linked").symlink_to(outside)
    memory.observe([Turn(text="I moved to Lisbon with my cat Miso.", time="2025-03-03", session="s1")])
    return memory


def environment(home: Path) -> dict[str, str]:
    """A process's environment: no model, no library, a home and a cache of its own."""
    return {
        **{name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH", "LANG")},
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "INFINIMEM_TRUST": str(home / "library"),
    }


def command(memory: Memory, *args: str) -> list[str]:
    """The installed server's command line."""
    return [sys.executable, "-m", "infinimem", "--library", str(memory.library.root), "-q", "mcp", *args]


def drive(server: Any, work: Drive, mode: str = "auto", **how: Any) -> None:
    """Connect the official client to a server and let it work; `how` the client is made."""
    client = pytest.importorskip("mcp").Client

    async def connected() -> None:
        async with client(server, mode=mode, read_timeout_seconds=60, **how) as made:
            await work(made)

    try:
        anyio.run(connected)
    except BaseExceptionGroup as group:
        raise _leaf(group) from group


def _leaf(error: BaseException) -> BaseException:
    """What a test is to say of a group of errors: the first of them."""
    return _leaf(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


def texts(result: Any) -> str:
    """All text of a tool's result."""
    return "\n".join(block.text for block in result.content)


def hostile() -> list[str]:
    """Names of documents that are none, 200 and more: ways out, tricks of encoding, things too long."""
    up = ["..", "../..", "./..", "a/../..", "topics/../..", "....//..", "../library/..", "~"]
    ends = ["outside/secret", "outside/secret.md", "secret", "etc/passwd", ".infinimem/lock", "up.toml"]
    names = [f"{way}/{end}" for way in up for end in ends]
    names += [f"/{name}" for name in names] + [name.replace("/", "\\") for name in names]
    names += [name.replace("../", "..%2f").replace("..", "%2e%2e") for name in names[:12]]
    names += [name.replace("..", "\u2024\u2024").replace("/", "\u2215") for name in names[:12]]
    names += [name.replace("/", "\uff0f") for name in names[:6]]
    names += ["link", "link.md", "linked/secret", "linked", "linked/", "LINK", "./link", "linked/../link"]
    names += ["/etc/passwd", "//etc/passwd", "C:\\Windows\\win.ini", "\\\\host\\share", "file:///etc/passwd"]
    names += ["garden\x00", "garden\x00.md", "\x00", "gar\x00den", "garden.md\x00.png", "../garden\x00"]
    names += ["x" * 300, "x/" * 400, "../" * 300 + "etc/passwd", "\ud7ff" * 200, "a" * 1000, "." * 900]
    names += ["CON", "NUL", "aux.md", "garden:stream", "garden.md:$DATA", "$(cat secret)", "`id`", "|id"]
    names += ["\u202egarden", "gar\u200bden", "gard\u0435n", "\uff47arden", "\ufeffgarden", "garden\n../x"]
    names += [".gitignore", ".git/config", ".infinimem", ".infinimem/seq", "infinimem.toml", "*", "[a-z]*"]
    return list(dict.fromkeys(names))
