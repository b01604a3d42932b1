"""Gemini's history in Google Takeout: My Activity of Gemini Apps as JSON, an activity a record, newest first.

An activity is what was asked and what was answered, and belongs to no conversation: a day is a session.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from infinimem.importers.fields import ATTACHED, NOTICES, OTHER, Json, Skipped, day_of_chat, iso, rows
from infinimem.importers.html_text import text_of_html
from infinimem.model import Turn

_NAMES = ("Gemini", "Bard")
_ASKED = re.compile(r"(?:Prompted|Asked|Said)(?: with)?:?\s+")
_ATTACHMENTS = ("attachedFiles", "imageFile", "audioFiles")


def matches(record: Json) -> bool:
    of = [record.get("header"), *rows(record.get("products"))]
    return "title" in record and "time" in record and any(str(one).startswith(_NAMES) for one in of)


def turns(records: Iterable[Any], stem: str, skipped: Skipped) -> Iterator[Turn]:
    """The oldest first, as it was said; for that all of it is held."""
    dated = []
    for number, record in enumerate(records):
        if isinstance(record, dict) and matches(record):
            dated.append((iso(record["time"]) or "", -number, record))
        else:
            skipped[OTHER] += 1
    for time, _, record in sorted(dated, key=lambda row: row[:2]):
        session = day_of_chat("Gemini", time)
        title = str(record["title"])
        answers = [one.get("html") for one in rows(record.get("safeHtmlItem")) if isinstance(one, dict)]
        skipped[ATTACHED] += sum(
            len(rows(record.get(field)) or [0]) for field in _ATTACHMENTS if record.get(field)
        )
        asked = _ASKED.match(title)
        if not asked and not answers:
            skipped[NOTICES] += 1  # "Used an assistant feature", "Gave feedback"
            continue
        yield Turn(text=title[asked.end() :] if asked else title, time=time or None, session=session)
        for html in answers:
            if isinstance(html, str):
                yield Turn(text=text_of_html(html), role="assistant", time=time or None, session=session)
