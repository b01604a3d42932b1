"""From settings to an embedder."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path

from infinimem.embedders.base import Embedder
from infinimem.errors import InfinimemError, UsageError, meant
from infinimem.settings import EMBEDDERS, Configuration, EmbedderSettings, embedder_names
from infinimem.spec import load, plugins, unusable

_LOCAL = ("lexical", "static", "minilm")  # those of ours that ask no server

Choice = str | Embedder | None  # an embedder, the name of one, or what the settings say


def chosen(name: str | None, settings: EmbedderSettings) -> str:
    """Return the name of the embedder that is meant: the one given, else the settings'; or UsageError."""
    found = name or settings.name
    if found not in (names := embedder_names()):
        raise UsageError(
            f"no embedder is called {found!r}; choose one of {', '.join(names)}{meant(found, names)}"
        )
    return found


def permitted(choice: Choice, found: Configuration) -> Choice:
    """Return the choice; words alone if the server that it would ask is set by nobody who is trusted."""
    named = choice if isinstance(choice, str) else None
    if "embedder.base_url" not in found.suspended or choice != named:
        return choice
    return choice if chosen(named, found.settings.embedder) in _LOCAL else "lexical"


def lazily(choice: Choice, settings: EmbedderSettings) -> Callable[[], Embedder]:
    """Return what connects when it is first called, and gives the same from then on. UsageError if there is
    no such embedder; what `connect` raises, the call does."""
    if choice is not None and not isinstance(choice, str):
        return lambda: choice
    chosen(choice, settings)
    return cache(partial(connect, choice, settings))


def connect(name: str | None, settings: EmbedderSettings, env: Mapping[str, str] | None = None) -> Embedder:
    """Connect to an embedder.

    Args:
        name: None takes the settings'.
        settings: [embedder] in force.
        env: the environment, for the key; default is the process's own.

    Raises:
        UsageError: no embedder is called so, or a setting is none of its own.
        ModelNotConfigured: a package, a model's files or a key is missing.
    """
    env = os.environ if env is None else env
    kind = chosen(name, settings)
    if kind not in EMBEDDERS:
        value = plugins("embedders")[kind]
        try:
            found: Embedder = load(value)(settings)
            return found
        except InfinimemError:
            raise
        except Exception as error:  # whatever the code of others may raise
            raise unusable(value, f"{type(error).__name__}: {error}") from error
    if kind == "openai":
        from infinimem.embedders.openai import OpenAIEmbedder

        return OpenAIEmbedder(settings.model, settings.base_url, env.get("OPENAI_API_KEY"))
    from infinimem.embedders import local

    path = Path(settings.path).expanduser() if settings.path else None
    if kind == "static":
        return local.static(path)
    if kind == "minilm":
        if settings.model:
            raise UsageError(
                "the embedder 'minilm' takes no model's name; give a folder with its files as [embedder] path"
            )
        return local.minilm(path)
    return local.Lexical()
