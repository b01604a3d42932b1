"""Clones of one library that grew apart and were merged file by file: whatever they did, nothing is lost."""

from __future__ import annotations

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
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from infinimem.grounding.claims import unsupported
from infinimem.model import Move, NewEntry, Plan, Turn
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


@pytest.mark.parametrize("examples", [10, pytest.param(2000, marks=pytest.mark.soak)])
def test_whatever_clones_did_nothing_is_lost_by_a_merge(examples: int) -> None:
    @settings(max_examples=examples, deadline=None, suppress_health_check=QUIET)
    @given(steps=STEPS, lost=st.booleans())
    def merged(steps: list[list[Step]], lost: bool) -> None:
        run(steps, lost)

    merged()
