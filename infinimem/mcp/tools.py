"""What is offered to a client: the five tools of every library, and the two that call its model.

Names, descriptions and schemas of the five are those of infinimem.tools; here stands what MCP adds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from infinimem.memory import Memory
from infinimem.reader import Reader
from infinimem.tools import Tool

from . import ask, remember


def _object(**properties: str | tuple[str, ...]) -> dict[str, Any]:
    """A JSON schema that names the keys of a result and their types."""
    types = {
        name: {"type": list(kind) if isinstance(kind, tuple) else kind} for name, kind in properties.items()
    }
    return {"type": "object", "properties": types, "required": list(types)}


_MATCHES = {"matches": "array", "total_matches": "integer", "truncated": "boolean"}
_TITLES: Mapping[str, str] = {
    "grep": "Find a pattern in all documents",
    "grep_doc": "Find a pattern in one document",
    "search": "Search memory",
    "list_docs": "List documents",
    "read_lines": "Read lines of a document",
    "remember": "Remember",
    "ask": "Ask memory",
}
_OUTPUTS: Mapping[str, dict[str, Any]] = {
    "grep": _object(**_MATCHES),
    "grep_doc": _object(doc_id="string", **_MATCHES),
    "search": _object(hits="array"),
    "list_docs": _object(docs="array", total="integer", has_more="boolean"),
    "read_lines": _object(doc_id="string", lines="array", total_lines="integer"),
    "remember": _object(
        recorded="boolean", seq=("integer", "null"), source=("string", "null"), entries="array"
    ),
    "ask": _object(answer="string", citations="array"),
}


@dataclass(frozen=True)
class Offer:
    """A tool as a client sees it. Nothing is ever deleted or overwritten, so none destroys.

    Args:
        tool: does the work.
        asks: whether it calls the library's model and may take long.
        outward: whether it may call something outside this machine's library.
    """

    tool: Tool
    asks: bool = False
    outward: bool = False

    @property
    def writes(self) -> bool:
        """Whether it changes the library; it then adds at each call, unless the caller gives a key."""
        return self.tool.name == "remember"

    @property
    def title(self) -> str:
        """Its name for people."""
        return _TITLES[self.tool.name]

    @property
    def output(self) -> Mapping[str, Any]:
        """JSON schema of its result."""
        return _OUTPUTS[self.tool.name]


def offers(memory: Memory, reading: Reader, trust_user: bool = False) -> dict[str, Offer]:
    """The seven tools by name; of a library that is read-only all but `remember`.

    Args:
        memory: the library that they serve.
        reading: what of it is read.
        trust_user: see remember.py.
    """
    asking = [ask.tool(reading)]
    if not memory.library.read_only:
        asking.insert(0, remember.tool(memory, trust_user))
    outward = memory.llm.name != "offline"
    found = [*map(Offer, reading.tools), *(Offer(tool, True, outward) for tool in asking)]
    return {offer.tool.name: offer for offer in found}
