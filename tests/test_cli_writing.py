"""init, add, import, consolidate: what they keep, what they print, and what they refuse."""

from __future__ import annotations

import base64
import io
import json
import random
from pathlib import Path
from typing import Any

import pytest
from cli_runner import Shell

CHAT = [
    {"role": "user", "content": "I moved to Lisbon in March.", "session": "s1", "time": "2025-03-03"},
    {"role": "assistant", "content": "Lisbon it is.", "session": "s1", "time": "2025-03-03"},
    {
        "role": "user",
        "content": "My sister Ana is allergic to peanuts.",
        "session": "s2",
        "time": "2025-04-01",
    },
    {"role": "user", "content": "", "session": "s2"},
]


@pytest.fixture
def library(shell: Shell) -> Shell:
    assert shell("init").code == 0
    return shell


# ── init ────────────────────────────────────────────────────────────────────────────────────────


def test_init_touches_no_note_and_can_be_repeated(shell: Shell) -> None:
    (shell.library / "mine.md").write_text("# Mine\n- a\n")
    before = shell.tree()
    assert shell("init", "--json").json == {"library": str(shell.library)}
    after = shell.tree()
    assert after.items() > before.items()
    assert {"infinimem.toml", ".gitignore", "CURRENT.md"} <= after.keys()
    assert shell("init").code == 0
    assert shell.tree() == after


def test_init_makes_the_folder_that_is_named(shell: Shell, tmp_path: Path) -> None:
    assert shell("init", "new/deep").out.strip() == str(shell.library / "new/deep")
    assert shell("--library", str(tmp_path / "other"), "init").code == 0
    assert (tmp_path / "other" / "infinimem.toml").exists()
    (shell.library / "file").touch()
    shell("init", "file").failed(1, "cannot make")


# ── add ─────────────────────────────────────────────────────────────────────────────────────────


def test_add_reads_standard_input(library: Shell) -> None:
    assert library("add", "-", input="My bike is red.\nIts lock is blue.\n").code == 0
    assert "blue" in library("grep", "blue", "--scope", "evidence").out


def test_a_key_is_recorded_once(library: Shell) -> None:
    assert library("add", "My bike is red.", "--key", "k1", "--json").json["evidence"]
    again = library("add", "My bike is red.", "--key", "k1")
    assert (again.code, again.out) == (0, "")
    assert "recorded before" in again.err


def test_a_megabyte_is_taken(library: Shell) -> None:
    # Sorting it into topics is another matter and takes its time.
    (library.library / "infinimem.toml").write_text("[infini]\ncurrent_threshold = 9999999\n")
    text = base64.b64encode(random.Random(1).randbytes(790_000)).decode()
    assert library("add", "-", input=text).code == 0
    evidence = next((library.library / "evidence").glob("*.md")).read_text()
    assert text.strip() in evidence


class Pipe(io.RawIOBase):
    """Somebody keeps writing blanks; gives up after 200 MB, so that a reader without a limit ends too."""

    given = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = 0 if self.given > 200 * 2**20 else len(buffer)
        buffer[:size] = b" " * size
        self.given += size
        return size


def test_a_pipe_that_does_not_end_is_refused_at_64_megabytes(library: Shell) -> None:
    before, pipe = library.tree(), Pipe()
    library("add", "-", input=io.BufferedReader(pipe)).failed(2, "over 64 MB on standard input")
    assert 64 * 2**20 < pipe.given < 65 * 2**20
    assert library.tree() == before


@pytest.mark.parametrize("text", ["", "  \n\t "])
def test_empty_text_is_refused(library: Shell, text: str) -> None:
    before = library.tree()
    library("add", text).failed(2, "empty")
    library("add", "-", input=text).failed(2, "empty")
    assert library.tree() == before


def test_what_is_no_text_and_no_time_is_refused(library: Shell) -> None:
    before = library.tree()
    library("add", "-", input=b"\xff\xfe\x00").failed(2, "UTF-8")
    library("-q", "add", "x", "--time", "tomorrow").failed(2, "ISO 8601")
    library("add", "x", "--role", "king").failed(2, "--role")
    library("add").failed(2, "TEXT")
    assert library.tree() == before


def test_the_default_library_is_made_when_something_is_kept(shell: Shell) -> None:
    shell("ls").failed(1, "there is no library")
    assert shell("add", "I moved to Lisbon in March.").code == 0
    default = shell.home / ".local/share/infinimem/default"
    assert (default / "infinimem.toml").exists()
    assert "CURRENT" in shell("ls").out


# ── import ──────────────────────────────────────────────────────────────────────────────────────


def chat(shell: Shell, content: str | None = None) -> str:
    path = shell.library.parent / "chat.json"
    path.write_text(json.dumps(CHAT) if content is None else content)
    return str(path)


def test_import_counts_and_adds_only_what_is_new(library: Shell) -> None:
    done = library("import", chat(library), "--json").json
    assert {"sessions", "turns", "entries", "skipped"} <= set(done)
    assert (done["format"], done["sessions"], done["turns"], done["skipped"]) == ("openai", 2, 3, 1)
    assert done["recorded"] == 3
    before = library.tree()
    again = library("import", chat(library))
    assert "3 there before" in again.out
    assert "skipped: 1 empty messages" in again.err
    assert library.tree() == before


def test_a_damaged_file_leaves_nothing(library: Shell) -> None:
    before = library.tree()
    library("-q", "import", chat(library, json.dumps(CHAT)[:-3])).failed(1, "damaged JSON")
    library("-q", "import", chat(library, "\0\1\2")).failed(1, "not UTF-8 text")
    library("-q", "import", chat(library, "")).failed(1, "nothing to import")
    library("-q", "import", chat(library, '{"a": 1}')).failed(1, "known format")
    library("-q", "import", "nowhere.json").failed(1, "No such file")
    library("-q", "import", chat(library), "--format", "word").failed(2, "use one of")
    library("-q", "import", chat(library), "--only", "s9").failed(1, "s1")
    assert library.tree() == before


# ── consolidate ─────────────────────────────────────────────────────────────────────────────────
