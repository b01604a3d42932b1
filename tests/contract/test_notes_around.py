"""A library inside a vault reads the vault around it, once its owner says so, and writes nothing there."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from cli_runner import Shell


def hashes(folder: Path, but: str = "") -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file() and not (but and but in path.parts)]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture
def vault(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A vault with a note and a library, in which commands are run."""
    vault = shell.library / "Vault"
    (vault / ".obsidian").mkdir(parents=True)
    (vault / "tea.md").write_text("---\naliases: [Darjeeling]\n---\n# Tea\n\nSteep it for three minutes.\n")
    shell("init", str(vault / "Memory"))
    monkeypatch.chdir(vault / "Memory")
    file = vault / "Memory" / "infinimem.toml"
    file.write_text(file.read_text().replace("[notes]", '[notes]\nfolder = ".."'))
    return vault


def test_the_notes_around_count_after_trust_alone(shell: Shell, vault: Path) -> None:
    """Before, the setting is suspended; then every tool finds them, under the vault's name."""
    assert "notes.folder" in shell("search", "darjeeling").err
    assert shell("--json", "ls").json["total"] == 1
    assert "notes.folder = .." in shell("trust", "--yes").out
    for command in (
        ["search", "darjeeling"],
        ["grep", "steep"],
        ["read", "Vault/tea"],
        ["ask", "steep tea?"],
    ):
        assert "three minutes" in shell(*command).out, command
    assert [row["id"] for row in shell("--json", "ls").json["docs"]] == ["CURRENT", "Vault/tea"]
    (vault / "tea.md").write_text("# Tea\n\nSteep it for five minutes.\n")
    (vault / "cake.md").write_text("# Cake\n\nNeeds six eggs.\n")
    assert "five minutes" in shell("search", "steep").out
    assert "six eggs" in shell("retrieve", "eggs for the cake").out


def test_nothing_is_written_around_the_library(shell: Shell, vault: Path) -> None:
    """Adding, sorting, undoing and forgetting leave every note as it is; what is forgotten is gone."""
    shell("trust", "--yes")
    before = hashes(vault, but="Memory")
    assert shell("add", "Earl Grey needs four minutes.").code == 0
    for command in (["consolidate", "--dry-run"], ["consolidate"], ["undo"], ["doctor", "--fix"]):
        assert shell(*command).code == 0, command
    assert "Earl Grey" in shell("search", "minutes").out
    assert "nothing of it is left" in shell("forget", "--match", "Earl Grey", "--yes").out
    assert hashes(vault, but="Memory") == before


@pytest.mark.parametrize("place", ["home", "library"])
def test_never_a_home_folder_nor_a_library(
    shell: Shell, vault: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """The folder around is no home folder, nothing above it and no library; one folder up is all."""
    shell("trust", "--yes")
    if place == "home":
        (vault / "me").mkdir()
        monkeypatch.setenv("INFINIMEM_TRUST", str(vault / "Memory"))
        monkeypatch.setenv("HOME", str(vault / "me"))
    else:
        (vault / "infinimem.toml").touch()
    shell("search", "steep").failed(2, 'folder = ".."')
    file = vault / "Memory" / "infinimem.toml"
    file.write_text(file.read_text().replace('".."', '"../.."'))
    shell("search", "steep").failed(2, "choose one of")
