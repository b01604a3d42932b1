"""Any system call of a piece of work kills it or fails: the work runs in a child process under strace.

The child is a fork of this process, so nothing has to be started or imported; strace counts each kind of
call by itself, from where the work begins.
"""

from __future__ import annotations

import ctypes
import gc
import os
import random
import re
import select
import shutil
import subprocess
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

Work = Callable[[], object]
Point = tuple[str, int]
"""A system call's name, and which one it is of its kind."""

_MARK = "getppid"
_CALL = re.compile(r"^(\d* *)(\w+)\(")
_HARMLESS = re.compile(
    r"brk|m(map|unmap|protect|remap|advise)|futex|rt_sig\w+|clock_\w+|get(pid|ppid|tid|uid|euid|random|cpu)|"
    r"p?select6?|p?poll|exit(_group)?|sched_\w+"
)
"""Calls that reach no file: to die there is to die at the next one."""


@pytest.fixture
def traceable() -> None:
    """Tests that trace skip where that is not possible."""
    if why := missing():
        pytest.skip(why)


@cache
def missing() -> str | None:
    """Why work cannot be traced here; None if it can."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    try:
        points(lambda: None)
    except ChildProcessError as error:
        return f"processes may not be traced here: {error}"
    return None


def points(work: Work) -> list[Point]:
    """Every call of the work that reaches a file, from a run that is not disturbed."""
    with tempfile.NamedTemporaryFile("r") as log:
        status, said = _run(work, [], Path(log.name))
        assert status == 0, said
        calls = [(match[1], match[2]) for line in log if (match := _CALL.match(line))]
    begin = len(calls) - [name for _, name in calls][::-1].index(_MARK)
    times: Counter[tuple[str, str]] = Counter()
    found: dict[Point, None] = {}
    for number, (thread, name) in enumerate(calls):
        times[thread, name] += 1
        if number >= begin and not _HARMLESS.fullmatch(name):
            found[name, times[thread, name]] = None
    return list(found)


def chosen(points: Sequence[Point], count: int | None) -> list[Point]:
    """One point of each of `count` equal stretches; all if None."""
    chance = random.Random(3)
    ends = [len(points) * n // count for n in range(count + 1)] if count else range(len(points) + 1)
    return [points[chance.randrange(a, b)] for a, b in pairwise(ends) if a < b]


def killed(work: Work, point: Point) -> bool:
    """Do the work with kill -9 at one call; False if it did not die."""
    return _injected(work, point, "signal=KILL")[0] == -9


def failed(work: Work, point: Point, error: str) -> str:
    """Do the work with one call failing; gives the traceback if that ends it, else ""."""
    return _injected(work, point, f"error={error}")[1]


def _injected(work: Work, point: Point, fault: str) -> tuple[int, str]:
    name, number = point
    with tempfile.NamedTemporaryFile() as log:
        traced = ["-e", f"trace={_MARK},{name}", "-e", f"inject={name}:{fault}:when={number}"]
        return _run(work, traced, Path(log.name))


def _run(work: Work, options: list[str], log: Path) -> tuple[int, str]:
    """Exit code (negative for a signal) of a child that does the work, and the traceback that ended it."""
    with tempfile.NamedTemporaryFile("r") as said, _pipe() as (ready, go):
        child = _child(work, ready, Path(said.name))
        strace = subprocess.Popen(
            ["strace", "-qq", "-o", str(log), *options, "-p", str(child)],
            stderr=subprocess.PIPE,
            text=True,
        )
        while not log.stat().st_size and strace.poll() is None:
            time.sleep(0.001)
        os.write(go, b".")  # strace sees the child's marks: it counts from here on
        _, why = strace.communicate(timeout=60)
        _, status = os.waitpid(child, 0)
        if strace.returncode:
            raise ChildProcessError(why.strip())
        return os.waitstatus_to_exitcode(status), said.read()


def _child(work: Work, ready: int, said: Path) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # another thread may hold a lock: none does
        child = os.fork()
    if child:
        return child
    status = 1
    try:
        ctypes.CDLL(None).prctl(0x59616D61, -1, 0, 0, 0)  # PR_SET_PTRACER: who is no parent may trace too
        told = select.poll()  # select takes no file beyond the 1024th
        told.register(ready, select.POLLIN)
        while not told.poll(1):
            os.getppid()
        os.getppid()
        gc.disable()  # what is closed when garbage is collected is closed in one run and not in the next
        work()
        status = 0
    except BaseException:
        said.write_text(traceback.format_exc())
    finally:
        os._exit(status)


@contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    try:
        yield ends
    finally:
        for end in ends:
            os.close(end)
