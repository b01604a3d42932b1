"""A plugin of the tests: a hung test fails alone, a failure is always reported, a skip is always counted.

pytest-timeout sets the time. Its own alarms end the process or raise what hypothesis takes for a failing
example and runs again; this one raises what nothing catches, and again if something did.
"""

from __future__ import annotations

import signal
import traceback
from collections import Counter
from collections.abc import Generator
from types import FrameType
from typing import Any

import pytest

AGAIN = 30.0
"""Seconds until a test that swallowed the first alarm gets the next."""


class Hung(BaseException):
    """The test took longer than its timeout."""


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> bool | None:
    """Raise Hung in the main thread when the time is over; without SIGALRM leave it to pytest-timeout."""
    if not hasattr(signal, "SIGALRM"):
        return None

    def end(_: int, frame: FrameType | None) -> None:
        raise Hung(f"{item.nodeid} took longer than {settings.timeout:g} s")

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, settings.timeout, AGAIN)
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_cancel_timer(item: pytest.Item) -> bool | None:
    """Take the alarm back."""
    if not hasattr(signal, "SIGALRM"):
        return None
    signal.setitimer(signal.ITIMER_REAL, 0)
    return True


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Report a failure in plain text where pytest cannot show it; else its error would end the whole run.

    It breaks on an entry of a traceback without a line, of which Python 3.11 makes some.
    """
    try:
        return (yield)
    except Exception as broke:
        if call.excinfo is None:
            raise
        text = "".join(traceback.format_exception(call.excinfo.value))
        try:
            pytest.fail(f"{text}\npytest could not show it: {broke!r}", pytrace=False)
        except pytest.fail.Exception as plain:
            call.excinfo = pytest.ExceptionInfo.from_exception(plain)
        return pytest.TestReport.from_item_and_call(item, call)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how many tests were skipped, and why."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in skipped)
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"{count} skipped: {reason}")
