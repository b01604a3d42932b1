"""What a person types and sees: words without quotes, what was meant, examples, lines in 80 columns."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from datetime import date
from pathlib import Path

import pytest
from cases import each
from cli_runner import Shell, at_a_terminal
from click.testing import CliRunner

from infinimem.cli.app import app
from infinimem.cli.options import COMMANDS, TABLES
from infinimem.cli.output import ago
from infinimem.user_folders import user_folder

SAMPLE = Path(__file__).parents[1] / "sample_library"
ESCAPE = re.compile(r"\x1b\[[\d;]*m")
COLUMNS = 80
LOCOMO = [
    {
        "sample_id": "c1",
        "qa": [{"question": "What did Ana buy?", "answer": "a kite", "evidence": ["D1:1"], "category": 4}],
        "conversation": {
            "speaker_a": "Ana",
            "speaker_b": "Ben",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ana", "dia_id": "D1:1", "text": "I bought a kite."},
                {"speaker": "Ben", "dia_id": "D1:2", "text": "Lovely."},
            ],
        },
    }
]


@pytest.fixture
def sample(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A copy of the sample library, which is the current folder."""
    shutil.copytree(SAMPLE, shell.library, dirs_exist_ok=True)
    monkeypatch.setenv("INFINIMEM_TRUST", str(shell.library))
    return shell


# ── words ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.sample(2)
@pytest.mark.parametrize("command", ["search", "grep", "ask", "retrieve", "recall", "compare"])
def test_words_need_no_quotes(sample: Shell, command: str) -> None:
    told, quoted = (sample(command, *words) for words in (["rabies", "shot"], ["rabies shot"]))
    assert told.code == quoted.code == 0
    if command == "compare":  # tells how long it took
        assert told.out.splitlines()[:5] == quoted.out.splitlines()[:5]
    else:
        assert told == quoted
    assert command == "recall" or "rabies shot" in told.out  # two words deserve no line unasked


def test_nor_does_a_message(shell: Shell) -> None:
    shell("init")
    assert shell("add", "I", "moved", "to", "--session", "s", "Lisbon", "--json").json["entries"]
    assert "I moved to Lisbon" in shell("search", "Lisbon").out


# ── what was meant ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("line", "code", "meant"),
    [
        ("serch cat", 2, "no command is called 'serch'; did you mean 'search'?"),
        ("search cat --scop all", 2, "no such option '--scop'; did you mean '--scope'?"),
        ("--libary x ls", 2, "no such option '--libary'; did you mean '--library'?"),
        ("read topics/hme", 1, "no document is called 'topics/hme'; near it: topics/home"),
        ("ls --strategy almem", 2, "recmem, xmemory; did you mean 'allmem'?"),
        ("ls --embedder lexicl", 2, "; did you mean 'lexical'?"),
        ("fly", 2, "no command is called 'fly'; see: infinimem --help"),
    ],
)
def test_a_slip_is_told_with_what_was_meant(sample: Shell, line: str, code: int, meant: str) -> None:
    sample(*line.split()).failed(code, meant)


# ── help ────────────────────────────────────────────────────────────────────────────────────────


@each("command", sorted(COMMANDS))
def test_help_has_a_summary_and_examples(command: str) -> None:
    shown = CliRunner().invoke(app, [command, "--help"], terminal_width=COLUMNS).output
    assert f"  {COMMANDS[command]['summary']}\n" in shown
    assert COMMANDS[command]["examples"]
    for example in COMMANDS[command]["examples"]:
        assert f"\n  infinimem {example}\n" in shown
        assert len(example) < COLUMNS - len("  infinimem ")


def test_help_tells_defaults_and_lists_every_command() -> None:
    assert "[default: 10;" in CliRunner().invoke(app, ["search", "--help"]).output
    shown = CliRunner().invoke(app, ["--help"], terminal_width=COLUMNS).output
    assert all(f"\n  {name:<11}  {listed['summary']}\n" in shown for name, listed in COMMANDS.items())
    assert all(f"\n  infinimem {step}\n" in shown for step in TABLES["first_steps"])
    shown = CliRunner().invoke(app, ["add", "--help"]).output
    assert shown.index("--speaker") < shown.index("Global options:") < shown.index("--library")


def test_the_first_steps_lead_somewhere(shell: Shell) -> None:
    told = [shell(*shlex.split(step)) for step in TABLES["first_steps"]]
    assert [step.code for step in told] == [0] * len(told)
    assert all("I moved to Lisbon in March" in step.out for step in told[1:])


@pytest.mark.sample(2)
@pytest.mark.parametrize("example", [example for one in COMMANDS.values() for example in one["examples"]])
def test_an_example_works(sample: Shell, monkeypatch: pytest.MonkeyPatch, example: str) -> None:
    for folder in ("notes", "project"):
        (sample.home / folder).mkdir()
    (sample.home / "notes/tea.md").write_text("# Tea\n\n- Green tea at 80 degrees\n")
    (sample.library / "conversations.json").write_text('[{"role": "user", "content": "I play chess."}]')
    (sample.library / "locomo10.json").write_text(json.dumps(LOCOMO))
    words = shlex.split(example)
    for at, word in enumerate(words):
        if word.startswith("~/"):  # a shell does this
            words[at] = str(sample.home / word[2:])
    if words[0] == "graph":
        assert sample("rebuild", "--strategy", "allmem").code == 0
        assert sample("consolidate", "--strategy", "allmem").code == 0
    monkeypatch.setattr("infinimem.watch.watch", lambda memory: ())  # these three run until they are ended
    if words[0] == "tasks":
        monkeypatch.setenv("INFINIMEM_MODEL", "agent")
        assert sample("add", "I moved to Lisbon.").code == sample("tasks", "next").code == 0
        (sample.library / "reply.json").write_text('{"entries": []}')
        words = ["1" if word == "3" else word for word in words]  # the one that there is
    (sample.home / ".codex").mkdir()
    if words[0] == "web":
        pytest.importorskip("starlette")
        monkeypatch.setattr("infinimem.serving.http.serve", lambda *_: None)
        monkeypatch.setattr("click.launch", lambda url: 0)
    if words[0] == "mcp":
        pytest.importorskip("mcp")
        monkeypatch.setattr("infinimem.serving.http.serve", lambda *_: None)
        monkeypatch.setattr("infinimem.mcp.server.serve_stdio", lambda *_: None)
    event = json.dumps({"hook_event_name": "SessionStart", "cwd": str(sample.library)})
    told = sample(*words, input=event if words[0] == "hook" else "")
    assert told.code == 0, (told.out, told.err)
    assert "nothing is found" not in told.err
    if words[0] in ("search", "grep", "read", "ask", "history", "blame", "log"):
        assert told.out


# ── on a terminal ───────────────────────────────────────────────────────────────────────────────


def test_matches_are_marked_on_a_terminal_alone(sample: Shell) -> None:
    for words in (["grep", "rab.es"], ["search", "vaccinations", "-k", "3"]):
        shown = at_a_terminal(*words)
        marked = re.findall(r"\x1b\[1;31m(.*?)\x1b\[0m", shown, re.DOTALL)
        assert marked and {part.lower() for part in marked} <= {"rabies", "vaccination", "vaccinated"}
        assert "\x1b" not in sample(*words).out
        assert "\x1b[" not in at_a_terminal(*words, NO_COLOR="1")
        assert "\x1b[1;31m" in at_a_terminal(*words, NO_COLOR="")


def test_signatures_are_shown_where_they_are_asked_for(sample: Shell) -> None:
    for words in (
        ["read", "topics/home"],
        ["search", "Ghent"],
        ["grep", "Ghent"],
        ["consolidate", "--dry-run"],
    ):
        assert "<seq=" not in at_a_terminal(*words)
        assert "<seq=" in at_a_terminal(*words, "--raw")
    assert re.search(r"^\+\[278\] One real cortado", sample_diff(sample), re.MULTILINE)
    assert "+- <seq=278," in sample("consolidate", "--dry-run").out, "a pipe is given the diff as it is"
    raw = sample("read", "topics/home", "--raw").out.splitlines()
    lines = (sample.library / "topics/home.md").read_text().splitlines()
    assert raw == [f"{number} {line}" for number, line in enumerate(lines, 1)]


def sample_diff(sample: Shell) -> str:
    return ESCAPE.sub("", at_a_terminal("consolidate", "--dry-run"))


@each(
    ("time", "told"),
    [
        ("2025-11-23T10:00:00Z", "2025-11-23, today"),
        ("2025-11-24", "2025-11-24, today"),  # there it is tomorrow
        ("2025-11-22T23:59:00", "2025-11-22, yesterday"),
        ("2025-11-10", "2025-11-10, 13 days ago"),
        ("2025-10-19", "2025-10-19, 5 weeks ago"),
        ("2025-06-08", "2025-06-08, 5 months ago"),
        ("2023-11-25", "2023-11-25, 24 months ago"),
        ("1985-02-01", "1985-02-01, 40 years ago"),
        ("2026-04-12", "2026-04-12, in 4 months"),
        ("2025-11", "2025-11"),
        ("", ""),
    ],
)
def test_a_day_is_told_with_how_long_ago_it_is(time: str, told: str) -> None:
    assert ago(time, date(2025, 11, 23)) == told


def test_days_are_told_so_on_a_terminal_alone(sample: Shell) -> None:
    for words in (["log"], ["read", "topics/home"], ["search", "Ghent"], ["history", "195"], ["status"]):
        told = re.compile(r"2025-\d\d-\d\d, \d+ (days|weeks|months|years) ago")
        assert told.search(ESCAPE.sub("", at_a_terminal(*words)))
        assert not told.search(sample(*words).out)


def test_that_no_model_is_asked_is_told_a_person_once_a_day(
    sample: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(sample.home / "cache"))  # other tests have asked before

    def said(*words: str) -> bool:
        return "offline: no model is configured" in at_a_terminal(*words)

    assert not said("ask", "where does Nora live", "--json")
    assert not said("ask", "where does Nora live", "-q")
    assert not said("ask", "where does Nora live", "--model", "offline")
    assert said("ask", "where does Nora live")
    assert not said("ask", "where does Nora live")
    assert not said("add", "I moved to Lisbon.")
    root = user_folder("cache")
    assert root
    os.utime(root / "offline", (0, 0))
    assert sample("ask", "where does Nora live").err == "", "nothing in a pipe"
    assert said("ask", "where does Nora live")
