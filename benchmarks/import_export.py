"""How `infinimem import` takes a large chat export: a ChatGPT export of invented words, made from a seed.

    python benchmarks/import_export.py make export.json --megabytes 100
    python benchmarks/import_export.py run export.json            # seconds and peak memory, model offline
    python benchmarks/import_export.py resume export.json         # killed twice, resumed, and imported again

`run --record` measures without drawing: what was said is written down, nothing is asked. `resume` compares
the evidence with that of an uninterrupted import, byte for byte but for the seqs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

SEED = 8
BEGIN = 1_600_000_000
"""Seconds since 1970 of the first conversation."""


def words(dice: random.Random, count: int = 4000) -> list[str]:
    """Invented words of two to four syllables."""
    syllables = [first + vowel for first in "bdfgklmnprstvz" for vowel in ("a", "e", "i", "o", "u", "ai")]
    return ["".join(dice.choices(syllables, k=dice.randint(2, 4))) for _ in range(count)]


def text(dice: random.Random, known: list[str], length: int) -> str:
    """Sentences, `length` words of them."""
    told: list[str] = []
    while length > 0:
        size = min(length, dice.randint(5, 14))
        told.append(" ".join(dice.choices(known, k=size)).capitalize() + ".")
        length -= size
    return " ".join(told)


def conversation(dice: random.Random, known: list[str], number: int) -> dict[str, Any]:
    """A conversation as ChatGPT exports it, with a hidden message and a branch that was edited away."""

    def ident() -> str:
        return str(UUID(int=dice.getrandbits(128)))

    began = BEGIN + number * 5400
    root = ident()
    mapping: dict[str, Any] = {root: {"id": root, "parent": None, "children": [], "message": None}}
    last = root

    def say(role: str, said: str, parent: str, **metadata: Any) -> str:
        name = ident()
        mapping[parent]["children"].append(name)
        mapping[name] = {
            "id": name,
            "parent": parent,
            "children": [],
            "message": {
                "id": name,
                "author": {"role": role, "name": None, "metadata": {}},
                "create_time": began + 30.5 * len(mapping),
                "content": {"content_type": "text", "parts": [said]},
                "status": "finished_successfully",
                "weight": 1.0,
                "recipient": "all",
                "metadata": metadata,
            },
        }
        return name

    last = say("system", "", last, is_visually_hidden_from_conversation=True)
    for turn in range(dice.randint(2, 24)):
        if not turn:
            say("user", text(dice, known, 12), last)
        last = say("user", text(dice, known, dice.randint(5, 60)), last)
        last = say("assistant", text(dice, known, dice.randint(30, 250)), last, model_slug="invented")
    return {
        "title": text(dice, known, 4)[:-1],
        "create_time": began,
        "update_time": began + 1000.0,
        "mapping": mapping,
        "current_node": last,
        "conversation_id": root,
    }


def export(megabytes: float) -> Iterator[str]:
    """conversations.json, piece by piece."""
    dice = random.Random(SEED)
    known = words(dice)
    left, number = megabytes * 1e6, 0
    yield "["
    while left > 0:
        piece = ("," if number else "") + json.dumps(conversation(dice, known, number))
        left -= len(piece)
        number += 1
        yield piece
    yield "]"


def make(path: Path, megabytes: float) -> None:
    """Write an export."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(export(megabytes))


def start(library: Path, path: Path, record: bool) -> subprocess.Popen[bytes]:
    """An import in a process of its own; `record` draws nothing."""
    command = [sys.executable, "-m", "infinimem", "--library", str(library), "--model", "offline", "--json"]
    more = ["--record"] if record else []
    return subprocess.Popen([*command, "import", str(path), *more], stdout=subprocess.PIPE)


def finish(process: subprocess.Popen[bytes]) -> tuple[dict[str, Any], float]:
    """What an import printed, and its peak memory in MB."""
    assert process.stdout is not None
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return (json.loads(out) if out else {}), usage.ru_maxrss / 1024


def run(path: Path, library: Path, record: bool) -> dict[str, Any]:
    """Import once, and tell how long it took and how much memory."""
    init(library)
    began = time.perf_counter()
    told, peak = finish(start(library, path, record))
    print(f"{path.stat().st_size / 1e6:.0f} MB: {told['turns']} turns, {told['entries']} entries")
    print(f"{time.perf_counter() - began:.0f} s, peak {peak:.0f} MB, evidence {size(library) / 1e6:.0f} MB")
    return told


def resume(path: Path, folder: Path) -> None:
    """Interrupt an import twice, let it go on, and compare what is there with an uninterrupted one.

    Raises:
        AssertionError: a turn is missing or doubled.
    """
    whole, broken = folder / "whole", folder / "broken"
    turns = run(path, whole, record=True)["turns"]
    init(broken)
    for share, how in ((0.2, signal.SIGKILL), (0.6, signal.SIGINT)):
        process = start(broken, path, record=True)
        while process.poll() is None and size(broken) < share * size(whole):
            time.sleep(0.02)
        process.send_signal(how)
        finish(process)
        print(f"{how.name} at {size(broken) / size(whole):.0%} of the evidence, exit {process.returncode}")
    for expected in (None, 0):
        told, peak = finish(start(broken, path, record=True))
        assert told["turns"] == turns
        assert expected is None or told["recorded"] == expected
        print(f"recorded {told['recorded']} of {turns}, peak {peak:.0f} MB")
    assert evidence(broken) == evidence(whole)
    print("the evidence is that of the uninterrupted import")


def init(library: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "infinimem", "-q", "init", str(library)], check=True, stdout=subprocess.DEVNULL
    )


def size(library: Path) -> int:
    """Bytes of evidence."""
    return sum(file.stat().st_size for file in (library / "evidence").glob("*.md"))


def evidence(library: Path) -> dict[str, str]:
    """A hash of every evidence file, without the seqs: an interrupted batch leaves a gap in their count."""
    return {
        file.name: hashlib.sha256(re.sub(rb"(?m)^- <seq=\d+", b"", file.read_bytes())).hexdigest()
        for file in sorted((library / "evidence").glob("*.md"))
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=["make", "run", "resume"])
    parser.add_argument("path", type=Path)
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--record", action="store_true", help="write down only")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if given.what == "make":
            make(given.path, given.megabytes)
        elif given.what == "run":
            run(given.path, Path(folder, "library"), given.record)
        else:
            resume(given.path, Path(folder))


if __name__ == "__main__":
    main()
