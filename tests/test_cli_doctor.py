"""doctor: what it prints for people, pipes and programs, its exit codes, and --fix."""

from __future__ import annotations

import pytest
from cli_runner import Shell

KEYS = {"level", "what", "where", "fix"}


@pytest.fixture
def library(shell: Shell) -> Shell:
    shell("init")
    shell("add", "I moved to Lisbon in March.", "--session", "s1")
    shell("consolidate")
    return shell


def write(shell: Shell, path: str, text: str) -> None:
    with (shell.library / path).open("a") as file:
        file.write(text)


def test_findings_come_errors_first_and_say_what_fix_would_do(library: Shell) -> None:
    write(library, "CURRENT.md", "- typed by hand\n- <seq=2> pasted\n- <seq= > broken\n")
    before = library.tree()
    ran = library("doctor")
    assert ran.code == 1
    rows = [line.split("\t") for line in ran.out.splitlines()]
    assert [row[0] for row in rows] == ["error", "error", "note"]
    assert all(len(row) == 4 for row in rows)
    assert [bool(row[3]) for row in rows] == [True, False, True]
    assert ran.err.splitlines() == [
        "2 errors, 1 note",
        "infinimem doctor --fix repairs 2 of them, and loses nothing",
    ]
    assert all(set(finding) == KEYS for finding in library("doctor", "--json").json["findings"])
    assert library.tree() == before


def test_fix_repairs_tells_and_is_done(library: Shell) -> None:
    write(library, "CURRENT.md", "- typed by hand\n- <seq=2> pasted\n- <seq= > broken\n")
    ran = library("doctor", "--fix", "--json")
    assert ran.code == 1  # what is broken is a person's to mend
    assert [item["fix"] for item in ran.json["fixed"]] == ["give all but one a new seq", "sign them"]
    assert [item["level"] for item in ran.json["findings"]] == ["error"]
    after = library.tree()
    again = library("doctor", "--fix")
    assert again.out.startswith("error\tCURRENT:")
    assert library.tree() == after
    assert "- <seq= > broken" in (library.library / "CURRENT.md").read_text()


@pytest.mark.sample(2)
@pytest.mark.parametrize("text", ["[infini]\nfeeed = 1\n", "format = 99\n", "<<<<<<< HEAD\n"])
def test_settings_that_cannot_be_used_are_a_finding(library: Shell, text: str) -> None:
    (library.library / "infinimem.toml").write_text(text)
    for option in ((), ("--fix",)):
        ran = library("doctor", "--json", *option)
        assert ran.code == 1
        (found,) = ran.json["findings"]
        assert (found["level"], found["where"]) == ("error", "infinimem.toml")
