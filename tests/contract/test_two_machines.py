"""Two machines, one memory: whatever each side did, nothing is lost, doubled or of unknown origin."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from cli_runner import Shell

from infinimem import Memory, Turn, open_memory
from infinimem.errors import InfinimemError

LINE = re.compile(r"^- <seq=(\d+),(.*?)> (.*)$", re.M)
LIVE = ("CURRENT.md", "topics/*.md", "archive/*.md")
SUBJECTS = ("The boiler", "Our garden", "My sister Ida", "The red bike", "Lisbon")
STRATEGIES = ("infini", "allmem", "gam", "recmem", "xmemory")


def opened(root: Path, strategy: str = "infini") -> Memory:
    return open_memory(root, model="offline", create=True, strategy=strategy)


def files(root: Path) -> dict[str, bytes]:
    """All that both sides have alike after a merge: the program's files but for receipts."""
    paths = (path for path in root.rglob("*.md") if ".infinimem" not in path.parts)
    named = {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}
    return {name: data for name, data in named.items() if not name.startswith("journal/")}


def lines(root: Path, *globs: str) -> Iterator[tuple[int, str, str]]:
    """Seq, fields and text of signed lines, in order."""
    for glob in globs:
        for path in sorted(root.glob(glob)):
            for match in LINE.finditer(path.read_text()):
                yield int(match[1]), match[2], match[3]


def cited(fields: str) -> list[int]:
    """The seqs that an entry names as its origin."""
    seqs: list[int] = []
    for part in (re.findall(r"origin=([\d+-]+)", fields) or [""])[0].split("+"):
        first, _, last = part.partition("-")
        seqs += range(int(first), int(last or first) + 1) if first else ()
    return seqs


@dataclass
class State:
    """What a library holds: turns and entries by seq, and what each entry was drawn from, in words."""

    said: dict[int, str]
    drawn: dict[int, list[str]]
    origins: dict[int, set[str]]

    @classmethod
    def of(cls, root: Path) -> State:
        said = {seq: text for seq, _, text in lines(root, "evidence/*.md")}
        drawn: dict[int, list[str]] = {}
        origins: dict[int, set[str]] = {}
        for seq, fields, text in lines(root, *LIVE):
            drawn.setdefault(seq, []).append(text)
            origins[seq] = {said[one] for one in cited(fields) if one in said}
        return cls(said, drawn, origins)


@dataclass
class Side:
    """One machine: it does random things, and notes what a person did."""

    root: Path
    name: str
    chance: random.Random
    strategy: str
    words: int = 0
    removed: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.memory = opened(self.root, self.strategy)
        self.memory.library.adopt_edits()  # a first look: what changes from now on is told

    def word(self) -> str:
        self.words += 1
        return f"{self.name}{self.words}x"

    def add(self) -> None:
        subject = self.chance.choice(SUBJECTS)
        texts = [f"{subject} is {self.word()} since May." for _ in range(self.chance.randint(1, 3))]
        session = self.chance.choice(("kitchen", "kitchen", self.name, None))
        self.memory.observe([Turn(text, session=session, time="2025-03-01") for text in texts])

    def consolidate(self) -> None:
        self.memory.consolidate()

    def _live(self) -> list[tuple[Path, str]]:
        paths = [self.root / "CURRENT.md", *sorted(self.root.glob("topics/*.md"))]
        return [(path, one[0]) for path in paths if path.exists() for one in LINE.finditer(path.read_text())]

    def edit(self) -> None:
        if live := self._live():
            path, line = self.chance.choice(live)
            path.write_text(path.read_text().replace(line, f"{line} Or {self.word()}."))
            self.memory.library.adopt_edits()

    def type(self) -> None:
        with (self.root / "CURRENT.md").open("a") as file:
            file.write(f"- {self.word()}, typed by hand\n")

    def move(self) -> None:
        if live := self._live():
            path, line = self.chance.choice(live)
            target = self.root / "topics" / f"{self.chance.choice(('attic', self.name))}.md"
            if target != path:
                path.write_text(path.read_text().replace(f"{line}\n", ""))
                target.parent.mkdir(exist_ok=True)
                target.write_text((target.read_text() if target.exists() else "") + f"{line}\n")

    def undo(self) -> None:
        newest = [one for one in self.memory.receipts() if one.op not in ("forget", "stamp")][-1:]
        with suppress(InfinimemError):  # what was unsigned again, both sides would sign
            _ = newest and self.memory.undo(newest[0].id)

    def forget(self) -> None:
        if self.chance.random() < 0.3 and (live := self._live()):
            seq = int(LINE.match(self.chance.choice(live)[1])[1])  # type: ignore[index]
            gone = self.memory.forget([seq])
            self.removed.update(gone.seqs)

    def live_a_while(self, steps: int) -> None:
        acts = (
            [self.add] * 4
            + [self.consolidate] * 2
            + [self.edit, self.type, self.move, self.undo, self.forget]
        )
        if self.strategy != "infini":
            acts = [self.add] * 3 + [self.consolidate, self.undo, self.forget]
        for _ in range(steps):
            self.chance.choice(acts)()
        self.memory.consolidate() if self.chance.random() < 0.5 else self.memory.library.adopt_edits()


def git(folder: Path, *command: str, fails: bool = False) -> str:
    quiet = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1"}
    for who in ("AUTHOR", "COMMITTER"):
        quiet |= {f"GIT_{who}_NAME": "A", f"GIT_{who}_EMAIL": "a@example.org"}
    done = subprocess.run(
        ["git", *command], cwd=folder, env=quiet, capture_output=True, text=True, check=False
    )
    assert fails or done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


# ── ways to merge: into a copy of ours comes what theirs has, whatever program does it ──────────────


def put(root: Path, name: str, data: bytes) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_bytes(data)


def marked(folder: Path, base: bytes, ours: bytes, theirs: bytes) -> bytes:
    """The file that git leaves of two versions."""
    names = [folder.parent / f"{folder.name}-{which}" for which in ("ours", "base", "theirs")]
    for path, data in zip(names, (ours, base, theirs), strict=True):
        path.write_bytes(data)
    done = subprocess.run(["git", "merge-file", "-p", *map(str, names)], capture_output=True, check=False)
    return done.stdout


def combine(shell: Shell, way: str, base: Path, ours: Path, theirs: Path) -> None:
    was, mine, yours = (
        {
            path.relative_to(root).as_posix(): path.read_bytes()
            for path in root.rglob("*.md")
            if ".infinimem" not in path.parts
        }
        for root in (base, ours, theirs)
    )
    for name in sorted({*was, *mine, *yours}):
        old, here, there = (some.get(name) for some in (was, mine, yours))
        if there in (old, here):
            continue
        if here == old:
            (ours / name).unlink() if there is None else put(ours, name, there)
        elif here is None or there is None:  # one took the file away, the other changed it: git keeps it
            put(ours, name, here or there or b"")
        elif way == "driver":
            given = [ours.parent / f"{ours.name}.{which}" for which in ("base", "ours", "theirs")]
            for path, data in zip(given, (old or b"", here, there), strict=True):
                path.write_bytes(data)
            assert shell("merge-file", *map(str, given), name).code == 0
            put(ours, name, given[1].read_bytes())
        elif way == "copies":
            put(ours, f"{name[:-3]}.sync-conflict-20250301-120000-ABCDEFG.md", there)
        else:
            text = marked(ours, old or b"", here, there)
            if way == "kept":
                text = re.sub(rb"(?m)^(<<<<<<< |=======$|>>>>>>> ).*\n", b"", text)
            put(ours, name, text)


WAYS = ("driver", "markers", "copies")


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(tmp_path, monkeypatch)


def check_state(root: Path, sides: list[Side], states: list[State], base: State, has_base: bool) -> None:
    """Every line stands once, with the words of whoever edited it, and leads to the turn that was said."""
    after, gone = State.of(root), set().union(*(side.removed for side in sides))
    said = base.said | states[0].said | states[1].said
    assert after.said == {seq: text for seq, text in said.items() if seq not in gone}
    all_texts = Counter(text for texts in after.drawn.values() for text in texts)
    for seq in {*states[0].drawn, *states[1].drawn}:
        versions = [state.drawn.get(seq, [""])[0] for state in states]
        was = base.drawn.get(seq, [""])[0]
        if seq in gone:
            assert seq not in after.drawn
            continue
        edited = [text for text in versions if text not in ("", was)]
        if "" in versions and was and (not edited or not has_base):
            assert len(after.drawn.get(seq, ())) <= 1, "one side took it out"
            continue
        texts = after.drawn.get(seq, [])
        assert len(texts) == 1, (seq, versions, was, texts)
        assert texts[0] in (edited or [was]), (seq, texts, versions, was)
        for text in edited:
            assert all_texts[text] == 1, (seq, text)
        origins = [state.origins[seq] for state in states if seq in state.drawn]
        assert after.origins[seq] in origins, (seq, after.origins[seq], origins)


def one_pair(shell: Shell, folder: Path, seed: int, strategy: str, way: str, steps: int) -> None:
    chance = random.Random(seed)
    base = Side(folder / "base", "b", chance, strategy)
    base.add()
    base.live_a_while(chance.randint(1, 4))
    start = State.of(base.root)
    sides = []
    for name in ("l", "r"):
        shutil.copytree(base.root, folder / name, ignore=shutil.ignore_patterns(".infinimem"))
        sides.append(Side(folder / name, name, chance, strategy))
    for side in sides:
        side.live_a_while(chance.randint(1, steps))
    states = [State.of(side.root) for side in sides]
    kept = [Path(shutil.copytree(side.root, folder / f"{side.name}-kept")) for side in sides]
    merged = []
    for side, other in zip(sides, kept[::-1], strict=True):
        root = side.root
        combine(shell, way, base.root, root, other)
        before = files(root)
        assert shell("--library", str(root), "--json", "sync").code == 0
        check_state(root, sides, states, start, way == "driver")
        found = shell("--library", str(root), "doctor", "--json").json["findings"]
        assert [row for row in found if row["level"] == "error"] == []
        after = files(root)
        again = shell("--library", str(root), "--json", "sync").json
        assert again["receipts"] == [] and files(root) == after, "a second merge changes nothing"
        merged.append((root, before, after))
    numbers = re.compile(rb"(?m)^- <seq=\d+,|,was=\d+|origin=[\d+-]+")
    both = [{name: numbers.sub(b"", data) for name, data in after.items()} for _, _, after in merged]
    assert both[0] == both[1], "both orders of merging give the same"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(20))
def test_whatever_two_machines_did_a_merge_keeps_it(
    shell: Shell, tmp_path: Path, way: str, seed: int
) -> None:
    """Random pairs, merged in both orders: nothing lost, doubled or given a wrong origin."""
    one_pair(shell, tmp_path, seed, "infini", way, 12)
