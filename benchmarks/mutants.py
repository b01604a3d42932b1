"""Put small faults into the modules that guard data, and count those that no contract test notices.

    pip install mutmut
    python benchmarks/mutants.py --sample 400 --seed 1    # in a checkout
    python benchmarks/mutants.py --only store.plans      # of some modules
    mutmut show NAME                                      # what a fault that nothing noticed is

Which modules and which tests stands in pyproject.toml under [tool.mutmut]. The faults are those of mutmut 3,
one at a time, in a copy of the checkout below mutants/; of each only the tests that run the function are run.
No fault is made in the arguments of a `raise`, which are words for people; all other strings take part.
A fault counts as noticed if a test fails, or does not end in fifteen times its time or 300 s. What ended in
another way (a time-out, a process that the system killed) is run once more, alone, so that a busy machine is
no test; what times out again is counted as noticed, and told.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

MUTMUT = (sys.executable, "-m", "mutmut")
UNNOTICED = ("survived", "no tests")
NOTICED = ("killed", "timeout")
LOG = Path("mutants/log")


def states() -> dict[str, str]:
    """What is known of each fault, by its name."""
    done = subprocess.run([*MUTMUT, "results", "--all", "true"], capture_output=True, text=True, check=True)
    rows = (line.strip().rpartition(": ") for line in done.stdout.splitlines() if ": " in line)
    return {name: state for name, _, state in rows}


def run(names: Sequence[str], jobs: int) -> None:
    """Run the tests of these faults; what is known of them already is found anew."""
    with LOG.open("w") as log:
        done = subprocess.run([*MUTMUT, "run", "--max-children", str(jobs), *names], stdout=log, stderr=log)
    if done.returncode:
        sys.exit(f"the tests fail without a fault, or mutmut does: the end of {LOG} says why")


def interval(noticed: int, count: int) -> tuple[float, float]:
    """Wilson's interval of a share, 95 %, in percent."""
    share, z2 = noticed / count, 1.96**2
    middle = (share + z2 / (2 * count)) / (1 + z2 / count)
    half = (z2 * (share * (1 - share) / count + z2 / (4 * count**2))) ** 0.5 / (1 + z2 / count)
    return 100 * (middle - half), 100 * (middle + half)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sample", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=[""], metavar="MODULE", help="such as store.plans")
    arguments = parser.parse_args()
    # Makes the faults, and finds which tests run which function.
    subprocess.run([*MUTMUT, "run", "none.such"], capture_output=True)
    only = tuple(f"infinimem.{module}" for module in arguments.only)
    names = sorted(name for name in states() if name.startswith(only))
    if not names:
        sys.exit("no faults were made: run `mutmut run` to see why")
    chosen = random.Random(arguments.seed).sample(names, min(arguments.sample, len(names)))
    run(chosen, arguments.jobs)
    state = states()
    if again := [name for name in chosen if state[name] not in ("killed", *UNNOTICED)]:
        run(again, 1)
        state = states()
    ran = [name for name in chosen if state[name] in (*NOTICED, *UNNOTICED)]
    rooms = Counter(name.rpartition(".")[0] for name in ran)
    missed = Counter(name.rpartition(".")[0] for name in ran if state[name] in UNNOTICED)
    print(f"\n{len(names)} faults, {len(ran)} of them run, seed {arguments.seed}\n")
    print("| module | faults | noticed |\n| --- | ---: | ---: |")
    for room, count in sorted(rooms.items()):
        print(f"| `{room}` | {count} | {count - missed[room]} |")
    noticed = len(ran) - missed.total()
    low, high = interval(noticed, len(ran))
    print(f"| all | {len(ran)} | {noticed}: {100 * noticed / len(ran):.1f} % [{low:.1f}, {high:.1f}] |\n")
    for name in sorted(name for name in chosen if state[name] != "killed"):
        print(state[name], name)


if __name__ == "__main__":
    main()
