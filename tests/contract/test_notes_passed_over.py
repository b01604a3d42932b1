"""What is passed over in a folder of notes is what no person means to search, and it is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runner import Shell

from infinimem import open_memory


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Shell(tmp_path, monkeypatch)


def put(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("The boat code is 4711.\n")


def listed(shell: Shell) -> set[str]:
    return {doc["id"] for doc in shell("ls", "--json", "--limit", "99").json["docs"]}


COPIES = (
    "Boat.sync-conflict-20250112-003022-FUKIKK4.md",
    "Boat (Ann's conflicted copy 2025-01-12).md",
    "sub/Boat (conflicted copy 2025-01-12 003022).md",
    "~$Boat.md",
    "node_modules/p/README.md",
    "sub/node_modules/q/CHANGELOG.md",
    "logseq/bak/pages/Boat/2025.md",
    "graph/logseq/bak/old.md",
    "Boat (SFConflict ann@example.org 2025-01-12-00-30-22).md",
)
MEANT = ("Boat.md", "Boat 2.md", "a copy.md", "backup.md", "bak/x.md", "node/modules.md")


def test_copies_packages_and_backups_are_no_notes(shell: Shell) -> None:
    """Copies of sync programs, packages and backups in a plain folder are left out; it is told once."""
    put(shell.library, *COPIES, *MEANT)
    first = shell("search", "boat code", "-k", "20")
    assert first.out.count("4711") == len(MEANT)
    assert "left out" in first.err and "left out" not in shell("search", "boat code").err + shell("ls").err
    assert listed(shell) == {path[:-3] for path in MEANT}
    named = shell("--library", ".", "doctor").out
    for path in ("~$Boat.md", COPIES[0], "sub/node_modules/", "logseq/bak/"):
        assert path in named


def test_a_library_inside_a_folder_of_notes_is_no_notes(shell: Shell) -> None:
    """What awaits approval in it, or was archived, is not read by way of the folder around it."""
    put(shell.library, "Boat.md", "Memory/infinimem.toml", "Memory/CURRENT.md", "Memory/INBOX.md")
    assert listed(shell) == {"Boat"}
    assert "Memory/" in shell("--library", ".", "doctor").out


def test_a_folder_that_becomes_a_library_is_no_notes_at_once(tmp_path: Path) -> None:
    """A process that knows the folder and those below it reads none of them from then on."""
    put(tmp_path, "Boat.md", "Memory/CURRENT.md", "Memory/topics/boats.md", "Memory/topics/old/a.md")
    memory = open_memory(tmp_path)
    assert len(memory.view.ids()) == 4
    put(tmp_path, "Memory/infinimem.toml")
    assert set(memory.view.ids()) == {"Boat"}
    (tmp_path / "Memory/infinimem.toml").unlink()
    assert len(memory.view.ids()) == 4


def test_settings_that_strayed_into_a_librarys_folder_hide_nothing(shell: Shell) -> None:
    assert shell("init").code == 0
    put(shell.library, "topics/Boat.md", "topics/infinimem.toml")
    assert "topics/Boat" in listed(shell)


def test_the_folders_own_gitignore_counts_and_no_other(shell: Shell) -> None:
    """What the folder's own .gitignore names is left out; neither a parent's counts, nor a broken line."""
    (shell.library.parent / ".gitignore").write_text("*\n")
    put(shell.library, "a.md", "drafts/b.md", "c.tmp.md", "keep.tmp.md", "sub/drafts/d.md")
    (shell.library / ".gitignore").write_text("# ours\n[z-a]\n!\ndrafts/\n*.tmp.md\n!keep.tmp.md\n")
    assert listed(shell) == {"a", "keep.tmp"}


def test_the_setting_adds_and_takes_back(shell: Shell) -> None:
    """`[notes] ignore` of the user's config.toml adds patterns, and with ! takes back others."""
    put(shell.library, "a.md", "private/b.md", "node_modules/c.md")
    config = shell.home / ".config/infinimem/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[notes]\nignore = ["private/", "!node_modules/"]\n')
    assert listed(shell) == {"a", "node_modules/c"}
    config.write_text('[notes]\nignore = "private/"\n')
    assert "a list of strings is wanted" in shell("ls").err


def test_no_file_of_a_library_is_left_out(shell: Shell) -> None:
    """In a library neither copies nor .gitignore hide anything, and no setting the program's own."""
    assert shell("init").code == 0
    put(shell.library, "topics/a.sync-conflict-20250112-003022-X.md", "node_modules/b.md", "mine/c.md")
    assert shell("add", "I moved to Lisbon.").code == 0
    (shell.library / ".gitignore").write_text("*\n")
    before = listed(shell)
    assert {"CURRENT", "topics/a.sync-conflict-20250112-003022-X", "node_modules/b", "mine/c"} <= before
    settings = shell.library / "infinimem.toml"
    settings.write_text(
        settings.read_text() + '\n[notes]\nignore = ["*"]\n'
        if "[notes]" not in settings.read_text()
        else settings.read_text().replace("[notes]", '[notes]\nignore = ["*"]')
    )
    assert listed(shell) == {"CURRENT", "topics/a.sync-conflict-20250112-003022-X"}
    assert "Lisbon" in shell("search", "Lisbon").out


def test_markdown_of_other_endings_is_named(shell: Shell) -> None:
    """A file with another ending of Markdown is named by search and doctor, not silently missing."""
    put(shell.library, "a.md", "B.MD", "sub/c.markdown", "d.txt")
    found = shell("search", "boat code")
    assert found.out.count("4711") == 1
    assert "B.MD" in found.err and "sub/c.markdown" in found.err and "d.txt" not in found.err
    doctor = shell("--library", ".", "doctor")
    assert "B.MD" in doctor.out and "sub/c.markdown" in doctor.out


@pytest.mark.skipif(not hasattr(os, "setresuid") or os.geteuid() != 0, reason="drops root's rights")
@pytest.mark.parametrize("initialised", [False, True])
def test_an_unreadable_note_is_named(tmp_path: Path, initialised: bool) -> None:
    """A note that may not be read is named by search, ls and doctor, and not listed as an empty one."""
    library = tmp_path / "n"
    library.mkdir()
    if initialised:
        open_memory(library, create=True).close()
    put(library, "a.md", "b.md")
    (library / "b.md").chmod(0)
    drop = ("-dac_override,-dac_read_search",) * 2
    run = ["setpriv", "--bounding-set", drop[0], "--inh-caps", drop[1], sys.executable, "-m", "infinimem"]
    env = {**os.environ, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    for command in (["search", "boat code"], ["ls", "--json"], ["doctor"]):
        done = subprocess.run(
            [*run, "--library", str(library), *command], capture_output=True, text=True, check=False, env=env
        )
        assert done.returncode == 0 and "b.md" in done.stderr + done.stdout, done
        if command[0] == "ls":
            assert "b" not in {doc["id"] for doc in json.loads(done.stdout)["docs"]}


def test_an_import_leaves_out_what_a_search_of_the_folder_does(shell: Shell) -> None:
    """Copies, packages, backups and what the folder's .gitignore names do not come in, and are named."""
    notes = shell.home / "notes"
    put(notes, *COPIES, *MEANT, "drafts/deep/x.md", "drafts/kept.md")
    (notes / ".gitignore").write_bytes(b"drafts/*\r\n!drafts/kept.md\r\n")
    assert shell("init").code == 0
    done = shell("--json", "import", str(notes), "--record").json
    assert done["turns"] == len(MEANT) + 1
    assert {*COPIES[:4], "node_modules", "logseq/bak", "drafts/deep"} <= done["left_out"].keys()
    put(notes, *(f"a~ ({n}'s conflicted copy).md" for n in range(20)))
    (notes / "zero.md").touch()
    assert "skipped zero.md" in shell("import", str(notes), "--record").err  # what may surprise comes first
    alone = shell("--json", "import", str(notes / "drafts"), "--record").json
    assert alone["turns"] == 2 and not alone["left_out"]


def test_a_name_that_is_no_utf_8_stops_nothing(shell: Shell) -> None:
    """A file or folder whose name is of other bytes is named; the others are found and come in."""
    put(shell.library, "Boat.md")
    for name in (b"caf\xe9.md", b"\xfc/x.md"):
        path = shell.library / os.fsdecode(name)
        path.parent.mkdir(exist_ok=True)
        path.write_text("The boat code is 4712.\n")
    ran = shell("search", "boat code")
    assert ran.code == 0 and "4711" in ran.out and "4712" not in ran.out
    assert "udce9.md" in shell("--library", ".", "doctor").out
    target = shell.home / "memory"
    assert shell("init", str(target)).code == 0
    brought = shell("--library", str(target), "--json", "import", str(shell.library), "--record")
    assert brought.code == 0 and brought.json["turns"] == 3
