"""How time grows with the headings and lines of one topic, and with the length of a turn, whatever it holds.

    python benchmarks/growth.py [--headings 1000,2000] [--bytes 400000,800000] [--times N] [--only topic|turn]

Each command is the installed program, started anew, with the offline model; the least of N runs counts, on
the clock and of the processor. On a busy machine the processor time says more. The last column divides what
the largest takes by what the one before it takes. The same sizes give the same bytes.
"""

from __future__ import annotations

import argparse
import base64
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

LINES = 10
"""Lines under a heading."""
SEED = 5
TURN = "I moved to Lisbon in March."
KINDS = {"signed": "lines that are signed", "typed": "lines that a person typed", "fixed": "beside prose"}
AFTER = (
    ("search", "copper shelf"),
    ("ls",),
    ("read", "topics/one", "1:20"),
    ("doctor",),
    ("blame", "topics/one:5"),
    ("history", "100"),
    ("search", "copper", "--as-of", "journal/0001-stamp"),
    ("undo",),
)
"""What is asked of a library once it is consolidated."""
_WORDS = (
    "amber basil cedar copper delta ember fjord grove heron indigo jasper kelp lotus maple nectar olive "
    "pearl quartz raven sage tulip umber violet willow yarrow the of and to in is was on with at from has "
    "had said"
).split()

Spent = tuple[float, float]
"""Seconds on the clock and of the processor."""


# ── what is measured ────────────────────────────────────────────────────────────────────────────


def topic(headings: int, lines: int, kind: str = "signed") -> str:
    """A topic document; no two of its lines are alike.

    Args:
        headings: how many it has.
        lines: how many lines stand under them in all.
        kind: one of KINDS.
    """
    chance = random.Random(SEED)
    found = ["Prose of a person.", ""] if kind == "fixed" else []
    for number in range(lines):
        if number % (lines // headings) == 0:
            found += ["", f"# {_phrase(chance, 2).capitalize()} {number}"]
        sign = "" if kind == "typed" else f"<seq={number + 1},time=2024-01-01,source=user> "
        found.append(f"- {sign}The {_phrase(chance, 4)} is kept on shelf {number}.")
    return "\n".join([*found, ""])


def turns(size: int) -> dict[str, str]:
    """A turn of each content, of about so many bytes."""
    chance = random.Random(SEED)

    def repeated(text: str) -> str:
        return text * (size // len(text.encode()) + 1)

    def told(make: Callable[[], str], between: str) -> str:
        parts, length = [], 0
        while length < size:
            parts.append(make())
            length += len(parts[-1].encode()) + len(between)
        return between.join(parts)

    def sentence() -> str:
        words = _phrase(chance, chance.randint(5, 18)).split()
        words.insert(1, chance.choice(["not", "Ann", "Lisbon", "14", "we", "they", "she", "it"]))
        return " ".join(words).capitalize()

    def item() -> str:
        return "  " * chance.randint(0, 9) + f"- {sentence()}"

    encoded = base64.b64encode(chance.randbytes(size)).decode()
    found = {
        "prose": told(lambda: f"{sentence()}. {sentence()}! {sentence()}.", "\n\n"),
        "prose on one line": told(lambda: f"{sentence()}.", " "),
        "sentences without end": told(sentence, " "),
        "many short lines": told(lambda: _phrase(chance, 1), "\n"),
        "lines of a letter": repeated("a\n"),
        "one sentence again and again": repeated("I do not eat meat. "),
        "words and commas": told(lambda: _phrase(chance, 1), ", "),
        "negations": repeated("I do not "),
        "names": told(lambda: _phrase(chance, 1).capitalize(), " "),
        "nested lists": told(item, "\n"),
        "tables": told(lambda: f"| {' | '.join(_phrase(chance, 5).split())} |", "\n"),
        "HTML": told(lambda: f'<div class="{_phrase(chance, 1)}"><p>{sentence()}</p></div>', "\n"),
        "headings": told(lambda: f"# {sentence()}", "\n"),
        "a log": told(lambda: f"2024-05-01T12:00:00 INFO [{chance.randint(1, 9)}] {sentence()}", "\n"),
        "addresses": told(lambda: f"https://example.com/{_phrase(chance, 1)}/{chance.randint(1, 999)}", " "),
        "numbers": told(lambda: str(chance.randint(0, 99_999)), " "),
        "digits": repeated("1234567890"),
        "base64": encoded,
        "base64 in lines": "\n".join(re.findall(".{1,76}", encoded)),
        "one letter": repeated("a"),
        "no spaces": "".join(_phrase(chance, size // 4).split()),
        "dashes": repeated("-"),
        "brackets": repeated("["),
        "pairs of brackets": repeated("[](){}<>"),
        "quotes": repeated('"a '),
        "curly quotes": repeated("“a”"),
        "apostrophes": repeated("don't "),
        "blanks": f"a{repeated(' ')}b",
        "emoji": repeated("😀👩‍👩‍👧🏽"),
        "Chinese": repeated("我今天搬到里斯本，喜欢喝茶。"),
        "Thai": repeated("ฉันย้ายไปลิสบอน"),
        "combining marks": repeated("e\u0301"),
        "controls of direction": repeated("\u202e"),
        "NUL": repeated("\0"),
    }
    return {name: text.encode()[:size].decode(errors="ignore") for name, text in found.items()}


def _phrase(chance: random.Random, words: int) -> str:
    return " ".join(chance.choices(_WORDS, k=words))


# ── measuring ───────────────────────────────────────────────────────────────────────────────────


class Program:
    """The installed command, with a library of its own.

    Args:
        root: a folder in which nothing is yet.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.command = shutil.which("infinimem", path=str(Path(sys.executable).parent)) or "infinimem"
        self.own = {"XDG_CACHE_HOME": str(root / "cache"), "INFINIMEM_MODEL": "offline"}
        self.run("init", str(root / "library"))

    def run(self, *arguments: str, given: str = "") -> Spent:
        """Run a command on the library, which must not fail."""
        before, began = getrusage(RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(
            [self.command, "--library", str(self.root / "library"), *arguments],
            input=given.encode(),
            env={**os.environ, **self.own},
            capture_output=True,
            check=True,
        )
        clock, after = time.perf_counter() - began, getrusage(RUSAGE_CHILDREN)
        return clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def topics(root: Path, headings: int, kind: str) -> dict[str, Spent]:
    """What each command takes on a library of one topic."""
    program = Program(root)
    (root / "library/topics/one.md").write_text(topic(headings, LINES * headings, kind))
    found = {"add": program.run("add", TURN), "consolidate": program.run("consolidate")}
    commands = [words for words in AFTER if kind == "typed" or "--as-of" not in words]
    return found | {" ".join(words): program.run(*words) for words in commands}


def least(make: Callable[[Path], dict[str, Spent]], times: int) -> dict[str, Spent]:
    """Each figure as the least of some runs."""
    runs: list[dict[str, Spent]] = []
    for _ in range(times):
        with tempfile.TemporaryDirectory(prefix="growth-") as folder:
            runs.append(make(Path(folder)))
    return {name: (min(run[name][0] for run in runs), min(run[name][1] for run in runs)) for name in runs[0]}


def table(head: str, sizes: Sequence[str], columns: Sequence[dict[str, Spent]]) -> str:
    """A Markdown table: a row a name, a column a size, and what the last one takes of the one before."""
    rows = [f"| {head} | {' | '.join(sizes)} | times |", f"| --- |{' --- |' * (len(sizes) + 1)}"]
    for name in columns[0]:
        cells = [f"{column[name][0]:.2f} ({column[name][1]:.2f})" for column in columns]
        times = f"{columns[-1][name][1] / columns[-2][name][1]:.1f}" if len(columns) > 1 else ""
        rows.append(f"| {name} | {' | '.join(cells)} | {times} |")
    return "\n".join(rows)


def added(root: Path, name: str, told: str) -> dict[str, Spent]:
    """What `add` takes for a turn, in an empty library."""
    return {name: Program(root).run("add", "-", given=told)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--headings", default="1000,2000", help="of the topic; each has ten lines")
    parser.add_argument("--bytes", default="400000,800000", help="of the turn")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--only", choices=("topic", "turn"))
    asked = parser.parse_args()
    print("Seconds on the clock (of the processor).")
    if asked.only != "turn":
        counts = [int(count) for count in asked.headings.split(",")]
        sizes = [f"{count:,} headings" for count in counts]
        for kind, label in KINDS.items():
            columns = [least(partial(topics, headings=n, kind=kind), asked.times) for n in counts]
            print(f"\n{table(f'one topic, {label}', sizes, columns)}", flush=True)
    if asked.only != "topic":
        contents = {int(size): turns(int(size)) for size in asked.bytes.split(",")}
        columns = []
        for told in contents.values():
            columns.append({})
            for name, text in told.items():
                columns[-1] |= least(partial(added, name=name, told=text), asked.times)
        sizes = [f"{size // 1000} KB" for size in contents]
        print(f"\n{table('`add`, one turn of', sizes, columns)}")


if __name__ == "__main__":
    main()
