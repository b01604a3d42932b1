"""The agent is the model: it answers tasks, and the library becomes what a model would have made of it."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from agent_library import SYSTEMS, by_model, opened, reply_to, said, work
from cli_runner import Shell

from infinimem import Memory, Turn, open_memory
from infinimem.errors import ModelNotConfigured, ReplyAwaited, UsageError
from infinimem.user_folders import user_folder

SMALL = "format = 1\n[infini]\nchunk_tokens = 20\nworkers = 20\n"
"""Settings under which many extractions are asked about side by side."""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of each test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def documents(root: Path) -> dict[str, str]:
    """What stands in the files of a library, but for receipts, their names and the time of writing."""
    found = {str(path.relative_to(root)): path.read_text() for path in root.rglob("*.md")}
    varies = re.compile(r"\d+-[0-9a-f]{6}\b|time: \S+|created_time: .*")
    kept = {name: text for name, text in found.items() if not name.startswith((".infinimem", "journal/"))}
    return {name: varies.sub("", text) for name, text in kept.items()}


def by_agent(root: Path, settings: str = "") -> Memory:
    """A library whose model is the agent."""
    if settings:
        root.mkdir(exist_ok=True)
        (root / "infinimem.toml").write_text(settings)
    return open_memory(root, model="agent", create=True, trust=True)


def work_on(memory: Memory, texts: list[str] | None = None) -> None:
    """Answer by the text of tasks until nothing is left."""
    while task := memory.tasks.take():
        if texts is not None:
            texts += re.findall(r"^(`{3,})\n(.*?)\n\1$", task.text, re.DOTALL | re.MULTILINE)
        assert memory.tasks.answer(task.number, reply_to(task.text)) == []


# ── what becomes of tasks ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("strategy", SYSTEMS)
def test_all_five_systems_work_by_tasks(tmp_path: Path, strategy: str) -> None:
    """Of what is recorded the agent makes what a model makes that says the same; nothing is asked twice."""
    turns = said(*{"recmem": (1, 2, 3), "allmem": (1, 2)}.get(strategy, (1,)))
    memory, agent = opened(tmp_path / "m", strategy)
    assert memory.observe(turns) == () and agent.replies == {}, "observe only records"
    with suppress(ReplyAwaited):
        memory.consolidate()
    assert work(memory, agent) > 0
    assert len(agent.answered) == len({*agent.answered})
    assert memory.tasks.go_on() == [] and memory.tasks.open() == []
    assert documents(tmp_path / "m") == documents(by_model(tmp_path / "n", turns, strategy).library.root)
    assert {one.model for one in memory.receipts()} <= {"agent"}


def test_turns_that_come_in_meanwhile_wait_and_change_no_task(tmp_path: Path) -> None:
    """A task stays what it was while others speak; what they said is asked about when the work is done."""
    memory = by_agent(tmp_path / "m")
    memory.record(said(1))
    with suppress(ReplyAwaited):
        memory.consolidate()
    seen: list[tuple[int, str]] = []
    for number in range(4):
        (task,) = memory.tasks.go_on("consolidate" if number == 0 else "due")
        memory.record([Turn(f"I saw {number} herons at the river.", session="s8", key=str(number))])
        (same,) = open_memory(tmp_path / "m", model="agent").tasks.go_on()
        assert (same.number, same.text) == (task.number, task.text)
        seen.append((task.number, task.text))
        assert memory.tasks.answer(task.number, reply_to(task.text)) == []
    assert "herons" not in "".join(text for _, text in seen)
    work_on(memory)
    texts = [place.text for place in memory.view.entries()]
    assert sum("herons" in text for text in texts) == 4 and len(memory.receipts()) == 1


@pytest.mark.parametrize("strategy", ["gam", "xmemory"])
def test_turns_that_come_in_before_all_is_told_wait(tmp_path: Path, strategy: str) -> None:
    """Systems that keep records tell what was said when a consolidation began, of open sessions too."""
    memory, agent = opened(tmp_path / "m", strategy)
    memory.record(said(1))
    for number in range(3):
        (task, *_) = memory.tasks.go_on("consolidate" if number == 0 else "due")
        memory.record([Turn(f"I saw {number} herons.", session="s1", key=str(number))])
        (same, *_) = memory.tasks.go_on()
        assert (same.number, same.text) == (task.number, task.text)
        assert memory.tasks.answer(task.number, agent.reply(task.text)) == []


def test_what_is_asked_side_by_side_comes_in_portions_and_is_applied_at_once(tmp_path: Path) -> None:
    """Eight parts a task, their instructions once; nothing is written before all are answered."""
    memory = by_agent(tmp_path / "m", SMALL)
    memory.record(said(1, 2))
    work_on(memory)  # the first alone, so that the others know its topics
    memory.record(said(3, 4))
    tasks = memory.tasks.go_on()
    assert [len(task.open) for task in tasks] == [8, 4]
    assert tasks[0].text.count("You keep the memory") == 1
    before = documents(tmp_path / "m")
    replies = json.loads(reply_to(tasks[0].text))
    some = {name: replies[name] for name in ("2", "5")} | {"7": {"entries": "none"}}
    (wrong,) = memory.tasks.answer(tasks[0].number, json.dumps(some))
    assert wrong.startswith("part 7: ") and "entries" in wrong
    assert [*memory.tasks.go_on()[0].open] == [1, 3, 4, 6, 7, 8], "what is of use is kept"
    assert documents(tmp_path / "m") == before
    work_on(memory)
    assert len([*memory.view.entries()]) == 24


def test_a_stale_answer_is_kept_and_not_asked_for(tmp_path: Path) -> None:
    """Where files moved on, the task is nobody's any more; its reply serves where the same is asked again."""
    memory = by_agent(tmp_path / "m")
    memory.record(said(1))
    (task,) = memory.tasks.go_on()
    memory.library.mark(dict.fromkeys(range(1, 7), "LEFT"))
    assert memory.tasks.go_on() == [] and memory.tasks.take() is None
    memory.tasks.answer(task.number, reply_to(task.text))
    assert [*memory.view.entries()] == []
    memory.retry()
    assert memory.tasks.go_on() == [] and len([*memory.view.entries()]) == 6, "of the reply that was kept"


def test_a_doubtful_answer_is_given_back_once(tmp_path: Path) -> None:
    """Ids that do not exist and replies that leave nearly all out are confirmed by sending them again; a
    task is opened again by `redo`."""
    memory = by_agent(tmp_path / "m")
    long = "I keep bees behind the old school, harvest honey in August and sell jars at the market."
    memory.record(
        [Turn(f"Since {year} {long}", session="s1", time="2025-03-01") for year in range(2001, 2007)]
    )
    (task,) = memory.tasks.go_on()
    (wrong, more) = memory.tasks.answer(1, '{"entries":[]}')
    assert "no entry for 1-6" in wrong and "send the same again" in more
    first, *_ = memory.tasks.answer(1, reply_to(task.text).replace('["3"]', '["33"]'))
    assert "not in the material: 33" in first
    assert memory.tasks.answer(1, '{"entries":[]}') and memory.tasks.answer(1, '{"entries":[]}') == []
    (mending,) = memory.tasks.go_on()
    assert "LEFT_OUT" in mending.text and mending.problems
    follow = memory.tasks.take(after=1)
    assert follow and len(follow.text) < 250 < len(mending.text), "whoever read it all reads what is wrong"
    for _ in range(2):
        memory.tasks.answer(mending.number, '{"entries":[]}')
    assert memory.tasks.go_on() == [] and [*memory.view.entries()] == []
    (again,) = memory.tasks.redo(1)
    assert memory.tasks.answer(again.number, reply_to(again.text)) == []
    work_on(memory)
    assert len([*memory.view.entries()]) == 6


def test_forget_takes_the_tasks_along(tmp_path: Path) -> None:
    """No task keeps what was forgotten, and none is answered about it."""
    memory = by_agent(tmp_path / "m")
    memory.record(said(1))
    memory.tasks.go_on()
    memory.forget(match="Lisbon")
    held = [path for path in tmp_path.rglob("*") if path.is_file() and b"Lisbon" in path.read_bytes()]
    assert held == []
    (task,) = memory.tasks.go_on()
    assert "Lisbon" not in task.text and "peanuts" in task.text


def test_a_split_that_was_cut_short_is_taken_up(tmp_path: Path) -> None:
    """The buffer is empty once it is sorted; documents that are too long are split all the same."""
    memory = by_agent(tmp_path / "m", "format = 1\n[infini]\nmarkdown_length = 60\nmerge_frequency = 0\n")
    memory.record(said(1))
    with suppress(ReplyAwaited):
        memory.consolidate()
    work_on(memory)
    assert {one.op for one in memory.receipts()} == {"consolidate", "split"}


def test_an_undo_ends_the_work_that_it_takes_back(tmp_path: Path) -> None:
    """What was taken back stays so, whatever task is open, until somebody asks for it; no reply is lost."""
    memory = by_agent(tmp_path / "m", "format = 1\n[infini]\nmarkdown_length = 60\nmerge_frequency = 0\n")
    memory.record(said(1))
    with suppress(ReplyAwaited):
        memory.consolidate()
    while not memory.receipts():
        assert (task := memory.tasks.take())
        assert memory.tasks.answer(task.number, reply_to(task.text)) == []
    (split,) = memory.tasks.open()
    memory.undo()
    assert memory.tasks.go_on() == [] and memory.tasks.answer(split.number, reply_to(split.text)) == []
    assert [one.op for one in memory.receipts()] == ["consolidate", "undo"]
    with suppress(ReplyAwaited):
        memory.consolidate()
    assert [one.op for one in memory.receipts()][2:] == ["consolidate"], "of the replies that were kept"
    work_on(memory)
    assert [one.op for one in memory.receipts()][3:] == ["split"]


def test_a_request_that_is_damaged_is_written_anew(tmp_path: Path) -> None:
    """Whatever a crash or a hand left of a file in the cache, the work goes on."""
    memory = by_agent(tmp_path / "m")
    memory.record(said(1))
    (task,) = memory.tasks.go_on()
    (path,) = (user_folder("cache") or Path()).glob("*/replies/*/*.md")
    for damaged in ("", path.read_text().replace("# Reply\n\n```\n\n", "# Reply\n\n```\nno JSON\n")):
        path.write_text(damaged)
        (again,) = memory.tasks.go_on()
        assert again.text.partition("\n")[2] == task.text.partition("\n")[2]
    file = tmp_path / "m/.infinimem/tasks/0001.md"
    for claimed in ("soon", "2025-03-01T09:00:00"):
        file.write_text(file.read_text().replace("claimed: ", f"claimed: {claimed}"))
        memory.tasks.take()
    assert (taken := memory.tasks.take(1)), "whoever names it gets it"
    assert memory.tasks.answer(1, reply_to(taken.text)) == []
    work_on(memory)
    assert len([*memory.view.entries()]) == 6


def test_replies_that_nobody_used_for_a_week_go(tmp_path: Path) -> None:
    """Also where the agent is the model: those of the work at hand stay, be they as old."""
    by_agent(tmp_path / "m").record(said(1))
    by_agent(tmp_path / "m").tasks.go_on()
    (path,) = (user_folder("cache") or Path()).glob("*/replies/*/*.md")
    unused = path.with_name(f"{'0' * 32}.md")
    unused.write_text(path.read_text())
    for one in (path, unused):
        os.utime(one, (time.time() - 8 * 86400,) * 2)
    assert by_agent(tmp_path / "m").tasks.go_on() and path.exists() and not unused.exists()


# ── who is asked, and what is told ──────────────────────────────────────────────────────────────


def test_only_the_agent_has_tasks_and_its_replies_must_be_kept(tmp_path: Path) -> None:
    """Another model has no tasks; without a place for replies there is one line that says what to do."""
    with pytest.raises(UsageError, match="--model or INFINIMEM_MODEL"):
        open_memory(tmp_path / "m", model="offline", create=True).tasks.go_on()
    with pytest.raises(ModelNotConfigured, match="replies_days"):
        by_agent(tmp_path / "n", "format = 1\n[llm]\nreplies_days = 0\n").tasks.go_on()


def test_ask_gives_the_agent_the_evidence(tmp_path: Path) -> None:
    """The agent answers itself: it is given the lines as a model would be shown them, with their places."""
    memory = by_agent(tmp_path / "m")
    memory.record(said(1))
    answer = memory.ask("Where does Ana live?")
    assert "Ana: I moved to Lisbon with my cat Olive in March." in answer.text and answer.citations
    assert memory.read("Where does Ana live?", "hybrid").items, "nobody is asked which documents to read"
    with pytest.raises(UsageError, match="the question is empty"):
        memory.ask(" ")


def test_the_agent_on_the_command_line(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """`add` records, `tasks` lists, `next` prints, `answer` checks and goes on, `status` tells the cost."""
    monkeypatch.setenv("INFINIMEM_MODEL", "agent")
    shell("init")
    assert "for the agent: 1 turn" in shell("add", "My cat Olive sleeps on the radiator all day.").err
    estimate = shell("--json", "tasks", "--estimate").json
    assert estimate["turns"] == 1 and estimate["tasks"] > 0 and estimate["tokens"] > 0
    assert "1 task awaits the agent" in shell("consolidate").out
    (row,) = shell("--json", "tasks").json["tasks"]
    assert (row["number"], row["kind"], row["parts"]) == (1, "extract", 1)
    text = shell("tasks", "next").out
    assert "Olive sleeps" in text and "infinimem tasks answer 1" in text
    assert "others have what is left: 1 until" in shell("tasks", "next").out
    assert shell("tasks", "next", "1").out == text
    told = shell("--json", "status").json
    assert told["model"] == "agent" and told["tasks"]["open"] == 1 and told["tasks"]["turns"] == 1
    wrong = shell("tasks", "answer", "1", "-", input='{"entries": 1}')
    assert wrong.code == 1 and "entries must be array" in wrong.err
    shell("tasks", "answer", "9", "-", input="{}").failed(2, "task 9 is not there")
    while text.startswith("# Task"):
        number = re.findall(r"tasks answer (\d+)", text)[0]
        done = shell("tasks", "answer", number, "-", input=reply_to(text))
        assert done.code == 0
        text = done.out
    assert text == "nothing to do: no task awaits a reply\n"
    assert "Olive" in (shell.library / "topics/talk.md").read_text()
    (spent,) = shell("--json", "status").json["spent"].values()
    (receipt,) = shell("--json", "log").json["rows"]
    assert receipt["model"] == "agent" and spent["calls"] >= 2


# ── nothing is lost, and nothing done twice ─────────────────────────────────────────────────────


def kept_materials() -> set[str]:
    """What is answered already, by the folder of replies."""
    files = (user_folder("cache") or Path()).glob("*/replies/*/*.md")
    texts = [path.read_text() for path in files if path.suffix == ".md"]
    answered = [text for text in texts if "# Reply\n\n```\n\n```" not in text]
    return {re.findall(r"# Material\n\n(`{3,})\n(.*?)\n\1\n", text, re.DOTALL)[0][1] for text in answered}


def kill_in_the_loop(root: Path, kills: int, seed: int) -> None:
    """Answer tasks in processes that are killed at random points, and see that all is done once."""
    by_agent(root, SMALL).record(said(1))
    choose, longest, killed, step = random.Random(seed), 0.05, 0, 0
    while True:
        memory = by_agent(root)
        if not (tasks := memory.tasks.go_on("consolidate" if step == 0 else "due")):
            if killed >= kills:
                return
            memory.record([Turn(f"I counted {step} herons.", session="s9")])
            step += 1
            continue
        task = tasks[0]
        step += 1
        materials = {one for _, one in re.findall(r"^(`{3,})\n(.*?)\n\1$", task.text, re.DOTALL | re.M)}
        assert not materials & kept_materials(), "asked although it is answered"
        reply, began = reply_to(task.text), time.monotonic()
        if (child := os.fork()) == 0:
            with suppress(BaseException):
                by_agent(root).tasks.answer(task.number, reply)
            os._exit(0)
        if killed < kills and choose.random() < 0.9:
            time.sleep(choose.random() * longest)
            os.kill(child, signal.SIGKILL)
            killed += 1
        os.waitpid(child, 0)
        longest = max(longest, time.monotonic() - began)


def check_whole(root: Path) -> None:
    memory = by_agent(root)
    said_there = [place.text for place in memory.view.entries("evidence")]
    entries = [place.entry for scope in ("default", "archive") for place in memory.view.entries(scope)]
    drawn = [seq for entry in entries for seq in entry.origin]
    assert len(drawn) == len({*drawn}) == len(said_there), "each turn is an entry, and none is two"
    assert [one for one in memory.doctor() if one.kind == "error"] == []


def test_a_killed_agent_loses_nothing_and_is_asked_nothing_twice(tmp_path: Path) -> None:
    """kill -9 anywhere in the loop: what was answered stays answered, each turn is drawn from once."""
    kill_in_the_loop(tmp_path / "m", 3, seed=1)
    check_whole(tmp_path / "m")


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(5))
def test_a_hundred_kills(tmp_path: Path, seed: int) -> None:
    """The same, a hundred times."""
    kill_in_the_loop(tmp_path / "m", 20, seed)
    check_whole(tmp_path / "m")


def test_two_agents_at_once_never_do_the_same(tmp_path: Path) -> None:
    """Each takes what the other has not, and together they make what one would."""
    by_agent(tmp_path / "m", SMALL).record(said(1, 2, 3))
    texts: dict[str, list[str]] = {"one": [], "two": []}

    def run(name: str) -> None:
        memory = by_agent(tmp_path / "m")
        while True:
            if task := memory.tasks.take():
                texts[name] += [task.text]
                assert memory.tasks.answer(task.number, reply_to(task.text)) == []
            elif not memory.tasks.open():
                return
            else:
                time.sleep(0.001)

    threads = [threading.Thread(target=run, args=(name,)) for name in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    done = [re.sub(r"# Task \d+", "", text) for some in texts.values() for text in some]
    assert len(done) == len({*done})
    check_whole(tmp_path / "m")


# ── over MCP ────────────────────────────────────────────────────────────────────────────────────


def test_the_agent_over_mcp(tmp_path: Path) -> None:
    """`memory_tasks` and `memory_answer` are there only where the client is the model and may write; the
    instructions name no tool that is not offered, and `ask` is none then."""
    pytest.importorskip("mcp", reason="the MCP SDK is not installed (pip install 'infinimem[mcp]')")
    from mcp import types
    from mcp_client import drive, texts

    from infinimem.mcp.server import make_server

    by_agent(tmp_path / "m").record(said(1))
    own = {"memory_tasks", "memory_answer"}

    async def offered(client: Any, names: set[str]) -> None:
        listed = {tool.name for tool in (await client.list_tools()).tools}
        assert listed & {*own, "ask", "remember", "forget"} == names
        named = {*re.findall(r"`(\w+)`", client.instructions)} - {"infinimem"}
        assert named <= listed

    async def work(client: Any) -> None:
        await offered(client, {*own, "remember", "forget"})
        done = await client.call_tool("memory_tasks", {})
        assert "You keep the memory" in texts(done) and done.structured_content["task"] == 1
        bad = await client.call_tool("memory_answer", {"task": 1, "reply": "no JSON"})
        assert bad.structured_content["wrong"] and not bad.is_error
        reply = reply_to(texts(done))
        done = await client.call_tool("memory_answer", {"task": 1, "reply": reply})
        assert "nothing to do" in texts(done) and done.structured_content["left"] == 0

    info = types.Implementation(name="heron-code", version="1")
    drive(make_server(by_agent(tmp_path / "m")), work, client_info=info)
    assert len([*by_agent(tmp_path / "m").view.entries()]) == 6
    for memory, names in (
        (open_memory(tmp_path / "m", model="agent", read_only=True), set[str]()),
        (open_memory(tmp_path / "m", model="offline", read_only=True), {"ask"}),
        (open_memory(tmp_path / "m", model="offline"), {"ask", "remember", "forget"}),
    ):
        drive(make_server(memory), lambda client, names=names: offered(client, names))


def test_a_receipt_tells_which_agent_replied(tmp_path: Path) -> None:
    """An agent that says its name over MCP stands in the receipts of what its replies did."""
    pytest.importorskip("mcp", reason="the MCP SDK is not installed (pip install 'infinimem[mcp]')")
    from mcp import types
    from mcp_client import drive, texts

    from infinimem.mcp.server import make_server

    memory = by_agent(tmp_path / "m")
    memory.record(said(1))
    with pytest.raises(ReplyAwaited):
        memory.consolidate()

    async def work(client: Any) -> None:
        done = await client.call_tool("memory_tasks", {})
        while (task := done.structured_content["task"]) is not None:
            reply = {"task": task, "reply": reply_to(texts(done))}
            done = await client.call_tool("memory_answer", reply)

    info = types.Implementation(name="heron-code\n", version="1")
    for era in ("legacy", "2026-07-28"):
        drive(make_server(memory), work, era, client_info=info)
    assert {one.model for one in memory.receipts()} == {"agent (heron-code)"}
    assert memory.repeat("1") == (), "what it said is kept under the model's own name"
