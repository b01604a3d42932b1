"""What looks like a known format and is not read is named, with what to give instead; it is never a note."""

from __future__ import annotations

import gzip
import json
import os
import socket
import zipfile
from pathlib import Path
from typing import Any

import pytest
from cli_runner import Shell
from exports import EXPORTS, SLACK

from infinimem.errors import ImportFormatError, UsageError
from infinimem.importers import read_turns, reading, survey

PAGE = '<!DOCTYPE html>\n<html><head><meta charset="UTF-8"><title>{}</title></head><body>- a</body></html>'

ALIKE: dict[str, tuple[Any, str]] = {
    "users.json": (SLACK["users.json"], "one file of a Slack export: give the export's folder or zip"),
    "channels.json": (SLACK["channels.json"], "one file of a Slack export"),
    "dms.json": (SLACK["dms.json"], "one file of a Slack export"),
    "2024-07-01.json": (SLACK["kiln/2024-07-01.json"], "one file of a Slack export"),
    "MyActivity.html": (
        PAGE.format("My Activity History"),
        "a web page, or another program's document: save its text",
    ),
    "messages.html": (
        PAGE.format("Exported Data"),
        "a web page, or another program's document: save its text",
    ),
    "chat.html": (
        PAGE.format("ChatGPT Data Export"),
        "a web page, or another program's document: save its text",
    ),
    "page.html": ("<html><p>- peanuts</p>", "a web page, or another program's document: save its text"),
    "MyActivity.json": (
        [
            {
                "header": "YouTube",
                "title": "Watched x",
                "time": "2025-01-01T00:00:00Z",
                "products": ["YouTube"],
            }
        ],
        "My Activity of another program",
    ),
    "user.json": ({"id": "u", "email": "a@b", "chatgpt_plus_user": True}, "another file of an export"),
    "shared_conversations.json": (
        [{"id": "s", "conversation_id": "c", "title": "x", "is_anonymous": True}],
        "another file of an export",
    ),
    "accounts.json": (
        [{"uuid": "u", "full_name": "Ilse", "email_address": "a@b"}],
        "another file of an export",
    ),
    "server.json": (
        {
            "guild": {"id": "1"},
            "channel": {"id": "2"},
            "messages": [{"content": "x", "author": {"name": "y"}}],
        },
        "a Discord export, which is not read",
    ),
    "telegram.json": ({"about": "x", "chats": {"list": []}}, "an export of Telegram without messages"),
    "contacts.vcf": (
        "BEGIN:VCARD\nVERSION:3.0\nFN:Bo\nEND:VCARD\n",
        "a web page, or another program's document: save its text",
    ),
    "dates.ics": (
        "BEGIN:VCALENDAR\nVERSION:2.0\nEND:VCALENDAR\n",
        "a web page, or another program's document: save its text",
    ),
    "Plan.excalidraw.md": (
        "---\nexcalidraw-plugin: parsed\n---\n# Drawing\n",
        "a web page, or another program's document: save its text",
    ),
    "letter.rtf": ("{\\rtf1 hello}", "a web page, or another program's document: save its text"),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ALIKE)
def test_it_is_named_and_nothing_is_written(name: str, shell: Shell, tmp_path: Path) -> None:
    content, why = ALIKE[name]
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    shell("init", ".")
    before = shell.tree()
    shell("import", str(path)).failed(1, f"{name} is {why}")
    assert shell.tree() == before


def test_any_text_may_be_asked_to_be_a_note(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("<html> as I remember it\n")
    assert survey(path, format="markdown").turns == 1


def test_a_zip_is_what_its_folder_is(tmp_path: Path) -> None:
    for name in ("ChatGPT", "Claude, memories", "Slack", "Telegram", "mail, mbox", "WhatsApp, iPhone"):
        export = EXPORTS[name]
        found = survey(export.zip(tmp_path / f"{export.format}.zip"))
        assert (found.formats, found.turns) == ((export.format,), len(export.turns))


def test_all_parts_of_claudes_export_come_of_one_zip(tmp_path: Path) -> None:
    parts = [EXPORTS[name] for name in ("Claude", "Claude, memories", "Claude, projects")]
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as archive:
        for part in parts:
            for name, content in part.files.items():
                archive.writestr(name, json.dumps(content))
        archive.writestr("users.json", json.dumps([{"uuid": "u", "full_name": "x", "email_address": "y"}]))
    found = survey(tmp_path / "data.zip")
    assert (found.formats, found.turns) == (("claude",), sum(len(part.turns) for part in parts))
    assert found.skipped["other files of the zip"] == 1


def test_a_slack_export_may_lie_in_a_folder_of_the_zip_or_among_others(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "s.zip", "w") as archive:
        for name, content in SLACK.items():
            archive.writestr(f"acme/{name}", json.dumps(content))
    assert survey(tmp_path / "s.zip").turns == 3
    EXPORTS["Slack"].save(tmp_path / "downloads" / "acme")
    (tmp_path / "downloads" / "note.md").write_text("- a walnut\n")
    found = survey(tmp_path / "downloads")
    assert (found.formats, found.turns, found.left_out) == (("markdown", "slack"), 4, {})


def test_a_slack_export_is_read_as_no_other_format(tmp_path: Path) -> None:
    with pytest.raises(ImportFormatError, match="is a Slack export and not telegram"):
        survey(EXPORTS["Slack"].save(tmp_path), format="telegram")


def test_one_damaged_day_refuses_a_slack_export(shell: Shell, tmp_path: Path) -> None:
    folder = EXPORTS["Slack"].save(tmp_path / "acme")
    day = folder / "kiln" / "2024-07-01.json"
    day.write_text(day.read_text()[:-9])
    shell("init", ".")
    before = shell.tree()
    shell("import", str(folder)).failed(1, "kiln/2024-07-01.json is damaged JSON")
    assert shell.tree() == before


@pytest.mark.parametrize("name", ["../conversations.json", "/etc/conversations.json", "a/../../x.json"])
def test_a_zip_with_paths_that_lead_out_is_refused(name: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("conversations.json", json.dumps(EXPORTS["Claude"].files["conversations.json"]))
        archive.writestr(name, "[]")
    with pytest.raises(ImportFormatError, match="leads elsewhere"):
        survey(tmp_path / "x.zip")


# ── files that cannot be read ────────────────────────────────────────────────────────────────────────


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
