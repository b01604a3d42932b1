"""What a library that nobody trusted may put on the screen by the values of its settings."""

from __future__ import annotations

import json
import os
import pty
from pathlib import Path

import pytest
from cli_runner import Shell, arrived

EVIL = "https://evil.example/v1"
FAKE = "  llm.base_url = http://127.0.0.1:11434/v1: what is said, and OPENAI_API_KEY, go to 127.0.0.1:11434"


def plant(shell: Shell, model: str, base_url: str = EVIL) -> Path:
    # JSON strings are TOML strings but for what they escape as surrogates
    text = f"[llm]\nmodel = {json.dumps(model)}\nbase_url = {json.dumps(base_url)}\n"
    (shell.library / "infinimem.toml").write_text(text)
    return shell.library


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "filler",
    ["\n" * 60, "\r", "\x1b[2J\x1b[H", "\u2028", "\x85\x0b\x0c", " " * 4000, "\u3000" * 66, "\u3164" * 66],
    ids=["newlines", "return", "screen", "separator", "breaks", "blanks", "wide blanks", "fillers"],
)
def test_each_setting_is_one_line_wherever_it_is_printed(shell: Shell, filler: str) -> None:
    """No value of a setting can look like another setting, a host or a question of the program."""
    plant(shell, f"m{filler}{FAKE}{filler}")
    for command in (("trust",), ("config",), ("doctor",), ("status",), ("search", "x")):
        ran = shell(*command)
        lines = (ran.out + ran.err).splitlines()
        assert all(len(line) < 400 for line in lines), command
        assert not [line for line in lines if line.strip().startswith(FAKE.strip()[:20])], command
        assert filler not in ran.out + ran.err, command
    rows = [line.strip() for line in shell("trust").out.splitlines()]
    assert [row.split(" = ")[0] for row in rows[1:3]] == ["llm.model", "llm.base_url"]
    assert len(rows) == 3 and rows[2].endswith("go to evil.example")


def test_the_question_stands_below_the_real_host(shell: Shell) -> None:
    """At a terminal, what is asked about is the whole of what is shown."""
    plant(shell, "\n" * 60 + FAKE + "\n" * 60)
    shown, _ = arrived(("trust",), pty.openpty())
    assert shown.count("\n") < 12 and "go to evil.example" in shown
    assert "\\x0a" in shown or "\\u000a" in shown


def test_the_end_of_a_long_host_is_seen(shell: Shell) -> None:
    """A host tells by its end whose it is: what is cut is cut from the middle."""
    plant(shell, "m", f"https://api.openai.com.{'a' * 900}.evil.example/v1")
    assert "evil.example" in shell("trust").out.splitlines()[-1].rsplit("go to", 1)[1]


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "line", ["llm = 'V'", "[llm]\ntimeout = 'V'", "strategy = 'V'", "'V' = 1", "[llm]\n'V' = 1"]
)
def test_a_wrong_value_is_one_short_line_of_error(shell: Shell, line: str) -> None:
    """An error quotes a value on one line, cut at a length."""
    value = "m" + "\\n" * 60 + FAKE + "x" * 5000
    (shell.library / "infinimem.toml").write_text(line.replace("'V'", f'"{value}"') + "\n")
    ran = shell("trust")
    ran.failed(2, "infinimem.toml")
    assert len(ran.err) < 1000 + len(str(shell.library))


def test_a_key_in_an_address_is_not_printed(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a password nor a query of a base_url stands in any output."""
    root = plant(shell, "m", "https://host.example/v1?api-key=sk-4711secret#sk-4711secret")
    with (root / "infinimem.toml").open("a") as settings:
        settings.write("retries = 0\n")
    for command in (
        ("trust",),
        ("config",),
        ("config", "--json"),
        ("doctor",),
        ("trust", "--yes", "--json"),
        ("config",),
    ):
        ran = shell(*command)
        assert "sk-4711" not in ran.out + ran.err, command
    assert "https://host.example/v1" in shell("config").out
    monkeypatch.setenv("OPENAI_BASE_URL", "http://u:sk-4711secret@127.0.0.1:9/v1?api-key=sk-4711secret")
    for command in (("config",), ("add", "I moved to Lisbon.", "--model", "m")):
        ran = shell(*command)
        assert "sk-4711" not in ran.out + ran.err, command
    assert os.environ["OPENAI_BASE_URL"]


# ── addresses ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "host", ["0.0.0.0", "[::]", "[::ffff:0.0.0.0]", "[::ffff:0:0]", "[0:0:0:0:0:FFFF:0:0]"]
)
@pytest.mark.parametrize("remote", [(), ("--remote",)])
def test_no_wildcard_is_served_however_it_is_written(
    shell: Shell, host: str, remote: tuple[str, ...]
) -> None:
    """`mcp --http` names one address: what stands for all of them is refused in every form."""
    pytest.importorskip("mcp", reason="infinimem[mcp] is not installed")
    assert shell("init").code == 0
    shell("mcp", "--http", f"{host}:0", *remote).failed(2, "stands for every address")


def test_a_mapped_address_of_another_machine_needs_remote(shell: Shell) -> None:
    """An IPv4 address in IPv6's clothes is held against the same rule."""
    pytest.importorskip("mcp", reason="infinimem[mcp] is not installed")
    assert shell("init").code == 0
    shell("mcp", "--http", "[::ffff:192.0.2.1]:0").failed(2, "open to other machines")


@pytest.mark.parametrize(
    "url", ["s3://bucket/../x", "s3://bucket/./x", "s3://bucket/x/..", "s3://bucket/x/../", "s3://b/../x"]
)
def test_a_place_of_a_fleet_with_dots_is_one_line(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """An address of an object store that leads out of its prefix is refused as what it is."""
    pytest.importorskip("obstore", reason="infinimem[fleet] is not installed")
    monkeypatch.setenv("INFINIMEM_FLEET", url)
    monkeypatch.setenv("INFINIMEM_FLEET_DATABASE", "postgresql://127.0.0.1:9/none")
    ran = shell("fleet", "status")
    ran.failed(2, "is no address of a fleet")
    assert "unexpected" not in ran.err
