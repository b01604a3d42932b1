"""Clones of one library that grew apart and were merged, file by file or by git: nothing is lost."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from fault_library import problems, tree
from fault_snapshot import EVIDENCE, Snapshot
from git_repository import run_git
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from infinimem.grounding.sentences import unsupported
from infinimem.model import Located, Move, NewEntry, Plan, Turn
from infinimem.operations.checks import RENUMBERED
from infinimem.operations.doctor import examine, repair
from infinimem.store.library import Library, init
from infinimem.store.lines import drawn_from
from infinimem.store.view import Applied

SAID = (
    "I moved to {} in May",
    "{} has a dog called Rex",
    "We met {} at noon",
    'The sign said "{} 14"',
    "ok then",
)
NAMES = ("Rome", "Porto", "Ann")
DRAWN = {"as said": None, "short": "Something about {}", "vague": "Something happened"}


@dataclass
class Clone:
    """A library that notes which turns its entries were drawn from, and which wait."""

    library: Library
    name: str
    numbers: count[int]
    truth: dict[str, set[str]] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)

    def say(self, said: str, name: str, role: str, day: int, how: str) -> None:
        text = f"{said.format(name)} ({self.name}{next(self.numbers)})"
        turn = Turn(text, role=role, time=f"2025-03-0{day}", session=self.name)
        (place,) = self.library.record([turn])
        if how == "pending":
            self.waiting.add(text)
        elif how == "empty":
            self.library.apply(Plan(empty=(place.seq,)))
        else:
            phrase = DRAWN[how]
            drawn = f"{phrase.format(name)} ({self.name})" if phrase and name in text else phrase or text
            add = NewEntry(drawn, (place.seq,), by="model" if phrase else None)
            assert isinstance(self.library.apply(Plan(adds=(add,))), Applied)
            if drawn == text or name in drawn:
                self.truth.setdefault(drawn, set()).add(text)

    def sort(self, topic: str) -> None:
        moves = tuple(Move(place.seq, f"topics/{topic}") for place in self.library.view().buffer.entries)
        if moves:
            assert isinstance(self.library.apply(Plan("consolidate", moves=moves)), Applied)

    def type(self, text: str) -> None:
        with (self.library.root / "CURRENT.md").open("a") as file:
            file.write(f"- {text}\n")
        self.library.adopt_edits()


Step = Callable[[Clone], None]
HOW = st.sampled_from([*DRAWN, *DRAWN, "pending", "empty"])
STEP: st.SearchStrategy[Step] = st.one_of(
    st.builds(
        lambda *told: lambda clone: clone.say(*told),
        st.sampled_from(SAID),
        st.sampled_from(NAMES),
        st.sampled_from(["user", "assistant"]),
        st.integers(1, 3),
        HOW,
    ),
    st.builds(lambda topic: lambda clone: clone.sort(topic), st.sampled_from(["one", "two"])),
    st.builds(lambda text: lambda clone: clone.type(text), st.sampled_from(["typed", "typed too"])),
)


def union(base: dict[str, bytes], ours: Path, theirs: Path) -> None:
    """Merge into `ours` what `theirs` has changed, as git does with `merge=union`."""
    for path, data in tree(theirs).items():
        mine, old = ours / path, base.get(path, b"")
        if path.startswith("journal/") and mine.exists() and path not in base:
            mine = mine.with_name(f"{mine.stem}-{theirs.name}.md")
        if not mine.exists() or mine.read_bytes() == old:
            mine.parent.mkdir(exist_ok=True)
            mine.write_bytes(data)
        elif data != old:
            had, there = Counter(old.split(b"\n")), Counter(mine.read_bytes().split(b"\n"))
            now = Counter(data.split(b"\n"))
            gone, come = had - now, now - had - there
            left = [line for line in mine.read_bytes().split(b"\n") if not gone[line]]
            new = [line for line in data.split(b"\n") if come[line] and line.startswith(b"- <")]
            mine.write_bytes(b"\n".join([*left[:-1], *new, b""]))
    for path in base.keys() - tree(theirs).keys():
        if (ours / path).exists() and (ours / path).read_bytes() == base[path]:
            (ours / path).unlink()


def grown(folder: Path, name: str, origin: Path, steps: list[Step]) -> Clone:
    shutil.copytree(origin, folder / name, ignore=shutil.ignore_patterns(".infinimem"))
    library = Library(folder / name, clock=lambda: datetime(2025, 3, 3, 12, tzinfo=UTC))
    clone = Clone(library, name, count(1))
    for step in steps:
        step(clone)
    return clone


def check(merged: Library, clones: list[Clone], before: Snapshot) -> None:
    """All that clones held is there, under seqs of its own; entries lead to what they were drawn from."""
    after = Snapshot.of(merged.root)
    assert after.texts == before.texts
    assert after.doubled == set()
    assert problems(merged.root, {}) == []
    assert merged.adopt_edits() is None
    said = {place.text for place in after.places if place.doc_id.startswith(EVIDENCE)}
    origins: dict[str, list[set[str]]] = {}
    for place in after.places:
        if not place.doc_id.startswith(EVIDENCE) and (cited := drawn_from(place.entry)):
            texts = [after.by_seq[seq][0].text for seq in cited]
            assert not unsupported(place.text.partition(" (")[0], texts)
            origins.setdefault(place.text, []).append(set(texts))
    for clone in clones:
        for text, true in clone.truth.items():
            assert true <= set().union(*origins[text]), (text, true, origins[text])
        assert clone.waiting <= said


def run(steps: list[list[Step]], lost: bool) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        first = Clone(init(folder / "origin"), "origin", count(1))
        for how in ("as said", "short", "empty"):
            first.say(SAID[0], "Rome", "user", 1, how)
        base = tree(first.library.root)
        clones = [grown(folder, f"c{n}", first.library.root, list(mine)) for n, mine in enumerate(steps)]
        merged = clones[0].library
        for other in clones[1:]:
            union(base, merged.root, other.library.root)
        if lost:
            shutil.rmtree(merged.root / ".infinimem", ignore_errors=True)
            merged = Library(merged.root)
        before = Snapshot.of(merged.root)
        for clone in clones:
            assert not Snapshot.of(clone.library.root).texts.keys() - before.texts.keys()
        merged.adopt_edits()
        check(merged, clones, before)


def test_an_entry_that_may_come_from_either_turn_cites_both() -> None:
    told = ("I like Rome", "Rome again")
    steps: list[list[Step]] = [
        [lambda clone, text=text: clone.say(text, "Rome", "user", 1, "short")]  # type: ignore[misc]
        for text in told
    ]
    run(steps, lost=False)
    run(steps, lost=True)


STEPS = st.lists(st.lists(STEP, max_size=7), min_size=2, max_size=3)
QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]


@pytest.mark.parametrize("examples", [6, pytest.param(2000, marks=pytest.mark.soak)])
def test_whatever_clones_did_nothing_is_lost_by_a_merge(examples: int) -> None:
    @settings(max_examples=examples, deadline=None, suppress_health_check=QUIET)
    @given(steps=STEPS, lost=st.booleans())
    def merged(steps: list[list[Step]], lost: bool) -> None:
        run(steps, lost)

    merged()


needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


class Repository:
    """A library under git, whatever the machine's own configuration says."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def git(self, *command: str, fails: bool = False) -> str:
        identity = {
            f"GIT_{who}_{what}": value
            for who in ("AUTHOR", "COMMITTER")
            for what, value in {
                "NAME": "Ann",
                "EMAIL": "ann@example.org",
                "DATE": "2025-03-03T12:00:00Z",
            }.items()
        }
        return run_git(self.root, "-c", "init.defaultBranch=main", *command, fails=fails, env=identity)

    def save(self, message: str) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)

    def clone(self, name: str) -> Repository:
        self.git("clone", "--quiet", ".", f"../{name}")
        return Repository(self.root.parent / name)

    def merge(self, other: Repository, *, conflicts: bool = False) -> None:
        self.git("fetch", "--quiet", str(other.root), "main")
        self.git("merge", "--quiet", "--no-edit", "FETCH_HEAD", fails=conflicts)

    @property
    def library(self) -> Library:
        return Library(self.root)

    @property
    def now(self) -> Snapshot:
        return Snapshot.of(self.root)


def say_and_draw(library: Library, session: str, *texts: str) -> list[Located]:
    """Record turns and draw an entry from each; the entries."""
    told = library.record([Turn(text, session=session, time="2025-03-01") for text in texts])
    outcome = library.apply(Plan(adds=tuple(NewEntry(place.text, (place.seq,)) for place in told)))
    assert isinstance(outcome, Applied)
    return list(outcome.added)


def sort(library: Library, topic: str, *entries: Located) -> None:
    moves = tuple(Move(entry.seq, f"topics/{topic}", "Things") for entry in entries)
    assert isinstance(library.apply(Plan("consolidate", moves=moves)), Applied)


@pytest.fixture
def origin(tmp_path: Path) -> Repository:
    root = tmp_path / "origin"
    library = init(root)
    sort(library, "home", say_and_draw(library, "s0", "Lives in Rome")[0])
    say_and_draw(library, "s0", "Likes tea")
    (root / ".gitattributes").write_text("CURRENT.md merge=union\n")
    repository = Repository(root)
    repository.git("init", "--quiet")
    repository.save("Begin")
    return repository


def errors(repository: Repository) -> list[str]:
    return [item.what for item in examine(repository.library) if item.level == "error"]


def grown_apart(origin: Repository) -> tuple[Repository, Repository]:
    """Clones where both said things, under the same seqs; the right one also sorted them."""
    left, right = origin.clone("left"), origin.clone("right")
    say_and_draw(left.library, "s1", "Rita visits on 14 June", "Rita has two children")
    entries = say_and_draw(right.library, "s2", "Allergic to peanuts", "Runs on Sundays", "Grows tomatoes")
    sort(right.library, "health", *entries[:2])
    left.save("Left")
    right.save("Right")
    return left, right


def nothing_lost(left: Repository, right: Repository) -> None:
    """After a merge into `left`: all that either held is there, and every line has a seq of its own."""
    merged = left.now
    assert not merged.texts - left.now.texts
    left.library.adopt_edits()
    after = left.now
    assert after.texts == merged.texts
    assert after.doubled == set()
    assert bare(after) == bare(merged)
    assert left.library.adopt_edits() is None


def bare(snapshot: Snapshot) -> dict[str, bytes]:
    """The evidence, but for seqs."""
    said = snapshot.part(EVIDENCE)
    return {path: re.sub(rb"(?m)^- <seq=\d+|,was=[^,>]*", b"", data) for path, data in said.items()}


@needs_git
def test_a_conflict_that_nobody_settled_yet_loses_nothing(origin: Repository) -> None:
    (origin.root / ".gitattributes").unlink()
    origin.save("Merge by hand")
    left, right = grown_apart(origin)
    ours, theirs = left.now, right.now
    left.merge(right, conflicts=True)
    assert any("git conflict marker" in error for error in errors(left))
    assert left.now.texts == ours.texts | theirs.texts
    added = say_and_draw(left.library, "s3", "Said amid a conflict")
    nothing_lost(left, right)
    kept = [
        line
        for line in (left.root / "CURRENT.md").read_bytes().split(b"\n")
        if not line.startswith((b"<<<<<<<", b"=======", b">>>>>>>"))
    ]
    (left.root / "CURRENT.md").write_bytes(b"\n".join(kept))
    nothing_lost(left, right)
    assert left.library.view().entry(added[0].seq) is not None
    left.save("Merged")
    assert not any("conflict" in error for error in errors(left))


@needs_git
def test_turns_that_nobody_cites_get_seqs_of_their_own(origin: Repository) -> None:
    left, right = origin.clone("left"), origin.clone("right")
    for clone, session in ((left, "s1"), (right, "s2")):
        (place,) = clone.library.record([Turn(f"Nothing to keep in {session}", session=session)])
        clone.library.apply(Plan(empty=(place.seq,)))
        clone.save("Grown")
    left.merge(right)
    finding = next(item for item in examine(left.library) if "stands twice" in item.what)
    assert (finding.level, finding.fix) == ("error", RENUMBERED)
    before = left.now
    assert finding in repair(left.library)
    after = left.now
    assert bare(after) == bare(before)
    assert {path for path in before.files if before.files[path] != after.files[path]} == {
        next(path for path in before.files if path.endswith("-s2.md"))
    }
    (turn,) = (place for place in after.places if "s2" in place.text)
    (first,) = (place for place in after.places if "s1" in place.text)
    assert (turn.entry.fields["was"], turn.entry.origin) == (str(first.seq), ())
    assert left.library.view().uncited() == ()  # as the one under the old number
