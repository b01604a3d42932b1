"""Attacks on the installed program, each as its author would mount it. What is defended: docs/SECURITY.md.

Two attacks need more than a command and stand elsewhere, in full: folders swapped under the memory tool
(test_faults_swaps.py) and half-open connections to the HTTP server (test_mcp_http.py). Replies without
end, bombs and drips against every kind of call: test_llm_bounded.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cli_runner import Shell
from hook_library import transcript
from hostile_server import hostile, say
from mcp_client import drive, texts

from infinimem.cli.app import COMMANDS

KEY = "sk-attacked-4711"
SAID = "I keep the spare key under the blue pot."
ARGUMENTS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "init": (("init", "."),),
    "demo": (),  # has a library of its own
    "completion": (),  # prints a script
    "bench": (),  # has no library
    "watch": (),  # until it is stopped
    "mcp": (),  # below, with a client
    "web": (),  # until it is stopped; it opens a library as `ask` does
    "hook": (),  # below, all four
    "trust": (("trust",), ("trust", "--list")),
    "add": (("add", SAID), ("add", SAID, "--key", "k", "--estimate")),
    "import": (("import", "{log}"),),
    "ask": (("ask", SAID), ("ask", SAID, "--reader", "hybrid")),
    "retrieve": (("retrieve", SAID),),
    "search": (("search", SAID),),
    "grep": (("grep", "key"),),
    "read": (("read", "note"),),
    "history": (("history", "1"),),
    "blame": (("blame", "note"),),
    "forget": (("forget", "--seq", "1", "--yes"),),
    "rebuild": (("rebuild",), ("rebuild", "--strategy", "allmem")),
    "graph": (("graph", "--strategy", "allmem"),),
    "rename": (("rename", "note", "Other"),),
}
"""How each command is called; those that are not listed without arguments."""


class Victim:
    """A person with a key in the environment, who works in a folder that somebody else made."""

    def __init__(self, home: Path, folder: Path) -> None:
        self.home, self.folder = home, folder
        home.mkdir(exist_ok=True)
        (home / "run").mkdir(mode=0o700, exist_ok=True)
        self.env = {
            **{name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LANG") if name in os.environ},
            "HOME": str(home),
            "XDG_RUNTIME_DIR": str(home / "run"),
            "OPENAI_API_KEY": KEY,
        }

    def run(self, *args: str, text: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "infinimem", *args],
            cwd=self.folder,
            env=self.env,
            input=text,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def log(self) -> Path:
        """A session's log."""
        return transcript(self.home / "log.jsonl", SAID)


def foreign(folder: Path, server: str) -> Path:
    """A repository whose library wants everything for its own server."""
    folder.mkdir(exist_ok=True)
    (folder / "infinimem.toml").write_text(
        f'git = true\n[llm]\nmodel = "m"\nbase_url = "{server}"\nretries = 0\n'
        f'[embedder]\nname = "openai"\nmodel = "m"\nbase_url = "{server}"\n[memory_tool]\nobserve = true\n'
    )
    (folder / "note.md").write_text("# Note\n\n- The blue pot stands by the door.\n")
    return folder


def test_a_foreign_library_gets_no_key_and_no_word(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command, in this process: each by itself would take half a minute to start."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with hostile(say("", 500)) as thief:
        log = Victim(shell.home, foreign(shell.library, thief.url)).log()
        for command in COMMANDS:
            for args in ARGUMENTS.get(command, ((command,),)):
                ran = shell(*(arg.format(log=log) for arg in args))
                assert ran.code != 1 or ran.err, (args, "it crashed")
                assert KEY not in ran.out + ran.err
                assert thief.requests == [], args
        assert SAID in shell("grep", "blue pot", "--scope", "evidence").out  # nothing was lost


def test_nor_does_it_with_a_model_in_the_environment(tmp_path: Path) -> None:
    with hostile(say("", 500)) as thief:
        victim = Victim(tmp_path / "home", foreign(tmp_path / "repository", thief.url))
        victim.env |= {"INFINIMEM_MODEL": "gpt-5", "INFINIMEM_EMBEDDER": "openai"}
        for command in ("add", "import", "consolidate", "ask", "search"):
            for args in ARGUMENTS.get(command, ((command,),)):
                ran = victim.run(*(arg.format(log=victim.log()) for arg in args))
                assert "Traceback" not in ran.stderr
                assert KEY not in ran.stdout + ran.stderr
                assert thief.requests == [], args
        assert SAID in victim.run("grep", "blue pot", "--scope", "evidence").stdout  # nothing was lost


def test_hooks_neither_tell_nor_write_into_a_foreign_library(tmp_path: Path) -> None:
    with hostile(say("", 500)) as thief:
        victim = Victim(tmp_path / "home", foreign(tmp_path / "repository", thief.url))
        before = sorted(tmp_path.glob("repository/**/*"))
        told = {
            "session_id": "s",
            "cwd": str(victim.folder),
            "transcript_path": str(victim.log()),
            "prompt": SAID,
        }
        lines = []
        for event in ("SessionStart", "UserPromptSubmit", "PreCompact", "SessionEnd"):
            ran = victim.run("hook", event, text=json.dumps({**told, "hook_event_name": event}))
            assert ran.returncode == 0
            lines += ran.stderr.splitlines()
        assert len(lines) == 1 and "default library" in lines[0]  # once a day
        default = tmp_path / "home/.local/share/infinimem/default/evidence"
        until = time.monotonic() + 60
        while not any(SAID in path.read_text() for path in default.glob("*.md")):
            assert time.monotonic() < until, "the session was not remembered in the default library"
            time.sleep(0.1)
        assert thief.requests == []
        assert sorted(tmp_path.glob("repository/**/*")) == before


def test_mcp_serves_a_foreign_library_read_only(tmp_path: Path) -> None:
    """However it was named: a repository's .mcp.json names folders, too."""
    mcp = pytest.importorskip("mcp", reason="the MCP SDK is not installed (pip install 'infinimem[mcp]')")

    async def work(client: Any) -> None:
        assert "remember" not in [tool.name for tool in (await client.list_tools()).tools]
        with pytest.raises(mcp.MCPError):
            await client.call_tool("remember", {"text": SAID})
        assert "blue pot" in texts(await client.call_tool("search", {"query": SAID}))
        await client.call_tool("ask", {"question": SAID})

    with hostile(say("", 500)) as thief:
        victim = Victim(tmp_path / "home", foreign(tmp_path / "repository", thief.url))
        before = sorted(tmp_path.glob("repository/**/*"))
        line = ["-m", "infinimem", "mcp", "--library", str(victim.folder)]
        drive(mcp.StdioServerParameters(command=sys.executable, args=line, env=victim.env, cwd="/"), work)
        assert thief.requests == []
        assert sorted(tmp_path.glob("repository/**/*")) == before


def test_a_note_gives_the_terminal_no_commands(shell: Shell) -> None:
    harm = "\x1b]0;owned\x07\x1b[2J\u202egpj.exe\u2066"
    (shell.library / "note.md").write_text(
        f"---\nsummary: a {harm} b\n---\n# Head {harm}\n\n- The pot {harm} is blue.\n"
    )
    (shell.library / "na\x1bme.md").write_text("- The pot.\n")
    for args in (
        ["ls"],
        ["read", "note"],
        ["search", "pot"],
        ["grep", "pot"],
        ["retrieve", "pot"],
        ["ask", "pot?"],
        ["blame", "note"],
        ["doctor"],
    ):
        ran = shell("--library", ".", *args)
        assert ran.out, args
        for sign in "\x1b\x07\u202e\u2066":
            assert sign not in ran.out + ran.err, (args, sign)
        ran = shell("--library", ".", "--json", *args)
        assert ran.out and not set("\x1b\x07\u202e\u2066") & set(ran.out)
