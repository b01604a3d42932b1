"""Replies dropped from, doubled, invented, cut, wrapped or altered: refused or mended, nothing lost."""

from __future__ import annotations

import random
import re
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from fault_library import lines, problems
from fault_replies import PLANTED, Honest, Mangled, Talk, overheard

from infinimem import open_memory
from infinimem.memory import Memory
from infinimem.model import SOURCES, Entry, Plan, RejectedReply
from infinimem.store.view import View
from infinimem.strategies.infini import layout

SETTINGS = {
    "feed": ['"turn"', '"exchange"', '"chunk"'],
    "markdown_length": [200, 500, 5000],
    "plan_split_threshold": [200, 5000],
    "current_threshold": [300, 5000],
    "merge_max_tokens": [100, 300],
    "merge_frequency": [1, 2],
    "merge_trigger_min_count": [2, 50],
}
BATCHES = 3


@dataclass
class Run:
    """A library through which a conversation goes, and what is heard on the way."""

    memory: Memory
    llm: Mangled
    plans: list[Plan]
    told: dict[int, str] = field(default_factory=dict)

    @property
    def rejected(self) -> list[RejectedReply]:
        return [reply for plan in self.plans for reply in plan.rejected]

    def passed_over(self) -> set[int]:
        """Turns without an entry: in which the model, rightly or not, found nothing, or that stand for
        themselves."""
        return {seq for plan in self.plans for seq in (*plan.empty, *plan.refused)}


def start(root: Path, llm: Mangled, chance: random.Random) -> Run:
    shutil.rmtree(root, ignore_errors=True)
    open_memory(root, model="offline", create=True)
    values = "".join(f"{key} = {chance.choice(choices)}\n" for key, choices in SETTINGS.items())
    (root / "infinimem.toml").write_text(f"[infini]\n{values}")
    memory = open_memory(root, model=llm)
    return Run(memory, llm, overheard(memory))


def converse(run: Run, talk: Talk, root: Path) -> None:
    """A few sessions with consolidations; after each step everything must be in order."""
    for batch in range(BATCHES):
        turns = talk.turns(talk.chance.randint(2, 9), f"s{batch}")
        before = lines(run.memory.view)
        run.memory.observe(turns)
        check(run, root, before)
        before = lines(run.memory.view)
        run.memory.consolidate()
        check(run, root, before)
        assert run.memory.view.buffer.entries == ()


def check(run: Run, root: Path, before: list[tuple[int, str]]) -> None:
    """Nothing lost, nothing said twice, nothing that no one said."""
    view = run.memory.view
    assert not set(before) - set(lines(view)), "a line was lost or changed"
    assert {place.seq for place in view.uncited()} == set(run.memory.unanswered()), (
        "a turn is told of nowhere"
    )
    for scope in ("default", "archive", "evidence"):
        for place in view.entries(scope):  # type: ignore[arg-type]
            run.told.setdefault(place.seq, place.text)
    assert problems(root, run.told) == []
    for scope in ("default", "archive"):
        for place in view.entries(scope):  # type: ignore[arg-type]
            assert (wrong := invented(place.entry, view)) is None, f"{place.entry.line}: {wrong}"
    assert {place.seq for place in view.entries("evidence")} <= view.cited | run.passed_over() | set(
        run.memory.unanswered()
    )


def invented(entry: Entry, view: View) -> str | None:
    """What a line holds that its evidence does not. Its own few rules, not those of the law."""
    said = evidence_of(entry, view)
    if not said:
        return "it has no origin"
    if entry.source != min((item.source for item in said), key=SOURCES.index):
        return f"its source is {entry.source}"
    texts = [" ".join(item.text.split()) for item in said]
    if entry.fields.get("by") != "model":
        return None if any(entry.text in text for text in texts) else "it is not what was said"
    known = " ".join([*texts, *(item.fields.get("speaker", "") for item in said)]).casefold()
    for number in re.findall(r"\d+", entry.text):
        if number not in re.findall(r"\d+", known):
            return f"the number {number}"
    for word in PLANTED:
        if word in entry.text.casefold():
            return f"the word {word}"
    denied = re.compile(r"\b(?:not|no|never|nobody|nothing|none|without)\b|n't\b|n’t\b")
    if denied.search(entry.text.casefold()) and not denied.search(known):
        return "a negation"
    return None


def evidence_of(entry: Entry, view: View) -> list[Entry]:
    """The turns that a line goes back to; none if the way breaks off."""
    found: list[Entry] = []
    for seq in entry.origin:
        place = view.entry(seq)
        if place is None:
            return []
        if place.doc_id.startswith("evidence/"):
            found.append(place.entry)
        else:
            found += evidence_of(place.entry, view) or [entry]
    return found


@pytest.mark.parametrize("size", [80, pytest.param(10_000, marks=pytest.mark.soak)])
def test_mangled_replies_lose_and_invent_nothing(
    tmp_path: Path,
    size: int,
    record_property: Callable[[str, object], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(layout, "CROWDED", 3)  # of what is said here nothing gets crowded
    heard: Counter[tuple[str, str, str]] = Counter()
    seed = 0
    while sum(heard.values()) < size:
        chance = random.Random(seed)
        talk = Talk(chance)
        llm = Mangled(Honest(talk.entries), chance, share=chance.choice((0.5, 1.0)))
        run = start(tmp_path / "m", llm, chance)
        try:
            converse(run, talk, tmp_path / "m")
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        refused = {(reply.task, reply.text) for reply in run.rejected}
        for reply in llm.arrived:
            kept = (reply.task, reply.text) in refused
            same = reply.read.data == reply.meant
            assert kept or reply.read.data is not None, (seed, reply.task, reply.how, reply.text)
            if reply.how == "fence" and reply.read.failure != "EMPTY":
                assert same, (seed, reply.text)
            if reply.how != "none":
                heard[reply.task, reply.how, "refused" if kept else "as meant" if same else "other"] += 1
        seed += 1
    for key, count in sorted(heard.items()):
        record_property(" ".join(key), count)
    assert {how for _, how, _ in heard} == {"drop", "duplicate", "invent", "truncate", "fence", "alter"}
    assert {task for task, _, _ in heard} == {
        "extract", "rewrite", "plan", "compare", "layout", "merge"
    }  # fmt: skip


@pytest.mark.parametrize("size", [40, pytest.param(10_000, marks=pytest.mark.soak)])
def test_honest_replies_are_taken(
    tmp_path: Path, size: int, record_property: Callable[[str, object], None]
) -> None:
    heard = refused = seed = 0
    while heard < size:
        chance = random.Random(f"honest {seed}")
        talk = Talk(chance)
        llm = Mangled(Honest(talk.entries), chance, share=0.0)
        run = start(tmp_path / "m", llm, chance)
        converse(run, talk, tmp_path / "m")
        heard += len(llm.arrived)
        refused += len(run.rejected)
        seed += 1
        assert refused < 0.02 * max(heard, 100), (seed, run.rejected)
    record_property("replies", heard)
    record_property("refused", refused)
