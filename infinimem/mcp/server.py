"""A library served to MCP clients: what is offered, and the SDK's server over it (infinimem://doc/topics/home).

Names, descriptions and schemas of the five tools are those of infinimem.tools; here stands what MCP adds. No
tool deletes. Calls run in threads: reads are snapshots and need no lock, what writes is kept in order by the
store and by `remember`. Calls of a model have threads of their own: a slow one keeps no search waiting.
"""

from __future__ import annotations

import hmac
import secrets
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib import resources
from importlib.metadata import version
from typing import Annotated, Any, Literal, TypeAlias, TypeVar
from urllib.parse import quote, unquote

import anyio
import anyio.to_thread
from mcp import MCPError, types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings

from infinimem.answer import LINE_LENGTH
from infinimem.errors import InfinimemError, LibraryError, ModelUnavailable, UsageError
from infinimem.llm.base import AGENT
from infinimem.llm.tasks import filled
from infinimem.log import log
from infinimem.markdown.characters import clean_text, visible
from infinimem.memory import Memory
from infinimem.model import NOTHING, Turn
from infinimem.reader import Reader
from infinimem.results import tasks_claimed
from infinimem.serving.http import names, refused, reply, serve
from infinimem.store.state import unanswered_message
from infinimem.store.view import View, is_hidden
from infinimem.tools.tool import LABEL, Result, Rule, Tool, shown, span

NAME = "infinimem"
ASKING = 8  # calls of the model side by side; more wait
BEAT = 1.0  # seconds between two notes of progress

NO_LIBRARY = (
    "nothing is remembered yet: there is no library; `remember` makes it, or in a shell: infinimem add"
)
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
PATH = "/mcp"
TOKEN = "INFINIMEM_MCP_TOKEN"
SHORTEST = 16  # characters of a token that one chooses
MAX_BODY = 1024 * 1024
MAX_SESSIONS = 200
_PLAIN = {"content-type": "text/plain"}


# ── what is offered ───────────────────────────────────────────────────────────────────────────────


def _object(**properties: str | tuple[str, ...]) -> dict[str, Any]:
    types = {
        name: {"type": list(kind) if isinstance(kind, tuple) else kind} for name, kind in properties.items()
    }
    return {"type": "object", "properties": types, "required": list(types)}


_MATCHES = {"matches": "array", "total_matches": "integer", "truncated": "boolean"}
_SHOWN: Mapping[str, tuple[str, dict[str, Any]]] = {
    "grep": ("Find a pattern in all documents", _object(**_MATCHES)),
    "grep_doc": ("Find a pattern in one document", _object(doc_id="string", **_MATCHES)),
    "search": ("Search memory", _object(hits="array")),
    "list_docs": ("List documents", _object(docs="array", total="integer", has_more="boolean")),
    "read_lines": (
        "Read lines of a document",
        _object(doc_id="string", lines="array", total_lines="integer"),
    ),
    "remember": (
        "Remember",
        _object(recorded="boolean", seq=("integer", "null"), source=("string", "null"), entries="array"),
    ),
    "ask": ("Ask memory", _object(answer="string", citations="array")),
    "memory_tasks": ("Next task of the memory", _object(task=("integer", "null"), left="integer")),
    "memory_answer": ("Answer a task", _object(wrong="array", task=("integer", "null"), left="integer")),
}
"""Of each tool its name for people, and the schema of its result."""


@dataclass(frozen=True)
class Offer:
    """A tool as a client sees it, with the JSON schema of its result; none destroys.

    Args:
        asks: whether it calls the library's model and may take long.
        writes: whether it adds to the library at each call, unless the caller gives a key.
        outward: whether it may call something outside this machine's library.
    """

    tool: Tool
    title: str
    output: Mapping[str, Any]
    asks: bool
    writes: bool
    outward: bool


def offers(memory: Memory, reading: Reader, trust_user: bool = False) -> dict[str, Offer]:
    """Return the tools by name: those of a library, those that packages add, `ask`, and `remember`; `ask` has
    those of tasks in its place where the client is the model."""
    agents = [] if memory.library.read_only else [tasks_tool(memory), answer_tool(memory)]
    asking = agents if memory.by_agent else [ask_tool(reading)]
    if not memory.library.read_only:
        asking.insert(0, remember_tool(memory, trust_user))
    outward = memory.llm.name not in ("offline", AGENT)
    found = {}
    for tool in (*reading.tools, *asking):
        name, asks = tool.name, tool in asking
        title, shape = _SHOWN.get(name, (name, _object()))
        writes = name in ("remember", "memory_tasks", "memory_answer")
        found[name] = Offer(tool, title, shape, asks, writes, asks and outward)
    return found


class TaskTool(Tool):
    """A tool whose result is no data but what is to be done; what was recorded stands in blocks in it."""

    def told(self, result: Result) -> str:
        """See `Tool.told`."""
        return super().told(result) if "error" in result else "\n".join(self.rows(result))


def _task_rows(result: Result) -> Iterator[str]:
    yield from result.get("wrong", ())
    yield result["text"]


def _next(memory: Memory, number: int | None = None, after: int | None = None) -> Result:
    task = memory.tasks.take(number, after)
    left = memory.tasks.open()
    if task is None:
        return {"task": None, "left": len(left), "text": tasks_claimed(left)}
    rest = sum(one.tokens for one in left if one.number != task.number)
    text = f"{task.text}\n\nAnswer with memory_answer; {len(left) - 1} more tasks, about {rest} tokens, wait."
    return {"task": task.number, "left": len(left), "text": visible(clean_text(text))}


def tasks_tool(memory: Memory) -> Tool:
    """Make the tool that gives the next task."""

    def memory_tasks(task: int | None = None) -> Result:
        """Give the next thing that this memory would ask a model, and claim it for ten minutes: you are its
        model. Call it when the user asks you to consolidate memory, and answer with memory_answer.

        Args:
            task: the number of a task that others have; without it the first that nobody has
        """
        return _next(memory, task)

    return TaskTool.of(memory_tasks, _task_rows)


def answer_tool(memory: Memory) -> Tool:
    """Make the tool that takes the reply to a task."""

    def memory_answer(task: int, reply: Annotated[str, Rule(longest=400_000)]) -> Result:
        """Answer a task of memory_tasks. Gives what is wrong with the reply, or the next task.

        Args:
            task: its number
            reply: the JSON that it asks for
        """
        if wrong := memory.tasks.answer(task, reply):
            left = len(memory.tasks.open())
            return {"wrong": wrong, "task": task, "left": left, "text": "nothing of it is kept; answer again"}
        return {"wrong": [], **_next(memory, after=task)}

    return TaskTool.of(memory_answer, _task_rows)


def _answer_rows(result: Result) -> Iterator[str]:
    yield from result["answer"].split("\n")
    for cited in result["citations"]:
        yield f"{cited['doc_id']}:{cited['start_line']}-{cited['end_line']} {cited['text']}"


def ask_tool(memory: Reader) -> Tool:
    """Make the tool that answers from memory, with the lines that the answer rests on."""

    def ask(question: Annotated[str, Rule(longest=4000)]) -> Result:
        """Answer a question from memory, with citations. Slower than search: a model reads what is found.
        Says so where memory holds nothing about it.

        Args:
            question: a question in plain words
        """
        answer = memory.ask(question)
        citations = [
            {**asdict(cited), "text": span(cited.text, 0, LINE_LENGTH)[0]} for cited in answer.citations
        ]
        return {"answer": visible(clean_text(answer.text)), "citations": citations}

    return Tool.of(ask, _answer_rows)


def _recorded_rows(result: Result) -> Iterator[str]:
    yield f"recorded as {result['seq']}, source {result['source']}" if result["recorded"] else "known before"
    for entry in result["entries"]:
        yield f"{entry['seq']} {entry['text']}"


def remember_tool(memory: Memory, trust_user: bool = False) -> Tool:
    """Make the tool that writes down what a client says before a model is asked, and draws from all that
    waits. Only if `trust_user` can the caller say that a text is the user's."""

    def remember(
        text: Annotated[str, Rule(longest=50_000)],
        session: str | None = None,
        speaker: Annotated[str, Rule(longest=200)] | None = None,
        time: Annotated[str, Rule(longest=40)] | None = None,
        key: Annotated[str, Rule(longest=500)] | None = None,
        role: Literal["assistant", "user"] = "assistant",
    ) -> Result:
        """Write something down for later conversations. Nothing is overwritten: a correction is remembered
        anew. Gives the number it was recorded under and the entries drawn from it.

        Args:
            text: one fact or a short passage, with names instead of pronouns
            session: name of the conversation
            speaker: name of who said it
            time: when it was said, ISO 8601
            key: the same key is recorded once
            role: user: these are the user's own words; assistant: yours, or a summary
        """
        given = {"speaker": speaker, "time": time, "session": session, "key": key}
        about = {name: value for name, value in given.items() if value and value.strip() not in NOTHING}
        places = memory.record([Turn(text, role, **about)])
        notes = []
        try:
            if failed := memory.observe(()).unanswered:
                notes.append(unanswered_message(failed))
        except ModelUnavailable as error:
            notes.append(str(error))
        if places and is_hidden(places[0].doc_id):
            notes.append("no tool shows it until a person approves it: infinimem review")
        seq = places[0].entry.seq if places else None
        drawn = [place.entry for place in memory.view.entries() if seq in place.entry.origin] if seq else []
        result: Result = {
            "recorded": seq is not None,
            "seq": seq,
            "source": places[0].entry.source if places else None,
            "entries": [{"seq": entry.seq, "text": shown(entry.text)} for entry in drawn],
        }
        return {**result, "notes": notes} if notes else result

    made = Tool.of(remember, _recorded_rows)
    if not trust_user:  # then nobody can tell a person's words from a model's
        properties = {name: rule for name, rule in made.parameters["properties"].items() if name != "role"}
        made = replace(made, parameters={**made.parameters, "properties": properties})
    return made


# ── the server ────────────────────────────────────────────────────────────────────────────────────


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
    def __init__(self, memory: Memory, trust_user: bool, project: str | None, begin: Begin | None) -> None:
        self._trust_user, self._project, self._begin = trust_user, project, begin
        self._serve(memory)

    def _serve(self, memory: Memory) -> None:
        self.reading: Reader = memory.within(self._project) if self._project else memory
        self.offered = offers(memory, self.reading, self._trust_user)
        is_library = memory.view.initialised or self._begin is not None
        self.sections = dict.fromkeys((*self.offered, *["library"] * is_library), "")

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
            raise LibraryError(NO_LIBRARY)
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
            served.sections,
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
            return work(memory.view.for_models, wanted)
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


# ── over HTTP ─────────────────────────────────────────────────────────────────────────────────────


def token_of(chosen: str | None) -> str:
    """Return the token that was chosen, or a new one; UsageError if it is weak, or cannot stand in a
    header."""
    if chosen is None:
        return secrets.token_urlsafe(32)
    if len(chosen) < SHORTEST or not (chosen.isascii() and chosen.isprintable()) or " " in chosen:
        raise UsageError(f"{TOKEN} needs {SHORTEST} or more ASCII characters without spaces; choose another")
    return chosen


def make_app(server: Any, names: list[str], token: str) -> Any:
    """Make the ASGI application of a server that lets through who carries the token and calls it by one of
    `names`, exactly."""
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


def serve_http(server: Any, address: str, listening: socket.socket, token: str) -> None:
    """Serve until the process is told to end."""
    serve(make_app(server, names(address, listening), token), listening)
