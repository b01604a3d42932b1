"""A client with a ceiling on what it may spend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import inf
from typing import Any

from infinimem.errors import SpendingCapReached
from infinimem.llm.base import LLM, Reply, Task, total
from infinimem.model import Usage


class Capped:
    """Passes calls on to a client until a cap is reached; of calls side by side those under way are let end.

    Args:
        llm: the client.
    """

    def __init__(self, llm: LLM) -> None:
        self._llm = llm
        self._ceiling: float | None = None

    @property
    def name(self) -> str:
        return self._llm.name

    @property
    def usage(self) -> dict[str, Usage]:
        return self._llm.usage

    def _spent(self) -> int:
        usage = total(self.usage)
        return usage.tokens_in + usage.tokens_out

    @contextmanager
    def cap(self, max_tokens: int | None) -> Iterator[None]:
        """For the time of the block, refuse calls once `max_tokens` are spent in it; None changes nothing."""
        before = self._ceiling
        if max_tokens is not None:
            self._ceiling = min(self._spent() + max_tokens, before if before is not None else inf)
        try:
            yield
        finally:
            self._ceiling = before

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        """Ask once; see `LLM.complete`.

        Raises:
            SpendingCapReached: the cap is spent; nothing was sent.
        """
        if self._ceiling is not None and self._spent() >= self._ceiling:
            raise SpendingCapReached("the token cap is spent; what was applied stays, raise the cap to go on")
        return self._llm.complete(task, variables)
