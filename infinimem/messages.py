"""Messages of a chat, dictionaries in the shape of OpenAI's or Anthropic's API, as turns: only what users and
assistants say in text becomes one, no system prompt, tool call or result, thinking or picture.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from infinimem.errors import UsageError
from infinimem.importers.exports import OPENAI
from infinimem.importers.fields import ROLES
from infinimem.model import Turn

Message = Mapping[str, Any]
"""`{"role": …, "content": …}`; content is a text or a list of parts. Fields of `Turn` may stand beside."""


def turns(said: Iterable[Turn | Message]) -> Iterator[Turn]:
    """Yield turns unchanged, and messages as turns; parts of messages may be objects of the APIs' SDKs.
    UsageError if a message has no role or no content, or its role is unknown."""
    for message in said:
        if not isinstance(message, Mapping):
            yield message
            continue
        role = message.get("role")
        if not isinstance(role, str) or message.keys().isdisjoint(("content", "tool_calls")):
            raise UsageError('a message needs a role and content; write {"role": "user", "content": "…"}')
        if role.lower() not in ROLES:
            raise UsageError(f"role {role[:40]!r} is unknown; write user, assistant or tool")
        if ROLES[role.lower()] == "tool":
            continue
        content = message.get("content")
        if isinstance(content, list | tuple):
            content = [part.model_dump() if hasattr(part, "model_dump") else part for part in content]
        told = OPENAI.turns({**message, "content": content or ""}, "", Counter())
        yield from (turn for turn in told if turn.text.strip())
