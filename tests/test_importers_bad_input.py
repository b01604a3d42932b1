"""Files that cannot be imported: one line that says what to do, and never a hang."""

from __future__ import annotations

import gzip
import json
import os
import socket
import zipfile
from pathlib import Path

import pytest

from infinimem.errors import ImportFormatError, UsageError
from infinimem.importers import read_turns, reading


def failure(path: Path, only: str | None = None) -> str:
    with pytest.raises(ImportFormatError) as caught:
        list(read_turns(path, only=only).turns)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "no message"),
        (b" \n\t\n", "no message"),
        (b"[]", "not of a known format"),
        (b"{}", "not of a known format"),
        (b"\x89PNG\r\n\x1a\n\0\0\0", "not UTF-8 text"),
        (b"caf\xe9 au lait", "not UTF-8 text"),
        (b"x" * 9000 + b"\0", "NUL"),
        (b'[{"role": "user", "content": "a"}', "damaged JSON at record 1: the file ends"),
        (b'[{"role": "user", "content": "a"} {"role"', "damaged JSON at record 1: no comma"),
        (b'[{"role": "user", "content": "a"},]', "damaged JSON at record 2"),
        (b'[{"role": "user", "content": "a"}] x', "after the end"),
        (b'{"role": "user", "content": "a"}\n{"role": "us', "damaged JSON at record 2"),
        (b'{"role": "user", "content": "a", "n": ' + b"1" * 5000 + b"}", "damaged JSON at record 1"),
        (b'{"a": ' * 100_000, "damaged JSON at record 1"),
        (b'{"name": "x", "version": 3}', "not of a known format"),
        (b'[{"role": "user", "content": ""}]', "no message"),
        (b"PK\x03\x04 nonsense", "cannot be unpacked"),
        (gzip.compress(b"hello" * 100, mtime=0)[:-20], "cannot be unpacked"),
        (b"\xfd7zXZ\0 nonsense", "cannot be unpacked"),
        (b"\x28\xb5\x2f\xfd\0\0", "packed with zstd"),
    ],
)
def test_damaged_and_unknown_files(tmp_path: Path, data: bytes, expected: str) -> None:
    path = tmp_path / "file.json" if data[:1] in b"[{" else tmp_path / "file"
    path.write_bytes(data)
    assert expected in failure(path)


def test_damage_far_behind_the_beginning_is_told_in_one_line_too(tmp_path: Path) -> None:
    lines = "\n".join(json.dumps({"role": "user", "content": f"{n} " + "x" * 3000}) for n in range(1000))
    data = lines.encode()
    (tmp_path / "log.jsonl").write_bytes(data[:2_000_000] + b"\xe9" + data[2_000_001:])
    assert "not UTF-8 text" in failure(tmp_path / "log.jsonl")
    (tmp_path / "log.gz").write_bytes(gzip.compress(data, mtime=0)[:-3000])
    assert "cannot be unpacked" in failure(tmp_path / "log.gz")


@pytest.mark.parametrize("name", ["pipe", "socket", "null", "zero", "link"])
def test_a_pipe_or_a_device_is_refused_and_not_waited_for(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name == "pipe":
        os.mkfifo(path)
    elif name == "link":
        path.symlink_to("/dev/zero")
    elif name == "socket":
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(path))
    else:
        path = Path("/dev", name)
    assert str(path) in failure(path)


def test_a_zip_without_conversations(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("picture.png", "- a")
    assert "no export that is known" in failure(tmp_path / "x.zip")


def test_missing_files_folders_and_forbidden_files(tmp_path: Path) -> None:
    assert "No such file" in failure(tmp_path / "none.json")
    assert "is a folder" in failure(tmp_path)
    if os.geteuid():
        (tmp_path / "secret").write_text("x")
        (tmp_path / "secret").chmod(0)
        assert "Permission denied" in failure(tmp_path / "secret")


def test_only_names_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"role": "user", "content": "a", "session": "s1"}')
    assert "it holds s1" in failure(path, only="s2")


def test_wrong_calls(tmp_path: Path) -> None:
    path = tmp_path / "note.md"
    path.write_text("- a")
    with pytest.raises(UsageError, match="use one of locomo"):
        read_turns(path, format="word")
    with pytest.raises(UsageError, match="Markdown"):
        read_turns(path, only="x")
    with pytest.raises(ImportFormatError, match="damaged JSON"):
        read_turns(path, format="locomo")


def test_a_message_of_a_megabyte_and_odd_characters_come_through(tmp_path: Path) -> None:
    texts = ["x" * 2**20, "\ud83d lone", "a\u2028b\u0000c", "\ufeffbom"]
    path = tmp_path / "log.json"
    path.write_text(json.dumps([{"role": "user", "content": text} for text in texts]))
    assert [turn.text for turn in read_turns(path).turns] == texts


def test_records_texts_and_packed_files_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.json"
    path.write_text(
        json.dumps([{"role": "user", "content": "x" * 4000}] * 3 + [{"content": "x" * 5_000_000}])
    )
    monkeypatch.setattr(reading, "MAX_RECORD", 100_000)
    assert "record 4" in failure(path)
    monkeypatch.setattr(reading, "MAX_FILE", 6000)
    assert "GiB" in failure(path)
    monkeypatch.undo()
    monkeypatch.setattr(reading, "MAX_TEXT", 10)
    path.write_text("- a long note")
    path = path.rename(tmp_path / "note.md")
    assert "of text: split it" in failure(path)
