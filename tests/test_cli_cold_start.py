"""What a command imports before it answers: all of it is waited for, at every call."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SAMPLE = Path(__file__).parents[1] / "sample_library"
NEVER = (
    "httpcore2",
    "openai",
    "onnxruntime",
    "watchdog",
    "rich",
    "mcp",
    "subprocess",
    "infinimem.llm.offline.extract",
    "infinimem.llm.openai_client",
    "infinimem.llm.tasks",
    "infinimem.operations.history",
    "infinimem.operations.doctor",
    "infinimem.operations.forget.forget",
    "infinimem.operations.git",
    "infinimem.operations.review",
    "infinimem.store.adopt_edits",
    "infinimem.store.evidence",
    "infinimem.store.plans",
    "infinimem.strategies.infini.strategy",
    "infinimem.strategies.readers",
    "infinimem.remote",
    "infinimem.evaluation.runner",
    "infinimem.grounding",
    "numpy",
)
NO_SEARCH = ("infinimem.retrieval.disk", "tantivy", "snowballstemmer")
"""What ranks, and what that imports."""
COMMANDS = {
    "search": (),
    "ls": NO_SEARCH,
    "read": (*NO_SEARCH, "infinimem.retrieval", "re2", "tiktoken", "yaml"),
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
