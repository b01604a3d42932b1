"""What a pattern may cost, and what becomes of one that matches nothing."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from cli_runner import Shell

from infinimem import open_memory

NOTE = """# Gate

The fix is commit 3fa9c1e7b2d04455aa on branch feat/gate; see https://example.org/docs/gate?id=42#top.
Run `tar --exclude='*.tmp' -xzf out.tgz` in $HOME/x, cost (net) 3.50.
"""


@pytest.mark.parametrize(
    "pattern",
    ["https://example.org/docs/gate?id=42#top", "$HOME/x", "--exclude='*.tmp'", "cost (net)", "gate?id"],
)
def test_what_stands_there_is_found_as_it_stands(shell: Shell, pattern: str) -> None:
    """A pattern that matches nothing is searched for literally, and that is said; in one document too."""
    (shell.library / "gate.md").write_text(NOTE)
    for doc in ((), ("--doc", "gate")):
        found = shell("--json", "grep", *doc, "--", pattern).json
        assert found["total_matches"] == 1 and pattern in found["matches"][0]["text"]
        assert found["notes"] == ["nothing matches it as a pattern; it was searched for literally"]
    assert "literally" in shell("grep", "--", pattern).err


def test_a_pattern_that_matches_stays_a_pattern(shell: Shell) -> None:
    """What matches as a pattern is no literal, and says nothing."""
    (shell.library / "gate.md").write_text(NOTE)
    found = shell("--json", "grep", "gate.id=4\\d").json
    assert found["total_matches"] == 1 and not found.get("notes")
    assert shell("--json", "grep", "nothing at all").json["total_matches"] == 0


def test_a_short_hash_finds_the_long_one(shell: Shell) -> None:
    """The first seven or more characters of a commit's hash find it in search."""
    (shell.library / "gate.md").write_text(NOTE)
    (shell.library / "other.md").write_text("# Other\n\nA commit 3fa9c1ffffff on a branch, deadbee too.\n")
    for short in ("3fa9c1e", "3fa9c1e7b2", "3FA9C1E7"):
        assert shell("--json", "search", short).json["hits"][0]["doc_id"] == "gate"


COSTLY = ["((.?){0,30}a){0,30}b?#", "(x?[ab ]{0,20}){20}#", "((\\pL{0,20}){0,30}a)|b"]


@pytest.mark.parametrize("pattern", COSTLY)
def test_no_pattern_takes_long(tmp_path: Path, pattern: str) -> None:
    """A pattern of repeats within repeats is answered in seconds, or refused with the limit it passed."""
    source = random.Random(5)
    text = "\n".join("".join(source.choices("ab ", k=100)) for _ in range(2000))
    (tmp_path / "a.md").write_text(f"{text}\n{text.replace(chr(10), ' ')}\n")
    with open_memory(str(tmp_path), model="offline") as memory:
        for call in (memory.tools.grep, lambda given: memory.tools.grep_doc("a", given)):
            began = time.process_time()
            found = call(pattern)
            assert time.process_time() - began < 6
            if "error" in found:
                assert "too large" in found["error"] or "more than 2 s" in found["error"]
                assert "\n" not in found["error"]


def test_the_limit_of_time_is_named(tmp_path: Path) -> None:
    """A pattern that is small enough and takes more than two seconds is refused, and nothing is guessed."""
    source = random.Random(5)
    (tmp_path / "a.md").write_text("\n".join("".join(source.choices("ab ", k=20_000)) for _ in range(120)))
    with open_memory(str(tmp_path), model="offline") as memory:
        assert "more than 2 s" in memory.tools.grep("a[ab ]{300}a[ab ]{300}#")["error"]


def test_the_limit_of_size_is_named(shell: Shell) -> None:
    """A pattern that is too large is refused by its size, before any text is searched."""
    (shell.library / "gate.md").write_text(NOTE)
    ran = shell("grep", "(\\pL{1,30}){1,30}")
    assert ran.code and "error: the pattern is too large (over 10000 instructions)" in ran.err
