"""From settings to a client."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from infinimem.errors import NotTrusted
from infinimem.llm.base import LLM, Reply, Task
from infinimem.model import Usage
from infinimem.settings import Configuration, ModelSettings, advice

OFFLINE = "offline"


def connect(model: str | None, settings: ModelSettings) -> LLM:
    """The client for a model.

    Args:
        model: its name, or "offline"; None takes the settings, then "offline".
        settings: [llm] in force.

    Raises:
        ModelNotConfigured: the model needs a key and there is none.
    """
    name = model or settings.model or OFFLINE
    if name == OFFLINE:
        from infinimem.llm.offline import OfflineClient

        return OfflineClient()
    from infinimem.llm.openai_client import OpenAIClient

    return OpenAIClient(name, settings.base_url, timeout=settings.timeout, retries=settings.retries)


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
