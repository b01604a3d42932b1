"""The installed server over HTTP, in a process of its own."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp_client import environment, make_library

HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "t", "version": "1"},
}


@dataclass(frozen=True)
class Serving:
    """A server that runs, where, and what it wants to hear."""

    url: str
    token: str
    process: subprocess.Popen[str]
    log: Path
    """What it wrote to standard error."""

    @asynccontextmanager
    async def client(self) -> Any:
        """The official transport, with the token."""
        headers = {"Authorization": f"Bearer {self.token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as carrier,
            streamable_http_client(self.url, http_client=carrier) as streams,
        ):
            yield streams

    def call(self, method: str, params: Mapping[str, Any], **headers: str) -> tuple[int, str, str | None]:
        """A call by hand; gives the status, the body and the session."""
        connection = http.client.HTTPConnection(*self.address, timeout=60)
        usual = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        connection.request("POST", urlsplit(self.url).path, json.dumps(body), {**usual, **headers})
        answer = connection.getresponse()
        found = answer.status, answer.read().decode(), answer.getheader("mcp-session-id")
        connection.close()
        return found

    def post(self, **headers: str) -> tuple[int, str]:
        """A first call by hand; gives the status and the body."""
        return self.call("initialize", HELLO, **headers)[:2]

    def session(self) -> dict[str, str]:
        """The headers of a session that was opened."""
        headers = {"Authorization": self.bearer}
        return headers | {"Mcp-Session-Id": str(self.call("initialize", HELLO, **headers)[2])}

    @property
    def bearer(self) -> str:
        return f"Bearer {self.token}"

    @property
    def address(self) -> tuple[str, int]:
        at = urlsplit(self.url)
        return str(at.hostname), int(at.port or 0)

    def send(self, data: bytes) -> socket.socket:
        """A connection by hand, on which this was sent."""
        connection = socket.create_connection(self.address, timeout=30)
        connection.sendall(data)
        return connection


@contextmanager
def serve(folder: Path, first: str = "", **env: str) -> Iterator[Serving]:
    """Run `infinimem mcp --http` on a library below `folder`.

    Args:
        first: Python that runs before the command does.
        env: more of its environment.
    """
    memory = make_library(folder)
    code = f"{first}\nfrom infinimem.cli import main\nmain()"
    options = ["--library", str(memory.library.root), "-q", "--json", "mcp", "--http", "127.0.0.1:0"]
    log = folder / "log"
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [sys.executable, "-c", code, *options],
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment(folder) | env,
            text=True,
        ) as process,
    ):
        try:
            assert process.stdout
            said = json.loads(process.stdout.readline())
            yield Serving(said["url"], said["token"], process, log)
        finally:
            process.terminate()
            process.wait(30)
