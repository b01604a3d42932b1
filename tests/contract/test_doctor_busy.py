"""`doctor` beside a writer: it names what is wrong with the library, not what is on its way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from cli_runner import Shell

from infinimem import open_memory

BUSY = "a write is under way; look again when it is done"
WRITER = """
import sys
from infinimem import Turn, open_memory
memory = open_memory(sys.argv[1], model="offline")
print("ready", flush=True)
for n in range(1, 10_000):
    memory.observe([Turn(f"I bought item {n} in shop {n % 7}.", session=f"s{n % 5}")])
    memory.consolidate()
"""


@pytest.fixture
def writer(shell: Shell) -> Iterator[subprocess.Popen[str]]:
    assert shell("init").code == 0
    command = [sys.executable, "-c", WRITER, str(shell.library)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


def test_doctor_finds_nothing_wrong_while_another_process_writes(shell: Shell, writer: object) -> None:
    """A sound library is sound at every moment: at most `doctor` says that a write is under way."""
    for _ in range(30):
        ran = shell("doctor", "--json")
        assert {row["what"] for row in ran.json["findings"]} <= {BUSY}
        assert ran.code == 0


def test_a_write_that_takes_its_time_is_no_crash(shell: Shell, writer: subprocess.Popen[str]) -> None:
    """In the middle of a transaction of a process that lives, `doctor` says that a write is under way."""
    memory = open_memory(shell.library, model="offline", read_only=True)
    until = time.monotonic() + 60
    ours = shell.library / ".infinimem"
    while True:  # stop the writer until it is stopped within a transaction, and not while it holds state.db
        assert time.monotonic() < until, "no transaction was met"
        writer.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, writer.pid, os.WSTOPPED)
        if any((ours / "tx").glob("*")) and not (ours / "state.db-journal").exists():
            break
        writer.send_signal(signal.SIGCONT)
        time.sleep(0.003)
    assert {finding.what for finding in memory.doctor()} == {BUSY}
    writer.send_signal(signal.SIGCONT)


def test_what_a_crash_left_is_still_an_error(shell: Shell) -> None:
    """A transaction that nobody works on is named, and opening the library finishes it."""
    assert shell("init").code == 0
    assert shell("add", "I moved to Lisbon.", "--model", "offline").code == 0
    memory = open_memory(shell.library, model="offline")
    (shell.library / ".infinimem" / "tx" / "left").mkdir(parents=True)
    assert "a transaction did not finish" in {finding.what for finding in memory.doctor()}
    assert shell("doctor", "--json").json == {"findings": []}
