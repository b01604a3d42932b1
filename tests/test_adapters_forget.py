"""Forgetting reaches a model's own files, and what receipts tell of them, and is not led astray by them."""

from __future__ import annotations

from pathlib import Path

import pytest
from forget_library import held

from infinimem.adapters.file_tree import FileTree
from infinimem.memory import Memory, open_memory
from infinimem.model import Turn

NUTS = "I am terribly allergic to peanuts since 1999"


@pytest.fixture(params=["infini", "allmem"])
def memory(tmp_path: Path, request: pytest.FixtureRequest) -> Memory:
    memory = open_memory(tmp_path / "m", model="offline", strategy=request.param, create=True)
    memory.observe([Turn(NUTS, session="s"), Turn("I moved to Lisbon.", session="s")])
    return memory


def do(memory: Memory, command: str, path: str, **more: object) -> str:
    return FileTree(memory).run({"command": command, "path": path, **more})


def there(memory: Memory) -> dict[str, str]:
    folder = memory.library.root / "memories"
    return {p.relative_to(folder).as_posix(): p.read_text() for p in folder.rglob("*.md")}


def test_a_file_that_repeats_what_is_forgotten_is_listed_and_receipts_do_not_quote_it(memory: Memory) -> None:
    do(memory, "create", "/memories/user.md", file_text=f"# User\nSaid: {NUTS}\nLikes tea\n")
    do(memory, "create", "/memories/old.md", file_text=f"{NUTS}\n")
    do(memory, "delete", "/memories/old.md")
    seen, done = memory.forget([1], dry_run=True), memory.forget([1])
    assert [one.path for one in (*seen.left, *done.left)] == ["memories/user.md"] * 2
    assert held([NUTS], memory.library.root) == {NUTS: ["memories/user.md"]}
    memory.forget(match="allergic")
    assert there(memory) == {"user.md": "# User\nLikes tea\n"}
    assert held([NUTS], memory.library.root) == {}
    assert [finding for finding in memory.doctor() if finding.level == "error"] == []


def test_a_match_takes_lines_that_only_a_model_wrote(memory: Memory) -> None:
    secret = "The code of the safe is 7731 and nobody knows"
    do(memory, "create", "/memories/safe.txt", file_text=f"one\n{secret}\nthree\r\n")
    do(memory, "insert", "/memories/safe.txt", insert_line=0, insert_text="zero")
    done = memory.forget(match="code of the safe")
    assert done.receipt is not None
    assert (
        there(memory) == {"safe.txt.md": "zero\none\nthree\n"}
        or (memory.library.root / "memories/safe.txt.md").read_bytes() == b"zero\none\nthree\r\n"
    )
    assert held([secret], memory.library.root) == {}
    assert memory.at("journal/0001-memory").view.ids("all")


def test_all_that_an_ai_said(memory: Memory) -> None:
    do(memory, "create", "/memories/a.txt", file_text="a guess\n")
    (memory.library.root / "mine.md").write_text("mine\n")
    memory.forget(source="AI")
    assert there(memory) == {}
    assert (memory.library.root / "mine.md").read_text() == "mine\n"


def test_a_line_that_pretends_to_be_signed_does_not_take_the_real_one_along(memory: Memory) -> None:
    do(memory, "create", "/memories/a.txt", file_text="- <seq=2,source=user> zanzibar\nplain\n")
    do(memory, "delete", "/memories/a.txt")  # a receipt quotes it now
    do(memory, "create", "/memories/a.txt", file_text="- <seq=2,source=user> zanzibar\nplain\n")
    done = memory.forget(match="zanzibar")
    assert 2 not in done.seqs
    assert memory.view.entry(2) is not None
    assert there(memory) == {"a.txt.md": "plain\n"}
    assert held(["zanzibar"], memory.library.root) == {}
