"""init, add, import: what they keep, print and refuse; an import that is interrupted or repeated."""

from __future__ import annotations

import base64
import io
import json
import random
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from cli_runner import Shell

from infinimem.importers import read
from infinimem.memory import Memory
from infinimem.model import Located, Turn


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


def test_init_writes_the_settings_that_people_change_with_a_line_each(shell: Shell) -> None:
    """Ten; uncommented as they stand they change nothing, and `config` shows these, `--all` the rest."""
    shell("init")
    file = shell.library / "infinimem.toml"
    lines = file.read_text().splitlines()
    named = [line for line in lines if re.match(r"# [a-z_]+ = ", line)]
    assert (len(named), len(lines) < 40) == (10, True)
    before = shell("--json", "config").json["settings"]
    file.write_text("\n".join(line.removeprefix("# ") if line in named else line for line in lines))
    shell("trust", "--yes")
    after = shell("--json", "config").json["settings"]
    assert [row["value"] or "" for row in after] == [row["value"] or "" for row in before]
    assert len(shell("config").out.splitlines()) < 20 < len(shell("config", "--all").out.splitlines())


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


def conversations(count: int) -> str:
    """Each a system prompt and two messages."""
    said = [
        ("system", "be brief"),
        ("user", "Plant {} of mine is a fern."),
        ("assistant", "{} likes shade."),
    ]
    rows = [
        {"role": who, "content": text.format(n), "session": f"s{n}", "time": f"2023-11-{n + 1:02}"}
        for n in range(count)
        for who, text in said
    ]
    return json.dumps(rows)


@pytest.fixture
def export(tmp_path: Path) -> str:
    path = tmp_path / "conversations.json"
    path.write_text(conversations(10))
    return str(path)


def evidence(shell: Shell) -> dict[str, str]:
    """What was said, file by file, without the seqs."""
    paths = sorted((shell.library / "evidence").glob("*.md"))
    return {path.name: re.sub(r"(?m)^- <seq=\d+", "", path.read_text()) for path in paths}


def test_a_damaged_file_leaves_nothing(library: Shell, tmp_path: Path, export: str) -> None:
    before, bad = library.tree(), tmp_path / "bad.json"
    for text, why in (
        (conversations(1)[:-3], "damaged JSON"),
        ("\0\1\2", "not UTF-8 text"),
        ("", "nothing to import"),
        ('{"a": 1}', "known format"),
    ):
        bad.write_text(text)
        library("-q", "import", str(bad)).failed(1, why)
    library("-q", "import", "nowhere.json").failed(1, "No such file")
    library("-q", "import", export, "--format", "word").failed(2, "use one of")
    library("-q", "import", export, "--only", "none").failed(1, "s1")
    assert library.tree() == before


@pytest.mark.parametrize("record", [True, False])
def test_twice_interrupted_it_goes_on_and_repeated_it_adds_nothing(
    library: Shell, export: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record: bool
) -> None:
    args = ("import", export, "--json", *(["--record"] if record else []))
    monkeypatch.setattr(read, "BATCH_TURNS", 3)
    plainly, calls = Memory.record, 0

    def interrupted(memory: Memory, turns: Iterable[Turn]) -> tuple[Located, ...]:
        nonlocal calls
        calls += 1
        if calls in (3, 7):
            raise KeyboardInterrupt
        return plainly(memory, turns)

    monkeypatch.setattr(Memory, "record", interrupted)
    assert [library(*args).code for _ in range(2)] == [130, 130]
    told = library(*args).json
    assert (told["turns"], told["recorded"]) == (20, 20 - 9)
    assert told["skipped_why"] == {"system prompts": 10}
    assert bool(told["entries"]) is not record
    again = library(*args).json
    assert (again["recorded"], again["entries"]) == (0, 0)
    broken = evidence(library)
    (tmp_path / "whole").mkdir()
    whole = Shell(tmp_path / "whole", monkeypatch)
    assert whole("init").code == 0
    assert whole(*args).json["recorded"] == 20
    assert evidence(whole) == broken


def test_what_is_only_recorded_is_found_and_drawn_from_later(library: Shell, export: str) -> None:
    done = library("import", export, "--record")
    assert "20 turns, 0 entries" in done.out
    assert "recorded only" in done.err
    assert library("status", "--json").json["pending"] == 20
    assert library("import", export, "--json").json["entries"] > 0
    assert library("status", "--json").json["pending"] == 0


def test_an_export_that_grew_adds_what_is_new(library: Shell, export: str) -> None:
    library("import", export)
    Path(export).write_text(conversations(12))
    assert library("import", export, "--json").json["recorded"] == 4
    before, again = library.tree(), library("import", export)
    assert "24 there before" in again.out
    assert "skipped: 12 system prompts" in again.err
    assert library.tree() == before
    assert len(evidence(library)) == 12


def test_what_one_log_holds_twice_is_recorded_once(library: Shell, tmp_path: Path) -> None:
    line = {"type": "user", "sessionId": "s", "uuid": "u", "message": {"role": "user", "content": "hm"}}
    fork = {**line, "sessionId": "s2", "uuid": "u2", "forkedFrom": {"sessionId": "s", "messageUuid": "u"}}
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in (line, fork, line)))
    told = library("import", str(path), "--json").json
    assert (told["format"], told["turns"], told["recorded"]) == ("claude-code", 3, 1)


def test_a_folder_tells_the_files_that_it_passed_over(library: Shell, export: str) -> None:
    folder = Path(export).parent / "downloads"
    folder.mkdir()
    Path(export).rename(folder / "conversations.json")
    for number in range(10):
        (folder / f"bad{number}.json").write_text("{")
    done = library("import", str(folder))
    assert "openai: 10 sessions, 20 turns" in done.out
    assert "skipped bad0.json: bad0.json is damaged JSON" in done.err
    assert "skipped 2 more files, --json names all" in done.err
    assert len(library("import", str(folder), "--json").json["left_out"]) == 10


def test_a_file_that_changes_under_the_import_is_told(
    library: Shell, export: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plainly = read.Survey.batches

    def cut(found: read.Survey) -> Any:
        Path(export).write_text(Path(export).read_text()[:-5])
        return plainly(found)

    monkeypatch.setattr(read.Survey, "batches", cut)
    library("-q", "import", export).failed(1, "damaged JSON")
