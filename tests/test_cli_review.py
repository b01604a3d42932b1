"""review on the command line, and the plans that consolidate --dry-run --keep leaves for it."""

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


def test_a_kept_plan_from_dry_run_to_receipt(shell: Shell) -> None:
    shell("init")
    shell("add", "My sister Ana is allergic to peanuts.", "--session", "s1")
    assert "kept" not in shell("consolidate", "--dry-run", "--json").json
    assert shell("review", "--json").json == {"rows": []}
    ran = shell("consolidate", "--dry-run", "--keep", "--json").json
    assert ran["kept"] == "p1"
    assert "peanuts" in ran["diff"]
    assert ran["receipt"] is None
    assert shell("status", "--json").json["plans_awaiting_review"] == 1
    assert "plans awaiting review\t1\n" in shell("status").out
    (row,) = shell("review", "--json").json["rows"]
    listed = shell("review").out.splitlines()
    assert listed[0] == "p1: a kept plan, 1 line"
    assert f"→ {row['now']} # {row['heading']}, moved" in listed[1]
    assert listed[2].strip() == "My sister Ana is allergic to peanuts."
    assert "0001-review" in shell("review", "--approve", "p1").out
    assert "peanuts" in (shell.library / f"{row['now']}.md").read_text()


def test_keep_needs_a_dry_run_and_something_to_do(shell: Shell) -> None:
    shell("init")
    shell("consolidate", "--keep").failed(2, "--dry-run")
    assert shell("consolidate", "--dry-run", "--keep", "--json").json["kept"] is None
    assert shell("review", "--json").json == {"rows": []}
