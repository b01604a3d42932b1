"""How `infinimem import` takes a large chat export: a ChatGPT export that reads like chat, made from a seed.

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


SUBJECTS = """
garden: tomato bed seedling compost greenhouse slug hedge mulch pruning rose trellis watering soil frost
kitchen: oven dough recipe skillet knife sauce broth pantry yeast roast spice blender freezer garlic
python: function module decorator traceback generator dictionary package unittest iterator class thread loop
database: index query table migration transaction backup replica schema column trigger cursor partition
running: marathon pace shoe interval knee stretch heart watch hill taper injury coach
cycling: chain saddle gear tyre brake helmet route climb wheel pannier cassette handlebar
piano: scale chord sonata pedal metronome fingering teacher recital tuning sheet rhythm melody
chess: opening rook endgame gambit pawn clock bishop tournament rating blunder castle sacrifice
taxes: invoice deduction receipt deadline refund accountant bracket expense payroll audit pension form
housing: lease landlord deposit mortgage kitchen boiler insulation window neighbour agent survey roof
travel: visa passport hostel train itinerary luggage ferry museum ticket border airport guide
health: vaccine allergy sleep physiotherapist migraine diet blood appointment prescription rash dentist iron
school: homework exam teacher essay timetable grade project library scholarship semester tutor lecture
work: meeting deadline manager sprint release review hiring budget roadmap contract promotion office
photography: lens tripod aperture exposure portrait negative darkroom filter flash focus sensor print
astronomy: telescope nebula eclipse orbit comet planet galaxy eyepiece meteor mount moon spectrum
sewing: fabric seam pattern zipper thread bobbin lining button hem denim needle wool
pets: puppy leash vet kennel litter kitten flea collar training treat aquarium parrot
finance: savings index fund interest loan inflation broker dividend credit insurance budget account
novel: chapter plot character draft editor dialogue villain publisher scene outline agent ending
"""
NAMES = "Anna Bruno Chen Dara Elif Farid Greta Hugo Ines Jonas Kira Luca Mina Noor Otto Petra".split()
PLACES = "Lisbon Porto Ghent Leeds Graz Turin Cork Lyon Bergen Malmo Cadiz Utrecht".split()
SAID = (
    "My {0} is next to the {1} that {n} gave me in {m}.",
    "I moved to {p} with {n}, and the {0} has been a problem since {m}.",
    "How do I fix the {0} when the {1} does not fit?",
    "We bought a {0} for {k} euros in {p}, mostly because of the {1}.",
    "Can you explain what a {0} has to do with a {1}?",
    "{n} says that the {0} needs {k} minutes, but I do not believe it.",
    "Thanks, that helped with the {0}!",
    "I plan to finish the {0} before {m} {k}.",
)
TOLD = (
    "A {0} works best when the {1} is checked first, ideally about {k} days before.",
    "Start with the {0}: it decides how the {1} and the {2} behave later.",
    "If the {0} still fails, replace the {1} and write down what changed.",
    "Many people in {p} keep a {0} beside the {1} for that reason.",
    "You can expect the {0} to take around {k} hours, or less with a good {1}.",
    "The {0} is not the cause here; look at the {1} instead.",
    "For your {0}, a simple {1} is enough, and the {2} can wait until {m}.",
    "In short, keep the {0} dry, clean the {1} once a week, and ask {n} about the {2}.",
)
MONTHS = "January March May June August October November".split()


def words() -> list[list[str]]:
    """The nouns of each subject."""
    return [row.replace(":", "").split() for row in SUBJECTS.strip().splitlines()]


def text(dice: random.Random, nouns: list[str], length: int, shapes: tuple[str, ...] = TOLD) -> str:
    """Sentences about a subject, some `length` words of them."""
    told: list[str] = []
    while length > 0:
        told.append(
            dice.choice(shapes).format(
                *dice.sample(nouns, 3),
                n=dice.choice(NAMES),
                p=dice.choice(PLACES),
                m=dice.choice(MONTHS),
                k=dice.randint(2, 60),
            )
        )
        length -= len(told[-1].split())
    return " ".join(told)


def conversation(dice: random.Random, subjects: list[list[str]], number: int) -> dict[str, Any]:
    """A conversation as ChatGPT exports it, with a hidden message and a branch that was edited away."""

    def ident() -> str:
        return str(UUID(int=dice.getrandbits(128)))

    began, known = BEGIN + number * 5400, dice.choice(subjects)
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
            say("user", text(dice, known, 12, SAID), last)
        last = say("user", text(dice, known, dice.randint(5, 60), SAID), last)
        last = say("assistant", text(dice, known, dice.randint(30, 250)), last, model_slug="invented")
    return {
        "title": " and ".join(dice.sample(known, 2)),
        "create_time": began,
        "update_time": began + 1000.0,
        "mapping": mapping,
        "current_node": last,
        "conversation_id": root,
    }


def export(megabytes: float) -> Iterator[str]:
    """conversations.json, piece by piece."""
    dice = random.Random(SEED)
    subjects = words()
    left, number = megabytes * 1e6, 0
    yield "["
    while left > 0:
        piece = ("," if number else "") + json.dumps(conversation(dice, subjects, number))
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
    with process.stdout as stream:
        out = stream.read()
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
