"""The addresses of the pages, as an ASGI application, and what changes while they are open, told by
server-sent events. Each address gives HTML, and with .json what the command line gives with --json.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from importlib.resources import files
from threading import Lock, Thread
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from infinimem.errors import DocumentNotFound, InfinimemError, LibraryError, ModelError, UsageError
from infinimem.log import log
from infinimem.memory import Memory
from infinimem.watch import watch
from infinimem.web import pages
from infinimem.web.guard import Guard, Session
from infinimem.web.site import Asked, Moved, Page, Site, served

ALIVE = 15.0  # seconds after which a page is told that nothing changed: so one that is gone is noticed
Handler = Callable[[Asked], Page | Moved]

PAGES: Mapping[str, Handler] = {
    "/": pages.home,
    "/topics": pages.topics,
    "/doc/{id:path}": pages.document,
    "/fact/{seq}": pages.line,
    "/search": pages.search,
    "/ask": pages.asking,
    "/timeline": pages.timeline,
    "/receipt/{name}": pages.receipt,
    "/review": pages.review,
    "/forget": pages.forgetting,
    "/conversations": pages.conversations,
    "/map": pages.graph,
    "/recall": pages.recall,
}
"""What is read, by address."""
FORMS: Mapping[str, Handler] = {
    "/ask": pages.ask,
    "/undo": pages.undo,
    "/review": pages.decide,
    "/forget": pages.forget,
}
"""What is done, by the address that a form is sent to."""


class Live:
    """Tells open pages that something changed; they ask again for what they show. One thread watches for all
    pages, from when the first one asks, and signs nothing."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._pages: set[asyncio.Event] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = Lock()
        self._watching = self._ended = False

    async def stream(self) -> AsyncIterator[str]:
        """Yield the events of one page, until it goes."""
        changed = asyncio.Event()
        with self._lock:
            self._loop = asyncio.get_running_loop()
            self._pages.add(changed)
            begins, self._watching = not self._watching, True
        if begins:
            Thread(target=self._watch, name="infinimem-web-watch", daemon=True).start()
        try:
            yield "retry: 1000\n\n"
            while not self._ended:
                try:
                    await asyncio.wait_for(changed.wait(), ALIVE)
                    changed.clear()
                    yield "event: changed\ndata:\n\n"
                except TimeoutError:
                    yield ": nothing changed\n\n"
        finally:
            with self._lock:
                self._pages.discard(changed)

    def end(self) -> None:
        """Let every page go: the server ends."""
        self._ended = True
        self._tell()

    def _watch(self) -> None:
        try:
            for _ in watch(self._memory, signs=False):
                self._tell()
        except (InfinimemError, OSError) as error:
            log.warning("changes are not shown any more (%s)", error)
            with self._lock:
                self._watching = False  # the next page that comes tries again

    def _tell(self) -> None:
        loop = self._loop  # no lock: a signal may have interrupted who holds it
        for page in tuple(self._pages):
            if loop and not loop.is_closed():
                loop.call_soon_threadsafe(page.set)


def make_app(site: Site, session: Session, names: list[str], live: Live) -> Any:
    """Make the ASGI application of a site for a session; browsers call it by `names` (HOST:PORT), exactly."""
    routes: list[BaseRoute] = [Mount("/static", StaticFiles(directory=str(files(__package__) / "static")))]
    for methods, handlers in ((["GET"], PAGES), (["POST"], FORMS)):
        for path, handler in handlers.items():
            twin = f"{path}.json" if path != "/" else "/home.json"
            routes.append(Route(twin, _endpoint(site, handler, as_json=True), methods=methods))
            routes.append(Route(path, _endpoint(site, handler), methods=methods))

    async def events(request: Request) -> Response:
        return StreamingResponse(live.stream(), media_type="text/event-stream")

    routes.append(Route("/events", events))
    return Guard(Starlette(routes=routes), session, names, read_only=not site.forms)


def _endpoint(site: Site, handler: Handler, as_json: bool = False) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        path = {name: str(value) for name, value in request.path_params.items()}
        scope, query = request.scope, dict(request.query_params)
        asked = Asked(site, scope["path"], path, query, scope.get("form", {}))
        return await run_in_threadpool(_answer, asked, handler, as_json)

    return answer


def _answer(asked: Asked, handler: Handler, as_json: bool) -> Response:
    status = 200
    try:
        page = handler(asked)
    except (InfinimemError, OSError) as error:
        named = asked.path.get("id", "")
        if as_json and f"{named}.json" in asked.memory.view:  # a document that is called so
            return _answer(replace(asked, path={"id": f"{named}.json"}), handler, as_json=False)
        kinds = (
            (DocumentNotFound, 404),
            (UsageError, 400),
            (ModelError, 502),
            (LibraryError, 409 if asked.form else 404),
        )
        status = next((status for kind, status in kinds if isinstance(error, kind)), 500)
        page = Page("error.html", {"error": " ".join(str(error).split())})
    if isinstance(page, Moved):
        return RedirectResponse(served(f"{page.path}.json" if as_json else page.path, "", {}), 303)
    if as_json:
        return Response(json.dumps(page.data), status, media_type="application/json")
    return Response(asked.site.html(page, asked), status, media_type="text/html")
