"""The facade as a Python program holds it: chat messages, event loops, closing, and that it keeps quiet."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from cases import each
from fake_server import chat, serve
from infinimem.tools import Toolbox

from infinimem import AsyncMemory, InfinimemError, Memory, Turn, open_memory
from infinimem.async_memory import AsyncReader, AsyncToolbox
from infinimem.errors import UsageError
from infinimem.llm.openai_client import OpenAIClient
from infinimem.reader import Reader

SAID = [Turn("I moved to Lisbon.", time="2025-03-03", session="s1")]


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    made = open_memory(tmp_path / "notes", model="offline", create=True)
    made.observe(SAID)
    return made


# ── tools as functions ──────────────────────────────────────────────────────────────────────────


def test_tools_are_called_like_functions(memory: Memory) -> None:
    search = memory.tools.search
    assert search("Lisbon", 3) == search("Lisbon", k=3) == search(query="Lisbon", k=3)
    assert memory.tools.call("search", {"query": "Lisbon", "k": 3}) == search("Lisbon", 3)
    assert search("Lisbon", k=99)["notes"] == ["k = 99 is out of range, 50 was used"]
    assert memory.tools.read_lines("nowhere")["error"].startswith("no document is called 'nowhere'")
    with pytest.raises(TypeError, match=r"^search\(\) takes query, k, .*, arc: .* 'limit'$"):
        search("Lisbon", limit=3)  # type: ignore[call-arg]
    assert str(inspect.signature(search)).startswith("(query: str, k: ")
    assert (inspect.getdoc(search) or "").startswith("Rank the sections")


def test_functions_give_the_text_that_a_model_is_shown(memory: Memory) -> None:
    for function in memory.tools.functions():
        arguments = {"query": "Lisbon", "pattern": "Lisbon", "doc_id": "CURRENT"}
        taken = {
            name: arguments[name] for name in inspect.signature(function).parameters if name in arguments
        }
        assert function(**taken) == memory.tools.text(function.__name__, taken)
        assert inspect.signature(function).return_annotation is str


# ── messages of a chat ──────────────────────────────────────────────────────────────────────────


class Block:
    """A part of a message as an SDK's object."""

    def model_dump(self) -> dict[str, Any]:
        return {"type": "text", "text": "Noted: Lisbon it is."}


OPENAI = [
    {"role": "system", "content": "You help."},
    {"role": "user", "content": "I moved to Lisbon."},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function"}]},
    {"role": "tool", "tool_call_id": "1", "content": "a result"},
    {"role": "function", "name": "f", "content": "a result"},
    {
        "role": "user",
        "content": [{"type": "text", "text": "And this."}, {"type": "image_url", "image_url": {}}],
    },
    {"role": "assistant", "content": "Noted: Lisbon it is."},
]
ANTHROPIC = [
    {"role": "user", "content": [{"type": "text", "text": "I moved to Lisbon."}]},
    {
        "role": "assistant",
        "content": [{"type": "thinking", "thinking": "h"}, {"type": "tool_use", "input": {}}],
    },
    {"role": "user", "content": [{"type": "tool_result", "content": "a result"}]},
    {"role": "user", "content": "And this."},
    {"role": "assistant", "content": [Block()]},
]


@pytest.mark.parametrize("messages", [OPENAI, ANTHROPIC], ids=["openai", "anthropic"])
def test_messages_are_taken_as_they_are(tmp_path: Path, messages: list[dict[str, Any]]) -> None:
    memory = open_memory(tmp_path, model="offline", create=True)
    memory.observe(messages)
    said = [(place.entry.source, place.entry.text) for place in memory.view.entries("evidence")]
    assert said == [("user", "I moved to Lisbon."), ("user", "And this."), ("AI", "Noted: Lisbon it is.")]


def test_a_message_has_what_a_turn_has(memory: Memory) -> None:
    message = {"role": "user", "content": "It rains.", "name": "Ann", "time": "2025-03-04", "session": "s2"}
    (place,) = memory.record([message])
    assert (place.entry.time, place.doc_id) == ("2025-03-04", "evidence/2025-03-04-s2")
    assert place.entry.fields["speaker"] == "Ann"
    (plain,) = memory.record([{"role": "user", "content": "No session."}])
    assert "session" not in plain.entry.fields


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"content": "x"}, "needs a role and content"),
        ({"role": "user"}, "needs a role and content"),
        ({"role": "usr", "content": "x"}, "role 'usr' is unknown"),
        ({"role": "user", "content": "x", "session": "s" * 2000}, "too long"),
        ("I moved.", "a Turn is wanted, not str"),
    ],
)
def test_what_is_no_message_is_refused(memory: Memory, message: Any, words: str) -> None:
    before = len(list(memory.view.entries("evidence")))
    with pytest.raises(UsageError, match=words):
        memory.observe([*SAID, message])
    assert len(list(memory.view.entries("evidence"))) == before


# ── opening and closing ─────────────────────────────────────────────────────────────────────────


def test_it_says_what_it_is(memory: Memory) -> None:
    assert repr(memory) == f"Memory({str(memory.library.root)!r}, strategy='infini', model='offline')"
    assert repr(AsyncMemory(memory)) == f"AsyncMemory({memory!r})"


def watching(memory: Memory) -> set[threading.Thread]:
    """The threads that watch its folder, once they do."""
    memory.library.fresh.watcher.wait(0.01)
    for one in threading.enumerate():
        if one.name == "infinimem-watch":
            one.join()
    found = {one for one in threading.enumerate() if type(one).__module__.startswith("watchdog")}
    assert found
    return found


def assert_ended(threads: set[threading.Thread]) -> None:
    for one in threads:
        one.join(60)
        assert not one.is_alive()


def test_closing_ends_threads_and_works_on(tmp_path: Path) -> None:
    with open_memory(tmp_path, model="offline", create=True) as memory:
        threads = watching(memory)
    assert_ended(threads)
    memory.observe(SAID)
    assert memory.tools.search("Lisbon")["hits"]
    memory.close()


def connections(url: str) -> int:
    """How many this process has open to a server of its own."""
    port = int(url.rpartition(":")[2].partition("/")[0])
    sockets = [one for one in gc.get_objects() if isinstance(one, socket.socket) and one.fileno() >= 0]
    return sum(one.type == socket.SOCK_STREAM and peer(one) == port for one in sockets)


def peer(one: socket.socket) -> int | None:
    try:
        return int(one.getpeername()[1])
    except OSError:
        return None


@pytest.mark.parametrize("strategy", ["infini", "recmem", "xmemory"])
def test_no_file_stays_open_when_nobody_has_the_library_any_more(tmp_path: Path, strategy: str) -> None:
    """At once: a long-lived process looks for circles of garbage too seldom for its file descriptors."""

    def opened() -> list[str]:
        links = map(os.path.realpath, Path("/proc/self/fd").iterdir())
        return [path for path in links if tmp_path.name in path or "/index-" in path]

    if not Path("/proc/self/fd").is_dir():
        pytest.skip("only Linux tells a process what it has open")
    gc.collect()
    before = opened()
    gc.disable()
    try:
        memory = open_memory(tmp_path / "m", model="offline", strategy=strategy, create=True)
        memory.observe([Turn(f"My cat Io is {n} years old.", session="s") for n in range(4)])
        memory.consolidate()
        memory.ask("How old is Io?")
        memory.tools.search("Io")
        assert memory.history(1) and memory.doctor() == [] and len(opened()) > len(before)
        del memory
        assert opened() == before
    finally:
        gc.enable()


def test_no_connection_to_a_model_stays_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BaseHTTPRequestHandler, "protocol_version", "HTTP/1.1")  # it keeps connections
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    with serve(chat('{"entries": []}')) as server:
        memory = open_memory(tmp_path, model=OpenAIClient("m", server.url), create=True)
        for turn in (*SAID, Turn("It rains.", session="s1")):
            memory.observe([turn])
            assert connections(server.url) == 0


# ── event loops ─────────────────────────────────────────────────────────────────────────────────


def methods(kind: type) -> dict[str, Callable[..., Any]]:
    found = inspect.getmembers(kind, inspect.isfunction)
    return {name: method for name, method in found if not name.startswith("_")}


@each(
    ("kind", "sync", "same"),
    [
        (AsyncMemory, Memory, set()),
        (AsyncReader, Reader, set()),
        (AsyncToolbox, Toolbox, {"openai", "anthropic", "functions"}),
    ],
)
def test_every_method_can_be_awaited(kind: type, sync: type, same: set[str]) -> None:
    there, wanted = methods(kind), methods(sync)
    assert there.keys() == wanted.keys() - same
    for name, method in there.items():
        assert (
            inspect.signature(method).parameters.keys() == inspect.signature(wanted[name]).parameters.keys()
        )
        assert inspect.iscoroutinefunction(
            inspect.unwrap(method, stop=inspect.iscoroutinefunction)
        ) or name == ("within")
        assert method.__doc__


def test_it_works_in_an_event_loop(tmp_path: Path) -> None:
    async def work() -> None:
        async with AsyncMemory(open_memory(tmp_path, model="offline", create=True)) as memory:
            await asyncio.gather(*(memory.record([Turn(f"Fact {n}.", session="s")]) for n in range(5)))
            await memory.observe(SAID)
            found = await memory.tools.search("Lisbon", k=1)
            assert len(found["hits"]) == 1
            assert "Lisbon" in (await memory.ask("Where does she live?")).text
            past = await memory.at("1")
            assert (await past.tools.grep("Lisbon"))["total_matches"] == 0
            assert not (await (await memory.within("heron")).retrieve("Lisbon")).items
            assert len(list(memory.sync.view.entries("evidence"))) == 6

    asyncio.run(work())


def test_leaving_the_context_closes_in_a_loop_too(memory: Memory) -> None:
    async def work() -> set[threading.Thread]:
        async with AsyncMemory(memory):
            return watching(memory)

    assert_ended(asyncio.run(work()))


def test_the_loop_turns_while_a_call_runs(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()
    monkeypatch.setattr(memory.library, "receipts", lambda: answered.wait(60) and ())

    async def work() -> None:
        waiting = asyncio.ensure_future(AsyncMemory(memory).receipts())
        await asyncio.sleep(0)
        answered.set()  # only a loop that turns gets here
        assert await waiting == ()

    asyncio.run(work())


# ── quiet ───────────────────────────────────────────────────────────────────────────────────────


def everything(memory: Memory) -> None:
    """Each method of the facade, and each tool."""
    memory.record([{"role": "user", "content": "The port is 8443."}])
    memory.observe([Turn("I moved to Porto.", session="s2"), Turn("It rains.", role="assistant")])
    memory.draw(), memory.estimate(), memory.preview(), memory.consolidate(), memory.rebuild()
    memory.repeat("1")
    memory.retrieve("port"), memory.read("port?"), memory.ask("Which port?"), memory.compare("Which port?")
    memory.within("heron").retrieve("port"), memory.at("1").ask("Where?"), memory.chosen()
    memory.unanswered(), memory.leave(()), memory.retry()
    memory.receipts(), memory.history(1), memory.changes(), memory.blame("CURRENT"), memory.undo()
    (row,) = memory.write("CURRENT", "Tea at four.").rows
    memory.edit(row.seq, "Tea at five."), memory.pin(row.seq), memory.pin(row.seq, False)
    (
        memory.review(),
        memory.decide(),
        memory.spent_today(),
        memory.status(),
        memory.doctor(),
        memory.repair(),
        memory.faulty_records(),
    )
    for tool in memory.tools:
        memory.tools.text(tool.name, {"query": "port", "pattern": "port", "doc_id": "CURRENT"})
    with suppress(InfinimemError):
        memory.rename("topics/nothing", "something")
    memory.forget([1], dry_run=True), memory.forget([1])
    memory.close()


def test_everything_is_all() -> None:
    assert {name for name in methods(Memory) if f"memory.{name}(" not in inspect.getsource(everything)} <= {
        "at"
    }


def test_nothing_is_printed_or_warned_of(tmp_path: Path) -> None:
    """In a process of its own, without pytest's handlers; even where there is something to say."""
    program = f"""
import sys, warnings
sys.path.insert(0, {str(Path(__file__).parent)!r})
from infinimem import open_memory
from infinimem.log import log
from test_memory_python import everything
everything(open_memory({str(tmp_path / "notes")!r}, model="offline", create=True))
log.warning("the log is silent until a program listens")
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
