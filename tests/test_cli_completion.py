"""Completing in a shell: the script of each shell, and what a real bash offers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runner import Shell
from click.shell_completion import get_completion_class

from infinimem.cli.app import app

SAMPLE = Path(__file__).parents[1] / "sample_library"


def offered(words: list[str], begun: str) -> list[str]:
    """What is offered behind these words."""
    chosen = get_completion_class("zsh")
    assert chosen is not None
    found = chosen(app, {}, "infinimem", "_INFINIMEM_COMPLETE").get_completions(words, begun)
    return [item.value for item in found]


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell(shell: Shell, name: str) -> None:
    ran = shell("completion", name)
    assert ran.code == 0
    assert f"_INFINIMEM_COMPLETE={name}_complete" in ran.out
    assert shell("--json", "completion", name).json == {"shell": name, "script": ran.out.removesuffix("\n")}


def test_commands_and_options_are_offered(shell: Shell) -> None:
    assert offered([], "co") == ["compare", "completion", "config", "consolidate"]
    assert offered(["search"], "--sc") == ["--scope"]
    assert offered(["search", "--scope"], "ar") == ["archive"]
    for command in ("search", "grep", "read", "consolidate"):
        assert offered([command], "--ra") == ["--raw"]
    assert offered(["search", "cat", "food"], "--sc") == ["--scope"]


def test_ids_of_documents_are_offered_where_one_is_wanted(shell: Shell) -> None:
    library = ["--library", str(SAMPLE)]
    assert offered([*library, "read"], "topics/ho") == ["topics/home", "topics/home-network"]
    assert offered(["read", *library], "topics/ho") == ["topics/home", "topics/home-network"]
    assert offered([*library, "blame"], "CUR") == ["CURRENT"]
    assert offered([*library, "grep", "cat", "--doc"], "archive/pe") == ["archive/pepper"]
    assert offered([*library, "search"], "topics/") == []


def test_where_there_is_no_library_nothing_is_offered(shell: Shell) -> None:
    assert offered(["--library", "nowhere", "read"], "") == []
    assert offered(["read"], "") == []


def test_of_the_folder_of_notes_that_is_used_instead_documents_are_offered(shell: Shell) -> None:
    (shell.library / "til").mkdir()
    (shell.library / "til/tea.md").touch()
    assert offered(["read"], "ti") == ["til/tea"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_a_real_bash_completes(tmp_path: Path) -> None:
    tool = tmp_path / "infinimem"
    tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m infinimem "$@"\n')
    tool.chmod(0o755)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "to do $(touch pwned) 'n' & more.md").write_text("- x\n")

    def completed(library: Path, begun: str) -> list[str]:
        """What bash would put on the line, read by bash as the words of a command."""
        script = f"""
            eval "$(infinimem completion bash)"
            COMP_WORDS=(infinimem read {begun}) COMP_CWORD=2
            _infinimem_completion infinimem
            eval "printf '%s\\n' ${{COMPREPLY[*]}}"
        """
        env = {
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "INFINIMEM_LIBRARY": str(library),
        }
        line = ["bash", "--norc", "-c", script]
        done = subprocess.run(line, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
        if "too old" in done.stderr or "4.4" in done.stderr:
            pytest.skip("this bash is too old for completion")
        assert not done.stderr
        return done.stdout.splitlines()

    assert completed(SAMPLE, "topics/ho") == ["topics/home", "topics/home-network"]
    assert completed(tmp_path / "notes", "to") == ["to do $(touch pwned) 'n' & more"]
    assert not (tmp_path / "pwned").exists()
