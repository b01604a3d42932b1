"""From settings to a client."""

from __future__ import annotations

from functools import partial
from inspect import iscoroutinefunction
from pathlib import Path
from typing import TYPE_CHECKING

from infinimem.errors import ModelNotConfigured, NotTrusted, ReplyAwaited, UsageError
from infinimem.llm.base import AGENT, LLM, OFFLINE, Nobody
from infinimem.settings import Configuration, ModelSettings, advice

if TYPE_CHECKING:
    from openai import OpenAI


def connect(model: str | OpenAI | None, settings: ModelSettings) -> LLM:
    """Return the client for a model by name, "agent" or "offline"; None takes the settings, then "offline". A
    client of the openai package asks the model that the settings name.

    Raises:
        ModelNotConfigured: the model needs a key and there is none; or a client is given and no model named.
        UsageError: the client is none, or an asynchronous one.
    """
    client, name = (None, model) if isinstance(model, str | None) else (model, None)
    if client is not None and (not hasattr(client, "post") or iscoroutinefunction(client.post)):
        raise UsageError(
            "model takes a name, an object with `complete`, or a client of openai that is not async"
        )
    name = name or settings.model or OFFLINE
    if client is not None and name in (OFFLINE, AGENT):
        raise ModelNotConfigured(
            "no model is named for the client of openai; set INFINIMEM_MODEL, or model under [llm]"
        )
    if name == OFFLINE:
        from infinimem.llm.offline import OfflineClient

        return OfflineClient()
    if name == AGENT:
        return Nobody(AGENT, "", partial(ReplyAwaited, ()))
    from infinimem.llm.openai_client import OpenAIClient

    return OpenAIClient(
        name, settings.base_url, timeout=settings.timeout, retries=settings.retries, client=client
    )


def permitted(model: str | OpenAI | None, found: Configuration, library: Path) -> LLM:
    """Return the client for a model, unless a setting that nobody trusted would choose it or its server."""
    if found.suspends_model(model if isinstance(model, str) else None):
        why = f"no model is asked: {advice(library, found.suspended)}; or use --model offline"
        return Nobody("not trusted", None, partial(NotTrusted, why))
    return connect(model, found.settings.llm)
