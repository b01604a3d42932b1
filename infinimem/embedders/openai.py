"""Vectors from any server with OpenAI's embeddings call: OpenAI, Ollama, vLLM, llama.cpp and others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from infinimem.embedders.base import readable, unit
from infinimem.errors import ModelNotConfigured, ModelUnavailable
from infinimem.model import Usage

if TYPE_CHECKING:
    from infinimem.embedders.base import Matrix

_OPENAI = "https://api.openai.com/v1"
_MODEL = "text-embedding-3-small"
_SIZES = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}
"""Source: OpenAI's page on embeddings; the size of another model is asked of the server."""
_TEXTS, _CHARACTERS = 256, 100_000
"""Of one request. A server that takes less is asked in halves."""
_LONGEST = 20_000
"""Characters of a text; what follows is left out."""
_SHORTEST = 200
"""Characters to which a text that is refused is cut before the server is given up."""
_NOT_SO_MUCH = frozenset({400, 413, 422, 500})
"""What servers answer where a request is too large; llama.cpp says 500."""


class OpenAIEmbedder:
    """A model behind a server.

    Args:
        model: name that the server knows; None takes text-embedding-3-small.
        base_url: of the API; None for OpenAI itself.
        api_key: servers at a `base_url` may do without.
        timeout: seconds for one try.
        retries: further tries after a failure in transport.

    Raises:
        ModelNotConfigured: no key where one is needed, one that cannot be, or a `base_url` that is none.
    """

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
        self._url, self._key = (base_url or "").strip(), (api_key or "").strip()
        if not (self._url or self._key):
            raise ModelNotConfigured(
                "the embedder 'openai' needs a key; set OPENAI_API_KEY, or base_url for a local server"
            )
        if not (self._key.isascii() and self._key.isprintable()):
            raise ModelNotConfigured("the key holds characters that no key has; set OPENAI_API_KEY again")
        try:
            parts = urlsplit(self._url or _OPENAI)
            is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:  # half a bracket, a port beyond the last
            is_address = False
        if not is_address:
            raise ModelNotConfigured("base_url is no address; write it like http://localhost:11434/v1")
        self.host = parts.netloc.rpartition("@")[2]
        self._secrets = tuple(secret for secret in (self._key, parts.password) if secret)
        self.name = f"openai {self.model} at {self.host}"
        self._timeout, self._retries = timeout, retries

    def __repr__(self) -> str:
        return f"OpenAIEmbedder({self.name!r})"

    @cached_property
    def size(self) -> int:
        """See `Embedder.size`; of a model that is not known the server is asked once."""
        return _SIZES.get(self.model) or len(self._rows(["size"])[0])

    def embed(self, texts: Sequence[str]) -> Matrix:
        """See `Embedder.embed`; of a long text the first 20,000 characters count."""
        import numpy as np

        rows = np.zeros((len(texts), self.size), dtype=np.float32)
        asked = [at for at, text in enumerate(texts) if text.strip()]
        for batch in _batches(asked, texts):
            found = self._rows([readable(texts[at][:_LONGEST]) for at in batch])
            if any(len(row) != self.size for row in found):
                raise ModelUnavailable(
                    f"{self.host} gives vectors of another size than before; check the model"
                )
            rows[batch] = found
        return unit(rows)

    def _rows(self, texts: list[str]) -> list[list[float]]:
        """Ask for these texts; where that is too much, for halves of them, then for the beginning of one."""
        import openai

        try:
            return self._ask(texts)
        except openai.APIStatusError as error:
            longest = max(map(len, texts))
            if error.status_code not in _NOT_SO_MUCH or (len(texts) == 1 and longest <= _SHORTEST):
                raise self._told(error) from None
        except openai.APIError as error:
            raise self._told(error) from None
        except ValueError:  # not JSON
            raise self._no_vectors() from None
        if len(texts) == 1:
            return self._rows([texts[0][: longest // 2]])
        half = len(texts) // 2
        return self._rows(texts[:half]) + self._rows(texts[half:])

    def _ask(self, texts: list[str]) -> list[list[float]]:
        answer = self._client.embeddings.create(model=self.model, input=texts, encoding_format="float")
        used = getattr(getattr(answer, "usage", None), "prompt_tokens", 0) or 0
        self.usage["embed"] = self.usage.get("embed", Usage()) + Usage(1, used, 0)
        data = getattr(answer, "data", None) or []
        rows = [item.embedding for item in sorted(data, key=lambda item: item.index)]
        if len(rows) != len(texts) or not all(isinstance(row, list) and row for row in rows):
            raise self._no_vectors()
        return rows

    @cached_property
    def _client(self) -> Any:
        import openai

        return openai.OpenAI(
            api_key=self._key or "none",
            base_url=self._url or _OPENAI,
            timeout=self._timeout,
            max_retries=self._retries,
        )

    def _no_vectors(self) -> ModelUnavailable:
        return ModelUnavailable(
            f"{self.host} answers, but not with a vector a text; check base_url (it often ends in /v1)"
        )

    def _told(self, error: Exception) -> ModelNotConfigured | ModelUnavailable:
        """The error in one line without key and password."""
        import openai

        if isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError):
            return ModelNotConfigured(
                f"{self.host} does not accept the key; set OPENAI_API_KEY to a valid one"
            )
        if isinstance(error, openai.NotFoundError):
            return ModelNotConfigured(
                f"{self.host} gives no vectors of {self.model!r} at this address; check model and base_url"
            )
        reason = " ".join(str(error).split())
        for secret in self._secrets:  # before it is cut: half a key is one too many
            reason = reason.replace(secret, "***")
        return ModelUnavailable(
            f"the embedder at {self.host} does not answer ({reason[:200]}); check that it runs"
        )


def _batches(places: Sequence[int], texts: Sequence[str]) -> Iterator[list[int]]:
    """Places of texts that go into one request."""
    batch: list[int] = []
    room = _CHARACTERS
    for at in places:
        size = min(len(texts[at]), _LONGEST)
        if batch and (len(batch) == _TEXTS or size > room):
            yield batch
            batch, room = [], _CHARACTERS
        batch.append(at)
        room -= size
    if batch:
        yield batch
