"""The README is tried: its Python runs, its commands run, what it quotes is there."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from fake_server import chat, serve

from infinimem import open_memory
from infinimem.cli.app import app

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PACKAGE = ROOT / "infinimem"


def blocks(heading: str, language: str, page: str = README) -> list[str]:
    section = page.split(f"## {heading}\n", 1)[1].split("\n\n## ", 1)[0]
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


@pytest.mark.parametrize(
    ("page", "section"), [("README.md", "From the shell"), ("docs/STRATEGIES.md", "allmem")]
)
def test_the_commands_run(tmp_path: Path, page: str, section: str) -> None:
    (block,) = blocks(section, "sh", (ROOT / page).read_text())
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


def test_commands_and_options_in_its_text_exist() -> None:
    named = re.findall(r"`infinimem ([a-z]+)[^`]*`", README)
    assert {"history", "undo", "trust", "bench"} <= set(named)
    pages = [CliRunner().invoke(app, [command, "--help"]) for command in {*named, "consolidate", "ask"}]
    assert [page.exit_code for page in pages] == [0] * len(pages)
    known = set(re.findall(r"--[a-z-]+", "".join(page.output for page in pages)))
    assert set(re.findall(r"`(--[a-z-]+)", README)) <= known


def test_the_line_that_moves_is_quoted_from_the_sample_library() -> None:
    (block,) = blocks("A line that moves", "text")
    memory = open_memory(ROOT / "sample_library", model="offline")
    before = memory.at("journal/0004-consolidate")
    quoted = 0
    for part in block.strip().split("\n\n"):
        head, *lines = part.splitlines()
        name, when = head.split(maxsplit=1)
        if when == "before":
            there = before.view.document(name.removesuffix(".md")).to_bytes().decode()
        else:
            there = (ROOT / "sample_library" / name).read_text()
        assert [line for line in lines if line not in there.splitlines()] == []
        quoted += len(lines)
    assert quoted == 6


def test_it_is_short_and_its_links_lead_somewhere() -> None:
    assert len(README.splitlines()) <= 200
    links = [link for link in re.findall(r"\]\(([^)#]+)", README) if "://" not in link]
    assert len(links) > 15
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_modules_named_in_the_pages_exist() -> None:
    pages = [README, (ROOT / "AGENTS.md").read_text(), *(page.read_text() for page in ROOT.glob("docs/*.md"))]
    named = {name for page in pages for name in re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.py)`", page)}
    assert len(named) > 20
    assert [
        name for name in sorted(named) if not (ROOT / name).exists() and not (PACKAGE / name).exists()
    ] == []


def test_shared_parts_of_strategies_that_the_page_names_are_there() -> None:
    """A strategy is written from the page alone."""
    page = (ROOT / "docs/STRATEGIES.md").read_text()
    rows = re.findall(r"^   \| [^|]+ \| `strategies/[^|]+ \| (.+) \|$", page, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(?:\w+\.)?([a-z_]+)(?:\(|`)", row)}
    code = "\n".join(file.read_text() for file in PACKAGE.glob("strategies/**/*.py"))
    others = {"given_up", "sparse", "failure", "unanswered", "trace", "budget"}
    assert len(rows) > 8
    assert [name for name in sorted(named - others) if f"def {name}(" not in code] == []
