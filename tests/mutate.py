"""Puts faults into the program, one at a time, and tells which of them no test notices.

    python tests/mutate.py                              the fixed list; mutation.py says how a row is written
    python tests/mutate.py --group law --jobs 1
    python tests/mutate.py --id grounding/annual-ann
    python tests/mutate.py --sample 30 --seed 7 law grounding store/state strategies
                                                        faults made from the syntax of these modules

Each job works in a copy of the checkout, which the programs that tests start see as well; the checkout stays
as it is. Tests that take five times their time, and half a minute more, have noticed. The exit status is 1
where a fault of the list was not noticed.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from mutation import CHECKOUT, Mutant, listed, problem, systematic

MEMORY = 8 * 1024 * 1024
"""KiB of address space that a run of tests may take: some faults would fill the machine."""
PATIENCE = 30.0, 5.0
"""Seconds, and times the usual time, after which tests are stopped."""

ROOMS = {
    "law": ("test_law.py", "test_infini_law.py", "test_faults_honest.py"),
    "grounding": ("test_grounding_*.py", "test_law.py", "test_infini_law.py", "test_faults_honest.py"),
    "markdown": (
        "test_markdown_*.py",
        "test_obsidian.py",
        "test_sample_library.py",
        "test_grounding_claims.py",
    ),
    "store": ("test_store_*.py", "test_faults_*.py", "test_git_*.py", "test_memory.py"),
    "operations": (
        "test_operations_*.py",
        "test_forget*.py",
        "test_doctor*.py",
        "test_git*.py",
        "test_memory*.py",
    ),
    "strategies": ("test_infini_*.py", "test_allmem_*.py", "test_graph*.py", "test_readers_*.py"),
}
"""Where the faults of a room should be noticed; of any other, where its name stands in that of a test."""


@dataclass(frozen=True)
class Ran:
    """What a run of tests came to: the first that failed, or "" where none did."""

    failed: str
    seconds: float


class Copy:
    """A checkout in a folder of its own, laid out as a wheel is: `tools` and `prompts` inside the package.

    Args:
        root: a folder that does not exist yet.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        left_out = shutil.ignore_patterns(
            ".git", ".venv*", "*.egg-info", "__pycache__", ".*_cache", ".hypothesis"
        )
        shutil.copytree(CHECKOUT, root, ignore=left_out)
        for room in ("tools", "prompts"):
            (root / "infinimem" / room).symlink_to(f"../{room}")
        data = os.environ.get("INFINIMEM_DATA", str(CHECKOUT.parent / "shared" / "data"))
        self._env = {**os.environ, "PYTHONPATH": str(root), "INFINIMEM_DATA": data}
        self._times = 0

    @contextmanager
    def mutated(self, mutant: Mutant) -> Iterator[None]:
        """With the fault in it."""
        path = mutant.path(self.root)
        source, stat = path.read_text(), path.stat()
        path.write_text(mutant.applied(source))
        self._times += 1
        os.utime(path, (stat.st_atime, self._times))  # compiled anew: never taken for another of its size
        try:
            yield
        finally:
            path.write_text(source)
            os.utime(path, (stat.st_atime, stat.st_mtime))

    def run(self, tests: Sequence[str], limit: float) -> Ran:
        """Run tests until the first fails.

        Raises:
            RuntimeError: they cannot be run, or are stopped from outside twice.
        """
        began = time.monotonic()
        for _ in range(2):
            status, said = self._status(tests, limit)
            seconds = time.monotonic() - began
            if status is None:
                return Ran("a hang", seconds)
            if status == 0:
                return Ran("", seconds)
            if status > 0:
                break
        if status < 0 or status in (4, 5):  # a signal; pytest's own: wrong usage, no tests
            raise RuntimeError(f"{' '.join(tests)} cannot be run, exit status {status}:\n{said}")
        named = re.search(r"^(?:FAILED|ERROR) (?:tests/)?([^\s\[]+)", said, re.M)
        return Ran(named[1] if named else f"exit status {status}", seconds)

    def _status(self, tests: Sequence[str], limit: float) -> tuple[int | None, str]:
        """The exit status, None where they took too long, and what they said."""
        shutil.rmtree(self.root / ".hypothesis", ignore_errors=True)  # what failed before is tried first
        args = ["-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", "--tb=no", "-rfE"]
        command = [sys.executable, "-m", "pytest", *args, *(f"tests/{test}" for test in tests)]
        with tempfile.TemporaryFile("w+") as output:
            process = subprocess.Popen(
                ["sh", "-c", f'ulimit -v {MEMORY} 2>/dev/null; exec "$@"', "sh", *command],
                cwd=self.root,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            try:
                status: int | None = process.wait(limit)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
            output.seek(0)
            return status, output.read()


class Crew:
    """Some copies, each for one run at a time.

    Args:
        home: an empty folder for them.
        jobs: how many.
    """

    def __init__(self, home: Path, jobs: int) -> None:
        self._free: SimpleQueue[Copy] = SimpleQueue()
        self._jobs = jobs
        for number in range(jobs):
            self._free.put(Copy(home / str(number)))

    def usual(self, mutants: Iterable[Mutant]) -> dict[str, float]:
        """How long each of the tests that these name takes without a fault, in seconds.

        Raises:
            RuntimeError: one fails as it is, so that it could notice nothing.
        """
        tests = sorted({test for mutant in mutants for test in mutant.tests})

        def timed(test: str) -> float:
            copy = self._free.get()
            try:
                ran = copy.run([test], 1800)
            finally:
                self._free.put(copy)
            if ran.failed:
                raise RuntimeError(f"{test} fails without any fault: {ran.failed}")
            return ran.seconds

        with ThreadPoolExecutor(self._jobs) as pool:
            return dict(zip(tests, pool.map(timed, tests), strict=True))

    def tried(self, mutants: Sequence[Mutant]) -> Iterator[tuple[Mutant, Ran]]:
        """Each mutant, in their order, and what its tests came to."""
        usual = self.usual(mutants)
        least, times = PATIENCE

        def one(mutant: Mutant) -> Ran:
            copy = self._free.get()
            try:
                with copy.mutated(mutant):
                    return copy.run(mutant.tests, least + times * sum(usual[test] for test in mutant.tests))
            finally:
                self._free.put(copy)

        with ThreadPoolExecutor(self._jobs) as pool:
            yield from zip(mutants, pool.map(one, mutants), strict=True)


def sampled(modules: Sequence[str], size: int, seed: int) -> list[Mutant]:
    """Some mutants of these modules, made from their syntax: the same for the same seed.

    Args:
        modules: files and folders of the package, "law", "store/state".
        size: how many at most.
        seed: of the choice.
    """
    found: list[Mutant] = []
    for module in modules:
        room = module.partition("/")[0].removesuffix(".py")
        patterns = ROOMS.get(room, (f"test_*{room}*.py",))
        tests = [path.name for pattern in patterns for path in sorted((CHECKOUT / "tests").glob(pattern))]
        path = CHECKOUT / "infinimem" / module.removesuffix(".py")
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
        for file in files:
            found += systematic(file, module, tuple(dict.fromkeys(tests)))
    return random.Random(seed).sample(found, min(size, len(found)))


def table(results: Sequence[tuple[Mutant, Ran]]) -> str:
    """How many of each group were noticed, as Markdown."""
    rows = ["| group | mutants | noticed | survivors |", "| --- | --- | --- | --- |"]
    groups = dict.fromkeys(mutant.group for mutant, _ in results)
    for group in [*groups, "all"]:
        ran = [result.failed for mutant, result in results if group in (mutant.group, "all")]
        noticed = sum(map(bool, ran))
        rows.append(f"| {group} | {len(ran)} | {noticed} | {len(ran) - noticed} |")
    return "\n".join(rows)


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="with --sample: law, store/state, …")
    parser.add_argument("--group", action="append", help="rows of this group alone")
    parser.add_argument("--id", action="append", help="this row alone, as GROUP/ID")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at once")
    parser.add_argument("--sample", type=int, help="so many mutants made from the syntax of MODULE…")
    parser.add_argument("--seed", type=int, default=random.randrange(10_000), help="of the sample")
    options = parser.parse_args()
    if bool(options.modules) != (options.sample is not None):
        parser.error("--sample and modules go together")
    if options.sample is not None:
        print(f"seed {options.seed}", flush=True)
        mutants = sampled(options.modules, options.sample, options.seed)
    else:
        mutants = [
            mutant
            for mutant in listed()
            if mutant.group in (options.group or [mutant.group])
            and str(mutant) in (options.id or [str(mutant)])
        ]
    if wrong := [f"{mutant}: {why}" for mutant in mutants if (why := problem(mutant))]:
        parser.error("; ".join(wrong))
    if not mutants:
        parser.error("no mutant has that name")
    results = []
    with tempfile.TemporaryDirectory(prefix="mutants") as home:
        try:
            for mutant, ran in Crew(Path(home), options.jobs).tried(mutants):
                results.append((mutant, ran))
                became = f"noticed by {ran.failed}" if ran.failed else f"SURVIVED ({mutant.why})"
                print(f"{mutant}: {became}, {ran.seconds:.1f} s", flush=True)
        except RuntimeError as error:
            parser.error(str(error))
    print(f"\n{table(results)}")
    return int(options.sample is None and not all(ran.failed for _, ran in results))


if __name__ == "__main__":
    sys.exit(main())
