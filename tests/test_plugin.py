"""The plugin for Claude Code and the block for AGENTS.md: as their formats want, and naming what exists.

Formats: code.claude.com/docs/en/plugins-reference, /plugin-marketplaces, /hooks, /skills.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from cli_runner import Shell

from infinimem import open_memory
from infinimem.cli.app import COMMANDS
from infinimem.hooks import EVENTS
from infinimem.mcp.offers import offers

ROOT = Path(__file__).parents[1]
PLUGIN = ROOT / "integrations" / "claude-code"
SKILLS = sorted(PLUGIN.glob("skills/*/SKILL.md"))
TASKS = [PLUGIN / "skills/consolidate-memory/SKILL.md", PLUGIN / "agents/memory-keeper.md"]
"""What tells of tasks, which only the model `agent` has."""
SNIPPET = ROOT / "docs" / "AGENTS_SNIPPET.md"
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
MANIFEST = {"name", "version", "description", "author", "homepage", "repository", "license", "keywords"}


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def commands(text: str) -> list[list[str]]:
    """Every call of the program that a text shows between backticks or quotes."""
    return [shlex.split(call) for call in re.findall(r"[`\"](infinimem (?:[^`]*?))`", text)]


def project() -> dict[str, Any]:
    return dict(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"])


def test_the_manifest_is_the_packages() -> None:
    manifest = read(PLUGIN / ".claude-plugin" / "plugin.json")
    assert set(manifest) <= MANIFEST
    assert NAME.fullmatch(manifest["name"])
    for path in (".claude-plugin/plugin.json", ".codex-plugin/plugin.json", "plugin.json"):
        own = read(PLUGIN / path)
        assert [own[name] for name in ("name", "version", "license")] == [
            project()[name] for name in ("name", "version", "license")
        ]
    assert set(manifest["author"]) <= {"name", "email", "url"}
    assert manifest["author"]["name"]
    # Nothing but the manifest lies in its folder; components lie beside it, where they are looked for.
    assert [path.name for path in (PLUGIN / ".claude-plugin").iterdir()] == ["plugin.json"]


def test_each_event_has_its_hook() -> None:
    found = read(PLUGIN / "hooks" / "hooks.json")
    assert set(found) <= {"description", "hooks"}
    assert set(found["hooks"]) == set(EVENTS)
    for event, groups in found["hooks"].items():
        for group in groups:
            assert set(group) <= {"matcher", "hooks"}
            for handler in group["hooks"]:
                assert set(handler) == {"type", "command", "timeout"}
                assert handler["type"] == "command"
                script = f'sh "${{CLAUDE_PLUGIN_ROOT}}/hooks/hook.sh" {event}'
                assert handler["command"] == script
                assert 0 < handler["timeout"] <= 30


@pytest.mark.sample(2)
@pytest.mark.parametrize("event", EVENTS)
def test_without_the_program_only_a_start_says_so(event: str, tmp_path: Path) -> None:
    def ran(path: Path) -> str:
        command = ["/bin/sh", str(PLUGIN / "hooks" / "hook.sh"), event]
        env = {"PATH": str(path)}
        found = subprocess.run(command, env=env, input=b"{}", capture_output=True, check=True)
        assert found.stderr == b""
        return found.stdout.decode()

    told = ran(tmp_path)
    assert bool(told) == (event == "SessionStart")
    assert not told or "not on the PATH" in json.loads(told)["systemMessage"]
    program = tmp_path / "infinimem"
    program.write_text('#!/bin/sh\necho "$@"')
    program.chmod(0o755)
    assert ran(tmp_path) == f"hook {event}\n"


def test_the_server_is_a_command_of_ours() -> None:
    servers = read(PLUGIN / ".mcp.json")["mcpServers"]
    assert list(servers) == ["infinimem"]
    server = servers["infinimem"]
    assert read(PLUGIN / "mcp.json")["mcpServers"]["infinimem"] == {"type": "stdio", **server}
    assert set(server) == {"command", "args"}
    assert server["command"] in project()["scripts"]
    assert server["args"] == ["mcp"]
    assert "mcp" in COMMANDS


@pytest.mark.parametrize("path", [*sorted({*SKILLS} - {*TASKS}), SNIPPET], ids=lambda path: path.name)
def test_every_command_that_a_model_is_told_of_runs(path: Path, shell: Shell) -> None:
    shell("init")
    shell("add", "Heron's lease ends in May.")
    (shell.library / "topics").mkdir(exist_ok=True)
    (shell.library / "topics" / "home.md").write_text("# Home\n" + "- a line\n" * 50)
    told = [call for call in commands(path.read_text()) if "~" not in " ".join(call)]
    assert {call[1] for call in told} >= {"search", "grep", "read", "ask", "add"}
    for call in told:
        words = ["forget", "--help"] if call[1] == "forget" else call[1:]
        ran = shell(*(word.replace("SEQ", "1") for word in words))
        assert ran.code == 0, (call, ran.err)


@pytest.mark.parametrize("path", TASKS, ids=lambda path: path.stem)
def test_every_command_about_tasks_runs(path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INFINIMEM_MODEL", "agent")
    shell("init")
    shell("add", "Heron's lease ends in May.")
    (shell.home / "reply").write_text('{"entries": [{"from": ["1"], "text": "Heron\'s lease ends in May."}]}')
    told = commands(path.read_text())
    assert any(call[1] == "tasks" for call in told)
    for call in told:
        words = (word.replace("N", "1") if word == "N" else word for word in call[1:])
        words = [str(shell.home / "reply") if word == "FILE" else word for word in words]
        ran = shell(*words) if words[0] != "undo" else shell("undo", "--help")
        assert ran.code == 0, (call, ran.err)


def test_the_tools_that_the_skill_names_are_there(tmp_path: Path) -> None:
    memories = [open_memory(tmp_path, model=model, create=True) for model in ("offline", "agent")]
    there = {name for memory in memories for name in offers(memory, memory)}
    told = {name for path in SKILLS for name in re.findall(r"(?:\||tool) `([a-z_]+)`", path.read_text())}
    assert {"search", "remember"} <= told <= there


def test_claude_code_itself_accepts_it(tmp_path: Path) -> None:
    claude = shutil.which("claude")
    if claude is None:
        pytest.skip("no `claude` on this machine to validate the plugin with")
    for path in (ROOT, PLUGIN):
        env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "DISABLE_AUTOUPDATER": "1"}
        ran = subprocess.run(
            [claude, "plugin", "validate", "--strict", str(path)], env=env, capture_output=True, check=False
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
