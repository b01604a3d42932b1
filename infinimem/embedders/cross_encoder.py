"""How well texts answer a question, each read together with it: a cross-encoder with onnxruntime.

Its files come from a folder of the user's; no such model comes with the program, and nothing is downloaded.
Source of the kind: huggingface.co/cross-encoder/ms-marco-MiniLM-L-6-v2.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from math import exp
from pathlib import Path

from infinimem.embedders.base import readable
from infinimem.embedders.local import Network, files_in, loading

_LONGEST = 512
"""Tokens of question and text together."""
_FAR = 30.0
"""A logit beyond it is as good as certain."""


class CrossEncoder:
    """Gives one logit to a question and a text.

    Args:
        network: of the model.
    """

    def __init__(self, network: Network) -> None:
        self._network = network

    def probabilities(self, question: str, texts: Iterable[str]) -> list[float]:
        """How likely each text answers the question, to 6 decimals: a sigmoid of its logit."""
        return [self._probability(question, text) for text in texts]

    def _probability(self, question: str, text: str) -> float:
        said = self._network.run(readable(question), readable(text))
        logit = 0.0 if said is None else float(said.reshape(-1)[-1])
        return round(1 / (1 + exp(-max(-_FAR, min(logit, _FAR)))), 6)


@lru_cache(maxsize=1)
def connect(path: Path) -> CrossEncoder:
    """The model of a folder.

    Args:
        path: holds one *.onnx (itself, or in "onnx") and tokenizer.json.

    Raises:
        ModelNotConfigured: there is none, or it cannot be read.
    """
    weights, rules = files_in(path, "cross-encoder", "*.onnx")
    with loading("minilm", weights):  # which needs the same packages
        return CrossEncoder(Network(weights.read_bytes(), rules.read_bytes(), _LONGEST))
