"""The promises of docs/RELIABILITY.md: kills, full disks, a person who saves, lost machine state."""

from __future__ import annotations

import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cli_runner import Shell
from scripted import OFFLINE, SAMPLE, Reply, filing

from infinimem import InfinimemError, Memory, Turn, open_memory
from infinimem.testing import ScriptedLLM

SIGNED = re.compile(r"^- <seq=(\d+)[,>].*$", re.M)


def opened(root: Path) -> Memory:
    return open_memory(root, model="offline", create=True)


def lines(root: Path) -> list[tuple[int, str]]:
    """Number and bytes of every signed line of the library, evidence included."""
    folders = ("evidence", "topics", "archive")
    paths = [root / "CURRENT.md", *(path for name in folders for path in (root / name).glob("*.md"))]
    texts = [path.read_text() for path in paths if path.exists()]
    return sorted((int(match[1]), match[0]) for text in texts for match in SIGNED.finditer(text))


def errors(memory: Memory) -> list[str]:
    return [finding.what for finding in memory.doctor() if finding.level == "error"]


# ── kill -9 ─────────────────────────────────────────────────────────────────────────────────────

PATIENCE = 60.0
"""Seconds within which anything happens that takes a moment on an idle machine."""
LIFE = """
import sys
from infinimem import Turn, open_memory
memory = open_memory(sys.argv[1], model="offline", create=True)
print("ready", flush=True)
for n in range(10_000):
    name = f"{sys.argv[2]}x{n}"
    for entry in memory.observe([Turn(f"Parcel {name} is in cellar {n}.", session=f"s{n % 7}")]):
        print("entry", entry.seq, flush=True)
    print("said", name, flush=True)
    if n % 3 == 2:
        receipt = memory.consolidate()
        print("receipt", receipt.id if receipt else "-", flush=True)
"""


def killed(root: Path, name: str, chance: random.Random) -> list[list[str]]:
    """What a program acknowledged until it was killed, in the middle of a transaction or at any moment."""
    command = [sys.executable, "-c", LIFE, str(root), name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        text = "".join(process.stdout.readline() for _ in range(chance.randint(1, 15)))
        if chance.random() < 0.6:
            until = time.monotonic() + PATIENCE
            while not list(root.glob(".infinimem/tx/*/manifest")) and time.monotonic() < until:
                pass
        else:
            time.sleep(chance.uniform(0, 0.03))
        process.send_signal(signal.SIGKILL)
        text += process.stdout.read()
    assert process.returncode == -signal.SIGKILL
    return [line.split() for line in text[: text.rfind("\n") + 1].splitlines()]


def test_a_kill_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """Killed at six random moments, a library holds once what was acknowledged; the next call mends it."""
    root = tmp_path / "library"
    chance = random.Random()
    told: list[list[str]] = []
    for number in range(6):
        told += killed(root, str(number), chance)
        memory = opened(root)
        memory.observe([Turn(f"Call {number} after the kill.", session="after")])
        assert errors(memory) == []
        found = lines(root)
        assert len({seq for seq, _ in found}) == len(found), "a number stands twice"
        evidence = "".join(path.read_text() for path in (root / "evidence").glob("*.md"))
        for word, what in (line for line in told if len(line) == 2):
            match word:
                case "said":
                    assert evidence.count(f"Parcel {what} is") == 1, what
                case "entry":
                    assert int(what) in {seq for seq, _ in found}, what
                case "receipt":
                    assert what == "-" or (root / f"{what}.md").exists(), what
        memory.close()
    assert {line[0] for line in told} == {"ready", "entry", "said", "receipt"}


DEATH = """
import resource, signal, sys
from infinimem import Turn, open_memory
memory = open_memory(sys.argv[1], model="offline")
memory.status()  # what is derived is up to date: the next to be written is the turn
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # whoever writes on at the limit dies
resource.setrlimit(resource.RLIMIT_FSIZE, (3600, 3600))
memory.observe([Turn("A long story. " * 60, session="begun")])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is written at the limit")
def test_half_of_an_append_is_taken_back(tmp_path: Path) -> None:
    """A program that dies in the middle of writing a turn leaves a half that the next call removes."""
    root = tmp_path / "library"
    opened(root).observe([Turn("It began so. " * 240, session="begun")])
    (evidence,) = (root / "evidence").glob("*.md")
    before = evidence.read_bytes()
    died = subprocess.run([sys.executable, "-c", DEATH, str(root)], capture_output=True, check=False)
    assert died.returncode == -signal.SIGXFSZ
    assert evidence.stat().st_size == 3600
    memory = opened(root)
    assert errors(memory) == []
    assert evidence.read_bytes() == before
    memory.observe([Turn("A long story. " * 60, session="begun")])
    assert evidence.read_bytes().startswith(before)
    assert errors(memory) == []


# ── a full disk ─────────────────────────────────────────────────────────────────────────────────


def limited(root: Path, size: int, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command that may make no file longer than this, which fails like a write to a full disk."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return subprocess.run(
        [sys.executable, "-m", "infinimem", "--library", str(root), *command],
        capture_output=True,
        text=True,
        preexec_fn=limit,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )


def documents(shell: Shell) -> dict[str, str]:
    """Hash of every file that is not hidden."""
    return {path: text for path, text in shell.tree().items() if "/." not in f"/{path}"}


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("size", "command"),
    [
        (900, ("add", "A long story. " * 200, "--session", "full", *OFFLINE)),
        (3600, ("add", "A long story. " * 60, "--session", "begun", *OFFLINE)),
        (900, ("consolidate", *OFFLINE)),
        (300, ("forget", "--seq", "60", "--yes")),
        (300, ("undo",)),
        (1500, ("rebuild", "--strategy", "allmem", *OFFLINE)),
    ],
)
def test_a_full_disk_is_one_line_and_nothing_half_written(
    shell: Shell, size: int, command: tuple[str, ...]
) -> None:
    """Where nothing can be written a command says so in a line, and no document is cut or half changed."""
    shutil.copytree(SAMPLE, shell.library, dirs_exist_ok=True)
    shell("add", "It began so. " * 240, "--session", "begun", *OFFLINE)
    before = documents(shell)
    ran = limited(shell.library, size, "-q", *command)
    assert (ran.returncode, ran.stdout) == (1, "")
    *warnings, error = ran.stderr.splitlines()  # that caches are not written
    assert error.startswith("error: cannot write ")
    assert not [line for line in warnings if "error:" in line or "Traceback" in line]
    assert documents(shell) == before
    assert shell(*command).code == 0  # and with room on the disk it goes on
    assert shell("doctor").code == 0


@pytest.mark.sample(3)
@pytest.mark.parametrize("task", ["rewrite", "plan", "compare"])
@pytest.mark.parametrize("ends", [".md", ".new"], ids=["in place", "by renaming"])
def test_a_persons_save_during_a_consolidation_is_kept(tmp_path: Path, ends: str, task: str) -> None:
    """What a person saves while a model is asked stands, and the program's moves are made in it."""
    root = tmp_path / "library"
    memory = opened(root)
    memory.observe([Turn("The boiler was repaired by Mr Lind.", session="a")])
    memory.consolidate()
    topic = next((root / "topics").glob("*.md"))
    memory.observe([Turn("The boiler was repaired by Mrs Kvist.", session="b")])
    memory.close()
    saved: list[Path] = []

    def asked(name: str, reply: Reply) -> Reply:
        def answer(variables: Mapping[str, Any]) -> Any:
            if name == task and not saved:
                text = re.sub(r"(?m)^title: .*$", "title: Heating\nmood: calm", topic.read_text())
                saved.append(topic.with_suffix(ends))
                saved[0].write_text(f"{text.rstrip()} (in March)\n\nA person's own prose.\n")
                saved[0].replace(topic)
            return reply(variables)

        return answer

    script = filing(f"topics/{topic.stem}")
    model = ScriptedLLM({name: asked(name, reply) for name, reply in script.items()})
    receipt = open_memory(root, model=model).consolidate()
    assert saved
    assert receipt
    text = topic.read_text()
    assert "title: Heating\nmood: calm\n" in text
    assert "(in March)\n" in text
    assert "A person's own prose.\n" in text
    assert "Mrs Kvist" in text
    assert sum("repaired by Mrs Kvist" in line and "origin=" in line for _, line in lines(root)) == 1
    assert errors(opened(root)) == []


@pytest.mark.parametrize("way", ["forget", "delete", "delete evidence", "undo"])
def test_no_number_is_given_twice(tmp_path: Path, way: str) -> None:
    """Whatever becomes of the newest line, its number is not assigned again."""
    memory = opened(root := tmp_path / "library")
    memory.observe([Turn("The tax office called.", session="a")])
    newest = memory.observe([Turn("The bike needs tyres.", session="b")])[-1].seq
    if way == "forget":
        memory.forget([newest])
    elif way == "undo":
        memory.consolidate()
        memory.undo()
    else:
        memory.close()
        (root / "CURRENT.md").unlink()
        if way == "delete evidence":
            next(path for path in (root / "evidence").iterdir() if "tyres" in path.read_text()).unlink()
        memory = opened(root)
    memory.observe([Turn("Rolf weighs 31 kg.", session="c")])
    assert min(seq for seq, line in lines(root) if "Rolf" in line) > newest


@pytest.mark.parametrize("strategy", ["infini", "allmem", "gam", "recmem", "xmemory"])
def test_machine_state_can_be_deleted(tmp_path: Path, strategy: str) -> None:
    """Without .infinimem and the cache a library works on: nothing is doubled, undone or drawn again."""
    root = tmp_path / "library"
    shutil.copytree(SAMPLE, root)
    memory = open_memory(root, model="offline", strategy=strategy)
    memory.rebuild()
    memory.observe([Turn("The oboe is from 1911.", session="x", turn="1")])
    memory.consolidate()
    question = "What is the router's address?"
    before, found = lines(root), [item.text for item in memory.retrieve(question).items]
    memory.close()
    shutil.rmtree(root / ".infinimem")
    memory = open_memory(root, model="offline", strategy=strategy)
    assert errors(memory) == []
    assert [item.text for item in memory.retrieve(question).items] == found
    memory.observe([Turn("The oboe is from 1911.", session="x", turn="1")])  # sent again: recorded once
    memory.consolidate()
    assert lines(root) == before
    new = memory.record([Turn("Rolf barks.", session="y")])
    assert new[0].seq > max(seq for seq, _ in before)


def test_an_error_leaves_the_library_as_it_was(tmp_path: Path) -> None:
    """A model that invents or drops ids, or answers no JSON, changes and loses no line."""
    root = tmp_path / "library"
    shutil.copytree(SAMPLE, root)
    opened(root).consolidate()
    opened(root).observe([Turn(f"Parcel {n} is in the cellar.", session="p") for n in range(4)])
    before = lines(root)
    lies = [{"topics": [{"title": "Things", "fact_ids": ["1", "99999"]}]}, "no JSON", {"assign": []}, {}]
    for lie in lies:
        tasks = ("rewrite", "plan", "compare", "layout", "merge", "summarize")
        script: dict[str, Any] = {task: lambda _, lie=lie: lie for task in tasks}
        try:
            open_memory(root, model=ScriptedLLM(script)).consolidate()
        except InfinimemError as error:
            assert "\n" not in str(error)
        assert lines(root) == before
    assert errors(opened(root)) == []
