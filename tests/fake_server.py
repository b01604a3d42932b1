"""A model server on loopback that answers what a test tells it to, over real HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Say:
    """One HTTP answer. `promise` is a Content-Length that is not kept."""

    status: int = 200
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    promise: int | None = None
    wait: float = 0.0


def chat(text: str | None, finish: str = "stop", **message: Any) -> Say:
    """A completion with this text."""
    body = {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "finish_reason": finish,
                "message": {"role": "assistant", "content": text, **message},
            }
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107},
    }
    return Say(body=json.dumps(body))


def refuse(status: int, message: str, **more: Any) -> Say:
    """An error in OpenAI's form."""
    return Say(status, json.dumps({"error": {"message": message, "code": None, "type": "x", **more}}))


@dataclass
class FakeServer:
    """Its address, the requests that came, and the answers still to give (the last one is repeated)."""

    url: str
    answers: list[Say | Callable[[dict[str, Any]], Say]]
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    """Of each request, names in lower case."""


@contextmanager
def serve(*answers: Say | Callable[[dict[str, Any]], Say]) -> Iterator[FakeServer]:
    """Run a server for the time of the block. An answer may be made from the request."""
    released = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers["Content-Length"])
            server.requests.append(json.loads(self.rfile.read(size)))
            server.headers.append({name.lower(): value for name, value in self.headers.items()})
            server.keys.append(self.headers.get("Authorization", ""))
            say = server.answers.pop(0) if len(server.answers) > 1 else server.answers[0]
            if not isinstance(say, Say):
                say = say(server.requests[-1])
            if say.wait:
                released.wait(say.wait)
            data = say.body.encode()
            self.send_response(say.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(say.promise or len(data)))
            for name, value in say.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

        def handle(self) -> None:
            with suppress(ConnectionError):  # a client that timed out has hung up
                super().handle()

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server = FakeServer(f"http://127.0.0.1:{httpd.server_port}/v1", list(answers))
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        released.set()
        httpd.shutdown()
        httpd.server_close()
        thread.join()
