"""review on the command line."""

from __future__ import annotations

import pytest
from cli_runner import Shell
from history_library import HOME, LISBON, PORTO, apply, filled, rewrite, superseded

from infinimem.memory import Memory


@pytest.fixture
def memory(shell: Shell) -> Memory:
    """Receipt 5 withheld that 5, a pinned line, is superseded by 7."""
    memory = filled(shell.library)
    memory.undo()
    rewrite(memory, HOME, f"- <seq={LISBON},", f"- <seq={LISBON},pin=yes,")
    memory.library.adopt_edits()
    apply(memory, superseded(LISBON, PORTO))
    return memory


def test_what_waits_reads_as_a_diff(shell: Shell, memory: Memory) -> None:
    ran = shell("review")
    head, way, old, new = ran.out.splitlines()
    assert head == "5: withheld by receipt 5, 1 line"
    assert way.split(" ", 3)[2:][0] == str(LISBON)
    assert "→ archive/home, superseded by 7 (topics/home:" in way
    assert way.endswith("a person wrote or pinned it")
    assert (old, new) == ("    - I live in Lisbon.", "    + I moved to Porto.")
    assert "--approve 5" in ran.err
    (row,) = shell("review", "--json").json["rows"]
    assert (row["item"], row["seq"], row["by"], row["code"], row["void"]) == ("5", 5, 7, "PROTECTED", "")


def test_void_is_shown_once(shell: Shell, memory: Memory) -> None:
    rewrite(memory, HOME, "I live in Lisbon.", "I live in Lisbon, mostly.")
    assert "void: line 5 was edited since" in shell("review").out
    assert shell("review").out == ""
