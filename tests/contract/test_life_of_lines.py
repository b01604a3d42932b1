"""A line is written once and after that it only moves, whatever people and programs do in whatever order.

Random histories over all five systems, looked at from outside: the files, `open_memory` and nothing else.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from garbage import GarbageLLM

from infinimem import InfinimemError, Memory, Turn, open_memory

STRATEGIES = ("infini", "allmem", "gam", "recmem", "xmemory")
SIGNED = re.compile(r"^- <seq=(\d+)[,>].*$", re.M)
SUBJECTS = ("My sister Ines", "The boiler", "Our dog Rolf", "My bike", "The tax office", "Project Heron")
EVENTS = (
    "moved to Porto",
    "was repaired by Mr Lind",
    "needs new tyres",
    "prefers tea to coffee",
    "is due on 4 May",
    "weighs 31 kg",
)
STEPS = ("say", "say", "say", "consolidate", "undo", "forget", "edit", "type", "move", "delete")


class Life:
    """One library, and what its lines were when they were first seen."""

    def __init__(self, root: Path, strategy: str, seed: int) -> None:
        self.chance = random.Random(f"{strategy} {seed}")
        self.root, self.clock = root, 0
        root.mkdir()
        (root / "infinimem.toml").write_text(f'strategy = "{strategy}"\n')
        model = GarbageLLM(seed) if seed % 2 else "offline"
        self.memory: Memory = open_memory(root, model=model, strategy=strategy)
        self.lines: dict[int, str] = {}
        self.edited: set[int] = set()
        self.evidence: dict[Path, bytes] = {}

    def files(self, *folders: str) -> list[Path]:
        return sorted(path for folder in folders for path in (self.root / folder).rglob("*.md"))

    def standing(self) -> dict[int, list[tuple[Path, str]]]:
        """Where each number stands, outside the evidence."""
        places: dict[int, list[tuple[Path, str]]] = {}
        current = self.root / "CURRENT.md"
        for path in [*([current] if current.exists() else []), *self.files("topics", "archive")]:
            for match in SIGNED.finditer(path.read_text()):
                places.setdefault(int(match[1]), []).append((path, match[0]))
        return places

    def say(self) -> None:
        self.clock += 1
        text = f"{self.chance.choice(SUBJECTS)} {self.chance.choice(EVENTS)}, that is note {self.clock}."
        day = f"2026-0{self.clock // 25 + 1}-{self.clock % 25 + 1:02}"
        self.memory.observe([Turn(text, time=f"{day}T10:00:00", session=day)])

    def consolidate(self) -> None:
        self.memory.consolidate()

    def undo(self) -> None:
        if self.memory.receipts():
            self.memory.undo()

    def forget(self) -> None:
        if self.evidence and self.chance.random() < 0.5:
            path = self.chance.choice(sorted(self.evidence))
            if seqs := [int(seq) for seq in SIGNED.findall(path.read_text())]:
                text = next(SIGNED.finditer(path.read_text()))[0].split("> ", 1)[1]
                forgotten = self.memory.forget([seqs[0]])
                named = {
                    self.root / residue.path for residue in forgotten.left
                }  # names, which `rename` changes
                for seq in forgotten.seqs:
                    self.lines.pop(seq, None)
                self.evidence = {p: p.read_bytes() for p in self.files("evidence")}
                everything = b"".join(
                    p.read_bytes() for p in set(self.root.rglob("*")) - named if p.is_file()
                )
                assert text.encode() not in everything

    def _some_line(self) -> tuple[Path, int, str] | None:
        lines = [
            (path, seq, line)
            for seq, places in self.standing().items()
            for path, line in places
            if path.parent.name != "archive"
        ]
        return self.chance.choice(lines) if lines else None

    def edit(self) -> None:
        if some := self._some_line():
            path, seq, line = some
            path.write_text(path.read_text().replace(line, f"{line} (corrected)", 1))
            self.lines.pop(seq, None)
            self.edited.add(seq)

    def delete(self) -> None:
        if some := self._some_line():
            path, seq, line = some
            path.write_text(path.read_text().replace(f"{line}\n", "", 1))
            self.lines.pop(seq, None)

    def move(self) -> None:
        topics = self.files("topics")
        if (some := self._some_line()) and topics:
            path, _, line = some
            to = self.chance.choice(topics)
            if to != path:
                to.write_text(f"{to.read_text()}\n{line}\n")
                path.write_text(path.read_text().replace(f"{line}\n", "", 1))

    def type(self) -> None:
        if topics := self.files("topics"):
            path = self.chance.choice(topics)
            self.clock += 1
            path.write_text(f"{path.read_text().rstrip()}\n- Typed by hand, number {self.clock}\n")

    def step(self) -> str:
        name = self.chance.choice(STEPS)
        try:
            getattr(self, name)()
        except InfinimemError as error:
            assert "\n" not in str(error)
            return f"{name}: {error}"
        return name

    def check(self, step: str) -> None:
        by_hand = step in ("edit", "delete", "move", "type")
        for path, was in self.evidence.items():
            assert path.read_bytes().startswith(was), f"evidence changed: {path.name}"
        self.evidence = {path: path.read_bytes() for path in self.files("evidence")}
        standing = self.standing()
        for seq, places in standing.items():
            assert len(places) == 1, f"{seq} stands twice"
            line = places[0][1]
            if seq in self.edited:  # the next receipt says that it is a person's now
                line = line.split("> ", 1)[1]
            assert by_hand or self.lines.setdefault(seq, line) == line, f"{seq} was reworded"
        if step != "undo":  # takes back what an extraction drew
            assert by_hand or not self.lines.keys() - standing.keys(), "a line was lost"
        else:
            self.lines = {seq: line for seq, line in self.lines.items() if seq in standing}
        if not by_hand:
            assert [finding for finding in self.memory.doctor() if finding.level == "error"] == []


def live(root: Path, strategy: str, seed: int, steps: int) -> None:
    life = Life(root, strategy, seed)
    history = []
    for _ in range(steps):
        history.append(life.step())
        try:
            life.check(history[-1].split(":")[0])
        except AssertionError as error:
            raise AssertionError(f"{error}, after {history}") from error


@pytest.mark.sample(10)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_line_is_lost_doubled_or_reworded(tmp_path: Path, strategy: str, seed: int) -> None:
    """Lines move and are never reworded, whatever a model says; evidence only grows; no line is lost."""
    live(tmp_path / "library", strategy, seed, 30)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3, 33))
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_line_is_lost_doubled_or_reworded_in_long_lives(tmp_path: Path, strategy: str, seed: int) -> None:
    """The same, in many and longer histories."""
    live(tmp_path / "library", strategy, seed, 120)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_receipt_can_be_undone(tmp_path: Path, strategy: str) -> None:
    """An undo restores every byte, as does one of that undo; of older receipts it restores the places."""
    life = Life(tmp_path / "library", strategy, 0)

    def places() -> dict[int, str]:
        return {seq: str(at[0][0].relative_to(life.root)) for seq, at in life.standing().items()}

    def documents() -> dict[Path, bytes]:
        paths = {*life.root.rglob("*.md")} - {*life.files("evidence", "journal")}
        return {path: path.read_bytes() for path in sorted(paths)}

    def undo_twice(before: dict[Path, bytes]) -> None:
        after, files = documents(), life.memory.receipts()[-1].files
        for expected in (before, after):
            (receipt,) = life.memory.undo(life.memory.receipts()[-1].id)
            assert documents() == expected
            assert [(name, now, was) for name, was, now in sorted(receipt.files)] == sorted(files)
            files = receipt.files
            assert not receipt.notes[1:]

    before: list[dict[int, str]] = []
    for _ in range(6):
        for act in (life.say, life.say, life.consolidate):
            known, now, was = len(life.memory.receipts()), places(), documents()
            act()
            made = len(life.memory.receipts()) - known
            if made == 1:
                undo_twice(was)
            before += [now] * made
    receipts = [receipt.id for receipt in life.memory.receipts() if receipt.op != "undo"]
    assert len(receipts) == len(before)
    for receipt, at in list(zip(receipts, before, strict=True))[:-4:-1]:
        life.memory.undo(receipt)
        assert {seq: place for seq, place in places().items() if seq in at} == at
    life.check("undo")


def test_two_programs_and_a_person_write_at_once(tmp_path: Path) -> None:
    """What either program acknowledged stands once afterwards, and what the person typed stands too."""
    life = Life(tmp_path / "library", "infini", 0)
    for _ in range(8):
        life.say()
    life.consolidate()
    code = (
        "import sys\nfrom contextlib import suppress\n"
        "from infinimem import InfinimemError, Turn, open_memory\n"
        "memory = open_memory(sys.argv[1], model='offline')\n"
        "for n in range(15):\n"
        "    memory.observe([Turn(f'Parcel {sys.argv[2]}{n} is in the cellar.', session=sys.argv[2])])\n"
        "    with suppress(InfinimemError):  # the person may save too often for a transaction\n"
        "        n % 5 or memory.consolidate()\n"
    )
    programs = [subprocess.Popen([sys.executable, "-c", code, str(life.root), name]) for name in "ab"]
    typed = 0
    while any(program.poll() is None for program in programs):
        topic = life.chance.choice(life.files("topics"))
        with topic.open("a") as file:
            file.write(f"- Typed while they ran, number {(typed := typed + 1)}\n")
        time.sleep(0.05)
    assert [program.returncode for program in programs] == [0, 0]
    life.consolidate()
    life.check("consolidate")
    evidence = "".join(path.read_text() for path in life.files("evidence"))
    assert all(evidence.count(f"Parcel {name}{n} is") == 1 for name in "ab" for n in range(15))
    documents = "".join(path.read_text() for path in life.files("topics", "archive"))
    assert all(documents.count(f"number {n}\n") == 1 for n in range(1, typed + 1))
