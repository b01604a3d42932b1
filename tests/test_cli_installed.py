"""The program in a process of its own: the installed entry point, and what a command imports, for all of that
is waited for at every call."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import termios
from pathlib import Path

import pytest

COLUMNS = 60
"""Of a terminal."""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH", "LANG")}
    return {**kept, "HOME": str(tmp_path), "TERM": "xterm"}


@pytest.fixture
def command() -> str:
    script = Path(sys.executable).with_name("infinimem")
    if not script.exists():
        pytest.skip("infinimem is not installed beside this Python")
    return str(script)


def test_version_help_and_a_wrong_call(command: str, environment: dict[str, str], tmp_path: Path) -> None:
    for args, expected in ((("--version",), 0), (("--help",), 0), (("fly",), 2), (("ls",), 1)):
        done = subprocess.run([command, *args], capture_output=True, text=True, env=environment, cwd=tmp_path)
        assert done.returncode == expected, done.stderr
        assert "Traceback" not in done.stderr


def test_a_pipe_that_closes_early_is_no_error(
    command: str, environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "long.md").write_text("".join(f"- line {number} {'x' * 400}\n" for number in range(5000)))
    line = f"{command} --library . grep line --json | head -c 1; {command} --library . read long | head -n 1"
    line = f"set -o pipefail; {line}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
    assert done.stdout == "{1 - line 0 " + "x" * 400 + "\n"


def test_a_terminal_gets_a_table_and_no_commands_from_the_text(
    command: str, environment: dict[str, str], tmp_path: Path
) -> None:
    text = f"---\nsummary: plain \x1b]0;owned\x07 words\n---\n- \x1b[2J wiped {'twelve words ' * 20}\n"
    (tmp_path / "note.md").write_text(text)
    shown = ""
    for args in (("ls",), ("read", "note")):
        leader, follower = pty.openpty()
        termios.tcsetwinsize(follower, (24, COLUMNS))
        subprocess.run(
            [command, "--library", ".", *args],
            stdout=follower,
            stderr=follower,
            env=environment,
            cwd=tmp_path,
            check=True,
        )
        os.close(follower)
        shown += os.read(leader, 100_000).decode()
        os.close(leader)
    assert "summary" in shown
    lines = re.sub(r"\x1b\[[\d;]*m", "", shown).splitlines()
    assert COLUMNS - 10 < max(len(line) for line in lines if " documents in " not in line) <= COLUMNS
    assert "\x1b[2J" not in shown
    assert "\x1b]0;" not in shown


# ── what is imported ────────────────────────────────────────────────────────────────────────────

SAMPLE = Path(__file__).parents[1] / "sample_library"
NEVER = (
    "httpcore2",
    "httpx2",
    "pydantic",
    "openai",
    "onnxruntime",
    "watchdog",
    "rich",
    "mcp",
    "subprocess",
    "infinimem.llm.offline.keep",
    "infinimem.llm.openai_client",
    "infinimem.llm.tasks",
    "infinimem.operations.history",
    "infinimem.operations.doctor",
    "infinimem.operations.forget.forget",
    "infinimem.operations.git",
    "infinimem.operations.review",
    "infinimem.store.external_edits",
    "infinimem.store.evidence",
    "infinimem.store.plans",
    "infinimem.strategies.infini.strategy",
    "infinimem.strategies.readers",
    "infinimem.remote",
    "infinimem.evaluation.runner",
    "infinimem.grounding",
    "numpy",
)
NO_SEARCH = ("infinimem.index.tables", "tantivy", "snowballstemmer")
"""What ranks, and what that imports."""
COMMANDS = {
    "search": (),
    "ls": NO_SEARCH,
    "read": (*NO_SEARCH, "infinimem.index", "re2", "tiktoken", "yaml"),
    "grep": (*NO_SEARCH, "tiktoken", "yaml"),
    "--help": (
        *NO_SEARCH,
        "infinimem.memory",
        "infinimem.store",
        "tiktoken",
        "re2",
        "yaml",
        "infinimem.cli.reading",
        "infinimem.settings",
    ),
}
WORDS = {"search": ["peanut allergy"], "read": ["topics/home"], "grep": ["cat"]}
CODE = """
import sys
from infinimem.cli import main
try:
    main()
finally:
    print(*sorted(sys.modules), file=sys.stderr)
"""


@pytest.mark.sample(2)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_imports_nothing_that_it_does_not_need(command: str, tmp_path: Path) -> None:
    args = ["--library", str(SAMPLE), command, *WORDS.get(command, [])]
    done = subprocess.run([sys.executable, "-c", CODE, *args], capture_output=True, text=True, check=True)
    assert done.stdout
    loaded = set(done.stderr.splitlines()[-1].split())
    assert "infinimem.cli.app" in loaded
    assert sorted(loaded.intersection((*NEVER, *COMMANDS[command]))) == []
