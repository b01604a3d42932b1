"""What looks like a known format and is not read is named, with what to give instead; it is never a note."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from cli_runner import Shell
from exports import EXPORTS, SLACK

from infinimem.errors import ImportFormatError
from infinimem.importers import survey

PAGE = '<!DOCTYPE html>\n<html><head><meta charset="UTF-8"><title>{}</title></head><body>- a</body></html>'

ALIKE: dict[str, tuple[Any, str]] = {
    "users.json": (SLACK["users.json"], "one file of a Slack export: give the export's folder or zip"),
    "channels.json": (SLACK["channels.json"], "one file of a Slack export"),
    "dms.json": (SLACK["dms.json"], "one file of a Slack export"),
    "2024-07-01.json": (SLACK["kiln/2024-07-01.json"], "one file of a Slack export"),
    "MyActivity.html": (PAGE.format("My Activity History"), "Google's My Activity as a web page"),
    "messages.html": (PAGE.format("Exported Data"), "Telegram's export as a web page"),
    "chat.html": (PAGE.format("ChatGPT Data Export"), "ChatGPT's export as a web page"),
    "page.html": ("<html><p>- peanuts</p>", "a web page: save its text"),
    "MyActivity.json": (
        [
            {
                "header": "YouTube",
                "title": "Watched x",
                "time": "2025-01-01T00:00:00Z",
                "products": ["YouTube"],
            }
        ],
        "My Activity of another program of Google",
    ),
    "user.json": ({"id": "u", "email": "a@b", "chatgpt_plus_user": True}, "another file of ChatGPT's export"),
    "shared_conversations.json": (
        [{"id": "s", "conversation_id": "c", "title": "x", "is_anonymous": True}],
        "another file of ChatGPT's export",
    ),
    "accounts.json": (
        [{"uuid": "u", "full_name": "Ilse", "email_address": "a@b"}],
        "the account of Claude's export",
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
    "contacts.vcf": ("BEGIN:VCARD\nVERSION:3.0\nFN:Bo\nEND:VCARD\n", "an address book"),
    "dates.ics": ("BEGIN:VCALENDAR\nVERSION:2.0\nEND:VCALENDAR\n", "a calendar"),
    "Plan.excalidraw.md": ("---\nexcalidraw-plugin: parsed\n---\n# Drawing\n", "a drawing"),
    "letter.rtf": ("{\\rtf1 hello}", "a document in RTF"),
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
