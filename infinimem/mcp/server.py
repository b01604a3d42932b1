"""The SDK's server over one library: tools, and documents as resources (infinimem://doc/topics/home).

Calls run in threads: reads are snapshots and need no lock, what writes is kept in order by the store and by
`remember`. Calls of a model have threads of their own, so that a slow one keeps no search waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib import resources
from importlib.metadata import version
from typing import Any, TypeAlias, TypeVar
from urllib.parse import quote, unquote

import anyio
import anyio.to_thread
from mcp import MCPError, types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from infinimem.errors import InfinimemError, LibraryError
from infinimem.llm.tasks import filled
from infinimem.log import log
from infinimem.markdown.characters import clean_text, visible
from infinimem.mcp.tools import Offer, offers
from infinimem.memory import Memory
from infinimem.reader import Reader
from infinimem.store.view import View
from infinimem.tools.tool import LABEL, shown

NAME = "infinimem"
ASKING = 8  # calls of the model side by side; more wait
BEAT = 1.0  # seconds between two notes of progress

NOTHING = "nothing is remembered yet: there is no library; `remember` makes it, or in a shell: infinimem add"
"""What tools answer where there is no library."""

Begin: TypeAlias = Callable[[bool], Memory | None]
_Context: TypeAlias = ServerRequestContext[Any, Any]
_Page: TypeAlias = types.PaginatedRequestParams | None
_T = TypeVar("_T")
_A = TypeVar("_A")
_PREFIX = "infinimem://doc/"
MARKDOWN = "text/markdown"
PAGE = 100
MAX_URI = 4000
MAX_TEXT = 400_000  # characters of one document; what is longer is read with read_lines

_TEMPLATES = types.ListResourceTemplatesResult(
    resource_templates=[
        types.ResourceTemplate(
            name="document",
            title="Document",
            uri_template=f"{_PREFIX}{{+id}}",
            description="A document of the memory by its id, as list_docs gives it",
            mime_type=MARKDOWN,
        )
    ]
)


def listed(offer: Offer) -> types.Tool:
    """Describe a tool as the protocol lists it."""
    return types.Tool(
        name=offer.tool.name,
        title=offer.title,
        description=offer.tool.description,
        input_schema=dict(offer.tool.parameters),
        output_schema=dict(offer.output),
        annotations=types.ToolAnnotations(
            title=offer.title,
            read_only_hint=not offer.writes,
            destructive_hint=False,
            idempotent_hint=not offer.writes,
            open_world_hint=offer.outward,
        ),
    )


def _called(offer: Offer, arguments: Mapping[str, Any]) -> types.CallToolResult:
    """Give a tool's result as text for a model, fenced and labelled, and as data; or one line of failure."""
    try:
        result = offer.tool.run(arguments)
    except Exception as error:
        log.debug("%s failed", offer.tool.name, exc_info=True)
        result = {"error": _unexpected(error)}
    if "error" in result:
        return _failed(shown(" ".join(str(result["error"]).split())))
    content = [types.TextContent(text=offer.tool.told(result))]
    return types.CallToolResult(content=[*content], structured_content={"label": LABEL, **result})


class _Served:
    """The library that is served, and what is offered of it."""

    def __init__(self, memory: Memory, trust_user: bool, project: str | None, begin: Begin | None) -> None:
        self._trust_user, self._project, self._begin = trust_user, project, begin
        self._serve(memory)

    def _serve(self, memory: Memory) -> None:
        self.reading: Reader = memory.within(self._project) if self._project else memory
        self.offered = offers(memory, self.reading, self._trust_user)

    def look(self, make: bool = False) -> bool:
        """Return whether there is a library by now; it may be made for this."""
        if self._begin is not None and (memory := self._begin(make)) is not None:
            self._begin = None
            self._serve(memory)
        return self._begin is None

    def offer(self, name: str) -> Offer:
        """Return a tool; MCPError if there is none so named, LibraryError if there is no library for it."""
        if name not in self.offered:
            listed = ", ".join(self.offered)
            raise MCPError(types.INVALID_PARAMS, f"there is no tool {name[:40]!r}; there are {listed}")
        if not self.look(make=self.offered[name].writes):
            raise LibraryError(NOTHING)
        return self.offered[name]


def _failed(line: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=line)], is_error=True)


def make_server(
    memory: Memory, trust_user: bool = False, project: str | None = None, begin: Begin | None = None
) -> Server[Any]:
    """Make a server that any number of clients may call at once.

    Args:
        trust_user: whether a client may record the user's words as the user's.
        project: read only what was said there (`Reader.within`).
        begin: if `memory` stands for a library that nobody made yet: gives it once it is there, or makes it.
    """
    served = _Served(memory, trust_user, project, begin)
    tools = types.ListToolsResult(tools=[listed(offer) for offer in served.offered.values()])
    asking = anyio.CapacityLimiter(ASKING)

    async def list_tools(ctx: _Context, params: _Page) -> types.ListToolsResult:
        return tools

    async def call_tool(ctx: _Context, params: types.CallToolRequestParams) -> types.CallToolResult:
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

    async def list_resources(ctx: _Context, params: _Page) -> types.ListResourcesResult:
        served.look()
        return await _read(_list_resources, served.reading, params.cursor if params else None)

    async def list_templates(ctx: _Context, params: _Page) -> types.ListResourceTemplatesResult:
        return _TEMPLATES

    async def read_resource(
        ctx: _Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        served.look()
        return await _read(_read_resource, served.reading, params.uri)

    server: Server[Any] = Server(
        NAME,
        version=version(NAME),
        title="infinimem memory",
        instructions=filled(
            resources.files(__package__).joinpath("instructions.md").read_text("utf-8"),
            dict.fromkeys(served.offered, ""),
        ),
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
    """Read a resource in a thread; whatever goes wrong is one line."""

    def call() -> _T:
        try:
            return work(memory.view, wanted)
        except MCPError:
            raise
        except Exception as error:
            log.debug("a resource failed", exc_info=True)
            raise MCPError(types.INTERNAL_ERROR, _unexpected(error)) from None

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


def _list_resources(view: View, cursor: str | None) -> types.ListResourcesResult:
    """List a page of the documents of the default scope; the page before named the cursor, else MCPError."""
    if cursor is not None and not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 10):
        raise MCPError(types.INVALID_PARAMS, "this cursor is none; list again from the start")
    ids, start = view.ids(), int(cursor or 0)
    rows = [(doc_id, view.document(doc_id)) for doc_id in ids[start : start + PAGE]]
    resources = [
        types.Resource(
            name=doc_id,
            uri=_PREFIX + quote(doc_id, errors="surrogateescape"),
            description=shown(document.summary) or None,
            mime_type=MARKDOWN,
        )
        for doc_id, document in rows
    ]
    more = str(start + PAGE) if start + PAGE < len(ids) else None
    return types.ListResourcesResult(resources=resources, next_cursor=more)


def _read_resource(view: View, uri: str) -> types.ReadResourceResult:
    """Give a document's text, control characters made visible. Its address is looked up like any id, never
    joined; MCPError if no document has it, or it cannot be read."""
    if not uri.startswith(_PREFIX) or len(uri) > MAX_URI:
        raise MCPError(
            types.INVALID_PARAMS, f"this is no document of the memory; addresses begin with {_PREFIX}"
        )
    try:
        document = view.document(view.resolve(unquote(uri.removeprefix(_PREFIX), errors="surrogateescape")))
        text = document.text(1, len(document.lines))
    except LibraryError as error:
        raise MCPError(types.INVALID_PARAMS, shown(str(error))) from error
    if len(text) > MAX_TEXT:
        raise MCPError(types.INVALID_PARAMS, f"{document.id} is too long for one reading; use read_lines")
    safe = "\n".join(visible(clean_text(line)) for line in text.split("\n"))
    return types.ReadResourceResult(
        contents=[types.TextResourceContents(uri=uri, mime_type=MARKDOWN, text=safe)]
    )
