"""The seam to language models: one protocol, typed tasks, replies that carry their failure as data,
and the ceiling on what a client may spend.

A client never raises for what a model answered, only where it cannot be reached or is not configured
(errors.ModelError). It knows nothing of libraries, documents or plans.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from threading import Lock
from typing import Any, Literal, Protocol, runtime_checkable

from infinimem.errors import SpendingCapReached
from infinimem.model import Usage

Failure = Literal[
    "JSON_PARSE_FAIL", "SCHEMA_FAIL", "EMPTY", "TRUNCATED", "TOO_LONG", "REFUSED", "REASONING", "TOOL_CALL"
]
CUT = ("TRUNCATED", "TOO_LONG")
"""Of these less text may help: the reply did not fit, or the prompt did not."""


@dataclass(frozen=True)
class Task:
    """A language task: what is asked, of whom it is asked is the client's affair.

    Args:
        name: also the name of its template, prompts/<name>.md.
        variables: the names that its template uses, no more and no less.
        schema: JSON schema of the reply, an object.
        rule: "module:function" that answers without a model, given the variables.
        max_tokens: limit of the reply.
        prompts: the package that holds the template.
        logprobs: whether the log probabilities of the reply's tokens are wanted, where a server gives them.
    """

    name: str
    variables: frozenset[str]
    schema: Mapping[str, Any]
    rule: str
    max_tokens: int = 2048
    prompts: str = "infinimem.prompts"
    logprobs: bool = False


@dataclass(frozen=True)
class Reply:
    """What came back. `data` fits the task's schema, or is None and `failure` says why.

    `text` is the raw reply, kept so that a rejected one can be looked at; `logprobs` its tokens with the
    natural logarithms of their probabilities, where the task asks for them and the server tells.
    """

    data: Mapping[str, Any] | None
    failure: Failure | None = None
    detail: str = ""
    text: str = ""
    usage: Usage = field(default_factory=Usage)
    logprobs: tuple[tuple[str, float], ...] = ()


class Bill(dict[str, Usage]):
    """Usage by task name; several threads may book at a time."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = Lock()

    def book(self, task: str, used: Usage) -> None:
        """Add what a call took."""
        with self._lock:
            self[task] = self.get(task, Usage()) + used


@runtime_checkable
class LLM(Protocol):
    """A client. `name` goes into receipts, `usage` adds up per task name. Several threads may ask."""

    @property
    def name(self) -> str: ...

    @property
    def usage(self) -> dict[str, Usage]: ...

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        """Ask once.

        Args:
            task: the task; `variables` must hold exactly the names that it lists.
            variables: strings, or JSON values (rendered as JSON into the prompt).

        Raises:
            ValueError: a variable is missing or unused.
            ModelUnavailable: the endpoint does not answer.
            ModelNotConfigured: a key or a model name is missing.
        """
        ...


def total(usage: Mapping[str, Usage]) -> Usage:
    """The sum over all tasks."""
    return sum(tuple(usage.values()), Usage())  # a copy: another thread may book meanwhile


class Wrapper:
    """Goes by the name of the client that it asks, and has its usage; what derives from it says how it asks.

    Args:
        llm: the client.
    """

    def __init__(self, llm: LLM) -> None:
        self._llm = llm

    @property
    def name(self) -> str:
        return self._llm.name

    @property
    def usage(self) -> dict[str, Usage]:
        return self._llm.usage

    def close(self) -> None:
        """End connections, of a client that has any."""
        if close := getattr(self._llm, "close", None):
            close()


class Capped(Wrapper):
    """Passes calls on until a cap is reached; of calls side by side those under way are let end."""

    _ceiling: float | None = None

    def _spent(self) -> int:
        usage = total(self.usage)
        return usage.tokens_in + usage.tokens_out

    @contextmanager
    def cap(self, max_tokens: int | None) -> Iterator[None]:
        """For the time of the block, refuse calls once `max_tokens` are spent in it; None changes nothing."""
        before = self._ceiling
        if max_tokens is not None:
            self._ceiling = min(self._spent() + max_tokens, before if before is not None else inf)
        try:
            yield
        finally:
            self._ceiling = before

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        """Ask once; see `LLM.complete`.

        Raises:
            SpendingCapReached: the cap is spent; nothing was sent.
        """
        if self._ceiling is not None and self._spent() >= self._ceiling:
            raise SpendingCapReached("the token cap is spent; what was applied stays, raise the cap to go on")
        return self._llm.complete(task, variables)
