"""Mails: an .eml file, or a mailbox (mbox) with many of them, read one at a time.

What a person wrote comes in: quoted mails, signatures and the history of a reply go, for the mails themselves
are in the mailbox. A thread is a session. Where a mail has no plain text its HTML is read as text.
Source: RFC 4155 (mbox), RFC 3676 (the line before a signature).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import TYPE_CHECKING

from infinimem.errors import ImportFormatError
from infinimem.importers.fields import ATTACHED, NO_TEXT, Skipped
from infinimem.model import Turn

if TYPE_CHECKING:
    from infinimem.importers.mime import Mail

MAX_MAIL = 64 * 2**20
"""Characters of one mail with all that is attached to it."""
MAX_LINES, MAX_PARTS = 2**20, 2**16
"""Of one mail; each costs more than its characters."""

_FROM = re.compile(r"From \S.* \d\d:\d\d(?::\d\d)?.* \d{4}\s*\Z")
_HEADERS = re.compile(
    r"(?:From|To|Date|Subject|Message-ID|Received|Return-Path|Delivered-To|MIME-Version|X-[\w-]+): [^\n]+\n"
    r"(?:(?:[\w-]+:|[ \t])[^\n]*\n)*",
    re.IGNORECASE,
)
_SENDER = re.compile(r"^From: ", re.IGNORECASE | re.MULTILINE)
_LONG = 4000
"""Characters of headers alone, of which the sender's may come later."""
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
    if _FROM.match(head.partition("\n")[0]):
        return True
    headers = _HEADERS.match(head)
    if headers is None or headers[0].count("\n") < 2:
        return False
    return bool(_SENDER.search(headers[0])) or (len(head) >= _LONG and "\n" not in head[headers.end() :])


def turns(lines: Iterable[str], stem: str, skipped: Skipped) -> Iterator[Turn]:
    """The turns of a mailbox or of one mail, in the order of the file.

    Args:
        lines: with their ends; bytes that are no UTF-8 as lone surrogates, for a mail says its own encoding.
        stem: names a mail without a subject.
        skipped: counts what is left out.
    """
    from infinimem.importers.mime import read_mail

    for number, text in enumerate(_mails(lines), 1):
        try:
            mail = read_mail(text.encode("utf-8", "surrogateescape"))
        except (ValueError, LookupError, AttributeError, RecursionError) as error:
            raise ImportFormatError(f"mail {number} of {stem} is damaged: {error}") from error
        skipped[ATTACHED] += len(mail.attached)
        if turn := _turn(mail, stem):
            yield turn
        else:
            skipped[NO_TEXT] += 1


def _mails(lines: Iterable[str]) -> Iterator[str]:
    """Mails of an mbox, between lines that begin with "From "; what has no such line is one mail."""
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


def _turn(mail: Mail, stem: str) -> Turn | None:
    """What was written, below its subject where that is new; None for a mail without text."""
    answered = _REPLY.match(mail.subject)
    about = mail.subject[answered.end() :] if answered else mail.subject
    text = _written("\n\n".join(mail.texts))
    if mail.attached:
        text = f"{text} [attached: {', '.join(mail.attached)}]".strip()
    if not text:
        return None
    root = blake2b(mail.thread.encode("utf-8", "replace"), digest_size=4).hexdigest()
    return Turn(
        text=f"{about}: {text}" if about and not answered else text,
        speaker=mail.sender,
        time=mail.time,
        session=f"{about[:200] or stem} {root}",
        turn=mail.ident or None,
    )


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
