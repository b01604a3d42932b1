"""Anthropic's memory tool, kept in a library: a backend for the tool runner of their SDK.

    client.beta.messages.run_tools(model=…, messages=…, tools=[MemoryTool(memory)], max_tokens=…)

Source: anthropic.lib.tools (BetaAbstractMemoryTool), docs/MEMORY_TOOL.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from infinimem.adapters.file_tree import FileTree, Refused
from infinimem.memory import Memory

try:
    from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
    from anyio.to_thread import run_sync
except ImportError as error:
    raise ImportError(
        f"Anthropic's SDK is missing or too old ({error}); pip install 'infinimem[anthropic]'"
    ) from error

if TYPE_CHECKING:
    from anthropic.types.beta import BetaCacheControlEphemeralParam

    _Cache: TypeAlias = BetaCacheControlEphemeralParam | None

__all__ = ["AsyncMemoryTool", "MemoryTool"]


class MemoryTool(BetaAbstractMemoryTool):
    """The memory tool over the folder memories/ of an opened library, for `Anthropic`."""

    def __init__(self, memory: Memory, *, cache_control: _Cache = None) -> None:
        super().__init__(cache_control=cache_control)
        self._files = FileTree(memory)

    def execute(self, command: object) -> str:
        """Do what the model asked for, a mapping as it sent it, or an object as the SDK read it; ToolError,
        with a text for the model, if that cannot be done."""
        return _told(partial(self._files.run, command if isinstance(command, Mapping) else vars(command)))

    view = create = str_replace = insert = delete = rename = execute

    def clear_all_memory(self) -> str:
        """Delete all files; `infinimem undo` has them back."""
        return _told(self._files.clear)


class AsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """The same for `AsyncAnthropic`; the files are read and written in a thread."""

    def __init__(self, memory: Memory, *, cache_control: _Cache = None) -> None:
        super().__init__(cache_control=cache_control)
        self._tool = MemoryTool(memory)

    async def execute(self, command: object) -> str:
        """As `MemoryTool.execute`."""
        return await run_sync(self._tool.execute, command)

    view = create = str_replace = insert = delete = rename = execute

    async def clear_all_memory(self) -> str:
        """As `MemoryTool.clear_all_memory`."""
        return await run_sync(self._tool.clear_all_memory)


def _told(action: Callable[[], str]) -> str:
    try:
        return action()
    except Refused as error:
        raise ToolError(str(error)) from error
