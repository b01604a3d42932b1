"""Vectors from any server with OpenAI's embeddings call: OpenAI, Ollama, vLLM, llama.cpp and others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from infinimem import tokens
from infinimem.embedders.base import MODELS, Kind, prefix_of, readable, unit
from infinimem.errors import ModelUnavailable
from infinimem.model import Usage
from infinimem.remote.endpoint import Endpoint, Refused, used

if TYPE_CHECKING:
    from infinimem.embedders.base import Matrix, Row

_MODEL = "text-embedding-3-small"
_TEXTS, _SHARE = 64, 1600  # of one request, characters of each; a server that takes less is asked in halves
_LARGEST = 8 * 1024 * 1024  # bytes of a reply: 64 vectors of 5,000 numbers, each written out in full
_WIDEST = 16_384  # numbers of a vector; no model gives as many
_LONGEST = 20_000  # characters of a text; what follows is left out
_SHORTEST = 200  # characters to which a text that is refused is cut before the server is given up


class OpenAIEmbedder:
    """A model of a server, text-embedding-3-small by default; arguments and errors as of `Endpoint`."""

    semantic = True

    def __init__(
        self,
        model: str | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 60.0,
        retries: int = 4,
    ) -> None:
        self.model = model or _MODEL
        self.usage: dict[str, Usage] = {}
        self._endpoint = Endpoint(
            base_url,
            api_key,
            model=self.model,
            largest=_LARGEST,
            timeout=timeout,
            retries=retries,
            instead="the embedder 'lexical'",
        )
        self.host = self._endpoint.host
        self._types: Mapping[Kind, str] = next(
            (told for name, told in MODELS["input_types"].items() if self.model.startswith(name)), {}
        )
        told = self._types.get("passage") or prefix_of(self.model, "passage").strip()
        self.name = f"openai {self.model} at {self.host}" + (f", {told}" if told else "")

    @cached_property
    def size(self) -> int:
        """See `Embedder.size`; of a model that is not known the server is asked once."""
        return MODELS["sizes"].get(self.model) or len(self._rows(["size"], "passage")[0])

    def embed(self, texts: Sequence[str], kind: Kind = "passage") -> Matrix:
        """See `Embedder.embed`; of a long text the first 20,000 characters count."""
        import numpy as np

        prefix = "" if self._types else prefix_of(self.model, kind)
        rows = np.zeros((len(texts), self.size), dtype=np.float32)
        asked = [at for at, text in enumerate(texts) if text.strip()]
        batches = tokens.packed(asked, _TEXTS * _SHARE, lambda at: max(_SHARE, min(len(texts[at]), _LONGEST)))
        for batch in batches:
            found = self._rows([prefix + readable(texts[at][:_LONGEST]) for at in batch], kind)
            if any(len(row) != self.size for row in found):
                raise ModelUnavailable(
                    f"{self.host} gives vectors of another size than before; check the model"
                )
            with np.errstate(over="ignore"):  # a number beyond float32 is infinite, and its row made zeros
                rows[batch] = found
        return unit(rows)

    def _rows(self, texts: list[str], kind: Kind) -> list[Row]:
        """Ask for these texts; if that is too much, for halves of them, then for the beginning of one."""
        try:
            return self._ask(texts, kind)
        except Refused as refusal:
            half, longest = len(texts) // 2, max(map(len, texts))
            if not half and longest <= _SHORTEST:
                raise ModelUnavailable(
                    f"{self.host} refuses to embed: {refusal}; check model and server"
                ) from None
        parts = [texts[:half], texts[half:]] if half else [[texts[0][: longest // 2]]]
        return [row for part in parts for row in self._rows(part, kind)]

    def _ask(self, texts: list[str], kind: Kind) -> list[Row]:
        import numpy as np

        request: dict[str, object] = {"model": self.model, "input": texts, "encoding_format": "float"}
        if self._types:
            request["extra_body"] = {"input_type": self._types[kind]}
        answer = self._endpoint.ask("embeddings", request)
        self.usage["embed"] = self.usage.get("embed", Usage()) + used(answer)
        try:
            data = sorted(answer["data"], key=lambda item: int(item["index"]))
            rows = [np.array(item["embedding"], dtype=np.float64) for item in data]
        except (KeyError, TypeError, ValueError, OverflowError):
            rows = []
        if len(rows) != len(texts) or not all(row.ndim == 1 and 0 < len(row) <= _WIDEST for row in rows):
            raise ModelUnavailable(
                f"{self.host} answers, but not with a vector a text; check base_url (it often ends in /v1)"
            )
        return rows
