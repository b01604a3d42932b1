"""Global options, talk on stderr, errors as one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_runner import Shell


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    shell = Shell(tmp_path, monkeypatch)
    shell("init")
    return shell


def test_global_options_stand_before_or_after_the_command(shell: Shell, tmp_path: Path) -> None:
    other = str(tmp_path / "other")
    shell("init", other)
    before = shell("--json", "--library", other, "status").json
    assert before == shell("status", "--library", other, "--json").json
    assert before["library"] == other
    shell("-q", "status", "-v").failed(2, "choose one")
    shell("--wings").failed(2, "--wings")


def test_a_missing_key_is_told_and_nothing_is_recorded(shell: Shell) -> None:
    before = shell.tree()
    shell("--model", "gpt-x", "add", "I moved.").failed(1, "OPENAI_API_KEY")
    shell("--model", "gpt-x", "ask", "Where?").failed(1, "OPENAI_API_KEY")
    assert shell.tree() == before
    assert shell("--model", "gpt-x", "ls").code == 0


def test_an_embedder_is_named_like_a_model(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell("add", "I moved to Lisbon.", "-q")
    assert shell("retrieve", "Lisbon", "--embedder", "lexical").code == 0
    shell("--embedder", "word2vec", "ls").failed(2, "lexical, static, minilm, openai")
    monkeypatch.setenv("INFINIMEM_EMBEDDER", "word2vec")
    shell("ls").failed(2, "word2vec")
    assert shell("ls", "--embedder", "openai").code == 0, "connected to when it is needed"


def test_settings_that_cannot_be_used(shell: Shell) -> None:
    (shell.library / "infinimem.toml").write_text("[infini]\nfed = 1\n")
    shell("ls").failed(2, "fed")
    (shell.library / "infinimem.toml").write_text("format = 9\n")
    shell("ls").failed(1, "format 9")


def test_what_nobody_expected_is_one_line_too(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError("two\nlines")

    monkeypatch.setattr("infinimem.memory.open_memory", broken)
    shell("ls").failed(1, "unexpected ValueError: two lines")
    told = shell("ls", "-v")
    assert "Traceback" in told.err
    assert told.err.strip().splitlines()[-1].startswith("error: ")


def test_an_interrupted_command_leaves_quietly(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("infinimem.memory.open_memory", interrupted)
    ran = shell("ls")
    assert (ran.code, ran.out, ran.err) == (130, "", "")


def test_help_lists_the_global_options_apart(shell: Shell) -> None:
    shown = shell("add", "--help").out
    assert shown.index("--speaker") < shown.index("Global options:") < shown.index("--library")
