"""Replies of a model are kept: what was asked once costs nothing again, and gives the same bytes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from agent_library import SAID, SYSTEMS
from cli_runner import Shell
from fake_server import FakeServer, chat, serve

from infinimem import Memory, Turn, open_memory
from infinimem.errors import ModelUnavailable
from infinimem.llm.base import Reply, Task
from infinimem.llm.connect import connect
from infinimem.model import Usage
from infinimem.settings import ModelSettings
from infinimem.user_folders import user_folder

KEY = "sk-test-4Xk9vQ2mT7"
SECRET = "I moved to Lisbon in March."
TURNS = tuple(
    Turn(text, speaker=who, session=f"s{day}", time=f"2025-03-0{day}T09:{minute:02}")
    for day in (1, 2, 3)
    for minute, (who, text) in enumerate(SAID)
)


class Model:
    """The rules, behind an address and at ten tokens a call; counts the calls."""

    name, base_url = "small", "http://localhost/v1"

    def __init__(self) -> None:
        self.rules = connect("offline", ModelSettings())
        self.calls: list[str] = []
        self.usage: dict[str, Usage] = {}

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        self.calls.append(task.name)
        return Reply(self.rules.complete(task, variables).data, usage=Usage(1, 9, 1))


class Clock:
    """Goes on by an hour and seven minutes whenever it is asked."""

    def __init__(self, now: datetime = datetime(2025, 4, 1, tzinfo=UTC)) -> None:
        self.now = now

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=67)
        return self.now


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of each test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def opened(root: Path, strategy: str, clock: Any = None) -> tuple[Memory, Model]:
    model = Model()
    clock = clock or (lambda: datetime(2025, 4, 1, tzinfo=UTC))
    return open_memory(root, model=model, strategy=strategy, create=True, clock=clock), model


def files(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and path.name != "lock"
    }


@pytest.mark.parametrize("strategy", SYSTEMS)
def test_a_run_after_a_dry_run_asks_nothing_and_writes_what_was_shown(tmp_path: Path, strategy: str) -> None:
    """A dry run writes nothing into the library; the run after it makes no call and writes the same bytes."""
    memory, model = opened(tmp_path / "m", strategy)
    memory.record(TURNS)
    before = files(tmp_path / "m")
    shown = memory.preview()
    assert shown and model.calls
    there = files(tmp_path / "m")
    assert {path for path in before.keys() | there if before.get(path) != there.get(path)} == {
        ".infinimem/state.db"
    }
    memory, model = opened(tmp_path / "m", strategy)
    memory.consolidate()
    assert model.calls == []
    after = files(tmp_path / "m")
    for doc_id, (_, now) in shown.items():
        assert after[f"{doc_id}.md"] == now, doc_id
    documents = {path for path in after if path[0] != "." and not path.startswith("journal/")}
    assert {path for path in documents if after[path] != before.get(path)} == {f"{one}.md" for one in shown}
    days = memory.status()["spent"].values()
    calls = sum(one["calls"] for one in days)
    assert calls > 0 and sum(one["tokens_in"] for one in days) == 9 * calls


@pytest.mark.parametrize("strategy", SYSTEMS)
def test_the_time_of_day_is_in_no_request(tmp_path: Path, strategy: str) -> None:
    """The same library asks the same at another time of another year."""
    memory, model = opened(tmp_path / "m", strategy, Clock())
    memory.record(TURNS)
    memory.preview()
    assert model.calls
    memory, model = opened(tmp_path / "m", strategy, Clock(datetime(2026, 9, 9, tzinfo=UTC)))
    memory.consolidate()
    assert model.calls == []


@pytest.mark.parametrize("strategy", SYSTEMS)
def test_a_consolidation_is_repeated_from_its_receipt(tmp_path: Path, strategy: str) -> None:
    """`--as-of RECEIPT --check` gives the same bytes of the kept replies, or says that they are gone."""
    memory, _ = opened(tmp_path / "m", strategy, Clock())
    memory.observe(TURNS)
    receipt = memory.consolidate()
    if receipt is None:  # RecMem writes what recurs as soon as it does
        memory.undo()
        receipt = memory.consolidate()
    assert receipt
    memory, model = opened(tmp_path / "m", strategy, Clock(datetime(2026, 9, 9, tzinfo=UTC)))
    memory.observe([Turn("I paint on Sundays, and Rita paints too.", speaker="Ben", session="s9")])
    before = files(tmp_path / "m")
    model.calls.clear()
    assert memory.repeat(receipt.id) == ()
    assert files(tmp_path / "m") == before
    path = tmp_path / "m" / f"{receipt.id}.md"
    name, was, now = receipt.files[0]
    path.write_text(path.read_text().replace(f"{was} | {now} |", f"{was} | {'0' * 64} |"))
    assert memory.repeat(receipt.id) == (name,)
    for reply in kept():
        reply.unlink()
    with pytest.raises(ModelUnavailable, match="a reply of small is kept no more"):
        memory.repeat(receipt.id)
    assert model.calls == []


# ── what is kept, and for how long ──────────────────────────────────────────────────────────────


@pytest.fixture
def served(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServer]:
    """A model server that files all facts in one topic, and a library of its own cache."""
    with serve(answered) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url.replace("://", "://me:hunter2@"))
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("INFINIMEM_MODEL", "small")
        assert shell("init").code == 0
        yield server


def answered(request: dict[str, Any]) -> Any:
    """Replies to the tasks of infini."""
    shown = request["messages"][1]["content"]
    names = sorted(set(re.findall(r"\[(\d+)\]", shown)), key=int)
    replies = {
        "extract": {"entries": [{"text": SECRET, "from": names[-1:], "topic": "Home"}]},
        "answer": {"answer": "To Lisbon.", "cites": [], "calls": []},
        "rewrite": {"topics": [{"title": "Home", "fact_ids": names}]},
        "plan": {"assign": [{"doc_id": None, "new_title": "Home", "fact_ids": names}]},
        "compare": {"superseded": []},
    }
    return chat(json.dumps(replies.get(request["response_format"]["json_schema"]["name"], {})))


def kept() -> list[Path]:
    """The files of replies."""
    return sorted(path for path in (user_folder("cache") or Path()).glob("*/replies/*/*") if path.is_file())


ASK = ("ask", "Where did I move?")


def test_a_dry_run_and_a_run_on_the_command_line(shell: Shell, served: FakeServer) -> None:
    """`consolidate --dry-run` asks the server, `consolidate` after it does not; its receipt counts that."""
    shell("add", SECRET)
    asked = len(served.requests)
    shown = shell("--json", "consolidate", "--dry-run").json["diff"]
    assert SECRET in shown and not (shell.library / "topics/home.md").exists()
    assert (calls := len(served.requests) - asked) > 0
    receipt = shell("--json", "consolidate").json["receipt"]
    assert len(served.requests) == asked + calls
    assert SECRET in (shell.library / "topics/home.md").read_text()
    assert receipt["usage"]["calls"] == calls
    assert sum(day["calls"] for day in shell("--json", "status").json["spent"].values()) == asked + calls
    again = shell("--json", "consolidate", "--as-of", receipt["id"], "--check").json
    assert (again["equal"], again["differ"]) == (True, [])
    for path in kept():
        path.unlink()
    shell("consolidate", "--as-of", receipt["id"], "--check").failed(1, "a reply of small is kept no more")
    assert len(served.requests) == asked + calls


def test_what_is_kept_is_for_its_owner_and_holds_no_key(shell: Shell, served: FakeServer) -> None:
    """Folders of replies are 0700, files 0600; neither they nor the library hold a key or a password."""
    shell("add", SECRET)
    (path,) = kept()
    assert path.stat().st_mode & 0o777 == 0o600
    assert {parent.stat().st_mode & 0o777 for parent in list(path.parents)[:4]} == {0o700}
    text = path.read_text()
    assert f'"text": "{SECRET}"' in text and f"Ana: {SECRET}"[5:] in text.partition("# Material")[2]
    everything = b"".join(one.read_bytes() for one in shell.home.parent.rglob("*") if one.is_file())
    assert KEY.encode() not in everything and b"hunter2" not in everything


def test_forget_deletes_all_replies(shell: Shell, served: FakeServer) -> None:
    """After a `forget` no reply is left, of whatever request, and none is taken from before it."""
    shell("add", SECRET)
    shell("add", "My bike is red.")
    assert kept()
    assert shell("forget", "--match", "Lisbon", "--yes").code == 0
    assert kept() == []
    assert not [
        path for path in shell.home.parent.rglob("*") if path.is_file() and b"Lisbon" in path.read_bytes()
    ]


@pytest.mark.parametrize("setting", ["replies_days = 0", "replies_mb = 0"])
def test_one_setting_switches_it_off(shell: Shell, served: FakeServer, setting: str) -> None:
    """With `replies_days = 0`, or no room, nothing is kept and the same is asked again."""
    config = shell.home / ".config/infinimem/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f"[llm]\n{setting}\n")
    shell("add", SECRET)
    (first,) = (len(served.requests) for _ in (shell(*ASK),))
    assert shell(*ASK).code == 0 and len(served.requests) == first + 1
    assert kept() == []


def test_what_nobody_asks_for_goes_after_a_week_and_the_oldest_first(
    shell: Shell, served: FakeServer
) -> None:
    """A reply that was not used for a week goes with the next one that is kept; one that was used stays."""
    shell("add", SECRET)
    shell(*ASK)
    old, used = sorted(kept(), key=lambda path: "task: answer" in path.read_text())
    for path, days in ((old, 8), (used, 6)):
        os.utime(path, (time.time() - days * 24 * 3600,) * 2)
    assert shell(*ASK).code == 0 and used.stat().st_mtime > time.time() - 60
    shell("ask", "Where do I live?")
    assert old not in kept() and used in kept()


@pytest.mark.parametrize("damage", [b"", b"---\n", b"\xff" * 99, b"cut", b"other", b"head"])
def test_a_damaged_reply_counts_as_absent(shell: Shell, served: FakeServer, damage: bytes) -> None:
    """A file that is empty, cut, garbled, or fits its task no more is asked for again, and mended."""
    shell("add", SECRET)
    shell(*ASK)
    path = next(one for one in kept() if "task: answer" in one.read_text())
    whole, asked = path.read_bytes(), len(served.requests)
    spoilt = {
        b"cut": whole[: whole.index(b"Lisbon")],
        b"other": whole.replace(b'"answer": ', b'"reply": '),
        b"head": whole.replace(b"tokens_in: ", b"tokens_in: x"),
    }
    path.write_bytes(spoilt.get(damage, damage))
    assert "To Lisbon." in shell(*ASK).out
    assert len(served.requests) == asked + 1 and path.read_bytes() == whole
    assert [one.name for one in path.parent.iterdir() if one.suffix != ".md"] == [], "nothing half written"


@pytest.mark.parametrize("text", ["", "no JSON", '{"answer": 1}', '{"answer": "To Lis'])
def test_what_is_no_reply_is_not_kept(shell: Shell, served: FakeServer, text: str) -> None:
    """An empty, cut, unreadable or unfit reply is not kept, and is asked for again."""
    shell("add", SECRET)
    served.answers[:] = [chat(text)]
    before, asked = kept(), len(served.requests)
    shell(*ASK)
    once = len(served.requests) - asked
    shell(*ASK)
    assert len(served.requests) - asked == 2 * once > 0
    assert kept() == before


def test_processes_side_by_side_keep_one_whole_reply(shell: Shell, served: FakeServer) -> None:
    """Processes that ask the same at once both answer, and leave one file."""
    shell("add", SECRET)
    command = [sys.executable, "-m", "infinimem", *ASK]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert all("To Lisbon." in one.communicate(timeout=60)[0] for one in running)
    asked = len(served.requests)
    assert len([one for one in kept() if "task: answer" in one.read_text()]) == 1
    assert "To Lisbon." in shell(*ASK).out and len(served.requests) == asked


def test_rules_keep_nothing(shell: Shell) -> None:
    """Without a model nothing is kept, and a consolidation is repeated all the same."""
    shell("init")
    shell("add", SECRET)
    receipt = shell("--json", "consolidate").json["receipt"]["id"]
    assert shell("consolidate", "--as-of", receipt, "--check").out == "the same bytes as then\n"
    assert kept() == []
