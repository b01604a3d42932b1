"""A library served to MCP clients: the SDK's server over what is offered (infinimem://doc/topics/home).

No tool deletes before a person agreed. Calls run in threads: reads are snapshots and need no lock, what
writes is kept in order by the store. Calls of a model have threads of their own: a slow one keeps no search
waiting.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias, TypeVar
from urllib.parse import quote, unquote

import anyio
import anyio.to_thread
from mcp import MCPError, types
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings

from infinimem.errors import InfinimemError, LibraryError, UsageError
from infinimem.hooks import PROMPT_LENGTH
from infinimem.llm.tasks import filled
from infinimem.log import log
from infinimem.markdown.characters import clean_text, visible
from infinimem.mcp.offers import TABLES, Offer, TaskTool, caller, offers
from infinimem.memory import Memory
from infinimem.reader import Reader
from infinimem.store.files import digest
from infinimem.tools.tool import LABEL, Result, Tool, shown

NAME = "infinimem"
ASKING = 8  # calls of the model side by side; more wait
BEAT = 1.0  # seconds between two notes of progress

AS_FORM = "2026-07-28"
"""The first version of the protocol in which a call ends with what a person is asked, and comes again."""
_Context: TypeAlias = ServerRequestContext[Any, Any]
_Page: TypeAlias = types.PaginatedRequestParams | None
_T = TypeVar("_T")
_A = TypeVar("_A")
_PREFIX = "infinimem://doc/"
MARKDOWN = "text/markdown"
# What stays so while the server runs; for documents any client must ask anew, as the SDK says unasked.
LASTS: list[CacheableMethod] = ["tools/list", "prompts/list", "resources/templates/list", "server/discover"]
PAGE = 100
MAX_URI = 4000
MAX_TEXT = 400_000  # characters of one document; what is longer is read with read_lines

_TEMPLATES = types.ListResourceTemplatesResult.model_validate(TABLES, by_name=True)
_PROMPTS = types.ListPromptsResult.model_validate(TABLES, by_name=True)
PATH = "/mcp"
TOKEN = "INFINIMEM_MCP_TOKEN"
SHORTEST = 16  # characters of a token that one chooses
MAX_BODY = 1024 * 1024
MAX_SESSIONS = 200
_PLAIN = {"content-type": "text/plain"}


def listed(offer: Offer) -> types.Tool:
    tool, row = offer.tool, TABLES["tools"].get(offer.tool.name, {})  # none of one that a package adds
    title = row.get("title", tool.name)
    shape = {name: {"type": kind} for name, kind in row.get("result", {}).items()}
    return types.Tool(
        name=tool.name,
        title=title,
        description=tool.description,
        input_schema=dict(tool.parameters),
        output_schema={"type": "object", "properties": shape, "required": [*shape]},
        annotations=types.ToolAnnotations(
            title=title,
            read_only_hint=not offer.writes,
            destructive_hint=offer.approved is not None,
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
    return _given(offer.tool, result)


def _given(tool: Tool, result: Result) -> types.CallToolResult:
    if "error" in result:
        return _failed(shown(" ".join(str(result["error"]).split())))
    content = [types.TextContent(text=tool.told(result))]
    label = {} if isinstance(tool, TaskTool) else {"label": LABEL}  # some show a model this alone
    return types.CallToolResult(content=[*content], structured_content={**label, **result})


async def _approved(
    ctx: _Context, offer: Offer, params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    """Do what a tool plans if a person agrees, who is shown it; a client that cannot ask is told what a
    person does instead. The answer counts for the very question."""
    plan = partial(anyio.to_thread.run_sync, partial(offer.tool.run, params.arguments or {}))
    if "question" not in (planned := await plan()):
        return _given(offer.tool, planned)
    question, known = planned["question"], ctx.session.client_capabilities
    can = known.elicitation if known else None
    at_once = ctx.protocol_version < AS_FORM
    if can is None or (can.url and not can.form) or (at_once and not ctx.session.can_send_request):
        return _failed(f"nothing was done: this program cannot ask a person, who runs: {planned['command']}")
    form = types.ElicitRequestFormParams(message=question, requested_schema=TABLES["agreement"])
    key = digest(question.encode())
    if at_once:
        answer: Any = await ctx.session.elicit_form(question, TABLES["agreement"], ctx.request_id)
    elif (answer := (params.input_responses or {}).get(key)) is None:
        return types.InputRequiredResult(input_requests={key: types.ElicitRequest(params=form)})
    content = answer.content if isinstance(answer, types.ElicitResult) and answer.action == "accept" else None
    if (content or {}).get("agree") is not True:
        return _failed("nothing was done: the person did not agree")
    if (await plan()).get("question") != question:
        return _failed("nothing was done: other lines would go by now; call it again")
    act = replace(offer, tool=replace(offer.tool, function=offer.approved or offer.tool.function))
    return await anyio.to_thread.run_sync(_called, act, params.arguments or {})


def _reads(reading: Reader, work: Callable[[Reader, _A], _T]) -> Callable[[_Context, _A], Awaitable[_T]]:
    """Make a handler that reads something in a thread; whatever goes wrong is one line."""

    def read(wanted: _A) -> _T:
        try:
            return work(reading, wanted)
        except MCPError:
            raise
        except Exception as error:
            log.debug("a resource or prompt failed", exc_info=True)
            raise MCPError(types.INTERNAL_ERROR, _unexpected(error)) from None

    async def handle(ctx: _Context, wanted: _A) -> _T:
        return await anyio.to_thread.run_sync(read, wanted, abandon_on_cancel=True)

    return handle


def _failed(line: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=line)], is_error=True)


def make_server(memory: Memory, trust_user: bool = False, project: str | None = None) -> Server[Any]:
    """Make a server that any number of clients may call at once.

    Args:
        trust_user: whether a client may record the user's words as the user's.
        project: read only what was said there (`Reader.within`).
    """
    reading: Reader = memory.within(project) if project else memory
    offered = offers(memory, reading, trust_user)
    tools = types.ListToolsResult(tools=[listed(offer) for offer in offered.values()])
    sections = dict.fromkeys((*offered, *["library"] * memory.library.initialised), "")
    asking = anyio.CapacityLimiter(ASKING)

    async def call_tool(
        ctx: _Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        if (offer := offered.get(params.name)) is None:
            wrong = f"there is no tool {params.name[:40]!r}; there are {', '.join(offered)}"
            raise MCPError(types.INVALID_PARAMS, wrong)
        if offer.approved is not None:
            return await _approved(ctx, offer, params)
        client = ctx.session.client_params
        caller.set(client.client_info.name if client else "")
        call = partial(_called, offer, params.arguments or {})
        if not offer.asks:
            return await anyio.to_thread.run_sync(call, abandon_on_cancel=True)
        async with anyio.create_task_group() as group:
            group.start_soon(_beat, ctx)
            result = await anyio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=asking)
            group.cancel_scope.cancel()
        return result

    server: Server[Any] = Server(
        NAME,
        version=version(NAME),
        title="infinimem memory",
        instructions=filled(
            resources.files(__package__).joinpath("instructions.md").read_text("utf-8"),
            sections,
        ),
        cache_hints=dict.fromkeys(LASTS, CacheHint(ttl_ms=3_600_000)),
        on_list_tools=_reads(reading, lambda *_: tools),
        on_call_tool=call_tool,
        on_list_prompts=_reads(reading, lambda *_: _PROMPTS),
        on_get_prompt=_reads(reading, _recalled),
        on_list_resources=_reads(reading, _list_resources),
        on_list_resource_templates=_reads(reading, lambda *_: _TEMPLATES),
        on_read_resource=_reads(reading, _read_resource),
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


def _unexpected(error: Exception) -> str:
    if isinstance(error, InfinimemError):
        return shown(str(error))
    if isinstance(error, OSError) and error.strerror:
        return f"the library cannot be read: {error.strerror}; try again"
    return f"unexpected {type(error).__name__}; try other arguments, and report it if it stays"


def serve_stdio(server: Server[Any]) -> None:
    async def serve() -> None:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    with suppress(BrokenPipeError):
        anyio.run(serve)


def _recalled(memory: Reader, wanted: types.GetPromptRequestParams) -> types.GetPromptResult:
    """Give what the first prompt of a session in this folder is shown; MCPError for another prompt."""
    from infinimem.hooks.recall import Recall

    (prompt,) = _PROMPTS.prompts
    if wanted.name != prompt.name:
        raise MCPError(
            types.INVALID_PARAMS, f"there is no prompt {wanted.name[:40]!r}; there is {prompt.name}"
        )
    about = (wanted.arguments or {}).get("about", "")[:PROMPT_LENGTH]
    text = Recall(memory).preview(about, str(Path.cwd()))["text"] or "Memory holds nothing that belongs here."
    message = types.PromptMessage(role="user", content=types.TextContent(text=text))
    return types.GetPromptResult(description=prompt.description, messages=[message])


def _list_resources(memory: Reader, wanted: _Page) -> types.ListResourcesResult:
    """List a page of the documents of the default scope; the page before named the cursor, else MCPError."""
    cursor = wanted.cursor if wanted else None
    if cursor is not None and not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 10):
        raise MCPError(types.INVALID_PARAMS, "this cursor is none; list again from the start")
    view = memory.view.for_models
    ids, start = view.ids(), int(cursor or 0)
    resources = [
        types.Resource(
            name=doc_id,
            uri=_PREFIX + quote(doc_id, errors="surrogateescape"),
            description=shown(view.document(doc_id).summary) or None,
            mime_type=MARKDOWN,
        )
        for doc_id in ids[start : start + PAGE]
    ]
    more = str(start + PAGE) if start + PAGE < len(ids) else None
    return types.ListResourcesResult(resources=resources, next_cursor=more)


def _read_resource(memory: Reader, wanted: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    """Give a document's text; its address is looked up like any id, never joined (MCPError if it is none)."""
    uri = wanted.uri
    if not uri.startswith(_PREFIX) or len(uri) > MAX_URI:
        raise MCPError(
            types.INVALID_PARAMS, f"this is no document of the memory; addresses begin with {_PREFIX}"
        )
    view = memory.view.for_models
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


def token_of(chosen: str | None) -> str:
    """Return the chosen token, or a new one; UsageError if it is weak, or cannot stand in a header."""
    if chosen is None:
        return secrets.token_urlsafe(32)
    if len(chosen) < SHORTEST or not (chosen.isascii() and chosen.isprintable()) or " " in chosen:
        raise UsageError(f"{TOKEN} needs {SHORTEST} or more ASCII characters without spaces; choose another")
    return chosen


def make_app(server: Any, names: list[str], token: str) -> Any:
    """Make the ASGI application that lets through who carries the token and calls it by one of `names`."""
    from infinimem.serving.http import refused, reply

    inner = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=MAX_BODY,
        max_sessions=MAX_SESSIONS,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # `refused` does
    )

    async def guard(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            if status := refused(scope["headers"], names):
                await reply(send, status, "the server is not called so, or not from there", _PLAIN)
                return
            if not _admits(scope["headers"], token):
                needed = "a token is needed: Authorization: Bearer TOKEN"
                await reply(send, 401, needed, {**_PLAIN, "www-authenticate": "Bearer"})
                return
        if scope["type"] in ("http", "lifespan"):
            await inner(scope, receive, send)

    return guard


def _admits(headers: list[tuple[bytes, bytes]], wanted: str) -> bool:
    """Compare the token in the same time for every wrong one."""
    given = [value for name, value in headers if name.lower() == b"authorization"]
    if len(given) != 1:
        return False
    scheme, _, token = given[0].partition(b" ")
    return hmac.compare_digest(token, wanted.encode("ascii")) and scheme.lower() == b"bearer"
