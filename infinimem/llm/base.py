"""The seam to language models: one protocol, typed tasks, replies that carry their failure as data.

A client never raises for what a model answered, only where it cannot be reached or is not configured
(errors.ModelError). It knows nothing of libraries, documents or plans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

from infinimem.errors import InfinimemError, ReplyAwaited
from infinimem.model import Usage

Failure = Literal[
    "JSON_PARSE_FAIL", "SCHEMA_FAIL", "EMPTY", "TRUNCATED", "TOO_LONG", "REFUSED", "REASONING", "TOOL_CALL"
]
OFFLINE = "offline"
AGENT = "agent"
"""The name of the model that is whoever works with the library (llm/agent.py)."""
CUT = ("TRUNCATED", "TOO_LONG")
"""Of these less text may help: the reply did not fit, or the prompt did not."""


@dataclass(frozen=True)
class Task:
    """A language task, by the name of its template, prompts/<name>.md in the package `prompts`.

    Args:
        variables: the names that its template uses, no more and no less.
        schema: JSON schema of the reply, an object.
        rule: "module:function" that answers without a model, given the variables.
        logprobs: whether the log probabilities of the reply's tokens are wanted, where a server gives them.
        draws: whether its reply says what its `turns` tell, and leaves only those out that tell nothing.
        model: the model of the client's server that is asked in place of the client's own, if any; a client
            that knows but one asks that.
    """

    name: str
    variables: frozenset[str]
    schema: Mapping[str, Any]
    rule: str
    max_tokens: int = 2048
    prompts: str = "infinimem.prompts"
    logprobs: bool = False
    draws: bool = False
    model: str = ""


@dataclass(frozen=True)
class Reply:
    """What came back. `data` fits the task's schema, or is None and `failure` says why; `text` is the raw
    reply, `logprobs` its tokens with the natural logarithms of their probabilities. If it was `kept`
    nobody was asked, and `usage` is what it once took; `by` is the agent that gave it, if that is known."""

    data: Mapping[str, Any] | None
    failure: Failure | None = None
    detail: str = ""
    text: str = ""
    usage: Usage = field(default_factory=Usage)
    logprobs: tuple[tuple[str, float], ...] = ()
    kept: bool = False
    by: str = ""


@runtime_checkable
class LLM(Protocol):
    """A client. `name` goes into receipts. Several threads may ask."""

    @property
    def name(self) -> str: ...

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        """Ask once; `variables` (strings, or JSON values) hold exactly the names that the task lists.

        Raises:
            ValueError: a variable is missing or unused.
            ModelUnavailable: the endpoint does not answer.
            ModelNotConfigured: a key or a model name is missing.
        """


class Wrapper:
    """Goes by the name of the client that it asks; what derives from it says how it asks."""

    def __init__(self, llm: LLM) -> None:
        self._llm = llm

    @property
    def name(self) -> str:
        return self._llm.name


class Nobody:
    """Stands for a model that is not asked, and makes the error that says why."""

    def __init__(self, name: str, base_url: str | None, why: Callable[[], InfinimemError]) -> None:
        self.name, self.base_url, self._why = name, base_url, why

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        """See `LLM.complete`; raises what `why` makes."""
        raise self._why()


Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(
    call: Callable[[Item], Result],
    items: Sequence[Item],
    workers: int,
    ended: Callable[[], object] = lambda: None,
) -> list[Result]:
    """Return the result of a call for each item, whatever the order in which they end, `workers` at a time.

    Each runs in a copy of the caller's context. After an error or a Ctrl-C `ended` is called before calls
    under way are waited for, what the first item raised is raised, and calls that have not begun never do.
    Where replies of an agent are awaited all are called, and one error says what for.
    """
    from concurrent.futures import ThreadPoolExecutor
    from contextvars import copy_context

    if workers < 2 or len(items) < 2:
        return _results([partial(call, item) for item in items])
    with ThreadPoolExecutor(min(workers, len(items))) as pool:
        waiting = [pool.submit(copy_context().run, call, item) for item in items]
        try:
            return _results([one.result for one in waiting])
        except BaseException:
            ended()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _results(calls: Iterable[Callable[[], Result]]) -> list[Result]:
    results: list[Result] = []
    asked: list[tuple[Any, Any]] = []
    for call in calls:
        try:
            results.append(call())
        except ReplyAwaited as awaited:
            asked += awaited.asked
    if asked:
        raise ReplyAwaited(asked)
    return results
