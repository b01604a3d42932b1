"""What one more turn costs a library that holds many, in time of the processor: waiting for the disk is none.

    python benchmarks/turns.py [--turns 1000,20000,100000] [--strategy NAME] [--times N] [--profile]

Libraries are made as files: sessions of 25 turns; for infini two entries to three turns and topics of 150
lines, for allmem a unit a turn, for gam a topic to five turns, for recmem nothing but the turns, none of
which recurs, for xmemory an episode a session, a fact to two turns and themes of four facts. Then, in one
process with the offline rules, `record` and `observe` of one short turn are measured in turn: the median of
N, its syncs counted. "opened" is the first observe, which reads the library.
The same sizes give the same bytes.

    python benchmarks/turns.py --imports 10000,20000,40000

What it takes to observe so many turns at once and to sort what the rules draw from them, in seconds of the
processor and on the clock, syncs included; talk of two people about forty things.

    python benchmarks/turns.py --searched 50000 [--strategy NAME]

The first search in such a library, which builds the index: seconds of the processor, threads of tantivy
included, and on the clock; then `retrieve` of a question, which asks no model: the median of ten, in
milliseconds of the processor.

    python benchmarks/turns.py --together 8

So many processes record turns into one library, each a session, a few seconds long, or observe them with the
offline rules; beside them, in turn, as many append a line and sync it under a bare lock. Turns a second, and
that each turn stands there once.
"""

from __future__ import annotations

import argparse
import cProfile
import fcntl
import gc
import multiprocessing
import os
import pstats
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.synchronize import Barrier
from pathlib import Path
from resource import RUSAGE_SELF, getrusage

from infinimem import Memory, Turn, open_memory
from infinimem.cli.app import SELDOM

SESSION = 25
"""Turns of a session."""
TOPIC = 150
"""Lines of a topic."""
_STRATEGIES = ("infini", "allmem", "recmem", "xmemory", "gam")
_PEOPLE = ("Nora", "Tomas")
_WORDS = (
    "amber basil cedar copper delta ember fjord grove heron indigo jasper kelp lotus maple nectar olive "
    "pearl quartz raven sage tulip umber violet willow yarrow garden kitchen ladder market novel piano"
).split()


def make(root: Path, turns: int, strategy: str) -> None:
    """A library of so many turns, all of them drawn from."""
    chance = random.Random(turns)
    open_memory(root, create=True, strategy=strategy)
    settings = root / "infinimem.toml"
    settings.write_text(settings.read_text().replace("# theta_sim = 0.0", "theta_sim = 2.0"))
    seq, lines, topics = 0, [], 0
    for session in range(turns // SESSION):
        day = f"{2000 + session // 336:04d}-{session // 28 % 12 + 1:02d}-{session % 28 + 1:02d}"
        said = []
        for number in range(SESSION):
            seq += 1
            who, text = (
                _PEOPLE[number % 2],
                f"I keep the {' '.join(chance.sample(_WORDS, 6))} on shelf {seq}.",
            )
            signed = f"time={day}T08:{number:02d}:00,source=user"
            said.append(f"- <seq={seq},{signed},speaker={who},turn=s{session}.{number}> {text}")
            if strategy == "allmem":
                _unit(root, seq, f"{day}-s{session}", f"{day}T08:{number:02d}:00", f"{who}: {text}")
            elif strategy == "gam" and number % 5 == 4:
                _topic(root, seq, f"{day}-s{session}", f"{day}T08:{number:02d}:00", f"{who}: {text}")
            elif number % 3 and strategy == "infini":
                lines.append(f"- <seq={turns + seq},{signed},origin={seq},speaker={who}> {text}")
        if strategy == "xmemory":
            _hierarchy(root, seq - SESSION + 1, f"{day}-s{session}", f"{day}T08:00:00", said)
        name = f"evidence/{day}-s{session}"
        head = [f"id: {name}", "kind: evidence", f"session: s{session}", f"date: {day}T08:00:00"]
        _write(root, name, [*head, "participants: [Nora, Tomas]"], said)
        while len(lines) >= TOPIC or (session == turns // SESSION - 1 and lines):
            some, lines = lines[:TOPIC], lines[TOPIC:]
            topics += 1
            summary = f"summary: {_WORDS[topics % len(_WORDS)]} and shelves"
            _write(
                root,
                f"topics/shelf-{topics}",
                [f"id: topics/shelf-{topics}", summary, "token_count: 4000"],
                some,
            )
    if strategy != "allmem":
        lists = "drawn" if strategy == "infini" else f"drawn-{strategy}"
        (root / ".infinimem" / lists).write_text(f"1-{turns};\n")


def _unit(root: Path, seq: int, session: str, time: str, text: str) -> None:
    name, words = f"allmem/units/u-{seq:06d}", ", ".join(text.split()[4:8])
    header = [f"id: {name}", "kind: unit", f'summary: "{text}"', f"keywords: [{words}]", f"time: {time}"]
    _write(root, name, [*header, f"session: {session}", "evidence:", f"  - {{ref: {seq}}}"], [f"> {text}"])


def _hierarchy(root: Path, first: int, session: str, time: str, said: list[str]) -> None:
    texts = [line.partition("> ")[2] for line in said]
    common = [f"time: {time}", f"session: {session}", "evidence:"]
    name = f"xmemory/episodes/xe-{first:06d}"
    header = [f"id: {name}", "kind: episode", f'summary: "Of shelf {first}"', "keywords: []", *common]
    _write(root, name, [*header, f"  - {{ref: {first}-{first + SESSION - 1}}}"], [" ".join(texts[:6]), ""])
    facts = [f"xf-{first:06d}-{at // 2 + 1:02d}" for at in range(0, SESSION, 2)]
    for fact, at in zip(facts, range(0, SESSION, 2), strict=True):
        name = f"xmemory/facts/{fact}"
        header = [f"id: {name}", "kind: fact", f'summary: "{texts[at]}"', "keywords: []", *common]
        links = ["links:", f"  - {{type: source, to: xe-{first:06d}}}"]
        _write(root, name, [*header, f"  - {{ref: {first + at}}}", *links], [f"> {texts[at]}"])
    for at in range(0, len(facts), 4):
        name = f"xmemory/themes/xt-{first:06d}" + (f"-{at // 4:02d}" if at else "")
        header = [f"id: {name}", "kind: theme", f'summary: "{texts[2 * at]}"', "keywords: []", "evidence:"]
        _write(root, name, [*header, *(f"  - {{record: {fact}}}" for fact in facts[at : at + 4])], [])


def _topic(root: Path, last: int, session: str, time: str, text: str) -> None:
    name = f"gam/topics/gt-{last - 4:06d}"
    header = [f"id: {name}", "kind: topic", f'summary: "{text}"', "keywords: []", f"time: {time}"]
    evidence = ["evidence:", f"  - {{ref: {last - 4}-{last}}}"]
    links = [f"  - {{type: semantic, to: gt-{last - 9:06d}, w: 0.600}}"] if last > 5 else []
    _write(
        root,
        name,
        [*header, f"session: {session}", *evidence, *(links and ["links:", *links])],
        [f"> {text}"],
    )


def _write(root: Path, name: str, header: list[str], lines: list[str]) -> None:
    path = root / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["---", *header, "---", *lines, ""]))


def talk(turns: int) -> Iterator[Turn]:
    """A conversation of so many turns, each session about three things."""
    chance = random.Random(turns)
    things = [chance.sample(_WORDS, 3) for _ in range(40)]
    for number in range(turns):
        session, at = divmod(number, SESSION)
        did, place = (
            chance.choice(("bought", "saw", "moved", "sold")),
            chance.choice(("Lisbon", "Porto", "Faro")),
        )
        what = f"{chance.choice(things[session % 40])} {chance.choice(_WORDS)}"
        day = f"{2000 + session // 336:04d}-{session // 28 % 12 + 1:02d}-{session % 28 + 1:02d}"
        text = f"I {did} the {what} in {place}, number {number}."
        yield Turn(text, session=f"s{session}", speaker=_PEOPLE[number % 2], time=f"{day}T08:{at:02d}:00")


def imported(sizes: Iterable[int]) -> None:
    """Print a row a size; garbage is collected as seldom as by the command line."""
    gc.set_threshold(SELDOM)
    print("| turns | processor s | clock s | topics | peak MB |\n" + "| ---: " * 5 + "|")
    for size in sizes:
        with tempfile.TemporaryDirectory() as home:
            memory = open_memory(Path(home) / "library", model="offline", create=True)
            spent, began = time.process_time(), time.perf_counter()
            memory.observe(talk(size))
            memory.consolidate()
            spent, began = time.process_time() - spent, time.perf_counter() - began
            topics = len(memory.view.below("topics/"))
            peak = getrusage(RUSAGE_SELF).ru_maxrss / 1024
            print(f"| {size:,} | {spent:.1f} | {began:.1f} | {topics} | {peak:.0f} |", flush=True)


def searched(sizes: Iterable[int], strategy: str) -> None:
    """Print a row a size."""
    print("| turns | processor s | clock s | question ms | peak MB |\n" + "| ---: " * 5 + "|")
    for size in sizes:
        with tempfile.TemporaryDirectory() as home:
            os.environ["XDG_CACHE_HOME"] = home
            make(Path(home) / "library", size, strategy)
            memory = open_memory(Path(home) / "library", model="offline")
            spent, began = time.process_time(), time.perf_counter()
            memory.tools.search(query="Where does Nora keep the violet lamp?")
            spent, began = time.process_time() - spent, time.perf_counter() - began
            peak = getrusage(RUSAGE_SELF).ru_maxrss / 1024
            memory.retrieve("Where does Tomas keep the heron?")
            times = []
            for word in _WORDS[:10]:
                began_at = time.process_time()
                memory.retrieve(f"Where does Nora keep the {word} lamp?")
                times.append((time.process_time() - began_at) * 1000)
            asked = statistics.median(times)
            print(f"| {size:,} | {spent:.1f} | {began:.1f} | {asked:.1f} | {peak:.0f} |", flush=True)


ROUND = 3.0
"""Seconds that processes write side by side."""


def _writes(root: Path, own: str, kind: str) -> Callable[[int], object]:
    memory = open_memory(root, model="offline")
    write = memory.observe if kind == "observe" else memory.record
    write([Turn("Hello.", session=own, speaker="Nora")])
    return lambda number: write([Turn(f"Lamp {number} is lit in {own}.", session=own, speaker="Nora")])


def _appends(root: Path, own: str) -> Callable[[int], object]:
    file, lock = (root / own).open("ab", buffering=0), (root / "lock").open("wb")

    def append(number: int) -> None:
        fcntl.flock(lock, fcntl.LOCK_EX)
        file.write(f"- <seq={number},source=user,speaker=Nora> Lamp {number} is lit.\n".encode())
        os.fsync(file.fileno())
        fcntl.flock(lock, fcntl.LOCK_UN)

    return append


def _worker(root: Path, own: str, begin: Barrier, kind: str, counts: multiprocessing.Queue[int]) -> None:
    act = _appends(root, own) if kind == "append" else _writes(root, own, kind)
    begin.wait()
    until, number = time.perf_counter() + ROUND, 0
    while time.perf_counter() < until:
        act(number)
        number += 1
    counts.put(number)


def together(processes: int) -> None:
    """Print turns a second of each kind, and the share of what is recorded, for three rounds."""
    print("| appended under a bare lock, a second | recorded | share | observed |\n" + "| ---: " * 4 + "|")
    fork = multiprocessing.get_context("fork")
    for _ in range(3):
        rates = {}
        for kind in ("append", "record", "observe"):
            with tempfile.TemporaryDirectory() as home:
                root = Path(home) / "library"
                memory = open_memory(root, model="offline", create=True)
                begin, counts = fork.Barrier(processes), fork.Queue()
                told = [(root, f"s{number}", begin, kind, counts) for number in range(processes)]
                workers = [fork.Process(target=_worker, args=args) for args in told]
                for worker in workers:
                    worker.start()
                total = sum(counts.get() for _ in workers)
                for worker in workers:
                    worker.join()
                if kind != "append":
                    found = [place.seq for place in memory.view.entries("evidence")]
                    assert len(found) == len(set(found)) == total + processes
                rates[kind] = total / ROUND
        share = rates["record"] / rates["append"]
        print(f"| {rates['append']:.0f} | {rates['record']:.0f} | {share:.2f} | {rates['observe']:.0f} |")


class Syncs:
    """Counts the syncs of this process."""

    def __init__(self) -> None:
        self.count = 0
        self._fsync = os.fsync
        os.fsync = self._counted

    def _counted(self, descriptor: int) -> None:
        self._fsync(descriptor)
        self.count += 1


def measured(act: Callable[[], object], syncs: Syncs) -> tuple[float, int]:
    """Milliseconds of the processor, and how many syncs there were."""
    count, began = syncs.count, time.process_time()
    act()
    return (time.process_time() - began) * 1000, syncs.count - count


def measure(memory: Memory, times: int, syncs: Syncs) -> dict[str, list[tuple[float, int]]]:
    """Turns of a new session, one recorded, then one observed."""
    found: dict[str, list[tuple[float, int]]] = {"opened": [], "record": [], "observe": []}
    for number in range(times + 1):

        def turn(kind: str, number: int = number) -> Turn:
            text = f"My {_WORDS[number % len(_WORDS)]} lamp number {number} went to the {kind} shelf."
            return Turn(
                text,
                session="new",
                speaker="Nora",
                time=f"2030-01-01T08:{number // 60:02d}:{number % 60:02d}",
            )

        if number:
            found["record"].append(measured(lambda: memory.record([turn("oak")]), syncs))
        found["observe" if number else "opened"].append(
            measured(lambda: memory.observe([turn("ash")]), syncs)
        )
    return found


def main() -> None:
    """Print a row a size."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", default="1000,20000,100000")
    parser.add_argument("--strategy", choices=_STRATEGIES, default="infini")
    parser.add_argument("--times", type=int, default=30)
    parser.add_argument("--profile", action="store_true", help="say where the time of the largest goes")
    parser.add_argument("--imports", metavar="SIZES", help="measure imports of so many turns instead")
    parser.add_argument("--searched", metavar="SIZES", help="measure first searches instead")
    parser.add_argument("--together", type=int, metavar="N", help="let so many processes write instead")
    options = parser.parse_args()
    if options.together:
        together(options.together)
        return
    if options.searched:
        searched(map(int, options.searched.split(",")), options.strategy)
        return
    if options.imports:
        imported(map(int, options.imports.split(",")))
        return
    syncs = Syncs()
    print("| turns | opened s | record ms | syncs | observe ms | syncs | peak MB |\n" + "| ---: " * 7 + "|")
    sizes = [int(size) for size in options.turns.split(",")]
    for size in sizes:
        with tempfile.TemporaryDirectory() as home:
            root = Path(home) / "library"
            make(root, size, options.strategy)
            os.sync()  # or the disk is still writing all this while one more turn is measured
            memory = open_memory(root, model="offline")
            found = measure(memory, options.times, syncs)
            cells = [f"{size:,}", f"{found['opened'][0][0] / 1000:.2f}"]
            for act in ("record", "observe"):
                cells += [f"{statistics.median(ms for ms, _ in found[act]):.2f}"]
                cells += [f"{statistics.median(count for _, count in found[act]):.0f}"]
            print(
                "|", " | ".join([*cells, f"{getrusage(RUSAGE_SELF).ru_maxrss / 1024:.0f}"]), "|", flush=True
            )
            if options.profile and size == sizes[-1]:
                with cProfile.Profile() as profile:
                    measure(memory, options.times, syncs)
                pstats.Stats(profile).sort_stats("tottime").print_stats(35)


if __name__ == "__main__":
    main()
