"""The seam: what an embedder is, what all of them owe a text, and from settings to one."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from infinimem.errors import InfinimemError, UsageError, meant
from infinimem.settings import EMBEDDERS, Configuration, EmbedderSettings, embedder_names
from infinimem.spec import load, plugins, unusable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

Kind = Literal["query", "passage"]
"""What is looked for, or what is found; texts that are compared with each other are passages."""


class Embedder(Protocol):
    """Gives texts vectors whose dot product says how near they are."""

    @property
    def name(self) -> str:
        """Name the model and its weights: vectors of two names are never mixed."""

    @property
    def size(self) -> int:
        """Return the dimensions of a vector."""

    @property
    def semantic(self) -> bool:
        """Return whether its vectors know more than which words a text holds."""

    def embed(self, texts: Sequence[str], kind: Kind = "passage") -> Matrix:
        """Return the vectors of texts, of any length; a model may read only the beginning of a long one.

        Args:
            texts: of one kind.
            kind: which; models that do not tell kinds apart give both the same vectors.

        Returns:
            One row of length 1 a text, float32; zeros for a text without any token. The row of a text is the
            same whatever stands beside it.

        Raises:
            ModelUnavailable: a server does not answer.
            ModelNotConfigured: key, model or address are wrong.
        """


Choice = str | Embedder | None  # an embedder, the name of one, or what the settings say

_PREFIXES = (
    (r"\be5\b(?!.*instruct)", "query: ", "passage: "),
    (r"arctic-embed.*2", "query: ", ""),
    (
        r"\bbge-(small|base|large)-en|mxbai-embed|arctic-embed",
        "Represent this sentence for searching relevant passages: ",
        "",
    ),
    (r"nomic-embed-text", "search_query: ", "search_document: "),
    (r"embeddinggemma", "task: search result | query: ", "title: none | text: "),
)
"""By a model's name what it was trained to read before a query and a passage. Source: the models' cards."""


def prefix_of(model: str, kind: Kind) -> str:
    """Return what a model reads before a text of a kind; "" if it does not tell kinds apart."""
    row = next((row for row in _PREFIXES if re.search(row[0], model.casefold())), ("", "", ""))
    return row[1] if kind == "query" else row[2]


def text_key(text: str) -> bytes:
    """Return the 16 bytes that name a text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def readable(text: str) -> str:
    """Return the text as tokenizers take it: a byte that was no UTF-8 becomes a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def unit(rows: Matrix) -> Matrix:
    """Scale rows to length 1; what has no length, or is no number, becomes zeros."""
    import numpy as np

    found = np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, 0)
    lengths = np.sqrt((found.astype(np.float64) ** 2).sum(axis=1, keepdims=True))
    result: Matrix = np.divide(found, lengths, out=np.zeros(rows.shape), where=lengths > 0).astype(np.float32)
    return result


# ── from settings ───────────────────────────────────────────────────────────────────────────────

_LOCAL = ("lexical", "static", "minilm")  # those of ours that ask no server


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
