"""Models behind any OpenAI-compatible server: OpenAI, Azure, Ollama, vLLM, llama.cpp and others.

Asks for JSON in the strictest way that the server takes and remembers which one that is. It knows
nothing of HTTP and retries (remote/) or of how JSON is found in text (reading.py).
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from infinimem.errors import ModelNotConfigured, ModelUnavailable
from infinimem.llm import reading, tasks
from infinimem.llm.base import Failure, Reply, Task
from infinimem.llm.tasks import Prompt
from infinimem.model import KINDS
from infinimem.remote.endpoint import Endpoint, Refused, used

if TYPE_CHECKING:
    from openai import OpenAI

_LARGEST = 4 * 1024 * 1024
"""Bytes of a reply: four times the longest text that reading.py takes."""
_REASONING_ROOM = 8192
"""Tokens on top of a task's limit for models that count their thinking as reply."""


@dataclass(frozen=True)
class Dialect:
    """How a server wants to be asked; every refusal leads to the next weaker one."""

    format: Literal["json_schema", "json_object", "text"] = "json_schema"
    temperature: bool = True
    limit: Literal["max_tokens", "max_completion_tokens", "none"] = "max_tokens"
    logprobs: bool = True
    call: Literal["chat.completions", "responses"] = "chat.completions"

    def after(self, refusal: Refused) -> Dialect | None:
        """What to try after a refusal; None if there is nothing left."""
        message = str(refusal)
        if refusal.other_call and self.call == "chat.completions":
            return replace(self, call="responses")
        if "max_completion_tokens" in message and self.limit == "max_tokens":
            return replace(self, limit="max_completion_tokens")
        if "temperature" in message and self.temperature:
            return replace(self, temperature=False)
        if "logprobs" in message and self.logprobs:
            return replace(self, logprobs=False)
        if self.format == "json_schema":
            return replace(self, format="json_object")
        if self.format == "json_object":
            return replace(self, format="text")
        return None

    def request(self, task: Task, prompt: Prompt) -> dict[str, Any]:
        """The arguments of the call, beside the model."""
        request: dict[str, Any] = {"temperature": 0} if self.temperature else {}
        schema = {"name": task.name, "strict": _strict(task.schema), "schema": task.schema}
        if self.call == "responses":  # its models think
            limit = {"max_output_tokens": task.max_tokens + _REASONING_ROOM} if self.limit != "none" else {}
            form = {
                "json_schema": {"type": "json_schema", **schema},
                "json_object": {"type": "json_object"},
                "text": {"type": "text"},
            }[self.format]
            told = {"instructions": prompt.system, "input": prompt.user, "text": {"format": form}}
            return {**request, **limit, **told, "store": False}
        request["messages"] = [
            {"role": "system", "content": prompt.system},
            {"role": "user", "content": prompt.user},
        ]
        if task.logprobs and self.logprobs:
            request["logprobs"] = True
        if self.format == "json_schema":
            request["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif self.format == "json_object":
            request["response_format"] = {"type": "json_object"}
        if self.limit == "max_tokens":
            request["max_tokens"] = task.max_tokens
        elif self.limit == "max_completion_tokens":
            request["max_completion_tokens"] = task.max_tokens + _REASONING_ROOM
        return request


class OpenAIClient:
    """A model behind the chat completions API.

    Args:
        model: name that the server knows.
        base_url: of the API; default is $OPENAI_BASE_URL, then OpenAI itself.
        api_key: default is $OPENAI_API_KEY; servers at a `base_url` may do without.
        timeout: seconds for one try, from looking up the name to the last byte of the reply.
        retries: further tries after a failure in transport.
        client: a ready one of the openai package, in place of `base_url` and `api_key`; what it sends, where
            and within which limits is its owner's choice.
        sleep, jitter: see remote.endpoint.Endpoint.

    Raises:
        ModelNotConfigured: no key where one is needed, or a `base_url` that is none.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 60.0,
        retries: int = 4,
        *,
        client: OpenAI | None = None,
        sleep: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        if not model.strip():
            raise ModelNotConfigured(
                "the model's name is empty; set INFINIMEM_MODEL or use the model 'offline'"
            )
        self.name = model
        self._endpoint = Endpoint(
            base_url or os.environ.get("OPENAI_BASE_URL"),
            api_key or os.environ.get("OPENAI_API_KEY"),
            client=client,
            model=model,
            largest=_LARGEST,
            timeout=timeout,
            retries=retries,
            instead="the model 'offline'",
            sleep=sleep,
            jitter=jitter,
        )
        self._dialect = Dialect()

    @property
    def base_url(self) -> str:
        """Of the API, without credentials."""
        return self._endpoint.address

    def close(self) -> None:
        """End connections that are kept; the next call makes a new one."""
        self._endpoint.close()

    def __repr__(self) -> str:
        return f"OpenAIClient({self.name!r} at {self._endpoint.host})"

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        """Ask once; see `LLM.complete`."""
        tasks.check(task.name, task.variables, variables)
        prompt = tasks.render(task, variables)
        try:
            response = self._ask(task, prompt)
        except Refused as refusal:
            if refusal.too_long:
                return Reply(None, "TOO_LONG", "the prompt is too long for the model's context")
            if "content" in refusal.code:  # content_filter, content_policy_violation
                return Reply(None, "REFUSED", f"the server's content filter refused: {refusal}")
            raise ModelUnavailable(f"{self._endpoint.host} refuses the request: {refusal}") from None
        return self._reply(task, response)

    def _ask(self, task: Task, prompt: Prompt) -> Any:
        """Ask in the dialect that worked last, or in weaker ones until one is understood."""
        dialect = self._dialect
        while True:
            try:
                request = {"model": self.name, **dialect.request(task, prompt)}
                response = self._endpoint.ask(dialect.call, request)
            except Refused as refusal:
                weaker = _for_this_prompt(dialect, refusal) or dialect.after(refusal)
                if weaker is None or _hopeless(refusal, dialect):
                    raise
                dialect = weaker
                continue
            if dialect.limit != "none":  # what one long prompt needed is no trait of the server
                self._dialect = dialect
            return response

    def _reply(self, task: Task, response: Any) -> Reply:
        choice, message = _first(response)
        if choice is None:
            raise ModelUnavailable(
                f"{self._endpoint.host} answers, but not as an OpenAI-compatible server; check base_url "
                "(it often ends in /v1)"
            )
        spent = used(response)
        text = "".join(text for kind, text in _parts(message.get("content")) if kind == "text")
        if choice.get("finish_reason") == "length":
            return Reply(None, "TRUNCATED", "the reply hit its token limit", text, spent)
        reply = reading.read(text, task.schema)
        if reply.data is None and (kind := _instead(choice, message, empty=not text.strip())):
            reply = replace(reply, failure=kind, detail=KINDS[kind])
        return replace(reply, usage=spent, logprobs=_logprobs(choice) if task.logprobs else ())


def _parts(content: Any) -> list[tuple[str, str]]:
    """A message's content, a text or a list of parts, as kinds and texts."""
    parts = content if isinstance(content, list) else [content]
    rows = (part if isinstance(part, dict) else {"text": part} for part in parts)
    found = ((str(row.get("type", "text")).removeprefix("output_"), row.get("text")) for row in rows)
    return [(kind, text if isinstance(text, str) else "") for kind, text in found]


def _instead(choice: Mapping[str, Any], message: Mapping[str, Any], empty: bool) -> Failure | None:
    """What came in place of an answer that can be read, where the server says so."""
    kinds = {kind for kind, _ in _parts(message.get("content"))}
    if message.get("refusal") or "refusal" in kinds or choice.get("finish_reason") == "content_filter":
        return "REFUSED"
    if empty and (message.get("tool_calls") or message.get("function_call")):
        return "TOOL_CALL"
    told = message.get("reasoning") or message.get("reasoning_content") or kinds & {"thinking", "reasoning"}
    return "REASONING" if empty and told else None


def _logprobs(choice: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    """The tokens of a choice with their log probabilities; none where the server tells them otherwise."""
    found = choice.get("logprobs")
    rows = found.get("content") if isinstance(found, dict) else None
    try:
        return tuple((str(row["token"]), float(row["logprob"])) for row in rows or ())
    except (KeyError, TypeError, ValueError):
        return ()


def _first(response: Any) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """The first choice of a completion and its message; None where it is no completion."""
    if isinstance(response, dict) and response.get("object") == "response":
        response = {"choices": [_as_choice(response)]}
    choices = response.get("choices") if isinstance(response, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        return None, {}
    message = choice.get("message")
    return choice, message if isinstance(message, dict) else {}


def _as_choice(response: Mapping[str, Any]) -> dict[str, Any]:
    """A response of the Responses API as the choice of a completion."""
    output = response.get("output")
    items = [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []
    contents = [item.get("content") for item in items if item.get("type") == "message"]
    reasons = {"max_output_tokens": "length", "content_filter": "content_filter"}
    details = response.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    message = {
        "content": [part for content in contents if isinstance(content, list) for part in content],
        "reasoning": any(item.get("type") == "reasoning" for item in items),
        "tool_calls": any(item.get("type") == "function_call" for item in items),
    }
    return {"message": message, "finish_reason": reasons.get(str(reason), "stop")}


def _for_this_prompt(dialect: Dialect, refusal: Refused) -> Dialect | None:
    """Some servers count the limit of the reply against the context: without one, what is left is used."""
    if dialect.limit != "none" and refusal.too_long:
        return replace(dialect, limit="none")
    return None


def _hopeless(refusal: Refused, dialect: Dialect) -> bool:
    """Whether the prompt itself is refused, so that asking in another way changes nothing."""
    return "content" in refusal.code or (dialect.limit == "none" and refusal.too_long)


def _strict(schema: Mapping[str, Any]) -> bool:
    """Whether every object in a schema is closed and needs all that it names, which strict mode demands."""
    if schema.get("type") == "object" and (
        schema.get("additionalProperties") is not False
        or schema.get("properties", {}).keys() != set(schema.get("required", ()))
    ):
        return False
    children = [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]
    return all(_strict(child) for child in children)
