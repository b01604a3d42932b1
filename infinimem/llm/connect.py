"""From settings to a client."""

from __future__ import annotations

from pathlib import Path

from infinimem.errors import NotTrusted
from infinimem.llm.base import LLM
from infinimem.llm.replies import Nobody
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
        why = f"no model is asked: {advice(library, found.suspended)}; or use --model offline"
        return Nobody("not trusted", None, NotTrusted(why))
    return connect(model, found.settings.llm)
