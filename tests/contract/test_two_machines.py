"""Two machines, one memory: whatever each side did, nothing is lost, doubled or of unknown origin."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from cli_runner import Shell

from infinimem import Memory, Turn, open_memory
from infinimem.errors import InfinimemError
from infinimem.model import Receipt

LINE = re.compile(r"^- <seq=(\d+),(.*?)> (.*)$", re.M)
WORD = re.compile(r"\b[a-z]\d+x\b")
"""What a machine said once; a chat that both import has none."""
LIVE = ("CURRENT.md", "topics/*.md", "archive/*.md")
SUBJECTS = ("The boiler", "Our garden", "My sister Ida", "The red bike", "Lisbon")
STRATEGIES = ("infini", "allmem", "gam", "recmem", "xmemory")


def opened(root: Path, strategy: str = "infini") -> Memory:
    return open_memory(root, model="offline", create=True, strategy=strategy)


def documents(root: Path) -> dict[str, bytes]:
    paths = (path for path in root.rglob("*.md") if ".infinimem" not in path.parts)
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


def files(root: Path) -> dict[str, bytes]:
    """All that both sides have alike after a merge: the program's files but for receipts."""
    return {name: data for name, data in documents(root).items() if not name.startswith("journal/")}


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
        turns = [(seq, text) for seq, _, text in lines(root, "evidence/*.md")]
        said = dict(turns)
        assert len(said) == len(turns), "each turn stands once"
        drawn: dict[int, list[str]] = {}
        origins: dict[int, set[str]] = {}
        for seq, fields, text in lines(root, *LIVE):
            drawn.setdefault(seq, []).append(text)
            origins[seq] = {said[one] for one in cited(fields) if one in said}
        return cls(said, drawn, origins)


@dataclass
class Told:
    """What `blame` and `history` tell: of lines the turns and what the story names; of records the turns."""

    words: dict[int, str]
    turns: dict[int, frozenset[int]]
    quoted: dict[tuple[str, str], frozenset[int]]
    receipts: dict[int, set[str]]
    named: dict[int, set[int]]

    @classmethod
    def of(cls, memory: Memory) -> Told:
        told = cls({}, {}, {}, {}, {})
        owned = ("CURRENT.md", "topics/*.md", "archive/*.md", *(f"{one}/**/*.md" for one in STRATEGIES[1:]))
        for path in (path for glob in owned for path in sorted(memory.library.root.glob(glob))):
            for row in memory.blame(path.relative_to(memory.library.root).as_posix()):
                turns = frozenset(turn.seq for turn in row.turns)
                if row.kind == "quoted":
                    told.quoted[path.name, row.text] = turns
                elif row.kind == "entry" and row.seq and (line := LINE.match(row.text)):
                    story, told.words[row.seq] = memory.history(row.seq), line[3]
                    told.turns[row.seq] = turns
                    told.named[row.seq] = {event.seq for event in story}
                    told.receipts[row.seq] = {event.receipt for event in story if event.receipt}
                    assert turns == {event.seq for event in story if event.event == "said"}, row
                    assert not row.receipt or row.receipt in told.receipts[row.seq], row
        return told


@dataclass
class Side:
    """One machine: it does random things, and notes what a person did."""

    root: Path
    name: str
    chance: random.Random
    strategy: str
    shell: Shell
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

    def import_(self) -> None:
        """A chat that both know, and goes on; or a note that was edited."""
        if self.chance.random() < 0.5:
            path, kept = self.root.parent / "chat.json", range(self.chance.randint(1, 6))
            said = [f"{SUBJECTS[n % 5]} was number {n} in the chat." for n in kept]
            rows = [
                {"role": "user", "content": text, "session": "chat", "turn": n} for n, text in enumerate(said)
            ]
            path.write_text(json.dumps(rows))
        else:
            path = self.root.parent / "list.md"
            facts = [f"{subject} has {n} bolts." for subject in SUBJECTS for n in (4, 7)]
            some = [*self.chance.sample(facts, 3), f"The cellar is {self.word()} now."]
            path.write_text("# Things\n\n" + "".join(f"- {fact}\n" for fact in some))
        options = ("--library", str(self.root), "--strategy", self.strategy, "--model", "offline")
        done = self.shell(*options, "import", str(path))
        assert done.code == 0, done.err

    def consolidate(self) -> None:
        self.memory.consolidate()

    def _live(self) -> list[tuple[Path, str]]:
        paths = [self.root / "CURRENT.md", *sorted(self.root.glob("topics/*.md"))]
        return [(path, one[0]) for path in paths if path.exists() for one in LINE.finditer(path.read_text())]

    def _records(self) -> list[Path]:
        folders = ("units", "topics", "episodes", "facts", "themes")
        return sorted(path for one in folders for path in self.root.glob(f"{self.strategy}/{one}/*.md"))

    def edit(self, most: int | None = None) -> None:
        if live := self._live():
            path, line = self.chance.choice(live[:most])
            path.write_text(path.read_text().replace(line, f"{line} Or {self.word()}."))
            self.memory.library.adopt_edits()
        elif records := self._records():
            path = self.chance.choice(records)
            path.write_text(path.read_text().replace("\n---\n", f"\n{self.word()}: mine\n---\n", 1))

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
        elif self.strategy == "gam" and (records := self._records()):
            path = self.chance.choice(records)
            name = f"{self.strategy}/archive/{path.name}"
            put(self.root, name, path.read_bytes().replace(f"/{path.parent.name}/".encode(), b"/archive/", 1))
            path.unlink()

    def undo(self) -> None:
        newest = [one for one in self.memory.receipts() if one.op not in ("forget", "stamp")][-1:]
        with suppress(InfinimemError):  # what was unsigned again, both sides would sign
            _ = newest and self.memory.undo(newest[0].id)

    def forget(self) -> None:
        said = [seq for seq, *_ in lines(self.root, "evidence/*.md", *LIVE)]
        if said and self.chance.random() < 0.3:
            self.removed.update(self.memory.forget([self.chance.choice(said)]).seqs)

    def live_a_while(self, steps: int) -> None:
        acts = [self.add] * 4 + [self.import_, self.consolidate, self.consolidate]
        acts += [self.edit, self.type, self.move, self.undo, self.forget]
        if self.strategy != "infini":
            acts.remove(self.type)
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


def combine(shell: Shell, way: str, base: Path, ours: Path, theirs: Path) -> None:
    if (ours / ".git").exists():
        git(ours, "remote", "add", "origin", str(theirs / ".git"))
        if way != "sync":  # which merges itself
            git(ours, "fetch", "-q", "origin")
            git(ours, "merge", "-q", "--no-edit", "-X", "no-renames", "origin/main", fails=True)
        for name in git(ours, "diff", "--name-only", "--diff-filter=U").split() if way == "kept" else ():
            text = (ours / name).read_bytes()
            put(ours, name, re.sub(rb"(?m)^(<<<<<<< |=======$|>>>>>>> ).*\n", b"", text))
        return
    was, mine, yours = map(documents, (base, ours, theirs))
    for name in sorted({*was, *mine, *yours}):
        old, here, there = (some.get(name) for some in (was, mine, yours))
        if there == here or (there == old and way != "files"):
            continue
        if here == old and way != "files":
            (ours / name).unlink() if there is None else put(ours, name, there)
        elif here is None or there is None:  # one took the file away, the other changed it
            put(ours, name, here or there or b"")
        elif way == "driver":
            given = [ours.parent / f"{ours.name}.{which}" for which in ("base", "ours", "theirs")]
            for path, data in zip(given, (old or b"", here, there), strict=True):
                path.write_bytes(data)
            assert shell("merge-file", *map(str, given), name).code == 0
            put(ours, name, given[1].read_bytes())
        else:
            plain = " (1)" if b"\nid: " in there else "_conflict-20250301"  # (1) may be anybody's title
            copy = plain if way == "files" else ".sync-conflict-20250301-120000-ABCDEFG"
            put(ours, f"{name[:-3]}{copy}.md", there)


WAYS = {
    "driver": "git merges with ours, file by file",
    "sync": "`infinimem sync` fetches and merges",
    "markers": "git merges without it, and leaves conflict markers",
    "kept": "the same, and a person deletes the markers and nothing else",
    "copies": "a program that syncs a folder: what both changed has a copy beside it",
    "files": "a person copies all over who keeps both of what differs; nobody knows what was before",
}
KNOW_BASE = ("driver", "sync")
IN_GIT = ("sync", "markers", "kept")


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setattr("secrets.randbelow", random.Random(str(tmp_path.name)).randrange)  # blocks of seqs
    return Shell(tmp_path, monkeypatch)


def check_state(root: Path, sides: list[Side], states: list[State], base: State, has_base: bool) -> None:
    """Every line stands once, with the words of whoever edited it, and leads to the turn that was said."""
    after, gone = State.of(root), set().union(*(side.removed for side in sides))
    said = {seq: text for state in (base, *states) for seq, text in state.said.items()}
    assert after.said == {seq: text for seq, text in said.items() if seq not in gone}
    all_texts = Counter(text for texts in after.drawn.values() for text in texts)
    for seq in set().union(*(state.drawn for state in states)):
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
        for text in filter(WORD.search, (texts[0], *edited)):
            assert all_texts[text] == 1, (seq, text)
        origins = [state.origins[seq] for state in states if seq in state.drawn]
        assert after.origins[seq] in origins, (seq, after.origins[seq], origins)


def check_told(
    memory: Memory, sides: list[Told], receipts: list[str], gone: set[int], has_records: bool = True
) -> None:
    """Of each line `blame` and `history` tell what they told before, and of no other line."""
    after = Told.of(memory)
    new = after.turns.keys() - set().union(*(told.turns for told in sides))
    for seq, turns in after.turns.items():
        known = [told for told in sides if seq in told.turns]
        if not known:  # the second of two versions: it came from where it came from before
            old = [
                (told, one)
                for told in sides
                for one, words in told.words.items()
                if words == after.words[seq]
            ]
            assert turns in [told.turns[one] - gone for told, one in old], seq
            continue
        assert turns in [told.turns[seq] - gone for told in known], seq
        assert after.named[seq] <= new.union(*(told.named[seq] for told in known)), seq
        before = set().union(*(told.receipts[seq] for told in known))
        assert before <= after.receipts[seq] <= {*before, *receipts}, seq
    for line, turns in after.quoted.items() if has_records else ():
        assert turns in [told.quoted[line] for told in sides if line in told.quoted], line


def merged(shell: Shell, side: Side, mended: bool = False) -> dict[str, bytes]:
    """Have the next command mend what a merge left; return the files, which another one leaves alone."""
    library = ("--library", str(side.root))
    receipts = shell(*library, "doctor", "--fix") if mended else shell(*library, "--json", "sync")
    assert receipts.code == 0, receipts.err
    findings = shell(*library, "doctor", "--json").json["findings"]
    left = [row for row in findings if row["level"] == "error" or row["fix"]]
    assert [row for row in left if not row["what"].startswith("the header says id")] == []  # moved by hand
    after = files(side.root)
    assert shell(*library, "--json", "sync").json["receipts"] == []
    assert files(side.root) == after, "a second merge changes nothing"
    return after


def take_back(shell: Shell, side: Side, receipts: list[Receipt], known: dict[str, bytes]) -> None:
    """Undo what a merge did, the newest first: each file is as the receipt says that it was, but for links to
    topics that are gone where it is `known` by its checksum."""
    for receipt in receipts[::-1]:
        done = shell("--library", str(side.root), "undo", receipt.id)
        assert done.code == 0, done.err
        now = documents(side.root)
        for name, sha, _ in receipt.files:
            data = now.get(f"{name}.md")
            if data is not None and sha in known:
                assert unlinked(data) == unlinked(known[sha]), name
            else:
                assert sha == ("-" if data is None else sha_of(data)), name


def sha_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def unlinked(data: bytes) -> bytes:
    return re.sub(rb"(?m)^see_also: .*\n", b"", data)


def alike(files: dict[str, bytes], known: set[int], forgot: bool) -> dict[str, bytes]:
    """Files with what orders of merging may tell otherwise left out: numbers that a merge gives are those of
    the place that merges; a summary that a `forget` makes anew lists the headings that stood just then."""
    number = re.compile(rb"\b[0-9]{12}\b")
    plain = {
        name: number.sub(lambda one: one[0] if int(one[0]) in known else b"new", data)
        for name, data in files.items()
    }
    return (
        {name: re.sub(rb"(?m)^summary: .*", b"", data) for name, data in plain.items()} if forgot else plain
    )


def unordered(files: dict[str, bytes], mark: bytes = b"") -> dict[str, list[bytes]]:
    """The lines of files that begin so, each once, wherever in them they stand."""
    rows = {name: {row for row in data.split(b"\n") if row.startswith(mark)} for name, data in files.items()}
    return {name: sorted(some) for name, some in rows.items() if some}


def begun(shell: Shell, folder: Path, seed: int, strategy: str, steps: int, names: str, in_git: bool):
    """Return the common beginning of some machines, and what became of it on each."""
    chance = random.Random(seed)
    base = Side(folder / "base", "b", chance, strategy, shell)
    base.add()
    base.live_a_while(chance.randint(1, 4))
    if in_git:
        git(base.root, "init", "-q", "-b", "main")
        git(base.root, "config", "receive.denyCurrentBranch", "ignore")  # a clone stands for the remote
        git(base.root, "add", "--all")
        git(base.root, "commit", "-qm", "Begin")
    sides = []
    for name in names:
        shutil.copytree(base.root, folder / name, ignore=shutil.ignore_patterns(".infinimem"))
        sides.append(Side(folder / name, name, chance, strategy, shell))
    for side in sides:
        if seed % 3 == 0:
            side.edit(1)  # of the same line
        side.live_a_while(steps if steps == LONG else chance.randint(1, steps))
        if in_git:
            git(side.root, "add", "--all")
            git(side.root, "commit", "-qm", side.name, "--allow-empty")
    return base, sides, [Path(shutil.copytree(side.root, folder / f"{side.name}-kept")) for side in sides]


def one_pair(shell: Shell, folder: Path, seed: int, strategy: str, way: str, steps: int) -> None:
    base, sides, kept = begun(shell, folder, seed, strategy, steps, "lr", way in IN_GIT)
    start, states = State.of(base.root), [State.of(side.root) for side in sides]
    told = [Told.of(side.memory) for side in sides]
    known = {seq for state in states for seq in (*state.said, *state.drawn)}
    gone = set().union(*(side.removed for side in sides))
    both = []
    for side, other in zip(sides, kept[::-1], strict=True):
        combine(shell, way, base.root, side.root, other)
        before = {path.stem for root in (side.root, other) for path in root.glob("journal/*.md")}
        after = merged(shell, side)
        check_state(side.root, sides, states, start, way in KNOW_BASE)
        memory = opened(side.root, strategy)
        receipts = [one for one in memory.receipts() if one.id.removeprefix("journal/") not in before]
        check_told(memory, told, [one.id for one in receipts], gone, way != "kept")
        both.append(alike(after, known, bool(gone)))
        if not (gone and (strategy != "infini" or any(one.op == "forget" for one in receipts))):  # it stays
            take_back(
                shell,
                side,
                receipts,
                {sha_of(data): data for root in kept for data in documents(root).values()},
            )
            assert alike(merged(shell, side, mended=bool(seed % 2)), known, bool(gone)) == both[-1]
    if way == "kept":  # who keeps both sides puts ours first, and of records what nobody wrote
        assert unordered(both[0], b"- <seq=") == unordered(both[1], b"- <seq=")
        return
    assert both[0] == both[1], "both orders of merging give the same"


LONG = 30
SHORT = 6
"""Things that each side does: in the ordinary run up to so many."""
CYCLE = ("infini", "allmem", "infini", "gam", "infini", "recmem", "infini", "xmemory")
PAIRS = [(seed, [*WAYS][seed % 6], CYCLE[seed // 6 % 8]) for seed in range(2000)]
TRIPLES = [(seed, ("driver", "copies")[seed % 2], CYCLE[seed // 2 % 8]) for seed in range(200)]


def some(cases: list[tuple[int, str, str]], most: int) -> list[object]:
    """Return the first ones as cases of the ordinary run, the others as long forms."""
    longer = [pytest.param(*case, marks=pytest.mark.soak) for case in cases[most:]]
    return [*cases[:most], *longer]


@pytest.mark.parametrize(("seed", "way", "strategy"), some(PAIRS, 60))
def test_whatever_two_machines_did_a_merge_keeps_it(
    shell: Shell, tmp_path: Path, seed: int, way: str, strategy: str
) -> None:
    """Random pairs, merged in both orders: nothing lost, doubled or given a wrong origin."""
    one_pair(shell, tmp_path, seed, strategy, way, SHORT if seed < 60 else LONG)


@pytest.mark.parametrize(("seed", "way", "strategy"), some(TRIPLES, 4))
def test_three_machines_may_merge_in_any_order(
    shell: Shell, tmp_path: Path, seed: int, way: str, strategy: str
) -> None:
    """Of three clones each takes in the others, also as one that another merged: all hold the same."""
    base, sides, kept = begun(shell, tmp_path, seed, strategy, SHORT if seed < 4 else LONG, "lrm", False)
    start, states = State.of(base.root), [State.of(side.root) for side in sides]
    told = [Told.of(side.memory) for side in sides]
    known = {seq for state in states for seq in (*state.said, *state.drawn)}
    gone = set().union(*(side.removed for side in sides))
    every = []
    for side, others in zip(sides, (kept[1:], (kept[2], kept[0]), (tmp_path / "both",)), strict=True):
        for other in others:
            combine(shell, way, base.root, side.root, other)
            after = merged(shell, side)
            if not (tmp_path / "both").exists():
                shutil.copytree(side.root, tmp_path / "both")
        check_state(side.root, sides, states, start, way in KNOW_BASE)
        memory = opened(side.root, strategy)
        check_told(memory, told, [one.id for one in memory.receipts()], gone)
        every.append(unordered(alike(after, known, False), b"- <seq="))
    assert every[0] == every[1] == every[2], "each line stands in the same document"


DECISIONS: dict[str, tuple[str, ...]] = {
    "all": ("--approve", "inbox"),
    "one": ("--approve", "inbox/2025-03-01-kitchen"),
    "none": (),
    "no": ("--reject", "inbox"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("mine", "yours"), [("all", "none"), ("one", "all"), ("none", "no"), ("all", "no")])
def test_what_one_machine_approved_or_refused_stands_once(
    shell: Shell, tmp_path: Path, way: str, mine: str, yours: str
) -> None:
    """Of what waited on both sides each line stands once: where the latest decision put it."""
    base = tmp_path / "base"
    shell("init", str(base))
    (base / "infinimem.toml").write_text("format = 1\n[write]\napprove = true\n")
    shell("--library", str(base), "trust", "--yes")
    for text, session in (("I live in Rome.", "kitchen"), ("I bought a kayak.", "attic")):
        for command in (["add", text, "--session", session, "--time", "2025-03-01"], ["consolidate"]):
            assert shell("--library", str(base), "--model", "offline", *command).code == 0
    sides = []
    for name, decision in (("l", mine), ("r", yours)):
        shutil.copytree(base, tmp_path / name, ignore=shutil.ignore_patterns(".infinimem"))
        shell("--library", str(tmp_path / name), "trust", "--yes")
        opened(tmp_path / name).library.adopt_edits()
        if DECISIONS[decision]:
            assert shell("--library", str(tmp_path / name), "review", *DECISIONS[decision]).code == 0
        sides.append(Path(shutil.copytree(tmp_path / name, tmp_path / f"{name}-kept")))
    stood = []
    for name, other in zip("lr", sides[::-1], strict=True):
        root = tmp_path / name
        combine(shell, way, base, root, other)
        assert shell("--library", str(root), "--json", "sync").code == 0
        assert errors(shell, root) == []
        every = ("evidence/**/*.md", "INBOX.md", "archive/**/*.md", *LIVE[:2])
        places = {p: list(lines(root, p.relative_to(root).as_posix())) for g in every for p in root.glob(g)}
        seqs = [seq for rows in places.values() for seq, *_ in rows]
        assert len(seqs) == len({*seqs}) == 4, places
        stood.append({p.relative_to(root).as_posix(): rows for p, rows in places.items()})
    assert stood[0] == stood[1], "both orders of merging give the same"


# ── by git, as docs/GIT.md says ─────────────────────────────────────────────────────────────────────


@pytest.fixture
def pair(shell: Shell, tmp_path: Path) -> tuple[Path, Path]:
    """Two clones of one bare repository, with a fact in it and one more on each side."""
    git(tmp_path, "init", "-q", "--bare", "-b", "main", "remote.git")
    one, two = tmp_path / "one", tmp_path / "two"
    shell("init", str(one))
    git(one, "init", "-q", "-b", "main")
    git(one, "remote", "add", "origin", str(tmp_path / "remote.git"))
    git(one, "add", "--all")
    git(one, "commit", "-qm", "Begin")
    say(shell, one, "I live in Rome.")
    assert shell("--library", str(one), "sync").code == 0
    git(tmp_path, "clone", "-q", "-b", "main", "remote.git", "two")
    say(shell, one, "I adopted a cat named Miso.")
    say(shell, two, "I bought a kayak in June.")
    return one, two


def say(shell: Shell, root: Path, text: str) -> None:
    for command in (["add", text], ["consolidate"]):
        assert shell("--library", str(root), "--model", "offline", *command).code == 0


def errors(shell: Shell, root: Path) -> list[str]:
    findings = shell("--library", str(root), "doctor", "--json").json["findings"]
    return [row["what"] for row in findings if row["level"] == "error"]


def test_two_machines_sync_and_hold_the_same(shell: Shell, pair: tuple[Path, Path]) -> None:
    """Each side says a fact; after both synced they have the same files, both facts, each from its turn."""
    one, two = pair
    for root in (one, two, one):
        assert shell("--library", str(root), "sync").code == 0
        assert errors(shell, root) == []
    state = State.of(one)
    assert files(one) == files(two)
    assert {text: origin for seq, (text,) in state.drawn.items() for origin in state.origins[seq]} == {
        text: text for text in state.said.values()
    }
    assert len(state.said) == 3


def test_a_dry_run_tells_the_lines_and_changes_nothing(shell: Shell, pair: tuple[Path, Path]) -> None:
    """`sync --dry-run` names the facts that would come; files, commits and the remote stay as they are."""
    one, two = pair
    assert shell("--library", str(one), "sync").code == 0
    before = files(two), git(two, "rev-parse", "HEAD"), git(two, "ls-remote", "origin")
    told = shell("--library", str(two), "--json", "sync", "--dry-run").json
    assert "I adopted a cat named Miso." in told["came"].values()
    assert "I bought a kayak in June." in told["went"].values()
    assert before == (files(two), git(two, "rev-parse", "HEAD"), git(two, "ls-remote", "origin"))


def test_what_a_sync_mended_can_be_taken_back(shell: Shell, pair: tuple[Path, Path]) -> None:
    """The receipt of a merge is undone like any other: the file is as git left it."""
    one, two = pair
    shell("--library", str(one), "sync")
    git(two, "add", "--all")
    git(two, "commit", "-qm", "More")
    git(two, "fetch", "-q")
    git(two, "merge", "-q", "--no-edit", "origin/main", fails=True)
    (receipt,) = shell("--library", str(two), "--json", "sync").json["receipts"]
    assert shell("--library", str(two), "undo", receipt).code == 0
    assert any("<<<<<<< " in data.decode() for data in files(two).values())
    assert shell("--library", str(two), "doctor", "--fix").code == 0
    assert not any("<<<<<<< " in data.decode() for data in files(two).values())


@pytest.mark.parametrize("is_set_up", [True, False])
def test_a_plain_git_merge_is_enough(shell: Shell, pair: tuple[Path, Path], is_set_up: bool) -> None:
    """With the driver git merges without a conflict; without, the next command mends what git left."""
    one, two = pair
    for root in pair:
        if is_set_up:
            assert "merge=infinimem" in shell("--library", str(root), "git-setup").out
            assert not (root / ".gitattributes").exists(), "it is shown before it is written"
            assert shell("--library", str(root), "git-setup", "--yes").code == 0
            git(
                root,
                "config",
                "merge.infinimem.driver",
                f"{sys.executable} -m infinimem merge-file %O %A %B %P",
            )
        git(root, "add", "--all")
        git(root, "commit", "-qm", "More")
    git(one, "push", "-q", "origin", "HEAD:main")
    git(two, "fetch", "-q")
    git(two, "merge", "-q", "--no-edit", "origin/main", fails=not is_set_up)
    assert bool(git(two, "diff", "--name-only", "--diff-filter=U")) != is_set_up
    say(shell, two, "My sister lives in Oslo.")
    assert errors(shell, two) == []
    facts = {"I live in Rome.", "I adopted a cat named Miso.", "I bought a kayak in June."}
    drawn = {text for texts in State.of(two).drawn.values() for text in texts}
    assert drawn == {*facts, "My sister lives in Oslo."}


def test_what_one_machine_forgot_the_other_forgets(shell: Shell, pair: tuple[Path, Path]) -> None:
    """A forget reaches the other side with its receipt, whatever that side made of the line meanwhile."""
    one, two = pair
    (seq,) = (seq for seq, texts in State.of(two).drawn.items() if texts == ["I live in Rome."])
    topic = next(path for path in two.glob("topics/*.md") if "live in Rome" in path.read_text())
    topic.write_text(topic.read_text().replace("live in Rome.", "live in Rome, near the river."))
    say(shell, two, "The river is high.")
    assert shell("--library", str(one), "forget", "--seq", str(seq), "--yes").code == 0
    for root in (one, two, one, two):
        assert shell("--library", str(root), "sync").code == 0
    for root in pair:
        kept = [path for path in root.rglob("*") if path.is_file() and ".git" not in path.parts]
        assert not [path for path in kept if b"live in Rome" in path.read_bytes()]
        assert errors(shell, root) == []


@pytest.mark.parametrize("way", ["driver", "copies"])
def test_what_each_machine_forgot_no_receipt_quotes(shell: Shell, tmp_path: Path, way: str) -> None:
    """Of a receipt that a `forget` on either side rewrote nothing comes back by merging."""
    base = tmp_path / "base"
    memory = opened(base)
    memory.observe(
        [Turn(f"I have a {word}.", session="home", time="2025-03-01") for word in ("kayak", "piano")]
    )
    memory.consolidate()
    for word, seq in zip(("kayak", "piano"), State.of(base).drawn, strict=True):
        (topic,) = base.glob("topics/*.md")
        topic.write_text(topic.read_text().replace(f"a {word}.\n", f"an old {word}.\n"))
        memory.library.adopt_edits()
        assert seq
    sides = []
    for word in ("kayak", "piano"):
        root = Path(shutil.copytree(base, tmp_path / word, ignore=shutil.ignore_patterns(".infinimem")))
        opened(root).forget(match=word)
        sides.append(root)
    combine(shell, way, base, *sides)
    assert shell("--library", str(sides[0]), "sync").code == 0
    assert errors(shell, sides[0]) == []
    kept = b"".join(documents(sides[0]).values())
    assert b"kayak" not in kept and b"piano" not in kept


PLANTED = {
    "core.sshCommand": "touch {mark}",
    "core.askPass": "{hook}",
    "core.fsmonitor": "touch {mark}",
    "core.hooksPath": "{hooks}",
    "merge.x.driver": "touch {mark}",
    "filter.x.smudge": "touch {mark}; cat",
    "credential.helper": "!touch {mark}",
    "remote.origin.uploadpack": "touch {mark}; git-upload-pack",
    "remote.origin.receivepack": "touch {mark}; git-receive-pack",
    "remote.origin.vcs": "ext",
}


def test_sync_runs_no_program_that_the_repository_names(shell: Shell, pair: tuple[Path, Path]) -> None:
    """Neither .git/config nor .gitattributes can have `sync` run a program, and it syncs all the same."""
    one, two = pair
    shell("--library", str(one), "sync")
    mark, hooks = shell.home / "ran", shell.home / "hooks"
    hooks.mkdir()
    for name in ("pre-commit", "post-merge", "pre-push", "post-checkout", "pre-merge-commit"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {mark}\n")
        (hooks / name).chmod(0o755)
    (two / ".git/info").mkdir(exist_ok=True)
    (two / ".git/info/attributes").write_text("* merge=x filter=x\n")
    for key, value in PLANTED.items():
        if key != "remote.origin.vcs":
            git(two, "config", key, value.format(mark=mark, hook=hooks / "pre-commit", hooks=hooks))
    assert shell("--library", str(two), "sync").code == 0
    assert not mark.exists()
    assert errors(shell, two) == []
    assert len(State.of(two).said) == 3
    git(two, "config", "remote.evil.url", f"ext::touch {mark}")
    git(two, "config", "protocol.ext.allow", "always")
    shell("--library", str(two), "sync", "evil")
    assert not mark.exists()


def test_a_copy_counts_in_numbers_of_its_own(shell: Shell, tmp_path: Path) -> None:
    """A copied folder, its machine state too, gives no number that the first one gives."""
    shell("init")
    say(shell, shell.library, "I live in Rome.")
    other = Path(shutil.copytree(shell.library, tmp_path / "other"))
    for root in (shell.library, other):
        say(shell, root, "I adopted a cat named Miso.")
    ours, theirs = (State.of(root).said.keys() for root in (shell.library, other))
    assert len(ours & theirs) == 1 and len(ours | theirs) == 3


def test_a_copied_turn_is_named_and_left_to_the_person(shell: Shell) -> None:
    """Of an evidence file that somebody copied `doctor` names the doubled lines, and changes none."""
    shell("init")
    root = shell.library
    say(shell, root, "I live in Rome.")
    (source,) = root.glob("evidence/*.md")
    (root / "evidence/z.md").write_text(source.read_text().replace(source.stem, "z"))
    say(shell, root, "I adopted a cat.")
    assert [one for one in errors(shell, root) if "stands twice" in one and "delete one of the two" in one]
    shell("doctor", "--fix")
    assert "seq=1," in (root / "evidence/z.md").read_text()
    (root / "evidence/z.md").unlink()
    assert errors(shell, root) == []
    assert State.of(root).origins[2] == {"I live in Rome."}


def test_what_came_by_a_pull_is_nobodys_edit_here(shell: Shell, pair: tuple[Path, Path]) -> None:
    """Lines that the other side moved, edited and deleted get no receipt here, and blame names theirs."""
    one, two = pair
    for root in (one, two, one):
        assert shell("--library", str(root), "sync").code == 0
    topic = next(path for path in two.glob("topics/*.md") if "live in Rome" in path.read_text())
    topic.write_text(topic.read_text().replace("in Rome.", "in Rome, near the river."))
    moved = next(path for path in two.glob("topics/*.md") if "kayak" in path.read_text())
    moved.write_text(re.sub(r"(?m)^- .*kayak.*\n", "", moved.read_text()))
    say(shell, two, "The river is high.")
    assert shell("--library", str(two), "--json", "sync").code == 0
    before = files(two)
    told = shell("--library", str(one), "--json", "sync").json
    assert told["receipts"] == [] and files(one) == before
    assert "I live in Rome, near the river." in told["came"].values()
    assert "(gone) I bought a kayak in June." in told["came"].values()
    assert not [text for text in told["came"].values() if text == "I live in Rome."]
    assert [
        fields for _, fields, text in lines(one, "topics/*.md") if "source=human" in fields and "near" in text
    ]


def test_where_git_could_not_call_the_driver_sync_merges_all_the_same(
    shell: Shell, pair: tuple[Path, Path]
) -> None:
    """A driver that fails leaves our side in the file; the other side's lines are not taken for deleted."""
    one, two = pair
    for root in pair:
        assert shell("--library", str(root), "git-setup", "--yes").code == 0
        git(root, "config", "merge.infinimem.driver", "false %O %A %B %P")
        git(root, "add", "--all")
        git(root, "commit", "-qm", "More")
    git(one, "push", "-q", "origin", "HEAD:main")
    git(two, "fetch", "-q")
    git(two, "merge", "-q", "--no-edit", "origin/main", fails=True)
    for root in (two, one, two):
        assert shell("--library", str(root), "sync").code == 0
        assert errors(shell, root) == []
        drawn = {text for texts in State.of(root).drawn.values() for text in texts}
        assert drawn == {"I live in Rome.", "I adopted a cat named Miso.", "I bought a kayak in June."}


def test_what_both_typed_is_said_by_nobody(shell: Shell, tmp_path: Path) -> None:
    """Of a fact that people edited on both sides, and a program left beside it, both are a person's own."""
    shell("init")
    root = shell.library
    say(shell, root, "The car is a blue Skoda.")
    (path,) = root.glob("topics/*.md")
    was = path.read_text()
    path.write_text(was.replace("blue", "red"))
    path.with_name(f"{path.stem}.sync-conflict-20250301-120000-ABCDEFG.md").write_text(
        was.replace("blue", "green")
    )
    assert shell("sync").code == 0
    told = re.findall(r"(?m)^- <seq=\d+,.*?source=(\w+).*> (.*)$", path.read_text())
    assert sorted(told) == [("human", "The car is a green Skoda."), ("human", "The car is a red Skoda.")]


def test_a_copy_beside_the_buffer_is_merged_before_anything_is_drawn(shell: Shell, tmp_path: Path) -> None:
    """Each side says a line; who finds the other's as a conflict copy draws it no second time."""
    shell("init")
    root = shell.library
    assert shell("add", "I live in Rome.").code == 0
    other = tmp_path / "other"
    shutil.copytree(root, other, ignore=shutil.ignore_patterns(".infinimem"))
    assert shell("add", "The gate code is 4411.").code == 0
    assert shell("--library", str(other), "add", "The garage code is 9921.").code == 0
    for path in other.glob("evidence/*.md"):
        if not (root / "evidence" / path.name).exists():
            shutil.copy(path, root / "evidence")
    shutil.copy(other / "CURRENT.md", root / "CURRENT.sync-conflict-20250301-120000-ABCDEFG.md")
    assert shell("add", "My sister lives in Oslo.").code == 0
    texts = [text for _, _, text in lines(root, "CURRENT.md")]
    assert sum("9921" in text for text in texts) == 1, texts
    assert errors(shell, root) == []


def synced(shell: Shell, *roots: Path) -> list[list[str]]:
    """Sync in this order; give the receipts of what was mended each time."""
    return [shell("--library", str(root), "--json", "sync").json["receipts"] for root in roots]


def correct(root: Path, old: str, new: str) -> None:
    for path in root.glob("topics/*.md"):
        path.write_text(path.read_text().replace(old, new))


def test_a_fact_that_one_side_deleted_is_drawn_by_no_other(shell: Shell, pair: tuple[Path, Path]) -> None:
    """The turn behind a deleted fact waits nowhere: neither where it came by a sync, nor in a new clone."""
    one, two = pair
    say(shell, one, "I owe Tom 20 euros.")
    synced(shell, one, two, one)
    for path in one.glob("topics/*.md"):
        path.write_text(re.sub(r"(?m)^- .*Tom.*\n", "", path.read_text()))
    synced(shell, one, two)
    say(shell, two, "The lake is low.")
    shutil.rmtree(one / ".infinimem")
    say(shell, one, "The sea is calm.")
    synced(shell, one, two, one)
    for root in pair:
        assert not any("Tom" in text for texts in State.of(root).drawn.values() for text in texts)
        assert errors(shell, root) == []


def test_what_was_undone_over_there_is_nobodys_edit_here(shell: Shell, pair: tuple[Path, Path]) -> None:
    """An edit that the other side takes back is back on both, once, without a receipt of its own here."""
    one, two = pair
    synced(shell, one, two, one)
    correct(one, "live in Rome.", "live in Oslo.")
    say(shell, one, "The river is high.")
    synced(shell, one, two)
    stamp = next(
        path.stem for path in sorted(two.glob("journal/*-stamp-*.md")) if "edited" in path.read_text()
    )
    assert shell("--library", str(two), "undo", stamp).code == 0
    assert synced(shell, two, one, two, one) == [[], [], [], []]
    for root in pair:
        ((fields, text),) = ((f, t) for _, f, t in lines(root, "topics/*.md") if "live in" in t)
        assert (text, "source=user" in fields) == ("I live in Rome.", True)
    assert files(one) == files(two)


def test_what_both_edited_is_settled_once(shell: Shell, pair: tuple[Path, Path]) -> None:
    """Who merges gives the second version a number; the other side takes that over and writes no receipt."""
    one, two = pair
    synced(shell, one, two, one)
    correct(one, "live in Rome.", "live in Oslo.")
    correct(two, "live in Rome.", "live in Bath.")
    synced(shell, one, two)
    assert synced(shell, one, two, one) == [[], [], []]
    assert files(one) == files(two)
    texts = [text for _, fields, text in lines(one, "topics/*.md") if "live in" in text and "human" in fields]
    assert sorted(texts) == ["I live in Bath.", "I live in Oslo."]


def test_a_topic_that_was_renamed_over_there_is_moved_by_nobody(
    shell: Shell, pair: tuple[Path, Path]
) -> None:
    one, two = pair
    synced(shell, one, two, one)
    (topic,) = (path.stem for path in one.glob("topics/*.md") if "live in Rome" in path.read_text())
    assert shell("--library", str(one), "rename", f"topics/{topic}", "homes").code == 0
    assert synced(shell, one, two, one) == [[], [], []]
    assert files(one) == files(two)
    assert (two / "topics/homes.md").exists()


def test_what_was_moved_here_and_edited_there_is_settled_once(shell: Shell, pair: tuple[Path, Path]) -> None:
    """It stands as edited; the side that had moved it takes that over, and writes no receipt."""
    one, two = pair
    synced(shell, one, two, one)
    (topic,) = (path for path in one.glob("topics/*.md") if "live in Rome" in path.read_text())
    (line,) = re.findall(r"(?m)^- .*live in Rome.*\n", topic.read_text())
    topic.write_text(topic.read_text().replace(line, ""))
    (one / "topics/homes.md").write_text(f"# Homes\n\n{line}")
    correct(two, "live in Rome.", "live in Bath.")
    synced(shell, one, two)
    assert synced(shell, one, two, one) == [[], [], []]
    assert files(one) == files(two)
    assert [text for _, _, text in lines(one, "topics/*.md") if "live in" in text] == ["I live in Bath."]
