"""The README is tried: its Python runs, its commands run, its tree is the tree."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from fake_server import chat, serve

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks(heading: str, language: str) -> list[str]:
    section = re.split(r"^## ", README.split(f"## {heading}\n", 1)[1], flags=re.M)[0]
    return re.findall(rf"^```{language}\n(.*?)^```", section, re.M | re.S)


def test_run_and_test_are_one_line_each() -> None:
    for heading in ("Run", "Test"):
        (block,) = blocks(heading, "sh")
        assert len(block.splitlines()) == 1


def test_the_python_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = blocks("From Python", "python")
    exec(compile(block, "README.md", "exec"), {"__name__": "readme"})
    assert "Lisbon" in capsys.readouterr().out


def test_the_loop_runs_against_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks("From Python", "python")[0], "README.md", "exec"), {"__name__": "readme"})
    (block,) = blocks("In your agent's loop", "python")
    call = {
        "id": "call-1",
        "type": "function",
        "function": {"name": "search", "arguments": json.dumps({"query": "Lisbon"})},
    }
    with serve(chat(None, "tool_calls", tool_calls=[call]), chat("She lives in Lisbon.")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        exec(compile(block, "README.md", "exec"), {"__name__": "readme"})
    assert "She lives in Lisbon." in capsys.readouterr().out
    told = server.requests[1]["messages"][-1]
    assert told["role"] == "tool"
    assert "I moved to Lisbon." in told["content"]


@pytest.mark.parametrize("section", ["From the shell", "Strategies"])
def test_the_commands_run(tmp_path: Path, section: str) -> None:
    (block,) = blocks(section, "sh")
    program = f'infinimem() {{ {shlex.quote(sys.executable)} -m infinimem "$@"; }}'
    script = f"set -eu\n{program}\n{block}"
    done = subprocess.run(
        ["sh", "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stderr
    assert "Lisbon" in done.stdout
