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
from infinimem.embedders.packaged import folder_of
from infinimem.errors import ModelNotConfigured

if TYPE_CHECKING:
    from infinimem.embedders.base import Matrix

PACKAGE = "wordllama"
ADVICE = "run: pip install 'infinimem[static]'"
_TABLES = ("embedding.weight", "embeddings")
"""What wordllama and model2vec call their table."""
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
        path: holds one *.safetensors and its tokenizer's *.json; None for the package.

    Raises:
        ModelNotConfigured: there is none, or it cannot be read.
    """
    if path is None:
        package = folder_of(PACKAGE)
        if package is None:
            raise ModelNotConfigured(f"the embedder 'static' needs the package {PACKAGE}; {ADVICE}")
        weights = package / "weights" / "l2_supercat_256.safetensors"
        return _load(
            "wordllama l2_supercat", weights, package / "tokenizers" / "l2_supercat_tokenizer_config.json"
        )
    tables = sorted(path.glob("*.safetensors"))
    tokenizers = [*path.glob("tokenizer.json"), *sorted(path.glob("*tokenizer*.json"))]
    if len(tables) != 1 or not tokenizers:
        raise ModelNotConfigured(
            f"{path} is no model for 'static'; it holds one *.safetensors and tokenizer.json"
        )
    return _load(path.name, tables[0], tokenizers[0])


@lru_cache(maxsize=2)
def _load(title: str, weights: Path, tokens: Path) -> Static:
    try:
        import numpy as np
        from safetensors.numpy import load
        from tokenizers import Tokenizer
    except ImportError as error:
        raise ModelNotConfigured(f"the embedder 'static' needs the package {error.name}; {ADVICE}") from None
    try:
        data, rules = weights.read_bytes(), tokens.read_bytes()
        tensors = load(data)
        (table,) = (tensors.pop(name) for name in _TABLES if name in tensors)
        tokenizer = Tokenizer.from_buffer(rules)
    except Exception as error:  # of Rust, without a type of its own
        raise ModelNotConfigured(
            f"{weights.parent} holds no model for 'static' ({error}); {ADVICE}"
        ) from None
    if tensors or table.ndim != 2:
        raise ModelNotConfigured(f"{weights} holds more than a table of tokens; 'static' cannot use it")
    tokenizer.no_padding()
    tokenizer.no_truncation()
    digest = hashlib.blake2b(data + rules, digest_size=4).hexdigest()
    return Static(f"static {title} {table.shape[1]} {digest}", table.astype(np.float32), tokenizer)
