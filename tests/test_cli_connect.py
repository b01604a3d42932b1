"""connect: the files of agent programs, before and after; what else stands in them stays."""

from __future__ import annotations

import json
import stat
import tomllib
from pathlib import Path

import pytest
from cli_runner import Shell

FILES = {
    ".claude.json": '{\n\t"numStartups": 3, "mcpServers": {},\n\t"pi": 1.0e0\n}\n',
    ".codex/config.toml": '# mine\nmodel = "o4"  # best\n\n[mcp_servers.other]\ncommand = "x"\n',
    ".cursor/mcp.json": '{"mcpServers": {"a": {"command": "a"}}}',
    ".gemini/settings.json": "{}\n",
    ".config/opencode/opencode.json": '{\n  "$schema": "https://opencode.ai/config.json"\n}\n',
    ".config/Code/User/mcp.json": '{\r\n  "servers": {\r\n    "a": {"url": "http://h"}\r\n  }\r\n}\r\n',
}


@pytest.fixture
def home(shell: Shell) -> Path:
    for name, text in FILES.items():
        path = shell.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        path.chmod(0o600)
    (shell.home / ".claude").mkdir(exist_ok=True)
    (shell.home / ".config" / "Claude").mkdir()  # Claude Desktop, without a file
    return shell.home


def texts(home: Path) -> dict[str, bytes]:
    return {str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.is_file()}


def test_connect_and_its_undo_leave_the_same_bytes(shell: Shell, home: Path) -> None:
    before = texts(home)
    shown = shell("connect")
    assert (shown.code, texts(home)) == (0, before)  # in a pipe it only shows
    assert "+[mcp_servers.infinimem]" in shown.out
    assert shell("connect", "--yes").code == 0
    for name in FILES:
        data = (json.loads if name.endswith(".json") else tomllib.loads)((home / name).read_text())
        key = next(key for key in ("mcpServers", "mcp_servers", "mcp", "servers") if key in data)
        entry = data[key]["infinimem"]
        command = (
            entry["command"] if isinstance(entry["command"], list) else [entry["command"], *entry["args"]]
        )
        assert (Path(command[0]).name, command[1:]) == ("infinimem", ["mcp"])
        assert stat.S_IMODE((home / name).stat().st_mode) == 0o600
        added = data[key].pop("infinimem")
        assert added
        old = (json.loads if name.endswith(".json") else tomllib.loads)(FILES[name])
        assert {**data, key: old.get(key, {})} == {**old, key: data[key]}
    assert (home / ".config" / "Claude" / "claude_desktop_config.json").is_file()
    again = texts(home)
    assert shell("connect", "--yes").code == 0
    assert texts(home) == again
    assert shell("connect", "--undo", "--yes").code == 0
    assert texts(home) == before


def test_undo_takes_out_only_the_server_where_the_file_was_changed_since(shell: Shell, home: Path) -> None:
    shell("connect", "--yes")
    cursor, codex = home / ".cursor" / "mcp.json", home / ".codex" / "config.toml"
    data = json.loads(cursor.read_text())
    cursor.write_text(json.dumps({**data, "later": [1, 2]}, indent=4))
    codex.write_text(codex.read_text() + "\n[later]\nx = 1\n")
    assert shell("connect", "cursor", "codex", "--undo", "--yes").code == 0
    assert json.loads(cursor.read_text()) == {**json.loads(FILES[".cursor/mcp.json"]), "later": [1, 2]}
    assert tomllib.loads(codex.read_text()) == {
        **tomllib.loads(FILES[".codex/config.toml"]),
        "later": {"x": 1},
    }
    assert "# mine" in codex.read_text()


@pytest.mark.parametrize(
    ("agent", "name", "text"),
    [
        ("gemini", ".gemini/settings.json", '{\n  // mine\n  "theme": "x",\n}\n'),
        ("gemini", ".gemini/settings.json", '{"a": 1, "a": 2}'),
        ("cursor", ".cursor/mcp.json", '{"mcpServers": {"infinimem": {"command": "other"}}}'),
        ("cursor", ".cursor/mcp.json", "[]"),
        ("codex", ".codex/config.toml", 'mcp_servers = { a = { command = "x" } }\n'),
        ("codex", ".codex/config.toml", "model = \n"),
    ],
)
def test_what_cannot_be_changed_safely_is_left_with_what_to_paste(
    shell: Shell, home: Path, agent: str, name: str, text: str
) -> None:
    (home / name).write_text(text)
    before = texts(home)
    ran = shell("--json", "connect", agent, "--yes")
    assert (ran.code, texts(home)) == (0, before)
    assert "put this in: " in ran.json["rows"][0]["state"]
    undone = shell(
        "--json", "connect", agent, "--undo", "--yes"
    )  # nor is a server taken out that is another's
    assert (undone.json["rows"][0]["state"], texts(home)) == ("unchanged", before)


def test_only_what_is_installed_is_named(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no agent program is found" in shell("connect").out
    assert shell("connect").err == ""
    assert shell("init").code == 0 and "this one: --library . connect" in shell("connect").err
    monkeypatch.setattr("infinimem.cli.serving.find_spec", lambda _: None)
    assert "pip install 'infinimem[mcp]'" in shell("connect").err
    assert "is not installed" in shell("connect", "codex").err
    assert "is unknown" in shell("connect", "emacs").err
