"""The seam: what an embedder is, and what all of them owe a text."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]
    Row = NDArray[np.float64]

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


MODELS = tomllib.loads(files(__package__).joinpath("models.toml").read_text("utf-8"))
"""What is known of models by their names."""


def prefix_of(model: str, kind: Kind) -> str:
    """Return what a model reads before a text of a kind; "" if it does not tell kinds apart."""
    row = next((row for row in MODELS["prefixes"] if re.search(row[0], model.casefold())), ("", "", ""))
    return str(row[1 if kind == "query" else 2])


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
