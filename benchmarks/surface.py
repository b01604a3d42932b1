"""What searching the visible surface alone saves: stage 1 over it and over the full bank; whole questions.

    python benchmarks/surface.py [--units 20000] [--ratios 0.7,0.9] [--queries 300] [--embedder random]

The bank is a folder of units with links, the archived ones behind visible ones; its turns are sentences of
sample_facts.tsv. `random` gives each text a vector of 384 dimensions of its own: how long a search takes
does not hang on what vectors mean. Surface and full bank are asked in turn, with the same query and k.
Everything is written to a folder that is deleted. Source: All-Mem (arXiv 2603.19595), section 4.4.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from vectors import texts

from infinimem.embedders.base import Embedder
from infinimem.embedders.local import connect
from infinimem.index.vectors import vectors_of
from infinimem.llm.offline import OfflineClient
from infinimem.markdown.signature import format_entry
from infinimem.memory import Memory, open_memory
from infinimem.settings import EmbedderSettings, Settings
from infinimem.strategies.allmem.spec import SEMANTIC, TEMPORAL, UNIT, VERSION, AllmemSettings
from infinimem.strategies.allmem.spec import SPEC as ALLMEM
from infinimem.strategies.allmem.strategy import AllMem
from infinimem.strategies.records.record import Link, Record, Ref, record_id
from infinimem.strategies.records.record_store import RecordStore, VectorIndex

SESSION = 50
"""Turns of one evidence document."""
NEAR = 3
"""Semantic links of a unit."""
BUDGET = 2048
"""Tokens of the evidence of a question."""


class Drawn:
    """A vector of its own for each text, drawn by the text's checksum."""

    name, size, semantic = "drawn", 384, True

    def embed(self, given: Sequence[str], kind: str = "passage") -> NDArray[np.float32]:
        """See `Embedder.embed`."""
        seeds = (zlib.crc32(text.encode()) for text in given)
        rows = [np.random.default_rng(seed).normal(size=self.size) for seed in seeds]
        found = np.array(rows, np.float32).reshape(-1, self.size)
        return found / np.linalg.norm(found, axis=1, keepdims=True)


@dataclass(frozen=True)
class Row:
    """Milliseconds at one visible ratio, of each query.

    Args:
        surface, full: of stage 1.
        question, question_full: of a whole question from the open library.
    """

    ratio: float
    surface: Sequence[float]
    full: Sequence[float]
    question: Sequence[float]
    question_full: Sequence[float]

    def __str__(self) -> str:
        """Median and least; the least is disturbed least by others."""
        rows = (self.surface, self.full, self.question, self.question_full)
        shown = [f"{statistics.median(row):.2f} / {min(row):.2f}" for row in rows]
        shares = (of(self.surface) / of(self.full) for of in (statistics.median, min))
        shown.insert(2, " / ".join(f"{share:.2f}" for share in shares))
        return f"| {self.ratio:.3f} | {' | '.join(shown)} |"


HEAD = """\
| visible ratio | stage 1, surface, ms | full bank, ms | ratio | question, surface, ms | full bank, ms |
| ---: | ---: | ---: | ---: | ---: | ---: |"""


def library(folder: Path, count: int, ratio: float, embedder: Embedder) -> Memory:
    """A library of so many units, a share of them visible; written as files, as a person might bring it."""
    memory = open_memory(folder, model="offline", strategy="allmem", create=True, embedder=embedder)
    said = texts(count)
    for first in range(0, count, SESSION):
        lines = [
            format_entry(seq + 1, said[seq], time="2024-05-01", source="user", fields={"speaker": "Ann"})
            for seq in range(first, min(first + SESSION, count))
        ]
        (folder / "evidence").mkdir(exist_ok=True)
        path = folder / "evidence" / f"s{first // SESSION:05d}.md"
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    bank = units(said, ratio, memory)
    for name, unit in bank.records.items():
        path = folder / f"{unit.doc_id}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(bank.render(name), encoding="utf-8")
    return open_memory(folder, model="offline", embedder=embedder)


def units(said: Sequence[str], ratio: float, memory: Memory) -> RecordStore:
    """A unit for each text; those that are not visible spread evenly, each behind a visible one."""
    bank = RecordStore(memory.view)
    for at, text in enumerate(said):
        is_visible = int((at + 1) * ratio) > int(at * ratio)
        words = tuple(text.split()[:4])
        bank.put(
            Record(
                record_id("u", at + 1),
                ALLMEM,
                text,
                words,
                "2024-05-01",
                refs=(Ref(at + 1),),
                visible=is_visible,
            )
        )
    shown = sorted(bank.visible)
    pick = np.random.default_rng(1)
    for at, name in enumerate(sorted(bank.records.keys() - bank.visible)):
        bank.link(shown[at % len(shown)], Link(VERSION, name))
    for before, name in itertools.pairwise(shown):
        bank.link(name, Link(TEMPORAL, before))
        for other in pick.choice(len(shown), NEAR, replace=False):
            if shown[other] != name:
                bank.link(name, Link(SEMANTIC, shown[other], 0.7))
    return bank


def milliseconds(work: Callable[[], object]) -> float:
    """How long it takes, once."""
    began = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - began)


def measured(memory: Memory, queries: int, k: int) -> Row:
    """Ask in turn, so that what else the machine does falls on all alike."""
    settings = AllmemSettings(anchors=k)
    bank, space = RecordStore.load(memory.view), VectorIndex(vectors_of(memory.view))
    space.sync(bank)
    ways = [AllMem(OfflineClient(), Settings(own=(settings,)))]
    ways.append(AllMem(OfflineClient(), Settings(own=(replace(settings, visibility=False),))))
    asked = texts(queries, 2)
    times: list[list[float]] = [[], [], [], []]
    for way in ways:
        way.read(memory.view, asked[0], "topology", BUDGET)  # opened by now
    for question in asked:
        row = space.embed(question)
        for archived in (False, True):
            took = milliseconds(
                lambda row=row, archived=archived: space.nearest(
                    row, k, ALLMEM.record_folders if archived else (UNIT.folder,)
                )
            )
            times[archived].append(took)
        for at, way in enumerate(ways, 2):
            took = milliseconds(
                lambda way=way, question=question: way.read(memory.view, question, "topology", BUDGET)
            )
            times[at].append(took)
    return Row(len(bank.visible) / len(bank), *times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--units", type=int, default=20_000)
    parser.add_argument("--ratios", default="0.7", help="visible ratios, with commas")
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--anchors", type=int, default=AllmemSettings.anchors, help="k of stage 1")
    parser.add_argument("--embedder", default="random", help="or lexical, static, minilm")
    options = parser.parse_args()
    known = options.embedder != "random"
    embedder: Embedder = connect(options.embedder, EmbedderSettings()) if known else Drawn()
    print(
        f"{options.units:,} units, {embedder.name}, {embedder.size} dimensions, k = {options.anchors}, "
        f"median / least of {options.queries} queries\n\n{HEAD}"
    )
    with tempfile.TemporaryDirectory() as work:
        os.environ["XDG_CACHE_HOME"] = f"{work}/cache"
        for ratio in map(float, options.ratios.split(",")):
            memory = library(Path(work) / f"m{ratio}", options.units, ratio, embedder)
            print(measured(memory, options.queries, options.anchors), flush=True)


if __name__ == "__main__":
    main()
