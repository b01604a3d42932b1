"""A conversation of 20,000 messages, taken in and asked by the offline rules: time, memory, what is found.

    python benchmarks/long_conversation.py --data FOLDER [--messages 20000] [--questions 200] [--record]

FOLDER of the data holds beam_dev.json.xz, longmemeval_dev_oracle.json.xz and locomo_dev.json. Their
conversations are joined, one after another; where they are too few they are said again, under other names.
Questions are those of BEAM and LoCoMo that name their evidence, evenly spread, each asked of all of it with a
budget of 2,048 and of 8,192 tokens; a message that is said again counts for the one before it. Taking in and
asking are a process each.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import replace
from pathlib import Path
from resource import RUSAGE_SELF, getrusage

import numpy as np

from infinimem import Turn, open_memory
from infinimem.evaluation.datasets import benchmark
from infinimem.evaluation.metrics import within
from infinimem.evaluation.model import Case, Question

FILES = {
    "beam": "beam_dev.json.xz",
    "longmemeval": "longmemeval_dev_oracle.json.xz",
    "locomo": "locomo_dev.json",
}
BUDGETS = (2048, 8192)
SLICE = 500
"""Messages that are taken in at once, as an import does."""
AGAIN = "~"
"""Before it stands the name of a message that is said again, behind it how often."""


def cases(data: Path) -> list[Case]:
    """The conversations of the data sets, under names that are unique."""
    return [case for name, file in FILES.items() for case in benchmark(name).cases(data / file)]


def messages(found: Sequence[Case], count: int) -> Iterator[Turn]:
    """So many messages; sessions and turns are named with their conversation's name."""
    whole = (
        replace(turn, session=named(case, turn.session, again), turn=named(case, turn.turn, again))
        for again in itertools.count()
        for case in found
        for turn in case.turns
    )
    return itertools.islice(whole, count)


def named(case: Case, name: str | None, again: int = 0) -> str:
    """A name that no other conversation has."""
    return f"{case.name}.{name}{AGAIN}{again}" if again else f"{case.name}.{name}"


def asked(found: Sequence[Case], said: Set[str], count: int) -> list[tuple[Question, frozenset[str]]]:
    """Questions about what was said, evenly spread, each with the names of its evidence."""
    named_in = (
        (question, frozenset(named(case, turn) for turn in question.turns))
        for case in found
        for question in case.questions
        if question.scored and (question.rubric or question.category == "single-hop")
    )
    known = [(question, gold) for question, gold in named_in if gold <= said]
    return known[:: max(1, len(known) // count)][:count]


def spent(act: Callable[[], object]) -> str:
    """Seconds on the clock, and of the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    act()
    return f"{time.perf_counter() - clock:,.0f} s, {time.process_time() - processor:,.0f} s of the processor"


def peak() -> str:
    return f"peak {getrusage(RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB"


def take_in(root: Path, data: Path, count: int, only_record: bool) -> None:
    """Make the library, and say what that took."""
    memory = open_memory(root, model="offline", create=True)
    said = list(messages(cases(data), count))
    different = sum(AGAIN not in str(turn.turn) for turn in said)
    size = sum(len(turn.text.encode()) for turn in said) / 1e6
    print(f"{count:,} messages, {different:,} of them different, {size:.1f} MB of text; {peak()}", flush=True)

    def observe() -> None:
        for at in range(0, len(said), SLICE):
            (memory.record if only_record else memory.observe)(said[at : at + SLICE])

    print(f"taken in: {spent(observe)}; {peak()}", flush=True)
    if not only_record:
        print(f"sorted: {spent(memory.consolidate)}; {peak()}", flush=True)
    files = [path for path in root.rglob("*") if path.is_file()]
    print(f"library: {len(files):,} files, {sum(path.stat().st_size for path in files) / 1e6:.1f} MB")


def ask(root: Path, data: Path, count: int) -> None:
    """Ask, and say what that took and what was found."""
    memory = open_memory(root, model="offline")
    turn_of = {
        place.entry.seq: place.entry.fields["turn"].partition(AGAIN)[0]
        for place in memory.view.entries("evidence")
        if "turn" in place.entry.fields
    }
    questions = asked(cases(data), set(turn_of.values()), count)
    print(f"opened, and a first question: {spent(lambda: memory.retrieve(questions[0][0].text))}; {peak()}")
    for budget in BUDGETS:
        taken, read = [], []
        for question, gold in questions:
            began = time.perf_counter()
            found = memory.retrieve(question.text, budget)
            taken.append(1000 * (time.perf_counter() - began))
            turns = frozenset(turn_of[seq] for item in found.items for seq in item.origin if seq in turn_of)
            read.append(within([(tuple(turns), 0)], gold, budget))
        most = np.percentile(taken, 95, method="inverted_cdf")
        print(
            f"{len(questions)} questions, {budget:,} tokens: {statistics.median(taken):.0f} ms, 95 % within "
            f"{most:.0f} ms; {100 * statistics.fmean(read):.1f} % of the evidence found; "
            f"{peak()}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--record", action="store_true", help="keep what was said, draw nothing from it")
    options = parser.parse_args()
    start = multiprocessing.get_context("spawn").Process  # what each takes is its own
    with tempfile.TemporaryDirectory() as home:
        root = Path(home) / "library"
        taking = (root, options.data, options.messages, options.record)
        for act, given in ((take_in, taking), (ask, (root, options.data, options.questions))):
            process = start(target=act, args=given)
            process.start()
            process.join()
            if process.exitcode:
                raise SystemExit(f"{act.__name__} failed; its last words stand above")


if __name__ == "__main__":
    main()
