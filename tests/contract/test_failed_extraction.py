"""A failed extraction is not an empty one: what a model did not answer is told, found as it was said, and
asked about again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_runner import Shell
from fake_server import FakeServer, Say, chat, refuse, serve
from mcp_client import drive, texts

from infinimem import open_memory
from infinimem.llm.openai_client import OpenAIClient
from infinimem.mcp.server import make_server

STRATEGIES = ("infini", "allmem", "recmem", "xmemory", "gam")
DISH = "My cat Miso is allergic to chicken"


def told(request: dict[str, Any]) -> list[tuple[str, str]]:
    """The turns of a prompt: id and words."""
    turns = request["messages"][-1]["content"].rpartition("TURNS:")[2].partition("PROBLEMS")[0]
    return re.findall(r"^\[(\d+)\][^:]*: (.*)$", turns, re.MULTILINE)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """What a model that copies answers."""
    turns = told(request)
    words = " ".join(text for _, text in turns)
    facts = [{"from": [seq], "text": text, "type": "", "replaces": None} for seq, text in turns]
    match request["response_format"]["json_schema"]["name"]:
        case "extract":
            return {"entries": [{"topic": "Things", "from": [seq], "text": text} for seq, text in turns]}
        case "describe":
            cards = ({"id": seq, "summary": text, "keywords": [], "when": None} for seq, text in turns)
            return {"cards": list(cards)}
        case "topic":
            return {"summary": words, "keywords": []}
        case "episode":
            return {"title": words[:50], "content": words, "when": None}
        case "episodes":
            return {"episodes": [{"text": words, "from": [seq for seq, _ in turns]}]}
        case "segment":
            return {"cuts": []}
        case "relate":
            return {"relations": []}
        case "merge_episodes":
            return {"should_merge": False, "merged": ""}
        case "theme":
            return {"summary": "things"}
        case "facts" | "refine":
            return {"facts": facts}
        case "diagnose":
            return {"split_tasks": [], "merge_tasks": [], "update_tasks": []}
    return {}


def good(request: dict[str, Any]) -> Say:
    return chat(json.dumps(answer(request)))


def with_message(finish: str = "stop", **message: Any) -> Say:
    """A completion of which the message is this."""
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}}
    return Say(body=json.dumps({"id": "x", "choices": [choice], "usage": {"prompt_tokens": 1}}))


LONG = "This model's maximum context length is 4096 tokens."
CALL = {"id": "1", "type": "function", "function": {"name": "save", "arguments": "{}"}}
FAILURES: dict[str, tuple[str, Callable[[dict[str, Any]], Say]]] = {
    "refusal": ("refused", lambda _: with_message(content=None, refusal="I can't help with that.")),
    "refusal part": (
        "refused",
        lambda _: with_message(content=[{"type": "refusal", "refusal": "I can't help with that."}]),
    ),
    "filter": ("refused", lambda _: with_message("content_filter", content="")),
    "filtered prompt": ("refused", lambda _: refuse(400, "filtered", code="content_filter")),
    "empty": ("is empty", lambda _: chat("")),
    "null": ("is empty", lambda _: chat(None)),
    "too large": ("too long", lambda _: refuse(413, "Request Entity Too Large")),
    "no parts": ("is empty", lambda _: with_message(content=[])),
    "reasoning": ("reasoning", lambda said: with_message(content=None, reasoning=json.dumps(answer(said)))),
    "reasoning_content": (
        "reasoning",
        lambda said: with_message(content="", reasoning_content=json.dumps(answer(said))),
    ),
    "thinking part": ("reasoning", lambda _: with_message(content=[{"type": "thinking", "thinking": "hm"}])),
    "think tags": ("reasoning", lambda said: chat(f"<think>{json.dumps(answer(said))}</think>")),
    "tool call": ("tool", lambda _: with_message("tool_calls", content=None, tool_calls=[CALL])),
    "cut": ("cut off", lambda said: chat(json.dumps(answer(said))[:20], finish="length")),
    "too long": ("too long", lambda _: refuse(400, LONG, code="context_length_exceeded")),
    "prose": ("not JSON", lambda _: chat("I'm sorry, but I can't help with that.")),
    "other JSON": ("another form", lambda _: chat('{"hello": 1}')),
}
KINDS = pytest.mark.parametrize("kind", FAILURES)


@pytest.fixture
def server(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServer]:
    """A model that the command line uses; an empty library."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(shell.home / "cache"))
    with serve(good) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("INFINIMEM_MODEL", "m")
        assert shell("init").code == 0
        yield server


def chat_log(shell: Shell, count: int = 25) -> str:
    turns = [
        {"role": "user", "content": f"Guest {n} of the inn ordered dish number {n}."} for n in range(count)
    ]
    path = shell.home / "chat.json"
    path.write_text(json.dumps(turns))
    return str(path)


@pytest.mark.sample(4)
@KINDS
def test_an_added_turn_without_a_usable_answer_is_told_found_and_drawn_from_later(
    kind: str, shell: Shell, server: FakeServer
) -> None:
    """`add` names the cause and ends with 3; status, doctor and search know the turn."""
    shell("add", "My bike is red.")
    shell("search", "bike")  # an index is on disk before
    cause, fails = FAILURES[kind]
    server.answers[:] = [fails]
    ran = shell("add", DISH)
    assert ran.code == 3
    assert ran.err.count("error: ") == 1 and cause in ran.err
    found = shell("search", "chicken")
    assert "evidence/" in found.out and DISH in found.out
    assert DISH in shell("retrieve", "chicken").out
    status = shell("status").out
    assert "turns not processed yet\t1" in status and cause in status
    doctor = shell("doctor")
    assert doctor.code == 0 and cause in doctor.out
    ran = shell("consolidate", "--json")
    assert ran.code == 3 and [row["tries"] for row in ran.json["unanswered"]] == [2]
    server.answers[:] = [good]
    assert shell("consolidate").code == 0
    assert "topics/" in shell("search", "chicken").out
    assert shell("status", "--json").json["unanswered"] == {}
    assert "usable" not in shell("doctor").out


@pytest.mark.sample(4)
@KINDS
def test_an_import_without_a_usable_answer_keeps_its_turns_pending(
    kind: str, shell: Shell, server: FakeServer
) -> None:
    """An import of 25 turns of which nothing was extracted ends with 3, and the next call extracts all."""
    cause, fails = FAILURES[kind]
    server.answers[:] = [fails]
    ran = shell("import", chat_log(shell))
    assert ran.code == 3 and cause in ran.err and "0 entries" in ran.out
    assert len(server.requests) < 100
    assert "dish number 24" in shell("search", "dish 24").out
    server.answers[:] = [good]
    assert shell("consolidate").code == 0
    assert shell("status", "--json").json["entries"] == 25


@pytest.mark.sample(5)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", ["refusal", "empty", "too long", "cut"])
def test_every_strategy_leaves_the_turns_to_a_model_that_answers(
    kind: str, strategy: str, shell: Shell, server: FakeServer
) -> None:
    """Under every strategy a failed consolidation names the cause, nothing stands in, and a good model tells
    all of it later."""
    (shell.library / "infinimem.toml").write_text(f'format = 1\nstrategy = "{strategy}"\n')
    turns = [
        {"role": role, "content": f"{words} on day {n}."}
        for n in range(6)
        for role, words in (
            ("user", "I fed the tomato plants"),
            ("assistant", "Well done, tomato plants do"),
        )
    ]
    path = shell.home / "chat.json"
    path.write_text(json.dumps(turns))
    cause, fails = FAILURES[kind]
    server.answers[:] = [fails]
    shell("import", str(path))
    ran = shell("consolidate")
    assert ran.code == 3 and cause in ran.err
    assert cause in shell("status").out
    assert "tomato" in shell("retrieve", "tomato").out
    server.answers[:] = [good]
    assert shell("consolidate").code == 0
    after = shell("status", "--json").json
    assert after["unanswered"] == {} and after["documents"] > 0
    assert not any("degraded" in path.read_text() for path in shell.library.rglob("*.md"))
    assert shell("doctor").code == 0


@pytest.mark.parametrize("kind", ["text", "output_text"])
def test_parts_of_text_are_the_answer(kind: str, shell: Shell, server: FakeServer) -> None:
    """Of an answer in parts the text counts, whole, and thinking is passed over."""

    def parts(request: dict[str, Any]) -> Say:
        text = json.dumps(answer(request))
        thought = {"type": "thinking", "thinking": [{"type": "text", "text": "{}"}]}
        halves = [{"type": "text", "text": text[:9]}, {"type": kind, "text": text[9:]}]
        return with_message(content=[thought, *halves])

    server.answers[:] = [parts]
    ran = shell("add", DISH)
    assert ran.code == 0 and DISH in ran.out


def test_one_turn_that_is_refused_keeps_no_other_back(shell: Shell, server: FakeServer) -> None:
    """Of 25 turns of which a model refuses one the other 24 are extracted."""
    refused = FAILURES["refusal"][1]
    server.answers[:] = [
        lambda said: refused(said) if any("dish number 7." in text for _, text in told(said)) else good(said)
    ]
    ran = shell("import", chat_log(shell))
    assert ran.code == 3 and "1 turn" in ran.err and "24 entries" in ran.out
    assert "dish number 7" in shell("search", "dish 7").out


@pytest.mark.parametrize("strategy", ["infini", "allmem"])
def test_a_refused_turn_does_not_stand_in_the_prompts_of_others(
    strategy: str, shell: Shell, server: FakeServer
) -> None:
    """What a model refuses to read keeps no turn back that is asked about with it or later."""
    (shell.library / "infinimem.toml").write_text(f'format = 1\nstrategy = "{strategy}"\n')
    refused = FAILURES["refusal"][1]
    server.answers[:] = [
        lambda said: refused(said) if "dish number 7." in json.dumps(said["messages"]) else good(said)
    ]
    assert "1 turn" in shell("import", chat_log(shell)).err
    for text in ("They asked for dish number 7.", "The soup had anise.", "The salad had basil."):
        shell("add", "--session", "inn", text)
    waiting = shell("consolidate", "--json", "--retry").json["unanswered"]
    evidence = "".join(path.read_text() for path in (shell.library / "evidence").iterdir())
    refusals = re.findall(r"^- <seq=(\d+),.*dish number 7\.", evidence, re.MULTILINE)
    assert {str(row["seq"]) for row in waiting} == set(refusals) and len(refusals) == 2


@pytest.mark.parametrize("most", [1, 4])
def test_a_prompt_that_is_too_long_is_asked_in_halves(most: int, shell: Shell, server: FakeServer) -> None:
    """A context that holds few turns makes no turn wait."""
    server.answers[:] = [
        lambda said: good(said) if len(told(said)) <= most else FAILURES["too long"][1](said),
    ]
    ran = shell("import", chat_log(shell))
    assert ran.code == 0 and "25 entries" in ran.out


def test_a_model_is_asked_a_bounded_number_of_times(shell: Shell, server: FakeServer) -> None:
    """After three tries a turn is not asked about until another model comes, or a person says so."""
    server.answers[:] = [FAILURES["refusal"][1]]
    codes = [shell("add", DISH).code, *(shell("consolidate").code for _ in range(4))]
    assert codes == [3, 3, 3, 0, 0]
    asked = len(server.requests)
    assert shell("consolidate").code == 0 and len(server.requests) == asked
    assert "--retry" in shell("doctor").out
    server.answers[:] = [good]
    assert "unanswered" not in shell("--json", "add", "My bike is red.").json
    assert shell("status", "--json").json["pending"] == 1
    assert shell("consolidate", "--retry").code == 0
    assert shell("status", "--json").json["pending"] == 0


def test_another_model_is_asked_anew(
    shell: Shell, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one model was given up for is asked of the next without a word from anybody."""
    server.answers[:] = [FAILURES["empty"][1]]
    shell("add", DISH)
    for _ in range(4):
        shell("consolidate")
    server.answers[:] = [good]
    monkeypatch.setenv("INFINIMEM_MODEL", "better")
    assert shell("consolidate").code == 0
    assert "topics/" in shell("search", "chicken").out


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_turn_can_be_left_as_it_was_said(strategy: str, shell: Shell, server: FakeServer) -> None:
    """`consolidate --leave SEQ` ends the asking, and the turn is found as before."""
    (shell.library / "infinimem.toml").write_text(f'format = 1\nstrategy = "{strategy}"\n')
    server.answers[:] = [FAILURES["refusal"][1]]
    for role in ("user", "assistant") * 6:
        shell("add", DISH, "--session", "s", "--role", role)
    shell("consolidate")
    rows = open_memory(shell.library, model="offline").unanswered()
    assert rows
    seqs = ",".join(map(str, rows))
    assert shell("consolidate", "--leave", seqs).code == 0
    asked = len(server.requests)
    assert shell("consolidate").code == 0 and len(server.requests) == asked
    assert shell("status", "--json").json["unanswered"] == {}
    assert DISH in shell("retrieve", "chicken").out
    assert shell("doctor").code == 0
    shell("consolidate", "--leave", "99").failed(2, "99")


def test_python_is_told_with_the_result(tmp_path: Path) -> None:
    """`observe` gives the turns without a usable answer; they are recorded and drawn from by a later call."""
    with serve(FAILURES["tool call"][1]) as server:
        memory = open_memory(tmp_path / "l", model=OpenAIClient("m", server.url), create=True)
        found = memory.observe([{"role": "user", "content": DISH}])
        assert found == () and [one.kind for one in found.unanswered.values()] == ["TOOL_CALL"]
        assert memory.unanswered() == found.unanswered
        assert memory.tools.search("chicken")["hits"]
        server.answers[:] = [good]
        found = memory.observe([])
        assert [place.entry.text for place in found] == [DISH] and not found.unanswered
        assert not memory.unanswered()


def test_an_mcp_client_is_told(tmp_path: Path) -> None:
    """The result of `remember` names the cause, and what was said is recorded."""
    with serve(FAILURES["cut"][1]) as server:
        memory = open_memory(tmp_path / "l", model=OpenAIClient("m", server.url), create=True)

        async def work(client: Any) -> None:
            result = await client.call_tool("remember", {"text": DISH, "session": "", "time": "null"})
            assert not result.is_error
            assert "cut off" in texts(result) and "recorded" in texts(result)
            assert DISH in texts(await client.call_tool("search", {"query": "chicken"}))

        drive(make_server(memory), work)


def test_what_is_not_given_may_be_spelled_out(shell: Shell) -> None:
    """An empty session and a time "null" count as not given, in Python and on the command line."""
    assert shell("init").code == 0
    assert shell("add", DISH, "--session", "", "--time", "null", "--speaker", " ").code == 0
    memory = open_memory(shell.library, model="offline")
    memory.observe([{"role": "user", "content": "My bike is red.", "session": "", "time": "null"}])
    assert len(list((shell.library / "evidence").iterdir())) == 1


def test_a_proxy_that_does_not_answer_is_named(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the proxy, the variable and NO_PROXY, not the server behind it."""
    assert shell("init").code == 0
    monkeypatch.setenv("OPENAI_BASE_URL", "http://models.example/v1")
    monkeypatch.setenv("INFINIMEM_MODEL", "m")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setattr("time.sleep", lambda _: None)
    ran = shell("add", DISH)
    assert ran.code == 1 and all(name in ran.err for name in ("127.0.0.1:9", "HTTP_PROXY", "NO_PROXY"))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_server_of_this_machine_is_called_without_a_proxy(
    host: str, shell: Shell, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy of the environment is no way to loopback addresses."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url.replace("127.0.0.1", host))
    assert DISH in shell("add", DISH).out


def test_an_error_behind_a_relay_is_told_in_its_words(shell: Shell, server: FakeServer) -> None:
    """A relay that reports an error with HTTP 201 is not taken for no model server at all."""
    (shell.library / "infinimem.toml").write_text("format = 1\n[llm]\nretries = 0\n")
    server.answers[:] = [Say(201, json.dumps({"error": {"message": "Provider returned error", "code": 502}}))]
    ran = shell("add", DISH)
    assert ran.code == 1 and "Provider returned error" in ran.err
    assert DISH in shell("search", "chicken").out
