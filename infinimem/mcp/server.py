"""The SDK's server over one library.

Calls run in threads: reads are snapshots and need no lock, what writes is kept in order by the store and by
remember.py. Calls of a model have threads of their own, so that a slow one keeps no search waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib import resources as files
from importlib.metadata import version
from typing import Any, TypeAlias, TypeVar

import anyio
import anyio.to_thread
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    TextContent,
    Tool,
    ToolAnnotations,
)

from infinimem.errors import InfinimemError, LibraryError
from infinimem.log import log
from infinimem.memory import Memory
from infinimem.reader import Reader
from infinimem.store.view import View
from infinimem.tools.tool import LABEL, shown

from . import resources
from .tools import Offer, offers

NAME = "infinimem"
ASKING = 8
"""Calls of the model side by side; more wait."""
BEAT = 1.0
"""Seconds between two notes of progress."""

NOTHING = "nothing is remembered yet: there is no library; `remember` makes it, or in a shell: infinimem add"
"""What tools answer where there is no library."""

Begin: TypeAlias = Callable[[bool], Memory | None]
_Context: TypeAlias = ServerRequestContext[Any, Any]
_T = TypeVar("_T")
_A = TypeVar("_A")


def listed(offer: Offer) -> Tool:
    """A tool as the protocol lists it."""
    return Tool(
        name=offer.tool.name,
        title=offer.title,
        description=offer.tool.description,
        input_schema=dict(offer.tool.parameters),
        output_schema=dict(offer.output),
        annotations=ToolAnnotations(
            title=offer.title,
            read_only_hint=not offer.writes,
            destructive_hint=False,
            idempotent_hint=not offer.writes,
            open_world_hint=offer.outward,
        ),
    )


def _called(offer: Offer, arguments: Mapping[str, Any]) -> CallToolResult:
    """A tool's result: text for a model to read, fenced and labelled, and the same as data; or one line."""
    try:
        result = offer.tool.run(arguments)
    except Exception as error:
        log.debug("%s failed", offer.tool.name, exc_info=True)
        result = {"error": _unexpected(error)}
    if "error" in result:
        return _failed(shown(" ".join(str(result["error"]).split())))
    content = [TextContent(text=offer.tool.told(result))]
    return CallToolResult(content=[*content], structured_content={"label": LABEL, **result})


class _Served:
    """The library that is served, and what is offered of it.

    Args: as `make_server`.
    """

    def __init__(self, memory: Memory, trust_user: bool, project: str | None, begin: Begin | None) -> None:
        self._trust_user, self._project, self._begin = trust_user, project, begin
        self._serve(memory)

    def _serve(self, memory: Memory) -> None:
        self.reading: Reader = memory.within(self._project) if self._project else memory
        self.offered = offers(memory, self.reading, self._trust_user)

    def look(self, make: bool = False) -> bool:
        """Whether there is a library by now; it may be made for this."""
        if self._begin is not None and (memory := self._begin(make)) is not None:
            self._begin = None
            self._serve(memory)
        return self._begin is None

    def offer(self, name: str) -> Offer:
        """The tool of this name, of a library that is there.

        Raises:
            MCPError: there is no such tool.
            LibraryError: there is no library yet, and the tool makes none.
        """
        if name not in self.offered:
            listed = ", ".join(self.offered)
            raise MCPError(INVALID_PARAMS, f"there is no tool {name[:40]!r}; there are {listed}")
        if not self.look(make=self.offered[name].writes):
            raise LibraryError(NOTHING)
        return self.offered[name]


def _failed(line: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=line)], is_error=True)


def make_server(
    memory: Memory, trust_user: bool = False, project: str | None = None, begin: Begin | None = None
) -> Server[Any]:
    """A server that any number of clients may call at once.

    Args:
        memory: the library.
        trust_user: whether a client may record the user's words as the user's (remember.py).
        project: read only what was said there (`Reader.within`).
        begin: where `memory` only stands for a library that nobody made yet: gives that once it is there, and
            told True, as by the first thing that is remembered, makes it.
    """
    served = _Served(memory, trust_user, project, begin)
    tools = ListToolsResult(tools=[listed(offer) for offer in served.offered.values()])
    asking = anyio.CapacityLimiter(ASKING)

    async def list_tools(ctx: _Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        return tools

    async def call_tool(ctx: _Context, params: CallToolRequestParams) -> CallToolResult:
        try:
            offer = served.offer(params.name)
        except InfinimemError as error:
            return _failed(_unexpected(error))
        call = partial(_called, offer, params.arguments or {})
        if not offer.asks:
            return await anyio.to_thread.run_sync(call, abandon_on_cancel=True)
        async with anyio.create_task_group() as group:
            group.start_soon(_beat, ctx)
            result = await anyio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=asking)
            group.cancel_scope.cancel()
        return result

    async def list_resources(ctx: _Context, params: PaginatedRequestParams | None) -> ListResourcesResult:
        served.look()
        return await _read(resources.listed, served.reading, params.cursor if params else None)

    async def list_templates(
        ctx: _Context, params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        return resources.TEMPLATES

    async def read_resource(ctx: _Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        served.look()
        return await _read(resources.read, served.reading, params.uri)

    server: Server[Any] = Server(
        NAME,
        version=version(NAME),
        title="infinimem memory",
        instructions=files.files(__package__).joinpath("instructions.md").read_text("utf-8"),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
    )
    server.middleware.clear()  # tracing for collectors that nobody asked for
    return server


async def _beat(ctx: _Context) -> None:
    """Tell a waiting client every second that the call goes on; nothing is sent to one that did not ask."""
    seconds = 0.0
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):  # it hung up, the call ends anyway
        while True:
            await ctx.session.report_progress(seconds, message="working")
            await anyio.sleep(BEAT)
            seconds += BEAT


async def _read(work: Callable[[View, _A], _T], memory: Reader, wanted: _A) -> _T:
    """Run in a thread; whatever goes wrong is one line."""

    def call() -> _T:
        try:
            return work(memory.view, wanted)
        except MCPError:
            raise
        except Exception as error:
            log.debug("a resource failed", exc_info=True)
            raise MCPError(INTERNAL_ERROR, _unexpected(error)) from None

    return await anyio.to_thread.run_sync(call, abandon_on_cancel=True)


def _unexpected(error: Exception) -> str:
    if isinstance(error, InfinimemError):
        return shown(str(error))
    if isinstance(error, OSError) and error.strerror:
        return f"the library cannot be read: {error.strerror}; try again"
    return f"unexpected {type(error).__name__}; try other arguments, and report it if it stays"


def serve_stdio(server: Server[Any]) -> None:
    """Serve the client at standard input and output until it hangs up."""

    async def serve() -> None:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    with suppress(BrokenPipeError):
        anyio.run(serve)
