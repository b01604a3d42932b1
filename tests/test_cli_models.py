"""Models that fail under the command line: a dead endpoint, a reply that stops in the middle."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cli_runner import Shell
from trusting import write_trusted


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    shell = Shell(tmp_path, monkeypatch)
    shell("init")
    write_trusted(shell.library, 'format = 1\n[llm]\nmodel = "m"\nretries = 0\ntimeout = 5.0\n')
    return shell


class _Stops(BaseHTTPRequestHandler):
    """A server whose model stops in the middle of its JSON."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        message = {"role": "assistant", "content": '{"entries": [{"text": "I mo'}
        body = {
            "id": "x",
            "object": "chat.completion",
            "created": 0,
            "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": "length"}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18},
        }
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        return


@pytest.fixture
def stopping(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Stops)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_port}/v1")
    yield
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_dead_endpoint_strands_nothing(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    shell("-q", "add", "I moved to Lisbon in March.").failed(1, "recorded")
    assert shell("status", "--json").json["pending"] == 1
    done = shell("--model", "offline", "consolidate", "--json").json
    assert done["receipt"]
    assert shell("status", "--json").json["pending"] == 0
    assert "Lisbon" in shell("grep", "Lisbon").out


def test_a_reply_that_stops_in_the_middle_costs_no_line(shell: Shell, stopping: None) -> None:
    done = shell("add", "I moved to Lisbon in March.", "--json")
    assert done.code == 3, done.err
    assert done.json["entries"] == []
    assert "I moved to Lisbon in March." in shell("search", "Lisbon").out
    assert "I moved to Lisbon in March." in shell("grep", "Lisbon", "--scope", "evidence").out
    assert shell("ask", "Where did I move?").code == 0
    assert shell("doctor").code == 0
