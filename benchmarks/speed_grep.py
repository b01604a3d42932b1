"""grep side by side: infinimem, ripgrep over the files, Python's `re` over the files."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from speed_engines import notes

LIMIT = 20.0
"""Seconds after which a pattern is given up, for up to 30,000 documents; more have more."""


class GaveUp(Exception):
    """The pattern took too long."""


class OursGrep:
    """The `grep` tool as an agent calls it, without lines around; `grep_doc` for one file."""

    def __init__(self, library: Path) -> None:
        from infinimem.memory import open_memory

        self.tools = open_memory(library, model="offline").tools

    def count(self, pattern: str, ignore_case: bool) -> int:
        """How many lines match."""
        return self._total(self.tools.grep(pattern=pattern, ignore_case=ignore_case, context_lines=0))

    def count_in(self, name: str, pattern: str, ignore_case: bool) -> int:
        """How many lines of one file match."""
        found = self.tools.grep_doc(
            doc_id=name.removesuffix(".md"), pattern=pattern, ignore_case=ignore_case, context_lines=0
        )
        return self._total(found)

    def _total(self, found: dict[str, object]) -> int:
        if "error" in found:
            raise SystemExit(str(found["error"]))
        return int(str(found["total_matches"]))


class Ripgrep:
    """rg as it comes, its lines read through a pipe."""

    def __init__(self, library: Path) -> None:
        self.library = library

    def count(self, pattern: str, ignore_case: bool) -> int:
        return self._run(pattern, ignore_case, self.library / "notes")

    def count_in(self, name: str, pattern: str, ignore_case: bool) -> int:
        return self._run(pattern, ignore_case, self.library / name)

    def _run(self, pattern: str, ignore_case: bool, where: Path) -> int:
        command = ["rg", "--line-number", *(["--ignore-case"] if ignore_case else []), "-e", pattern]
        done = subprocess.run([*command, str(where)], stdout=subprocess.PIPE, timeout=60, check=False)
        return done.stdout.count(b"\n")


class Re:
    """Every file read and searched as a whole with `re`, which backtracks."""

    def __init__(self, library: Path) -> None:
        self.library = library
        self.paths = notes(library)

    def count(self, pattern: str, ignore_case: bool) -> int:
        return sum(self._lines(pattern, ignore_case, self.paths))

    def count_in(self, name: str, pattern: str, ignore_case: bool) -> int:
        return sum(self._lines(pattern, ignore_case, [self.library / name]))

    def _lines(self, pattern: str, ignore_case: bool, paths: list[Path]) -> Iterator[int]:
        compiled = re.compile(pattern, re.MULTILINE | (re.IGNORECASE if ignore_case else 0))
        for path in paths:
            text, end, found = path.read_text(encoding="utf-8"), 0, 0
            while (match := compiled.search(text, end)) is not None:
                found += 1
                end = text.find("\n", match.end()) + 1
                if not end:
                    break
            yield found


GREPS: dict[str, type[OursGrep] | type[Ripgrep] | type[Re]] = {
    "infinimem": OursGrep,
    "ripgrep": Ripgrep,
    "re": Re,
}


def there_is(name: str) -> bool:
    """Whether an engine can be run here."""
    return name != "ripgrep" or shutil.which("rg") is not None


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raises `GaveUp` inside after so many seconds, in `re` too, which looks for signals now and then."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise GaveUp

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
