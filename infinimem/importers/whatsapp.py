"""WhatsApp's export of a chat: `_chat.txt` of an iPhone, `WhatsApp Chat with NAME.txt` of Android.

A message is a line that begins with a time, and the lines below it. The order of day, month and year is that
of the telephone, so it is told from all dates of the file. What the program says has no sender (Android), or
begins with a left-to-right mark (iPhone).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import pairwise

from infinimem.importers.fields import ATTACHED, NOTICES, Skipped, day_of_chat, iso
from infinimem.model import Turn

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


def matches(head: str) -> bool:
    begun = [_BEGIN.match(line) for line in head.strip().split("\n")[:20]]
    return bool(begun[0]) and any(one and _SENDER.match(one[15]) for one in begun)


def turns(text: str, stem: str, skipped: Skipped) -> Iterator[Turn]:
    messages = list(_messages(text))
    order = _order([parts for parts, _, _ in messages])
    chat = _chat(stem, messages[0][2] if messages else "")
    for parts, clock, said in messages:
        day = _day(order(parts))
        time = iso(f"{day}T{clock}")
        sent = _SENDER.match(said)
        if sent is None:
            skipped[NOTICES] += 1
            continue
        words = _EDITED.sub("", sent[2].rstrip()).rstrip()
        if why := _unspoken(words):
            skipped[why] += 1
            words = words.partition("\n")[2] if why == ATTACHED else ""
        if words.strip() or not why:
            speaker = _MARKS.sub("", sent[1]).strip()
            yield Turn(_MARKS.sub("", words), speaker=speaker, time=time, session=day_of_chat(chat, time))


def _messages(text: str) -> Iterator[tuple[_Parts, str, str]]:
    """The three numbers of the date as they stand, the time of day, and what follows."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    begun = [(at, match) for at, line in enumerate(lines) if (match := _BEGIN.match(line))]
    ends = [*(at for at, _ in begun[1:]), len(lines)]
    for (at, match), end in zip(begun, ends, strict=False):
        one, two, three, hour, minute, second, half = match.groups()[:7] if match[1] else match.groups()[7:14]
        hours = int(hour) % 12 + 12 * (half.lower() == "p") if half else int(hour)
        said = "\n".join([match[15], *lines[at + 1 : end]])
        yield (int(one), int(two), int(three)), f"{hours:02d}:{minute}:{second or '00'}", said


def _order(dates: list[_Parts]) -> Callable[[_Parts], _Parts]:
    """How year, month and day stand: the order in which all dates are dates, and none is before the last one.

    Where several remain the day is first, as in most countries.
    """
    orders: list[Callable[[_Parts], _Parts]] = [
        lambda parts: (parts[2], parts[1], parts[0]),
        lambda parts: (parts[2], parts[0], parts[1]),
    ]
    if any(parts[0] > 31 for parts in dates):
        return lambda parts: parts

    def disorder(order: Callable[[_Parts], _Parts]) -> tuple[int, int]:
        days = [_day(order(parts)) for parts in dates]
        known = [day for day in days if day]
        return len(days) - len(known), sum(a > b for a, b in pairwise(known))

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
    """The chat's name: that of the file; an iPhone's file begins with a notice that the chat itself sends."""
    if named := _NAME.fullmatch(stem):
        return named[1]
    sent = _SENDER.match(first)
    return _MARKS.sub("", sent[1]).strip() if sent and sent[2].startswith("\u200e") else stem


def _unspoken(words: str) -> str | None:
    first = words.partition("\n")[0]
    bare = _MARKS.sub("", first).strip()
    if first.startswith("\u200e"):
        return ATTACHED if _OMITTED.fullmatch(bare) or _MEDIA.fullmatch(bare) else NOTICES
    if _DELETED.fullmatch(bare):
        return NOTICES
    return ATTACHED if _MEDIA.fullmatch(bare) else None
