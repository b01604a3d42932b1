"""From settings to a client, and the ceiling on what it may spend."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any

from infinimem.configuration import Configuration, advice
from infinimem.errors import NotTrusted, SpendingCapReached
from infinimem.llm.base import LLM, Reply, Task, total
from infinimem.model import Usage
from infinimem.settings import ModelSettings

OFFLINE = "offline"


def connect(model: str | None, settings: ModelSettings, env: Mapping[str, str] | None = None) -> LLM:
    """The client for a model.

    Args:
        model: its name, or "offline"; None takes the settings, then "offline".
        settings: [llm] in force.
        env: the environment, for the key; default is the process's own.

    Raises:
        ModelNotConfigured: the model needs a key and there is none.
    """
    env = os.environ if env is None else env
    name = model or settings.model or OFFLINE
    if name == OFFLINE:
        from infinimem.llm.offline import OfflineClient

        return OfflineClient()
    from infinimem.llm.openai_client import OpenAIClient

    return OpenAIClient(
        name,
        base_url=settings.base_url,
        api_key=env.get("OPENAI_API_KEY"),
        timeout=settings.timeout,
        retries=settings.retries,
    )


def permitted(model: str | None, found: Configuration, library: Path) -> LLM:
    """The client for a model, where no setting that nobody trusted would choose it or its server.

    Raises:
        ModelNotConfigured: the model needs a key and there is none.
    """
    if found.suspends_model(model):
        return Untrusted(advice(library, found.suspended))
    return connect(model, found.settings.llm)


class Untrusted:
    """Stands where settings that nobody trusted would choose the model: nothing is asked, nothing guessed.

    Args:
        advice: what to do, in one line.
    """

    name = "not trusted"

    def __init__(self, advice: str) -> None:
        self.usage: dict[str, Usage] = {}
        self._advice = advice

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        """See `LLM.complete`; raises NotTrusted."""
        raise NotTrusted(f"no model is asked: {self._advice}; or use --model offline")


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
