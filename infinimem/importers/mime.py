"""One mail out of its bytes: who wrote when about what, its texts, and the names of what is attached.

Source: RFC 5322 (messages), RFC 2045 (MIME), RFC 2047 (words of headers in other encodings).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from email import message_from_bytes
from email.header import decode_header, make_header
from email.message import Message
from email.utils import parseaddr, parsedate_to_datetime

from infinimem.importers.fields import iso
from infinimem.importers.html_text import text_of_html


@dataclass(frozen=True)
class Mail:
    """A mail. `thread` is the id of the mail that began its thread; `time` is ISO 8601."""

    ident: str
    thread: str
    subject: str
    sender: str | None
    time: str | None
    texts: list[str]
    attached: list[str]


def read_mail(data: bytes) -> Mail:
    """Read a mail; what is no MIME is text.

    Raises:
        ValueError, LookupError, AttributeError, RecursionError: it is damaged in a way that is not known.
    """
    message = message_from_bytes(data)
    ident = _header(message, "Message-ID")
    before = f"{_header(message, 'References')} {_header(message, 'In-Reply-To')}".split()
    name, address = parseaddr(_header(message, "From"))
    texts, attached = _parts(message)
    return Mail(
        ident,
        before[0] if before else ident,
        _header(message, "Subject"),
        name or address or None,
        _time(_header(message, "Date")),
        texts,
        attached,
    )


def _header(message: Message, name: str) -> str:
    raw = next((value for key, value in message.raw_items() if key.lower() == name.lower()), "")
    return _decoded(str(raw))


def _decoded(value: str) -> str:
    """The words of a header; what is neither encoded nor UTF-8 is replaced."""
    plain = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    try:
        return " ".join(str(make_header(decode_header(plain))).split())
    except (ValueError, LookupError):
        return " ".join(plain.split())


def _time(value: str) -> str | None:
    try:
        moment = parsedate_to_datetime(value)
        return iso((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat())  # "-0000" is UTC
    except (ValueError, TypeError):
        return None


def _parts(message: Message) -> tuple[list[str], list[str]]:
    """Texts, and names of what is attached; of alternatives the first with words counts."""
    kind, name = message.get_content_type(), _decoded(message.get_filename() or "")
    inner = message.get_payload() if kind.startswith("multipart/") else None
    if isinstance(inner, list):
        found = [_parts(part) for part in inner if isinstance(part, Message)]
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
