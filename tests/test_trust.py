"""Whose library is it, and may its settings act? docs/SECURITY.md."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from cli_runner import Shell
from fake_server import Say, serve
from trusting import write_trusted

from infinimem import Turn, open_memory
from infinimem.errors import NotTrusted, SettingsError
from infinimem.settings import configuration, defaults, is_harmless
from infinimem.user_folders import TRUST, is_mine

SERVER = '[llm]\nmodel = "m"\nbase_url = "http://127.0.0.1:9/v1"\n'


def toml(library: Path, text: str) -> Path:
    library.mkdir(parents=True, exist_ok=True)
    (library / "infinimem.toml").write_text(text)
    return library


def in_force(shell: Shell, *args: str) -> dict[str, tuple[object, str]]:
    """Value and origin of each setting that is not its default."""
    rows = shell("config", "--json", *args).json["settings"]
    return {row["name"]: (row["value"], row["origin"]) for row in rows if row["origin"] != "default"}


def test_every_setting_says_whether_it_is_harmless() -> None:
    """One that is not marked is not: whoever adds a setting decides here."""
    assert {name for name, value in defaults().items() if not is_harmless(name, value)} == {
        *("llm.model", "llm.base_url", "llm.replies_days", "llm.replies_mb"),
        *("embedder.model", "embedder.path", "embedder.base_url", "git", "memory_tool.observe"),
        *("gam.cross_encoder", "hooks.daily_tokens", "xmemory.gate_model"),
    }
    bounds = (1, 60.0, 600, 0.5, 601, 1e9, float("inf"))
    assert [is_harmless("llm.timeout", one) for one in bounds] == [True] * 3 + [False] * 4
    assert [is_harmless("llm.retries", one) for one in (0, 10, 11)] == [True, True, False]
    assert [
        name for name in ("lexical", "static", "minilm", "openai") if is_harmless("embedder.name", name)
    ] == [
        "lexical",
        "static",
    ]


def test_where_a_setting_comes_from(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Option, environment, config.toml, trusted infinimem.toml: the first that says it."""
    write_trusted(shell.library, f'{SERVER}[embedder]\nname = "static"\n[infini]\nchunk_tokens = 9\n')
    base = "http://127.0.0.1:9/v1"
    assert in_force(shell) == {
        "llm.model": ("m", "infinimem.toml"),
        "llm.base_url": (base, "infinimem.toml"),
        "embedder.name": ("static", "infinimem.toml"),
        "infini.chunk_tokens": (9, "infinimem.toml"),
    }
    user = shell.home / ".config" / "infinimem" / "config.toml"
    user.parent.mkdir(parents=True)
    user.write_text('[llm]\nmodel = "mine"\n[embedder]\nname = "lexical"\nbase_url = "http://user/v1"\n')
    found = in_force(shell)
    assert found["llm.model"] == ("mine", "config.toml")
    assert found["embedder.name"] == ("lexical", "config.toml")
    assert found["embedder.base_url"] == ("http://user/v1", "config.toml")
    monkeypatch.setenv("INFINIMEM_MODEL", "env")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://env/v1")
    found = in_force(shell)
    assert found["llm.model"] == ("env", "INFINIMEM_MODEL")
    assert found["embedder.base_url"] == found["llm.base_url"] == ("http://env/v1", "OPENAI_BASE_URL")
    assert in_force(shell, "--model", "said")["llm.model"] == ("said", "option")


def test_config_toml_holds_no_settings_of_a_library(shell: Shell) -> None:
    user = shell.home / ".config" / "infinimem" / "config.toml"
    user.parent.mkdir(parents=True)
    user.write_text("[infini]\nchunk_tokens = 9\n")
    shell("init").failed(2, "infini.chunk_tokens belongs to a library")
    assert list(shell.library.iterdir()) == []


def test_a_change_suspends_until_it_is_trusted(shell: Shell) -> None:
    assert shell("init").code == 0
    toml(shell.library, f"{SERVER}[infini]\nchunk_tokens = 9\n")
    before = shell.tree()
    ran = shell("add", "I moved to Lisbon.")
    ran.failed(1, f"infinimem trust {shell.library}")
    assert "llm.base_url, llm.model" in ran.err and "recorded" in ran.err
    assert shell.tree() != before  # the evidence
    drawn = shell("add", "I have a cat named Miso.", "--model", "offline", "--json")
    assert len(drawn.json["entries"]) == 2  # what was pending, too
    assert shell("trust").out.count("127.0.0.1:9") == 2
    assert in_force(shell).keys() == {"infini.chunk_tokens"}  # it only showed
    assert shell("trust", "--yes", "--json").json["trusted"] is True
    assert shell("trust", "--json").json["trusted"] is True  # a look at one that is trusted says so
    assert shell("trust").err.endswith(" is trusted\n")
    assert in_force(shell)["llm.model"] == ("m", "infinimem.toml")
    toml(shell.library, f"{SERVER}[infini]\nchunk_tokens = 10\n")
    assert in_force(shell)["llm.model"] == ("m", "infinimem.toml")  # harmless: nothing to ask
    toml(shell.library, SERVER.replace(":9/", ":8/"))
    assert in_force(shell) == {}
    assert shell("trust", "--list", "--json").json["rows"] == [
        {"library": os.path.realpath(shell.library), "state": "changed since"}
    ]
    assert is_mine(shell.library)  # only its settings are in doubt
    notes = [row["what"] for row in shell("doctor", "--json").json["findings"]]
    suspended = "llm.base_url = http://127.0.0.1:8/v1 has no effect: the library is not trusted"
    assert f"{suspended} (infinimem trust)" in notes
    shell("trust", "--remove")
    assert not is_mine(shell.library)


def test_reading_works_and_says_so_in_one_line(shell: Shell) -> None:
    toml(shell.library, f'{SERVER}[embedder]\nname = "openai"\nbase_url = "http://127.0.0.1:9/v1"\n')
    (shell.library / "note.md").write_text("- The gate code is 4711.\n")
    for command in (["search", "gate"], ["ask", "What is the gate code?"], ["status"], ["grep", "gate"]):
        ran = shell(*command)
        assert ran.code == 0 and ran.err.count("infinimem trust") == 1, (command, ran)
    assert "4711" in shell("ask", "What is the gate code?").out
    assert shell("-q", "search", "gate").err == ""
    assert json.loads(shell("search", "gate", "--json").out)["hits"]


def test_a_server_that_was_not_meant_gets_nothing_either(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library for a local server: with the model's name from elsewhere its text must not go to OpenAI."""
    with serve(Say(500)) as server:
        toml(
            shell.library,
            '[llm]\nbase_url = "http://127.0.0.1:9/v1"\n[embedder]\nbase_url = "http://127.0.0.1:9"\n',
        )
        user = shell.home / ".config" / "infinimem" / "config.toml"
        user.parent.mkdir(parents=True)
        user.write_text('[llm]\nmodel = "mine"\n')
        monkeypatch.setenv("INFINIMEM_EMBEDDER", "openai")
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        assert shell("search", "gate").code == 0
        shell("add", "I moved to Lisbon.").failed(1, "llm.base_url")
        user.write_text(f'[llm]\nmodel = "mine"\nbase_url = "{server.url}"\nretries = 0\n')
        assert shell("add", "I moved to Porto.").code == 1
        assert server.requests


def test_who_else_may_vouch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = toml(tmp_path / "lib", SERVER)
    with pytest.raises(NotTrusted, match="infinimem trust"):
        open_memory(library).observe([Turn("I moved to Lisbon.")])
    assert open_memory(library, trust=True).library.settings.llm.model == "m"
    linked = tmp_path / "link"
    linked.symlink_to(library)
    monkeypatch.setenv(TRUST, f"relative{os.pathsep}{linked}")
    assert is_mine(library) and open_memory(library).library.settings.llm.model == "m"


def test_a_link_to_a_foreign_folder_is_foreign(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    open_memory(mine, model="offline", create=True)
    assert is_mine(mine)
    foreign = toml(tmp_path / "foreign", "")
    mine.rename(tmp_path / "aside")
    mine.symlink_to(foreign)
    assert not is_mine(mine)


def test_what_others_could_have_written_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    library = tmp_path / "lib"
    open_memory(library, model="offline", create=True)
    (note,) = (tmp_path / "data" / "infinimem" / "trusted").iterdir()
    assert note.stat().st_mode & 0o777 == 0o600 and note.parent.stat().st_mode & 0o777 == 0o700
    note.chmod(0o666)
    assert not is_mine(library)
    note.chmod(0o600)
    assert is_mine(library)
    note.rename(tmp_path / "elsewhere")
    note.symlink_to(tmp_path / "elsewhere")
    assert not is_mine(library)


def test_an_init_that_finds_settings_makes_no_library_ones_own(shell: Shell) -> None:
    toml(shell.library, SERVER)
    assert shell("init").code == 0
    assert not is_mine(shell.library)


def test_without_a_home_nothing_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    open_memory(tmp_path / "lib", model="offline", create=True).observe([Turn("I moved to Lisbon.")])
    assert not is_mine(tmp_path / "lib")
    assert configuration(SERVER.encode(), tmp_path / "lib").suspended


def test_a_damaged_config_toml_is_one_line(shell: Shell) -> None:
    user = shell.home / ".config" / "infinimem" / "config.toml"
    user.parent.mkdir(parents=True)
    user.write_text("llm = 3")
    with pytest.raises(SettingsError, match=r"config\.toml"):
        configuration()
    user.unlink()
    user.mkdir()
    shell("init").failed(2, "config.toml")
