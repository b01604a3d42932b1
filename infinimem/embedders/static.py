"""One vector a token, averaged: a table, no network of layers, thousands of texts a second.

Its table is the one that the package wordllama carries, or that of a folder. Nothing of the package is run:
its loader may download, and importing it changes how the process logs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infinimem.embedders.base import readable, unit
from infinimem.embedders.local import files_in, folder_of, loading, missing

if TYPE_CHECKING:
    from infinimem.embedders.base import Matrix

PACKAGE = "wordllama"
_BATCH = 512


class Static:
    """The mean of the vectors of a text's tokens.

    Args:
        name: see `Embedder.name`.
        table: one row a token.
        tokenizer: of the package tokenizers.
    """

    semantic = True

    def __init__(self, name: str, table: Matrix, tokenizer: Any) -> None:
        self.name = name
        self.size = int(table.shape[1])
        self._table = table
        self._tokenizer = tokenizer

    def embed(self, texts: Sequence[str]) -> Matrix:
        """See `Embedder.embed`; a long text is read to its end."""
        import numpy as np

        rows = np.zeros((len(texts), self.size), dtype=np.float32)
        for start in range(0, len(texts), _BATCH):
            batch = [readable(text) if text.strip() else "" for text in texts[start : start + _BATCH]]
            found = self._tokenizer.encode_batch(batch, add_special_tokens=False)
            for at, encoded in enumerate(found, start):
                if encoded.ids:
                    ids = np.minimum(encoded.ids, len(self._table) - 1)
                    rows[at] = self._table[ids].mean(axis=0)
        return unit(rows)


def connect(path: Path | None = None) -> Static:
    """The table of a folder, or of the installed package.

    Args:
        path: holds one *.safetensors and tokenizer.json; None for the package.

    Raises:
        ModelNotConfigured: there is none, or it cannot be read.
    """
    if path is not None:
        return _load(path.name, *files_in(path, "static", "*.safetensors"))
    package = folder_of(PACKAGE)
    if package is None:
        raise missing("static", PACKAGE)
    weights = package / "weights" / "l2_supercat_256.safetensors"
    tokens = package / "tokenizers" / "l2_supercat_tokenizer_config.json"
    return _load("wordllama l2_supercat", weights, tokens)


@lru_cache(maxsize=2)
def _load(title: str, weights: Path, tokens: Path) -> Static:
    with loading("static", weights):
        import numpy as np
        from safetensors.numpy import load
        from tokenizers import Tokenizer

        data, rules = weights.read_bytes(), tokens.read_bytes()
        (table,) = load(data).values()  # anything beside a table of tokens would be ignored
        tokenizer = Tokenizer.from_buffer(rules)
        tokenizer.no_padding()
        tokenizer.no_truncation()
        digest = hashlib.blake2b(data + rules, digest_size=4).hexdigest()
        return Static(f"static {title} {table.shape[1]} {digest}", table.astype(np.float32), tokenizer)
