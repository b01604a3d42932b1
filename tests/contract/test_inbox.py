"""The inbox (docs/FORMAT.md): with `[write] approve` nothing reaches a model before a person approved it."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agent_library import reply_to
from cli_runner import Shell
from scripted import OFFLINE, keeping

from infinimem import Memory, Turn, open_memory
from infinimem.errors import LibraryError
from infinimem.hooks.recall import Recall
from infinimem.testing import ScriptedLLM
from infinimem.user_folders import user_folder

ON = "format = 1\n[write]\napprove = true\n"
OFF = "format = 1\n"
SYSTEMS = ("infini", "allmem", "gam", "recmem", "xmemory")
SCOPES = ("default", "archive", "evidence", "journal", "all")
WORD = re.compile(r"canary\w+")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of each test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def library(root: Path, settings: str = ON, model: Any = "offline", strategy: str = "infini") -> Memory:
    """A library with these settings."""
    root.mkdir(exist_ok=True)
    (root / "infinimem.toml").write_text(
        settings.replace("format = 1", f'format = 1\nstrategy = "{strategy}"')
    )
    return open_memory(root, model=model, create=True, trust=True)


def ids_of(root: Path) -> list[str]:
    return sorted(
        str(one.relative_to(root))[:-3] for one in root.rglob("*.md") if ".infinimem" not in one.parts
    )


def shown(memory: Memory, words: str = "canary") -> str:
    """All that a model can get to see of a library: by tools, readers, recall, and MCP's resources."""
    told = [json.dumps(memory.tools.call("grep", {"pattern": words, "scope": scope})) for scope in SCOPES]
    told += [json.dumps(memory.tools.call("list_docs", {"scope": scope})) for scope in SCOPES]
    told += [
        json.dumps(
            memory.tools.call("search", {"query": f"{words} tea", "scope": scope, "full": True, "k": 50})
        )
        for scope in SCOPES
    ]
    for doc_id in ids_of(memory.library.root):
        for name in (doc_id, doc_id.upper(), doc_id.rsplit("/", 1)[-1]):
            told.append(json.dumps(memory.tools.call("read_lines", {"doc_id": name})))
        told.append(json.dumps(memory.tools.call("grep_doc", {"doc_id": doc_id, "pattern": "."})))
    told += map(repr, (memory.retrieve(f"{words} tea", 5000), memory.retrieve("tea", 5000, ["user"])))
    told.append(json.dumps(memory.tools.call("search", {"query": f"{words} tea", "arc": True})))
    told.append(repr(memory.retrieve(f"Summarize what was said of {words} and tea", 8000, arc=True)))
    told.append(repr(Recall(memory).preview(f"which {words} tea do I drink?", "/")))
    told.append(repr(memory.within("/").retrieve(words)))
    if memory.llm.name == "offline":
        told += map(repr, (memory.ask(f"Which {words} tea do I drink?"), memory.compare(f"{words} tea?")))
    return "\n".join(told)


def seen(memory: Memory) -> set[str]:
    """The words that a model gets to see."""
    return {*WORD.findall(shown(memory))}


def by_mcp(memory: Memory) -> str:
    """All that an MCP client can read and find."""
    pytest.importorskip("mcp", reason="the MCP SDK is not installed (pip install 'infinimem[mcp]')")
    from mcp import MCPError
    from mcp_client import drive, texts

    from infinimem.mcp.server import make_server

    told = list[str]()

    async def work(client: Any) -> None:
        told.append(repr(await client.list_resources()))
        for doc_id in ids_of(memory.library.root):
            try:
                told.append(repr(await client.read_resource(f"infinimem://doc/{doc_id}")))
            except MCPError as error:
                told.append(str(error))
            told.append(texts(await client.call_tool("read_lines", {"doc_id": doc_id})))
        for scope in SCOPES:
            told.append(texts(await client.call_tool("search", {"query": "canary tea", "scope": scope})))
            told.append(texts(await client.call_tool("grep", {"pattern": "canary", "scope": scope})))

    drive(make_server(memory), work)
    return "\n".join(told)


def waiting(memory: Memory) -> dict[int, str]:
    """What awaits approval, by seq."""
    return {row.seq: row.text for row in memory.review()}


TEA = Turn("My favourite tea is canaryone, I drink it daily.", session="s1", time="2025-03-03")
MOVE = Turn("I moved to Lisbon with my cat canarytwo.", session="s2", time="2025-03-04")


# ── what comes in waits ─────────────────────────────────────────────────────────────────────────


def test_review_says_how_many_turns_are_still_to_be_extracted_from(shell: Shell) -> None:
    """What was only recorded awaits no approval yet; `review` names it beside what does."""
    (shell.library / "infinimem.toml").write_text(ON)
    log = shell.library.parent / "log.json"
    log.write_text(
        json.dumps([{"role": "user", "content": TEA.text}, {"role": "user", "content": MOVE.text}])
    )
    shell("import", str(log), "--record")
    assert (
        "nothing awaits review\nwaiting for the next consolidation to extract from them: 2 turns\n"
        in shell("review").err
    )
    shell("consolidate")
    assert "waiting for" not in shell("review").err


@pytest.mark.parametrize("strategy", SYSTEMS)
def test_nothing_that_comes_in_is_shown_before_it_is_approved(tmp_path: Path, strategy: str) -> None:
    """All five systems: not before, not after machine state and cache are lost, and then all of it."""
    root = tmp_path / "m"
    memory = library(root, strategy=strategy)
    memory.record([TEA])
    assert not seen(memory), "a turn that is not extracted from"
    memory.observe([MOVE])
    memory.consolidate()
    assert not seen(memory) and not WORD.findall(by_mcp(memory))
    assert {"canaryone", "canarytwo"} == {*WORD.findall(str(waiting(memory)))}
    shutil.rmtree(root / ".infinimem")
    shutil.rmtree(tmp_path / "cache", ignore_errors=True)
    memory = open_memory(root, model="offline")
    memory.observe(())
    assert not seen(memory)
    receipts = memory.decide(approve=["inbox"])
    assert [receipt.op for receipt in receipts] == ["review"] and not memory.review()
    memory.observe(())
    memory.consolidate()
    for words in (seen(memory), {*WORD.findall(by_mcp(memory))}):
        assert words == {"canaryone", "canarytwo"}
    assert not list((root / "evidence/inbox").glob("*.md"))


@pytest.mark.parametrize("strategy", SYSTEMS)
def test_what_is_refused_stays_hidden(tmp_path: Path, strategy: str) -> None:
    """A refused line and its turn are kept, with a receipt, and no model sees them; undo lets them wait."""
    memory = library(tmp_path / "m", strategy=strategy)
    memory.observe([TEA, MOVE])
    session = next(row.item for row in memory.review() if "canarytwo" in row.text)
    (receipt,) = memory.decide(reject=[session])
    memory.decide(approve=["inbox"])
    memory.observe(())
    assert seen(memory) == {"canaryone"} and not memory.review()
    assert memory.library.record([MOVE]), "it may be said again"
    assert {"refused"} == {row.why for row in receipt.rows}
    memory.undo(receipt.id)
    assert "canarytwo" in str(waiting(memory)) and "canarytwo" not in seen(memory)


def test_a_line_moves_and_is_never_reworded(tmp_path: Path) -> None:
    """Approval moves the line's bytes to CURRENT, refusal to the archive; history and blame lead through."""
    root = tmp_path / "m"
    memory = library(root)
    tea, cat = memory.observe([TEA, MOVE])
    assert tea.doc_id == "INBOX" and tea.entry.line in (root / "INBOX.md").read_text()
    memory.decide(approve=[f"inbox:{tea.seq}"], reject=[f"inbox:{cat.seq}"])
    assert tea.entry.line in (root / "CURRENT.md").read_text()
    assert cat.entry.line in (root / "archive/inbox/refused.md").read_text()
    assert tea.entry.line not in (root / "INBOX.md").read_text()
    told = [(event.event, event.why) for event in memory.history(tea.seq) if event.receipt]
    assert ("receipt", "approved") in told
    (blamed,) = [one for one in memory.blame("CURRENT") if one.seq == tea.seq]
    assert blamed.why == "approved" and blamed.turns
    memory.undo()
    assert waiting(memory).keys() == {cat.seq}
    assert not [one for one in memory.doctor() if one.level == "error"]


def test_undo_of_an_approval_takes_line_and_turn_back(tmp_path: Path) -> None:
    """Also where the line was sorted into a topic since (with --together)."""
    root = tmp_path / "m"
    memory = library(root)
    memory.observe([TEA, MOVE])
    before = {path: path.read_bytes() for path in root.glob("evidence/inbox/*.md")}
    (receipt,) = memory.decide(approve=["inbox"])
    memory.consolidate()
    with pytest.raises(LibraryError):
        memory.undo(receipt.id)
    memory.undo(receipt.id, together=True)
    assert not seen(memory) and len(memory.review()) == 2
    assert before == {path: path.read_bytes() for path in root.glob("evidence/inbox/*.md")}


@pytest.mark.parametrize("strategy", SYSTEMS)
def test_what_was_made_of_it_meanwhile_goes_with_it(tmp_path: Path, strategy: str) -> None:
    """Once its approval is undone, no summary and no record tells of a line or a turn."""
    memory = library(tmp_path / "m", strategy=strategy)
    memory.observe([TEA, replace(TEA, text="I drink canarytwo coffee at work.", session="s2")])
    session = next(row.item for row in memory.review() if "canaryone" in row.text)
    (receipt,) = memory.decide(approve=[session])
    memory.decide(approve=["inbox"])
    memory.observe(())
    memory.consolidate()
    assert seen(memory) == {"canaryone", "canarytwo"}
    memory.undo(receipt.id, together=True)
    assert seen(memory) == {"canarytwo"}
    memory.decide(approve=["inbox"])
    memory.observe(())
    memory.consolidate()
    assert seen(memory) == {"canaryone", "canarytwo"}
    assert not [one for one in memory.doctor() if one.level == "error"]


def test_what_was_recorded_before_waits_once_it_is_extracted_from(tmp_path: Path) -> None:
    """Turned on over a pending turn, approval holds what is extracted from it, and the turn."""
    memory = library(tmp_path / "m", OFF)
    memory.record([TEA])
    assert "canaryone" in seen(memory)
    memory = library(tmp_path / "m", ON)
    memory.observe(())
    assert not seen(memory) and len(memory.review()) == 1


def test_turning_it_off_approves_nothing(tmp_path: Path) -> None:
    """Lines wait, and so does what is extracted later from a turn that was recorded then; status says so."""
    memory = library(tmp_path / "m")
    memory.observe([TEA])
    memory.record([MOVE])
    memory = library(tmp_path / "m", OFF)
    memory.observe([Turn("I live at canarythree street in Porto.", session="s3")])
    assert seen(memory) == {"canarythree"}
    assert {"canaryone", "canarytwo"} == {*WORD.findall(str(waiting(memory)))}
    assert memory.status()["inbox"] == {"lines": 2, "approve": False}


def test_a_turn_with_a_refused_or_waiting_line_stays_hidden(tmp_path: Path) -> None:
    """Of two lines of one turn each is approved by itself; the turn is shown once both are."""

    def two(v: Mapping[str, Any]) -> Mapping[str, Any]:
        parts = ((turn["id"], part) for turn in v["turns"] for part in turn["text"].split("; "))
        return {"entries": [{"text": part, "from": [seq]} for seq, part in parts]}

    memory = library(tmp_path / "m", model=ScriptedLLM({"extract": two}))
    one, other = memory.observe([Turn("I drink canaryone tea; I keep canarytwo cats", session="s1")])
    memory.decide(approve=[f"inbox:{one.seq}"])
    assert seen(memory) == {"canaryone"}
    memory.decide(reject=[f"inbox:{other.seq}"])
    assert seen(memory) == {"canaryone"}
    memory.undo()
    memory.decide(approve=[f"inbox:{other.seq}"])
    assert "canarytwo cats" in str(memory.tools.call("grep", {"pattern": "canarytwo", "scope": "evidence"}))


def test_instructions_go_to_their_document_when_approved(tmp_path: Path) -> None:
    """What the user asks for once and for all directs nobody before a person approved it."""
    memory = library(tmp_path / "m")
    memory.observe([Turn("Always answer in canaryone units.", session="s1")])
    assert not seen(memory)
    memory.decide(approve=["inbox"])
    assert "canaryone" in (tmp_path / "m/topics/instructions-and-preferences.md").read_text()


# ── people's hands ──────────────────────────────────────────────────────────────────────────────


def test_hand_edits_of_the_inbox_win(tmp_path: Path) -> None:
    """An edited line is approved as it reads, a moved one stands where it was put, a deleted one is gone."""
    root = tmp_path / "m"
    memory = library(root)
    tea, cat = memory.observe([TEA, MOVE])
    inbox = root / "INBOX.md"
    inbox.write_text(inbox.read_text().replace("I drink it daily", "now and then") + "- typed canaryhand\n")
    memory.consolidate()
    assert not seen(memory), "no receipt that quotes it is shown"
    rows = waiting(memory)
    assert "now and then" in rows[tea.seq] and "typed canaryhand" in rows.values()
    inbox.write_text(inbox.read_text().replace(f"{cat.entry.line}\n", ""))
    current = root / "CURRENT.md"
    current.write_text(current.read_text() + f"{cat.entry.line}\n")
    memory.consolidate()
    assert "canarytwo" in seen(memory) and cat.seq not in waiting(memory)
    inbox.write_text("---\nid: INBOX\n---\n")
    memory.consolidate()
    assert "canaryone" not in seen(memory), "the turn of a line that was deleted is not approved"
    memory.decide(approve=["inbox"])
    assert seen(memory) == {"canaryone", "canarytwo"}
    assert not [one for one in memory.doctor() if one.level == "error"]


def test_forget_takes_what_waits(tmp_path: Path) -> None:
    """A line in INBOX.md goes with its turn, and one that was refused."""
    root = tmp_path / "m"
    memory = library(root)
    tea, cat = memory.observe([TEA, MOVE])
    memory.decide(reject=[f"inbox:{cat.seq}"])
    for seq in (tea.seq, cat.seq):
        assert memory.forget([seq]).left == ()
    files = "".join(path.read_text() for path in root.rglob("*.md"))
    assert "canary" not in files and not memory.review()


def test_an_import_waits_and_comes_once(shell: Shell, tmp_path: Path) -> None:
    """Imported again, what waits or was refused or approved is not recorded anew."""
    note = tmp_path / "chat.jsonl"
    rows = [{"role": "user", "content": TEA.text}, {"role": "user", "content": MOVE.text}]
    note.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (shell.library / "infinimem.toml").write_text(ON)
    assert shell("import", str(note), *OFFLINE, "--json").json["recorded"] == 2
    assert "0 of 0" in shell("grep", "canary", "--scope", "evidence").err
    for decision in ((), ("--reject", "inbox")):
        if decision:
            assert shell("review", *decision).code == 0
        assert shell("import", str(note), *OFFLINE, "--json").json["recorded"] == 0


# ── the faces ───────────────────────────────────────────────────────────────────────────────────


def test_review_on_the_command_line(shell: Shell) -> None:
    """By line, by session, all; each word of it is shown, and what a command is told is done."""
    (shell.library / "infinimem.toml").write_text(ON)
    for turn in (TEA, MOVE):
        added = shell("add", turn.text, "--session", turn.session or "", "--time", turn.time or "", *OFFLINE)
        assert "awaiting approval" in added.err
    rows = shell("review", "--json").json["rows"]
    assert [row["item"] for row in rows] == ["inbox/2025-03-03-s1", "inbox/2025-03-04-s2"]
    assert {row["was"].partition(":")[0] for row in rows} == {"INBOX"}
    listed = shell("review").out
    assert "awaits approval" in listed and TEA.text in listed
    assert "0 of 0" in shell("grep", "canary").err and shell("read", "INBOX").code == 1
    assert shell("review", "--approve", "inbox/2025-03-03-s1").code == 0
    assert "canaryone" in shell("grep", "canary").out
    (shell.library / "infinimem.toml").write_text(OFF)
    assert "approve is off" in shell("status").err
    shell("review", "--approve", "inbox:9").failed(2, "infinimem review")
    assert shell("review", "--reject", f"inbox:{rows[1]['seq']}").code == 0
    assert "approve is off" not in shell("status").err
    assert shell("doctor").code == 0


def test_review_on_the_page(tmp_path: Path) -> None:
    """The page shows what waits, and approves and refuses it."""
    pytest.importorskip("starlette", reason="infinimem[web] is not installed")
    from starlette.testclient import TestClient

    from infinimem.web.app import Session, make_app
    from infinimem.web.site import Site

    memory, session = library(tmp_path / "m"), Session(8000)
    tea, cat = memory.observe([TEA, MOVE])
    app = make_app(Site(memory, session.csrf), session, ["127.0.0.1:8000"])
    client = TestClient(app, base_url="http://127.0.0.1:8000")
    client.get(f"/enter?token={session.token}")
    page = client.get("/review").text
    assert TEA.text in page and f'value="inbox/2025-03-03-s1:{tea.seq}"' in page
    assert "2 changes" in client.get("/").text
    for address in ("/conversations", "/timeline", "/topics", f"/fact/{tea.seq}", "/map", "/doc/INBOX"):
        assert client.get(address).status_code == 200, address
    assert "drink it daily" not in client.get("/search?q=canaryone").text
    form = {"csrf": session.csrf, "word": "approve", "item": f"inbox/2025-03-03-s1:{tea.seq}"}
    client.post("/review", data=form)
    client.post("/review", data={**form, "word": "reject", "item": "inbox"})
    assert seen(memory) == {"canaryone"} and not memory.review()
    assert cat.entry.line in (tmp_path / "m/archive/inbox/refused.md").read_text()


def test_remember_says_that_it_waits(tmp_path: Path) -> None:
    """The MCP tool records, and tells that no tool shows it yet."""
    pytest.importorskip("mcp", reason="the MCP SDK is not installed (pip install 'infinimem[mcp]')")
    from mcp_client import drive, texts

    from infinimem.mcp.server import make_server

    memory = library(tmp_path / "m")

    async def work(client: Any) -> None:
        done = await client.call_tool("remember", {"text": TEA.text})
        assert done.structured_content["recorded"] and "until a person approves it" in texts(done)

    drive(make_server(memory), work)
    assert not WORD.findall(by_mcp(memory))


def test_an_agent_is_shown_the_turn_that_it_extracts_from_and_no_other(tmp_path: Path) -> None:
    """No task but the extraction itself holds a word of what waits, not even as context."""
    memory = library(tmp_path / "m", model="agent")
    memory.record([TEA])
    first = memory.tasks.go_on("consolidate")
    while task := memory.tasks.take():
        assert "canaryone" in task.text
        assert memory.tasks.answer(task.number, reply_to(task.text)) == []
    assert first and len(memory.review()) == 1
    memory.record([Turn("I moved to Lisbon with canarytwo.", session="s1")])
    memory.tasks.go_on("consolidate")
    texts = list[str]()
    while task := memory.tasks.take():
        texts.append(task.text)
        assert memory.tasks.answer(task.number, reply_to(task.text)) == []
    assert {"canarytwo"} == {*WORD.findall("".join(texts))}


# ── a walk ──────────────────────────────────────────────────────────────────────────────────────


class Walk:
    """A library in which things happen, and the words that a person approved."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root, self.random, self.count = root, random.Random(seed), 0
        self.approved: dict[str, set[str]] = {}
        """Words by the receipt that approved them, "" for those that were moved by hand."""
        self.deleted = set[str]()
        """Those of lines that a person deleted: of their turns only what else was drawn decides."""
        self.llm = ScriptedLLM({**keeping("topics/things"), "extract": self.extract})
        self.memory = library(root, model=self.llm)

    def extract(self, v: Mapping[str, Any]) -> Mapping[str, Any]:
        parts = (
            (t["id"], part) for t in v["turns"] for part in t["text"].split("; ") if "filler" not in part
        )
        return {
            "entries": [
                {"text": part, "from": [seq], "topic": f"On {WORD.findall(part)[0]}"} for seq, part in parts
            ]
        }

    def say(self) -> None:
        turns = []
        for _ in range(self.random.randint(1, 3)):
            self.count += 1
            text = f"I like canary{self.count}a tea; I like canary{self.count}b cats"
            text = self.random.choice((text, text.partition("; ")[0], f"filler canary{self.count}f"))
            turns.append(Turn(text, session=self.random.choice(("s1", "s2", "canarysession s3"[7:]))))
        (self.memory.observe if self.random.random() < 0.7 else self.memory.record)(turns)

    def approve(self) -> None:
        rows = self.memory.review()
        if rows := [row for row in rows if row.item.startswith("inbox")]:
            row = self.random.choice(rows)
            name = self.random.choice((f"{row.item}:{row.seq}", f"inbox:{row.seq}", row.item))
            chosen = [one for one in rows if name in (f"{one.item}:{one.seq}", f"inbox:{one.seq}", one.item)]
            for receipt in self.memory.decide(approve=[name]):
                self.approved[receipt.id] = {word for one in chosen for word in WORD.findall(one.text)}

    def refuse(self) -> None:
        if rows := [row for row in self.memory.review() if row.item.startswith("inbox")]:
            row = self.random.choice(rows)
            self.memory.decide(reject=[f"{row.item}:{row.seq}"])

    def undo(self) -> None:
        if receipts := [one for one in self.memory.receipts() if one.op == "review"]:
            try:
                done = self.memory.undo(self.random.choice(receipts[-3:]).id, together=True)
            except LibraryError:
                return
            for one in done:
                for label in (note.rsplit(" ", 1)[-1] for note in one.notes if "takes back" in note):
                    taken = [name for name in self.approved if name and label in _label(name)]
                    for name in taken:
                        del self.approved[name]

    def edit(self) -> None:
        inbox, current = self.root / "INBOX.md", self.root / "CURRENT.md"
        lines = inbox.read_text().splitlines(keepends=True) if inbox.exists() else []
        if entries := [line for line in lines if line.startswith("- <")]:
            line = self.random.choice(entries)
            what = self.random.choice(("edit", "move", "delete"))
            lines[lines.index(line)] = line.replace("like", "love") if what == "edit" else ""
            inbox.write_text("".join(lines))
            if what == "delete":
                self.deleted.update(WORD.findall(line))
            if what == "move":
                current.write_text(current.read_text() + line)
                self.approved.setdefault("", set()).update(WORD.findall(line))

    def lose(self) -> None:
        shutil.rmtree(self.root / ".infinimem")
        shutil.rmtree(user_folder("cache"), ignore_errors=True)
        self.memory = library(self.root, self.random.choice((ON, OFF)), self.llm)
        if "approve" not in (self.root / "infinimem.toml").read_text():
            self.memory = library(self.root, ON, self.llm)

    def consolidate(self) -> None:
        self.memory.consolidate()

    def steps(self, count: int) -> Iterator[str]:
        happenings = [self.say] * 3 + [self.approve] * 3 + [
            self.refuse, self.undo, self.edit, self.lose, self.consolidate
        ]  # fmt: skip
        for _ in range(count):
            happening = self.random.choice(happenings)
            happening()
            yield happening.__name__

    def check(self, step: str) -> None:
        allowed = set[str]().union(*self.approved.values())
        allowed |= {word for word in self.deleted if {f"{word[:-1]}a", f"{word[:-1]}b"} & allowed}
        words = seen(self.memory)
        assert words <= allowed, (step, words - allowed)
        for call in self.llm.calls:
            own = {*WORD.findall(str(call.variables.get("turns", "")))} if call.task == "extract" else set()
            assert {*WORD.findall(str(call.variables))} <= allowed | own, (step, call)
        self.llm.calls.clear()


def _label(name: str) -> set[str]:
    number, _, suffix = name.removeprefix("journal/").split("-")
    return {f"{int(number)}-{suffix}"}


@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(n, marks=pytest.mark.soak) for n in range(4, 40))]
)
def test_no_word_that_waits_is_ever_shown(tmp_path: Path, seed: int) -> None:
    """Whatever is approved, refused, undone, edited or lost: a model sees what a person approved."""
    walk = Walk(tmp_path / "m", seed)
    for step in walk.steps(25):
        walk.check(step)
    walk.memory.observe(())
    walk.memory.decide(approve=["inbox"] if walk.memory.review() else [])
    assert not [one for one in walk.memory.doctor() if one.level == "error"]
    hidden = [one for one in ids_of(walk.root) if one.startswith(("evidence/inbox/", "INBOX"))]
    assert (
        all("refused" in one or not (walk.root / f"{one}.md").read_text().count("- <") for one in hidden)
        or (walk.root / "archive/inbox/refused.md").exists()
    )
