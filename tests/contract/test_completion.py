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

SAMPLE = Path(__file__).parents[2] / "sample_library"


def offered(words: list[str], begun: str) -> list[str]:
    """What is offered behind these words."""
    chosen = get_completion_class("zsh")
    assert chosen is not None
    found = chosen(app, {}, "infinimem", "_INFINIMEM_COMPLETE").get_completions(words, begun)
    return [item.value for item in found]


def test_each_shell_gets_a_script(shell: Shell) -> None:
    """bash, zsh and fish have one, any other is wrong usage."""
    for name in ("bash", "zsh", "fish"):
        ran = shell("completion", name)
        assert (ran.code, f"_INFINIMEM_COMPLETE={name}_complete" in ran.out) == (0, True)
        assert shell("--json", "completion", name).json == {
            "shell": name,
            "script": ran.out.removesuffix("\n"),
        }
    shell("completion", "tcsh").failed(2, "'tcsh' is not one of")


def test_what_fits_is_offered(shell: Shell) -> None:
    """Commands, options and values are offered, and ids of documents where one is wanted."""
    library = ["--library", str(SAMPLE)]
    for words, begun, wanted in (
        ([], "co", ["compare", "completion", "config", "connect", "consolidate"]),
        (["search"], "--sc", ["--scope"]),
        (["search", "--scope"], "ar", ["archive"]),
        (["search", "cat", "food"], "--sc", ["--scope"]),
        ([*library, "read"], "topics/ho", ["topics/home", "topics/home-network"]),
        (["read", *library], "topics/ho", ["topics/home", "topics/home-network"]),
        ([*library, "blame"], "CUR", ["CURRENT"]),
        ([*library, "grep", "cat", "--doc"], "archive/pe", ["archive/pepper"]),
        ([*library, "search"], "topics/", []),
        (["--library", "nowhere", "read"], "", []),
        (["read"], "", []),
    ):
        assert offered(words, begun) == wanted, (words, begun)
    (shell.library / "til").mkdir()
    (shell.library / "til/tea.md").touch()
    assert offered(["read"], "ti") == ["til/tea"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_a_real_bash_completes(tmp_path: Path) -> None:
    """A name with commands in it is a word, and runs nothing."""
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
