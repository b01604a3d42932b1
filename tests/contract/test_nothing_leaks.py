"""The promises of docs/SECURITY.md: servers that mean harm, folders that do, and where a key may be."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import hostile_server as harm
import pytest
from cli_runner import Ran, Shell
from fake_server import chat, refuse, serve
from scripted import OFFLINE, SAMPLE

KEY = "sk-test-4Xk9vQ2mT7"
SECRET = "the combination is 4711"
MB = 1 << 20
PATIENCE = 60.0
"""Seconds within which anything ends that takes one on an idle machine."""


def configured(shell: Shell, text: str) -> None:
    config = shell.home / ".config" / "infinimem" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(text)


def contents(*folders: Path) -> bytes:
    """All names and bytes below folders."""
    paths = [path for folder in folders for path in folder.rglob("*")]
    names = "\n".join(map(str, paths)).encode()
    return names + b"".join(p.read_bytes() for p in paths if p.is_file() and not p.is_symlink())


@pytest.fixture
def sample(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """On a copy of the sample library, with a cache of its own and a key."""
    shutil.copytree(SAMPLE, shell.library, dirs_exist_ok=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(shell.home / "cache"))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    return shell


# ── servers ─────────────────────────────────────────────────────────────────────────────────────

ATTACKS: dict[str, harm.Attack] = {
    "drips": harm.drip(),
    "drips its head": harm.drip(b"HTTP/1.1 200 OK\r\nX-Slow: a"),
    "says continue for ever": harm.interim_flood(),
    "crumbs": harm.crumbs(64 * MB),
    "too much": harm.endless(64 * MB),
    "head flood": harm.head_flood(16 * MB),
    "compressed": harm.bomb(100 * MB),
    "deflated": harm.bomb(100 * MB, "deflate"),
    "packed twice": harm.say(b"\0" * 100, content_encoding="gzip, gzip"),
    "packed otherwise": harm.say(b"\0" * 100, content_encoding="br"),
    "nested": harm.nested(100_000),
    "silent": harm.silent,
    "hangs up": lambda _: None,
    "redirects within": harm.say("", 307, location="/v2/chat/completions"),
    "no JSON": harm.say("<html>"),
    "quotes the key": harm.say(json.dumps({"error": {"message": f"bad key {KEY}"}}), 400),
}


@pytest.mark.sample(7)
@pytest.mark.parametrize("name", ATTACKS)
def test_a_server_that_means_harm_costs_a_line_and_no_turn(
    sample: Shell, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a model server sends: one line of error in time, the turn recorded, the library sound."""
    configured(sample, "[llm]\ntimeout = 0.5\nretries = 0\n")
    began = time.monotonic()
    with harm.hostile(ATTACKS[name]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        ran = sample("--model", "m", "add", "My oboe is from 1911.")
    assert time.monotonic() - began < PATIENCE
    ran.failed(1, "127.0.0.1")
    assert len(ran.err) < 600
    assert KEY not in ran.err
    assert server.connections <= 6
    assert "My oboe is from 1911." in sample("search", "oboe").out
    assert sample("doctor", *OFFLINE).code == 0
    assert KEY.encode() not in contents(sample.library, sample.home)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_takes_text_or_key_elsewhere(
    sample: Shell, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A redirect is refused in a line; the other address gets no request."""
    with (
        serve(chat("{}")) as other,
        harm.hostile(harm.redirect(f"{other.url}/chat/completions", status)) as server,
    ):
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        sample("--model", "m", "ask", "Who is Pepper?").failed(1, "redirect")
        assert other.requests == []


def test_a_key_stands_in_no_output_log_or_file(
    sample: Shell, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The key goes to the server that was named; no output, log, file of library, cache or home has it."""
    caplog.set_level(logging.DEBUG)
    ran: list[Ran] = []
    refusal = refuse(400, f"Incorrect API key provided: {KEY}")
    for reply, user in ((chat("{}"), ""), (refusal, "user:pass-5512@")):
        with serve(reply) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.url.replace("//", f"//{user}"))
            monkeypatch.setenv("INFINIMEM_MODEL", "m")
            for command in (
                ("add", "My oboe is from 1911."),
                ("-v", "ask", "Who is Pepper?"),
                ("-v", "--embedder", "openai", "search", "Pepper"),
                *(("consolidate",), ("config",), ("status",), ("doctor",), ("log",), ("trust",), ("lint",)),
            ):
                ran += [sample(*command), sample("--json", *command)]
            assert user or set(server.keys) == {f"Bearer {KEY}"}
    told = "".join(one.out + one.err for one in ran) + caplog.text
    assert "127.0.0.1" in told
    everything = told.encode() + contents(sample.library, sample.home)
    for secret in (KEY, "pass-5512"):
        assert secret.encode() not in everything


# ── folders ─────────────────────────────────────────────────────────────────────────────────────

READS = (
    *(("search", "combination"), ("grep", "4711", "--scope", "all"), ("ls", "--scope", "all")),
    *(("read", "topics/link"), ("read", "linked/secret"), ("ask", "What is the combination?", *OFFLINE)),
    *(("retrieve", "combination"), ("history", "66"), ("blame", "topics/link"), ("lint",), ("doctor",)),
)
WRITES = (
    *(("add", "My oboe is from 1911.", *OFFLINE), ("consolidate", *OFFLINE), ("rebuild", *OFFLINE)),
    *(("undo",), ("forget", "--match", "combination", "--yes"), ("doctor", "--fix")),
    ("forget", "--match", "oboe", "--yes"),
)


def test_settings_of_an_untrusted_folder_choose_no_server(
    sample: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Model, embedder and address of a folder that nobody trusted get no byte; turns wait, and it is said."""
    with serve(chat("{}")) as server:
        text = f'[llm]\nmodel = "m"\nbase_url = "{server.url}"\n'
        text += f'[embedder]\nname = "openai"\nmodel = "e"\nbase_url = "{server.url}"\n'
        text += "[memory_tool]\nobserve = true\n[hooks]\ndaily_tokens = 1000000\n"
        (sample.library / "infinimem.toml").write_text(text)
        for command in (*READS, ("status",), ("config",), ("compare", "Who is Pepper?")):
            said = tuple(word for word in command if word not in OFFLINE)
            assert "Traceback" not in sample(*said).err
        ran = sample("add", "My oboe is from 1911.")
        assert "infinimem trust" in ran.err
        assert "My oboe is from 1911." in sample("search", "oboe").out
        sample("recall", "Who is Pepper?", "--cwd", str(sample.library))
        assert server.requests == []
        rows = {row["name"]: row for row in sample("--json", "config").json["settings"]}
        assert rows["llm.base_url"]["suspended"] == server.url
        sample("trust", "--yes")
        sample("ask", "Who is Pepper?")
        assert server.requests  # and once it is trusted, they are used


PLACES = "topics/link.md evidence/link.md archive/link.md journal/0099-undo.md link.md linked".split()


def test_no_link_leads_out_of_a_library(sample: Shell) -> None:
    """Nothing behind a link is shown, changed or removed, by reading or by writing commands."""
    outside = sample.home / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text(f"- <seq=9,source=user> {SECRET}\n- {SECRET}\n")
    for place in PLACES:
        target = outside if place == "linked" else outside / "secret.md"
        (sample.library / place).symlink_to(target)
    before = contents(outside)
    for command in (*READS, *WRITES):
        ran = sample(*command)
        assert SECRET not in ran.out + ran.err, command
        assert "Traceback" not in ran.err
    assert contents(outside) == before
    assert all((sample.library / place).is_symlink() for place in PLACES)
    assert SECRET.encode() not in contents(sample.library, sample.home / "cache")


@pytest.mark.sample(3)
@pytest.mark.parametrize("place", ["CURRENT.md", "evidence", "topics", "archive", "journal", ".infinimem"])
def test_no_folder_of_the_program_may_be_a_link(sample: Shell, place: str) -> None:
    """Where a folder of the program is a link, nothing behind it is read or written; a line says so."""
    outside = sample.home / "outside"
    path = sample.library / place
    if path.exists():
        shutil.move(path, outside)
    else:
        outside.mkdir()
    path.symlink_to(outside)
    before = outside.read_bytes() if outside.is_file() else contents(outside)
    for command in WRITES:
        ran = sample(*command)
        assert ran.code in (0, 1, 2)
        assert "Traceback" not in ran.err
        assert not ran.code or ran.err.splitlines()[-1].startswith("error: ") or command[0] == "doctor"
    assert (outside.read_bytes() if outside.is_file() else contents(outside)) == before
    assert path.is_symlink()


def test_pipes_and_devices_are_passed_over(sample: Shell) -> None:
    """A FIFO or a link to a device in a library or an import holds nothing up; an import lists it."""
    (sample.library / "notes").mkdir()
    folder = sample.home / "in"
    folder.mkdir()
    (folder / "a.md").write_text("# Boat\n\nThe berth is number 14.\n")
    for place in (sample.library / "topics", sample.library / "notes", sample.library / "evidence", folder):
        os.mkfifo(place / "pipe.md")
        (place / "zero.md").symlink_to("/dev/zero")
    program = [sys.executable, "-m", "infinimem", "--library", str(sample.library), *OFFLINE]
    for command in (["search", "router"], ["ls"], ["read", "topics/pipe"], ["doctor"], ["consolidate"]):
        ran = subprocess.run([*program, *command], capture_output=True, text=True, timeout=PATIENCE)
        assert "Traceback" not in ran.stderr
        assert ran.returncode == (1 if command[0] == "read" else 0), ran
    done = [*program, "--json", "import", str(folder), "--format", "markdown"]
    ran = subprocess.run(done, capture_output=True, text=True, timeout=PATIENCE)
    found = json.loads(ran.stdout)
    assert found["turns"] >= 1
    assert {"pipe.md", "zero.md"} <= {Path(name).name for name in found["left_out"]}


# ── MCP over HTTP ───────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def post(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., int]]:
    """A first call to a server, with these headers in addition to its token; gives the status."""
    pytest.importorskip("mcp", reason="infinimem[mcp] is not installed")
    from mcp_serving import serve as serving

    with serving(tmp_path_factory.mktemp("served")) as server:
        yield lambda **more: server.post(**{"Authorization": server.bearer, **more})[0]


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Basic eDp5"}, 401),
        ({"Authorization": "Bearer "}, 401),
        ({"Authorization": "Bearer \xe9\xff"}, 401),
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example:80"}, 421),
        ({"Host": "127.0.0.1@evil.example"}, 421),
        ({"Host": "127.0.0.1"}, 421),
        ({"Host": "127.0.0.1:1"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost"}, 403),
        ({"Origin": "file://"}, 403),
    ],
)
def test_mcp_over_http_wants_its_token_host_and_origin(
    post: Callable[..., int], headers: dict[str, str], status: int
) -> None:
    """A wrong or missing token, a foreign Host and a foreign Origin are refused."""
    assert post(**headers) == status
