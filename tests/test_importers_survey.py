"""Folders and zips of files: all that is recognised comes in, the rest is told, nothing is unpacked."""

from __future__ import annotations

import gzip
import json
import os
import re
import stat
import zipfile
from pathlib import Path
from typing import Any

import pytest

from infinimem.errors import ImportFormatError, UsageError
from infinimem.importers import read_turns, reading, survey
from infinimem.importers.read import Survey

CHAT = [{"role": "user", "content": "one", "session": "a"}, {"role": "assistant", "content": "two"}]
LOG = {
    "type": "user",
    "sessionId": "s-9",
    "uuid": "u-1",
    "message": {"role": "user", "content": "typed"},
    "timestamp": "2026-03-01T10:00:00Z",
}


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def texts(found: Survey) -> list[str]:
    return [turn.text for batch in found.batches() for turn in batch]


def packed(path: Path, **members: Any) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content if isinstance(content, str) else json.dumps(content))
    return path


def test_a_folder_is_read_by_name_and_what_is_not_known_is_told(tmp_path: Path) -> None:
    write(tmp_path / "b" / "log.jsonl", LOG)
    write(tmp_path / "a.json", CHAT)
    write(tmp_path / "c.md", "- three")
    write(tmp_path / "cut.json", json.dumps(CHAT)[:-3])
    write(tmp_path / "user.json", {"id": 1})
    write(tmp_path / ".hidden" / "d.md", "- four")
    write(tmp_path / "picture.png", "\0")
    found = survey(tmp_path)
    assert texts(found) == ["one", "two", "three", "typed"]
    assert (found.formats, found.turns, found.sessions) == (("openai", "markdown", "claude-code"), 4, 3)
    assert sorted(found.left_out) == ["cut.json", "user.json"]
    assert "damaged" in found.left_out["cut.json"]


def test_links_and_pipes_of_a_folder_are_left_out_and_told(tmp_path: Path) -> None:
    write(tmp_path / "elsewhere" / "secret.md", "- secret")
    folder = tmp_path / "notes"
    write(folder / "a.md", "- mine")
    write(folder / "deep" / "b.md", "- mine too")
    os.mkfifo(folder / "pipe.md")
    os.mkfifo(folder / "deep" / "pipe.jsonl")
    (folder / "link.md").symlink_to(tmp_path / "elsewhere" / "secret.md")
    (folder / "linked").symlink_to(tmp_path / "elsewhere")
    (folder / "deep" / "gone.md").symlink_to("nowhere")
    found = survey(folder)
    assert texts(found) == ["mine", "mine too"]
    whys = {name: re.sub(r"^.* is", "is", why) for name, why in found.left_out.items()}
    link, pipe = (
        "is a link: to bring in what it leads to, name that",
        "is a pipe or a device: save it as a file",
    )
    assert whys == {
        "pipe.md": pipe,
        "deep/pipe.jsonl": pipe,
        "link.md": link,
        "linked": link,
        "deep/gone.md": link,
    }


def test_a_link_that_is_named_is_followed(tmp_path: Path) -> None:
    write(tmp_path / "notes" / "a.md", "- mine")
    (tmp_path / "folder").symlink_to(tmp_path / "notes")
    (tmp_path / "file.md").symlink_to(tmp_path / "notes" / "a.md")
    assert texts(survey(tmp_path / "folder")) == texts(survey(tmp_path / "file.md")) == ["mine"]


@pytest.mark.parametrize("swapped", ["deep", "deep/b.md"])
def test_what_becomes_a_link_after_it_was_looked_at_is_not_followed(tmp_path: Path, swapped: str) -> None:
    write(tmp_path / "elsewhere" / "b.md", "- secret")
    folder = tmp_path / "notes"
    write(folder / "deep" / "b.md", "- mine too")
    found = survey(folder)
    (folder / swapped).rename(tmp_path / "aside")
    (folder / swapped).symlink_to(tmp_path / "elsewhere" / ("b.md" if swapped.endswith(".md") else ""))
    with pytest.raises(ImportFormatError):
        texts(found)


def test_a_link_in_a_zip_is_not_followed(tmp_path: Path) -> None:
    """What is packed as a link is the path that it leads to, and that is no conversation."""
    secret = write(tmp_path / "secret.json", CHAT)
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        member = zipfile.ZipInfo("conversations.json")
        member.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(member, str(secret))
    assert "damaged JSON" in refused(tmp_path / "x.zip")


def test_notes_of_one_name_in_two_folders_are_two_sessions(tmp_path: Path) -> None:
    for year in ("2024", "2025"):
        write(tmp_path / year / "01.md", "- slept well")
    found = survey(tmp_path)
    assert [turn.session for batch in found.batches() for turn in batch] == ["2024/01", "2025/01"]
    assert len({turn.key for batch in found.batches() for turn in batch}) == 2


def test_one_conversation_of_a_folder(tmp_path: Path) -> None:
    write(tmp_path / "a.json", CHAT)
    write(tmp_path / "log.jsonl", LOG)
    found = survey(tmp_path, only="s-9")
    assert (texts(found), found.left_out) == (["typed"], {})
    with pytest.raises(ImportFormatError, match="no conversation 'none'"):
        survey(tmp_path, only="none")


def test_a_folder_that_holds_nothing_and_one_that_is_a_library(tmp_path: Path) -> None:
    with pytest.raises(ImportFormatError, match="no chat, log or note"):
        survey(tmp_path)
    write(tmp_path / "mine" / "infinimem.toml", "")
    write(tmp_path / "mine" / "evidence" / "a.md", "- one")
    with pytest.raises(ImportFormatError, match="no chat, log or note"):
        survey(tmp_path)
    for folder in ("mine", "mine/evidence"):
        with pytest.raises(UsageError, match="lies in a library"):
            survey(tmp_path / folder)


# ── zips ────────────────────────────────────────────────────────────────────────────────────────


def test_of_an_export_only_the_conversations_are_read(tmp_path: Path) -> None:
    path = packed(
        tmp_path / "export.zip",
        **{
            "conversations-001.json": [{"messages": CHAT[1:]}],
            "conversations-000.json": [{"messages": CHAT[:1]}],
        },
        **{"user.json": {}, "chat.html": "x", "conversations/a.json": CHAT},
    )
    found = read_turns(path)
    assert [turn.text for turn in found.turns] == ["one", "two"]
    assert found.skipped == {"other files of the zip": 3}


def test_a_zip_of_logs_and_notes_is_to_be_unpacked(tmp_path: Path) -> None:
    path = packed(tmp_path / "x.zip", **{"p/log.jsonl": LOG, "p/2025-01-02.md": "- rain"})
    assert "unpack it and name the folder" in refused(path)


def refused(path: Path) -> str:
    with pytest.raises(ImportFormatError) as caught:
        survey(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_zips_that_unpack_to_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = packed(tmp_path / "bomb.zip", **{"conversations.json": "[" + " " * 2**20})
    monkeypatch.setattr(reading, "STEP", 1000)
    monkeypatch.setattr(reading, "MAX_FILE", 10_000)
    assert "unpacks to more than" in refused(path)
    chat = json.dumps(CHAT).removesuffix("]").encode()
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(chat + b" " * 2**20, mtime=0))
    assert "holds more than" in refused(tmp_path / "bomb.gz")


def test_zips_that_are_locked_cut_off_or_damaged(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.zip", **{"conversations.json": [{"messages": CHAT * 50}]})
    data = path.read_bytes()
    path.write_bytes(data[:-30])
    assert "cannot be unpacked" in refused(path)
    path.write_bytes(data[:60] + bytes([data[60] ^ 255]) + data[61:])
    assert "cannot be unpacked" in refused(path)
    directory = data.index(b"PK\x01\x02")
    locked = bytearray(data)
    locked[6] |= 1
    locked[directory + 8] |= 1
    path.write_bytes(locked)
    assert "locked with a password" in refused(path)


def test_records_over_several_lines_are_read_whatever_the_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record that is not all there yet is no damaged one."""
    monkeypatch.setattr(reading, "HEAD", 40)
    chats = [{"role": "user", "content": 'a "quoted\\ ☃ word', "n": [1.5e3, None, {"x": []}]}] * 3
    plain = "\n".join(json.dumps(chat, indent=2) for chat in chats)
    for step in range(1, 60):
        monkeypatch.setattr(reading, "STEP", step)
        for text in (plain, json.dumps(chats, indent=1)):
            found = read_turns(write(tmp_path / "a.json", text))
            assert [turn.text for turn in found.turns] == ['a "quoted\\ ☃ word'] * 3
