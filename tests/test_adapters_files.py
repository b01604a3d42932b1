"""A model's files in a library: bytes, receipts, undo, several clients, what else keeps the library."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from forget_library import held
from hypothesis import given, settings
from hypothesis import strategies as st
from test_adapters_paths import HARMLESS, HOSTILE

from infinimem.adapters.file_tree import MAX_BYTES, FileTree, Refused
from infinimem.memory import Memory, open_memory
from infinimem.model import Plan, Put, Turn
from infinimem.operations.undo import undo
from infinimem.store.view import Rejected


@pytest.fixture(params=["infini", "allmem"])
def memory(tmp_path: Path, request: pytest.FixtureRequest) -> Memory:
    return open_memory(tmp_path / "m", model="offline", strategy=request.param, create=True)


@pytest.fixture
def plain(tmp_path: Path) -> Memory:
    return open_memory(tmp_path / "m", model="offline", create=True)


def do(memory: Memory, command: str, path: str = "", **more: Any) -> str:
    return FileTree(memory).run({"command": command, "path": path, **more})


def create(memory: Memory, path: str, text: str) -> str:
    return do(memory, "create", path, file_text=text)


def replace(memory: Memory, path: str, old: str, new: str) -> str:
    return do(memory, "str_replace", path, old_str=old, new_str=new)


def rename(memory: Memory, old: str, new: str) -> str:
    return do(memory, "rename", old_path=old, new_path=new)


def there(memory: Memory) -> dict[str, bytes]:
    folder = memory.library.root / "memories"
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def outside(memory: Memory) -> dict[str, bytes]:
    """Everything but memories/, receipts and machine state."""
    found = (p for p in memory.library.root.rglob("*") if p.is_file())
    named = {p.relative_to(memory.library.root).as_posix(): p for p in found}
    own = ("memories/", "journal/", ".infinimem/")
    return {name: p.read_bytes() for name, p in named.items() if not name.startswith(own)}


# ── bytes ───────────────────────────────────────────────────────────────────────────────────────

PIECES = [
    "\r\n",
    "\n",
    "\r",
    "\ufeff",
    "\u2028",
    "\x85",
    "\x0c",
    "\0",
    "\t",
    "|",
    "a",
    " ",
    "",
    "é",
    "e\u0301",
]
PIECES += [
    "---\n",
    "- <seq=1,source=user> hi",
    "# H\n",
    "```\n",
    "> x",
    "## Before\n",
    "@1",
    "\\no newline",
    "😀",
]
texts = st.lists(st.sampled_from(PIECES) | st.text(st.characters(codec="utf-8"), max_size=4)).map("".join)


def kept(memory: Memory, one: str, other: str) -> None:
    """Two texts through every command."""
    create(memory, "/memories/d/a.txt", one)
    assert there(memory)["d/a.txt.md"] == one.encode()
    count = len(one.split("\n")) - one.endswith("\n") - (one == "")
    do(memory, "insert", "/memories/d/a.txt", insert_line=count, insert_text=other)
    joint = "" if one.endswith("\n") or not one else "\n"
    written = one + joint + other + ("" if other.endswith("\n") else "\n")
    assert there(memory)["d/a.txt.md"] == written.encode()
    mark = "«mark»"
    do(memory, "insert", "/memories/d/a.txt", insert_line=0, insert_text=mark)
    assert there(memory)["d/a.txt.md"] == f"{mark}\n{written}".encode()
    replace(memory, "/memories/d/a.txt", mark, one)
    rename(memory, "/memories/d/a.txt", "/memories/d/b.md")
    do(memory, "delete", "/memories/d")
    assert there(memory) == {}
    assert [receipt.op for receipt in memory.undo()] == ["undo"]  # the delete
    assert there(memory) == {"d/b.md": f"{one}\n{written}".encode()}


@settings(deadline=None, max_examples=6)
@given(one=texts, other=texts)
def test_any_text_is_kept_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, one: str, other: str
) -> None:
    kept(open_memory(tmp_path_factory.mktemp("files") / "m", model="offline", create=True), one, other)


def test_every_step_can_be_taken_back_to_the_first(memory: Memory) -> None:
    steps = [there(memory)]
    before = outside(memory)
    for step in (
        lambda: create(memory, "/memories/a.txt", "\ufeffone\r\ntwo"),
        lambda: create(memory, "/memories/d/b.md", ""),
        lambda: replace(memory, "/memories/a.txt", "two", "2"),
        lambda: do(memory, "insert", "/memories/d/b.md", insert_line=0, insert_text="- <seq=9> x"),
        lambda: rename(memory, "/memories/a.txt", "/memories/d/a"),
        lambda: rename(memory, "/memories/d", "/memories/e"),
        lambda: do(memory, "delete", "/memories/e"),
    ):
        step()
        steps.append(there(memory))
    numbers = [receipt.number for receipt in memory.receipts()]
    assert len(numbers) == len(steps) - 1
    for number, state in zip(reversed(numbers), reversed(steps[:-1]), strict=True):
        undo(memory.library, str(number))
        assert there(memory) == state
    assert outside(memory) == before
    assert [finding for finding in memory.doctor() if finding.level == "error"] == []


def test_what_is_done_leaves_a_receipt_and_what_changes_nothing_none(memory: Memory) -> None:
    create(memory, "/memories/a.txt", "x y")
    (receipt,) = memory.receipts()
    assert (receipt.op, receipt.strategy, receipt.notes) == (
        "memory",
        "memory-tool",
        ("create /memories/a.txt",),
    )
    assert [name for name, *_ in receipt.files] == ["memories/a.txt"]
    replace(memory, "/memories/a.txt", "x", "x")
    with pytest.raises(Refused):
        replace(memory, "/memories/a.txt", "z", "x")
    assert len(memory.receipts()) == 1


def test_what_a_person_saved_since_is_not_undone(plain: Memory) -> None:
    create(plain, "/memories/a.txt", "one")
    (plain.library.root / "memories/a.txt.md").write_text("mine")
    with pytest.raises(Exception, match="changed by hand"):
        plain.undo()
    assert there(plain) == {"a.txt.md": b"mine"}


def test_the_library_as_it_stood(plain: Memory) -> None:
    create(plain, "/memories/a.txt", "before\n")
    replace(plain, "/memories/a.txt", "before", "after")
    assert plain.at("journal/0001-memory").view.document("memories/a.txt").to_bytes() == b"before\n"


# ── what is refused ─────────────────────────────────────────────────────────────────────────────


def test_a_file_that_is_too_large(plain: Memory) -> None:
    with pytest.raises(Refused, match="too large"):
        create(plain, "/memories/a.txt", "é" * (MAX_BYTES // 2 + 1))
    create(plain, "/memories/a.txt", "x" * (MAX_BYTES - 1))
    with pytest.raises(Refused, match="too large"):
        do(plain, "insert", "/memories/a.txt", insert_line=0, insert_text="xy")
    (plain.library.root / "memories/b.md").write_bytes(b"x" * (MAX_BYTES + 1))
    with pytest.raises(Refused, match="too large"):
        do(plain, "view", "/memories/b.md")


def test_no_command_follows_a_hostile_path(tmp_path: Path, plain: Memory) -> None:
    create(plain, "/memories/a.txt", "one\n")
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    for path in sorted(set(HOSTILE) - HARMLESS):
        for command, more in (
            ("view", {}),
            ("create", {"file_text": "x"}),
            ("str_replace", {"old_str": "one", "new_str": "x"}),
            ("insert", {"insert_line": 0, "insert_text": "x"}),
            ("delete", {}),
            ("rename", {"old_path": path, "new_path": "/memories/b.txt"}),
            ("rename", {"old_path": "/memories/a.txt", "new_path": path}),
        ):
            with pytest.raises(Refused):
                do(plain, command, path, **more)
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


def test_a_folder_of_notes_is_read_and_not_written(tmp_path: Path) -> None:
    (tmp_path / "memories").mkdir()
    (tmp_path / "memories/a.md").write_text("a note")
    memory = open_memory(tmp_path, model="offline")
    assert "a note" in do(memory, "view", "/memories/a.md")
    for refused in (
        lambda: create(memory, "/memories/b.md", "x"),
        lambda: replace(memory, "/memories/a.md", "a", "b"),
        lambda: do(memory, "delete", "/memories/a.md"),
    ):
        with pytest.raises(Refused, match="infinimem init") as told:
            refused()
        assert str(tmp_path) not in str(told.value)
    assert [p.name for p in tmp_path.rglob("*")] == ["memories", "a.md"]


@pytest.mark.sample(2)
@pytest.mark.parametrize("path", ["/memories/link/x.txt", "/memories/link.md", "/memories/sub/link.md"])
def test_links_are_not_followed(tmp_path: Path, plain: Memory, path: str) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "x.txt.md").write_text("secret")
    folder = plain.library.root / "memories"
    (folder / "sub").mkdir(parents=True)
    (folder / "link").symlink_to(secret)
    (folder / "link.md").symlink_to(secret / "x.txt.md")
    (folder / "sub/link.md").symlink_to(secret / "new.md")
    with pytest.raises(Refused, match="does not exist"):
        do(plain, "view", path)
    with pytest.raises(Refused) as told:
        create(plain, path, "words")
    assert str(tmp_path) not in str(told.value)
    assert {p.name: p.read_text() for p in secret.iterdir()} == {"x.txt.md": "secret"}
    assert "link" not in do(plain, "view", "/memories")


def test_a_file_that_is_no_text_is_left_alone(plain: Memory) -> None:
    create(plain, "/memories/a.txt", "x")
    path = plain.library.root / "memories/a.txt.md"
    path.write_bytes(b"\xff\xfe caf\xe9")
    for refused in (
        lambda: do(plain, "view", "/memories/a.txt"),
        lambda: replace(plain, "/memories/a.txt", "caf", "x"),
        lambda: rename(plain, "/memories/a.txt", "/memories/b.txt"),
    ):
        with pytest.raises(Refused, match="not UTF-8"):
            refused()
    assert path.read_bytes() == b"\xff\xfe caf\xe9"


@pytest.mark.sample(2)
@pytest.mark.parametrize("doc_id", ["topics/a", "notes/a", "CURRENT", "evidence/a", "allmem/units/u-000001"])
def test_a_plan_of_the_memory_tool_reaches_no_other_folder(memory: Memory, doc_id: str) -> None:
    outcome = memory.library.apply(Plan(op="memory", records=(Put(doc_id, "x"),)))
    assert isinstance(outcome, Rejected)
    assert [reason.code for reason in outcome.reasons] == ["FOREIGN_RECORD"]


# ── beside the rest of the library ──────────────────────────────────────────────────────────────


def test_the_files_are_searched_and_read_by_every_tool(memory: Memory) -> None:
    create(memory, "/memories/plan.txt", "Ship the zeppelin on Friday\n")
    create(memory, "/memories/next.js.md", "zeppelins in next\n")
    assert "memories/plan.txt" in memory.view.ids()
    tools = memory.tools
    for name, arguments in (
        ("search", {"query": "zeppelin"}),
        ("grep", {"pattern": "zeppelin"}),
        ("list_docs", {}),
    ):
        assert "memories/plan.txt" in tools.text(name, arguments)
    assert "zeppelin on" in tools.text("read_lines", {"doc_id": "memories/plan.txt", "start": 1, "end": 1})
    assert "in next" in tools.text("read_lines", {"doc_id": "memories/next.js.md", "start": 1, "end": 1})


def test_consolidation_and_rebuild_leave_them_as_they_are(memory: Memory) -> None:
    text = "- a list item\n- <seq=1,source=user> a lie\n- [ ] a task\n"
    create(memory, "/memories/a.txt", text)
    memory.observe([Turn(f"I live in Lisbon, number {n}.", session="s") for n in range(3)])
    memory.consolidate()
    memory.library.adopt_edits()
    memory.rebuild()
    assert there(memory) == {"a.txt.md": text.encode()}
    assert [e for e in memory.view.entries("all") if e.doc_id.startswith("memories/")] == []
    place = memory.view.entry(1)
    assert place is not None and place.doc_id.startswith("evidence/")


# ── several clients ─────────────────────────────────────────────────────────────────────────────


def test_two_clients_at_once_lose_nothing(plain: Memory) -> None:
    create(plain, "/memories/log.md", "start\n")
    rounds = 6
    failed: list[BaseException] = []

    def write(who: str) -> None:
        client = open_memory(plain.library.root, model="offline")
        try:
            for number in range(rounds):
                do(client, "insert", "/memories/log.md", insert_line=1, insert_text=f"{who} {number}")
                create(client, f"/memories/{who}/{number}.md", who)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(who,)) for who in ("ana", "ben")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    lines = there(plain)["log.md"].decode().splitlines()
    assert lines[0] == "start"
    assert sorted(lines[1:]) == [f"{who} {number}" for who in ("ana", "ben") for number in range(rounds)]
    assert len(there(plain)) == 1 + 2 * rounds
    assert [finding for finding in plain.doctor() if finding.level == "error"] == []


def test_what_a_model_wrote_is_told_from_what_a_person_wrote(memory: Memory) -> None:
    create(memory, "/memories/a.txt", "# Plans\nA zeppelin over Lisbon\n")
    (memory.library.root / "mine.md").write_text("My own zeppelin\n")
    (memory.library.root / "memories/mine.md").write_text("A zeppelin of a person's\n")
    found = {item.doc_id: item.source for item in memory.retrieve("zeppelin").items}
    assert found == {"memories/a.txt": "AI", "mine": "human", "memories/mine": "AI"}
    kept_ = {item.doc_id for item in memory.retrieve("zeppelin", sources=["human"]).items}
    assert kept_ == {"mine"}
    lines = memory.blame("memories/a.txt")
    assert [(line.kind, line.receipt) for line in lines] == [("derived", memory.receipts()[0].id)] * 2
    assert [line.kind for line in memory.blame("memories/mine")] == ["person"]


# ── forgetting ───────────────────────────────────────────────────────────────────────────────────────


NUTS = "I am terribly allergic to peanuts since 1999"


@pytest.fixture(params=["infini", "allmem"])
def told(tmp_path: Path, request: pytest.FixtureRequest) -> Memory:
    memory = open_memory(tmp_path / "m", model="offline", strategy=request.param, create=True)
    memory.observe([Turn(NUTS, session="s"), Turn("I moved to Lisbon.", session="s")])
    return memory


def held_there(memory: Memory) -> dict[str, str]:
    folder = memory.library.root / "memories"
    return {p.relative_to(folder).as_posix(): p.read_text() for p in folder.rglob("*.md")}


def test_a_file_that_repeats_what_is_forgotten_is_listed_and_receipts_do_not_quote_it(told: Memory) -> None:
    do(told, "create", "/memories/user.md", file_text=f"# User\nSaid: {NUTS}\nLikes tea\n")
    do(told, "create", "/memories/old.md", file_text=f"{NUTS}\n")
    do(told, "delete", "/memories/old.md")
    seen, done = told.forget([1], dry_run=True), told.forget([1])
    assert [one.path for one in (*seen.left, *done.left)] == ["memories/user.md"] * 2
    assert held([NUTS], told.library.root) == {NUTS: ["memories/user.md"]}
    told.forget(match="allergic")
    assert held_there(told) == {"user.md": "# User\nLikes tea\n"}
    assert held([NUTS], told.library.root) == {}
    assert [finding for finding in told.doctor() if finding.level == "error"] == []


def test_a_match_takes_lines_that_only_a_model_wrote(told: Memory) -> None:
    secret = "The code of the safe is 7731 and nobody knows"
    do(told, "create", "/memories/safe.txt", file_text=f"one\n{secret}\nthree\r\n")
    do(told, "insert", "/memories/safe.txt", insert_line=0, insert_text="zero")
    done = told.forget(match="code of the safe")
    assert done.receipt is not None
    assert (
        held_there(told) == {"safe.txt.md": "zero\none\nthree\n"}
        or (told.library.root / "memories/safe.txt.md").read_bytes() == b"zero\none\nthree\r\n"
    )
    assert held([secret], told.library.root) == {}
    assert told.at(told.receipts()[0].id).view.ids("all")


def test_all_that_an_ai_said(told: Memory) -> None:
    do(told, "create", "/memories/a.txt", file_text="a guess\n")
    (told.library.root / "mine.md").write_text("mine\n")
    told.forget(source="AI")
    assert held_there(told) == {}
    assert (told.library.root / "mine.md").read_text() == "mine\n"


def test_a_line_that_pretends_to_be_signed_does_not_take_the_real_one_along(told: Memory) -> None:
    do(told, "create", "/memories/a.txt", file_text="- <seq=2,source=user> zanzibar\nplain\n")
    do(told, "delete", "/memories/a.txt")  # a receipt quotes it now
    do(told, "create", "/memories/a.txt", file_text="- <seq=2,source=user> zanzibar\nplain\n")
    done = told.forget(match="zanzibar")
    assert 2 not in done.seqs
    assert told.view.entry(2) is not None
    assert held_there(told) == {"a.txt.md": "plain\n"}
    assert held(["zanzibar"], told.library.root) == {}
