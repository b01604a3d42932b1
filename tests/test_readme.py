"""The README is tried: its Python runs, its commands run, what it quotes is there."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from dataclasses import fields
from itertools import chain
from pathlib import Path

import click
import pytest
from fake_server import chat, serve

from infinimem import open_memory
from infinimem.cli.app import app
from infinimem.cli.options import COMMANDS
from infinimem.spec import strategies

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


FENCED = re.compile(r"^```.*?^```", re.M | re.S)


def commands(page: Path) -> tuple[list[str], list[str]]:
    """Lines of a page's blocks that call the program, and what its text and fenced blocks say to call."""
    text = page.read_text()
    fenced = re.findall(r"^(infinimem .*)$", "\n".join(FENCED.findall(text)), re.M)
    text = FENCED.sub("", text)
    lines = re.findall(r"^ {4}(infinimem .*)$", text, re.M)
    return lines, fenced + re.findall(r"`(infinimem [a-z][^`]*)`", " ".join(text.split()))


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PLACEHOLDER = re.compile(r"\b[A-Z]{2,}\b|\[[A-Z-]|…|\.\.\.|\|")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_that_a_page_names_is_one(page: Path) -> None:
    """Commands and options of blocks and of text exist; what stands in capitals is the reader's."""
    for line in chain(*commands(page)):
        words = re.split(r" +#|[;&]|[^\w)]\|", line)[0].replace("[", "").replace("]", "").split()[1:]
        names = [word for word in words if re.match("[a-z]", word)]
        if not names or "-m" in words:
            continue
        name = next((word for word in names if word in app.commands or word in COMMANDS), names[0])
        command = app.get_command(click.Context(app), name.split("|")[0])
        assert command is not None, line
        inner = getattr(command, "commands", {})
        params = [*command.params, *(one for each in inner.values() for one in each.params), *app.params]
        known = {option for param in params for option in param.opts} | {"--help", "--version", "-h"}
        assert {word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)} <= known, line


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name not in ("README.md", "FLEET.md")], ids=lambda page: page.name
)
def test_the_commands_of_a_page_run_as_printed(page: Path, tmp_path: Path) -> None:
    """In a fresh copy of the checkout with an empty home, one after the other. What serves is begun."""
    lines = [line.partition("  #")[0].strip() for line in commands(page)[0] if not PLACEHOLDER.search(line)]
    if not lines:
        pytest.skip("it has none")
    home, clone = tmp_path / "home", tmp_path / "clone"
    (home / ".codex").mkdir(parents=True)
    shutil.copytree(ROOT / "sample_library", clone)
    where = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    for line in lines:
        done = subprocess.run(
            ["sh", "-c", f"timeout 20 {line}"],
            cwd=clone,
            env={"HOME": str(home), "PATH": where},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        serves = "--http" in line or line.split()[1] in ("web", "watch")
        assert done.returncode == (124 if serves else 0), (line, done.stderr)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_blocks_of_a_page_can_be_read(page: Path) -> None:
    """Python compiles, JSON and TOML load."""
    read = {
        "python": lambda text: compile(text, page.name, "exec"),
        "json": json.loads,
        "toml": tomllib.loads,
    }
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```", page.read_text(), re.M | re.S):
        read.get(language, str)(text)


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


def test_every_page_is_in_the_site_and_what_stands_beside_the_readme_leads_somewhere() -> None:
    nav = set(re.findall(r": (\w+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M))
    assert nav == {page.name for page in ROOT.glob("docs/*.md")}
    for name in ("llms.txt", "CONTRIBUTING.md", "SECURITY.md"):
        links = re.findall(r"\]\(([^)#:]+)\)", (ROOT / name).read_text())
        assert links and [link for link in links if not (ROOT / link).exists()] == [], name


def test_modules_named_in_the_pages_exist() -> None:
    pages = [README, (ROOT / "AGENTS.md").read_text(), *(page.read_text() for page in ROOT.glob("docs/*.md"))]
    named = {name for page in pages for name in re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.py)`", page)}
    assert len(named) > 20
    assert [
        name for name in sorted(named) if not (ROOT / name).exists() and not (PACKAGE / name).exists()
    ] == []


def test_every_setting_of_a_strategy_is_in_the_table_with_its_default() -> None:
    """What a group of infinimem.toml sets is told on the page, and there alone."""
    page = (ROOT / "docs/STRATEGIES.md").read_text().split("## All settings of the five\n", 1)[1]
    tables = re.findall(r"^\| `\[([a-z]+)\]` \|.*\n((?:\|.*\n)+)", page, re.MULTILINE)
    assert len(tables) == 5
    for name, rows in tables:
        told = re.findall(r"^\| `(\w+)` \| (\S+) \| \S", rows, re.MULTILINE)
        group = strategies()[name].settings
        assert group
        defaults = {field.name: field.default for field in fields(group)}
        assert told == [(key, "none" if one is None else json.dumps(one)) for key, one in defaults.items()]


def test_shared_parts_of_strategies_that_the_page_names_are_there() -> None:
    """A strategy is written from the page alone."""
    page = (ROOT / "docs/STRATEGIES.md").read_text()
    rows = re.findall(r"^   \| [^|]+ \| `strategies/[^|]+ \| (.+) \|$", page, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(?:\w+\.)?([a-z_]+)(?:\(|`)", row)}
    code = "\n".join(file.read_text() for file in PACKAGE.glob("strategies/**/*.py"))
    others = {"given_up", "sparse", "failure", "unanswered", "trace", "budget"}
    assert len(rows) > 8
    assert [name for name in sorted(named - others) if f"def {name}(" not in code] == []
