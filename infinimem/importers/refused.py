"""What looks like a format that is read and is not: named, with one line that says what to give instead."""

from __future__ import annotations

import re

from infinimem.importers import slack
from infinimem.importers.fields import Json

_HTML = re.compile(
    r"\s*(?:<!--.*?-->\s*|<\?xml[^>]*>\s*)*<(?:!doctype html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)
_PAGES = {
    "My Activity": "Google's My Activity as a web page: ask Takeout for that of Gemini Apps as JSON",
    "Exported Data": "Telegram's export as a web page: export again as JSON, and give result.json",
    "ChatGPT Data Export": "ChatGPT's export as a web page: give conversations.json, or the zip as it came",
}
_TEXTS = {
    "{\\rtf": "a document in RTF: save it as plain text",
    "BEGIN:VCARD": "an address book: names and numbers are no memory",
    "BEGIN:VCALENDAR": "a calendar: write what matters of it as a note",
    "%PDF-": "a PDF: save its text",
}


def why_text(head: str) -> str | None:
    """What a text is that is no note, by its beginning; None where nothing is known against it."""
    if head.startswith("---") and "\nexcalidraw-plugin:" in head:
        return "a drawing (Excalidraw): write what it shows as a note"
    if _HTML.match(head):
        page = next((why for name, why in _PAGES.items() if name in head), None)
        return page or "a web page: save its text, or have the program export JSON"
    return next((why for begin, why in _TEXTS.items() if head.startswith(begin)), None)


_DISCORD = 'a Discord export, which is not read: write one {"role": …, "content": …} a line'
_GOOGLE = "My Activity of another program of Google: ask Takeout for that of Gemini Apps alone"
_CHATGPT = "another file of ChatGPT's export: give conversations.json, or the zip as it came"
_CLAUDE = "the account of Claude's export: give conversations.json, memories.json or projects.json"
_TELEGRAM = "an export of Telegram without messages: export again with the chats"
_RECORDS = (
    (("guild", "channel"), _DISCORD),
    (("header", "title", "time", "products"), _GOOGLE),
    (("chatgpt_plus_user",), _CHATGPT),
    (("conversation_id", "is_anonymous"), _CHATGPT),
    (("uuid", "full_name", "email_address"), _CLAUDE),
    (("personal_information",), _TELEGRAM),
)
"""Keys of records that tell what they are."""


def why_record(record: Json) -> str | None:
    """What a JSON file is by one of its records, where a program is known that writes such; else None."""
    if slack.is_list(record):
        return "one file of a Slack export: give the export's folder or zip"
    if isinstance(record.get("chats"), dict):
        return _TELEGRAM
    return next((why for keys, why in _RECORDS if record.keys() >= set(keys)), None)
