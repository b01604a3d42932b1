"""Servers that mean harm: a call ends in time, in little memory and in one line, and goes nowhere else."""

from __future__ import annotations

import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import hostile_server as harm
import pytest
from cases import each
from fake_server import Say, chat, serve

from infinimem.embedders.openai import OpenAIEmbedder
from infinimem.errors import ModelError, ModelNotConfigured, ModelUnavailable
from infinimem.llm.openai_client import OpenAIClient
from infinimem.llm.tasks import ANSWER

KEY = "sk-very-secret-0123456789"
ASK: dict[str, Any] = {"question": "Where does she live?", "evidence": [], "now": "2025-03-03"}
GOOD = chat(json.dumps({"answer": "Lisbon", "cites": ["41"]}))
GB, MB = 1 << 30, 1 << 20

Call = Callable[..., object]


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


def ask_model(url: str, timeout: float = 5.0, retries: int = 0) -> object:
    return OpenAIClient("m", url, KEY, timeout, retries).complete(ANSWER, ASK).data


def embed(url: str, timeout: float = 5.0, retries: int = 0) -> object:
    return OpenAIEmbedder("m", url, KEY, timeout, retries).embed(["a text"])


@pytest.fixture(params=[ask_model, embed])
def call(request: pytest.FixtureRequest) -> Call:
    """A model that is asked, and a text that is embedded."""
    found: Call = request.param
    return found


def refused(call: Call, attack: harm.Attack, told: str, scheme: str = "http", **more: Any) -> harm.Hostile:
    """The call ends in one line that holds these words and no secret."""
    with harm.hostile(attack, scheme) as server, pytest.raises(ModelError, match=told) as caught:
        call(server.url, **more)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400 and KEY not in str(caught.value)
    return server


# ── time ────────────────────────────────────────────────────────────────────────────────────────

SLOW = {
    "body": harm.drip(),
    "header": harm.drip(b"HTTP/1.1 200 OK\r\nX-Slow: a"),
    "status line": harm.drip(b"HTTP/1.1 200 "),
    "chunks": harm.drip(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\nab"),
    "error body": harm.drip(harm.HEAD.replace(b"200", b"500")),
    "interim answers": harm.interim_flood(),
    "crumbs": harm.crumbs(64 * MB),
}


PATIENCE = 60.0
"""Seconds within which anything ends that takes a few on a machine with nothing else to do."""


def each_at_once(play: Callable[[Any], Any], some: Iterable[Any]) -> list[Any]:
    """Wait for all of them together: they are slow, not busy."""
    with ThreadPoolExecutor(20) as threads:
        return list(threads.map(play, some))


def test_a_server_that_drips_has_one_timeout_and_no_second_try() -> None:
    def play(case: tuple[Call, harm.Attack]) -> int:
        return refused(*case, r"was not complete within 2 s", timeout=2, retries=4).connections

    began = time.monotonic()
    cases = [*((ask_model, attack) for attack in SLOW.values()), (embed, SLOW["body"])]
    assert each_at_once(play, cases) == [1] * len(cases)
    assert time.monotonic() - began < PATIENCE


def test_a_server_that_never_begins_to_answer_is_asked_again() -> None:
    def play(case: tuple[Call, harm.Attack, str]) -> int:
        call, attack, scheme = case
        return refused(call, attack, r"no answer within 1 s", scheme, timeout=1, retries=1).connections

    attacks = ((harm.silent, "http"), (harm.deaf, "http"), (harm.deaf, "https"), (harm.drip_tls(), "https"))
    cases = [(ask_model, *each) for each in attacks] + [(embed, harm.deaf, "http")]
    assert each_at_once(play, cases) == [2] * len(cases)


def test_a_resolver_that_hangs(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()

    def hang(*_: object, **__: object) -> list[object]:
        answered.wait(PATIENCE)
        raise socket.gaierror("no such host")

    before = set(threading.enumerate())
    monkeypatch.setattr(socket, "getaddrinfo", hang)
    with pytest.raises(ModelUnavailable, match=r"no answer within 0\.2 s"):
        call("http://slow.example/v1", timeout=0.2)
    answered.set()
    for thread in set(threading.enumerate()) - before:
        thread.join(PATIENCE)
        assert not thread.is_alive()


@each("timeout", [float("inf"), float("nan")])
def test_a_timeout_that_no_clock_takes_counts_as_a_long_one(timeout: float) -> None:
    with serve(GOOD) as server:
        assert ask_model(server.url, timeout=timeout)


# ── how long is waited between tries ────────────────────────────────────────────────────────────


@each(
    ("value", "waited"),
    [
        ("7", 7.0),
        ("1e9", 60.0),
        ("nan", 0.5),
        ("-5", 0.5),
        ("Wed, 21 Oct 2099 07:28:00 GMT", 0.5),
    ],
)
def test_what_a_server_asks_to_wait_is_capped(
    value: str, waited: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)
    with serve(Say(429, "{}", {"Retry-After": value}), GOOD) as server:
        assert ask_model(server.url, retries=1)
    assert waits == [pytest.approx(waited, rel=0.25 if waited < 1 else 0)]


# ── size ────────────────────────────────────────────────────────────────────────────────────────


def test_json_that_is_nested_beyond_all_use(call: Call) -> None:
    for depth in (900, 100_000):
        refused(call, harm.nested(depth), "too deep|base_url")
        refused(call, harm.say("[" * depth + "]" * depth, status=400), "refuses")


def test_json_of_another_shape_is_one_line(call: Call) -> None:
    for body in ('{"choices": {"0": 1}}', '{"choices": ["x"]}', '{"choices": [null]}', "[]", "null", '"x"'):
        refused(call, harm.say(body), "base_url")


@each(
    "field",
    ["Server: \xe9", "Set-Cookie: a=\xe9", *map("Content-Type: x; charset={}".format, ["zlib", "rot13"])],
)
def test_a_header_of_any_kind_is_no_crash(field: str, call: Call) -> None:
    """Only headers with a meaning are taken in; a charset unpacks no body."""

    def attack(caller: harm.Caller) -> None:
        caller.read()
        caller.send(f"HTTP/1.1 500 X\r\n{field}\r\nContent-Length: 2\r\n\r\nno".encode("latin-1"))

    refused(call, attack, "does not answer")


def test_a_server_that_refuses_before_it_has_read_all_is_heard() -> None:
    def attack(caller: harm.Caller) -> None:
        caller.send(harm.head(413, content_length=0))
        caller.wait(0.2)

    with harm.hostile(attack) as server:
        reply = OpenAIClient("m", server.url, KEY, retries=0).complete(
            ANSWER, {**ASK, "question": "x" * 8 * MB}
        )
    assert reply.failure == "TOO_LONG"


# ── where it goes ───────────────────────────────────────────────────────────────────────────────


def test_a_redirect_to_nowhere_is_one_line_as_well() -> None:
    for target in ("", "/v2", "//[", "javascript:alert(1)", "http://\x1b]0;x\x07/", "a" * 9000):
        refused(ask_model, harm.redirect(target), "redirects to|does not answer")


def test_the_key_goes_to_the_address_that_was_named_and_without_a_key_none_does(call: Call) -> None:
    with harm.hostile(harm.say("{}")) as server, pytest.raises(ModelError):
        call(server.url)
    assert f"Authorization: Bearer {KEY}".encode() in server.requests[0]
    with harm.hostile(harm.say("{}")) as server, pytest.raises(ModelError):
        OpenAIClient("m", server.url, retries=0).complete(ANSWER, ASK)
    assert b"authorization" not in server.requests[0].lower()


def test_credentials_in_the_address_are_sent_and_never_told(call: Call) -> None:
    told = "YW5uOnAgdy8xMjM0NTY= and p%20w%2F123456 and p w/123456"
    attack = harm.say(json.dumps({"error": {"message": told}}), 400)
    with harm.hostile(attack) as server, pytest.raises(ModelError) as caught:
        call(server.url.replace("//", "//ann:p%20w%2F123456@"))
    assert b"Authorization: Basic YW5uOnAgdy8xMjM0NTY=" in server.requests[0]
    assert "***" in str(caught.value)
    assert not any(secret in str(caught.value) for secret in (*told.split(" and "), "ann"))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of this machine's own for 127.0.0.1, with its key in the same file."""
    path = tmp_path_factory.mktemp("tls") / "own.pem"
    made = "req -x509 -nodes -days 2 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -subj /CN=test"
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    options = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", path, "-out", f"{path}.crt"]
    subprocess.run(["openssl", *made.split(), *options], check=True, capture_output=True)
    path.write_text(path.read_text() + Path(f"{path}.crt").read_text())
    return path


def test_over_tls_the_same_holds(call: Call, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with (
        harm.hostile(harm.say("{}"), "https", context) as server,
        pytest.raises(ModelError, match="CERTIFICATE"),
    ):
        call(server.url)
    assert not server.requests, "nobody's certificate"
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    for attack, told, timeout in (
        (harm.say("{}"), "base_url", 30.0),
        (harm.drip(), "was not complete", 1.5),
        (harm.endless(GB), "more than", 30.0),
    ):
        with harm.hostile(attack, "https", context) as server, pytest.raises(ModelError, match=told):
            call(server.url, timeout=timeout)
        assert f"Bearer {KEY}".encode() in server.requests[0]


def test_a_proxy_of_the_environment_is_used(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    with harm.hostile(harm.say("{}", status=404)) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.replace("//", "//joe:word@"))
        with pytest.raises(ModelNotConfigured):
            call("http://far.example/v1")
        monkeypatch.setenv("no_proxy", "far.example")
        with pytest.raises(ModelUnavailable, match="does not answer"):
            call("http://far.example/v1")
    [request] = proxy.requests
    assert (
        request.startswith(b"POST http://far.example")
        and b"Proxy-Authorization: Basic am9lOndvcmQ=" in request
    )
    monkeypatch.delenv("no_proxy")
    for other in ("socks5://127.0.0.1:1", "https://127.0.0.1:1", "http://"):
        monkeypatch.setenv("http_proxy", other)
        with pytest.raises(ModelNotConfigured, match="no HTTP proxy"):
            call("http://far.example/v1")


def test_a_proxy_is_asked_for_a_tunnel_and_sees_no_key(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    with harm.hostile(harm.say("", status=407)) as proxy:
        monkeypatch.setenv("https_proxy", proxy.url.replace("//", "//joe:word@"))
        with pytest.raises(ModelUnavailable, match=r"407 .*HTTPS_PROXY"):
            call("https://far.example/v1")
    [request] = proxy.requests
    assert request.startswith(b"CONNECT far.example:443") and KEY.encode() not in request
    assert b"Proxy-Authorization: Basic am9lOndvcmQ=" in request


# ── embedders ───────────────────────────────────────────────────────────────────────────────────


def test_refusals_without_end_cost_a_bounded_number_of_requests() -> None:
    """Only single texts of 200 characters pass: the worst that halving can lead to."""

    def picky(request: dict[str, Any]) -> Say:
        if len(request["input"]) > 1 or len(request["input"][0]) > 200:
            return Say(400, "{}")
        return Say(body=json.dumps({"data": [{"index": 0, "embedding": [1.0, 2.0]}]}))

    with serve(picky) as server:
        rows = OpenAIEmbedder("m", server.url).embed(["x" * 1600] * 20)
    assert rows.any(axis=1).all()
    assert len(server.requests) == 1 + 19 + 20 * 4, "a request for the size, 19 halvings, 4 lengths of a text"


NO_VECTORS = (
    '[{"index": 0, "embedding": %s}]' % ([0] * 20_000),
    '[{"index": 0, "embedding": []}]',
    '[{"index": 0, "embedding": [[1.0]]}]',
    '[{"index": 0, "embedding": ["x"]}]',
    '[{"index": 0, "embedding": [1%s]}]' % ("0" * 400),
    '[{"index": null, "embedding": [1.0]}]',
    '[{"embedding": [1.0]}]',
    "[7]",
    "7",
    '{"0": 1}',
)


def test_vectors_that_are_none_are_one_line() -> None:
    for data in NO_VECTORS:
        refused(embed, harm.say(f'{{"data": {data}}}'), "not with a vector a text")


# ── the installed program ───────────────────────────────────────────────────────────────────────

MEASURE = """\
import resource, subprocess, sys, time
began = time.monotonic()
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
took = time.monotonic() - began
memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
print(done.returncode, memory, took, done.stderr, end="")
"""
"""Runs a command from a small process, whose memory does not count; prints its code, MiB and seconds."""


class Program:
    """The installed command line in a world of its own, with a model or an embedder at an address."""

    def __init__(self, home: Path) -> None:
        self.script = Path(sys.executable).with_name("infinimem")
        if not self.script.exists():
            pytest.skip("infinimem is not installed beside this Python")
        self.home = home
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "OPENAI_API_KEY": KEY,
            "INFINIMEM_LIBRARY": str(home / "m"),
            "INFINIMEM_TRUST": str(home / "m"),
        }
        self.run("offline", None, "init", str(home / "m"))
        self.run("offline", None, "add", "I moved to Lisbon in March.")

    def run(self, model: str, url: str | None, *args: str) -> tuple[int, int, float, str]:
        """Its exit code, its largest memory in MiB, its seconds, and what it said on stderr."""
        environment = self.environment | ({"OPENAI_BASE_URL": url} if url else {})
        command = [sys.executable, "-c", MEASURE, str(self.script), "--model", model, *args]
        done = subprocess.run(command, env=environment, cwd=self.home, capture_output=True, text=True)
        code, memory, took, said = done.stdout.split(" ", 3)
        print(f"{args[0]}: code {code}, {memory} MiB, {float(took):.1f} s, {said.strip()}")
        return int(code), int(memory), float(took), said

    def setting(self, text: str) -> None:
        (self.home / "m/infinimem.toml").write_text(f"format = 1\n{text}\n")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return Program(tmp_path_factory.mktemp("program"))


def test_a_gigabyte_of_reply_costs_the_program_little_memory(program: Program) -> None:
    program.setting('[llm]\nretries = 0\ntimeout = 60\n[reader]\nname = "bm25"')
    with harm.hostile(harm.say(GOOD.body)) as server:
        code, ordinary, _, said = program.run("m", server.url, "ask", "Where do I live?")
    assert code == 0, said
    for attack in (
        harm.endless(GB),
        harm.bomb(GB),
        harm.endless(GB, status=400),
        harm.wide(4 * MB),
    ):
        with harm.hostile(attack) as server:
            code, memory, _, said = program.run("m", server.url, "ask", "Where do I live?")
        assert code == 1 and said.count("\n") == 1 and KEY not in said, said
        assert memory < ordinary + 60


def test_a_gigabyte_of_vectors_costs_the_program_little_memory(program: Program) -> None:
    program.setting('[embedder]\nname = "openai"\nmodel = "m"')
    with harm.hostile(harm.say('{"data": [{"index": 0, "embedding": [1.0]}]}')) as server:
        code, ordinary, _, said = program.run("offline", server.url, "search", "Lisbon")
    for attack in (harm.endless(GB), harm.wide(8 * MB)):
        with harm.hostile(attack) as server:
            code, memory, _, said = program.run("offline", server.url, "search", "Lisbon")
        assert code == 0 and server.requests and "words alone" in said and KEY not in said, said
        assert memory < ordinary + 60
