"""Models behind any OpenAI-compatible server: OpenAI, Azure, Ollama, vLLM, llama.cpp and others.

Asks for JSON in the strictest way that the server takes and remembers which one that is. It knows
nothing of HTTP and retries (remote/) or of how JSON is found in text (tasks.py).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal

from infinimem.errors import ModelNotConfigured, ModelUnavailable
from infinimem.llm import tasks
from infinimem.llm.base import Failure, Reply, Task
from infinimem.llm.tasks import Prompt
from infinimem.model import KINDS
from infinimem.remote.endpoint import RESPONSES, Endpoint, Refused, at, used

if TYPE_CHECKING:
    from openai import OpenAI

_LARGEST = 4 * 1024 * 1024
"""Bytes of a reply: four times the longest text that tasks.py takes."""
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
        """Return what to try after a refusal; None if there is nothing left."""
        message = str(refusal)
        if "content" in refusal.code:  # content_filter, content_policy_violation: it is the prompt itself
            return None
        if refusal.too_long:  # some count the reply's limit against the context: without one the rest is used
            return replace(self, limit="none") if self.limit != "none" else None
        if RESPONSES in message and self.call == "chat.completions":
            return replace(self, call="responses")
        if "max_completion_tokens" in message and self.limit == "max_tokens":
            return replace(self, limit="max_completion_tokens")
        if "temperature" in message and self.temperature:
            return replace(self, temperature=False)
        if "logprobs" in message and self.logprobs:
            return replace(self, logprobs=False)
        if self.format == "text":
            return None
        return replace(self, format="json_object" if self.format == "json_schema" else "text")

    def request(self, task: Task, prompt: Prompt) -> dict[str, Any]:
        """Return the arguments of the call, beside the model."""
        request: dict[str, Any] = {"temperature": 0} if self.temperature else {}
        schema = {"name": task.name, "strict": _strict(task.schema), "schema": task.schema}
        has_schema, thinking = self.format == "json_schema", task.max_tokens + _REASONING_ROOM
        if self.call == "responses":  # its models think
            form = {"type": self.format, **(schema if has_schema else {})}
            limit = {"max_output_tokens": thinking} if self.limit != "none" else {}
            body = {"instructions": prompt.system, "input": prompt.user, "text": {"format": form}}
            return {**request, **limit, **body, "store": False}
        roles = {"system": prompt.system, "user": prompt.user}
        request["messages"] = [{"role": role, "content": text} for role, text in roles.items()]
        if task.logprobs and self.logprobs:
            request["logprobs"] = True
        if self.format != "text":
            request["response_format"] = {
                "type": self.format,
                **({"json_schema": schema} if has_schema else {}),
            }
        if self.limit != "none":
            request[self.limit] = task.max_tokens if self.limit == "max_tokens" else thinking
        return request


class OpenAIClient:
    """A model behind the chat completions API, or the Responses API if it answers that alone.

    Address and key are those of OPENAI_BASE_URL and OPENAI_API_KEY unless given; all else as of `Endpoint`.

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
    ) -> None:
        if not model.strip():
            raise ModelNotConfigured(
                "the model's name is empty; set INFINIMEM_MODEL or use the model 'offline'"
            )
        self.name = model
        like = partial(OpenAIClient, base_url=base_url, api_key=api_key, timeout=timeout, retries=retries)
        self._other = cache(partial(like, client=client))
        self._endpoint = Endpoint(
            base_url or os.environ.get("OPENAI_BASE_URL"),
            api_key or os.environ.get("OPENAI_API_KEY"),
            client=client,
            model=model,
            largest=_LARGEST,
            timeout=timeout,
            retries=retries,
            instead="the model 'offline'",
        )
        self.base_url = self._endpoint.address
        self._dialect = Dialect()

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        """Ask once; see `LLM.complete`."""
        if task.model not in ("", self.name):
            return self._other(task.model).complete(replace(task, model=""), variables)
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
        dialect = self._dialect
        while True:
            try:
                request = {"model": self.name, **dialect.request(task, prompt)}
                response = self._endpoint.ask(dialect.call, request)
            except Refused as refusal:
                if (weaker := dialect.after(refusal)) is None:
                    raise
                dialect = weaker
            else:
                if dialect.limit != "none":  # what one long prompt needed is no trait of the server
                    self._dialect = dialect
                return response

    def _reply(self, task: Task, response: Any) -> Reply:
        choice = _as_choice(response) if at(response, "object") == "response" else at(response, "choices", 0)
        if not isinstance(choice, dict):
            raise ModelUnavailable(
                f"{self._endpoint.host} answers, but not as an OpenAI-compatible server; check base_url "
                "(it often ends in /v1)"
            )
        spent = used(response)
        content = at(choice, "message", "content")
        pieces = content if isinstance(content, list) else [content]
        rows = (piece if isinstance(piece, dict) else {"text": piece} for piece in pieces)
        pairs = ((str(row.get("type", "text")).removeprefix("output_"), row.get("text")) for row in rows)
        parts = [(kind, text if isinstance(text, str) else "") for kind, text in pairs]
        text = "".join(text for kind, text in parts if kind == "text")
        if choice.get("finish_reason") == "length":
            return Reply(None, "TRUNCATED", "the reply hit its token limit", text, spent)
        reply = tasks.read(text, task.schema)
        kind = _instead(choice, {kind for kind, _ in parts}, empty=not text.strip())
        if reply.data is None and kind:
            reply = replace(reply, failure=kind, detail=KINDS[kind])
        return replace(reply, usage=spent, logprobs=_logprobs(choice) if task.logprobs else ())


def _as_choice(response: Mapping[str, Any]) -> dict[str, Any]:
    output = response.get("output")
    items = [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []
    contents = [item.get("content") for item in items if item.get("type") == "message"]
    reasons = {"max_output_tokens": "length", "content_filter": "content_filter"}
    message = {
        "content": [part for content in contents if isinstance(content, list) for part in content],
        "reasoning": any(item.get("type") == "reasoning" for item in items),
        "tool_calls": any(item.get("type") == "function_call" for item in items),
    }
    reason = reasons.get(str(at(response, "incomplete_details", "reason")), "stop")
    return {"message": message, "finish_reason": reason}


def _instead(choice: Mapping[str, Any], kinds: AbstractSet[str], empty: bool) -> Failure | None:
    message = choice.get("message")
    if at(message, "refusal") or "refusal" in kinds or choice.get("finish_reason") == "content_filter":
        return "REFUSED"
    if empty and (at(message, "tool_calls") or at(message, "function_call")):
        return "TOOL_CALL"
    thoughts = at(message, "reasoning") or at(message, "reasoning_content")
    return "REASONING" if empty and (thoughts or kinds & {"thinking", "reasoning"}) else None


def _logprobs(choice: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    try:
        rows = at(choice, "logprobs", "content") or ()
        return tuple((str(row["token"]), float(row["logprob"])) for row in rows)
    except (KeyError, TypeError, ValueError):
        return ()


def _strict(schema: Mapping[str, Any]) -> bool:
    """Whether every object in a schema is closed and needs all that it names, which strict mode demands."""
    if schema.get("type") == "object" and (
        schema.get("additionalProperties") is not False
        or schema.get("properties", {}).keys() != set(schema.get("required", ()))
    ):
        return False
    children = [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]
    return all(_strict(child) for child in children)
