"""The addresses of the pages, as an ASGI application: each gives HTML, and with .json what the command line
gives with --json."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from infinimem.errors import DocumentNotFound, InfinimemError, LibraryError, ModelError, UsageError
from infinimem.web import acting, changes, overview, reading
from infinimem.web.guard import Guard, Session
from infinimem.web.live import Live
from infinimem.web.site import Asked, Moved, Page, Site, served

Handler = Callable[[Asked], Page | Moved]

PAGES: Mapping[str, Handler] = {
    "/": reading.home,
    "/topics": reading.topics,
    "/doc/{id:path}": reading.document,
    "/fact/{seq}": reading.line,
    "/search": reading.search,
    "/ask": acting.asking,
    "/timeline": changes.timeline,
    "/receipt/{name}": changes.receipt,
    "/review": changes.review,
    "/forget": acting.forgetting,
    "/conversations": overview.conversations,
    "/map": overview.graph,
    "/recall": overview.recall,
}
"""What is read, by address."""
FORMS: Mapping[str, Handler] = {
    "/ask": acting.ask,
    "/undo": acting.undo,
    "/review": acting.decide,
    "/forget": acting.forget,
}
"""What is done, by the address that a form is sent to."""


def make_app(site: Site, session: Session, names: list[str], live: Live) -> Any:
    """The ASGI application.

    Args:
        site: the library as pages.
        session: who may see it.
        names: HOST:PORT by which browsers may call, exactly.
        live: tells open pages what changes.
    """
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
        status = _status(error, bool(asked.form))
        page = Page("error.html", {"error": " ".join(str(error).split())})
    if isinstance(page, Moved):
        return RedirectResponse(served(f"{page.path}.json" if as_json else page.path, "", {}), 303)
    if as_json:
        return Response(json.dumps(page.data), status, media_type="application/json")
    return Response(asked.site.html(page, asked), status, media_type="text/html")


def _status(error: Exception, writes: bool) -> int:
    """What was asked for is not there, cannot be, or cannot be done now."""
    kinds = (
        (DocumentNotFound, 404),
        (UsageError, 400),
        (ModelError, 502),
        (LibraryError, 409 if writes else 404),
    )
    return next((status for kind, status in kinds if isinstance(error, kind)), 500)
