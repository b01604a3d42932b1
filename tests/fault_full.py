"""A real disk of 64 kB that becomes full: run as a program, in a mount namespace of its own.

    fault_full.py FOLDER    mounts a tmpfs there, writes until it is full, makes room, and goes on

Prints what was wrong as a JSON list.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner
from fault_library import problems

from infinimem.cli.app import app
from infinimem.errors import InfinimemError
from infinimem.store.library import Library

SIZE, FILLER = 64 * 1024, 8 * 1024


def mount(folder: Path) -> None:
    """Mount it; raises CalledProcessError where that is not allowed."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "none", str(folder)]
    subprocess.run(command, check=True, capture_output=True)


class Session:
    """Commands on one library; keeps what they acknowledged and what was wrong."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.told: dict[int, str] = {}
        self.wrong: list[str] = []
        self.refusals = 0

    def run(self, *command: str) -> bool:
        """Whether it went through; a refusal has to be one line and exit code 1."""
        ran = CliRunner().invoke(app, ["--model", "offline", "--json", "--library", str(self.root), *command])
        if ran.exit_code:
            self.refusals += 1
            one_line = ran.stdout.startswith('{"error": ') and ran.stdout.count("\n") == 1
            if ran.exit_code != 1 or ran.stderr or not one_line:
                self.wrong.append(f"{command}: {ran.exit_code} {ran.stdout!r} {ran.stderr!r}")
        elif command[0] == "add":
            done = json.loads(ran.stdout)
            view = Library(self.root).view()
            for seq in (*done["evidence"], *done["entries"]):
                place = view.entry(seq)
                self.told[seq] = place.text if place else "nothing"
        return not ran.exit_code

    def add(self, number: int) -> bool:
        """One fact more, some hundred bytes long."""
        text = f"Fact {number}: my shelf {number} holds {'books and ' * 20}a lamp."
        return self.run("add", text, "--session", "s", "--time", "2025-03-03", "--key", str(number))

    def read(self, when: str) -> None:
        """However full the disk is, all that was acknowledged can be read."""
        try:
            view = Library(self.root).view()
        except InfinimemError as error:
            self.wrong.append(f"{when}: cannot be read: {error}")
            return
        self.wrong += [f"{when}: seq {seq} is gone" for seq in self.told if view.entry(seq) is None]

    def check(self) -> None:
        """With room on the disk, nothing at all is wrong."""
        self.wrong += problems(self.root, self.told)


def fill(folder: Path) -> list[str]:
    """Write until nothing goes, look, make room, go on; gives what was wrong."""
    session = Session(folder / "library")
    session.run("init")
    (folder / "filler").write_bytes(bytes(FILLER))
    number = 0
    while session.refusals < 12 and number < 500:  # some commands may still fit after the first that does not
        number += 1
        session.add(number)
        if number % 4 == 0:
            session.run("consolidate")
        session.read(f"after {number}")
    (folder / "filler").unlink()
    if not session.told or session.refusals < 12:
        session.wrong.append(f"{len(session.told)} lines, {session.refusals} refusals: it was never full")
    if not session.add(number):
        session.wrong.append("it does not go on once there is room")
    session.check()
    return session.wrong


if __name__ == "__main__":
    place = Path(sys.argv[1])
    mount(place)
    print(json.dumps(fill(place)))
