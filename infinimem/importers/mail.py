"""Mails: an .eml file, or a mailbox (mbox) with many of them, read one at a time.

What a person wrote comes in: quoted mails, signatures and the history of a reply go, for the mails themselves
are in the mailbox. A thread is a session. Where a mail has no plain text its HTML is read as text.
Source: RFC 5322 (messages), RFC 2045 (MIME), RFC 4155 (mbox), RFC 3676 (the line before a signature).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC
from email import message_from_bytes
from email.header import decode_header, make_header
from email.message import Message
from email.utils import parseaddr, parsedate_to_datetime
from hashlib import blake2b

from infinimem.errors import ImportFormatError
from infinimem.importers.fields import ATTACHED, NO_TEXT, Skipped, iso
from infinimem.importers.html_text import text_of_html
from infinimem.model import Turn

MAX_MAIL = 64 * 2**20
"""Characters of one mail with all that is attached to it."""

_FROM = re.compile(r"From \S.* \d\d:\d\d(?::\d\d)?.* \d{4}\s*\Z")
_FIELD = r"(?:From|To|Date|Subject|Message-ID|Received|Return-Path|Delivered-To|MIME-Version|X-[\w-]+)"
_HEADERS = re.compile(
    rf"(?:From \S.*\r?\n)?{_FIELD}: [^\n]+\n(?:(?:[\w-]+:|[ \t])[^\n]*\n)*(?:From|Date): ", re.IGNORECASE
)
_REPLY = re.compile(r"(?:\s*(?:re|aw|sv|antw|fwd?|wg|tr|rv|vs)(?:\[\d+\])?\s*:)+\s*", re.IGNORECASE)
_QUOTES = re.compile(
    r"^(?:On|Am|Le|El|Il|Op|Em|Den|Dnia)\s(?:(?!\n\n).){4,250}?(?:wrote|schrieb|écrit|escribió|scritto|schreef|escreveu|skrev|napisał)"
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
    return bool(_FROM.match(head.partition("\n")[0])) or bool(_HEADERS.match(head))


def turns(lines: Iterable[str], stem: str, skipped: Skipped) -> Iterator[Turn]:
    """The turns of a mailbox or of one mail, in the order of the file.

    Args:
        lines: with their ends; bytes that are no UTF-8 as lone surrogates, for a mail says its own encoding.
        stem: names a mail without a subject.
        skipped: counts what is left out.
    """
    for number, text in enumerate(_mails(lines), 1):
        try:
            yield from _turns(message_from_bytes(text.encode("utf-8", "surrogateescape")), stem, skipped)
        except (ValueError, LookupError, AttributeError) as error:
            raise ImportFormatError(f"mail {number} of {stem} is damaged: {error}") from error


def _mails(lines: Iterable[str]) -> Iterator[str]:
    """Mails of an mbox, between lines that begin with "From "; what has no such line is one mail."""
    mail: list[str] = []
    size, blank = 0, True
    for line in lines:
        if blank and _FROM.match(line):
            if mail:
                yield "".join(mail)
            mail, size = [], 0
            continue
        blank = not line.strip()
        size += len(line)
        if size > MAX_MAIL:
            raise ImportFormatError(f"a mail is over {MAX_MAIL >> 20} MB: take its attachments out")
        mail.append(line[1:] if line.startswith(">From ") else line)  # as a mailbox keeps "From "
    if mail:
        yield "".join(mail)


def _turns(mail: Message, stem: str, skipped: Skipped) -> Iterator[Turn]:
    subject = _decoded(mail["Subject"])
    bare = _REPLY.sub("", subject, count=1).strip() if _REPLY.match(subject) else subject
    ident = str(mail["Message-ID"] or "").strip()
    thread = (f"{mail['References'] or ''} {mail['In-Reply-To'] or ''}".split() or [ident])[0]
    texts, attached = _parts(mail)
    skipped[ATTACHED] += len(attached)
    text = _written("\n\n".join(texts))
    if attached:
        text = f"{text} [attached: {', '.join(attached)}]"
    if not text.strip():
        skipped[NO_TEXT] += 1
        return
    if bare and bare == subject:
        text = f"{subject}: {text}"
    name, address = parseaddr(_decoded(mail["From"]))
    root = blake2b(thread.encode("utf-8", "replace"), digest_size=4).hexdigest()
    yield Turn(
        text=text.strip(),
        speaker=name or address or None,
        time=_time(mail["Date"]),
        session=f"{bare[:200] or stem} {root}",
        turn=ident or None,
    )


def _decoded(value: object) -> str:
    """A header's words; RFC 2047 lets them be encoded."""
    try:
        text = str(make_header(decode_header(str(value or ""))))
    except (ValueError, LookupError):
        text = str(value)
    return " ".join(text.encode("utf-8", "replace").decode("utf-8", "replace").split())


def _time(value: object) -> str | None:
    try:
        moment = parsedate_to_datetime(str(value))
        return iso((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat())  # "-0000" is UTC
    except (ValueError, TypeError):
        return None


def _parts(mail: Message) -> tuple[list[str], list[str]]:
    """The texts of a mail, and the names of what is attached. Of alternatives the first with words counts."""
    if mail.get_content_type() == "multipart/alternative":
        found = [_parts(part) for part in _inner(mail)]
        texts = next((texts for texts, _ in found if any(text.strip() for text in texts)), [])
        return texts, [name for _, names in found for name in names]
    if inner := _inner(mail):
        found = [_parts(part) for part in inner]
        return [text for texts, _ in found for text in texts], [name for _, names in found for name in names]
    kind = mail.get_content_type()
    name = _decoded(mail.get_filename())
    if mail.get_content_disposition() == "attachment" or name or kind not in ("text/plain", "text/html"):
        return [], [name] if name else []
    payload = mail.get_payload(decode=True)
    data = payload if isinstance(payload, bytes) else b""
    try:
        text = data.decode(mail.get_content_charset() or "utf-8", "replace")
    except LookupError:
        text = data.decode("utf-8", "replace")
    return [text_of_html(text) if kind == "text/html" else text], []


def _inner(mail: Message) -> list[Message]:
    payload = mail.get_payload() if mail.is_multipart() else []
    return [part for part in payload if isinstance(part, Message)] if isinstance(payload, list) else []


def _written(text: str) -> str:
    """What its sender wrote in a mail: without quotes, the line that tells of them, history and signature."""
    kept: list[str] = []
    unquoted = _QUOTES.sub("", text.replace("\r\n", "\n"))
    for line in unquoted.split("\n"):
        if line == "-- " or line == "--" or (_HISTORY.fullmatch(line) and any(kept)):
            break
        if not line.startswith(">") and not _SENT_FROM.fullmatch(line.strip()):
            kept.append(line.rstrip())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
