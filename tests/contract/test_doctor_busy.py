"""`doctor` beside a writer: it names what is wrong with the library, not what is on its way."""

from __future__ import annotations

import subprocess
import sys

import pytest
from cli_runner import Shell

from infinimem import open_memory

WRITER = """
import sys
from infinimem import Turn, open_memory
memory = open_memory(sys.argv[1], model="offline", strategy=sys.argv[2])
print("ready", flush=True)
for n in range(1, 10_000):
    memory.observe([Turn(f"I bought item {n} in shop {n % 7}.", session=f"s{n % 5}")])
    if n % 3 == 0:
        memory.consolidate()
"""


@pytest.mark.parametrize("strategy", ["infini", "allmem"])
def test_doctor_finds_nothing_wrong_while_another_process_writes(shell: Shell, strategy: str) -> None:
    """A sound library is sound at every moment: at most `doctor` says that a write is under way."""
    assert shell("init", "--strategy", strategy).code == 0
    command = [sys.executable, "-c", WRITER, str(shell.library), strategy]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout and writer.stdout.readline() == "ready\n"
        try:
            for _ in range(30):
                ran = shell("doctor", "--json")
                assert {row["what"] for row in ran.json["findings"]} <= {
                    "a write is under way; look again when it is done"
                }
                assert ran.code == 0
        finally:
            writer.terminate()
    assert shell("search", "item").code == 0


def test_what_a_crash_left_is_still_an_error(shell: Shell) -> None:
    """A transaction that nobody works on is named, and opening the library finishes it."""
    assert shell("init").code == 0
    assert shell("add", "I moved to Lisbon.", "--model", "offline").code == 0
    memory = open_memory(shell.library, model="offline")
    (shell.library / ".infinimem" / "tx" / "left").mkdir(parents=True)
    assert "a transaction did not finish" in {finding.what for finding in memory.doctor()}
    assert shell("doctor", "--json").json == {"findings": []}
