"""A model server asked through the openai package: its address, the key for it, and requests to it.

The only place that retries. Says what goes wrong in one line without secrets; knows nothing of what is asked.
"""

from __future__ import annotations

import base64
import json
import random
import re
import time
import weakref
from collections.abc import Callable, Mapping
from operator import attrgetter
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, parse_qsl, unquote, urljoin, urlsplit, urlunsplit

from infinimem.errors import ModelNotConfigured, ModelUnavailable, escape
from infinimem.model import Usage

if TYPE_CHECKING:
    import httpx2
    from openai import OpenAI

_OPENAI = "https://api.openai.com/v1"
FIRST_WAIT, _LONGEST_WAIT = 0.5, 60.0
"""Seconds; doubled from one try to the next."""
_LONGEST_TRY = 86_400.0
"""Seconds; sockets take no larger number."""
_AGAIN = frozenset({408, 409, 425, 429})
"""And every status from 500 up, but 501."""
_NOT_THIS_WAY = frozenset({400, 413, 415, 422, 501})
"""The server understood whom it speaks to, but not, or not so, what was asked."""
_ADVICE = {
    401: "does not accept the key; set OPENAI_API_KEY to a valid one",
    403: "denies this key the model {}; choose another one",
    404: "has no model {} at this address; check the name and base_url (it often ends in /v1)",
}
_TOO_LONG = re.compile(
    r"context.?(?:length|size|window)|maximum context|prompt is too long|too many (?:input )?tokens|"
    r"token count.{0,30}exceeds|"
    r"reduce the length|physical batch size",
    re.IGNORECASE,
)


class Refused(Exception):
    """The server does not take this request; another wording of it may do.

    Args:
        message: what the server says, without secrets.
        code: the name that it gives the error, or "".

    `too_long` says whether it is the length of what was sent, `other_call` whether the model answers the
    Responses API alone.
    """

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code
        self.too_long = bool(_TOO_LONG.search(f"{message} {code}"))
        self.other_call = "v1/responses" in message


class _Again(Exception):
    """A further try may help, after so many seconds at least."""

    def __init__(self, problem: str, wait: float = 0.0) -> None:
        super().__init__(problem)
        self.wait = wait


class Endpoint:
    """Where requests go and how patiently.

    Args:
        base_url: of the API; empty for OpenAI itself.
        key: servers at a `base_url` may do without.
        client: one that is ready, with the limits, proxies and address of its owner, in place of both; it
            does not retry by itself.
        model: name, for advice.
        largest: bytes of a reply.
        timeout: seconds for one try, from looking up the name to the last byte.
        retries: further tries after the first.
        instead: what to use where there is no key, for advice.
        sleep: waits; tests pass their own.
        jitter: a number from 0 to 1, so that many clients do not come back at once.

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
        sleep: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] = random.random,
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
        self._sleep, self._jitter = sleep, jitter
        self._given = client.with_options(max_retries=0) if client is not None else None
        self._in_time = "in time" if client is not None else f"within {self._timeout:g} s"
        self._own: OpenAI | None = None
        self._via = ""
        self._connecting = Lock()

    @property
    def host(self) -> str:
        """Host and port, without the credentials that a URL can carry."""
        return self._url.netloc.rpartition("@")[2]

    @property
    def address(self) -> str:
        """The base URL without credentials and query, for files and messages."""
        return f"{self._url.scheme}://{self.host}{self._url.path}"

    def close(self) -> None:
        """End connections that are kept; the next exchange makes a new one."""
        with self._connecting:
            own, self._own = self._own, None
        if own is not None:
            own.close()

    def ask(self, call: str, request: Mapping[str, Any]) -> Any:
        """Make a request until there is an answer.

        Args:
            call: of the openai package: "chat.completions", "responses" or "embeddings".
            request: its arguments.

        Returns:
            The JSON that came back, whatever it is.

        Raises:
            Refused: the request itself is not accepted.
            ModelUnavailable: no answer after all tries, or no hope of one.
            ModelNotConfigured: key, model name or address are wrong.
        """
        problem = ""
        for attempt in range(self._retries + 1):
            wait = min(FIRST_WAIT * 2**attempt, _LONGEST_WAIT) * (0.5 + self._jitter() / 2)
            try:
                return self._once(call, request)
            except _Again as again:
                problem = str(again)
                if attempt < self._retries:
                    self._sleep(max(wait, again.wait))
        if self._via:
            raise ModelUnavailable(
                f"the model at {self.host} does not answer through the proxy {self._via} ({problem}); check "
                "that the proxy runs, or name the host in NO_PROXY"
            )
        raise ModelUnavailable(
            f"the model at {self.host} does not answer ({problem}); check that it runs, and base_url (it "
            "often ends in /v1), then try again"
        )

    def _once(self, call: str, request: Mapping[str, Any]) -> Any:
        answer = self._exchange(call, request)
        if 300 <= answer.status_code < 400:
            raise ModelUnavailable(
                f"{self.host} redirects to {self._target(answer)}; that is not followed: set base_url to "
                "where the server is"
            )
        if not 200 <= answer.status_code < 300:
            raise self._failure(answer)
        try:
            reply = json.loads(answer.content)
        except RecursionError:
            raise ModelUnavailable(
                f"{self.host} answers with JSON that is too deep; check base_url"
            ) from None
        except ValueError:
            raise _Again("an answer that is cut off or not JSON") from None
        if isinstance(reply, dict) and isinstance(reply.get("error"), dict) and not reply.get("choices"):
            words = self._scrubbed(_complaint(answer.content)[0])  # of a relay whose server failed
            raise ModelUnavailable(f"{self.host} reports an error ({words}); try again")
        return reply

    def _exchange(self, call: str, request: Mapping[str, Any]) -> httpx2.Response:
        """One try, whatever the status of its answer."""
        # Importing the package takes a while: not before the first call.
        from openai import APIConnectionError, APIStatusError, APITimeoutError

        from infinimem.remote.bounded import NotTaken

        try:
            raw = attrgetter(call)(self._client()).with_raw_response.create(**request)
        except APIStatusError as error:
            return error.response
        except APITimeoutError as late:
            if getattr(late.__cause__, "begun", False):
                # The model has had its time; another try would take as long, and cost as much.
                raise ModelUnavailable(
                    f"the answer of {self.host} was not complete {self._in_time}; try again, or "
                    "set a longer timeout"
                ) from None
            raise _Again(f"no answer {self._in_time}") from None
        except APIConnectionError as error:
            if isinstance(error.__cause__, NotTaken):
                raise ModelUnavailable(f"{self.host} answers {error.__cause__}; check base_url") from None
            raise _Again(self._scrubbed(error.__cause__ or "") or "no connection") from None
        response: httpx2.Response = raw.http_response
        return response

    def _client(self) -> OpenAI:
        """The client that was given, or our own with bounded exchanges; it neither retries nor redirects."""
        with self._connecting:
            if self._given is not None:
                return self._given
            if self._own is None:
                import httpx2
                from openai import OpenAI

                from infinimem.remote.bounded import Transport

                place = self._url._replace(netloc=self.host, query="")
                try:
                    transport = Transport(urlunsplit(self._url), self._authorization, self._largest)
                except ValueError:
                    raise ModelNotConfigured(
                        "the proxy that the environment names is no HTTP proxy; correct it, or name the "
                        "host in NO_PROXY"
                    ) from None
                self._via = transport.via
                self._own = OpenAI(
                    api_key="none",
                    base_url=urlunsplit(place),
                    default_query=dict(parse_qsl(self._url.query, keep_blank_values=True)),
                    timeout=self._timeout,
                    max_retries=0,
                    http_client=httpx2.Client(
                        transport=transport,
                        trust_env=False,
                        follow_redirects=False,
                    ),
                )
                weakref.finalize(self, self._own.close)
            return self._own

    def _failure(self, answer: httpx2.Response) -> Exception:
        """The error to raise for a status other than success."""
        status, (message, code) = answer.status_code, _complaint(answer.content)
        refused = Refused(self._scrubbed(message) or f"HTTP {status}", code)
        refused.too_long = refused.too_long or status == 413
        if status in _NOT_THIS_WAY or (status >= 500 and refused.too_long) or refused.other_call:
            return refused
        if status == 402 or code == "insufficient_quota":
            return ModelUnavailable(f"the account at {self.host} has no credit left; top it up")
        if advice := _ADVICE.get(status):
            return ModelNotConfigured(f"{self.host} {advice.format(repr(escape(self._model)))}")
        if status in _AGAIN or status >= 500:
            return _Again(f"HTTP {status}", _retry_after(answer.headers.get("retry-after", "")))
        return ModelUnavailable(f"{self.host} answers with HTTP {status}; check base_url")

    def _target(self, answer: httpx2.Response) -> str:
        """Where a redirect points to: scheme and host, no more."""
        try:
            parts = urlsplit(urljoin(urlunsplit(self._url), answer.headers.get("location", "")))
        except ValueError:
            return "another address"
        return self._scrubbed(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}")

    def _scrubbed(self, text: object) -> str:
        """A foreign message as a short line without secrets."""
        line = str(text)
        for secret in self._secrets:  # before it is cut: half a key is one too many
            line = line.replace(secret, "***")
        return " ".join("".join(c if c.isprintable() else " " for c in line[:1000]).split())[:200]


def used(answer: Any) -> Usage:
    """What a call took, as the answer says; what is no number of tokens counts as none."""
    usage = answer.get("usage") if isinstance(answer, dict) else None
    told = usage if isinstance(usage, dict) else {}
    tokens = (
        told.get("prompt_tokens", told.get("input_tokens")),
        told.get("completion_tokens", told.get("output_tokens")),
    )
    return Usage(1, *(number if isinstance(number, int) and 0 < number < 1 << 53 else 0 for number in tokens))


def _parsed(url: str) -> SplitResult:
    """The parts of an address.

    Raises:
        ModelNotConfigured: it is none.
    """
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # half a bracket, a port beyond the last
        sound = False
    if not sound or not url.isascii() or not url.isprintable() or " " in url:
        raise ModelNotConfigured("base_url is no address; write it like http://localhost:11434/v1")
    return parts._replace(fragment="")


def _credentials(url: SplitResult, key: str) -> tuple[str, tuple[str, ...]]:
    """The Authorization header, from the address before the key, and what no message may hold."""
    keys = (
        key,
        *(value for _, value in parse_qsl(url.query) if len(value) > 11),
    )  # no `api-version=2024-10-21`
    if url.username is None:
        return (f"Bearer {key}" if key else ""), tuple(filter(None, keys))
    name, password = unquote(url.username), unquote(url.password or "")
    basic = base64.b64encode(f"{name}:{password}".encode()).decode()
    secrets = {*keys, url.password or "", password, basic} - {""}
    return f"Basic {basic}", tuple(sorted(secrets, key=len, reverse=True))


def _complaint(body: bytes) -> tuple[str, str]:
    """What a server says of an error, in OpenAI's form or another, and the name that it gives the error."""
    try:
        said = json.loads(body)
        error = said.get("error", said) if isinstance(said, dict) else said
        if isinstance(error, dict):
            return str(error.get("message") or error), str(error.get("code") or "")
        return str(error), ""
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace"), ""


def _retry_after(value: str) -> float:
    """Seconds that the server asks for, within reason; a date, or what is no number, asks for none."""
    try:
        seconds = float(value)
    except ValueError:
        return 0.0
    return min(seconds, _LONGEST_WAIT) if seconds > 0 else 0.0
