"""The project's own methods: a library made from a history, read in one way or another.

Methods that differ only in how they read share a library: it is made once, and what that cost is told
of each of them.
"""

from __future__ import annotations

import shutil
import threading
import time
from bisect import bisect
from collections import defaultdict
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from infinimem import tokens
from infinimem.errors import UsageError
from infinimem.evaluation.datasets.notes import first_line
from infinimem.evaluation.methods.baselines import Baseline
from infinimem.evaluation.methods.means import ALL, Heard, Means, drawn, found_of, now_of
from infinimem.evaluation.methods.spec import Spec
from infinimem.evaluation.model import Case, Drawn, Found, Ingested, Method, Question
from infinimem.grounding.when import day_of, mentions
from infinimem.memory import Memory, open_memory
from infinimem.model import CURRENT, Entry, Evidence
from infinimem.store.spec import ARCHIVE, TOPICS
from infinimem.strategies.readers.pipeline import search
from infinimem.user_folders import delete_cache

_SETTINGS = "infinimem.toml"
_LIMIT = 50
"""Sections; the tool `search` gives no more."""


def method(spec: Spec, means: Means, making: Making) -> Method:
    if spec.way is None:
        return Baseline(spec, means)
    kind = NotesSearch if spec.way.ranked_by == "search" else LibraryMethod
    return kind(spec, means, making)


class LibraryMethod:
    """A reader over a library (evaluation/model.py: Method)."""

    def __init__(self, spec: Spec, means: Means, making: Making) -> None:
        assert spec.way is not None
        self._way = spec.way
        self._spec = spec
        self._means = means
        self._making = making

    def ingest(self, case: Case) -> Ingested:
        made = self._making.make(self._spec, case)
        self._case = case
        self._memory = self._making.open(self._spec, case)
        self._turn_of = {
            place.entry.seq: place.entry.fields["turn"]
            for place in self._memory.view.entries("evidence")
            if "turn" in place.entry.fields
        }
        written = written_of(self._memory, case) if self._spec.draws else {}
        return replace(made, method=self._spec.text, written=written)

    def retrieve(self, question: Question) -> Drawn:
        evidence = self._read(question, self._way.ranked_by, ALL)
        return Drawn(found_of(evidence.items, self._turn_of), steps=asdict(evidence)["trace"])

    def answer(self, question: Question, budget: int) -> Drawn:
        evidence = self._read(question, self._way.answered_by, budget)
        now = now_of(self._case, question)
        more = search(self._memory.view, question.text, self._way.answered_by or "")
        heard = Heard(self._means.answerer, self._spec)
        return drawn(heard, question, now, evidence, self._turn_of, budget, more)

    def _read(self, question: Question, reader: str | None, budget: int) -> Evidence:
        if reader is None:
            return self._memory.retrieve(question.text, budget)
        return self._memory.read(question.text, reader, budget)


class NotesSearch(LibraryMethod):
    """The `search` tool over a folder of notes, as an agent calls it: nothing is recorded."""

    def ingest(self, case: Case) -> Ingested:
        """Write the notes out and index them; UsageError if the case has none."""
        if not case.notes:
            raise UsageError(f"{self._spec.name} searches a folder of notes: leave it out here")
        folder = self._making.folder(self._spec, case)
        for name, data in {**case.notes, _SETTINGS: self._spec.toml().encode()}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        self._blocks: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        for turn in case.turns:
            assert turn.speaker is not None and turn.turn is not None
            self._blocks[turn.speaker].append((first_line(turn.turn), turn.turn))
        began = time.perf_counter()
        embedder = self._means.embedders.memory(self._spec.embedder)
        self._tools = open_memory(folder, model=self._means.keeper, trust=True, embedder=embedder).tools
        self._tools.search(case.questions[0].text)  # indexes
        seconds = time.perf_counter() - began
        return Ingested(self._spec.text, case.name, seconds=seconds, turns=len(case.turns))

    def retrieve(self, question: Question) -> Drawn:
        """The hits, each as the block that its lines are from."""
        found = []
        for hit in self._tools.search(question.text, _LIMIT)["hits"]:
            blocks = self._blocks[hit["doc_id"]]
            block = blocks[bisect(blocks, hit["start_line"], key=lambda block: block[0]) - 1][1]
            found.append(Found(hit["snippet"], (block,), tokens.count(hit["snippet"])))
        return Drawn(tuple(found))

    def answer(self, question: Question, budget: int) -> Drawn:
        """As `retrieve`: the tool answers nothing."""
        return self.retrieve(question)


class Making:
    """Makes the libraries of a run, each by one thread."""

    def __init__(self, means: Means) -> None:
        self._means = means
        self._locks: dict[Path, threading.Lock] = {}
        self._made: dict[Path, Ingested] = {}

    def folder(self, spec: Spec, case: Case) -> Path:
        return self._means.work / spec.library / case.name

    def make(self, spec: Spec, case: Case) -> Ingested:
        """Make the library, unless this start of the run has; one of an earlier start is made anew, of the
        replies that were kept."""
        folder = self.folder(spec, case)
        with self._locks.setdefault(folder, threading.Lock()):
            if (made := self._made.get(folder)) is None:
                self.remove(spec, case)
                made = self._made[folder] = self._make(spec, case, folder)
        return made

    def open(self, spec: Spec, case: Case) -> Memory:
        """Open a library with all settings of a method."""
        folder = self.folder(spec, case)
        with self._locks.setdefault(folder, threading.Lock()):
            return self._open(spec, folder, building=False)

    def remove(self, spec: Spec, case: Case) -> None:
        folder = self.folder(spec, case)
        self._made.pop(folder, None)
        delete_cache(str(folder.absolute()))
        shutil.rmtree(folder, ignore_errors=True)

    def _make(self, spec: Spec, case: Case, folder: Path) -> Ingested:
        began = time.perf_counter()
        with self._means.spending.account() as spent:
            memory = self._open(spec, folder, building=True)
            if spec.draws:
                memory.observe(case.turns)
                memory.consolidate()
            else:
                memory.record(case.turns)
        return Ingested(
            spec.text,
            case.name,
            usage=dict(sorted(spent.items())),
            sizes=tuple(row.tokens for row in memory.view.catalog(folder=TOPICS)),
            disk=sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()),
            seconds=time.perf_counter() - began,
            turns=len(case.turns),
        )

    def _open(self, spec: Spec, folder: Path, building: bool) -> Memory:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _SETTINGS).write_text(spec.toml(building), encoding="utf-8")
        embedder = self._means.embedders.memory(spec.linked_by if building else spec.embedder)
        model = self._means.keeper if building else self._means.answerer
        return open_memory(folder, model=model, create=True, trust=True, embedder=embedder)


# ── what became of what was said ────────────────────────────────────────────────────────────────


def written_of(memory: Memory, case: Case) -> dict[str, Any]:
    """Counts of a library that was just made from a case; no judge is needed.

    Returns:
        gold: different turns that hold the evidence of its questions; uncited: those of them, by id, that
        nothing cites. entries: lines of CURRENT and topics that were drawn from turns; verbatim: those that
        repeat their turn's words. discarded: lines that were archived; undone: those of them that stand in
        CURRENT or a topic again. relative: entries whose words name a time by its distance from the day on
        which they were said; dated: those that have `when`; unsettled: those without it whose words can mean
        more than one.
    """
    view = memory.view
    turns = {place.seq: place.entry.fields.get("turn") for place in view.entries("evidence")}
    gold = frozenset(turn for question in case.questions for turn in question.turns)
    cited = {turns.get(seq) for seq in view.cited}
    live = [place for place in view.entries() if place.doc_id == CURRENT or place.doc_id.startswith(TOPICS)]
    moves = (row for receipt in memory.receipts() for row in receipt.rows)
    discarded = {row.seq for row in moves if row.now.startswith(ARCHIVE)}
    extracted = [place.entry for place in live if place.entry.origin]
    times = [label for entry in extracted for label in _times(entry)]
    return {
        "gold": len(gold),
        "uncited": sorted(gold - cited),
        "entries": len(extracted),
        "verbatim": sum(entry.fields.get("by") != "model" for entry in extracted),
        "discarded": len(discarded),
        "undone": sum(place.seq in discarded for place in live),
        **{label: times.count(label) for label in ("relative", "dated", "unsettled")},
    }


def _times(entry: Entry) -> list[str]:
    """What an entry counts as: nothing where its words name no day but its own, or name it whole."""
    said = day_of(entry.time)
    found = [] if said is None else mentions(entry.text, said)
    found = [one for one in found if one.spans != ((said, said),) and not set("0123456789") & set(one.words)]
    if not found:
        return []
    if "when" in entry.fields:
        return ["relative", "dated"]
    is_settled = len({one.spans for one in found}) == 1 and len(found[0].spans) == 1
    return ["relative"] if is_settled else ["relative", "unsettled"]
