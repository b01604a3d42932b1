"""Messages between people: Telegram, Slack, WhatsApp (a session is a day of a chat), mails (it is a thread).

Sources: core.telegram.org/import-export; slack.com/help/articles/220556107 (how to read Slack data exports).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import blake2b
from html import unescape
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

from infinimem.errors import ImportFormatError
from infinimem.importers import fields
from infinimem.importers.fields import MARKS, Json, Skipped, as_name, at, first, has, iso, rows
from infinimem.model import Turn

if TYPE_CHECKING:
    from email.message import Message


# ── Telegram ────────────────────────────────────────────────────────────────────────────────────

_ATTACHMENTS = ("photo", "file", "media_type", "location_information", "contact_information", "poll")


def is_telegram(record: Json) -> bool:
    message = next((message for chat in _chats(record) for message in chat["messages"]), None)
    dated = at(message, "date_unixtime") or at(message, "from_id")
    return dated is not None and at(message, "type") in ("message", "service")


def telegram_turns(records: Iterable[Any], stem: str, skipped: Skipped) -> Iterator[Turn]:
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
            yield Turn(text, "user", speaker, time, fields.day_of_chat(name, time), ident)


def _chats(record: Any) -> list[Json]:
    """Return the chats with messages: result.json is of one, or of an account with a list of them."""
    return [chat for chat in (record, *rows(at(record, "chats", "list"))) if has(chat, messages=list)]


# ── Slack ───────────────────────────────────────────────────────────────────────────────────────

SLACK_LISTS = ("users.json", "org_users.json", "channels.json", "groups.json", "dms.json", "mpims.json")
"""Slack's lists, people first: these names are needed to read the talks."""

_SPOKEN = (None, "thread_broadcast", "me_message", "file_share", "file_comment")


def slack_files(names: Iterable[str]) -> list[str]:
    """Return the paths of a Slack export's files in the order to read them, lists first; else none."""
    known = set(names)
    for people in sorted(name for name in known if name.rpartition("/")[2] in SLACK_LISTS[:2]):
        root = people[: people.rfind("/") + 1]
        lists = [root + name for name in SLACK_LISTS if root + name in known]
        if not known.isdisjoint(root + name for name in SLACK_LISTS[2:]):
            below = (name for name in known if name.startswith(root))
            days = (name for name in below if MARKS["slack day"].fullmatch(name[len(root) :]))
            return [*lists, *sorted(days)]
    return []


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
        elif day := MARKS["slack day"].fullmatch(path):
            for message in sorted(listed, key=lambda one: (iso(one.get("ts")) or "", str(one.get("ts")))):
                yield from _slack_turn(message, channels.get(day[1], day[1]), people, skipped)


def _person(person: Json) -> str:
    """Return the name that a person chose, else their full name, else that of the account."""
    given = {**person, **(person["profile"] if has(person, profile=dict) else {})}
    names = (as_name(given.get(key)) for key in ("display_name", "real_name", "name", "id"))
    return next(filter(None, names), "?")


def _slack_turn(message: Json, channel: str, people: Mapping[str, str], skipped: Skipped) -> Iterator[Turn]:
    if message.get("type") != "message" or not has(message, text=str):
        skipped[fields.OTHER] += 1
        return
    if message.get("subtype") not in _SPOKEN or message.get("bot_id"):
        skipped[fields.NOTICES] += 1
        return
    files = len(rows(message.get("files")))
    skipped[fields.ATTACHED] += files
    text = unescape(MARKS["slack markup"].sub(lambda mark: _marked(mark, people), message["text"]))
    if text.strip() or not files:
        user, time = str(message.get("user")), iso(message.get("ts"))
        named = _person(message["user_profile"]) if has(message, user_profile=dict) else as_name(user)
        speaker, ident = people.get(user) or named, as_name(message.get("ts"))
        yield Turn(text, "user", speaker, time, fields.day_of_chat(channel, time), ident)


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


# ── WhatsApp ────────────────────────────────────────────────────────────────────────────────────

_ORDERS = ("%d/%m/%y", "%m/%d/%y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d")
"""In which a telephone writes a date; the day comes first in most countries."""


def is_whatsapp(head: str) -> bool:
    head = head.lstrip()
    begun = list(MARKS["whatsapp begin"].finditer(head))
    sent = (MARKS["whatsapp sender"].match(head, one.end()) for one in begun)
    return bool(begun) and not begun[0].start() and any(sent)


def whatsapp_turns(text: str, stem: str, skipped: Skipped) -> Iterator[Turn]:
    """Yield the turns of an exported chat; what the program says has no sender, or begins with a mark."""
    text = text.replace("\r\n", "\n")
    begun = list(MARKS["whatsapp begin"].finditer(text))
    days = _days_by_date(dict.fromkeys(one[1] for one in begun))
    first = MARKS["whatsapp sender"].match(text, begun[0].end()) if begun else None
    if named := MARKS["whatsapp name"].fullmatch(stem):
        stem = named[1]
    elif first and first[2].startswith("\u200e"):  # an iPhone's begins with a notice by the chat itself
        stem = MARKS["whatsapp marks"].sub("", first[1]).strip()
    for one, end in zip(begun, [*(later.start() - 1 for later in begun[1:]), len(text)], strict=False):
        date, hour, minute, second, half = one.groups()
        hours = int(hour) % 12 + 12 * (half.lower() == "p") if half else int(hour)
        time = iso(f"{days[date]}T{hours:02d}:{minute}:{second or '00'}")
        if (sent := MARKS["whatsapp sender"].fullmatch(text, one.end(), end)) is None:
            skipped[fields.NOTICES] += 1
            continue
        words = MARKS["whatsapp edited"].sub("", sent[2].rstrip()).rstrip()
        if why := _unspoken(words):
            skipped[why] += 1
            words = words.partition("\n")[2] if why == fields.ATTACHED else ""
        if words.strip() or not why:
            speaker = MARKS["whatsapp marks"].sub("", sent[1]).strip()
            words = MARKS["whatsapp marks"].sub("", words)
            yield Turn(words, speaker=speaker, time=time, session=fields.day_of_chat(stem, time))


def _days_by_date(dates: Iterable[str]) -> Mapping[str, str | None]:
    """Return the days of dates as written, in the order in which all are days, and none before the last."""

    def read(date: str, order: str) -> str | None:
        with suppress(ValueError):
            return datetime.strptime(re.sub(r"[./-] ?", "/", date), order).date().isoformat()
        return None

    def disorder(days: Mapping[str, str | None]) -> tuple[int, int]:
        known = [day for day in days.values() if day]
        return len(days) - len(known), sum(a > b for a, b in pairwise(known))

    return min(({date: read(date, order) for date in dates} for order in _ORDERS), key=disorder)


def _unspoken(words: str) -> str | None:
    first = words.partition("\n")[0]
    bare = MARKS["whatsapp marks"].sub("", first).strip()
    if first.startswith("\u200e"):
        is_media = MARKS["whatsapp omitted"].fullmatch(bare) or MARKS["whatsapp media"].fullmatch(bare)
        return fields.ATTACHED if is_media else fields.NOTICES
    if MARKS["whatsapp deleted"].fullmatch(bare):
        return fields.NOTICES
    return fields.ATTACHED if MARKS["whatsapp media"].fullmatch(bare) else None


# ── mails ───────────────────────────────────────────────────────────────────────────────────────
# RFC 4155 (mbox), RFC 5322 (messages), RFC 2045 (MIME), RFC 2047 (words of headers in other encodings),
# RFC 3676 (the line before a signature).
# Not by `mailbox`, which ends a mail at any line that begins with "From ".

_MAX_MAIL = 64 * 2**20  # characters of one mail with all that is attached to it
_MAX_LINES, _MAX_PARTS = 2**20, 2**16  # of one mail; each costs more than its characters

_LONG = 4000  # characters of headers alone, of which the sender's may come later


def is_mail(head: str) -> bool:
    """Return whether a file is a mail or a mailbox, by its beginning."""
    if MARKS["mail between"].match(head.partition("\n")[0]):
        return True
    if (headers := MARKS["mail headers"].match(head)) is None or headers[0].count("\n") < 2:
        return False
    goes_on = len(head) >= _LONG and "\n" not in head[headers.end() :]
    return goes_on or bool(MARKS["mail sender"].search(headers[0]))


def mail_turns(lines: Iterable[str], stem: str, skipped: Skipped) -> Iterator[Turn]:
    """Yield the turns of a mailbox or of one mail; bytes that are no UTF-8 stand as lone surrogates."""
    from email import message_from_bytes  # not before there is a mail: it loads slowly

    for number, text in enumerate(_mails(lines), 1):
        try:
            yield _mail_turn(message_from_bytes(text.encode("utf-8", "surrogateescape")), stem, skipped)
        except (ValueError, LookupError, AttributeError, RecursionError) as error:
            raise ImportFormatError(f"mail {number} of {stem} is damaged: {error}") from error


def _mails(lines: Iterable[str]) -> Iterator[str]:
    """Yield the mails between lines that begin with "From "; what has no such line is one mail."""
    mail: list[str] = []
    size, parts, blank = 0, 0, True
    for line in lines:
        if blank and MARKS["mail between"].match(line):
            if mail:
                yield "".join(mail)
            mail, size, parts = [], 0, 0
            continue
        blank = not line.strip()
        size, parts = size + len(line), parts + line.startswith("--")
        if len(mail) > _MAX_LINES or parts > _MAX_PARTS:
            raise ImportFormatError(f"a mail has over {_MAX_LINES} lines or {_MAX_PARTS} parts: split it")
        if size > _MAX_MAIL:
            raise ImportFormatError(f"a mail is over {_MAX_MAIL >> 20} MB: take its attachments out")
        mail.append(line[1:] if line.startswith(">From ") else line)  # as a mailbox keeps "From "
    if mail:
        yield "".join(mail)


def _mail_turn(mail: Message, stem: str, skipped: Skipped) -> Turn:
    from email.utils import parseaddr, parsedate_to_datetime

    subject, ident = _header(mail, "Subject"), _header(mail, "Message-ID")
    about = MARKS["mail reply"].sub("", subject)
    attached: list[str] = []
    text = _written("\n\n".join(_texts(mail, attached)))
    skipped[fields.ATTACHED] += len(attached)
    if attached:
        text = f"{text} [attached: {', '.join(attached)}]".strip()
    before = f"{_header(mail, 'References')} {_header(mail, 'In-Reply-To')}".split()
    thread = before[0] if before else ident  # the mail that began it
    root = blake2b(thread.encode("utf-8", "replace"), digest_size=4).hexdigest()
    time = None
    with suppress(ValueError, TypeError):
        moment = parsedate_to_datetime(_header(mail, "Date"))
        time = iso((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat())  # "-0000" is UTC
    return Turn(
        text=f"{about}: {text}" if about == subject and about and text else text,
        speaker=next(filter(None, parseaddr(_header(mail, "From"))), None),
        time=time,
        session=f"{about[:200] or stem} {root}",
        turn=ident or None,
    )


def _written(text: str) -> str:
    kept: list[str] = []
    for line in MARKS["mail quotes"].sub("", text.replace("\r\n", "\n")).split("\n"):
        if line in ("-- ", "--") or (MARKS["mail history"].fullmatch(line) and any(kept)):
            break
        if not line.startswith(">") and not MARKS["mail sent from"].fullmatch(line.strip()):
            kept.append(line.rstrip())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()


def _header(message: Message, name: str) -> str:
    return _decoded(next((value for key, value in message.raw_items() if key.lower() == name.lower()), ""))


def _decoded(value: object) -> str:
    from email.header import decode_header, make_header

    text = str(value).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    with suppress(ValueError, LookupError):
        text = str(make_header(decode_header(text)))
    return " ".join(text.split())


def _texts(message: Message, attached: list[str]) -> list[str]:
    """Return the texts of a mail; of alternatives the first with words counts. `attached` gathers names."""
    kind, name = message.get_content_type(), _decoded(message.get_filename() or "")
    parts: Any = message.get_payload() if kind.startswith("multipart/") else None
    if isinstance(parts, list):
        found = [_texts(part, attached) for part in parts]
        kept = [texts for texts in found if any(text.strip() for text in texts)]
        return list(chain.from_iterable(kept[:1] if kind == "multipart/alternative" else kept))
    if message.get_content_disposition() == "attachment" or name or kind not in ("text/plain", "text/html"):
        attached += [name or kind] if name or kind == "message/rfc822" else []
        return []
    data: Any = message.get_payload(decode=True) or b""
    text = data.decode("utf-8", "replace")
    with suppress(LookupError):
        text = data.decode(message.get_content_charset() or "utf-8", "replace")
    return [text_of_html(text) if kind == "text/html" else text]


# ── HTML ────────────────────────────────────────────────────────────────────────────────────────
# Not by html.parser or what stands on it: it looks for the end of each open tag anew, 30 s for 60 kB.

_BREAKS = dict.fromkeys(
    "address article blockquote br dd div dl dt footer h1 h2 h3 h4 h5 h6 header ol pre section table tr ul"
    "".split(),
    "\n",
) | {"p": "\n\n", "hr": "\n\n", "li": "\n- ", "td": " ", "th": " "}
MAX_TAGS = 2**20


def text_of_html(html: str) -> str:
    """Return the words of a page in lines, without quoted mails; ImportFormatError beyond `MAX_TAGS` tags."""
    if html.count("<") > MAX_TAGS:
        raise ImportFormatError(f"a page holds over {MAX_TAGS} tags: save its text")
    parts: list[str] = []
    quote, depth = "", 0  # the tag that began a quoted mail, and how many of its name are open
    at, html = 0, MARKS["html unseen"].sub("", html)
    for tag in MARKS["html tag"].finditer(html):
        closes, name = bool(tag[1]), (tag[2] or "").lower()
        if not depth:
            parts += [re.sub(r"\s+", " ", html[at : tag.start()]), "" if closes else _BREAKS.get(name, "")]
            parts.append("\n" * (closes and name == "p"))
        at = tag.end()
        if depth:
            depth += (name == quote) * (-1 if closes else 1)
        elif not closes and name in ("blockquote", "div", "span") and MARKS["html quoted"].search(tag[3]):
            quote, depth = name, 1
    if not depth:
        parts.append(re.sub(r"\s+", " ", html[at:]))
    lines = (re.sub(r" {2,}", " ", line).strip() for line in unescape("".join(parts)).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).replace("-\n", "- ").strip()
