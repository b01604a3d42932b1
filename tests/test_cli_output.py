"""Global options, printing on a terminal, in a pipe and as JSON, errors as one line."""

from __future__ import annotations

import io
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from cli_runner import Shell
from trusting import write_trusted

from infinimem.cli.app import COMMANDS
from infinimem.cli.output import Output, filtered_streams
from infinimem.errors import ModelUnavailable
from infinimem.log import log
from infinimem.memory import Memory


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Called in the test itself: pytest puts its own streams in place after the fixtures."""
    stream = Terminal()
    monkeypatch.setattr("sys.stdout", stream)
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    return stream


ROWS = [("a", 1, "one\ttwo\nthree"), ("b", "", "\x1b[2J\udcff")]


def test_a_pipe_gets_a_line_for_each_row(capsys: pytest.CaptureFixture[str]) -> None:
    with filtered_streams():
        Output().table(("x", "y", "z"), ROWS)
    assert capsys.readouterr().out == "a\t1\tone two three\nb\t\t\\udcff\n"


def test_a_terminal_gets_columns_and_no_controls(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = at_a_terminal(monkeypatch)
    out = Output()
    out.table(("x", "y", "z"), ROWS)
    out.line("\x1b]0;owned\x07 [bold]as it is[/bold]")
    out.line("+\x9b31m", "green")
    shown = terminal.getvalue()
    assert "\\x1b[2J" in shown
    assert "\\x1b]0;owned\\x07 [bold]as it is[/bold]" in shown
    assert "\\x9b31m" in shown
    assert "\x1b[2J" not in shown and "\x1b]0" not in shown and "\x9b" not in shown


def test_json_is_one_line_and_keeps_every_character(capsys: pytest.CaptureFixture[str]) -> None:
    out = Output(as_json=True)
    out.result({"text": "café\n\x1b\udcff"}, lambda: pytest.fail("not shown"))
    out.say("nothing")
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {"text": "café\n\x1b\udcff"}
    assert (captured.out.count("\n"), captured.err) == (1, "")


def test_talk_goes_to_stderr_unless_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    Output().say("hello")
    Output(quiet=True).say("nothing")
    assert capsys.readouterr() == ("", "hello\n")


def test_talk_cannot_steer_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with filtered_streams():
        Output().say("\x1b]0;owned\x07notes/a\u202e")
    assert capsys.readouterr().err == "\\x1b]0;owned\\x07notes/a\\u202e\n"


def test_a_terminal_shows_text_and_no_pictures_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = at_a_terminal(monkeypatch)
    Output().line("the :key: is at topics/house:100:")
    assert terminal.getvalue() == "the :key: is at topics/house:100:\n"


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("call", "code", "words"),
    [
        (["search", "x", "--library", "nowhere", "--json"], 1, "nowhere"),
        (["--json", "search", "--nope"], 2, "see: infinimem search --help"),
        (["serch", "--json"], 2, "serch"),
        (["history", "99", "--json"], 1, "no line"),
        (["add", "", "--json"], 2, "empty"),
        (["ask", "Where?", "--json", "--model", "gpt"], 1, "OPENAI_API_KEY"),
    ],
)
def test_with_json_a_failure_is_json_too(call: list[str], code: int, words: str, shell: Shell) -> None:
    shell("init")
    failed = shell(*call)
    assert (failed.code, failed.err) == (code, "")
    assert list(failed.json) == ["error"]
    assert words in failed.json["error"]
    assert shell("search", "--nope").err.startswith("error: ")
    assert shell("search", "--nope", "--", "--json").out == ""


def test_every_command_fails_in_json(shell: Shell) -> None:
    for command in COMMANDS.keys() - {"hook"}:  # that never fails
        failed = shell(command, "--json", "--no-such-option")
        assert (failed.code, failed.err) == (2, ""), command
        assert "--no-such-option" in failed.json["error"], command


def test_what_the_log_warns_of_is_told_on_stderr(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell("init")
    monkeypatch.setattr("infinimem.operations.doctor.counts", lambda library: log.warning("a \x1b warning"))
    assert "a \\x1b warning\n" in shell("status").err
    assert "warning" not in shell("search", "x").err
    assert [type(handler) for handler in log.handlers] == [logging.NullHandler]


# ── global options and failures ─────────────────────────────────────────────────────────────────


@pytest.fixture
def library(shell: Shell) -> Shell:
    shell("init")
    return shell


def test_global_options_stand_before_or_after_the_command(library: Shell, tmp_path: Path) -> None:
    other = str(tmp_path / "other")
    library("init", other)
    before = library("--json", "--library", other, "status").json
    assert before == library("status", "--library", other, "--json").json
    assert before["library"] == other
    library("-q", "status", "-v").failed(2, "choose one")
    library("--wings").failed(2, "--wings")


def test_a_missing_key_is_told_and_nothing_is_recorded(library: Shell) -> None:
    before = library.tree()
    library("--model", "gpt-x", "add", "I moved.").failed(1, "OPENAI_API_KEY")
    library("--model", "gpt-x", "ask", "Where?").failed(1, "OPENAI_API_KEY")
    assert library.tree() == before
    assert library("--model", "gpt-x", "ls").code == 0


def test_an_embedder_is_named_like_a_model(library: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    library("add", "I moved to Lisbon.", "-q")
    assert library("retrieve", "Lisbon", "--embedder", "lexical").code == 0
    library("--embedder", "word2vec", "ls").failed(2, "lexical, static, minilm, openai")
    monkeypatch.setenv("INFINIMEM_EMBEDDER", "word2vec")
    library("ls").failed(2, "word2vec")
    assert library("ls", "--embedder", "openai").code == 0, "connected to when it is needed"


def test_settings_that_cannot_be_used(library: Shell) -> None:
    (library.library / "infinimem.toml").write_text("[infini]\nfed = 1\n")
    library("ls").failed(2, "fed")
    (library.library / "infinimem.toml").write_text("format = 9\n")
    library("ls").failed(1, "format 9")


def test_what_nobody_expected_is_one_line_too(library: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError("two\nlines")

    monkeypatch.setattr("infinimem.memory.open_memory", broken)
    library("ls").failed(1, "unexpected ValueError: two lines")
    told = library("ls", "-v")
    assert "Traceback" in told.err
    assert told.err.strip().splitlines()[-1].startswith("error: ")


def test_an_interrupted_command_leaves_quietly(library: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("infinimem.memory.open_memory", interrupted)
    ran = library("ls")
    assert (ran.code, ran.out, ran.err) == (130, "", "")


def test_a_dead_endpoint_strands_nothing(library: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    write_trusted(library.library, 'format = 1\n[llm]\nmodel = "m"\nretries = 0\ntimeout = 5.0\n')
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    library("-q", "add", "I moved to Lisbon in March.").failed(1, "recorded")
    assert library("status", "--json").json["pending"] == 1
    assert library("--model", "offline", "consolidate", "--json").json["receipt"]
    assert library("status", "--json").json["pending"] == 0
    assert "Lisbon" in library("grep", "Lisbon").out


def test_a_cap_holds_as_long_as_it_serves(library: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mcp")
    served: list[Memory] = []

    def serve(serving: Any) -> None:
        (memory,) = served
        with pytest.raises(ModelUnavailable, match="cap is spent"):
            memory.ask("Where?", "hybrid")

    monkeypatch.setattr(
        "infinimem.mcp.server.make_server", lambda memory, trust, project: served.append(memory)
    )
    monkeypatch.setattr("infinimem.mcp.server.serve_stdio", serve)
    assert library("mcp", "--max-tokens", "0").code == 0
    assert len(served) == 1


def test_remote_alone_is_refused(shell: Shell) -> None:
    shell("mcp", "--remote").failed(2, "give both")
