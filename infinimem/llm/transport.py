"""One request to a model server that may be busy, gone, or of another mind. The only place that retries.

Knows the errors of the openai package and says them in one line; knows nothing of tasks and prompts.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

from infinimem.errors import ModelError, ModelNotConfigured, ModelUnavailable

T = TypeVar("T")

_FIRST_WAIT, _LONGEST_WAIT = 0.5, 60.0
"""Seconds; doubled from one try to the next."""
_AGAIN = frozenset({408, 409, 425, 429})
"""And every status from 500 up, but 501."""
_NOT_THIS_WAY = frozenset({400, 413, 415, 422, 501})
"""The server understood whom it speaks to, but not, or not so, what was asked."""


class Refused(Exception):
    """The server does not take this request; another wording of it may do."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Endpoint:
    """Where requests go and how patiently.

    Args:
        base_url: of the API.
        secrets: texts that never appear in a message.
        model: name, for advice.
        timeout: seconds for one try.
        retries: further tries after the first.
        sleep: waits; tests pass their own.
        jitter: a number from 0 to 1, so that many clients do not come back at once.
    """

    base_url: str
    secrets: tuple[str, ...]
    model: str
    timeout: float
    retries: int
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = random.random

    @property
    def host(self) -> str:
        """Host and port, without the credentials that a URL can carry."""
        return urlsplit(self.base_url).netloc.rpartition("@")[2]

    def call(self, send: Callable[[], T]) -> T:
        """Send until there is an answer.

        Raises:
            Refused: the request itself is not accepted.
            ModelUnavailable: no answer after all tries, or no hope of one.
            ModelNotConfigured: key, model name or address are wrong.
        """
        import openai

        for attempt in range(self.retries + 1):
            wait = min(_FIRST_WAIT * 2**attempt, _LONGEST_WAIT) * (0.5 + self.jitter() / 2)
            try:
                return send()
            except openai.APIStatusError as error:
                if final := self._final(error):
                    raise final from None
                problem = f"HTTP {error.status_code}"
                wait = max(wait, _retry_after(error))
            except openai.APITimeoutError:
                problem = f"no answer within {self.timeout:g} s"
            except openai.APIConnectionError as error:
                problem = self.scrubbed(error.__cause__ or "no connection")
            except (openai.APIError, ValueError):
                problem = "an answer that is cut off or not JSON"
            if attempt < self.retries:
                self.sleep(wait)
        raise ModelUnavailable(
            f"the model at {self.host} does not answer ({problem}); check that it runs, then try again"
        )

    def scrubbed(self, text: object) -> str:
        """A foreign message as a short line without secrets."""
        line = " ".join(str(text).split())
        for secret in self.secrets:
            line = line.replace(secret, "***")
        return line[:200]

    def _final(self, error: Any) -> Exception | None:
        """The error to raise at once; None where a further try may help."""
        status, code = error.status_code, str(error.code or "")
        message = error.body.get("message") if isinstance(error.body, dict) else None
        if status in _NOT_THIS_WAY:
            return Refused(self.scrubbed(message or error.body or error.message), code)
        if advice := self._advice(status, code):
            return advice
        if status in _AGAIN or status >= 500:
            return None
        return ModelUnavailable(f"{self.host} answers with HTTP {status}; check base_url")

    def _advice(self, status: int, code: str) -> ModelError | None:
        if status == 401:
            return ModelNotConfigured(
                f"{self.host} does not accept the key; set OPENAI_API_KEY to a valid one"
            )
        if status == 403:
            return ModelNotConfigured(
                f"{self.host} denies this key the model {self.model!r}; choose another one"
            )
        if status == 404:
            return ModelNotConfigured(
                f"{self.host} has no model {self.model!r} at this address; check the name of the model and "
                "base_url (it often ends in /v1)"
            )
        if status == 402 or code == "insufficient_quota":
            return ModelUnavailable(
                f"the account at {self.host} has no credit left; top it up or change the model"
            )
        return None


def _retry_after(error: Any) -> float:
    """Seconds that the server asks for, within reason."""
    try:
        return min(float(error.response.headers.get("retry-after", 0)), _LONGEST_WAIT)
    except ValueError:
        return 0.0
