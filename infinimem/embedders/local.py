"""What local models share: where their files are, and a one-line error when they are not usable."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from infinimem.errors import ModelNotConfigured

TOKENIZER = "tokenizer.json"


def folder_of(package: str) -> Path | None:
    """The folder of an installed package, found without running it; None if it is not installed."""
    try:
        found = find_spec(package)
    except (ImportError, ValueError):
        return None
    places = list(found.submodule_search_locations or ()) if found else []
    return Path(places[0]) if places else None


def files_in(folder: Path, name: str, weights: str) -> tuple[Path, Path]:
    """The weights and the tokenizer of a model's folder.

    Args:
        folder: holds one file of weights (itself, or in "onnx") and tokenizer.json.
        name: of the embedder, for messages.
        weights: a pattern such as "*.onnx".

    Raises:
        ModelNotConfigured: the folder holds no such files.
    """
    found = sorted(folder.glob(weights)) or sorted(folder.glob(f"onnx/{weights}"))
    if len(found) != 1 or not (folder / TOKENIZER).is_file():
        raise ModelNotConfigured(f"{folder} is no model for {name!r}; it holds one {weights} and {TOKENIZER}")
    return found[0], folder / TOKENIZER


def missing(name: str, package: str) -> ModelNotConfigured:
    """The error for a package that is not installed."""
    return ModelNotConfigured(
        f"the embedder {name!r} needs the package {package}; run: pip install 'infinimem[{name}]'"
    )


@contextmanager
def loading(name: str, weights: Path) -> Iterator[None]:
    """Raise ModelNotConfigured, in one line, for whatever goes wrong while a model is loaded in the block."""
    try:
        yield
    except ImportError as error:
        raise missing(name, str(error.name)) from None
    except Exception as error:  # C++ and Rust libraries raise plain exceptions
        reason = " ".join(str(error).split())[:200]
        raise ModelNotConfigured(f"{weights} is no model for {name!r} ({reason}); install it again") from None


class Network:
    """A network of onnxruntime, on one thread, with its tokenizer.

    Args:
        weights, rules: what its two files hold.
        longest: tokens that it was made for; of a longer text it reads the beginning.
    """

    def __init__(self, weights: bytes, rules: bytes, longest: int) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
        self._inputs = {item.name for item in self._session.get_inputs()}
        self._tokenizer = Tokenizer.from_buffer(rules)
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(longest)
        self.size = int(self._session.get_outputs()[0].shape[-1])

    def run(self, text: str, pair: str | None = None) -> Any:
        """What it says of a text, or of two together; None where no token of theirs is known."""
        import numpy as np

        encoded = self._tokenizer.encode(text, pair)
        if all(encoded.special_tokens_mask):
            return None
        given = {
            "input_ids": encoded.ids,
            "attention_mask": encoded.attention_mask,
            "token_type_ids": encoded.type_ids,
        }
        feed = {name: np.array([values], np.int64) for name, values in given.items() if name in self._inputs}
        return self._session.run(None, feed)[0][0]
