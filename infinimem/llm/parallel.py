"""Many calls of a model side by side; what comes back stands in the order of what was asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

Asked = TypeVar("Asked")
Told = TypeVar("Told")


def in_order(
    call: Callable[[Asked], Told],
    asked: Sequence[Asked],
    workers: int,
    ended: Callable[[], object] = lambda: None,
) -> list[Told]:
    """Return the result of a call for each item, whatever the order in which they end, at most `workers` at a
    time.

    Each runs in a copy of the caller's context. After an error or a Ctrl-C `ended` is called before calls
    under way are waited for, what the first item raised is raised, and calls that have not begun never do.
    """
    if workers < 2 or len(asked) < 2:
        return [call(item) for item in asked]
    with ThreadPoolExecutor(min(workers, len(asked))) as pool:
        waiting = [pool.submit(copy_context().run, call, item) for item in asked]
        try:
            return [one.result() for one in waiting]
        except BaseException:
            ended()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
