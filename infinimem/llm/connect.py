"""From settings to a client."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infinimem.errors import ModelNotConfigured, NotTrusted
from infinimem.llm.base import LLM, Reply, Task
from infinimem.model import Usage
from infinimem.settings import Configuration, ModelSettings, advice

if TYPE_CHECKING:
    from openai import OpenAI

OFFLINE = "offline"


def connect(model: str | OpenAI | None, settings: ModelSettings) -> LLM:
    """The client for a model.

    Args:
        model: its name, or "offline"; None takes the settings, then "offline". A client of the openai package
            asks the model that the settings name.
        settings: [llm] in force.

    Raises:
        ModelNotConfigured: the model needs a key and there is none; or a client is given and no model named.
    """
    client, name = (None, model) if isinstance(model, str | None) else (model, None)
    name = name or settings.model or OFFLINE
    if client is not None and name == OFFLINE:
        raise ModelNotConfigured(
            "no model is named for the client of openai; set INFINIMEM_MODEL, or model under [llm]"
        )
    if name == OFFLINE:
        from infinimem.llm.offline import OfflineClient

        return OfflineClient()
    from infinimem.llm.openai_client import OpenAIClient

    return OpenAIClient(
        name, settings.base_url, timeout=settings.timeout, retries=settings.retries, client=client
    )


def permitted(model: str | OpenAI | None, found: Configuration, library: Path) -> LLM:
    """The client for a model, where no setting that nobody trusted would choose it or its server.

    Raises:
        ModelNotConfigured: see `connect`.
    """
    if found.suspends_model(model if isinstance(model, str) else None):
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
