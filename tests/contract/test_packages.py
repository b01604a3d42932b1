"""The six packages that an installation is promised are part of it, and each does its part of the work."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest
from fake_server import chat, serve

ROOT = Path(__file__).parents[2]
CODE = """
import sys
from infinimem.cli import main
try:
    main()
finally:
    print(*sorted(sys.modules), file=sys.stderr)
"""
PATHS = {
    "click": ("ls",),
    "frontmatter": ("ls",),
    "openai": ("--model", "small", "ask", "Where is the router?"),
    "rank_bm25": ("--model", "offline", "ask", "Where is the router?", "--reader", "hybrid"),
    "tiktoken": ("retrieve", "Where is the router?", "--budget", "100"),
    "watchdog": ("watch",),
}
"""What is called for it, by what it is imported as."""


def imported(args: tuple[str, ...], folder: Path, env: Mapping[str, str]) -> set[str]:
    """All that a command imports; `watch`, which ends with Ctrl-C, is shown a change first."""
    library = Path(shutil.copytree(ROOT / "sample_library", folder / "library"))
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH", "LANG")}
    with subprocess.Popen(
        [sys.executable, "-c", CODE, "--library", str(library), *args],
        cwd=folder,
        env={**kept, **env, "HOME": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        if args == ("watch",):
            assert process.stderr and "Ctrl-C ends it" in process.stderr.readline()
            (library / "note.md").write_text("A heron.\n")
            assert process.stdout and "note" in process.stdout.readline()
            process.send_signal(signal.SIGINT)
        said = process.communicate()[1].splitlines()
    assert process.returncode == 0, said
    return set(said[-1].split())


@pytest.mark.parametrize("package", PATHS)
def test_each_promised_package_is_installed_and_used(package: str, tmp_path: Path) -> None:
    """Without an extra it is there, and a command of the program imports it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {requirement.partition(">")[0] for requirement in project["dependencies"]}
    name = package.replace("frontmatter", "python-frontmatter").replace("_", "-")
    assert name in named
    assert re.search(rf"^\| [^|]*\b{name}\b", (ROOT / "AGENTS.md").read_text(), re.M)
    answer = json.dumps({"answer": "In the hall.", "cites": []})
    with serve(*[chat(answer)] * 4) as server:
        env = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "test"}
        assert package in imported(PATHS[package], tmp_path, env)
