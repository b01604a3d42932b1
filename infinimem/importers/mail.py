"""Mails: an .eml file, or a mailbox (mbox) with many of them, read one at a time.

What a person wrote comes in: quoted mails, signatures and the history of a reply go, for the mails themselves
are in the mailbox. A thread is a session. Where a mail has no plain text its HTML is read as text.
Source: RFC 4155 (mbox), RFC 5322 (messages), RFC 2045 (MIME), RFC 2047 (words of headers in other encodings),
RFC 3676 (the line before a signature).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC
from hashlib import blake2b
from html import unescape
from typing import TYPE_CHECKING, Any

from infinimem.errors import ImportFormatError
from infinimem.importers.fields import ATTACHED, Skipped, iso
from infinimem.model import Turn

if TYPE_CHECKING:
    from email.message import Message

MAX_MAIL = 64 * 2**20  # characters of one mail with all that is attached to it
MAX_LINES, MAX_PARTS = 2**20, 2**16  # of one mail; each costs more than its characters

_FROM = re.compile(r"From \S.* \d\d:\d\d(?::\d\d)?.* \d{4}\s*\Z")
_HEADERS = re.compile(
    r"(?:From|To|Date|Subject|Message-ID|Received|Return-Path|Delivered-To|MIME-Version|X-[\w-]+): [^\n]+\n"
    r"(?:(?:[\w-]+:|[ \t])[^\n]*\n)*",
    re.IGNORECASE,
)
_SENDER = re.compile(r"^From: ", re.IGNORECASE | re.MULTILINE)
_LONG = 4000  # characters of headers alone, of which the sender's may come later
_REPLY = re.compile(r"(?:\s*(?:re|aw|sv|antw|fwd?|wg|tr|rv|vs)(?:\[\d+\])?\s*:)+\s*", re.IGNORECASE)
_QUOTES = re.compile(
    r"^(?:On|Am|Le|El|Il|Op|Em|Den|Dnia)\s(?:(?!\n\n).){4,250}?"
    r"(?:wrote|schrieb|écrit|escribió|scritto|schreef|escreveu|skrev|napisał)"
    r"(?:(?!\n\n).){0,80}?:[ \t]*(?=\s*(?:\n>|\Z))",
    re.DOTALL | re.MULTILINE,
)
_HISTORY = re.compile(
    r"\s*(?:-{2,} ?(?:Original Message|Ursprüngliche Nachricht|Message d'origine|Forwarded message) ?-{2,}"
    r"|_{20,}|\*?(?:From|Von|De):\*? .*[@<].*)\s*",
    re.IGNORECASE,
)
_SENT_FROM = re.compile(
    r"(?:Sent from my|Von meinem|Gesendet von|Envoyé de mon|Get Outlook for)\b.{0,60}", re.IGNORECASE
)


def matches(head: str) -> bool:
    """Return whether a file is a mail or a mailbox, by its beginning."""
    if _FROM.match(head.partition("\n")[0]):
        return True
    if (headers := _HEADERS.match(head)) is None or headers[0].count("\n") < 2:
        return False
    return bool(_SENDER.search(headers[0])) or (len(head) >= _LONG and "\n" not in head[headers.end() :])


def turns(lines: Iterable[str], stem: str, skipped: Skipped) -> Iterator[Turn]:
    """Yield the turns of a mailbox or of one mail; `stem` names one without a subject. Lines have their ends,
    and bytes that are no UTF-8 as lone surrogates, for a mail says its own encoding."""
    from email import message_from_bytes  # not before there is a mail: it loads slowly

    for number, text in enumerate(_mails(lines), 1):
        try:
            yield _turn(message_from_bytes(text.encode("utf-8", "surrogateescape")), stem, skipped)
        except (ValueError, LookupError, AttributeError, RecursionError) as error:
            raise ImportFormatError(f"mail {number} of {stem} is damaged: {error}") from error


def _mails(lines: Iterable[str]) -> Iterator[str]:
    """Yield the mails between lines that begin with "From "; what has no such line is one mail."""
    mail: list[str] = []
    size, parts, blank = 0, 0, True
    for line in lines:
        if blank and _FROM.match(line):
            if mail:
                yield "".join(mail)
            mail, size, parts = [], 0, 0
            continue
        blank = not line.strip()
        size, parts = size + len(line), parts + line.startswith("--")
        if len(mail) > MAX_LINES or parts > MAX_PARTS:
            raise ImportFormatError(f"a mail has over {MAX_LINES} lines or {MAX_PARTS} parts: split it")
        if size > MAX_MAIL:
            raise ImportFormatError(f"a mail is over {MAX_MAIL >> 20} MB: take its attachments out")
        mail.append(line[1:] if line.startswith(">From ") else line)  # as a mailbox keeps "From "
    if mail:
        yield "".join(mail)


def _turn(mail: Message, stem: str, skipped: Skipped) -> Turn:
    """Return what was written, below its subject if that is new."""
    from email.utils import parseaddr, parsedate_to_datetime

    subject, ident = _header(mail, "Subject"), _header(mail, "Message-ID")
    answered = _REPLY.match(subject)
    about = subject[answered.end() :] if answered else subject
    texts, attached = _parts(mail)
    skipped[ATTACHED] += len(attached)
    text = _written("\n\n".join(texts))
    if attached:
        text = f"{text} [attached: {', '.join(attached)}]".strip()
    before = f"{_header(mail, 'References')} {_header(mail, 'In-Reply-To')}".split()
    thread = before[0] if before else ident  # the mail that began it
    root = blake2b(thread.encode("utf-8", "replace"), digest_size=4).hexdigest()
    name, address = parseaddr(_header(mail, "From"))
    time = None
    with suppress(ValueError, TypeError):
        moment = parsedate_to_datetime(_header(mail, "Date"))
        time = iso((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat())  # "-0000" is UTC
    return Turn(
        text=f"{about}: {text}" if about and text and not answered else text,
        speaker=name or address or None,
        time=time,
        session=f"{about[:200] or stem} {root}",
        turn=ident or None,
    )


def _written(text: str) -> str:
    """Strip quotes, the line that tells of them, history and signature from a mail."""
    kept: list[str] = []
    for line in _QUOTES.sub("", text.replace("\r\n", "\n")).split("\n"):
        if line in ("-- ", "--") or (_HISTORY.fullmatch(line) and any(kept)):
            break
        if not line.startswith(">") and not _SENT_FROM.fullmatch(line.strip()):
            kept.append(line.rstrip())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()


def _header(message: Message, name: str) -> str:
    raw = next((value for key, value in message.raw_items() if key.lower() == name.lower()), "")
    return _decoded(str(raw))


def _decoded(value: str) -> str:
    """Decode the words of a header; replace what is neither encoded nor UTF-8."""
    from email.header import decode_header, make_header

    plain = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    try:
        return " ".join(str(make_header(decode_header(plain))).split())
    except (ValueError, LookupError):
        return " ".join(plain.split())


def _parts(message: Message) -> tuple[list[str], list[str]]:
    """Return texts, and names of what is attached; of alternatives the first with words counts."""
    kind, name = message.get_content_type(), _decoded(message.get_filename() or "")
    inner: Any = message.get_payload() if kind.startswith("multipart/") else None
    if isinstance(inner, list):
        found = [_parts(part) for part in inner]
        kept = [texts for texts, _ in found if any(text.strip() for text in texts)]
        kept = kept[:1] if kind == "multipart/alternative" else kept
        return [text for texts in kept for text in texts], [name for _, names in found for name in names]
    if message.get_content_disposition() == "attachment" or name or kind not in ("text/plain", "text/html"):
        return [], [name or kind] if name or kind == "message/rfc822" else []
    payload = message.get_payload(decode=True)
    data = payload if isinstance(payload, bytes) else b""
    try:
        text = data.decode(message.get_content_charset() or "utf-8", "replace")
    except LookupError:
        text = data.decode("utf-8", "replace")
    return [text_of_html(text) if kind == "text/html" else text], []


# ── HTML ────────────────────────────────────────────────────────────────────────────────────────
# Not by html.parser: it looks for the end of each open tag anew, minutes for a hostile page of 300 kB.

_UNSEEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|head|title|template)\b[^<>]*>.*?(?:</\1\b[^<>]*>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_TAG = re.compile(r"<(/?)([a-z][a-z0-9]*)\b([^<>]*)>|<[!?/][^<>]*>", re.IGNORECASE)
_QUOTED = re.compile(
    r"class=[\"']?[^\"']*(?:gmail_quote|yahoo_quoted|moz-cite-prefix|protonmail_quote)|type=[\"']?cite",
    re.IGNORECASE,
)
_BREAKS = dict.fromkeys(
    "address article blockquote br dd div dl dt footer h1 h2 h3 h4 h5 h6 header ol pre section table tr ul"
    "".split(),
    "\n",
) | {"p": "\n\n", "hr": "\n\n", "li": "\n- ", "td": " ", "th": " "}
_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())
MAX_TAGS = 2**20


def text_of_html(html: str) -> str:
    """Return the words of a page or a fragment as plain text, with lines where a reader sees lines;
    ImportFormatError if it holds more than `MAX_TAGS` tags."""
    if html.count("<") > MAX_TAGS:
        raise ImportFormatError(f"a page holds over {MAX_TAGS} tags: save its text")
    parts: list[str] = []
    open_: list[tuple[str, bool]] = []  # tags, and whether a quoted mail is inside
    times: Counter[str] = Counter()  # a tag is open
    at, html = 0, _UNSEEN.sub("", html)
    for tag in _TAG.finditer(html):
        quoted = bool(open_) and open_[-1][1]
        if not quoted:
            parts.append(re.sub(r"\s+", " ", html[at : tag.start()]))
        at, name = tag.end(), (tag[2] or "").lower()
        if not quoted:
            parts.append("\n" * (name == "p") if tag[1] else _BREAKS.get(name, ""))
        if not tag[1] and name and name not in _VOID:
            open_.append((name, quoted or bool(_QUOTED.search(tag[3]))))
            times[name] += 1
        left = ""
        while tag[1] and times[name] and left != name:  # what is inside and was not closed ends with it
            left, _ = open_.pop()
            times[left] -= 1
    if not (open_ and open_[-1][1]):
        parts.append(re.sub(r"\s+", " ", html[at:]))
    lines = (re.sub(r" {2,}", " ", line).strip() for line in unescape("".join(parts)).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).replace("-\n", "- ").strip()
