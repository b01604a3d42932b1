"""The installed entry point in a process of its own."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from infinimem.spec import strategies

HEAVY = (
    "httpcore2",
    "numpy",
    "rich",
    "tiktoken",
    "yaml",
    "rank_bm25",
    "re2",
    "infinimem.memory",
)


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


@pytest.mark.sample(2)
@pytest.mark.parametrize("args", [("search", "tea"), ("ls",), ("grep", "tea"), ("read", "a")])
def test_what_only_looks_makes_no_strategy(tmp_path: Path, args: tuple[str, ...]) -> None:
    (tmp_path / "a.md").write_text("# Tea\n\n- Ann drinks green tea\n")
    code = (
        "import sys; from infinimem.cli.app import app\n"
        f"try: app(['--library', {str(tmp_path)!r}, '-q', *{args!r}])\n"
        "except SystemExit as end: print(end.code, *(name for name in sys.modules if name.count('.') == 3))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    code, *names = run.stdout.splitlines()[-1].split()
    assert code == "0"
    assert {name for name in names if "strateg" in name or "offline" in name} <= {
        f"infinimem.strategies.{name}.spec" for name in strategies()
    } | {"infinimem.llm.offline.client"}


def test_the_help_imports_nothing_heavy() -> None:
    code = f"import sys, infinimem.cli; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


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
    assert COLUMNS - 10 < max(map(len, re.sub(r"\x1b\[[\d;]*m", "", shown).splitlines())) <= COLUMNS
    assert "\x1b[2J" not in shown
    assert "\x1b]0;" not in shown
