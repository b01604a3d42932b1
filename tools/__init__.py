"""The five tools by which an agent, a client or a person reads a library."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

from infinimem.store.view import View

from .tool import Result, Tool

NAMES = ("grep", "grep_doc", "search", "list_docs", "read_lines")

__all__ = ["Result", "Tool", "Toolbox"]


class Toolbox:
    """The tools of one library.

    Args:
        view: gives the current snapshot; asked at every call, so that results are never stale.
    """

    grep: Tool
    grep_doc: Tool
    search: Tool
    list_docs: Tool
    read_lines: Tool

    def __init__(self, view: Callable[[], View]) -> None:
        self._view = view

    def __getattr__(self, name: str) -> Tool:
        """A tool is imported and made when it is first asked for: none needs what the others do."""
        if name not in NAMES:
            raise AttributeError(f"there is no tool {name!r}")
        made: Tool = import_module(f"{__name__}.{name}").tool(self._view)
        setattr(self, name, made)
        return made

    def __iter__(self) -> Iterator[Tool]:
        return (getattr(self, name) for name in NAMES)

    def call(self, name: str, arguments: Mapping[str, Any] | str) -> Result:
        """Run a tool as a model asked for it.

        Args:
            name: of the tool.
            arguments: a mapping, or the JSON of one.

        Returns:
            The tool's result, or {"error": one line} for whatever is wrong with the call.
        """
        tool = self._named(name)
        read = _read(arguments)
        if tool is None:
            known = ", ".join(tool.name for tool in self)
            return {"error": f"there is no tool {name[:40]!r}; there are {known}"}
        return {"error": "the arguments are not a JSON object"} if read is None else tool(**read)

    def text(self, name: str, arguments: Mapping[str, Any] | str) -> str:
        """The same as text for a model: `Tool.text`."""
        tool, read = self._named(name), _read(arguments)
        if tool is None or read is None:
            return str(self.call(name, arguments)["error"])
        return tool.text(**read)

    def openai(self) -> list[Result]:
        """The tools as OpenAI's chat API lists them."""
        return [tool.openai() for tool in self]

    def anthropic(self) -> list[Result]:
        """The tools as Anthropic's messages API lists them."""
        return [tool.anthropic() for tool in self]

    def _named(self, name: str) -> Tool | None:
        return next((tool for tool in self if tool.name == name), None)


def _read(arguments: Mapping[str, Any] | str) -> dict[str, Any] | None:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            return None
    if not isinstance(arguments, Mapping):
        return None
    return {str(name): value for name, value in arguments.items()}
