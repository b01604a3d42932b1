"""From settings to a client."""

from __future__ import annotations

import os
from collections.abc import Mapping

from infinimem.llm.base import LLM
from infinimem.settings import ModelSettings

OFFLINE = "offline"


def connect(model: str | None, settings: ModelSettings, env: Mapping[str, str] | None = None) -> LLM:
    """The client for a model.

    Args:
        model: its name, or "offline"; None takes INFINIMEM_MODEL, then the settings, then "offline".
        settings: [llm] of infinimem.toml; its base_url gives way to OPENAI_BASE_URL.
        env: the environment; default is the process's own.

    Raises:
        ModelNotConfigured: the model needs a key and there is none.
    """
    env = os.environ if env is None else env
    name = model or env.get("INFINIMEM_MODEL") or settings.model or OFFLINE
    if name == OFFLINE:
        from infinimem.llm.offline import OfflineClient

        return OfflineClient()
    from infinimem.llm.openai_client import OpenAIClient

    return OpenAIClient(
        name,
        base_url=env.get("OPENAI_BASE_URL") or settings.base_url,
        api_key=env.get("OPENAI_API_KEY"),
        timeout=settings.timeout,
        retries=settings.retries,
    )
