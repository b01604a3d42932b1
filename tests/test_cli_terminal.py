"""No control character, bidi control or markup of a library, a model or a caller reaches the output of any
command, in a pipe or on a terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from cases import each
from cli_runner import FOREIGN, arrived
from fake_server import chat, refuse, serve
from hostile_library import FILE, LISBON, MARKUP, NAME, POISON, PORTO, hostile_library
from hypothesis import given
from hypothesis import strategies as st

from infinimem.cli.app import app
from infinimem.cli.output import as_json, printable
from infinimem.watch import DocumentChange

OWN = re.compile(r"\x1b\[(?!38;5;201m|5;7H)[\d;]*[mAK]|\x1b\[\?25[lh]|\r")
"""What rich sends to a terminal for this program: styles, and the lines of a progress bar."""

ESCAPED = re.compile(r"(\\+(x|u00)1b\[(38;5;201m|5;7H)){2}\\+(x|u00)1b\]0;owned\\+(x|u00)07")
"""A part of POISON as it should be shown, in text and in JSON."""
ENGLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"


def raw(text: str) -> set[str]:
    """The characters in it that no terminal should be sent."""
    found = {char for char in text if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
    return found - {"\n", "\t"}


@dataclass
class Printed:
    """What arrived at the other end of stdout and stderr."""

    text: str
    code: int

    @property
    def plain(self) -> str:
        """Without styles and white space: a table on a terminal breaks lines anywhere."""
        return "".join(OWN.sub("", self.text).split())

    def check(self, what: object) -> None:
        assert not raw(OWN.sub("", self.text)), (what, self.text)


Run = Callable[..., Printed]


@pytest.fixture(params=["pipe", "terminal"])
def run(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `infinimem`, its stdout and stderr on a real pipe or terminal."""
    for name in FOREIGN:
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": str(tmp_path), "TERM": "xterm-256color", "COLUMNS": "200"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    connect = os.pipe if request.param == "pipe" else pty.openpty

    return lambda *args, given="": Printed(*arrived(args, connect(), given))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of each strategy, files to bring in, settings that are none."""
    folder = tmp_path_factory.mktemp("made")
    hostile_library(folder / "notes" / NAME)
    hostile_library(folder / "units" / NAME, "allmem")
    (folder / "broken").mkdir()
    (folder / "broken" / "infinimem.toml").write_text(f"[read]\n{json.dumps(POISON)} = 1\n")
    (folder / "in" / NAME).mkdir(parents=True)
    (folder / "in" / NAME / f"{NAME}.md").write_text(f"# {FILE}\n\nI play {FILE}\n")
    (folder / "in" / NAME / f"{NAME}.bin").write_bytes(b"\x00\xff\x1b]0;x\x07")
    (folder / "in" / f"{NAME}.json").write_text(json.dumps([{"role": POISON, "content": POISON}]))
    (folder / "in" / "bad.json").write_text(f'{{"messages": [{{"role": "{FILE}')
    return folder


NOTES: dict[str, list[list[str]]] = {
    "ls": [[], ["--scope", "all"]],
    "read": [
        ["topics/home"],
        ["topics/home", "--raw"],
        ["notes [red]/[bold]Lisbon $(touch pwned)"],
        [POISON],
    ],
    "search": [["Lisbon"], ["Lisbon", "--raw"], [POISON, POISON], ["Lisbon", "--as-of", POISON]],
    "grep": [["isbo", "-C", "2"], ["isbo", "--raw"], ["(" + POISON, POISON]],
    "retrieve": [["Lisbon"], [POISON]],
    "ask": [["Where do I live?", "-v"], ["Where do I live?", "--reader", "bm25"]],
    "compare": [["Where do I live?"], ["Where do I live?", "-v"], [POISON]],
    "history": [[str(PORTO)], [str(LISBON)]],
    "blame": [["topics/home"], [f"{POISON}:1"]],
    "log": [[], ["--since", "7d"], ["--since", POISON]],
    "diff": [[], ["7d.."], [POISON]],
    "status": [[]],
    "doctor": [[], ["--fix"]],
    "lint": [[]],
    "config": [[], ["--model", POISON]],
    "trust": [[POISON], [], ["--list"]],
    "graph": [[]],
    "rename": [["note", POISON]],
    "completion": [["bash"], [POISON]],
    "add": [
        [f"I sing {POISON}", "--speaker", POISON, "--session", POISON, "--key", POISON],
        ["I sing.", "--time", POISON],
        [f"I whistle {POISON}", "--speaker", POISON, "--session", "later", "--model", "agent"],
    ],
    "tasks": [["--model", "agent"], ["next", "--model", "agent"], ["next", POISON], ["redo", POISON]],
    "import": [["../../in/" + NAME], [f"../../in/{NAME}.json"], ["../../in/bad.json"], [POISON]],
    "consolidate": [["--dry-run"], ["--dry-run", "--raw"], []],
    "review": [[], ["--approve", POISON]],
    "undo": [[], [POISON]],
    "rebuild": [[]],
    "forget": [["--match", "Lisbon", "--dry-run"], ["--match", "Lisbon", "--yes"], ["--seq", POISON]],
    "hook": [["SessionStart"], [POISON]],
    "recall": [["Lisbon"], [POISON], []],
    "web": [["--export", "../web"], ["--export", f"../{NAME} web"], ["--port", POISON]],
    "fleet": [["ask", POISON, POISON], [POISON]],
    "connect": [[POISON], []],
    "init": [[f"../{NAME}"], []],
    "bench": [["locomo", "--data", f"{POISON}.json"], ["locomo", "--data", "../../in/bad.json"]],
}
"""Calls of each command on the library of notes, in this order: those that change it stand last."""
ELSEWHERE = {"demo", "watch", "mcp"}
"""Commands with a test of their own, below."""


def test_every_command_is_tried() -> None:
    assert {*NOTES} | ELSEWHERE == {*app.list_commands(click.Context(app))}


@pytest.mark.sample(2)
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_no_command_prints_what_steers_a_terminal(
    run: Run, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: tuple[str, ...]
) -> None:
    library = shutil.copytree(made / "notes", tmp_path / "notes") / NAME
    shutil.copytree(made / "in", tmp_path / "in")
    monkeypatch.chdir(library)
    shown = {}
    for command, calls in NOTES.items():
        for call in calls:
            printed = run(command, *call, *form)
            printed.check([command, *call])
            shown[command] = shown.get(command, "") + printed.plain
            if form and command != "hook" and printed.text[0] == "{":
                json.loads(printed.text)
    for command in (
        "retrieve",
        "ask",
        "compare",
        "history",
        "blame",
        "read",
        "grep",
        "forget",
        "consolidate",
        "doctor",
    ):
        assert ESCAPED.search(shown[command]), command
        assert command == "doctor" or "".join(MARKUP.split()) in shown[command], command


@pytest.mark.sample(2)
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_nor_any_error_of_any_command(run: Run, tmp_path: Path, made: Path, form: tuple[str, ...]) -> None:
    for command in app.list_commands(click.Context(app)):
        for call in ([f"--{POISON}"], ["--library", str(tmp_path / POISON), "-h"]):
            run(command, *call, *form).check([command, *call])
    run(POISON).check("a command that is none")
    for command in ("status", "doctor", "ls", "watch", "mcp"):
        for library in (tmp_path / POISON, made / "broken"):
            printed = run(command, "--library", str(library), *form, "-v")
            printed.check([command, library])
            assert printed.code in (1, 2)


def test_nor_units(run: Run, made: Path) -> None:
    library = ["--library", str(made / "units" / NAME)]
    for call in (["graph"], ["graph", POISON]):
        run(*library, *call).check(call)
    drawn = run(*library, "-q", "graph", "--json")
    drawn.check("graph")
    assert json.loads(drawn.text)["root"] == "u-000002"


def test_nor_what_a_model_or_its_server_says(run: Run, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    library = ["--library", str(made / "notes" / NAME)]
    for answer in (chat(POISON), refuse(400, POISON)):
        with serve(answer) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            asked = run(*library, "--model", f"m {POISON}", "ask", "Where?", "--reader", "bm25", "-v")
            asked.check(answer)
            assert ESCAPED.search(asked.plain), answer
    with serve(chat(POISON)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        run("--model", "m", "demo").check("demo")


def foreign(body: str, **env: str) -> Printed:
    """A command with this body, in a process of its own: pytest catches warnings and logs in this one."""
    code = f"""
        import click, logging, sys, warnings
        from infinimem.cli import app, main
        POISON = {POISON!r}
        def foreign():
{textwrap.indent(textwrap.dedent(body), " " * 12)}
        app.app.get_command = lambda *_: click.command(foreign)
        sys.argv = ["infinimem", "-v", "foreign"]
        main()
    """
    line = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(line, capture_output=True, text=True, env={**os.environ, **env}, check=False)
    return Printed(done.stdout + done.stderr, done.returncode)


@each("encoding", ["utf-8", "ascii"])
def test_whoever_prints_goes_through_the_filter(encoding: str) -> None:
    printed = foreign(
        """
        print(POISON, file=sys.stderr)
        sys.stdout.writelines([POISON])
        sys.stdout.buffer.write(POISON.encode())
        click.echo(POISON.encode())
        click.secho(POISON)
        warnings.warn(POISON)
        logging.getLogger("infinimem").warning(POISON)
        raise RuntimeError(POISON)  # a traceback, and a line
        """,
        PYTHONIOENCODING=encoding,
    )
    printed.check(encoding)
    assert (printed.code, len(ESCAPED.findall(printed.text))) == (1, 9), printed.text


@pytest.mark.sample(2)
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_what_runs_until_it_is_ended(run: Run, made: Path, form: tuple[str, ...]) -> None:
    """The messages of watch and of the server as they start, and what watch tells."""
    pytest.importorskip("mcp")
    library = ["--library", str(made / "notes" / NAME), *form]
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    changes = DocumentChange("created", POISON), DocumentChange("renamed", POISON, was=POISON)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("infinimem.watch.watch", lambda memory: changes)
        patch.setattr("infinimem.serving.http.serve", lambda *_: None)
        try:
            watched = run(*library, "watch")
        finally:
            signal.signal(signal.SIGINT, before[0])
            signal.signal(signal.SIGTERM, before[1])
        served = run(*library, "mcp", "--http", "127.0.0.1:0")
    for printed in (watched, served):
        printed.check(form)
        assert printed.code == 0
        told = [line for line in printed.text.splitlines() if not line.startswith("passed over: ")]
        assert not form or all(json.loads(line) for line in told)
    assert len(ESCAPED.findall(watched.plain)) >= 3


@given(st.text(st.sampled_from(POISON + FILE + "é👩\u200d\ufe0f\U0001f3f4\U000e0067\U000e007f\udcff\n\t")))
def test_the_filter_lets_nothing_by_and_changes_its_own_output_no_more(text: str) -> None:
    shown = printable(text)
    assert printable(shown) == shown
    shown = shown.replace(ENGLAND, "")
    for at, char in enumerate(shown):
        beside = shown[max(0, at - 1) : at] + shown[at + 1 : at + 2]
        joins = char in "\u200d\xad" and any(near in "é👩\U0001f3f4" for near in beside)
        assert joins or not raw(char)
    assert json.loads(as_json({"x": text})) == {"x": text}
    assert printable(as_json({"x": text})) == as_json({"x": text})


@each(
    "text",
    ["👩\u200d👧 ❤\ufe0f 🏳\ufe0f\u200d🌈", "می\u200cخواهم", ENGLAND, "a\tb\nc", "café\u0301 中文 עברית"],
)
def test_scripts_and_emoji_are_shown_as_they_are(text: str) -> None:
    assert printable(text) == text


@each(
    "text", ["a\u200cb", "👩\u200d\u200d\u200c\u200d", "🏴\U000e0067\U000e0067", "x\ufe0f\ufe00", "\u200eא"]
)
def test_what_only_hides_is_not(text: str) -> None:
    assert len(printable(text)) > len(text)
