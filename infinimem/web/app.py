"""The addresses of the pages, as an ASGI application. Each gives HTML, and with .json what the command line
gives with --json; an open page asks each second for the version of the library that it would show.

Who may see them: the one browser that opened the link, by a name of ours. The link works once and its token
stands in no later address; a request that writes carries a token that no other site knows; nothing on a page
runs, loads or is sent elsewhere.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Callable, Collection, Mapping
from functools import partial
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request, cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from infinimem.errors import DocumentNotFound, InfinimemError, LibraryError, ModelError, UsageError
from infinimem.serving.http import refused, reply
from infinimem.web import pages
from infinimem.web.site import Asked, Moved, Page, Site, served

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
}
FORMS: Mapping[str, Handler] = {
    "/ask": pages.ask,
    "/add": pages.by_hand,
    "/edit": pages.by_hand,
    "/pin": pages.by_hand,
    "/undo": pages.undo,
    "/review": pages.decide,
    "/forget": pages.forget,
}


ENTER = "/enter"
MAX_FORM = 64 * 1024  # bytes of a form
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "referrer-policy": "same-origin",  # with no-referrer a browser would send forms without their Origin
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_PLAIN = {**HEADERS, "content-type": "text/plain; charset=utf-8"}
_ENTERED = '<!doctype html><title>infinimem</title><meta http-equiv="refresh" content="0; url=/">'
"""Not a redirect: with one the cookie would be left out where the link stood on a page of another site, such
as a terminal in the browser."""
_LINK_USED = "this link was used already, or is not this server's; run infinimem web again for another one"


class Session:
    """The one browser that a server serves: the link carries a token, each form another, the cookie the port
    in its name, for a browser keeps cookies by host alone."""

    def __init__(self, port: int) -> None:
        self.token, self.csrf = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        self._name, self._cookie = f"infinimem-{port}", secrets.token_urlsafe(32)
        self._opened = False
        self.used: Callable[[], object] = lambda: None  # called when the link was opened

    def enter(self, query: bytes) -> str | None:
        """Return the cookie for who comes with the token, once; None for everyone else."""
        given = dict(parse_qsl(query.decode("latin-1"))).get("token", "")
        if self._opened or not _same(given, self.token):
            return None
        self._opened = True
        self.used()
        return f"{self._name}={self._cookie}; Path=/; HttpOnly; SameSite=Strict"

    def knows(self, headers: Collection[tuple[bytes, bytes]]) -> bool:
        """Return whether a request carries the cookie."""
        sent = (value.decode("latin-1") for name, value in headers if name.lower() == b"cookie")
        return any(_same(cookie_parser(one).get(self._name, ""), self._cookie) for one in sent)


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(), wanted.encode())


def _guarded(app: Any, session: Session, names: Collection[str], read_only: bool) -> Callable[..., Any]:
    """Put before an application what lets the session's requests through, to one of our names, with their
    forms as scope["form"]; if read-only, none that writes."""

    async def guard(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await app(scope, receive, send)
        if scope["type"] != "http":
            return
        why: tuple[int, str] | None = None
        is_known, is_read = session.knows(scope["headers"]), scope["method"] in ("GET", "HEAD")
        if status := refused(scope["headers"], names):
            why = status, "this server is not called so, or not from there"
        elif scope["path"] == ENTER:
            page = {**HEADERS, "content-type": "text/html", "referrer-policy": "no-referrer"}
            if not is_known and scope["method"] == "GET" and (cookie := session.enter(scope["query_string"])):
                is_known, page["set-cookie"] = True, cookie
            if is_known:
                await reply(send, 200, _ENTERED, page)
                return
            why = 403, _LINK_USED
        elif not is_known:
            why = 401, "open the link that infinimem web printed, in one browser"
        elif not is_read and read_only:
            why = 403, "this memory is served read-only"
        elif not is_read:
            why = await _form(session, scope, receive)
        if why:
            await reply(send, *why, _PLAIN)
            return

        async def headed(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] += [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            await send(message)

        await app(scope, receive, headed)

    return guard


async def _form(session: Session, scope: Any, receive: Any) -> tuple[int, str] | None:
    """Read the form of a request that would write; return why it may not pass, or None."""
    if scope["method"] != "POST":
        return 405, "pages are read by GET and changed by POST"
    body = b""
    try:
        async for part in Request(scope, receive).stream():
            body += part
            if len(body) > MAX_FORM:
                return 413, "the form is too long"
    except ClientDisconnect:
        return 400, "the form did not arrive whole"
    form = dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
    if not _same(form.pop("csrf", ""), session.csrf):
        return 403, "the form is not of a page of this server; reload the page and try again"
    scope["form"] = form
    return None


def make_app(site: Site, session: Session, names: list[str]) -> Any:
    """Make the ASGI application of a site for a session; browsers call it by `names` (HOST:PORT), exactly."""
    routes: list[BaseRoute] = [Mount("/static", StaticFiles(directory=str(files(__package__) / "static")))]
    for methods, handlers in ((["GET"], PAGES), (["POST"], FORMS)):
        for path, handler in handlers.items():
            twin = f"{path}.json" if path != "/" else "/home.json"
            routes.append(Route(twin, partial(_answer, site, handler, True), methods=methods))
            routes.append(Route(path, partial(_answer, site, handler, False), methods=methods))
    routes.append(Route("/version", lambda _: Response(site.version(), media_type="text/plain")))
    return _guarded(Starlette(routes=routes), session, names, read_only=not site.forms)


def _answer(site: Site, handler: Handler, as_json: bool, request: Request) -> Response:
    path = {name: str(value) for name, value in request.path_params.items()}
    scope, query = request.scope, dict(request.query_params)
    asked = Asked(site, scope["path"], path, query, scope.get("form", {}))
    status, version = 200, site.version()  # before: what changes meanwhile is another one
    try:
        page = handler(asked)
    except (InfinimemError, OSError) as error:
        kinds = (
            (DocumentNotFound, 404),
            (UsageError, 400),
            (ModelError, 502),
            (LibraryError, 409 if asked.form else 404),
        )
        status = next((status for kind, status in kinds if isinstance(error, kind)), 500)
        page = Page("error.html", {"error": " ".join(str(error).split())})
    if isinstance(page, Moved):
        where = served(f"{page.path}.json" if as_json else page.path, page.anchor, page.query)
        return RedirectResponse(where, 303)
    if as_json:
        return Response(json.dumps(page.data), status, media_type="application/json")
    return Response(site.html(page, asked, version), status, media_type="text/html")
