"""A model server asked through the openai package: its address, the key for it, and requests to it.

The package tries again; this says when it is no use, and what goes wrong, in one line without secrets.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit, urlunsplit

from infinimem.errors import ModelNotConfigured, ModelUnavailable, escape
from infinimem.model import Usage

if TYPE_CHECKING:
    import httpx2
    from openai import OpenAI

RESPONSES = "v1/responses"
"""What a refusal names if the model answers the Responses API alone."""
_OPENAI = "https://api.openai.com/v1"
_LONGEST_TRY = 86_400.0
"""Seconds; sockets take no larger number."""
_NOT_THIS_WAY = frozenset({400, 413, 415, 422, 501})
"""The server understood whom it speaks to, but not, or not so, what was asked."""
_ADVICE = {
    401: "does not accept the key; set OPENAI_API_KEY to a valid one",
    403: "denies this key the model {}; choose another one",
    404: "has no model {} at this address; check the name and base_url (it often ends in /v1)",
}
_TOO_LONG = re.compile(
    r"context.?(?:length|size|window)|maximum context|prompt is too long|too many (?:input )?tokens|"
    r"token count.{0,30}exceeds|reduce the length|physical batch size",
    re.IGNORECASE,
)


class Refused(Exception):
    """The server does not take this request; another wording of it may do."""

    def __init__(self, message: str, code: str, too_long: bool) -> None:
        super().__init__(message)
        self.code, self.too_long = code, too_long


class Endpoint:
    """Where requests go and how patiently.

    Args:
        base_url: of the API; empty for OpenAI itself.
        key: servers at a `base_url` may do without.
        client: one that is ready, with the limits, proxies and address of its owner, in place of both.
        timeout: seconds for one try, from looking up the name to the last byte.
        instead: what to use where there is no key, for advice.

    Raises:
        ModelNotConfigured: no key where one is needed, one that cannot be, or a `base_url` that is none.
    """

    def __init__(
        self,
        base_url: str | None,
        key: str | None,
        *,
        client: OpenAI | None = None,
        model: str,
        largest: int,
        timeout: float,
        retries: int,
        instead: str,
    ) -> None:
        base_url, key = (base_url or "").strip(), (key or "").strip()
        if client is not None:
            base_url, key = str(client.base_url), client.api_key
        elif not (base_url or key):
            raise ModelNotConfigured(
                f"the model {escape(model)!r} needs a key; set OPENAI_API_KEY, or OPENAI_BASE_URL for a "
                f"local server, or use {instead}"
            )
        if not (key.isascii() and key.isprintable()):
            raise ModelNotConfigured("the key holds characters that no key has; set OPENAI_API_KEY again")
        self._url = _parsed(base_url or _OPENAI)
        self._authorization, self._secrets = _credentials(self._url, key)
        self._model, self._largest, self._retries = model, largest, retries
        self._timeout = min(_LONGEST_TRY, timeout)  # in this order also where it is NaN
        self._client = client.with_options(max_retries=retries) if client is not None else None
        self.host = self._url.netloc.rpartition("@")[2]
        """With its port, without the credentials that a URL can carry."""
        self.address = f"{self._url.scheme}://{self.host}{self._url.path}"
        """The base URL without credentials and query, for files and messages."""

    def ask(self, call: str, request: Mapping[str, Any]) -> Any:
        """Make a request ("chat.completions", "responses" or "embeddings") until there is an answer; return
        its JSON.

        Raises:
            Refused: the request itself is not accepted.
            ModelUnavailable: no answer after all tries, or no hope of one.
            ModelNotConfigured: key, model name or address are wrong.
        """
        # Importing the package takes a while: not before the first call.
        from httpx2 import DecodingError
        from openai import APIConnectionError, APIStatusError

        self._client, failed = self._client or self._connect(), None
        try:
            raw = attrgetter(call)(self._client).with_raw_response.create(**request)
            return self._read(raw.http_response)
        except APIStatusError as error:
            failed, problem = error.response, f"HTTP {error.status_code}"
        except (APIConnectionError, DecodingError) as error:
            problem = self._scrubbed(error.__cause__ or error) or "no connection"
        if failed is not None:  # not while the package's error is handled: it may quote the key
            self._read(failed)
        raise ModelUnavailable(
            f"the model at {self.host} does not answer ({problem}); check that it runs, and base_url (it "
            "often ends in /v1), then try again"
        )

    def _connect(self) -> OpenAI:
        """Return our own client, whose exchanges are bounded and follow no redirects."""
        import httpx2
        from openai import OpenAI

        from infinimem.remote.bounded import Transport

        url = self._url
        transport = Transport(urlunsplit(url), self._authorization, self._largest, self._read)
        return OpenAI(
            api_key="none",
            base_url=urlunsplit(url._replace(netloc=self.host, query="")),
            default_query=dict(parse_qsl(url.query, keep_blank_values=True)),
            default_headers={"User-Agent": "infinimem", "Accept-Encoding": "identity"},
            timeout=self._timeout,
            max_retries=self._retries,
            http_client=httpx2.Client(transport=transport, trust_env=False, follow_redirects=False),
        )

    def _read(self, answer: httpx2.Response) -> Any:
        """Return the JSON of an answer; None if it is a failure that a further try may mend, and raise one
        that none does. httpx2.DecodingError: an answer that is cut off or not JSON."""
        from httpx2 import DecodingError

        status, data = answer.status_code, None
        if 300 <= status < 400:
            target = self._scrubbed(answer.headers.get("location", "another address"))
            raise ModelUnavailable(
                f"{self.host} redirects to {target}; that is not followed: set base_url to the right place"
            )
        try:
            data = json.loads(answer.content)
        except RecursionError:
            if answer.is_success:
                raise ModelUnavailable(
                    f"{self.host} answers with JSON that is too deep; check base_url"
                ) from None
        except ValueError:
            if answer.is_success:
                raise DecodingError("an answer that is cut off or not JSON") from None
        problem = at(data, "error")
        if answer.is_success and (not isinstance(problem, dict) or at(data, "choices")):
            return data
        problem = problem or data or answer.content[:1000].decode(errors="replace")
        message = self._scrubbed(at(problem, "message") or problem)
        if answer.is_success:  # of a relay whose server failed
            raise ModelUnavailable(f"{self.host} reports an error ({message}); try again")
        self._explain(status, message or f"HTTP {status}", str(at(problem, "code") or ""))
        return None

    def _explain(self, status: int, message: str, code: str) -> None:
        """Raise what no further try mends."""
        too_long = status == 413 or bool(_TOO_LONG.search(f"{message} {code}"))
        if status in _NOT_THIS_WAY or (status >= 500 and too_long) or RESPONSES in message:
            raise Refused(message, code, too_long)
        if status == 402 or code == "insufficient_quota":
            raise ModelUnavailable(f"the account at {self.host} has no credit left; top it up")
        if advice := _ADVICE.get(status):
            raise ModelNotConfigured(f"{self.host} {advice.format(repr(escape(self._model)))}")
        if status < 500 and status not in (408, 409, 429):
            raise ModelUnavailable(f"{self.host} answers with HTTP {status}; check base_url")

    def _scrubbed(self, text: object) -> str:
        """Return a foreign message as a short line without secrets."""
        line = str(text)
        for secret in self._secrets:  # before it is cut: half a key is one too many
            line = line.replace(secret, "***")
        return " ".join("".join(c if c.isprintable() else " " for c in line[:1000]).split())[:200]


def _parsed(url: str) -> SplitResult:
    """Return the parts of an address; ModelNotConfigured if it is none."""
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # half a bracket, a port beyond the last
        sound = False
    if not sound or not url.isascii() or not url.isprintable() or " " in url:
        raise ModelNotConfigured("base_url is no address; write it like http://localhost:11434/v1")
    return parts._replace(fragment="")


def _credentials(url: SplitResult, key: str) -> tuple[str, list[str]]:
    """Return the Authorization header, from the address before the key, and what no message may hold."""
    header = f"Bearer {key}" if key else ""
    secrets = {key, *(value for _, value in parse_qsl(url.query) if len(value) > 11)}  # no api-version
    if url.username is not None:
        name, password = unquote(url.username), unquote(url.password or "")
        basic = base64.b64encode(f"{name}:{password}".encode()).decode()
        header = f"Basic {basic}"
        secrets |= {url.password or "", password, basic}
    return header, sorted(secrets - {""}, key=len, reverse=True)


def at(data: Any, *path: str | int) -> Any:
    """Return what a server's JSON holds in a place; None if it has another shape."""
    for step in path:
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            return None
    return data


def used(answer: Any) -> Usage:
    """Return what a call took, as the answer says; what is no number of tokens counts as none."""

    def tokens(*names: str) -> int:
        number = next(filter(None, (at(answer, "usage", name) for name in names)), 0)
        return number if isinstance(number, int) and 0 < number < 1 << 53 else 0

    return Usage(1, tokens("prompt_tokens", "input_tokens"), tokens("completion_tokens", "output_tokens"))
