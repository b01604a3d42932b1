"""No input may hang the program: a guard around one call."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import infinimem.index.grep
import infinimem.index.tables  # noqa: F401
from infinimem import tokens
from infinimem.terms import tokens as terms

HANG = 2
"""Seconds of this process that one call may take whatever it meets; on the wall ten times as many."""


# What is loaded when first used is no part of a call.
tokens.count("warm")
terms("warm")


@contextmanager
def watched() -> Iterator[None]:
    """Fail where the block takes `HANG` seconds of this process, or waits."""

    def late(number: int, frame: FrameType | None) -> None:
        raise AssertionError("it hangs")

    signals = {signal.SIGPROF: (signal.ITIMER_PROF, HANG), signal.SIGALRM: (signal.ITIMER_REAL, 10 * HANG)}
    before = {number: signal.signal(number, late) for number in signals}
    for timer, seconds in signals.values():
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for number, (timer, _) in signals.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])
