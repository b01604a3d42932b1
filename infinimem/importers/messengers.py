"""Exports of messengers: WhatsApp, Telegram, Slack. A day of a chat is a session.

Sources: core.telegram.org/import-export; slack.com/help/articles/220556107 (how to read Slack data exports).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from html import unescape
from itertools import pairwise
from typing import Any

from infinimem.importers import fields
from infinimem.importers.fields import Format, Json, Skipped, as_name, at, day_of_chat, first, iso, rows
from infinimem.importers.reading import SLACK_DAY, SLACK_LISTS
from infinimem.model import Turn

# ── Telegram ────────────────────────────────────────────────────────────────────────────────────

_ATTACHMENTS = ("photo", "file", "media_type", "location_information", "contact_information", "poll")


def _is_telegram(record: Json) -> bool:
    message = next((chat["messages"][0] for chat in _chats(record) if chat["messages"]), None)
    dated = at(message, "date_unixtime") or at(message, "from_id")
    return dated is not None and at(message, "type") in ("message", "service")


def _telegram(records: Iterable[Any], stem: str, skipped: Skipped) -> Iterator[Turn]:
    for chat in (chat for record in records for chat in _chats(record)):
        name = as_name(chat.get("name")) or as_name(chat.get("id")) or stem
        for message in fields.objects(chat["messages"], skipped):
            if message.get("type") != "message":
                skipped[fields.NOTICES] += 1
                continue
            attached = any(key in message for key in _ATTACHMENTS)
            skipped[fields.ATTACHED] += attached
            text = message.get("text")  # or a list of strings, and of pieces that are formatted or linked
            pieces = [text] if isinstance(text, str) else [at(one, "text") or one for one in rows(text)]
            text = "".join(piece for piece in pieces if isinstance(piece, str))
            if attached and not text.strip():
                continue
            if origin := as_name(message.get("forwarded_from")):
                text = f"[forwarded from {origin}] {text}"
            time = iso(first(message, "date_unixtime", "date"))
            speaker, ident = as_name(first(message, "from", "from_id")), as_name(message.get("id"))
            yield Turn(text, "user", speaker, time, day_of_chat(name, time), ident)


def _chats(record: Any) -> list[Json]:
    """Return the chats with messages: result.json is of one, or of an account with a list of them."""
    if isinstance(at(record, "messages"), list):
        return [record]
    return [chat for chat in rows(at(record, "chats", "list")) if rows(at(chat, "messages"))]


TELEGRAM = Format(_is_telegram, _telegram, is_log=True)

# ── Slack ───────────────────────────────────────────────────────────────────────────────────────

_SPOKEN = (None, "thread_broadcast", "me_message", "file_share", "file_comment")
_MARKUP = re.compile(r"<([@#!]?)([^<>|\n]+)(?:\|([^<>\n]*))?>")


def slack_turns(files: Iterable[tuple[str, Iterable[Any]]], skipped: Skipped) -> Iterator[Turn]:
    """Yield the turns of an export, of paths and records in the order of `slack_files`."""
    people: dict[str, str] = {}
    channels: dict[str, str] = {}
    for path, records in files:
        file = path.rpartition("/")[2]
        listed = (one for one in records if isinstance(one, dict))
        if file in SLACK_LISTS[:2]:
            people |= {str(one.get("id")): _person(one) for one in listed}
        elif file in SLACK_LISTS:
            for one in listed:
                # A channel is shown by its name; a talk without one by the people in it.
                name = as_name(one.get("name"))
                members = ", ".join(people.get(str(who), str(who)) for who in rows(one.get("members")))
                is_named = name and not name.startswith("mpdm-")
                shown = f"#{name}" if is_named else members or str(one.get("id"))
                channels[str(name or one.get("id"))] = shown
        elif day := SLACK_DAY.fullmatch(path):
            yield from _slack_day(listed, channels.get(day[1], day[1]), people, skipped)


def _person(person: Json) -> str:
    """Return the name that a person chose, else their full name, else that of the account."""
    profile = person.get("profile")
    given = {**person, **(profile if isinstance(profile, dict) else {})}
    names = (as_name(given.get(key)) for key in ("display_name", "real_name", "name", "id"))
    return next(filter(None, names), "?")


def _slack_day(
    messages: Iterable[Json], channel: str, people: Mapping[str, str], skipped: Skipped
) -> Iterator[Turn]:
    for message in sorted(messages, key=lambda one: (_second(one), str(one.get("ts")))):
        if message.get("type") != "message" or not isinstance(text := message.get("text"), str):
            skipped[fields.OTHER] += 1
            continue
        if message.get("subtype") not in _SPOKEN or message.get("bot_id"):
            skipped[fields.NOTICES] += 1
            continue
        files = len(rows(message.get("files")))
        skipped[fields.ATTACHED] += files
        text = unescape(_MARKUP.sub(lambda mark: _marked(mark, people), text))
        if files and not text.strip():
            continue
        user, profile, time = str(message.get("user")), message.get("user_profile"), iso(_second(message))
        speaker = people.get(user) or (_person(profile) if isinstance(profile, dict) else as_name(user))
        yield Turn(text, "user", speaker, time, day_of_chat(channel, time), as_name(message.get("ts")))


def _second(message: Json) -> int:
    seconds = str(message.get("ts")).partition(".")[0]
    return int(seconds) if seconds.isascii() and seconds.isdigit() else 0


def _marked(mark: re.Match[str], people: Mapping[str, str]) -> str:
    """Return what a reader sees: a person, a channel, those who are called, or a link with its words."""
    kind, target, label = mark.groups()
    if kind == "@":
        return f"@{people.get(target) or label or target}"
    if kind == "#":
        return f"#{label or target}"
    if kind == "!":
        return label or f"@{target.partition('^')[0]}"
    return f"{label} ({target})" if label and label not in target else target.removeprefix("mailto:")


def is_of_slack(record: Json) -> bool:
    """Return whether a record is one of the export's lists, or a message of a channel's day."""
    person, channel = {"team_id", "profile"} <= record.keys(), {"members", "created"} <= record.keys()
    return person or channel or ("ts" in record and record.get("type") == "message")


# ── WhatsApp ────────────────────────────────────────────────────────────────────────────────────

_STAMP = (
    r"(\d{1,4})[./-] ?(\d{1,2})[./-] ?(\d{1,4})\.?(?:,| [a-z.]{1,4}) +"
    r"(\d{1,2})[:.](\d\d)(?:[:.](\d\d))?(?:[ \u202f\u00a0]*([ap])\.?[ \u00a0]?m\.?)?"
)
_BEGIN = re.compile(
    rf"\u200e?(?:\[{_STAMP}\] |{_STAMP} - )(?:\u200e?~[ \u202f\u00a0])?(.*)", re.IGNORECASE | re.DOTALL
)
_SENDER = re.compile(r"([^:\n]{1,80}): ?(.*)", re.DOTALL)
_NAME = re.compile(
    r"(?:.*/)?(?:WhatsApp[ -]Chat (?:with|mit|-)|Chat (?:de )?WhatsApp con|Discussion WhatsApp avec)"
    r" ([^/]+?)(?:/_chat)?",
    re.IGNORECASE,
)
_MEDIA = re.compile(r"<[^<>\n]{3,60}>|\S+\.\w{2,5} \([^()\n]+\)|<?attached: [^\n]+>?")
_OMITTED = re.compile(
    r"(?:\S+ )?(?:\S+ )?(?:omitted|weggelassen|absente?|omitid[oa]|omess[oa]|weggelaten)|<[^<>\n]+>"
)
_EDITED = re.compile(r"\u200e?<[^<>\n]{,40}(?:edited|bearbeitet|modifié|editó|editado)[^<>\n]{,9}>\Z")
_DELETED = re.compile(r"(?:This message was deleted|You deleted this message|null)\.?")
_MARKS = re.compile(r"[\u200e\u200f\u202a-\u202e\u2066-\u2069]")

_Parts = tuple[int, int, int]


def is_whatsapp(head: str) -> bool:
    begun = [_BEGIN.match(line) for line in head.strip().split("\n")[:20]]
    return bool(begun[0]) and any(one and _SENDER.match(one[15]) for one in begun)


def whatsapp_turns(text: str, stem: str, skipped: Skipped) -> Iterator[Turn]:
    """Yield the turns of `_chat.txt` of an iPhone, or `WhatsApp Chat with NAME.txt` of Android.

    A message is a line that begins with a time, and the lines below it. The order of day, month and year is
    that of the telephone, so it is told from all dates of the file. What the program says has no sender
    (Android), or begins with a left-to-right mark (iPhone).
    """
    messages = list(_messages(text))
    order = _order([parts for parts, _, _ in messages])
    chat = _chat(stem, messages[0][2] if messages else "")
    for parts, clock, said in messages:
        time = iso(f"{_day(order(parts))}T{clock}")
        if (sent := _SENDER.match(said)) is None:
            skipped[fields.NOTICES] += 1
            continue
        words = _EDITED.sub("", sent[2].rstrip()).rstrip()
        if why := _unspoken(words):
            skipped[why] += 1
            words = words.partition("\n")[2] if why == fields.ATTACHED else ""
        if words.strip() or not why:
            speaker = _MARKS.sub("", sent[1]).strip()
            yield Turn(_MARKS.sub("", words), speaker=speaker, time=time, session=day_of_chat(chat, time))


def _messages(text: str) -> Iterator[tuple[_Parts, str, str]]:
    """Yield the three numbers of the date as they stand, the time of day, and what follows."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    begun = [(number, match) for number, line in enumerate(lines) if (match := _BEGIN.match(line))]
    ends = [*(number for number, _ in begun[1:]), len(lines)]
    for (number, match), end in zip(begun, ends, strict=False):
        one, two, three, hour, minute, second, half = match.groups()[:7] if match[1] else match.groups()[7:14]
        hours = int(hour) % 12 + 12 * (half.lower() == "p") if half else int(hour)
        said = "\n".join([match[15], *lines[number + 1 : end]])
        yield (int(one), int(two), int(three)), f"{hours:02d}:{minute}:{second or '00'}", said


def _order(dates: list[_Parts]) -> Callable[[_Parts], _Parts]:
    """Return how year, month and day stand: the order in which all dates are dates, and none is before the
    last one; if several remain the day is first, as in most countries."""
    if any(parts[0] > 31 for parts in dates):
        return lambda parts: parts
    orders: list[Callable[[_Parts], _Parts]] = [
        lambda parts: (parts[2], parts[1], parts[0]),
        lambda parts: (parts[2], parts[0], parts[1]),
    ]

    def disorder(order: Callable[[_Parts], _Parts]) -> tuple[int, int]:
        known = [day for parts in dates if (day := _day(order(parts)))]
        return len(dates) - len(known), sum(a > b for a, b in pairwise(known))

    return min(orders, key=disorder)


def _day(parts: _Parts) -> str | None:
    year, month, day = parts
    if 99 < year < 1000 or day > 31:
        return None
    try:
        return datetime(year + 2000 if year < 100 else year, month, day).date().isoformat()
    except ValueError:
        return None


def _chat(stem: str, first: str) -> str:
    """Return the chat's name: the file's; an iPhone's begins with a notice that the chat itself sends."""
    if named := _NAME.fullmatch(stem):
        return named[1]
    sent = _SENDER.match(first)
    return _MARKS.sub("", sent[1]).strip() if sent and sent[2].startswith("\u200e") else stem


def _unspoken(words: str) -> str | None:
    first = words.partition("\n")[0]
    bare = _MARKS.sub("", first).strip()
    if first.startswith("\u200e"):
        return fields.ATTACHED if _OMITTED.fullmatch(bare) or _MEDIA.fullmatch(bare) else fields.NOTICES
    if _DELETED.fullmatch(bare):
        return fields.NOTICES
    return fields.ATTACHED if _MEDIA.fullmatch(bare) else None
