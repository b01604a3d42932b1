"""Printing: a terminal, a pipe, JSON; characters that no stream takes; bars that come late."""

from __future__ import annotations

import io
import json
import logging

import pytest
from cli_runner import Shell

from infinimem.cli.app import COMMANDS
from infinimem.cli.output import Output, filtered_streams
from infinimem.log import log


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
    out.diff("--- a\n+++ b\n\x9b31m")
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
    monkeypatch.setattr("infinimem.operations.status.counts", lambda library: log.warning("a \x1b warning"))
    assert "a \\x1b warning\n" in shell("status").err
    assert "warning" not in shell("search", "x").err
    assert [type(handler) for handler in log.handlers] == [logging.NullHandler]
