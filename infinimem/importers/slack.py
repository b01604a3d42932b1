"""Slack's export of a workspace: lists of people and of channels, and for each channel a file a day.

Source: slack.com/help/articles/220556107 (how to read Slack data exports).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from html import unescape
from typing import Any

from infinimem.importers import fields
from infinimem.importers.archives import SLACK_DAY, SLACK_LISTS
from infinimem.importers.fields import Json, Skipped
from infinimem.model import Turn

_SPOKEN = (None, "thread_broadcast", "me_message", "file_share", "file_comment")
_MARKUP = re.compile(r"<([@#!]?)([^<>|\n]+)(?:\|([^<>\n]*))?>")


def turns(files: Iterable[tuple[str, Iterable[Any]]], skipped: Skipped) -> Iterator[Turn]:
    """The turns of an export, channel by channel.

    Args:
        files: path and records of each, in the order of `archives.slack_files`.
        skipped: counts what is left out.
    """
    people: dict[str, str] = {}
    channels: dict[str, str] = {}
    for path, records in files:
        file = path.rpartition("/")[2]
        found = (one for one in records if isinstance(one, dict))
        if file in SLACK_LISTS[:2]:
            people |= {str(one.get("id")): _name(one) for one in found}
        elif file in SLACK_LISTS:
            channels |= {
                str(fields.as_name(one.get("name")) or one.get("id")): _channel(one, people) for one in found
            }
        elif day := SLACK_DAY.fullmatch(path):
            yield from _day(found, channels.get(day[1], day[1]), people, skipped)


def _name(person: Json) -> str:
    """What others call a person: the name they chose, else their full name, else that of the account."""
    profile = person.get("profile")
    given = {**person, **(profile if isinstance(profile, dict) else {})}
    names = (fields.as_name(given.get(field)) for field in ("display_name", "real_name", "name", "id"))
    return next((name for name in names if name), "?")


def _channel(channel: Json, people: Mapping[str, str]) -> str:
    """A channel by its name; a talk without one by the people in it."""
    members = (people.get(str(one), str(one)) for one in fields.rows(channel.get("members")))
    name = fields.as_name(channel.get("name"))
    return (
        f"#{name}" if name and not name.startswith("mpdm-") else ", ".join(members) or str(channel.get("id"))
    )


def _day(
    messages: Iterable[Json], channel: str, people: Mapping[str, str], skipped: Skipped
) -> Iterator[Turn]:
    for message in sorted(messages, key=lambda one: (_second(one), str(one.get("ts")))):
        time = fields.iso(_second(message))
        if message.get("type") != "message" or not isinstance(message.get("text"), str):
            skipped[fields.OTHER] += 1
            continue
        if message.get("subtype") not in _SPOKEN or message.get("bot_id"):
            skipped[fields.NOTICES] += 1
            continue
        files = len(fields.rows(message.get("files")))
        skipped[fields.ATTACHED] += files
        text = unescape(_MARKUP.sub(lambda mark: _shown(mark, people), message["text"]))
        if files and not text.strip():
            continue
        user = str(message.get("user"))
        profile = message.get("user_profile")
        speaker = people.get(user) or (_name(profile) if isinstance(profile, dict) else fields.as_name(user))
        yield Turn(
            text=text,
            speaker=speaker,
            time=time,
            session=fields.day_of_chat(channel, time),
            turn=fields.as_name(message.get("ts")),
        )


def _second(message: Json) -> int:
    seconds = str(message.get("ts")).partition(".")[0]
    return int(seconds) if seconds.isascii() and seconds.isdigit() else 0


def _shown(mark: re.Match[str], people: Mapping[str, str]) -> str:
    """What a reader sees for a mark: a person, a channel, those who are called, or a link with its words."""
    kind, target, label = mark.groups()
    if kind == "@":
        return f"@{people.get(target) or label or target}"
    if kind == "#":
        return f"#{label or target}"
    if kind == "!":
        return label or f"@{target.partition('^')[0]}"
    return f"{label} ({target})" if label and label not in target else target.removeprefix("mailto:")


def is_list(record: Any) -> bool:
    """Whether a record is one of the export's lists, or a message of a channel's day."""
    if not isinstance(record, dict):
        return False
    person = "team_id" in record and "profile" in record
    channel = "members" in record and "created" in record
    return person or channel or ("ts" in record and record.get("type") == "message")
